package cron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/sessions"
)

const (
	// longestSleep is how long the scheduler trusts its timer: after a change of the machine's clock, or a sleep of the
	// machine, it is wrong for no longer than this.
	longestSleep = 30 * time.Second
	// scanBatch is how many due jobs are read at once.
	scanBatch = 500
	// onTime is how late a run may be and still count as on time.
	onTime = 300 * time.Second
	// minGrace and maxGrace bound half the period of a schedule, the time in which a late slot is still itself.
	minGrace = 120 * time.Second
	maxGrace = 2 * time.Hour
	// lostEvery is how often runs are looked for whose work is gone.
	lostEvery = 300 * time.Second
	// keepDone is how long a job stays that will never run again.
	keepDone = 7 * 24 * time.Hour
	// maxCounted bounds how many missed slots are counted one by one.
	maxCounted = 10_000
)

var (
	// ErrTaken is what Claim returns when the slot has been claimed before: nothing of the work may be kept.
	ErrTaken = errors.New("the slot is taken")
	// ErrRunning refuses to begin a run of a job whose last one goes on.
	ErrRunning = errors.New("it is running already")
	// ErrFull is what Options.Start returns when no more runs may go on at once: the slot waits until one has ended.
	ErrFull = errors.New("as many jobs run as may")
)

// Start is the work of a slot. The function must run Claim in the transaction that makes the work durable, and keep
// nothing when Claim fails. Once it is committed the slot is the caller's: it must call Scheduler.End exactly once, in
// this process or, for work that outlives it, in a later one.
type Start struct {
	Job   Job
	Run   sessions.Run // its ID is set by Claim
	Note  string       // of a manual run: what its author adds for this time
	Claim func(tx sessions.Tx) (sessions.Run, error)
}

// Options are what a Scheduler works with.
type Options struct {
	Store sessions.Store
	// Zone is the zone of the jobs' clocks, CatchUp whether a slot is run that was missed by more than its grace. Both are
	// asked each time.
	Zone    func() *time.Location
	CatchUp func() bool
	// Start begins the work of a slot and returns soon. An error other than ErrTaken leaves the slot unclaimed; it is tried
	// again at the next look.
	Start func(ctx context.Context, s Start) error
	// Missed, if set, is called for a one-shot job whose time has passed. It must run Claim, which gives the slot its end, in
	// the transaction that keeps what it says about it.
	Missed func(ctx context.Context, s Start) error
	// Alive reports whether the work of a claimed run goes on, in this process or by what an earlier one has left. Lost, if
	// set, is called for one whose work does not, and must end it; nil ends it as failed.
	Alive func(run sessions.Run) bool
	Lost  func(ctx context.Context, run sessions.Run) error
	// Claimed is called for each slot that was due and is taken: its State is an end where it has one from the beginning, and
	// missed is how many slots before it have ended as missed; nil: nothing is called.
	Claimed func(run sessions.Run, missed int)
	// Looked is called after each look for due slots; nil: nothing is.
	Looked func(at time.Time)
	// Requests is what others ask of the scheduler; nil: they can't.
	Requests *Requests
	Now      func() time.Time
	Log      zerolog.Logger
}

// Scheduler gives the slots of all jobs to their work, each once.
type Scheduler struct {
	o     Options
	mu    sync.Mutex // one look at a time
	swept time.Time  // when lost runs were looked for
}

// New returns a scheduler; Run makes it work.
func New(o Options) *Scheduler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Requests == nil {
		o.Requests = NewRequests()
	}
	return &Scheduler{o: o}
}

// Run works until ctx ends: it ends what an earlier process left, and then looks for due slots when the next one is due,
// after Requests.Poke, and every half minute. It begins the runs that Requests ask for. A Scheduler runs once.
func (s *Scheduler) Run(ctx context.Context) error {
	defer s.o.Requests.close()
	if err := s.lost(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-s.o.Requests.runs:
			run, err := s.Trigger(r.ctx, r.job, r.note)
			r.answer <- begun{run, err}
			continue
		case <-s.o.Requests.poke:
		case <-timer.C:
		}
		if s.o.Now().Sub(s.swept) > lostEvery {
			if err := errors.Join(s.lost(ctx), s.forget(ctx)); err != nil && ctx.Err() == nil {
				s.o.Log.Error().Err(err).Msg("cron: runs that were cut off and jobs that are done could not be looked for; it is tried again")
			}
		}
		next, err := s.Look(ctx)
		if err == nil && s.o.Looked != nil {
			s.o.Looked(s.o.Now())
		}
		if err != nil && ctx.Err() == nil {
			s.o.Log.Error().Err(err).Msg("cron: due jobs could not be looked for; it is tried again")
		}
		timer.Reset(s.sleep(next))
	}
}

func (s *Scheduler) sleep(next time.Time) time.Duration {
	if next.IsZero() {
		return longestSleep
	}
	return min(max(next.Sub(s.o.Now()), 0), longestSleep)
}

// lost ends the claimed runs whose work does not go on.
func (s *Scheduler) lost(ctx context.Context) error {
	s.swept = s.o.Now()
	var open []sessions.Run
	err := s.o.Store.View(ctx, func(v sessions.View) (err error) {
		open, err = v.Runs(sessions.RunQuery{State: sessions.RunClaimed, Limit: 1 << 30})
		return err
	})
	if err != nil {
		return fmt.Errorf("cron: %w", err)
	}
	for _, run := range open {
		if s.o.Alive != nil && s.o.Alive(run) {
			continue
		}
		s.o.Log.Warn().Str("job", string(run.Job)).Time("slot", run.Slot).Msg("cron: a run was cut off by a restart")
		end := s.o.Lost
		if end == nil {
			end = func(ctx context.Context, run sessions.Run) error {
				return s.End(ctx, run.ID, sessions.RunFailed, CutOff, nil)
			}
		}
		if err := end(ctx, run); err != nil && !errors.Is(err, sessions.ErrConflict) { // it is tried again with the next look for them
			s.o.Log.Error().Err(err).Str("job", string(run.Job)).Msg("cron: the end of a run that was cut off can't be written down")
		}
	}
	return nil
}

// forget removes the jobs that have been done for long. What a file provides stays as long as the file has it.
func (s *Scheduler) forget(ctx context.Context) error {
	before := s.o.Now().Add(-keepDone)
	var done []JobID
	err := s.o.Store.View(ctx, func(v sessions.View) error {
		rows, err := v.Jobs()
		for _, row := range rows {
			if job, err := FromRow(row); err == nil && job.Done != "" && job.Updated.Before(before) && !job.Managed() {
				done = append(done, job.ID)
			}
		}
		return err
	})
	if err != nil || len(done) == 0 {
		return err
	}
	return s.o.Store.Update(ctx, sessions.EdgeKeep, func(tx sessions.Tx) error {
		for _, id := range done {
			if err := tx.DeleteJob(id); err != nil {
				return err
			}
		}
		return nil
	})
}

// End gives a run its end, and notes it with its job. ErrConflict when it has one already.
func (s *Scheduler) End(ctx context.Context, id sessions.RunID, state sessions.RunState, reason string, result json.RawMessage) error {
	return s.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error { return EndRun(tx, id, state, reason, result, s.o.Now()) })
}

// Trigger begins a run of a job now, beside its plan, also of one that is paused or done. ErrRunning while one goes on.
func (s *Scheduler) Trigger(ctx context.Context, id JobID, note string) (sessions.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var row sessions.Job
	err := s.o.Store.View(ctx, func(v sessions.View) (err error) {
		row, err = v.Job(id)
		return err
	})
	if err != nil {
		return sessions.Run{}, err
	}
	job, err := FromRow(row)
	if err != nil {
		return sessions.Run{}, err
	}
	now := s.o.Now().UTC()
	run := sessions.Run{Job: id, Slot: now.Truncate(time.Millisecond), Kind: sessions.RunManual, Began: now}
	var claimed sessions.Run
	err = s.o.Start(ctx, Start{Job: job, Run: run, Note: note, Claim: func(tx sessions.Tx) (sessions.Run, error) {
		run := run
		if err := free(tx, id); err != nil {
			return run, err
		}
		ok, err := tx.ClaimRun(&run, time.Time{})
		if err == nil {
			err = taken(ok)
		}
		claimed = run
		return run, err
	}})
	return claimed, err
}

// free returns ErrRunning while a run of the job goes on.
func free(tx sessions.Tx, id JobID) error {
	open, err := tx.Runs(sessions.RunQuery{Job: id, State: sessions.RunClaimed, Limit: 1})
	if err == nil && len(open) > 0 {
		err = ErrRunning
	}
	return err
}

func (s *Scheduler) put(tx sessions.Tx, job *Job) error {
	job.Updated = s.o.Now().UTC()
	return job.put(tx)
}

// Look gives every due slot to its work and returns when the next one is due; zero when nothing is planned.
func (s *Scheduler) Look(ctx context.Context) (next time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	var failed []error
	tried := map[JobID]bool{}
	full := false
	for ctx.Err() == nil {
		var due []sessions.Job
		err := s.o.Store.View(ctx, func(v sessions.View) (err error) {
			due, err = v.JobsDue(now, scanBatch+len(tried))
			return err
		})
		if err != nil {
			return time.Time{}, err
		}
		fresh := 0
		for _, row := range due {
			if tried[row.ID] {
				continue // it could not be begun a moment ago
			}
			tried[row.ID] = true
			fresh++
			err := s.due(ctx, row, now)
			if errors.Is(err, ErrFull) {
				full = true
			} else if err != nil {
				failed = append(failed, fmt.Errorf("job %s %q: %w", row.ID, row.Name, err))
			}
		}
		if fresh == 0 {
			break
		}
	}
	err = s.o.Store.View(ctx, func(v sessions.View) (err error) {
		next, err = v.NextJob()
		return err
	})
	switch {
	case next.After(now):
	case len(failed) > 0:
		next = now.Add(time.Second) // what failed is tried again, but not in a hot loop
	case full:
		next = now.Add(longestSleep) // the end of a run pokes
	}
	return next, errors.Join(append(failed, err)...)
}

// due decides about the slots of one job up to now.
func (s *Scheduler) due(ctx context.Context, row sessions.Job, now time.Time) error {
	job, err := FromRow(row)
	if err != nil {
		return s.putAside(ctx, row, err)
	}
	zone := s.o.Zone()
	lot := job.lot(now, zone)
	run := sessions.Run{Job: job.ID, Slot: lot.last, Kind: kindOf(now.Sub(lot.last), lot.grace)}
	late := now.Sub(lot.last)
	start := Start{Job: job}
	start.Claim = func(tx sessions.Tx) (sessions.Run, error) { return s.claim(tx, job.ID, run, lot, now, zone) }
	begin := s.o.Start
	switch {
	case job.retrying() && !now.Before(job.Retry.After):
		run.Kind, run.State, run.Reason = sessions.RunRetry, sessions.RunSkipped, "the job's next time had come"
		begin = s.justClaim
	case job.retrying():
		run.Kind = sessions.RunRetry
	case job.Plan.Schedule.Kind == Once && late > OnceGrace:
		run.State, run.Reason = sessions.RunMissed, fmt.Sprintf("nobody was there at %s", lot.last.Format(time.RFC3339))
		if begin = s.o.Missed; begin == nil {
			begin = s.justClaim
		}
	case late > lot.grace && !s.o.CatchUp():
		run.State, run.Reason = sessions.RunSkipped, "it was missed, and cron.catch_up_missed is off"
		begin = s.justClaim
	}
	start.Run = run
	err = begin(ctx, start)
	if errors.Is(err, ErrRunning) {
		run.State, run.Reason = sessions.RunSkipped, "the run before it still went on"
		err = s.justClaim(ctx, start)
	}
	if errors.Is(err, ErrTaken) {
		return nil
	}
	if err == nil && s.o.Claimed != nil {
		s.o.Claimed(run, lot.missed)
	}
	return err
}

// justClaim gives a slot the end that it has from the beginning.
func (s *Scheduler) justClaim(ctx context.Context, start Start) error {
	return s.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		_, err := start.Claim(tx)
		return err
	})
}

// claim takes the newest due slot of a job, ends the older ones as missed, and moves the job on.
func (s *Scheduler) claim(tx sessions.Tx, id JobID, run sessions.Run, lot lot, now time.Time, zone *time.Location) (sessions.Run, error) {
	row, err := tx.Job(id)
	if errors.Is(err, sessions.ErrNotFound) {
		return run, ErrTaken // removed meanwhile
	}
	if err != nil {
		return run, err
	}
	job, err := FromRow(row)
	if err != nil || !job.Next.Equal(lot.first) {
		return run, ErrTaken // changed meanwhile
	}
	if run.State == "" {
		if err := free(tx, id); err != nil {
			return run, err
		}
		if !job.retrying() {
			job.Started++
		}
	}
	if lot.missed > 0 {
		missed := sessions.Run{Job: id, Slot: lot.first, Until: lot.before, Slots: lot.missed, Kind: sessions.RunLate,
			State:  sessions.RunMissed,
			Reason: "nobody was there", Began: now}
		if claimed, err := tx.ClaimRun(&missed, time.Time{}); err != nil || !claimed {
			return run, errors.Join(err, taken(claimed))
		}
	}
	run.Began = now
	if claimed, err := tx.ClaimRun(&run, time.Time{}); err != nil || !claimed {
		return run, errors.Join(err, taken(claimed))
	}
	if job.retrying() {
		job.Next, job.Retry.At = job.Retry.After, time.Time{}
		if run.State.Ended() {
			job.Retry = nil
		}
	} else {
		job.Next, job.Done = job.after(lot.last, now, zone)
	}
	if run.State.Ended() {
		job.LastEnd, job.LastSlot, job.LastReason = run.State, run.Slot, run.Reason
	}
	return run, s.put(tx, &job)
}

func taken(claimed bool) error {
	if claimed {
		return nil
	}
	return ErrTaken
}

// putAside takes the slots from a job that can't be read, and says so where people look.
func (s *Scheduler) putAside(ctx context.Context, row sessions.Job, why error) error {
	s.o.Log.Error().Err(why).Str("job", string(row.ID)).Msg("cron: a job can't be read; it has no runs until it is repaired or replaced")
	progress, err := json.Marshal(Progress{Broken: why.Error()})
	if err != nil {
		return err
	}
	row.Next, row.Progress, row.Updated = time.Time{}, progress, s.o.Now().UTC()
	if !json.Valid(row.Spec) {
		row.Spec = json.RawMessage(`{}`)
	}
	return s.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error { return tx.PutJob(row) })
}
