package turn

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

	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools"
)

// SpaceApproval holds the approvals that were asked for, by id. They stay a while after they were decided, so that a
// late press can be told what became of them.
const SpaceApproval = "approval"

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

// The errors of deciding an approval.
var (
	// ErrExpired: nobody had answered in time.
	ErrExpired = errors.New("the time to answer is over")
	// ErrNotOffered: the choice was not among those that the prompt offers.
	ErrNotOffered = errors.New("this choice is not offered")
	// ErrNobody: the call belongs to no chat in which anybody could be asked.
	ErrNobody = errors.New("nobody can be asked outside a chat")
)

// ApprovalRequest asks a person whether a call may run.
type ApprovalRequest struct {
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
func (rs *Runs) FindApproval(ctx context.Context, call tools.Call, command string) (a Approval, ok bool, err error) {
	err = rs.store.View(ctx, func(v sessions.View) error {
		a, err = readApproval(v, approvalID(call, command))
		return err
	})
	if errors.Is(err, sessions.ErrNotFound) {
		return Approval{}, false, nil
	}
	return a, err == nil, err
}

func readApproval(v sessions.View, id string) (Approval, error) {
	value, err := v.Value(SpaceApproval, id)
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
	return tx.SetValue(SpaceApproval, a.ID, data, now)
}

// Approve asks the people of a turn whether a call may run and waits for the decision, which Choice holds then. The
// prompt is shown once: a turn that goes on after a restart takes up what was asked, and what was decided. An error is
// ErrNobody, ctx's cause, or the store's; then nothing was decided.
func (rs *Runs) Approve(ctx context.Context, call tools.Call, req ApprovalRequest) (Approval, error) {
	run, ok := rs.Get(sessions.TurnID(call.Caller.Turn))
	if !ok || call.Caller.Turn == 0 {
		return Approval{}, ErrNobody
	}
	id := approvalID(call, req.Command)
	woken := run.expect(id)
	defer run.forget(id)
	a, err := run.openApproval(id, call, req)
	if err != nil || a.Choice != "" {
		return a, err
	}
	defer run.waitForPerson(ctx, "approval")()
	timer := time.NewTimer(max(0, a.Until.Sub(run.r.s.Now())))
	defer timer.Stop()
	for {
		select {
		case <-woken:
		case <-timer.C:
			if err := run.expire(id, ChoiceTimeout); err != nil {
				return a, err
			}
		case <-ctx.Done():
			if !run.r.closed.Load() { // the call alone has ended, and a press must not promise that it runs
				if err := run.expire(id, ChoiceVoid); err != nil && !errors.Is(err, errAbandoned) {
					run.r.s.Log.Warn().Err(err).Msg("an approval that nobody waits for any more can't be closed")
				}
			}
			return a, context.Cause(ctx)
		}
		if a, ok, err = rs.FindApproval(ctx, call, req.Command); err != nil || !ok {
			return a, cmpErr(err, sessions.ErrNotFound)
		}
		if a.Choice != "" {
			return a, nil
		}
	}
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// expect makes the channel that tells of a decision.
func (run *Run) expect(id string) <-chan struct{} {
	run.mu.Lock()
	defer run.mu.Unlock()
	woken := make(chan struct{}, 1)
	if run.approvals == nil {
		run.approvals = map[string]chan struct{}{}
	}
	run.approvals[id] = woken
	run.approved = true
	return woken
}

func (run *Run) forget(id string) {
	run.mu.Lock()
	defer run.mu.Unlock()
	delete(run.approvals, id)
}

// openApproval finds what was asked for the call, or asks, in one transaction.
func (run *Run) openApproval(id string, call tools.Call, req ApprovalRequest) (Approval, error) {
	now := run.r.s.Now()
	a := Approval{ID: id, Turn: run.turn.ID, Session: run.session.ID, Key: run.turn.Key, Address: run.address(), Requester: platforms.UserID(call.Caller.User),
		Tool: call.Name, Preview: req.Preview, Kinds: req.Kinds, Choices: req.Choices, Judged: req.Judged, Asked: now, Until: now.Add(req.Timeout)}
	var put []*sessions.OutboxRow
	err := run.update(sessions.EdgeQueue, func(tx sessions.Tx) error {
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
		put = run.approvalRows(a, len(waiting)+1)
		if err := tx.PutOutbox(put...); err != nil {
			return err
		}
		a.Prompt = put[len(put)-1].ID
		return writeApproval(tx, a, now)
	})
	if err != nil {
		return a, fmt.Errorf("ask for an approval: %w", err)
	}
	run.r.s.Outbox.Take(put...)
	return a, nil
}

// approvalRows renders a prompt; the last message has the buttons.
func (run *Run) approvalRows(a Approval, waiting int) []*sessions.OutboxRow {
	s := run.r.s
	adapter, ok := s.Adapters.Adapter(a.Address.AccountOf())
	traits := platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}}
	if ok {
		traits = adapter.Traits()
	}
	text, labels := s.Texts.Approval(a.Address, a, waiting, !traits.Buttons)
	var out []*sessions.OutboxRow
	for _, chunk := range format.Render(s.Redact(text), traits.Text) {
		out = append(out, &sessions.OutboxRow{Kind: sessions.OutPrompt, Turn: a.Turn, Session: a.Session, Message: platforms.Outgoing{Address: a.Address, Text: chunk}})
	}
	if !traits.Buttons || len(out) == 0 {
		return out
	}
	var row []platforms.Button
	for _, c := range a.Choices {
		b := platforms.Button{Label: labels[c], Data: approvalPrefix + a.ID + ":" + string(c)}
		switch c {
		case ChoiceOnce:
			b.Style = "primary"
		case ChoiceDeny:
			b.Style = "danger"
		}
		row = append(row, b)
	}
	out[len(out)-1].Message.Buttons = [][]platforms.Button{row}
	return out
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
	values, err := v.Values(SpaceApproval)
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
	values, err := v.Values(SpaceApproval)
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
func (r *Runner) Decide(tx sessions.Tx, id string, choice Choice, reason, by string) (Approval, []*sessions.OutboxRow, error) {
	a, err := readApproval(tx, id)
	if errors.Is(err, sessions.ErrNotFound) {
		return a, nil, ErrStale
	}
	if err != nil {
		return a, nil, err
	}
	t, err := tx.Turn(a.Turn)
	switch {
	case a.Choice == ChoiceTimeout:
		return a, nil, ErrExpired
	case a.Choice != "", errors.Is(err, sessions.ErrNotFound), err == nil && t.State != sessions.TurnRunning:
		return a, nil, ErrStale
	case err != nil:
		return a, nil, err
	case !r.s.Now().Before(a.Until):
		return a, nil, ErrExpired
	case !slices.Contains(a.Choices, choice):
		return a, nil, ErrNotOffered
	}
	a.Choice, a.Reason, a.By = choice, reason, by
	if choice == ChoiceSession && r.s.Allow != nil {
		if err := r.s.Allow(tx, a.Session, a.Kinds); err != nil {
			return a, nil, err
		}
	}
	rows, err := r.settle(tx, a)
	return a, rows, err
}

// settle keeps a decided approval and changes its prompt to what was decided.
func (r *Runner) settle(tx sessions.Tx, a Approval) ([]*sessions.OutboxRow, error) {
	if err := writeApproval(tx, a, r.s.Now()); err != nil {
		return nil, err
	}
	prompt, err := tx.OutboxRow(a.Prompt)
	if err != nil || prompt.Sent == "" {
		return nil, nil // it is not there any more, or not yet: a press on it is told what became of it
	}
	traits := platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}}
	if adapter, ok := r.s.Adapters.Adapter(a.Address.AccountOf()); ok {
		traits = adapter.Traits()
	}
	chunks := format.Render(r.s.Redact(r.s.Texts.ApprovalEnded(a.Address, a)), traits.Text)
	if len(chunks) == 0 {
		return nil, nil
	}
	row := &sessions.OutboxRow{Kind: sessions.OutNotice, Turn: a.Turn, Session: a.Session,
		Message: platforms.Outgoing{Address: prompt.Message.Address, Text: chunks[len(chunks)-1]}}
	switch {
	case traits.Edit:
		row.Message.Edit = prompt.Sent
	case a.Choice != ChoiceTimeout:
		return nil, nil // who decided knows it
	}
	return []*sessions.OutboxRow{row}, tx.PutOutbox(row)
}

// Wake lets the call go on whose approval was decided.
func (r *Runner) Wake(a Approval) {
	run, ok := r.Running(a.Turn)
	if !ok {
		return // it goes on later and finds the decision
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	select {
	case run.approvals[a.ID] <- struct{}{}:
	default:
	}
}

// expire closes an approval that nobody has decided, and shows why.
func (run *Run) expire(id string, why Choice) error {
	var rows []*sessions.OutboxRow
	err := run.update(sessions.EdgeQueue, func(tx sessions.Tx) error {
		a, err := readApproval(tx, id)
		if err != nil || a.Choice != "" {
			return err
		}
		a.Choice = why
		rows, err = run.r.settle(tx, a)
		return err
	})
	if err == nil {
		run.r.s.Outbox.Take(rows...)
	}
	return err
}

// voidApprovals closes what still waits when the turn ends.
func (run *Run) voidApprovals(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
	run.mu.Lock()
	asked := run.approved || run.resumed
	run.mu.Unlock()
	if !asked {
		return nil, nil
	}
	values, err := tx.Values(SpaceApproval)
	if err != nil {
		return nil, err
	}
	var out []*sessions.OutboxRow
	for _, v := range values {
		var a Approval
		if json.Unmarshal(v.Data, &a) != nil || a.Turn != run.turn.ID || a.Choice != "" {
			continue
		}
		a.ID, a.Choice = v.Name, ChoiceVoid
		rows, err := run.r.settle(tx, a)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}
