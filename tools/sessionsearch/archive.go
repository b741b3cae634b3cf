// Package sessionsearch is the tool that looks into past conversations. It promises that nobody's search
// reads another person's conversation: what may be read follows from where the call comes from alone, and a
// call whose origin says nothing reads nothing. It uses no model.
package sessionsearch

import (
	"context"
	"errors"
	"time"
)

// ErrNotFound is what an Archive answers for a session or row that does not exist or is out of scope. The
// two look the same, so that ids can't be probed.
var ErrNotFound = errors.New("not found")

// Scope says whose conversations may be read. The zero Scope reads nothing.
type Scope struct {
	// Key reads the sessions of one conversation.
	Key string
	// Platform and User, when both are set, add the direct conversations of that person there.
	Platform, User string
}

// Archive is the store of past conversations. Every method keeps to the scope.
type Archive interface {
	// Search finds rows by words (all must match; "phrases", OR, NOT, prefix*), best first or by time.
	Search(ctx context.Context, scope Scope, q Query) ([]Hit, error)
	// Session returns one session.
	Session(ctx context.Context, scope Scope, session string) (Session, error)
	// Around returns the row with at most before rows before and after rows behind it, in order.
	Around(ctx context.Context, scope Scope, session string, row int64, before, after int) ([]Message, error)
	// Read returns at most limit rows behind the row after (0: from the start), in order.
	Read(ctx context.Context, scope Scope, session string, after int64, limit int) ([]Message, error)
	// Last returns the last limit rows, in order.
	Last(ctx context.Context, scope Scope, session string, limit int) ([]Message, error)
	// Recent lists sessions, newest first.
	Recent(ctx context.Context, scope Scope, limit int) ([]Session, error)
}

// Order says how hits come.
type Order string

// The orders of hits.
const (
	Best   Order = ""
	Newest Order = "newest"
	Oldest Order = "oldest"
)

// Query is a search.
type Query struct {
	Text  string
	Roles []string // "user", "assistant", "tool"
	Order Order
	Limit int // rows
}

// Session describes one session.
type Session struct {
	ID    string
	Title string
	// Source is where it was held: a platform's name, or "cron", "subagent", "tool".
	Source string
	// Lineage is the same for sessions that continue one another; empty is the session alone.
	Lineage  string
	Started  time.Time
	Updated  time.Time
	Messages int
}

// Message is one row.
type Message struct {
	Row  int64
	Role string
	Text string
	Tool string // the tool's name, for role "tool"
	At   time.Time
	// Sender names the author in conversations of several people.
	Sender string
	// Summary rows replace older ones.
	Summary bool
}

// Hit is one row that matches.
type Hit struct {
	Session Session
	Message Message
	// Snippet is the part that matches.
	Snippet string
}
