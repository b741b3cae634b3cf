package slack

import (
	"context"

	api "github.com/slack-go/slack"

	"herald/platforms"
)

// seenName is the emoji that we put on a message first: before it there is no reaction of ours to look for.
const seenName = "eyes"

// React puts emoji on a message in place of our earlier one, or takes it off when emoji is "". It returns Unsupported
// while Options.Reactions is off.
func (a *Adapter) React(ctx context.Context, at platforms.Address, id platforms.MessageID, emoji string) error {
	if !a.s.Reactions {
		return platforms.Failure(platforms.Unsupported, "reactions are switched off (platforms.slack.reactions)")
	}
	if id == "" {
		return platforms.Failure(platforms.BadRequest, "a reaction needs a message")
	}
	channel, err := a.channelOf(ctx, at)
	if err != nil {
		return err
	}
	item := api.NewRefToMessage(channel, string(id))
	key := channel + "/" + string(id)
	name := ""
	if emoji != "" {
		name = slackName(emoji)
	}
	before, known := a.marked.Get(key)
	if !known && name != seenName { // an earlier process may have put its sign there
		before = a.ownReaction(ctx, channel, item)
	}
	if before == name {
		a.marked.Put(key, name)
		return nil
	}
	if name != "" {
		err := a.do(ctx, "reactions.add", channel, func(ctx context.Context) error { return a.api.AddReactionContext(ctx, name, item) })
		if err != nil && code(err) != "already_reacted" {
			return err
		}
	}
	if before != "" {
		err := a.do(ctx, "reactions.remove", channel, func(ctx context.Context) error { return a.api.RemoveReactionContext(ctx, before, item) })
		if err != nil && code(err) != "no_reaction" {
			return err
		}
	}
	a.marked.Put(key, name)
	return nil
}

// ownReaction asks for what an earlier process put on a message, "" when it is not known.
func (a *Adapter) ownReaction(ctx context.Context, channel string, item api.ItemRef) string {
	var got api.ReactedItem
	err := a.do(ctx, "reactions.get", channel, func(ctx context.Context) (err error) {
		got, err = a.api.GetReactionsContext(ctx, item, api.GetReactionsParameters{Full: true})
		return err
	})
	if err != nil {
		return ""
	}
	me := a.self().user
	for _, r := range got.Reactions {
		for _, user := range r.Users {
			if user == me {
				return r.Name
			}
		}
	}
	return ""
}
