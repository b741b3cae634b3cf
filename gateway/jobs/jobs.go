package jobs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/gateway/jobs/brief"
	"herald/gateway/jobs/provision"
	"herald/gateway/router"
	"herald/platforms"
	"herald/sessions"
)

// Platform is the name in the addresses and the session keys of runs: the chat is the job's id and the thread the run.
const Platform platforms.Name = "cron"

// Config is the part of the configuration that is read each time a run begins or ends.
type Config struct {
	Preflight, CatchUp, Retry bool
	// MaxParallel is how many runs there may be at once; 0 is no limit.
	MaxParallel int
	// Nudge is after how many failures in a row a job counts as one that somebody should look at; 0 takes the default.
	Nudge int
	// Keep is how many output files a job has; 0 keeps all.
	Keep int
}

// Metrics counts what jobs do.
type Metrics interface {
	// RunEnded counts the end of a run: how late it began and how long it took.
	RunEnded(kind sessions.RunKind, state sessions.RunState, late, took time.Duration)
	// Missed counts slots that have passed while nobody was there.
	Missed(slots int)
	// Looked notes that the scheduler has looked for due slots.
	Looked(at time.Time)
}

// Router brings the prompt of a run to its session.
type Router interface {
	Wake(ctx context.Context, w router.Wake, with func(tx sessions.Tx) error) error
}

// Outbox sends rows that are committed.
type Outbox interface {
	Take(rows ...*sessions.OutboxRow)
}

// Options are what Jobs work with. Those without a remark must be set.
type Options struct {
	// Ends writes down how runs end; it knows the store and the configuration.
	Ends *Ends
	// Folder follows the files that provide jobs.
	Folder  *provision.Folder
	Router  Router
	Outbox  Outbox
	Places  cron.Places
	Sources *Sources
	// Scripts run the scripts of jobs, Watcher looks at what they watch.
	Scripts *Scripts
	Watcher *Watcher
	Zone    func() *time.Location
	// Ready reports what of the profile keeps a task from running, such as a model without a key; nil: nothing.
	Ready func(ctx context.Context, t cron.Task) error
	// Check is Book's.
	Check func(ctx context.Context, t cron.Task) error
	Log   zerolog.Logger
}

// Jobs run the scheduled jobs of a profile.
type Jobs struct {
	o         Options
	ends      *Ends
	briefs    *brief.Writer
	scheduler *cron.Scheduler
	now       func() time.Time
	pulse     atomic.Int64 // when due slots were last looked for, or Run began, in Unix milliseconds; 0 before
	looks     atomic.Int64 // when they were last looked for; 0 before the first time

	stages *stages
	life   context.Context
	stop   context.CancelFunc
}

// New returns the jobs of a profile. Nothing runs before Run.
func New(o Options) *Jobs {
	j := &Jobs{o: o, ends: o.Ends, briefs: o.Ends.o.Briefs, now: o.Ends.o.Now, stages: newStages()}
	j.life, j.stop = context.WithCancel(context.Background())
	config := o.Ends.o.Config
	j.scheduler = cron.New(cron.Options{Store: o.Ends.o.Store, Zone: o.Zone, CatchUp: func() bool { return config().CatchUp },
		Start: j.start,
		Alive: j.alive, Lost: j.lost, Missed: j.missed, Claimed: j.claimed, Looked: j.looked, Requests: o.Ends.o.Requests, Now: j.now,
		Log: o.Log})
	return j
}

// claimed counts the slots that end without a run.
func (j *Jobs) claimed(run sessions.Run, missed int) {
	metrics := j.ends.o.Metrics
	if metrics == nil {
		return
	}
	switch run.State {
	case sessions.RunSkipped:
		metrics.RunEnded(run.Kind, run.State, 0, 0)
	case sessions.RunMissed:
		missed++
	}
	if missed > 0 {
		metrics.Missed(missed)
	}
}

// Run looks for due slots and follows the files of the home until ctx ends, and waits for scripts to be gone then.
func (j *Jobs) Run(ctx context.Context) error {
	defer func() {
		j.stop()
		j.stages.work.Wait()
		if err := j.o.Scripts.Close(); err != nil {
			j.o.Log.Warn().Err(err).Msg("cron: a script of a job could not be ended")
		}
	}()
	j.pulse.Store(j.now().UnixMilli())
	ctx, stop := context.WithCancel(ctx)
	var folder sync.WaitGroup
	folder.Go(func() { j.o.Folder.Run(ctx) })
	defer folder.Wait()
	defer stop()
	return j.scheduler.Run(ctx)
}

// Drain begins no more runs and waits until the scripts and monitors that run have ended, or ctx ends.
func (j *Jobs) Drain(ctx context.Context) error {
	j.ends.room.close()
	return j.stages.drain(ctx)
}

// Tick looks for due slots now, without waiting for the scheduler to do so, and returns when each of them has begun or has
// its end.
func (j *Jobs) Tick(ctx context.Context) error {
	_, err := j.scheduler.Look(ctx)
	return err
}
