package tools

import (
	"context"
	"encoding/json"
	"time"
)

// CallID is the id of one tool call. The model makes it; it is unique within its turn.
type CallID string

// Caller says on whose behalf a call runs. Handlers know this from here alone, never from global state.
type Caller struct {
	Profile string
	Session string // sessions.ID
	Key     string // sessions.Key
	Turn    int64  // 0 outside a turn
	// Platform, Account, Chat, Thread and User are where the request came from.
	Platform, Account, Chat, Thread, User string
	// Source says who makes the call: "model", "command", "kernel", "subagent", "cron".
	Source string
	// Task is the id of the piece of work within the session that asks, "sa-…" for a subagent; empty in the
	// conversation itself.
	Task string
	// Unattended is true when nobody can answer a question now (cron, webhook).
	Unattended bool
	// Tools is the set of names that the session may use; nil means all registered ones.
	Tools []string
	// Dir is the session's working directory, absolute; relative paths resolve against it.
	Dir string
}

// Call is one request to run a tool.
type Call struct {
	ID   CallID
	Name string
	// Args is what the model wrote. Dispatch coerces and validates it before the handler sees it.
	Args   json.RawMessage
	Caller Caller
}

// Result is the outcome of a call. Content goes to the model.
type Result struct {
	// Content is text for the model, JSON in most tools. Never empty after Dispatch.
	Content string
	// IsError says that Content describes a failure.
	IsError bool
	// Media are files that belong to the result, for models that see and for chats.
	Media []Media
	// Summary is one short line for progress bubbles and the ledger; empty takes a default.
	Summary string
	// Exit is how the call ended: "ok", "error", "invalid", "denied", "timeout", "cancelled", "unknown".
	Exit string
	// Truncated is true when Content is a pointer to, or a part of, the full result; Stored is its path.
	Truncated bool
	Stored    string
	Took      time.Duration
}

// Media is one file of a result.
type Media struct {
	Path string
	MIME string
}

// Handler runs a call whose arguments are valid. It honours ctx: a cancelled call returns soon and leaves
// no process behind. An error becomes an error result; a handler that wants to choose the text returns a
// Result with IsError.
type Handler func(ctx context.Context, call Call) (Result, error)

// Parallel says what may run beside a call.
type Parallel int

const (
	// Sequential calls run alone: nothing before or after them in the batch overlaps.
	Sequential Parallel = iota
	// Safe calls run beside any other safe or non-overlapping call.
	Safe
	// PathScoped calls run beside others whose paths do not overlap.
	PathScoped
	// Barrier calls never run beside anything, and nothing of the batch starts before they end.
	Barrier
)

// Spec declares a tool. It is a value: registering it twice with the same toolset replaces it.
type Spec struct {
	Name string
	// Toolset is the group that people switch the tool on and off with; the first tool that names one makes it.
	Toolset     string
	Description string
	// Parameters is a JSON Schema of type object; nil means no parameters. Register refuses anything else.
	Parameters json.RawMessage
	// ReadOnly calls change nothing: after a crash they may simply run again.
	ReadOnly bool
	// ChangesFiles calls may change any file of the session's directory (a command). A tool that changes only what Paths
	// names says so there.
	ChangesFiles bool
	// Resumable calls find their own durable state again by call id (a question that waits for an
	// answer): after a crash they run again without repeating an effect.
	Resumable bool
	Parallel  Parallel
	// Paths returns the paths a PathScoped call touches; write says whether it changes them. ok false
	// means that the paths are not known, which makes the call a barrier.
	Paths func(call Call) (paths []string, write, ok bool)
	// Check reports whether the tool can be used now; nil means always. See Registry for caching.
	Check func(ctx context.Context) bool
	// Describe, when set, changes the description and parameters at each listing; an error keeps the static ones.
	Describe func() (description string, parameters json.RawMessage, err error)
	// Deferrable tools may be left out of the prompt and found by search.
	Deferrable bool
	// Core tools are part of the toolset "core" and are never deferred.
	Core bool
	// Attended tools need a person in the chat: runs of scheduled jobs don't get them.
	Attended bool
	// Timeout bounds one call. 0 takes the bus's default; negative means the handler bounds itself.
	Timeout time.Duration
	// MaxResult is how many characters of a result go to the model: 0 takes the default of 100,000,
	// negative sets no limit.
	MaxResult int
	// Emoji is shown before the tool's name in progress bubbles; empty takes "⚡".
	Emoji string
	// Preview names the argument that progress bubbles show.
	Preview string
	// Hidden tools never show progress (clarify).
	Hidden bool
}

// Tool is a declaration with what runs it.
type Tool struct {
	Spec
	Run Handler
}
