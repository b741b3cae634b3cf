package ask

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools"
)

const approvalPrefix = "ap:"

// Choice is what became of an approval.
type Choice string

// The choices of people, and what happens without them.
const (
	ChoiceOnce    Choice = "once"    // this command, now
	ChoiceSession Choice = "session" // and all of its kinds in this session
	ChoiceAlways  Choice = "always"  // and all of its kinds from now on
	ChoiceDeny    Choice = "deny"
	ChoiceTimeout Choice = "timeout" // nobody answered in time: denied
	ChoiceVoid    Choice = "void"    // the turn has ended before
)

// Allows reports whether the command may run.
func (c Choice) Allows() bool {
	return c == ChoiceOnce || c == ChoiceSession || c == ChoiceAlways
}

// Request asks a person whether a call may run.
type Request struct {
	// Command is the whole text that would run. It is kept as a hash alone.
	Command string
	// Preview is what people are shown of it, without secrets; Kinds are the dangers that a lasting answer covers.
	Preview string
	Kinds   []string
	// Choices are what is offered, in order. Judged says that the helper model advises against it.
	Choices []Choice
	Judged  bool
	// Timeout is how long to wait; then the call is denied.
	Timeout time.Duration
}

// Approval is an approval that was asked for, as it is stored.
type Approval struct {
	ID        string            `json:"-"`
	Turn      sessions.TurnID   `json:"turn"`
	Session   sessions.ID       `json:"session"`
	Key       sessions.Key      `json:"key"`
	Address   platforms.Address `json:"address"`
	Requester platforms.UserID  `json:"requester,omitempty"`
	Tool      string            `json:"tool"`
	Preview   string            `json:"preview"`
	Kinds     []string          `json:"kinds,omitempty"`
	Choices   []Choice          `json:"choices"`
	Judged    bool              `json:"judged,omitempty"`
	Asked     time.Time         `json:"asked"`
	Until     time.Time         `json:"until"`
	Prompt    sessions.OutboxID `json:"prompt"` // the message with the buttons
	Choice    Choice            `json:"choice,omitempty"`
	Reason    string            `json:"reason,omitempty"` // of a denial, in the person's words
	By        string            `json:"by,omitempty"`     // who decided, by name
}

// approvalID names the approval of one call of one text. It is the same after a restart.
func approvalID(call tools.Call, command string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", call.Caller.Turn, call.ID, command))
	return hex.EncodeToString(sum[:8])
}

// FindApproval returns what was asked for a call and its text before, by this process or an earlier one.
func (a *Asker) FindApproval(ctx context.Context, call tools.Call, command string) (found Approval, ok bool, err error) {
	err = a.o.Store.View(ctx, func(v sessions.View) error {
		found, err = readApproval(v, approvalID(call, command))
		return err
	})
	if errors.Is(err, sessions.ErrNotFound) {
		return Approval{}, false, nil
	}
	return found, err == nil, err
}

func readApproval(v sessions.View, id string) (Approval, error) {
	value, err := v.Value(sessions.SpaceApproval, id)
	if err != nil {
		return Approval{}, err
	}
	var a Approval
	err = json.Unmarshal(value.Data, &a)
	a.ID = id
	return a, err
}

func writeApproval(tx sessions.Tx, a Approval, now time.Time) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return tx.SetValue(sessions.SpaceApproval, a.ID, data, now)
}

// Approve asks the people of a turn whether a call may run and waits for the decision, which Choice holds then. The
// prompt is shown once: a turn that goes on after a restart takes up what was asked, and what was decided. An error is
// ErrNobody, ctx's cause, or the store's; then nothing was decided.
func (a *Asker) Approve(ctx context.Context, call tools.Call, req Request) (Approval, error) {
	p, ok := a.o.Turns.Asking(sessions.TurnID(call.Caller.Turn))
	if !ok || call.Caller.Turn == 0 {
		return Approval{}, ErrNobody
	}
	id := approvalID(call, req.Command)
	woken := p.expect(id)
	defer p.forget(id)
	got, err := p.openApproval(id, call, req)
	if err != nil || got.Choice != "" {
		return got, err
	}
	defer p.turn.WaitForPerson(ctx, "approval")()
	timer := time.NewTimer(max(0, got.Until.Sub(a.o.Now())))
	defer timer.Stop()
	for {
		select {
		case <-woken:
		case <-timer.C:
			if err := p.expire(id, ChoiceTimeout); err != nil {
				return got, err
			}
		case <-ctx.Done():
			if !p.turn.Closing() { // the call alone has ended, and a press must not promise that it runs
				if err := p.expire(id, ChoiceVoid); err != nil && !errors.Is(err, ErrEnded) {
					a.o.Log.Warn().Err(err).Msg("an approval that nobody waits for any more can't be closed")
				}
			}
			return got, context.Cause(ctx)
		}
		if got, ok, err = a.FindApproval(ctx, call, req.Command); err != nil {
			return got, err
		}
		if !ok {
			return got, sessions.ErrNotFound
		}
		if got.Choice != "" {
			return got, nil
		}
	}
}

// expect makes the channel that wakes a call when its approval is decided.
func (p *Pending) expect(id string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	woken := make(chan struct{}, 1)
	p.calls[id] = woken
	p.approved = true
	return woken
}

func (p *Pending) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
}

// openApproval finds what was asked for the call, or asks, in one transaction.
func (p *Pending) openApproval(id string, call tools.Call, req Request) (Approval, error) {
	now, row := p.a.o.Now(), p.turn.Row()
	a := Approval{ID: id, Turn: row.ID, Session: p.turn.Session(), Key: row.Key, Address: row.Address,
		Requester: platforms.UserID(call.Caller.User),
		Tool:      call.Name, Preview: req.Preview, Kinds: req.Kinds, Choices: req.Choices, Judged: req.Judged, Asked: now, Until: now.Add(req.Timeout)}
	var put []*sessions.OutboxRow
	err := p.turn.Update(sessions.EdgeQueue, func(tx sessions.Tx) error {
		old, err := readApproval(tx, id)
		if err == nil {
			a = old
			return nil
		}
		if !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		waiting, err := PendingApprovals(tx)
		if err != nil {
			return err
		}
		waiting = slices.DeleteFunc(waiting, func(o Approval) bool { return o.Key != a.Key })
		put = p.approvalRows(row, a, len(waiting)+1)
		if err := tx.PutOutbox(put...); err != nil {
			return err
		}
		a.Prompt = put[len(put)-1].ID
		return writeApproval(tx, a, now)
	})
	if err != nil {
		return a, fmt.Errorf("ask for an approval: %w", err)
	}
	p.a.o.Outbox.Take(put...)
	return a, nil
}

// approvalRows renders the prompt of an approval; waiting is how many of the conversation wait with it. Where the
// platform has no buttons, the prompt says what to type.
func (p *Pending) approvalRows(row sessions.Turn, a Approval, waiting int) []*sessions.OutboxRow {
	say := p.a.o.Printer(a.Address)
	lines := []string{"⚠️ **" + say.T("approval.title") + "**", format.Fence("", a.Preview)}
	for _, kind := range a.Kinds {
		lines = append(lines, "• "+say.T(WhyKey(kind)))
	}
	if a.Judged {
		lines = append(lines, say.T("approval.judged"))
	}
	lines = append(lines, say.T("approval.timeout", locales.Dur("time", a.Until.Sub(a.Asked))))
	if waiting > 1 {
		lines = append(lines, say.N("approval.waiting", waiting))
	}
	var commands []string
	var buttons []platforms.Button
	for _, c := range a.Choices {
		b := platforms.Button{Label: say.T("approval.choice." + string(c)), Data: approvalPrefix + a.ID + ":" + string(c)}
		word := say.Command("approve")
		switch c {
		case ChoiceOnce:
			b.Style = "primary"
		case ChoiceDeny:
			b.Style, word = "danger", say.Command("deny")
		case ChoiceSession, ChoiceAlways:
			word += " " + string(c)
		}
		buttons, commands = append(buttons, b), append(commands, format.Code(word))
	}
	if p.a.traits(a.Address).Buttons {
		return p.a.prompt(row, a.Session, strings.Join(lines, "\n"), [][]platforms.Button{buttons})
	}
	lines = append(lines, say.T("approval.how", locales.Str("commands", strings.Join(commands, ", "))))
	return p.a.prompt(row, a.Session, strings.Join(lines, "\n"), nil)
}

// decidedText is what the prompt of an approval becomes.
func (a *Asker) decidedText(d Approval) string {
	say := a.o.Printer(d.Address)
	text := say.T("approval.ended."+string(d.Choice), locales.Str("name", format.EscapeMarkdown(d.By)))
	if d.Reason != "" {
		text += "\n" + say.T("approval.reason", locales.Str("reason", format.EscapeMarkdown(d.Reason)))
	}
	return format.Fence("", d.Preview) + "\n" + text
}

// ParseApproval returns the approval and choice that button data names.
func ParseApproval(data string) (id string, choice Choice, ok bool) {
	rest, found := strings.CutPrefix(data, approvalPrefix)
	id, what, cut := strings.Cut(rest, ":")
	return id, Choice(what), found && cut
}

// PendingApprovals returns what waits for a person, the oldest first. What a turn has left that has ended is not
// among it.
func PendingApprovals(v sessions.View) ([]Approval, error) {
	values, err := v.Values(sessions.SpaceApproval)
	if err != nil {
		return nil, err
	}
	var out []Approval
	for _, value := range values {
		var a Approval
		if json.Unmarshal(value.Data, &a) != nil || a.Choice != "" {
			continue
		}
		t, err := v.Turn(a.Turn)
		if errors.Is(err, sessions.ErrNotFound) || err == nil && t.State != sessions.TurnRunning {
			continue
		}
		if err != nil {
			return nil, err
		}
		a.ID = value.Name
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Approval) int { return a.Asked.Compare(b.Asked) })
	return out, nil
}

// LastApproval returns the newest approval of a conversation that was decided, for an answer to who comes late.
func LastApproval(v sessions.View, key sessions.Key) (a Approval, ok bool, err error) {
	values, err := v.Values(sessions.SpaceApproval)
	for _, value := range values {
		var other Approval
		if json.Unmarshal(value.Data, &other) == nil && other.Key == key && other.Choice != "" && (!ok || other.Asked.After(a.Asked)) {
			other.ID = value.Name
			a, ok = other, true
		}
	}
	return a, ok, err
}

// GetApproval returns one approval; sessions.ErrNotFound.
func GetApproval(v sessions.View, id string) (Approval, error) { return readApproval(v, id) }

// Decide writes a person's decision down, once: ErrStale when it was decided before or its turn is over, ErrExpired
// when nobody had answered in time, ErrNotOffered for a choice that the prompt does not have. Whether the person may
// decide is the caller's business. After the commit, queue the rows and call Wake.
func (a *Asker) Decide(tx sessions.Tx, id string, choice Choice, reason, by string) (Approval, []*sessions.OutboxRow, error) {
	d, err := readApproval(tx, id)
	if errors.Is(err, sessions.ErrNotFound) {
		return d, nil, ErrStale
	}
	if err != nil {
		return d, nil, err
	}
	t, err := tx.Turn(d.Turn)
	switch {
	case d.Choice == ChoiceTimeout:
		return d, nil, ErrExpired
	case d.Choice != "", errors.Is(err, sessions.ErrNotFound), err == nil && t.State != sessions.TurnRunning:
		return d, nil, ErrStale
	case err != nil:
		return d, nil, err
	case !a.o.Now().Before(d.Until):
		return d, nil, ErrExpired
	case !slices.Contains(d.Choices, choice):
		return d, nil, ErrNotOffered
	}
	d.Choice, d.Reason, d.By = choice, reason, by
	if choice == ChoiceSession && a.o.Allow != nil {
		if err := a.o.Allow(tx, d.Session, d.Kinds); err != nil {
			return d, nil, err
		}
	}
	rows, err := a.settle(tx, d)
	return d, rows, err
}

// settle keeps a decided approval and changes its prompt to what was decided.
func (a *Asker) settle(tx sessions.Tx, d Approval) ([]*sessions.OutboxRow, error) {
	if err := writeApproval(tx, d, a.o.Now()); err != nil {
		return nil, err
	}
	prompt, err := tx.OutboxRow(d.Prompt)
	if err != nil || prompt.Sent == "" {
		return nil, nil // it is not there any more, or not yet: a press on it is answered with what was decided
	}
	traits := a.traits(d.Address)
	chunks := format.Render(a.o.Redact(a.decidedText(d)), traits.Text)
	if len(chunks) == 0 {
		return nil, nil
	}
	row := &sessions.OutboxRow{Kind: sessions.OutNotice, Turn: d.Turn, Session: d.Session,
		Message: platforms.Outgoing{Address: prompt.Message.Address, Text: chunks[len(chunks)-1]}}
	switch {
	case traits.Edit:
		row.Message.Edit = prompt.Sent
	case d.Choice != ChoiceTimeout:
		return nil, nil // who decided knows it
	}
	return []*sessions.OutboxRow{row}, tx.PutOutbox(row)
}

// Wake lets the call go on whose approval was decided. When its turn does not run, it goes on later and finds the
// decision.
func (a *Asker) Wake(d Approval) {
	p, ok := a.o.Turns.Asking(d.Turn)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.calls[d.ID] <- struct{}{}:
	default:
	}
}

// expire closes an approval that nobody has decided, and shows why.
func (p *Pending) expire(id string, why Choice) error {
	var rows []*sessions.OutboxRow
	err := p.turn.Update(sessions.EdgeQueue, func(tx sessions.Tx) error {
		d, err := readApproval(tx, id)
		if err != nil || d.Choice != "" {
			return err
		}
		d.Choice = why
		rows, err = p.a.settle(tx, d)
		return err
	})
	if err == nil {
		p.a.o.Outbox.Take(rows...)
	}
	return err
}

// VoidApprovals closes what still waits for a decision, in the transaction of the turn's end, and returns the rows to
// queue after it.
func (p *Pending) VoidApprovals(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
	p.mu.Lock()
	asked := p.approved
	p.mu.Unlock()
	if !asked && !p.turn.Resumed() {
		return nil, nil
	}
	values, err := tx.Values(sessions.SpaceApproval)
	if err != nil {
		return nil, err
	}
	turn := p.turn.Row().ID
	var out []*sessions.OutboxRow
	for _, v := range values {
		var d Approval
		if json.Unmarshal(v.Data, &d) != nil || d.Turn != turn || d.Choice != "" {
			continue
		}
		d.ID, d.Choice = v.Name, ChoiceVoid
		rows, err := p.a.settle(tx, d)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}
