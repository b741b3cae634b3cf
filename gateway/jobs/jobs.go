package jobs

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/gateway/router"
	"herald/platforms"
	"herald/sessions"
)

// Platform is the name in the addresses and the session keys of runs: the chat is the job's id and the thread the run.
const Platform platforms.Name = "cron"

// Config is what a run reads of the configuration, anew each time.
type Config struct {
	Mirror, Wrap, Preflight, CatchUp, Retry bool
	// Quiet asks platforms for no sound.
	Quiet bool
	// MaxParallel is how many runs there may be at once; 0 is no limit.
	MaxParallel int
	// Nudge is after how many failures in a row a job's notice suggests to look at it; 0 is never.
	Nudge int
	// Keep is how many output files a job has; 0 keeps all.
	Keep int
	// InChannel reports whether briefs of a platform are continued in the channel and not in a thread.
	InChannel func(platforms.Name) bool
}

// Texts says what people are told, in the language of the place.
type Texts interface {
	// Frame is what stands above a brief and below it; answered says that a reply is understood.
	Frame(at platforms.Address, job cron.Job, answered bool) (title, footer string)
	// Failed tells that a run has failed, and why; nudge suggests to look at a job that fails again and again.
	Failed(at platforms.Address, job cron.Job, reason string, streak int, nudge bool) string
	// Blocked tells that a job can't run before something is put right. It is told once.
	Blocked(at platforms.Address, job cron.Job, reason string) string
	// Missed tells that a one-shot job's time has passed while nobody was there.
	Missed(at platforms.Address, job cron.Job, slot time.Time) string
	// Refused tells of a file that was not sent.
	Refused(at platforms.Address, name, reason string) string
}

// Metrics is told what jobs do.
type Metrics interface {
	// RunEnded tells the end of a run: how late it began and how long it took.
	RunEnded(kind sessions.RunKind, state sessions.RunState, late, took time.Duration)
	// Missed tells that slots have passed while nobody was there.
	Missed(slots int)
	// Delivered tells what became of a brief at one place, Mirrored how it became part of a conversation.
	Delivered(platform platforms.Name, state sessions.OutboxState)
	Mirrored(kind string)
	// Looked tells that the scheduler has looked for due slots.
	Looked(at time.Time)
}

// Router brings the prompt of a run to its session.
type Router interface {
	Wake(ctx context.Context, w router.Wake, with func(tx sessions.Tx) error) error
}

// Options are what Jobs work with.
type Options struct {
	Store  sessions.Store
	Router Router
	// Account names the profile in the addresses of runs.
	Account platforms.AccountID
	Key     func(at platforms.Address) sessions.Key
	// KeyOptions say how the rooms of several people are split into conversations.
	KeyOptions func() sessions.KeyOptions
	// Describe tells what events from a place carry; see platforms.Describer. nil: nobody knows.
	Describe func(ctx context.Context, at platforms.Address) (platforms.Room, error)
	Places   cron.Places
	Config   func() Config
	Zone     func() *time.Location
	Texts    Texts
	Metrics  Metrics // nil: nobody is told
	// Render writes Markdown for a place, in as many messages as it needs.
	Render func(at platforms.Address, markdown string) []platforms.Text
	// Attach takes the files out of a text that a run's session wrote, for a place: those that may go there, and why
	// others may not, by name. Strip only takes them out.
	Attach func(ctx context.Context, of sessions.Key, text string, at platforms.Address) (rest string, files []platforms.Attachment, refused map[string]string)
	Strip  func(text string) string
	// Take queues rows that are committed.
	Take func(rows ...*sessions.OutboxRow)
	// Ready reports what of the profile keeps a task from running, such as a model without a key; nil: nothing.
	Ready func(ctx context.Context, t cron.Task) error
	// Check is Book's: what can't be meant, when a job is made.
	Check func(ctx context.Context, t cron.Task) error
	// Scripts run what jobs run beside or in place of an agent, Watcher looks at what they watch. Without them jobs can
	// be made and looked at, and not be run.
	Scripts *Scripts
	Watcher *Watcher
	Redact  func(string) string
	// Home is the profile's home, SkillsDir the one of its skills.
	Home, SkillsDir string
	Log             zerolog.Logger
	Now             func() time.Time
}

// Jobs are the scheduled jobs of a profile.
type Jobs struct {
	o         Options
	book      *cron.Book
	scheduler *cron.Scheduler
	provision *Provision
	pulse     atomic.Int64 // when due slots were last looked for, or Run began, in Unix milliseconds; 0 before
	looks     atomic.Int64 // when they were last looked for; 0 before the first time

	mu      sync.Mutex
	running int                     // runs that have begun and not ended in this process
	staged  map[sessions.RunID]bool // those whose script or monitor runs now
	closing bool                    // nothing begins any more
	stages  sync.WaitGroup
	life    context.Context
	stop    context.CancelFunc
}

// New returns the jobs of a store. Nothing runs before Run.
func New(o Options) *Jobs {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Scripts == nil {
		o.Scripts = NewScripts(ScriptOptions{Dir: filepath.Join(o.Home, ScriptsDir), Timeout: func() time.Duration { return 0 }})
	}
	j := &Jobs{o: o, staged: map[sessions.RunID]bool{}}
	j.life, j.stop = context.WithCancel(context.Background())
	j.scheduler = cron.New(cron.Options{Store: o.Store, Zone: o.Zone, CatchUp: func() bool { return o.Config().CatchUp }, Start: j.start,
		Alive: j.alive, Lost: j.lost, Missed: j.missed, Retry: func() bool { return o.Config().Retry }, Claimed: j.claimed, Looked: j.looked, Now: o.Now, Log: o.Log})
	j.book = cron.NewBook(cron.BookOptions{Store: o.Store, Zone: o.Zone, Check: o.Check, Changed: j.scheduler.Poke, Now: o.Now})
	j.provision = NewProvision(ProvisionOptions{Home: o.Home, Book: j.book, Platforms: platformsOf(o.Places), Redact: o.Redact, Log: o.Log, Now: o.Now})
	return j
}

// platformsOf asks places for the platforms that run; nil asks nobody.
func platformsOf(places cron.Places) func() []platforms.Name {
	if places == nil {
		return nil
	}
	return places.Platforms
}

// claimed counts the slots that end without a run.
func (j *Jobs) claimed(run sessions.Run, missed int) {
	if j.o.Metrics == nil {
		return
	}
	switch run.State {
	case sessions.RunSkipped:
		j.o.Metrics.RunEnded(run.Kind, run.State, 0, 0)
	case sessions.RunMissed:
		missed++
	}
	if missed > 0 {
		j.o.Metrics.Missed(missed)
	}
}

func (j *Jobs) looked(at time.Time) {
	j.looks.Store(at.UnixMilli())
	j.pulse.Store(at.UnixMilli())
	if j.o.Metrics != nil {
		j.o.Metrics.Looked(at)
	}
}

// Book makes and changes jobs.
func (j *Jobs) Book() *cron.Book { return j.book }

// Run looks for due slots and follows the files of cron.d until ctx ends, and waits for scripts to be gone then.
func (j *Jobs) Run(ctx context.Context) error {
	defer func() {
		j.stop()
		j.stages.Wait()
		if err := j.o.Scripts.Close(); err != nil {
			j.o.Log.Warn().Err(err).Msg("cron: a script of a job could not be ended")
		}
	}()
	j.pulse.Store(j.o.Now().UnixMilli())
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.provision.Run(ctx)
	}()
	defer func() {
		stop()
		<-done
	}()
	return j.scheduler.Run(ctx)
}

// Drain begins no more runs and waits until the scripts and monitors that run have ended, or ctx ends.
func (j *Jobs) Drain(ctx context.Context) error {
	j.mu.Lock()
	j.closing = true
	j.mu.Unlock()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		j.mu.Lock()
		n := len(j.staged)
		j.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Look makes the scheduler look for due slots now.
func (j *Jobs) Look() { j.scheduler.Poke() }

// Is implements turn.Background.
func (j *Jobs) Is(at platforms.Address) bool { return at.Platform == Platform }

// ErrRunning refuses to run a job that runs.
var ErrRunning = errors.New("the job is running already")

// Trigger runs a job now, paused or not, beside its plan. note is added to the prompt of this run alone. It returns
// when the run has begun; ErrRunning when one goes on.
func (j *Jobs) Trigger(ctx context.Context, id cron.JobID, note string) (sessions.Run, error) {
	run, err := j.scheduler.Trigger(ctx, id, note)
	if errors.Is(err, cron.ErrBusy) {
		err = ErrRunning
	}
	return run, err
}
