package teams

import (
	"context"
	"net/http"
	"time"

	"herald/platforms"
)

// Delete removes a message of ours. One that is gone already is success. A stream that has not become a message yet ends by
// itself.
func (a *Adapter) Delete(ctx context.Context, at platforms.Address, id platforms.MessageID) error {
	t, err := a.target(ctx, at)
	if err != nil {
		return err
	}
	if !messagePattern.MatchString(string(id)) {
		return platforms.Failure(platforms.BadRequest, "message %q is no Teams message id", id)
	}
	if one := a.streams.find(t.chat, string(id)); one != nil {
		one.turn.Lock()
		a.streams.end(one)
		one.turn.Unlock()
	}
	o := outbound{a: a, target: t}
	c, err := o.act(ctx, request{method: http.MethodDelete, url: t.activities(string(id))})
	if err = o.gone(c, err); err != nil && platforms.AsSendError(err).Kind == platforms.MessageGone {
		return nil
	}
	return err
}

// Typing shows that an answer is being made. While a stream goes on it shows that itself.
func (a *Adapter) Typing(ctx context.Context, at platforms.Address) error {
	t, err := a.target(ctx, at)
	if err != nil {
		return err
	}
	o := outbound{a: a, target: t}
	if err := a.gate.Check(t.chat); err != nil {
		return err
	}
	if a.streams.running(t.chat, a.s.Clock.Now()) {
		return nil
	}
	_, err = o.act(ctx, request{method: http.MethodPost, url: t.activities(""), body: outActivity{Type: "typing"}})
	return err
}

// TypingEvery returns 3 s, about what Teams shows it for.
func (a *Adapter) TypingEvery() time.Duration { return 3 * time.Second }

// act makes one request beside the messages. It takes no turn in the rate gate, but is not made inside a window that Teams
// has closed.
func (o *outbound) act(ctx context.Context, r request) (*call, error) {
	if err := o.a.gate.Check(o.chat); err != nil {
		return nil, err
	}
	c, err := o.a.ask(ctx, r, nil)
	if c != nil && c.taken {
		return c, nil
	}
	if e := platforms.AsSendError(err); e != nil && e.Kind == platforms.RateLimited {
		o.a.gate.Close(e.RetryAfter, o.chat)
	}
	return c, err
}
