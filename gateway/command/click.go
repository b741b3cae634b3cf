package command

import (
	"context"
	"errors"

	"herald/gateway/delivery"
	"herald/gateway/router"
	"herald/gateway/turn/ask"
	"herald/platforms"
	"herald/sessions"
)

// Click implements router.Commands: it finds what a button belongs to. A button that means nothing any
// more is answered so.
func (r *Registry) Click(ctx context.Context, item sessions.InboxItem, control *router.Control) {
	req := &Request{Services: r.s, Printer: r.s.Printer(item.Event.Address), Item: item, Control: control, reg: r}
	click := *item.Event.Click
	text := ""
	var err error
	if id, choice, ok := ask.ParseQuestion(click.Data); ok {
		err = r.s.AnswerAsk(ctx, item, id, choice, userOf(item))
		text = req.t("click.taken")
		if errors.Is(err, ask.ErrStale) {
			text, err = req.t("clarify.expired"), req.end(ctx, "a stale button")
		} else if errors.Is(err, ask.ErrNotAsked) {
			text, err = req.t("access.click_denied"), req.end(ctx, "a button of somebody else's")
		}
	} else if id, ok := delivery.ParseResend(click.Data); ok {
		text = req.t("click.taken")
		err = req.resend(ctx, id)
	} else if id, choice, ok := ask.ParseApproval(click.Data); ok {
		text, err = req.pressApproval(ctx, id, choice)
	} else if id, answer, ok := parseConfirm(click.Data); ok {
		text, err = req.pressConfirm(ctx, id, answer)
	} else if press, ok := parseRollback(click.Data); ok {
		text, err = req.pressRollback(ctx, press)
	} else {
		text, err = req.t("clarify.expired"), req.end(ctx, "an unknown button")
	}
	if err != nil && !errors.Is(err, errHandled) {
		r.s.Log.Error().Err(err).Msg("a button failed")
		text = req.t("error.generic")
		_ = req.end(ctx, "a failed button")
	}
	r.s.AnswerClick(item.Event.Address, click, text)
}

// end ends the row of a press that changes nothing.
func (q *Request) end(ctx context.Context, reason string) error {
	return q.Store.Update(ctx, sessions.EdgeCommand, func(tx sessions.Tx) error {
		return tx.SetInbox(sessions.InboxDone, 0, reason, q.Item.ID)
	})
}

// resend repeats a doubtful message once.
func (q *Request) resend(ctx context.Context, id sessions.OutboxID) error {
	var again *sessions.OutboxRow
	err := q.commit(ctx, func(tx sessions.Tx) (_ string, err error) {
		again, err = q.Resend(tx, id, q.Item.Event.Address, q.t("delivery.maybe_duplicate"))
		if errors.Is(err, delivery.ErrNotUnknown) {
			return q.t("command.resend.nothing"), nil
		}
		return "", err
	})
	if err == nil && again != nil {
		q.Take(again)
	}
	return err
}

// userOf is the id that a question's owner is compared with.
func userOf(item sessions.InboxItem) platforms.UserID {
	if item.Event.Sender.Alt != "" {
		return item.Event.Sender.Alt
	}
	return item.Event.Sender.ID
}
