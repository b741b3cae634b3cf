package telegram

import (
	"context"
	"strconv"

	"github.com/go-telegram/bot"

	"herald/platforms"
)

// topicLimit is the most characters of a topic's name: createForumTopic takes 1 to 128.
const topicLimit = 128

// openTopic makes a topic for a message that asks for a thread, in a supergroup that is a forum. Elsewhere, and where the
// bot may not make one, the message goes out flat. The error is one that the message itself would have now.
func (o *outbound) openTopic(ctx context.Context) error {
	name := cut(o.out.Thread, topicLimit)
	if name == "" || o.chat > 0 || o.out.Address.Thread != "" || o.out.Edit != "" || o.out.Private != "" {
		return nil
	}
	topic := 0
	err := o.do(ctx, false, func(ctx context.Context) error {
		t, err := o.a.api.CreateForumTopic(ctx, &bot.CreateForumTopicParams{ChatID: o.chat, Name: name})
		if err == nil {
			topic = t.MessageThreadID
		}
		return err
	})
	switch failed := platforms.AsSendError(err); {
	case err == nil && topic > generalTopic:
		o.thread = topic
		o.Receipt.Thread = platforms.ThreadID(strconv.Itoa(topic))
	case err == nil, says(err, "not a forum"):
	case failed.Kind == platforms.RateLimited, failed.Kind == platforms.AuthFailed, ctx.Err() != nil:
		failed.Certainty = platforms.NotSent // the message itself was not tried
		return failed
	default:
		o.a.s.Log.Warn().Str("chat", string(o.out.Address.Chat)).Str("cause", failed.Err.Error()).Msg("a topic could not be opened; the message goes out without one")
	}
	return nil
}
