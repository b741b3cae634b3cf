package ask

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools"
)

const questionPrefix = "ask:"

// labelLength bounds the label of a button, in bytes.
const labelLength = 60

// question is a clarify call that waits. The stored form is the same, so that a resumed turn finds it.
type question struct {
	ID       string          `json:"-"`
	Turn     sessions.TurnID `json:"turn"`
	Call     string          `json:"call"`
	Question string          `json:"question"`
	Choices  []string        `json:"choices,omitempty"`
	Answer   string          `json:"answer,omitempty"`
	Answered bool            `json:"answered,omitempty"`
	// User is who may answer by a button: the person who is being talked to.
	User platforms.UserID `json:"user,omitempty"`

	ready chan struct{}
	// put is when it was put; set only for one that an earlier process has put.
	put time.Time
}

// Ask puts a question to the person of a turn and waits for the answer: a button or the next message. The
// question survives a restart and is put once. It implements the clarify tool's Asker.
func (a *Asker) Ask(ctx context.Context, call tools.Call, text string, choices []string) (string, error) {
	p, ok := a.o.Turns.Asking(sessions.TurnID(call.Caller.Turn))
	if !ok {
		return "", ErrNobody
	}
	q, err := p.openQuestion(call, text, choices)
	if err != nil {
		return "", err
	}
	if q.Answered {
		return q.Answer, nil
	}
	p.mu.Lock()
	p.question, p.asked = q, true
	p.opened[q.ID] = true
	text, answered := p.answers[q.ID]
	p.mu.Unlock()
	defer p.turn.WaitForPerson(ctx, "clarify")()
	defer func() {
		p.mu.Lock()
		p.question = nil
		p.mu.Unlock()
	}()
	if answered {
		return text, nil
	}
	if !q.put.IsZero() {
		// A message that was written as the answer may have come in before this process had opened the question.
		p.turn.Early(q.put, func(item sessions.InboxItem) bool { return p.answerByText(q, item) })
	}
	select {
	case <-q.ready:
		return q.Answer, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// openQuestion finds the call's question or puts it, in one transaction.
func (p *Pending) openQuestion(call tools.Call, text string, choices []string) (*question, error) {
	row := p.turn.Row()
	q := &question{Turn: row.ID, Call: string(call.ID), Question: text, Choices: choices, ready: make(chan struct{})}
	if !p.turn.Origin().Shared {
		q.User = platforms.UserID(call.Caller.User)
	}
	var id [4]byte
	_, _ = rand.Read(id[:])
	q.ID = hex.EncodeToString(id[:])
	var put []*sessions.OutboxRow
	err := p.turn.Update(sessions.EdgeQueue, func(tx sessions.Tx) error {
		values, err := tx.Values(sessions.SpaceQuestion)
		if err != nil {
			return err
		}
		for _, v := range values {
			var old question
			if json.Unmarshal(v.Data, &old) == nil && old.Turn == row.ID && old.Call == q.Call {
				old.ID, old.ready, old.put = v.Name, q.ready, v.At
				q = &old
				return nil
			}
		}
		data, err := json.Marshal(q)
		if err != nil {
			return err
		}
		if err := tx.SetValue(sessions.SpaceQuestion, q.ID, data, p.a.o.Now()); err != nil {
			return err
		}
		put = p.questionRows(row, q)
		return tx.PutOutbox(put...)
	})
	if err != nil {
		return nil, fmt.Errorf("put the question: %w", err)
	}
	p.a.o.Outbox.Take(put...)
	return q, nil
}

// questionRows renders a question: with buttons where the platform has them, else with numbers.
func (p *Pending) questionRows(row sessions.Turn, q *question) []*sessions.OutboxRow {
	md := q.Question
	var buttons [][]platforms.Button
	for i, c := range q.Choices {
		if p.a.traits(row.Address).Buttons {
			buttons = append(buttons, []platforms.Button{{Label: cut(c, labelLength), Data: questionPrefix + q.ID + ":" + strconv.Itoa(i)}})
			continue
		}
		md += fmt.Sprintf("\n%d. %s", i+1, c)
	}
	if len(q.Choices) > 0 {
		md += "\n\n" + p.a.o.Printer(row.Address).T("clarify.choose")
	}
	return p.a.prompt(row, p.turn.Session(), md, buttons)
}

// cut cuts s to about n bytes at a rune border.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// ParseQuestion returns the question and choice that button data names.
func ParseQuestion(data string) (id string, choice int, ok bool) {
	rest, found := strings.CutPrefix(data, questionPrefix)
	id, number, cut := strings.Cut(rest, ":")
	choice, err := strconv.Atoi(number)
	return id, choice, found && cut && err == nil && choice >= 0
}

// AnswerClick answers a question by its button. user is who pressed; only the person who was asked may. The error is
// ErrStale, ErrNotAsked or the store's.
func (a *Asker) AnswerClick(ctx context.Context, item sessions.InboxItem, id string, choice int, user platforms.UserID) error {
	var q question
	err := a.o.Store.View(ctx, func(v sessions.View) error {
		value, err := v.Value(sessions.SpaceQuestion, id)
		if err != nil {
			return err
		}
		return json.Unmarshal(value.Data, &q)
	})
	if errors.Is(err, sessions.ErrNotFound) {
		return ErrStale
	}
	if err != nil {
		return err
	}
	p, ok := a.o.Turns.Asking(q.Turn)
	if !ok || q.Answered || choice >= len(q.Choices) {
		return ErrStale
	}
	if q.User != "" && user != q.User {
		return ErrNotAsked
	}
	p.mu.Lock()
	live := p.question
	// After a crash the press may come before the resumed turn has opened the question again.
	early := live == nil && !p.opened[id]
	p.mu.Unlock()
	switch {
	case early && p.turn.Resumed():
		q.ID = id
		live = &q
	case live == nil || live.ID != id:
		return ErrStale
	}
	return p.answer(live, item, q.Choices[choice])
}

// Listens returns, while a question is open, the function that takes a message as its answer; that returns false for
// a message that is none, because the question was answered meanwhile.
func (p *Pending) Listens() (take func(sessions.InboxItem) bool, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.question
	return func(item sessions.InboxItem) bool { return p.answerByText(q, item) }, q != nil
}

// answerByText takes a message as the answer to the open question: a choice's number, or any text.
func (p *Pending) answerByText(q *question, item sessions.InboxItem) bool {
	text := strings.TrimSpace(item.Event.Message.Text)
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Choices) {
		text = q.Choices[n-1]
	}
	return p.answer(q, item, text) == nil
}

// answer commits the answer with its inbox row and lets the waiting call go on.
func (p *Pending) answer(q *question, item sessions.InboxItem, text string) error {
	stored := *q
	stored.Answer, stored.Answered = text, true
	data, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	var edit *sessions.OutboxRow
	err = p.turn.Update(sessions.EdgeCommand, func(tx sessions.Tx) error {
		value, err := tx.Value(sessions.SpaceQuestion, q.ID)
		if err != nil {
			return err
		}
		var now question
		if err := json.Unmarshal(value.Data, &now); err != nil {
			return err
		}
		if now.Answered {
			return ErrStale
		}
		if err := tx.SetValue(sessions.SpaceQuestion, q.ID, data, p.a.o.Now()); err != nil {
			return err
		}
		if err := tx.SetInbox(sessions.InboxDone, q.Turn, "answered a question", item.ID); err != nil {
			return err
		}
		edit, err = p.answeredRow(tx, q, text)
		if err != nil || edit == nil {
			return err
		}
		return tx.PutOutbox(edit)
	})
	if err != nil {
		return err
	}
	if edit != nil {
		p.a.o.Outbox.Take(edit)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[q.ID] = text
	if live := p.question; live != nil && live.ID == q.ID {
		p.question = nil
		live.Answer, live.Answered = text, true
		close(live.ready)
	}
	return nil
}

// answeredRow edits the question's message to what was chosen, taking its buttons away.
func (p *Pending) answeredRow(tx sessions.Tx, q *question, answer string) (*sessions.OutboxRow, error) {
	if len(q.Choices) == 0 {
		return nil, nil
	}
	rows, err := tx.OutboxOf(q.Turn)
	if err != nil {
		return nil, err
	}
	for i := len(rows) - 1; i >= 0; i-- {
		row := rows[i]
		if row.Kind != sessions.OutPrompt || row.Sent == "" || len(row.Message.Buttons) == 0 ||
			!strings.HasPrefix(row.Message.Buttons[0][0].Data, questionPrefix+q.ID+":") {
			continue
		}
		at := row.Message.Address
		said := p.a.o.Printer(at).T("clarify.answered", locales.Str("text", "**"+format.EscapeMarkdown(answer)+"**"))
		edit := &sessions.OutboxRow{Kind: sessions.OutNotice, Turn: q.Turn, Session: p.turn.Session(),
			Message: platforms.Outgoing{Address: at, Edit: row.Sent}}
		if chunks := format.Render(p.a.o.Redact(q.Question+"\n\n"+said), p.a.traits(at).Text); len(chunks) > 0 {
			edit.Message.Text = chunks[len(chunks)-1] // the message with the buttons is the last part
		}
		return edit, nil
	}
	return nil, nil
}

// DropQuestions forgets the turn's questions, in the transaction of its end.
func (p *Pending) DropQuestions(tx sessions.Tx) error {
	p.mu.Lock()
	asked := p.asked
	p.mu.Unlock()
	if !asked && !p.turn.Resumed() {
		return nil
	}
	values, err := tx.Values(sessions.SpaceQuestion)
	if err != nil {
		return err
	}
	turn := p.turn.Row().ID
	for _, v := range values {
		var q question
		if json.Unmarshal(v.Data, &q) == nil && q.Turn != turn {
			continue
		}
		if err := tx.SetValue(sessions.SpaceQuestion, v.Name, nil, p.a.o.Now()); err != nil {
			return err
		}
	}
	return nil
}
