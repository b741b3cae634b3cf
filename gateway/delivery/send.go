package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"herald/platforms"
	"herald/sessions"
)

// sendWait is how long Send waits for the platform's answer.
const sendWait = 15 * time.Second

// Attach takes the files that a text names out of it. refused are those that may not be sent to the address, each with the
// reason.
type Attach func(ctx context.Context, text string, at platforms.Address) (rest string, files []platforms.Attachment, refused []string)

// SendArgs asks to send a message to a chat.
type SendArgs struct {
	// Target says where; see platforms.Target.
	Target string `json:"target"`
	Text   string `json:"text"`
	// Files are absolute paths, sent behind the text as a MEDIA tag in it would be.
	Files []string `json:"files,omitempty"`
}

// Sent says what became of a message that somebody asked to send.
type Sent struct {
	Rows []sessions.OutboxID `json:"rows"`
	// State is "sent", or the state of a row that is not sent after at most the wait of the verb. Error says why, or what
	// the platform did not take of a message that is sent.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	// Refused are the files that may not be sent, with the reason.
	Refused []string `json:"refused,omitempty"`
}

// Send sends a text with the files at these absolute paths and waits for the outcome, at most 15 s. What is sent is also
// kept in the chat's own conversation, so that an answer to it is understood. It returns an error when nothing was queued.
func (w *Worker) Send(ctx context.Context, at platforms.Address, text string, files []string, attach Attach) (Sent, error) {
	var reply Sent
	text, rows, refused := w.compose(ctx, at, text, files, attach)
	reply.Refused = refused
	if len(rows) == 0 {
		if len(refused) > 0 {
			return reply, fmt.Errorf("nothing was sent: %s", strings.Join(refused, "; "))
		}
		return reply, errors.New("the text is empty")
	}
	err := w.opt.Store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error {
		if err := tx.PutOutbox(rows...); err != nil {
			return err
		}
		return mirror(tx, at, text, w.opt.Now())
	})
	if err != nil {
		return reply, err
	}
	for _, row := range rows {
		reply.Rows = append(reply.Rows, row.ID)
	}
	w.Take(rows...)
	return reply, w.outcome(ctx, &reply)
}

// compose makes the rows of a message: its text in the platform's form, then the files that it names and that may go there.
// kept is what the conversation keeps.
func (w *Worker) compose(ctx context.Context, at platforms.Address, text string, paths []string, attach Attach) (kept string,
	rows []*sessions.OutboxRow, refused []string) {
	for _, path := range paths {
		text += "\nMEDIA:\"" + strings.ReplaceAll(path, "\"", "") + "\""
	}
	text, files, refused := attach(ctx, text, at)
	if text = strings.TrimSpace(text); text != "" {
		rows = w.Rows(sessions.OutSend, at, text)
	}
	for _, a := range files {
		rows = append(rows, &sessions.OutboxRow{Kind: sessions.OutSend, Message: platforms.Outgoing{Address: at,
			Attachments: []platforms.Attachment{a}}})
		text += "\n[sent the file " + a.Name + "]"
	}
	return strings.TrimSpace(text), rows, refused
}

// mirror keeps what was sent in the live conversations of the address.
func mirror(tx sessions.Tx, at platforms.Address, text string, now time.Time) error {
	list, err := tx.Sessions(sessions.SessionQuery{Platform: at.Platform, Account: at.Account, Chat: at.Chat, Live: true, Limit: 20})
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Origin.Address.Thread != at.Thread {
			continue
		}
		err := tx.Append(&sessions.Message{Session: s.ID, Role: sessions.Assistant, Kind: sessions.KindMirror, Content: text, At: now,
			Active: true})
		if err != nil {
			return err
		}
	}
	return nil
}

// outcome waits until the rows have an outcome or the wait is over, and reads it.
func (w *Worker) outcome(ctx context.Context, reply *Sent) error {
	wait, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	_ = w.Await(wait, reply.Rows...) // a row that still waits shows in its state
	reply.State = string(sessions.OutSent)
	return w.opt.Store.View(context.WithoutCancel(ctx), func(v sessions.View) error {
		for _, id := range reply.Rows {
			row, err := v.OutboxRow(id)
			if err != nil {
				return err
			}
			if row.State != sessions.OutSent {
				reply.State = string(row.State)
			}
			if row.Error != "" {
				reply.Error = strings.TrimPrefix(reply.Error+"; "+row.Error, "; ")
			}
		}
		return nil
	})
}
