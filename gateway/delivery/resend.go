package delivery

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
)

const resendPrefix = "resend:"

// ResendData is the button data that asks to show an unknown message again.
func ResendData(id sessions.OutboxID) string {
	return resendPrefix + strconv.FormatInt(int64(id), 10)
}

// ParseResend returns the row that button data asks for.
func ParseResend(data string) (sessions.OutboxID, bool) {
	rest, ok := strings.CutPrefix(data, resendPrefix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(rest, 10, 64)
	return sessions.OutboxID(id), err == nil && id > 0
}

// ErrNotUnknown says that a row is not one whose delivery is in doubt (any more).
var ErrNotUnknown = errors.New("the message is not in doubt")

// Resend sends a row again whose outcome is unknown, because a person asked for it. label is put before the
// text ("may be a duplicate"). It runs inside tx; queue the returned row with Take after the commit.
// ErrNotUnknown when the row is not in doubt or belongs to another address: a second press sends nothing.
func (w *Worker) Resend(tx sessions.Tx, id sessions.OutboxID, at platforms.Address, label string) (*sessions.OutboxRow, error) {
	row, err := tx.OutboxRow(id)
	if errors.Is(err, sessions.ErrNotFound) {
		return nil, ErrNotUnknown
	}
	if err != nil {
		return nil, err
	}
	if row.State != sessions.OutUnknown || row.Message.Address != at {
		return nil, ErrNotUnknown
	}
	again := &sessions.OutboxRow{Lane: row.Lane, Kind: row.Kind, Turn: row.Turn, Session: row.Session, Message: row.Message}
	again.Message.Nonce = "" // a new message on purpose
	again.Message.Edit = ""
	if headed := under(w.text(at, label), row.Message.Text); w.fits(at, headed) {
		again.Message.Text = headed // a part of a long message may be as long as the platform allows: it goes out as it is
	}
	row.State, row.Error = sessions.OutCancelled, "sent again on request"
	if err := tx.SetOutbox(row); err != nil {
		return nil, err
	}
	if err := tx.PutOutbox(again); err != nil {
		return nil, fmt.Errorf("queue the message again: %w", err)
	}
	return again, inherit(tx, row, again)
}

// inherit hands what is to follow from a brief to the row that stands for it now.
func inherit(tx sessions.Tx, from sessions.OutboxRow, to *sessions.OutboxRow) error {
	if from.Kind != sessions.OutBrief {
		return nil
	}
	v, err := tx.Value(sessions.SpaceBrief, BriefName(from.ID))
	if errors.Is(err, sessions.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = tx.SetValue(sessions.SpaceBrief, BriefName(to.ID), v.Data, v.At)
	}
	if err == nil {
		err = tx.SetValue(sessions.SpaceBrief, BriefName(from.ID), nil, v.At)
	}
	if err != nil {
		return fmt.Errorf("queue the message again: %w", err)
	}
	return nil
}

// under returns text with a line above it.
func under(head, text platforms.Text) platforms.Text {
	out := platforms.Text{Body: head.Body + "\n" + text.Body, Plain: head.Plain + "\n" + text.Plain, Markdown: head.Markdown + "\n\n" + text.Markdown}
	shift := len(utf16Of(head.Body + "\n"))
	for _, s := range text.Styles {
		s.Start += shift
		out.Styles = append(out.Styles, s)
	}
	return out
}

// fits reports whether a text can be one message at a place.
func (w *Worker) fits(at platforms.Address, text platforms.Text) bool {
	adapter, ok := w.opt.Adapters.Adapter(at.AccountOf())
	if !ok {
		return true
	}
	traits := adapter.Traits().Text
	counted := text.Plain
	if traits.CountMarkup || counted == "" {
		counted = text.Body
	}
	return traits.Limit <= 0 || format.Length(counted, traits.Unit) <= traits.Limit
}
