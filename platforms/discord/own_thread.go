package discord

import (
	"context"
	"time"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
)

// openLimit bounds how long a message that is sent already waits for its thread.
const openLimit = 30 * time.Second

// OpenThread opens the thread of a message of ours in a text channel, whose id becomes the thread's; a post in a forum is one
// already. Direct chats and threads have none, and where Discord refuses it the message stays as it is.
func (a *Adapter) OpenThread(ctx context.Context, out platforms.Outgoing, id platforms.MessageID) platforms.ThreadID {
	chat := string(out.Address.Chat)
	if out.Thread == "" || out.Address.Thread != "" || snowflake(string(id)) == 0 {
		return ""
	}
	p, err := a.channelOf(ctx, chat)
	if err != nil {
		a.s.Log.Warn().Err(err).Str("channel", chat).Msg("a thread could not be opened; the message stands alone")
		return ""
	}
	switch {
	case p.forum():
		return platforms.ThreadID(id) // the first message of a post has its id
	case p.kind != discordgo.ChannelTypeGuildText && p.kind != discordgo.ChannelTypeGuildNews:
		return ""
	}
	title := firstLine(out.Thread)
	if title == "" {
		title = titleOf(out.Text.Plain, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	for range openTries {
		if _, err = a.threads.make(ctx, chat, string(id), title); err == nil {
			a.threads.join(ctx, string(id))
			return platforms.ThreadID(id)
		}
		if !isKind(err, platforms.RateLimited) && !isKind(err, platforms.Transient) {
			break
		}
	}
	a.s.Log.Warn().Str("channel", chat).Str("cause", whyNot(err)).Msg("a thread could not be opened; the message stands alone")
	return ""
}
