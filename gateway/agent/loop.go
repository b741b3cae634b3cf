package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"herald/gateway/model"
	"herald/sessions"
	"herald/tools"
)

// ErrRedirected is the cause with which a running model call is cancelled when a person's correction
// arrives; the loop takes the correction in and asks again.
var ErrRedirected = errors.New("redirected by a newer message")

// Bus runs the tool calls of one answer.
type Bus interface {
	// Batch plans the calls, runs them, and returns the results in call order.
	Batch(ctx context.Context, calls []tools.Call, each func(int, tools.Result)) []tools.Result
}

// Turn is the loop's window to the turn it runs in. What it returns nil for is committed.
type Turn interface {
	// Generating tells that a model call runs, with what cancels it; nil tells that it has ended.
	Generating(cancel context.CancelCauseFunc)
	// Delta shows a piece of the answer; Restart tells that the pieces shown since the last answer are void.
	Delta(d model.Delta)
	Restart()
	// Answer commits an answer that asks for tools and returns its row.
	Answer(ctx context.Context, r model.Response) (sessions.Message, error)
	// Results returns the committed tool rows of an answer, in call order.
	Results(answer sessions.Message) []sessions.Message
	// Absorb commits what people said meanwhile, with the visible partial text before it, and returns the
	// rows; none when nobody said anything.
	Absorb(ctx context.Context) ([]sessions.Message, error)
	// Compact commits a summary in place of the rows up to and including upTo, except keep, and returns
	// the conversation that is left.
	Compact(ctx context.Context, upTo sessions.RowID, keep []sessions.RowID, summary string) ([]sessions.Message, error)
	// Used adds token counts.
	Used(u model.Usage, context int)
}

// Input is what a run starts from.
type Input struct {
	Turn      sessions.TurnID
	System    string
	Ephemeral string
	History   []sessions.Message
	Tools     []model.ToolDef
	Caller    tools.Caller
	CacheKey  string
	Reasoning string
	// LastPrompt is the provider's input token count of the newest earlier call, 0 when unknown; the rows
	// in it are History[:LastRows].
	LastPrompt int64
	LastRows   int
	// Specs tells which started calls may simply run again after a crash.
	RunAgain func(name string) bool
	// Calls is the journal of a resumed turn's tool calls; nil for a fresh turn.
	Calls []sessions.CallRow
	// ReadOnly tells which tools change nothing; nil: none is known to.
	ReadOnly func(name string) bool
	// Timestamps shows the model when each message of a person was written, in the zone of the time's location.
	Timestamps bool
	// Cooldown keeps a summary that has just failed from being tried again at once; nil: it is.
	Cooldown *Cooldown
	// Now is the clock of the cooldown; nil takes time.Now.
	Now func() time.Time
}

// Limits bounds a run.
type Limits struct {
	// MaxSteps is how many model calls a turn may take; 0 means no bound. At the bound the model is asked
	// for a closing summary without tools.
	MaxSteps int
	// EmptyTries is how often an empty answer is asked for again.
	EmptyTries int
	Compaction Compaction
	Guardrails Guardrails
}

// DefaultLimits returns the documented defaults: 500 steps, 3 tries on an empty answer.
func DefaultLimits() Limits {
	return Limits{MaxSteps: 500, EmptyTries: 3, Compaction: DefaultCompaction(), Guardrails: DefaultGuardrails()}
}

// Outcome is how a run ended.
type Outcome struct {
	// Response is the final answer, without tool calls.
	Response model.Response
	// Steps is how many model calls it took; ToolCalls how many calls ran.
	Steps, ToolCalls int
	// Exhausted is true when the step budget ended the run. Looped is the tool whose repetitions did.
	Exhausted bool
	Looped    string
	// Rows is the conversation that the final answer follows; LastPrompt is the provider's input token
	// count for its first LastRows rows, 0 when unknown.
	Rows       []sessions.Message
	LastPrompt int64
	LastRows   int
}

// Loop runs agents. It holds no state of a run.
type Loop struct {
	Model  model.Model
	Bus    Bus
	Limits Limits
}

// Run goes on until the model gives a final answer. It returns the context's error when ctx ends, a
// *model.Error when the model can't be reached or refuses, and the Turn's error when a commit fails.
func (l *Loop) Run(ctx context.Context, turn Turn, in Input) (Outcome, error) {
	r := &run{loop: l, turn: turn, in: in, rows: in.History, guard: newGuard(l.Limits.Guardrails, in.ReadOnly)}
	if r.in.Now == nil {
		r.in.Now = time.Now
	}
	if err := r.resume(ctx); err != nil {
		return r.out, err
	}
	for {
		done, err := r.step(ctx)
		if err != nil || done {
			return r.out, err
		}
	}
}

// run is the state of one Run.
type run struct {
	loop    *Loop
	turn    Turn
	in      Input
	rows    []sessions.Message
	out     Outcome
	empty   int
	compact int // forced compactions so far
	guard   *guard
	ids     map[string]bool // of the calls of this turn
	warning string          // for the next model call alone
	summing time.Duration   // spent on summaries so far
}

// step makes one model call and handles what comes back. done is true at the final answer.
func (r *run) step(ctx context.Context) (done bool, err error) {
	if err := r.absorb(ctx); err != nil {
		return false, err
	}
	if err := r.keepShort(ctx); err != nil {
		return false, err
	}
	exhausted := r.loop.Limits.MaxSteps > 0 && r.out.Steps >= r.loop.Limits.MaxSteps
	last := exhausted || r.out.Looped != ""
	resp, err := r.ask(ctx, last)
	switch {
	case err == nil:
	case errors.Is(err, ErrRedirected):
		return false, nil // the next step absorbs the correction
	case isKind(err, model.ContextLength) && r.compact < r.loop.Limits.Compaction.MaxAttempts:
		r.compact++
		return false, r.shorten(ctx, true)
	default:
		return false, err
	}
	r.out.Steps++
	r.turn.Used(resp.Usage, r.loop.Model.Info().Context)
	if resp.Usage.Input > 0 {
		r.in.LastPrompt, r.in.LastRows = resp.Usage.Input, len(r.rows)
	}
	if len(resp.ToolCalls) > 0 && !last {
		return false, r.act(ctx, resp)
	}
	if strings.TrimSpace(resp.Text) == "" && !last {
		if r.empty++; r.empty < max(1, r.loop.Limits.EmptyTries) {
			r.turn.Restart()
			return false, nil
		}
		return false, &model.Error{Kind: model.Invalid, Provider: r.loop.Model.Info().Provider, Err: fmt.Errorf("the answer was empty %d times", r.empty)}
	}
	resp.ToolCalls = nil
	r.out.Response, r.out.Exhausted = resp, exhausted
	r.out.Rows, r.out.LastPrompt, r.out.LastRows = r.rows, r.in.LastPrompt, r.in.LastRows
	return true, nil
}

// ask makes one model call that a correction can cancel.
func (r *run) ask(ctx context.Context, last bool) (model.Response, error) {
	req := model.Request{
		System: r.in.System, Ephemeral: join(r.in.Ephemeral, r.warning), Messages: Conversation(r.dated(), r.in.Turn), Tools: r.in.Tools,
		CacheKey: r.in.CacheKey, Reasoning: r.in.Reasoning,
	}
	if !r.loop.Model.Info().Vision {
		for i := range req.Messages {
			req.Messages[i].Images = nil
		}
	}
	r.warning = ""
	switch {
	case r.out.Looped != "":
		req.Ephemeral = join(req.Ephemeral, "You keep repeating calls of "+r.out.Looped+" that bring nothing new. "+lastStep)
	case last:
		req.Ephemeral = join(req.Ephemeral, "You have used all your steps for this turn. "+lastStep)
	}
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.turn.Generating(cancel)
	resp, err := r.loop.Model.Stream(call, req, r.turn.Delta)
	r.turn.Generating(nil)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(call), ErrRedirected) {
		return resp, ErrRedirected
	}
	if err != nil && ctx.Err() != nil {
		return resp, context.Cause(ctx)
	}
	return resp, err
}

// act commits the answer, runs its calls and takes their rows into the conversation.
func (r *run) act(ctx context.Context, resp model.Response) error {
	if r.unique(resp.ToolCalls) {
		resp.Replay = nil // it names the calls as they were
	}
	row, err := r.turn.Answer(ctx, resp)
	if err != nil {
		return err
	}
	r.rows = append(r.rows, row)
	return r.runCalls(ctx, row, row.ToolCalls)
}

func (r *run) runCalls(ctx context.Context, answer sessions.Message, calls []sessions.ToolCall) error {
	batch := make([]tools.Call, len(calls))
	for i, c := range calls {
		batch[i] = tools.Call{ID: tools.CallID(c.ID), Name: c.Name, Args: argumentsOf(c), Caller: r.in.Caller}
	}
	results := r.loop.Bus.Batch(ctx, batch, nil)
	r.out.ToolCalls += len(calls)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	rows := r.turn.Results(answer)
	if len(rows) < len(calls) {
		return fmt.Errorf("only %d of %d tool results could be written down", len(rows), len(calls))
	}
	r.rows = append(r.rows, rows...)
	r.warning, r.out.Looped = r.guard.note(calls, results)
	return nil
}

// lastStep asks for a closing answer.
const lastStep = "Call no tool. Say what is done, what is not, and what you would do next."

// join puts a paragraph behind another.
func join(a, b string) string { return strings.TrimSpace(a + "\n\n" + b) }

// dated returns the conversation, with the time before each message of a person where that is asked for.
func (r *run) dated() []sessions.Message {
	if !r.in.Timestamps {
		return r.rows
	}
	rows := slices.Clone(r.rows)
	for i, row := range rows {
		if row.Role == sessions.User && row.Kind != sessions.KindSummary && row.Kind != sessions.KindEarlier &&
			row.Kind != sessions.KindDelivery && !row.At.IsZero() {
			rows[i].Content = row.At.In(r.in.Now().Location()).Format("[2006-01-02 15:04 MST] ") + row.Content
		}
	}
	return rows
}

// argumentsOf repairs what the model wrote. What can't be repaired goes on as it is: the bus answers with
// an error that the model can act on.
func argumentsOf(c sessions.ToolCall) json.RawMessage {
	if args, err := model.ParseArguments(c.Arguments); err == nil {
		return args
	}
	return json.RawMessage(c.Arguments)
}

// unique gives every call an id that no other call of the turn has, and tells whether it had to change one: some
// providers omit ids, or count them from zero in each answer.
func (r *run) unique(calls []model.ToolCall) (changed bool) {
	if r.ids == nil {
		r.ids = map[string]bool{"": true}
		for _, c := range r.in.Calls {
			r.ids[c.Call] = true
		}
		for _, row := range r.rows {
			for _, c := range row.ToolCalls {
				r.ids[c.ID] = r.ids[c.ID] || row.Turn == r.in.Turn
			}
		}
	}
	for i := range calls {
		for n := len(r.ids); r.ids[calls[i].ID]; n++ {
			calls[i].ID, changed = fmt.Sprintf("call_%d_%d", r.in.Turn, n), true
		}
		r.ids[calls[i].ID] = true
	}
	return changed
}

// absorb takes in what people said since the last step.
func (r *run) absorb(ctx context.Context) error {
	rows, err := r.turn.Absorb(ctx)
	if err != nil {
		return err
	}
	r.rows = append(r.rows, rows...)
	return nil
}

// resume finishes the calls of a crashed turn: those that never began run now, those that may simply run
// again do, and the others are reported to the model as unknown.
func (r *run) resume(ctx context.Context) error {
	if r.in.Calls == nil || len(r.rows) == 0 {
		return nil
	}
	at := -1
	for i := len(r.rows) - 1; i >= 0; i-- {
		if len(r.rows[i].ToolCalls) > 0 && r.rows[i].Turn == r.in.Turn {
			at = i
			break
		}
	}
	if at < 0 {
		return nil
	}
	answered := map[string]bool{}
	for _, row := range r.rows[at+1:] {
		if row.Role == sessions.Tool {
			answered[row.ToolCallID] = true
		}
	}
	started := map[string]bool{}
	for _, c := range r.in.Calls {
		started[c.Call] = true
	}
	var again []sessions.ToolCall
	for _, c := range r.rows[at].ToolCalls {
		if answered[c.ID] {
			continue
		}
		if !started[c.ID] || (r.in.RunAgain != nil && r.in.RunAgain(c.Name)) {
			again = append(again, c)
		}
	}
	if len(again) == 0 {
		return nil
	}
	answer := r.rows[at]
	answer.ToolCalls = again
	return r.runCalls(ctx, answer, again)
}

func isKind(err error, kind model.Kind) bool {
	var e *model.Error
	return errors.As(err, &e) && e.Kind == kind
}
