package turn

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

	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools"
)

// spacePrompt holds the questions that wait for a person, by a short random id.
const spacePrompt = "prompt"

const askPrefix = "ask:"

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
func (rs *Runs) Ask(ctx context.Context, call tools.Call, text string, choices []string) (string, error) {
	run, ok := rs.Get(sessions.TurnID(call.Caller.Turn))
	if !ok {
		return "", errors.New("nobody can be asked outside a chat")
	}
	q, err := run.openQuestion(ctx, call, text, choices)
	if err != nil {
		return "", err
	}
	if q.Answered {
		return q.Answer, nil
	}
	run.mu.Lock()
	run.ask, run.asked = q, true
	run.opened[q.ID] = true
	text, answered := run.answers[q.ID]
	var early note
	found := false
	if !answered {
		early, found = run.earlyAnswerLocked(q)
	}
	run.mu.Unlock()
	defer run.waitForPerson(ctx, "clarify")()
	defer func() {
		run.mu.Lock()
		run.ask = nil
		run.mu.Unlock()
	}()
	if answered {
		return text, nil
	}
	if found && run.answerByText(q, early.item) == NotTaken {
		run.mu.Lock()
		run.notes = append([]note{early}, run.notes...)
		run.mu.Unlock()
	}
	select {
	case <-q.ready:
		return q.Answer, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// waitForPerson shows that it is the person's turn, until the returned function is called.
func (run *Run) waitForPerson(ctx context.Context, doing string) (end func()) {
	run.mu.Lock()
	run.persons++
	run.phase, run.doing = PhaseAsking, doing
	run.mu.Unlock()
	run.stopTyping()
	return func() {
		run.mu.Lock()
		run.persons--
		last := run.persons == 0
		if last {
			run.phase = PhaseTool
		}
		run.alive = run.r.s.Now()
		run.mu.Unlock()
		if last && ctx.Err() == nil {
			run.startTyping()
		}
	}
}

// earlyAnswerLocked takes the message out of the notes that was written as the answer to a question which an
// earlier process has put, and that came in again before this process had opened it. run.mu is held.
func (run *Run) earlyAnswerLocked(q *question) (note, bool) {
	if q.put.IsZero() {
		return note{}, false
	}
	for i, n := range run.notes {
		if n.item.Event.Message.Text != "" && n.item.At.After(q.put) {
			run.notes = append(run.notes[:i:i], run.notes[i+1:]...)
			return n, true
		}
	}
	return note{}, false
}

// openQuestion finds the call's question or puts it, in one transaction.
func (run *Run) openQuestion(ctx context.Context, call tools.Call, text string, choices []string) (*question, error) {
	q := &question{Turn: run.turn.ID, Call: string(call.ID), Question: text, Choices: choices, ready: make(chan struct{})}
	if !run.origin.Shared {
		q.User = platforms.UserID(call.Caller.User)
	}
	var id [4]byte
	_, _ = rand.Read(id[:])
	q.ID = hex.EncodeToString(id[:])
	var put []*sessions.OutboxRow
	err := run.update(sessions.EdgeQueue, func(tx sessions.Tx) error {
		values, err := tx.Values(spacePrompt)
		if err != nil {
			return err
		}
		for _, v := range values {
			var old question
			if json.Unmarshal(v.Data, &old) == nil && old.Turn == run.turn.ID && old.Call == q.Call {
				old.ID, old.ready, old.put = v.Name, q.ready, v.At
				q = &old
				return nil
			}
		}
		data, err := json.Marshal(q)
		if err != nil {
			return err
		}
		if err := tx.SetValue(spacePrompt, q.ID, data, run.r.s.Now()); err != nil {
			return err
		}
		put = run.questionRows(q)
		return tx.PutOutbox(put...)
	})
	if err != nil {
		return nil, fmt.Errorf("put the question: %w", err)
	}
	if len(put) > 0 {
		run.r.s.Outbox.Take(put...)
	}
	return q, nil
}

// questionRows renders a question, in as many messages as it needs; the last one has the buttons.
func (run *Run) questionRows(q *question) []*sessions.OutboxRow {
	at := run.address()
	adapter, ok := run.r.s.Adapters.Adapter(at.AccountOf())
	md := q.Question
	var buttons [][]platforms.Button
	if ok && adapter.Traits().Buttons {
		for i, c := range q.Choices {
			buttons = append(buttons, []platforms.Button{{Label: shorten(c, 60), Data: askPrefix + q.ID + ":" + strconv.Itoa(i)}})
		}
	} else {
		for i, c := range q.Choices {
			md += fmt.Sprintf("\n%d. %s", i+1, c)
		}
	}
	if len(q.Choices) > 0 {
		md += "\n\n" + run.r.s.Texts.AskOther(at)
	}
	traits := platforms.TextTraits{Dialect: platforms.Plain}
	if ok {
		traits = adapter.Traits().Text
	}
	var out []*sessions.OutboxRow
	for _, chunk := range format.Render(run.r.s.Redact(md), traits) {
		out = append(out, &sessions.OutboxRow{Kind: sessions.OutPrompt, Turn: run.turn.ID, Session: run.session.ID,
			Message: platforms.Outgoing{Address: at, Text: chunk}})
	}
	if len(out) == 0 {
		out = []*sessions.OutboxRow{{Kind: sessions.OutPrompt, Turn: run.turn.ID, Session: run.session.ID, Message: platforms.Outgoing{Address: at}}}
	}
	out[len(out)-1].Message.Buttons = buttons
	return out
}

// ParseAsk returns the question and choice that button data names.
func ParseAsk(data string) (id string, choice int, ok bool) {
	rest, found := strings.CutPrefix(data, askPrefix)
	id, number, cut := strings.Cut(rest, ":")
	choice, err := strconv.Atoi(number)
	return id, choice, found && cut && err == nil && choice >= 0
}

// ErrStale says that a question has been answered already or its turn is over.
var ErrStale = errors.New("this question is not open any more")

// ErrNotAsked says that somebody else was asked.
var ErrNotAsked = errors.New("only the person who was asked may answer")

// AnswerClick answers a question by its button. user is who pressed; only the person who was asked may.
func (r *Runner) AnswerClick(ctx context.Context, item sessions.InboxItem, id string, choice int, user platforms.UserID) error {
	var q question
	err := r.s.Store.View(ctx, func(v sessions.View) error {
		value, err := v.Value(spacePrompt, id)
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
	run, ok := r.Running(q.Turn)
	if !ok || q.Answered || choice >= len(q.Choices) {
		return ErrStale
	}
	if q.User != "" && user != q.User {
		return ErrNotAsked
	}
	run.mu.Lock()
	live := run.ask
	// After a crash the press may come before the resumed turn has opened the question again.
	early := live == nil && run.resumed && !run.opened[id]
	run.mu.Unlock()
	switch {
	case early:
		q.ID = id
		live = &q
	case live == nil || live.ID != id:
		return ErrStale
	}
	return run.answer(live, item, q.Choices[choice])
}

// answerByText takes a message as the answer to the open question.
func (run *Run) answerByText(q *question, item sessions.InboxItem) Taken {
	text := strings.TrimSpace(item.Event.Message.Text)
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Choices) {
		text = q.Choices[n-1]
	}
	if err := run.answer(q, item, text); err != nil {
		return NotTaken
	}
	return TakenAnswer
}

// answer commits the answer with its inbox row and lets the waiting call go on.
func (run *Run) answer(q *question, item sessions.InboxItem, text string) error {
	stored := *q
	stored.Answer, stored.Answered = text, true
	data, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	var edit *sessions.OutboxRow
	err = run.update(sessions.EdgeCommand, func(tx sessions.Tx) error {
		value, err := tx.Value(spacePrompt, q.ID)
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
		if err := tx.SetValue(spacePrompt, q.ID, data, run.r.s.Now()); err != nil {
			return err
		}
		if err := tx.SetInbox(sessions.InboxDone, run.turn.ID, "answered a question", item.ID); err != nil {
			return err
		}
		edit, err = run.answeredRow(tx, q, text)
		if err != nil || edit == nil {
			return err
		}
		return tx.PutOutbox(edit)
	})
	if err != nil {
		return err
	}
	if edit != nil {
		run.r.s.Outbox.Take(edit)
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	run.answers[q.ID] = text
	if live := run.ask; live != nil && live.ID == q.ID {
		run.ask = nil
		live.Answer, live.Answered = text, true
		close(live.ready)
	}
	return nil
}

// answeredRow edits the question's message to what was chosen, taking its buttons away.
func (run *Run) answeredRow(tx sessions.Tx, q *question, text string) (*sessions.OutboxRow, error) {
	if len(q.Choices) == 0 {
		return nil, nil
	}
	rows, err := tx.OutboxOf(run.turn.ID)
	if err != nil {
		return nil, err
	}
	for i := len(rows) - 1; i >= 0; i-- {
		row := rows[i]
		if row.Kind != sessions.OutPrompt || row.Sent == "" || len(row.Message.Buttons) == 0 ||
			!strings.HasPrefix(row.Message.Buttons[0][0].Data, askPrefix+q.ID+":") {
			continue
		}
		text := run.r.s.Redact(run.r.s.Texts.AskAnswered(row.Message.Address, q.Question, text))
		edit := run.row(sessions.OutNotice, text)
		if adapter, ok := run.r.s.Adapters.Adapter(row.Message.Address.AccountOf()); ok {
			if chunks := format.Render(text, adapter.Traits().Text); len(chunks) > 1 {
				edit.Message.Text = chunks[len(chunks)-1] // the message with the buttons is the last part
			}
		}
		edit.Message.Address, edit.Message.Edit = row.Message.Address, row.Sent
		return edit, nil
	}
	return nil, nil
}

// dropQuestions forgets the turn's questions when it ends.
func (run *Run) dropQuestions(tx sessions.Tx) error {
	run.mu.Lock()
	asked := run.asked || run.resumed
	run.mu.Unlock()
	if !asked {
		return nil
	}
	values, err := tx.Values(spacePrompt)
	if err != nil {
		return err
	}
	for _, v := range values {
		var q question
		if json.Unmarshal(v.Data, &q) == nil && q.Turn != run.turn.ID {
			continue
		}
		if err := tx.SetValue(spacePrompt, v.Name, nil, run.r.s.Now()); err != nil {
			return err
		}
	}
	return nil
}
