package sessions

import (
	"encoding/json"
	"time"

	"herald/platforms"
)

// InboxState is where an accepted event stands.
type InboxState string

// The states of an inbox row. new and claimed survive a restart as work to do; the others are final.
const (
	InboxNew     InboxState = "new"     // waits for a turn
	InboxClaimed InboxState = "claimed" // a turn has taken it
	InboxDone    InboxState = "done"    // answered, or its command has run
	InboxDropped InboxState = "dropped" // not acted on; Reason says why
)

// InboxItem is one accepted event.
type InboxItem struct {
	ID     InboxID
	Key    Key
	Event  platforms.Event
	State  InboxState
	Turn   TurnID
	Reason string
	At     time.Time // when it was committed
}

// TurnState is where a turn stands.
type TurnState string

// The states of a turn. running survives a restart as work to go on with; the others are final.
const (
	TurnRunning     TurnState = "running"
	TurnDone        TurnState = "done"        // answered
	TurnFailed      TurnState = "failed"      // ended with a visible reason
	TurnStopped     TurnState = "stopped"     // a person stopped it
	TurnParked      TurnState = "parked"      // crashed too often
	TurnInterrupted TurnState = "interrupted" // replaced by a newer message
)

// Turn is one run of the agent for one or more inbox rows.
type Turn struct {
	ID      TurnID
	Session ID
	Key     Key
	State   TurnState
	// Attempts counts process starts that ran this turn: 1 for a turn that never saw a crash.
	Attempts int
	// Address and ReplyTo are copied from the newest inbox row of the turn (P5).
	Address platforms.Address
	ReplyTo platforms.MessageID
	Reason  string
	Began   time.Time
	Ended   time.Time
}

// CallState is where a tool call of a turn stands.
type CallState string

// The states of a tool call.
const (
	CallStarted  CallState = "started"  // may have had an effect
	CallFinished CallState = "finished" // its result is in the transcript
)

// CallRow is the journal of one tool call.
type CallRow struct {
	Turn    TurnID
	Call    string // the model's call id
	Name    string
	State   CallState
	Started time.Time
	Ended   time.Time
}

// OutboxKind says what a row is for.
type OutboxKind string

// The kinds of outbox row.
const (
	OutFinal   OutboxKind = "final"   // (a chunk of) the answer of a turn
	OutPreview OutboxKind = "preview" // a growing answer that a final row will edit
	OutNotice  OutboxKind = "notice"  // a line from Herald itself: acks, errors, restart notes
	OutControl OutboxKind = "control" // the answer to a command
	OutPrompt  OutboxKind = "prompt"  // a question with buttons
	OutSend    OutboxKind = "send"    // sent by a person or a tool, not an answer
	OutBrief   OutboxKind = "brief"   // the output of a scheduled job
)

// OutboxState is where a message stands.
type OutboxState string

// The states of an outbox row. pending and attempting survive a restart as work to do; the others are
// final, except that unknown rows stay available to an explicit resend.
const (
	OutPending    OutboxState = "pending"
	OutAttempting OutboxState = "attempting" // handed to the platform; no answer yet
	OutSent       OutboxState = "sent"
	OutFailed     OutboxState = "failed"    // certainly not delivered and given up
	OutUnknown    OutboxState = "unknown"   // may have been delivered; surfaced once (P4)
	OutCancelled  OutboxState = "cancelled" // made pointless before it was sent
)

// OutboxRow is one message to deliver, or one edit.
type OutboxRow struct {
	ID      OutboxID
	Lane    string // Address.String(), or that with "#control" for rows that must not wait
	Kind    OutboxKind
	State   OutboxState
	Turn    TurnID
	Session ID
	Message platforms.Outgoing
	// Sent is the platform's id of the delivered message.
	Sent     platforms.MessageID
	Attempts int
	// NotBefore holds the row back (retry-after, backoff). Zero: at once.
	NotBefore time.Time
	Error     string
	Created   time.Time
	Updated   time.Time
}

// Value is a small named piece of durable state: a gate, a todo list, a pending prompt.
type Value struct {
	Space Space
	Name  string
	Data  json.RawMessage
	At    time.Time
}
