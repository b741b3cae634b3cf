package cron

import (
	"context"
	"errors"
	"sync"

	"herald/sessions"
)

// ErrStopped refuses what only a running scheduler can do.
var ErrStopped = errors.New("the scheduler has stopped; no job runs until Herald starts again")

// Requests is what others ask of a Scheduler. It is made before the scheduler, so that whoever changes jobs or runs one
// need not wait for it. It is safe for concurrent use.
type Requests struct {
	poke chan struct{}
	runs chan request
	over chan struct{} // closed when the scheduler has stopped
	once sync.Once
}

// request asks for a run of a job.
type request struct {
	ctx    context.Context
	job    JobID
	note   string
	answer chan begun // holds one, so that the scheduler never waits for who asked
}

// begun is the answer to a request.
type begun struct {
	run sessions.Run
	err error
}

// NewRequests returns requests that wait for a scheduler.
func NewRequests() *Requests {
	return &Requests{poke: make(chan struct{}, 1), runs: make(chan request), over: make(chan struct{})}
}

// Poke makes the scheduler look at once: a job was made or changed, or there is room for a slot that waits. It never
// waits.
func (r *Requests) Poke() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// Run runs a job now, paused or not, beside its plan. note is added to the prompt of this run alone. It returns when the
// run has begun. ErrRunning while one goes on, ErrStopped after the scheduler has ended; before it works, Run waits for it.
func (r *Requests) Run(ctx context.Context, job JobID, note string) (sessions.Run, error) {
	answer := make(chan begun, 1)
	select {
	case r.runs <- request{ctx, job, note, answer}:
	case <-r.over:
		return sessions.Run{}, ErrStopped
	case <-ctx.Done():
		return sessions.Run{}, ctx.Err()
	}
	// The scheduler answers every request that it has taken, soon after its context has ended.
	b := <-answer
	return b.run, b.err
}

// close refuses all further requests.
func (r *Requests) close() { r.once.Do(func() { close(r.over) }) }
