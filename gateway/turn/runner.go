package turn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/agent"
	"herald/gateway/delivery"
	"herald/gateway/model"
	"herald/gateway/turn/ask"
	"herald/gateway/turn/show"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
)

// Bus is what a turn needs of the dispatch bus.
type Bus interface {
	agent.Bus
	// Subscribe gives every event of every call until the returned function is called.
	Subscribe(func(tools.Event)) (cancel func())
}

// Catalog lists the tools that a session may use.
type Catalog interface {
	// Names returns the tools of a new session of this origin, sorted.
	Names(ctx context.Context, origin sessions.Origin) []string
	// Definitions returns what the model is offered for these names, in a byte-stable order.
	Definitions(ctx context.Context, names []string) []model.ToolDef
	// Spec returns a tool's declaration.
	Spec(name string) (tools.Spec, bool)
}

// Outbox is what a turn needs of delivery.
type Outbox interface {
	// Claim marks the first row as being sent already where its lane is free, so that the commit that keeps it
	// is also the one that begins its attempt. Take the rows after the commit, or Release them.
	Claim(rows []*sessions.OutboxRow)
	Release(rows []*sessions.OutboxRow)
	Take(rows ...*sessions.OutboxRow)
	Adopt(ctx context.Context, turn sessions.TurnID) error
	show.Outbox
}

// Settings are the parts of the configuration that a turn reads. Each turn reads it again.
type Settings struct {
	Limits        agent.Limits
	IdleLimit     time.Duration // no sign of life for so long ends a turn; 0 never
	IdleWarning   time.Duration
	StallNotice   time.Duration
	Reasoning     string
	MaxAttempts   int // process starts that may run one turn; more parks it
	MaxInboundLen int // bytes of text of one message that reach the model
	History       int // messages of a place's past that a first mention brings along; 0 none
	MaxMedia      int64
	MediaDir      string
	Media         show.MediaPolicy
	// ShowNarration shows answers such as "(silent)" as they are, in place of the notice that there is no answer.
	ShowNarration bool
	// HideWarnings keeps notices about a slow or stuck turn out of the chat.
	HideWarnings bool
	// CompactNotices says in the chat when the conversation is summarised.
	CompactNotices bool
	// NudgeEvery reminds the model to remember things when that many messages of people have passed without; 0 never.
	NudgeEvery int
	// MaxRows bounds how much of a conversation is loaded, the newest rows; 0 is all.
	MaxRows    int
	Timestamps bool // the model sees when messages were written
	// Pause is how long to wait before a further part of a long answer, by its length in characters; nil not at all.
	Pause func(chars int) time.Duration
	// Footer is what the line below an answer shows, in this order: "model", "context_pct", "latency", "cwd".
	Footer []string
}

// Channel is what the operator has set for one chat or thread.
type Channel struct {
	Model  string // used unless the chat has chosen one itself
	System string // in place of the session's prompt, for this turn alone
	Prompt string // behind it, for this turn alone
}

// Services is what a Runner works with.
type Services struct {
	// Runs is where the turns are found while they run; Asker is made with it.
	Runs     *Runs
	Asker    *ask.Asker
	Store    sessions.Store
	Bus      Bus
	Catalog  Catalog
	Outbox   Outbox
	Adapters delivery.Adapters
	// Printer speaks the language of a chat.
	Printer func(at platforms.Address) *locales.Printer
	// Model returns the model for a chat's override, "" for the configured one.
	Model func(override string) (model.Model, error)
	// Prompt builds the system prompt of a new session.
	Prompt func(ctx context.Context, s sessions.Session, names []string, m model.Info) string
	// Display and Settings read the configuration.
	Display  func(at platforms.Address, o sessions.Options) show.Display
	Settings func(at platforms.Address) Settings
	// Background takes the turns that no chat waits for; nil: there are none.
	Background Background
	// Origin says where a session of an event comes from.
	Origin func(e platforms.Event) sessions.Origin
	// Channel returns what is set for a place and the channel that it hangs in; nil: nothing is anywhere.
	Channel func(at platforms.Address, parent platforms.ChatID) Channel
	// Reminder is put behind a summary, so that what it says survives; nil: nothing is.
	Reminder func(ctx context.Context, s sessions.ID) string
	// ToolLog gets every finished tool call of a chat whose progress goes to the log; nil: it goes nowhere.
	ToolLog func(s sessions.ID, e tools.Event)
	// CacheSize and CacheIdle bound the transcripts kept in memory; 0 takes DefaultCacheSize and DefaultCacheIdle.
	CacheSize int
	CacheIdle time.Duration
	// Dir is the working directory of a session's tools.
	Dir func(s sessions.Session) string
	// Compacted is told that the older rows of a session are no longer before the model; nil tells nobody.
	Compacted func(s sessions.ID)
	// Redact removes secrets from text for people.
	Redact  func(string) string
	Profile string
	Metrics Metrics
	Log     zerolog.Logger
	Now     func() time.Time
}

// Metrics is told what turns do.
type Metrics interface {
	TurnEnded(platform platforms.Name, state sessions.TurnState, took time.Duration)
	ModelUsed(m model.Info, u model.Usage)
}

// Runner starts turns. It is safe for concurrent use; the caller sees to it that a key has one at a time.
type Runner struct {
	s     Services
	cache *cache
	// cooling holds an *agent.Cooldown for each session that has needed a summary.
	cooling sync.Map

	stage  *show.Stage
	cancel func()
	wg     sync.WaitGroup
	closed atomic.Bool
}

// NewRunner returns a runner that listens to the bus until Close.
func NewRunner(s Services) *Runner {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.CacheSize <= 0 {
		s.CacheSize = DefaultCacheSize
	}
	if s.CacheIdle <= 0 {
		s.CacheIdle = DefaultCacheIdle
	}
	r := &Runner{s: s, cache: newCache(s.CacheSize, cacheBytes)}
	r.stage = show.NewStage(show.Options{Outbox: s.Outbox, Adapters: s.Adapters, Printer: s.Printer, ToolLog: s.ToolLog, Redact: s.Redact,
		Log: s.Log, Now: s.Now})
	r.cache.idle, r.cache.now = s.CacheIdle, s.Now
	r.cancel = s.Bus.Subscribe(s.Runs.observe)
	return r
}

// Close cancels what runs, without a word to anybody, and waits: the turns stay on disk as running and the
// next process goes on with them.
func (r *Runner) Close() {
	r.closed.Store(true)
	r.s.Runs.cancel(errClosing)
	r.stage.Stop()
	r.wg.Wait()
	r.stage.Wait()
	r.cancel()
	r.cache.close()
}

// Invalidate forgets a session's cached rows: somebody else has changed its transcript.
func (r *Runner) Invalidate(id sessions.ID) { r.cache.drop(id) }

// Running returns the turn of that id while it runs.
func (r *Runner) Running(id sessions.TurnID) (*Run, bool) { return r.s.Runs.Get(id) }

// Active returns how many turns run.
func (r *Runner) Active() int { return r.s.Runs.Active() }
