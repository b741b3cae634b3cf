package command

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"herald/gateway/router"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
)

const confirmPrefix = "cf:"

// confirmFor is how long a question waits: a button that is pressed days later would surprise.
const confirmFor = time.Hour

// The answers of a confirmation.
const (
	confirmOnce   = "once"
	confirmAlways = "always"
	confirmCancel = "cancel"
	// confirmRefused is no answer: what was confirmed could not be done.
	confirmRefused = "refused"
)

// confirmation is a command that waits for its person.
type confirmation struct {
	Command string            `json:"command"`
	Args    string            `json:"args,omitempty"`
	Key     sessions.Key      `json:"key"`
	User    platforms.UserID  `json:"user"`
	Prompt  sessions.OutboxID `json:"prompt"`
	Text    string            `json:"text"`
	At      time.Time         `json:"at"`
}

// sure takes now, --yes or -y from the end of the arguments; they say that the command is meant.
func (q *Request) sure() (words []string, sure bool) {
	words = strings.Fields(q.Args)
	if n := len(words); n > 0 && slices.Contains([]string{"now", "--yes", "-y"}, strings.ToLower(words[n-1])) {
		return words[:n-1], true
	}
	return words, q.confirmed
}

// asksFirst reports whether the person confirms the command before it does its work: the setting is on, and they have not
// said that they want no such question. When that can't be read, they are asked.
func (q *Request) asksFirst(ctx context.Context) bool {
	if q.Services.Confirm == nil || !q.Services.Confirm() {
		return false
	}
	err := q.Store.View(ctx, func(v sessions.View) error {
		_, err := v.Value(sessions.SpaceConfirmed, q.sureName(q.spec.Name))
		return err
	})
	return err != nil
}

// mustConfirm is asksFirst for a command that empties the conversation: where there is nothing to lose, nobody is asked.
func (q *Request) mustConfirm(ctx context.Context) bool {
	if !q.asksFirst(ctx) {
		return false
	}
	ask := true
	err := q.Store.View(ctx, func(v sessions.View) error {
		s, _, err := q.session(v)
		if errors.Is(err, sessions.ErrNotFound) || err == nil && s.Messages == 0 {
			ask = false
			return nil
		}
		return err
	})
	return err != nil || ask
}

// sureName is the name under which it is kept that a person wants no question about a command.
func (q *Request) sureName(command string) string {
	return string(q.Item.Event.Address.Platform) + "/" + string(userOf(q.Item)) + "/" + command
}

// question is what a person is asked before a command does its work.
type question struct {
	text string
	yes  string // what says at the command's end that it is meant
	// args are what the command is run with once it is confirmed.
	args string
	// harmless: nothing is lost by a yes.
	harmless bool
}

// askConfirm asks whether a command that loses something is meant.
func (q *Request) askConfirm(ctx context.Context, text string) error {
	return q.askFirst(ctx, question{text: text, yes: "now", args: q.Args})
}

// askFirst asks, and keeps what was asked about. Where there are no buttons the command is typed again.
func (q *Request) askFirst(ctx context.Context, ask question) error {
	var id [8]byte
	_, _ = rand.Read(id[:])
	name := hex.EncodeToString(id[:])
	button := func(answer, style string) platforms.Button {
		return platforms.Button{Label: q.t("confirm.button." + answer), Data: confirmPrefix + name + ":" + answer, Style: style}
	}
	yes, no := "danger", "primary"
	if ask.harmless {
		yes, no = "primary", ""
	}
	q.buttons = [][]platforms.Button{{button(confirmOnce, yes), button(confirmAlways, ""), button(confirmCancel, no)}}
	again := q.Printer.Command(q.spec.Name)
	if args := strings.TrimSpace(q.Args); args != "" {
		again += " " + args
	}
	shown := "❓ " + ask.text + "\n" + q.t("confirm.how", locales.Str("command", format.Code(again+" "+ask.yes)))
	q.kept = func(tx sessions.Tx, prompt sessions.OutboxID) error {
		data, err := json.Marshal(confirmation{Command: q.spec.Name, Args: ask.args, Key: q.Control.Key(), User: userOf(q.Item), Prompt: prompt,
			Text: ask.text, At: q.Now()})
		if err != nil {
			return err
		}
		return tx.SetValue(sessions.SpaceConfirm, name, data, q.Now())
	}
	return q.reply(ctx, shown)
}

// parseConfirm returns the confirmation and the answer that button data names.
func parseConfirm(data string) (id, answer string, ok bool) {
	rest, found := strings.CutPrefix(data, confirmPrefix)
	id, answer, cut := strings.Cut(rest, ":")
	return id, answer, found && cut
}

// pressConfirm does what was asked about, once, for the person who was asked and who still may.
func (q *Request) pressConfirm(ctx context.Context, id, answer string) (string, error) {
	c, err := q.confirmation(ctx, id)
	switch {
	case errors.Is(err, sessions.ErrNotFound), err == nil && q.Now().Sub(c.At) > confirmFor:
		return q.t("clarify.expired"), q.end(ctx, "a stale confirmation")
	case err != nil:
		return "", err
	case c.User != userOf(q.Item) || c.Key != q.Control.Key() || !q.May(q.Item.Event, c.Command):
		return q.t("access.click_denied"), q.end(ctx, "a confirmation of somebody else's")
	}
	q.spec = q.reg.byName[c.Command]
	if q.spec == nil || !slices.Contains([]string{confirmOnce, confirmAlways, confirmCancel}, answer) {
		return q.t("clarify.expired"), q.end(ctx, "an unknown button")
	}
	if answer != confirmCancel && q.spec.Busy == router.Reject && q.Control.Busy() {
		return q.t("click.taken"), q.reply(ctx, q.t("command.refused_busy", locales.Str("name", q.spec.Name)))
	}
	q.Args, q.confirmed, q.ended = c.Args, true, answer
	q.also = func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
		if err := tx.SetValue(sessions.SpaceConfirm, id, nil, q.Now()); err != nil {
			return nil, err
		}
		if answer == confirmAlways {
			if err := tx.SetValue(sessions.SpaceConfirmed, q.sureName(c.Command), json.RawMessage("true"), q.Now()); err != nil {
				return nil, err
			}
		}
		return q.confirmEnded(tx, c, q.ended)
	}
	if answer == confirmCancel {
		return q.t("click.taken"), q.reply(ctx, "")
	}
	return q.t("click.taken"), q.spec.run(ctx, q)
}

func (q *Request) confirmation(ctx context.Context, id string) (c confirmation, err error) {
	err = q.Store.View(ctx, func(v sessions.View) error {
		value, err := v.Value(sessions.SpaceConfirm, id)
		if err != nil {
			return err
		}
		return json.Unmarshal(value.Data, &c)
	})
	return c, err
}

// confirmEnded takes the buttons away and says what was chosen.
func (q *Request) confirmEnded(tx sessions.Tx, c confirmation, answer string) ([]*sessions.OutboxRow, error) {
	prompt, err := tx.OutboxRow(c.Prompt)
	if err != nil || prompt.Sent == "" || prompt.Message.Private != "" {
		return nil, nil
	}
	rows := q.Render(prompt.Message.Address, c.Text+"\n"+q.t("confirm.ended."+answer))
	row := rows[len(rows)-1]
	row.Message.Edit = prompt.Sent
	return []*sessions.OutboxRow{row}, tx.PutOutbox(row)
}
