package turn

import (
	"context"
	"errors"

	"herald/gateway/model"
	"herald/platforms"
	"herald/sessions"
)

// Background takes the turns that no chat waits for: those of scheduled jobs. What such a turn says is not sent to its
// own address, which no adapter serves, but given to Background.
type Background interface {
	// Is reports whether a turn at this address is such a one.
	Is(at platforms.Address) bool
	// End is called when one has ended, before that is written down. It may take time, but for a turn that a person has
	// stopped, where others wait. The function that it returns runs in the transaction that ends the turn and returns
	// the rows to queue after it. It is run again when the transaction had to be given up.
	End(ctx context.Context, e End) func(tx sessions.Tx) ([]*sessions.OutboxRow, error)
}

// End is how a turn has ended.
type End struct {
	Turn  sessions.Turn
	State sessions.TurnState
	// Text is the answer as the model wrote it; of a turn that failed, empty.
	Text string
	// Exhausted is set when the turn has used up its steps, so that Text may be no whole answer.
	Exhausted bool
	// Reason is why a turn failed, stopped or was parked, free of secrets.
	Reason string
	// Kind is of the model's error, where it was one, and Reached says that the model had answered before in this turn;
	// Idle that the turn was ended because it showed no sign of life.
	Kind          model.Kind
	Reached, Idle bool
}

// background reports whether nobody waits for the turn.
func (run *Run) background() bool {
	b := run.r.s.Background
	return b != nil && b.Is(run.address())
}

// handOver tells Background of the end of a turn of its own; nil for all others.
func (run *Run) handOver(e End) func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
	if !run.background() {
		return nil
	}
	e.Turn = run.turn
	return run.r.s.Background.End(context.WithoutCancel(run.ctx), e)
}

// failure describes the error that a turn ended with.
func (run *Run) failure(err error, reason string) End {
	run.mu.Lock()
	e := End{State: sessions.TurnFailed, Reason: reason, Idle: errors.Is(err, errIdle), Reached: run.resumed || run.used.Calls > 0}
	run.mu.Unlock()
	var me *model.Error
	if errors.As(err, &me) {
		e.Kind = me.Kind
	}
	return e
}
