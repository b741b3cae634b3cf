package telegram

import (
	"context"
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
	at := a.addressOfChat(m.Chat.ID)
	if m.IsTopicMessage && m.MessageThreadID > generalTopic {
		at.Thread = platforms.ThreadID(strconv.Itoa(m.MessageThreadID))
	}
	return at
}

func (a *Adapter) addressOfChat(chat int64) platforms.Address {
	return platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: platforms.ChatID(strconv.FormatInt(chat, 10))}
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
	return time.Unix(int64(unix), 0).UTC()
}

// events turns updates into events, in order. An update that makes none is counted. The error is ctx's,
// from waiting to learn the bot's own name, which only groups need.
func (a *Adapter) events(ctx context.Context, updates []models.Update) ([]platforms.Event, error) {
	events := make([]platforms.Event, 0, len(updates))
	albums := map[string]int{} // chat and group: index in events
	for i := range updates {
		u := &updates[i]
		if a.needsName(u) {
			wait, cancel := context.WithTimeout(ctx, a.s.PollMargin)
			err := a.me.wait(wait)
			cancel()
			if err != nil {
				return nil, err
			}
		}
		made, reason := a.convert(u)
		if len(made) == 0 {
			a.s.Metrics.Dropped(reason)
			a.s.Log.Debug().Int64("update", u.ID).Str("reason", reason).Msg("update makes no event")
			continue
		}
		if key := albumKey(u.Message); key != "" {
			if at, ok := albums[key]; ok {
				mergeAlbum(&events[at], made[0])
				continue
			}
			albums[key] = len(events)
		}
		events = append(events, made...)
	}
	return events, nil
}

func (a *Adapter) needsName(u *models.Update) bool {
	for _, m := range []*models.Message{u.Message, u.EditedMessage, u.ChannelPost} {
		if m != nil && m.Chat.Type != models.ChatTypePrivate {
			return true
		}
	}
	return false
}

func albumKey(m *models.Message) string {
	if m == nil || m.MediaGroupID == "" {
		return ""
	}
	return strconv.FormatInt(m.Chat.ID, 10) + "/" + m.MediaGroupID
}

// mergeAlbum adds the pictures and the caption of one more update to an album's event. One addressed
// caption speaks for all pictures.
func mergeAlbum(into *platforms.Event, more platforms.Event) {
	into.Message.Attachments = append(into.Message.Attachments, more.Message.Attachments...)
	if more.Message.Text != "" {
		if into.Message.Text != "" {
			into.Message.Text += "\n"
		}
		into.Message.Text += more.Message.Text
	}
	into.Addressed = into.Addressed || more.Addressed
	into.Observed = into.Observed && more.Observed
}
