package discord

import (
	"context"
	"slices"

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
	channel := a.threads.there(ctx, at)
	page, err := a.messages(ctx, channel, string(before), limit)
	if codeOf(err) == discordgo.ErrCodeUnknownChannel && at.Thread != "" {
		return nil, nil // it was not opened yet
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(page)
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
				text += "\n" + part
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

// filesIn names the files of a message, for people.
func filesIn(m *message) string {
	out := ""
	for _, f := range m.Files {
		if f != nil {
			out += "[" + platforms.SafeName(f.Filename) + "] "
		}
	}
	return out
}
