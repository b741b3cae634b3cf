// Package terms says under which terms a chat is served: what the configuration, the choices of a conversation and a scheduled
// job mean for an address, in the form that turns and the router take. It reads and decides; it does nothing.
package terms

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/gateway/agent"
	"herald/gateway/config"
	"herald/gateway/jobs"
	"herald/gateway/model"
	"herald/gateway/workspace"
	"herald/platforms"
	"herald/sessions"
)

// Adapters finds the adapter that serves an account.
type Adapters interface {
	Adapter(platforms.Account) (platforms.Adapter, bool)
}

// Options is what Terms are made from.
type Options struct {
	// Config returns the configuration in force.
	Config    func() *config.Config
	Paths     config.Paths
	Store     sessions.Store
	Adapters  Adapters
	Workspace *workspace.Workspace
	// Resolve finds a file that a text names; see show.MediaPolicy.
	Resolve func(ctx context.Context, of sessions.Key, path string) (string, error)
	Rules   platforms.Rulebook
	Log     zerolog.Logger
	Now     func() time.Time
}

// Terms answers for every address of a profile. It is safe for concurrent use.
type Terms struct{ o Options }

// New returns the terms.
func New(o Options) *Terms { return &Terms{o} }

// Task returns what the job of a run's address does; ok is false elsewhere.
func (t *Terms) Task(at platforms.Address) (task cron.Task, ok bool) {
	task, ok, err := jobs.TaskAt(context.Background(), t.o.Store, at)
	if err != nil {
		t.o.Log.Error().Err(err).Str("job", string(at.Chat)).Msg("cron: what a job does can't be read")
	}
	return task, ok
}

// platform returns the shared settings of a platform.
func (t *Terms) platform(name platforms.Name) config.Platform {
	return t.o.Config().Platforms.Shared(name)
}

// KeyOptions say how conversations are told apart.
func (t *Terms) KeyOptions() sessions.KeyOptions {
	cfg := t.o.Config()
	return sessions.KeyOptions{GroupPerUser: cfg.GroupSessionsPerUser, ThreadPerUser: cfg.ThreadSessionsPerUser, Rules: t.o.Rules}
}

// Origin is where an event comes from.
func (t *Terms) Origin(e platforms.Event) sessions.Origin {
	return sessions.OriginOf(e, t.KeyOptions())
}

// Dir is where a session's tools start.
func (t *Terms) Dir(s sessions.Session) string {
	if task, ok := t.Task(s.Origin.Address); ok && task.Workdir != "" {
		return task.Workdir
	}
	return t.o.Workspace.Dir(string(s.ID))
}

// Remembered returns what is kept in mind for a conversation: of the work, and of the person.
type Remembered func(sessions.Origin) (memory, user string)

// Prompt builds the system prompt of a new session.
func (t *Terms) Prompt(s sessions.Session, names []string, m model.Info, remembered Remembered) string {
	in := agent.PromptInput{Session: s, Tools: names, Model: m, Now: t.o.Now(), Instructions: t.o.Config().Agent.Instructions,
		Dir: t.o.Workspace.Start(), HidePeople: t.o.Config().Privacy.RedactPII}
	if soul, err := os.ReadFile(filepath.Join(t.o.Paths.Home, "SOUL.md")); err == nil && len(soul) < 64<<10 {
		in.Identity = string(soul)
	}
	in.Scheduled = jobs.IsRun(s.Origin.Address)
	in.Memory, in.User = remembered(s.Origin)
	return agent.Prompt(in)
}
