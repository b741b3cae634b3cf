package view

import (
	"errors"
	"time"

	"herald/cron"
	"herald/gateway/jobs/brief"
	"herald/platforms"
	"herald/sessions"
)

// Run is what people see of a run.
type Run struct {
	ID  sessions.RunID `json:"id"`
	Job cron.JobID     `json:"job"`
	// Slot is when it was due, Until the last slot of a missed stretch of so many Slots.
	Slot    time.Time         `json:"slot"`
	Until   time.Time         `json:"until"`
	Slots   int               `json:"slots"`
	Kind    sessions.RunKind  `json:"kind"`
	State   sessions.RunState `json:"state"`
	Reason  string            `json:"reason,omitempty"`
	Began   time.Time         `json:"began"`
	Ended   time.Time         `json:"ended,omitzero"`
	Output  string            `json:"output,omitempty"` // a file
	Silent  string            `json:"silent,omitempty"` // why nothing was sent
	Retry   time.Time         `json:"retry,omitzero"`   // when it is tried again
	Places  []Place           `json:"places,omitempty"`
	Trouble []string          `json:"trouble,omitempty"` // with the targets or the output
}

// Place is what became of a brief at one place.
type Place struct {
	Place string          `json:"place"` // as a delivery target
	Token string          `json:"token"` // what the author wrote for it
	From  cron.Provenance `json:"from,omitempty"`
	// State is sent, failed, unknown, or pending while the platform has not answered; Why the reason of all but sent.
	State    sessions.OutboxState `json:"state"`
	Why      string               `json:"why,omitempty"`
	Mirrored []string             `json:"mirrored,omitempty"` // how it became part of a conversation there
}

// Late is how long after its slot a run began; never negative.
func (r Run) Late() time.Duration { return max(0, r.Began.Sub(r.Until)) }

// Took is how long a run went on; zero while it does.
func (r Run) Took() time.Duration {
	if r.Ended.IsZero() {
		return 0
	}
	return max(0, r.Ended.Sub(r.Began))
}

// viewRun is a run with what became of its output. s is asked why something waits; nil asks nobody.
func viewRun(s sessions.View, run sessions.Run) (Run, error) {
	r := brief.ReadResult(run)
	out := Run{ID: run.ID, Job: run.Job, Slot: run.Slot, Until: run.Until, Slots: max(1, run.Slots), Kind: run.Kind, State: run.State,
		Reason: run.Reason, Began: run.Began, Ended: run.Ended, Output: r.Output, Silent: r.Silent, Retry: r.Retry, Trouble: r.Problems}
	for _, d := range r.Deliveries {
		place := Place{Place: platforms.TargetOf(d.Address, false), Token: d.Token, From: d.From, State: d.State, Why: d.Error,
			Mirrored: d.Mirrored}
		if d.State == sessions.OutPending && s != nil {
			why, err := waits(s, d.Rows)
			if err != nil {
				return out, err
			}
			place.Why = why
		}
		out.Places = append(out.Places, place)
	}
	return out, nil
}

// waits says why a message that is not sent yet was not: the error of its newest try.
func waits(s sessions.View, rows []sessions.OutboxID) (string, error) {
	for _, id := range rows {
		row, err := s.OutboxRow(id)
		if errors.Is(err, sessions.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if row.State == sessions.OutPending && row.Error != "" {
			return row.Error, nil
		}
	}
	return "", nil
}
