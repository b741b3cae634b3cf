package discord

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
)

// History returns what was said at a place before a message, oldest first: at most limit messages, and no more than
// Options.HistoryLimit. A thread begins with the message that it hangs on.
func (a *Adapter) History(ctx context.Context, at platforms.Address, before platforms.MessageID, limit int) ([]platforms.Said, error) {
	if err := a.checkMessage(at, before); err != nil {
		return nil, err
	}
	limit = min(limit, a.s.HistoryLimit)
	if limit <= 0 {
		return nil, nil
	}
	channel := string(at.Chat)
	if at.Thread != "" {
		channel = string(at.Thread)
	}
	page, err := a.messages(ctx, channel, string(before), limit)
	if codeOf(err) == discordgo.ErrCodeUnknownChannel && at.Thread != "" {
		return nil, nil // it was not opened yet
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(page)
	if len(page) < limit {
		if page, err = a.withRoot(ctx, at, page); err != nil {
			return nil, err
		}
	}
	me := a.me()
	var said []platforms.Said
	for i := range page {
		m := &page[i]
		if m.Type == discordgo.MessageTypeThreadStarterMessage && m.Referenced != nil {
			m = m.Referenced
		}
		if m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply || m.Author == nil {
			continue
		}
		text := a.textOf(m, me)
		for _, part := range []string{describe(m), filesIn(m)} {
			if part != "" {
				text = strings.TrimSpace(text + "\n" + part)
			}
		}
		if text == "" {
			continue
		}
		said = append(said, platforms.Said{
			ID: platforms.MessageID(m.ID), Sender: userOf(m.Author, m.Member), Text: text, Own: m.Author.ID == me.id, At: when(m.ID),
		})
	}
	return said, nil
}

// withRoot puts the message that a thread hangs on before the thread's own, where they do not begin with it.
func (a *Adapter) withRoot(ctx context.Context, at platforms.Address, page []message) ([]message, error) {
	if at.Thread == "" || a.inForum(at) {
		return page, nil
	}
	if len(page) > 0 && page[0].Type == discordgo.MessageTypeThreadStarterMessage {
		if page[0].Referenced != nil {
			return page, nil
		}
		page = page[1:]
	}
	parent, root := string(at.Chat), string(at.Thread)
	var m message
	err := a.do(ctx, call{
		method: http.MethodGet, route: "/channels/{channel}/messages/{message}", major: parent,
		path: "/channels/" + parent + "/messages/" + root,
	}, &m)
	switch {
	case err == nil:
		return append([]message{m}, page...), nil
	case statusOf(err) >= 400 && statusOf(err) < 500 && !isKind(err, platforms.RateLimited):
		return page, nil // it hangs on none
	}
	return nil, err
}

// filesIn names the files of a message, for people.
func filesIn(m *message) string {
	out := ""
	for _, f := range m.Files {
		if f != nil {
			out += "[" + platforms.SafeName(f.Filename) + "] "
		}
	}
	return strings.TrimSpace(out)
}
