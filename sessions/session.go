package sessions

import (
	"encoding/json"
	"time"

	"herald/platforms"
)

// Origin is where a session comes from: the room and, in rooms that are split by person, the person.
type Origin struct {
	Address    platforms.Address  `json:"address"`
	ChatType   platforms.ChatType `json:"chat_type"`
	Scope      platforms.ScopeID  `json:"scope,omitempty"`
	ParentChat platforms.ChatID   `json:"parent_chat,omitempty"`
	ChatName   string             `json:"chat_name,omitempty"`
	Topic      string             `json:"topic,omitempty"`
	User       platforms.UserID   `json:"user,omitempty"`
	UserAlt    platforms.UserID   `json:"user_alt,omitempty"`
	UserName   string             `json:"user_name,omitempty"`
	// Shared is true when several people talk in this one session.
	Shared bool `json:"shared,omitempty"`
}

// Session is one stretch of conversation.
type Session struct {
	ID     ID
	Key    Key
	Origin Origin
	// Title is unique among sessions when set; at most 100 characters.
	Title string
	// SystemPrompt and Tools are fixed by the session's first turn, so that the prompt stays byte-stable.
	// Empty before it.
	SystemPrompt string
	Tools        []string
	// Parent is the session this one continues or branches from; empty for none.
	Parent    ID
	CreatedAt time.Time
	UpdatedAt time.Time
	// EndedAt is zero while the session is its key's current one.
	EndedAt   time.Time
	EndReason string
	Usage     Usage
	// Messages counts all transcript rows, marked ones included.
	Messages int
}

// Usage counts tokens and calls. It only grows.
type Usage struct {
	Calls       int64 `json:"calls"`
	Input       int64 `json:"input"`
	Output      int64 `json:"output"`
	CacheRead   int64 `json:"cache_read"`
	CacheWrite  int64 `json:"cache_write"`
	Reasoning   int64 `json:"reasoning"`
	ToolCalls   int64 `json:"tool_calls"`
	LastPrompt  int64 `json:"last_prompt"`  // input tokens of the newest model call: set, not added
	LastContext int64 `json:"last_context"` // the model's context window at that call: set, not added
}

// Route binds a key to its current session and keeps what the people of that chat chose.
type Route struct {
	Key     Key
	Session ID
	Options Options
}

// Options are choices of a chat that survive a restart. The zero value means: as configured.
type Options struct {
	// Busy is "interrupt", "queue" or "steer".
	Busy string `json:"busy,omitempty"`
	// Progress is "off", "new", "all", "verbose" or "log".
	Progress string `json:"progress,omitempty"`
	// Model overrides the configured model; cleared by /new and /resume.
	Model string `json:"model,omitempty"`
}

// Role is who speaks in a transcript row.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Kind marks rows that are more than plain conversation.
type Kind string

// The kinds of transcript row.
const (
	KindPlain    Kind = ""
	KindSummary  Kind = "summary"  // a compaction's summary, in the user role
	KindSteer    Kind = "steer"    // a person's note that was put into a running turn
	KindPartial  Kind = "partial"  // visible text of an answer that was interrupted
	KindObserved Kind = "observed" // heard in a room but not said to the bot
	KindEarlier  Kind = "earlier"  // said in the thread before the bot was spoken to, quoted; in the user role
	KindDelivery Kind = "delivery" // what could not be delivered of an answer, for the model; in the user role
	KindMirror   Kind = "mirror"   // sent to this chat by something else: a job's output in the user role, a message of send in the assistant's
	KindInternal Kind = "internal" // brought by Herald itself (a background process has ended); in the user role
	KindNotice   Kind = "notice"   // shown to the person, not part of the model's conversation
)

// Message is one transcript row. Rows are append-only: only Active and Compacted change.
type Message struct {
	ID      RowID
	Session ID
	Turn    TurnID // 0 when no turn wrote it
	Role    Role
	Kind    Kind
	Content string
	// Attachments are files of the row; their Path is local.
	Attachments []platforms.Attachment
	// ToolCalls are what an assistant row asks for; ToolCallID and ToolName say what a tool row answers.
	ToolCalls  []ToolCall
	ToolCallID string
	ToolName   string
	// Reasoning is the model's visible reasoning; Replay is what the provider wants back verbatim
	// (signed thinking blocks), as its own JSON.
	Reasoning string
	Replay    json.RawMessage
	// Sender names the author in shared sessions.
	Sender string
	// Platform is the id of the message on its platform, for quotes and edits.
	Platform platforms.MessageID
	At       time.Time
	// Tokens is the provider's count for an assistant row's output, 0 when unknown.
	Tokens int64
	// Active is false for rows that undo, retry or compaction took out of the conversation; Compacted
	// tells compaction from the others.
	Active    bool
	Compacted bool
}

// ToolCall is one call that a model asked for. Arguments is what the model wrote, JSON or not.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}
