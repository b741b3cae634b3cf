package telegram

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"herald/platforms"
)

// generalTopic is the topic of a forum that has no thread of its own: a message there goes out without
// message_thread_id.
const generalTopic = 1

// addressOf returns where an answer to m goes. A thread id counts only in topics: in other groups it is
// just the root of a chain of replies.
func (a *Adapter) addressOf(m *models.Message) platforms.Address {
	thread := 0
	if m.IsTopicMessage {
		thread = m.MessageThreadID
	}
	return a.addressOfThread(m.Chat.ID, thread)
}

func (a *Adapter) addressOfThread(chat int64, thread int) platforms.Address {
	at := platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: platforms.ChatID(strconv.FormatInt(chat, 10))}
	if thread > generalTopic {
		at.Thread = platforms.ThreadID(strconv.Itoa(thread))
	}
	return at
}

func chatType(c models.Chat) platforms.ChatType {
	switch c.Type {
	case models.ChatTypePrivate:
		return platforms.DM
	case models.ChatTypeChannel:
		return platforms.Channel
	}
	return platforms.Group
}

func chatName(c models.Chat) string {
	if c.Title != "" {
		return c.Title
	}
	return strings.TrimSpace(c.FirstName + " " + c.LastName)
}

// senderOf returns who wrote m. A post in the name of a chat (a channel, an anonymous admin) has a zero id:
// Telegram does not say who it was.
func senderOf(m *models.Message) platforms.User {
	if m.SenderChat != nil {
		u := platforms.User{Name: chatName(*m.SenderChat), Username: m.SenderChat.Username}
		if m.AuthorSignature != "" {
			u.Name = m.AuthorSignature
		}
		return u
	}
	if m.From == nil {
		return platforms.User{Name: m.AuthorSignature}
	}
	return userOf(*m.From)
}

func userOf(u models.User) platforms.User {
	return platforms.User{
		ID:       platforms.UserID(strconv.FormatInt(u.ID, 10)),
		Name:     strings.TrimSpace(u.FirstName + " " + u.LastName),
		Username: u.Username, IsBot: u.IsBot, Language: u.LanguageCode,
	}
}

func when(unix int) time.Time {
	if unix <= 0 {
		return time.Time{}
	}
	return platforms.Instant(time.Unix(int64(unix), 0))
}
