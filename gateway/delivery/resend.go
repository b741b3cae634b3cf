package delivery

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"herald/platforms"
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
	head := w.text(at, label)
	again.Message.Text.Body = head.Body + "\n" + row.Message.Text.Body
	again.Message.Text.Plain = head.Plain + "\n" + row.Message.Text.Plain
	again.Message.Text.Markdown = head.Markdown + "\n\n" + row.Message.Text.Markdown
	shift := len(utf16Of(head.Body + "\n"))
	again.Message.Text.Styles = nil
	for _, s := range row.Message.Text.Styles {
		s.Start += shift
		again.Message.Text.Styles = append(again.Message.Text.Styles, s)
	}
	row.State, row.Error = sessions.OutCancelled, "sent again on request"
	if err := tx.SetOutbox(row); err != nil {
		return nil, err
	}
	if err := tx.PutOutbox(again); err != nil {
		return nil, fmt.Errorf("queue the message again: %w", err)
	}
	return again, nil
}
