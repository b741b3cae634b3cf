package process

import (
	"context"
	"strings"
	"time"

	"herald/tools"
	"herald/tools/sandbox"
)

// State is where a process stands.
type State string

// The states of a process. Starting and Running survive a restart as processes to take up again.
const (
	Starting State = "starting" // written down, not known to run yet
	Running  State = "running"
	Exited   State = "exited"
	Killed   State = "killed" // by the agent, by a person, or by the end of the daemon
	Lost     State = "lost"   // it is gone and nobody saw how
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s == Exited || s == Killed || s == Lost }

// Owner is whose process it is and where news of it go: copied from the call that started it.
type Owner struct {
	Session  string `json:"session"`
	Key      string `json:"key,omitempty"`
	Platform string `json:"platform,omitempty"`
	Account  string `json:"account,omitempty"`
	Chat     string `json:"chat,omitempty"`
	Thread   string `json:"thread,omitempty"`
	User     string `json:"user,omitempty"`
	Task     string `json:"task,omitempty"` // of a subagent: "sa-…"
}

// OwnerOf returns the owner of what a caller starts.
func OwnerOf(c tools.Caller) Owner {
	return Owner{Session: c.Session, Key: c.Key, Platform: c.Platform, Account: c.Account, Chat: c.Chat, Thread: c.Thread, User: c.User,
		Task: c.Task}
}

// child reports whether a subagent started it.
func (o Owner) child() bool { return strings.HasPrefix(o.Task, "sa-") }

// Record is what is kept of a process on disk: no output.
type Record struct {
	ID      string    `json:"id"`
	Owner   Owner     `json:"owner"`
	Command string    `json:"command"` // without secrets
	Dir     string    `json:"dir,omitempty"`
	TTY     bool      `json:"tty,omitempty"`
	State   State     `json:"state"`
	Exit    *int      `json:"exit,omitempty"` // nil while it runs, and when nobody saw it
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	// Notify asks for news of the end. Told is true when they were given, or are not wanted any more.
	Notify bool        `json:"notify,omitempty"`
	Told   bool        `json:"told,omitempty"`
	Watch  *Watch      `json:"watch,omitempty"`
	Ref    sandbox.Ref `json:"ref"`
}

// News is something to tell a session about its process.
type News struct {
	// ID is never used again, so that news that were delivered once are not delivered a second time.
	ID    string
	Owner Owner
	Text  string // for the model; without secrets
	// Process is what they are about, as it stands: running where a line was printed that is watched for. Its ID is
	// empty where they are about no single one. Output are the lines, or the end of the output; without secrets.
	Process View
	Output  string
}

// Store keeps records. The gateway has the one over the profile's database.
type Store interface {
	// Load returns all records.
	Load(ctx context.Context) ([]Record, error)
	// Save keeps a record and gives the news to their session, both or neither.
	Save(ctx context.Context, r Record, news ...News) error
	// Tell gives news that belong to no single process.
	Tell(ctx context.Context, n News) error
	// Delete removes a record; one that is not there is no error.
	Delete(ctx context.Context, id string) error
}
