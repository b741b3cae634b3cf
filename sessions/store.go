package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"herald/platforms"
)

// Edge names a commit: the kind of transaction a caller runs. The crash matrix kills the process before
// and after each of them, so every Update names one of the constants below.
type Edge string

// The commit edges of accept, turn and delivery, and of what people do beside them.
const (
	EdgeAccept      Edge = "accept"       // events into the inbox
	EdgeAcceptBegin Edge = "accept.begin" // events into the inbox, and the turns that begin with them
	EdgeTurnBegin   Edge = "turn.begin"   // a turn claims inbox rows, the user row is appended
	EdgeTurnAbsorb  Edge = "turn.absorb"  // a running turn takes a correction or a steer
	EdgeTurnResume  Edge = "turn.resume"  // a crashed turn is picked up again
	EdgeTurnAnswer  Edge = "turn.answer"  // a model answer with tool calls enters the transcript
	EdgeToolStart   Edge = "tool.start"   // a call is about to run
	EdgeToolFinish  Edge = "tool.finish"  // a call's result enters the transcript
	EdgeTurnCompact Edge = "turn.compact" // a summary replaces older rows
	EdgeTurnFinish  Edge = "turn.finish"  // the answer enters transcript and outbox, the turn ends
	EdgePreview     Edge = "preview"      // a streamed preview is about to be sent, or was
	EdgeSend        Edge = "send.begin"   // an outbox row is about to be handed to the platform
	EdgeReceipt     Edge = "send.receipt" // its outcome
	EdgeCommand     Edge = "command"      // a command's effect, its answer and its inbox row
	EdgeDrop        Edge = "drop"         // an inbox row ends without a turn
	EdgeQueue       Edge = "queue"        // a person's message to a chat enters the outbox (send, notices)
	EdgeState       Edge = "state"        // a Value
	EdgeLog         Edge = "log"          // a browser chat entry
	EdgeKeep        Edge = "housekeeping" // retention, FTS
)

// Edges lists all of them, in the order of a message's life.
var Edges = []Edge{EdgeAccept, EdgeAcceptBegin, EdgeTurnBegin, EdgeTurnAbsorb, EdgeTurnResume, EdgeTurnAnswer, EdgeToolStart,
	EdgeToolFinish, EdgeTurnCompact, EdgeTurnFinish, EdgePreview, EdgeSend, EdgeReceipt, EdgeCommand, EdgeDrop,
	EdgeQueue, EdgeState, EdgeLog, EdgeKeep}

// LaterDelay is how long a Store.Later waits at most for a commit to share. It bounds how many receipts a crash may lose.
const LaterDelay = 20 * time.Millisecond

// The errors of a Store.
var (
	// ErrNotFound: no such session, route, turn, row or value.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the state was not the expected one (a title in use, a session that moved on).
	ErrConflict = errors.New("conflict")
	// ErrFull: the disk or the database is full; nothing was kept.
	ErrFull = errors.New("the disk is full")
	// ErrReadOnly: the store can't be written (permissions, a read-only file system).
	ErrReadOnly = errors.New("the store is read-only")
	// ErrCorrupt: the database file is damaged.
	ErrCorrupt = errors.New("the database is damaged")
	// ErrClosed: the store is closed or closing.
	ErrClosed = errors.New("the store is closed")
)

// Unwritable reports whether an error means that nothing can be written now, whatever it is: the disk is full, the store is
// read-only or damaged. What failed so is tried again, for it is not at fault.
func Unwritable(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrCorrupt)
}

// Store is one profile's durable state.
type Store interface {
	// Update runs fn in a transaction and returns after it is on disk. Updates that wait together share
	// one commit, each in a savepoint of its own: an error of one undoes only that one. fn is quick, does no I/O of
	// its own, and is run once. A cancelled ctx stops the wait before fn has begun; once begun it is finished.
	Update(ctx context.Context, edge Edge, fn func(Tx) error) error
	// Later queues fn and does not wait: it shares the commit of the next Update, or gets one of its own LaterDelay after
	// the call. Everything runs in the order of the calls, so a later Update sees what fn wrote; a View does when done was
	// called. It is for what nobody waits for and what may be unknown after a crash. done, if not nil, gets the outcome;
	// it is called by the store's own goroutine, so it is quick and calls no method of the Store.
	Later(edge Edge, fn func(Tx) error, done func(error))
	// View runs fn on a consistent snapshot that includes every finished Update.
	View(ctx context.Context, fn func(View) error) error
}

// View reads.
type View interface {
	Jobs

	// Route returns the key's current session and options; ErrNotFound before its first one.
	Route(key Key) (Route, error)
	// Session returns one session; ErrNotFound.
	Session(id ID) (Session, error)
	// Sessions lists, newest first by UpdatedAt.
	Sessions(q SessionQuery) ([]Session, error)
	// Transcript returns the session's rows in order: the active ones, or all with all set. after skips rows up to
	// and including that id; limit 0 means all.
	Transcript(id ID, all bool, after RowID, limit int) ([]Message, error)
	// Around returns rows of the session's active conversation around one row: at most before and after it.
	Around(id ID, row RowID, before, after int) ([]Message, error)
	// Search finds rows by words; see SearchQuery.
	Search(q SearchQuery) ([]SearchHit, error)

	// InboxItem returns one row; ErrNotFound.
	InboxItem(id InboxID) (InboxItem, error)
	// InboxOpen returns rows in state new, and those claimed by turns that still run, in arrival order.
	InboxOpen() ([]InboxItem, error)
	// InboxOf returns the rows that a turn claimed, in arrival order.
	InboxOf(turn TurnID) ([]InboxItem, error)

	// Turn returns one turn; ErrNotFound.
	Turn(id TurnID) (Turn, error)
	// TurnsRunning returns the turns in state running, oldest first.
	TurnsRunning() ([]Turn, error)
	// Calls returns the journal of a turn's tool calls in the order they started.
	Calls(turn TurnID) ([]CallRow, error)

	// OutboxOpen returns pending and attempting rows in id order.
	OutboxOpen() ([]OutboxRow, error)
	// OutboxOf returns the rows of a turn in id order.
	OutboxOf(turn TurnID) ([]OutboxRow, error)
	// OutboxRow returns one row; ErrNotFound.
	OutboxRow(id OutboxID) (OutboxRow, error)

	// Value reads a value; ErrNotFound. Values lists a space by name.
	Value(space Space, name string) (Value, error)
	Values(space Space) ([]Value, error)

	// Counts returns what status pages show.
	Counts() (Counts, error)
}

// Tx reads and writes.
type Tx interface {
	View
	JobsTx

	// PutInbox keeps an event. duplicate is true, with the first row's id, when (platform, account, event
	// id) is known; then nothing changes. A row in state dropped keeps no content: only ids and Reason.
	PutInbox(item InboxItem) (id InboxID, duplicate bool, err error)
	// SetInbox moves rows on.
	SetInbox(state InboxState, turn TurnID, reason string, ids ...InboxID) error

	// OpenSession returns the key's current session, and makes one (and the route) when there is none. A session that was
	// made before anybody spoke in it (Origin.User is empty) learns from origin what it does not know.
	OpenSession(key Key, origin Origin, now time.Time) (Session, error)
	// NewSession ends the key's current session with the reason, if there is one, and makes a new one. Options.Model
	// is cleared, the other options stay.
	NewSession(key Key, origin Origin, reason string, now time.Time) (Session, error)
	// SwitchSession makes an existing session the key's current one. expected, when set, must be the
	// current one, else ErrConflict. Options.Model is cleared.
	SwitchSession(key Key, to, expected ID, now time.Time) (Session, error)
	// EndSession ends the key's current session, if there is one, and forgets the key with its options.
	EndSession(key Key, reason string, now time.Time) error
	// SetOptions replaces the options of a key.
	SetOptions(key Key, o Options) error
	// SetTitle names a session; ErrConflict when another one has the title.
	SetTitle(id ID, title string) error
	// SetPrompt fixes a session's system prompt and tool names.
	SetPrompt(id ID, prompt string, tools []string) error
	// AddUsage adds counts; LastPrompt and LastContext replace.
	AddUsage(id ID, u Usage) error

	// Append adds rows, sets their ids in place and touches the sessions.
	Append(rows ...*Message) error
	// Undo marks the newest n user turns of the session inactive (the user row and all after it, but for a job's output,
	// which stays in the chat) and returns the marked rows, oldest first. Fewer turns than n: all of them.
	Undo(id ID, n int) ([]Message, error)
	// Compact marks the active rows up to and including upTo as compacted and inserts summary before the rest. keep lists
	// rows that stay active all the same.
	Compact(id ID, upTo RowID, keep []RowID, summary *Message) error

	// BeginTurn adds a running turn with one attempt.
	BeginTurn(t *Turn) error
	// SetTurn ends a turn or renames its reason; ended is set for final states.
	SetTurn(id TurnID, state TurnState, reason string, now time.Time) error
	// RetryTurn adds one attempt and returns the new count.
	RetryTurn(id TurnID) (int, error)
	// RouteTurn replaces a turn's address and reply target (a newer inbox row joined it).
	RouteTurn(id TurnID, at platforms.Address, replyTo platforms.MessageID) error
	// StartCall and FinishCall journal a tool call. A second start of the same call is ErrConflict.
	StartCall(turn TurnID, call, name string, now time.Time) error
	FinishCall(turn TurnID, call string, now time.Time) error

	// PutOutbox adds rows and sets their ids in place. A row without Lane gets its address's lane, one
	// without State becomes pending, one without Nonce gets a random one.
	PutOutbox(rows ...*OutboxRow) error
	// SetOutbox stores State, Sent, Attempts, NotBefore, Error and Message of a row.
	SetOutbox(row OutboxRow) error

	// SetValue writes a value; nil data deletes it.
	SetValue(space Space, name string, data json.RawMessage, now time.Time) error

	// Savepoint runs fn, and its error or panic undoes what fn wrote and nothing else of the transaction: for a step that
	// may fail without the others. It returns fn's error, a panic as an error. A full or damaged disk ends the whole
	// transaction all the same.
	Savepoint(fn func() error) error
}

// SessionQuery selects sessions. Zero fields select all.
type SessionQuery struct {
	Key      Key
	Platform platforms.Name
	Account  platforms.AccountID
	Chat     platforms.ChatID
	// User limits to sessions whose key includes or whose origin names that person.
	User    platforms.UserID
	Title   string // exact
	Live    bool   // only current ones
	Limit   int    // 0: 100
	Offset  int
	TitleIn string // part of the title, case-insensitive
}

// SearchQuery is a full-text search over transcripts. Text takes words (all must match), "phrases", OR,
// NOT (or -word) and prefix*; anything else is taken literally, so no input is a syntax error.
type SearchQuery struct {
	Text string
	// Scope limits the search by origin: nobody's search reads another person's conversation. A zero
	// scope finds nothing; All lifts the limit for an operator.
	Scope Scope
	Roles []Role // nil: user and assistant
	// Newest orders by time instead of by rank.
	Newest bool
	Limit  int // 0: 20, at most 300
}

// Scope says whose conversations may be read.
type Scope struct {
	All bool
	// Key reads the sessions of one key (a shared room).
	Key Key
	// User reads the direct conversations of one person on one platform, and what Key gives.
	Platform platforms.Name
	User     platforms.UserID
}

// SearchHit is one row that matches.
type SearchHit struct {
	Message Message
	Session Session
	// Snippet is the matching part with the matches between "«" and "»".
	Snippet string
	Rank    float64 // smaller is better
}

// Counts is the size of a store.
type Counts struct {
	Sessions, Live, Messages              int64
	InboxNew, TurnsRunning, OutboxPending int64
	OutboxUnknown                         int64
	Bytes                                 int64 // of the database file
}
