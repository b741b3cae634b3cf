package discord

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
	"herald/platforms/wire"
)

// Delete removes a message of ours. One that is gone already is success.
func (a *Adapter) Delete(ctx context.Context, at platforms.Address, id platforms.MessageID) error {
	if err := a.checkMessage(at, id); err != nil {
		return err
	}
	err := a.onMessages(ctx, at, id, func(channel string) error {
		return a.do(ctx, call{
			method: http.MethodDelete, route: "/channels/{channel}/messages/{message}", major: channel,
			path: "/channels/" + channel + "/messages/" + string(id),
		}, nil)
	})
	if codeOf(err) == discordgo.ErrCodeUnknownMessage || codeOf(err) == discordgo.ErrCodeUnknownChannel {
		return nil
	}
	return err
}

func (a *Adapter) checkMessage(at platforms.Address, id platforms.MessageID) error {
	if err := a.checkAddress(at); err != nil {
		return err
	}
	if snowflake(string(id)) == 0 {
		return &platforms.SendError{Kind: platforms.BadRequest, Err: errors.New("message " + string(id) + " is no Discord message: want its id, a whole number")}
	}
	return nil
}

// Typing shows "is typing" for ten seconds. Until a thread is open it is shown in the channel.
func (a *Adapter) Typing(ctx context.Context, at platforms.Address) error {
	if err := a.checkAddress(at); err != nil {
		return err
	}
	channel := a.threads.there(ctx, at)
	if p, ok := a.rooms.get(channel); ok && p.forum() {
		return nil // nobody types in a list of posts
	}
	return a.do(ctx, call{method: http.MethodPost, route: "/channels/{channel}/typing", major: channel, path: "/channels/" + channel + "/typing", skip: true}, nil)
}

// TypingEvery returns 8 s: Discord shows the sign for 10 s.
func (a *Adapter) TypingEvery() time.Duration { return 8 * time.Second }

// React puts emoji on a message in place of our earlier one, or takes it off when emoji is "". A custom emoji is
// written "name:id". It returns Unsupported while Options.Reactions is off.
func (a *Adapter) React(ctx context.Context, at platforms.Address, id platforms.MessageID, emoji string) error {
	if !a.s.Reactions {
		return platforms.Failure(platforms.Unsupported, "reactions are switched off (platforms.discord.reactions)")
	}
	if err := a.checkMessage(at, id); err != nil {
		return err
	}
	return a.onMessages(ctx, at, id, func(channel string) error {
		old, err := a.ourEmoji(ctx, channel, string(id))
		if err != nil {
			return err
		}
		for _, e := range old {
			if e == emoji {
				continue
			}
			if err := a.reaction(ctx, http.MethodDelete, channel, string(id), e); err != nil && codeOf(err) != discordgo.ErrCodeUnknownEmoji {
				return err
			}
		}
		if emoji != "" {
			if err := a.reaction(ctx, http.MethodPut, channel, string(id), emoji); err != nil {
				return err
			}
		}
		a.reacted.by.Put(string(id), emoji)
		return nil
	})
}

// reaction puts one emoji on a message or takes it off.
func (a *Adapter) reaction(ctx context.Context, method, channel, message, emoji string) error {
	return a.do(ctx, call{
		method: method, route: "/channels/{channel}/messages/{message}/reactions/{emoji}/@me", major: channel,
		path: "/channels/" + channel + "/messages/" + message + "/reactions/" + url.PathEscape(emoji) + "/@me",
	}, nil)
}

// ourEmoji returns what we put on a message. An earlier process may have: then Discord is asked, but only about
// messages that are older than this one.
func (a *Adapter) ourEmoji(ctx context.Context, channel, id string) ([]string, error) {
	if emoji, known := a.reacted.by.Get(id); known {
		if emoji == "" {
			return nil, nil
		}
		return []string{emoji}, nil
	}
	if when(id).After(a.reacted.since) {
		return nil, nil
	}
	var m message
	err := a.do(ctx, call{
		method: http.MethodGet, route: "/channels/{channel}/messages/{message}", major: channel,
		path: "/channels/" + channel + "/messages/" + id,
	}, &m)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range m.Reactions {
		if r.Me {
			out = append(out, emojiName(r.Emoji))
		}
	}
	return out, nil
}

func emojiName(e discordgo.Emoji) string {
	if e.ID != "" {
		return e.Name + ":" + e.ID
	}
	return e.Name
}

// reactedKept is how many messages with an emoji of ours are remembered.
const reactedKept = 2048

// reacted remembers what we put on messages since a time.
type reacted struct {
	since time.Time
	by    *wire.Recent[string, string]
}

func newReacted() *reacted {
	return &reacted{since: time.Now(), by: wire.NewRecent[string, string](reactedKept)}
}
