package platforms

import (
	"errors"
	"fmt"
	"time"
)

// Text is one chunk of a message, ready for one platform: platforms/format makes it, adapters send it.
type Text struct {
	// Body is the chunk in the platform's dialect (Telegram HTML, Slack mrkdwn, plain text for Signal).
	Body string `json:"body"`
	// Plain is the same chunk without any markup: what is sent once when the platform refuses the markup.
	Plain string `json:"plain,omitempty"`
	// Markdown is the source of the chunk, for surfaces that take Markdown themselves.
	Markdown string `json:"markdown,omitempty"`
	// Styles are ranges over Body for platforms that style by range (Signal), in UTF-16 units.
	Styles []Style `json:"styles,omitempty"`
}

// AsBody returns Body, or Plain where there is no other.
func (t Text) AsBody() string {
	if t.Body == "" {
		return t.Plain
	}
	return t.Body
}

// AsPlain returns Plain, or Body where there is no other.
func (t Text) AsPlain() string {
	if t.Plain == "" {
		return t.Body
	}
	return t.Plain
}

// Style marks the range [Start, Start+Length) of Text.Body in UTF-16 units.
type Style struct {
	Start  int    `json:"start"`
	Length int    `json:"length"`
	Kind   string `json:"kind"` // BOLD, ITALIC, STRIKETHROUGH, MONOSPACE, SPOILER
}

// Button is one choice under a message.
type Button struct {
	Label string `json:"label"`
	// Data comes back in Click.Data. At most 64 bytes (Telegram's limit, the smallest of all).
	Data string `json:"data"`
	// Style is a hint: "", "primary" or "danger".
	Style string `json:"style,omitempty"`
}

// Outgoing is one message on a platform, or one edit of a message: what one outbox row holds.
type Outgoing struct {
	Address Address `json:"address"`
	// Edit, when set, replaces that message of ours instead of sending a new one. An edit to the content
	// that is already there is success.
	Edit MessageID `json:"edit,omitempty"`
	Text Text      `json:"text"`
	// Attachments go with the text where the platform can, else after it, in order.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Buttons are rows of choices. An edit without rows removes those that were there.
	Buttons [][]Button `json:"buttons,omitempty"`
	// ReplyTo quotes that message where the platform has quotes.
	ReplyTo MessageID `json:"reply_to,omitempty"`
	// Private, when set, is a Command.Reply or Click.Reply token: the answer is for that person only.
	Private string `json:"private,omitempty"`
	// Nonce is the same on each attempt at this message and never used for another. Adapters whose
	// platform takes an idempotency key pass it on.
	Nonce string `json:"nonce,omitempty"`
	// Silent asks for no notification sound.
	Silent bool `json:"silent,omitempty"`
	// Interim marks a message that a later edit will complete (a streamed preview, a progress bubble).
	Interim bool `json:"interim,omitempty"`
	// Thread, when set, is the name of a thread to open for this message, so that replies to it have a place of their
	// own. It has no effect where Address has a thread (delivery takes one that is gone off, so that a new one opens) or the
	// place has none to open. A thread that can't be opened never fails the message: it goes out flat.
	Thread string `json:"thread,omitempty"`
	// Progress marks a bubble about the work itself (tool calls, heartbeat) and not an answer, so that a
	// surface may show it lighter.
	Progress bool `json:"progress,omitempty"`
}

// Receipt is the proof of a delivered message.
type Receipt struct {
	// Message is the id of the visible message; empty on platforms that give none (Signal).
	Message MessageID `json:"message,omitempty"`
	// More are the ids of further messages that one Outgoing needed (a caption too long for its media).
	More []MessageID `json:"more,omitempty"`
	// Notes are shown to the user: parts that could not be sent and why, such as a file over the limit.
	Notes []string `json:"notes,omitempty"`
	// Thread is where replies to the message land when Outgoing.Thread opened a thread for it: a following message with
	// it in its Address lands there, and replies carry it in theirs. Empty when none was opened. It is also set beside an
	// error when the thread was opened and the message did not go out, so that the next attempt opens no second one.
	Thread ThreadID `json:"thread,omitempty"`
}

// Certainty is what is known of a send that returned an error.
type Certainty int

const (
	// NotSent: the platform certainly did not take it. It may be tried again.
	NotSent Certainty = iota
	// Unknown: the platform may have taken it (timeout, reset after the request was written). It is never
	// repeated blindly.
	Unknown
)

// String returns "not sent" or "unknown".
func (c Certainty) String() string {
	if c == Unknown {
		return "unknown"
	}
	return "not sent"
}

// FailureKind says what to do about a failed send.
type FailureKind string

// The kinds of failure.
const (
	Transient   FailureKind = "transient"    // network, 5xx: try again with backoff
	RateLimited FailureKind = "rate_limited" // wait RetryAfter: a gate on the whole address (P8)
	Forbidden   FailureKind = "forbidden"    // blocked, kicked, no rights: the whole chat is a dead target
	NotFound    FailureKind = "not_found"    // the chat is gone: dead target
	ThreadGone  FailureKind = "thread_gone"  // only the thread is gone: never marks the chat dead
	MessageGone FailureKind = "message_gone" // the message to edit is gone or too old
	TooLong     FailureKind = "too_long"     // over the platform's limit
	BadRequest  FailureKind = "bad_request"  // refused for good: a retry can't help
	AuthFailed  FailureKind = "auth_failed"  // our credentials are refused: the adapter is paused
	Unsupported FailureKind = "unsupported"  // this platform or chat can't do that
)

// SendError is the error of Send and of every optional outbound call. An error that is no SendError is
// treated as Transient and Unknown.
type SendError struct {
	Kind      FailureKind
	Certainty Certainty
	// RetryAfter is how long the platform asks to wait; only with RateLimited. It gates the whole address,
	// or the whole account when AccountWide.
	RetryAfter  time.Duration
	AccountWide bool
	// Err is the cause, free of secrets.
	Err error
}

// Failure returns a SendError of a kind for what was certainly not sent. The text is free of secrets.
func Failure(kind FailureKind, format string, args ...any) *SendError {
	return &SendError{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Error returns kind, certainty and cause in one line without secrets.
func (e *SendError) Error() string {
	if e.RetryAfter > 0 {
		return fmt.Sprintf("%s (%s), retry after %s: %v", e.Kind, e.Certainty, e.RetryAfter, e.Err)
	}
	return fmt.Sprintf("%s (%s): %v", e.Kind, e.Certainty, e.Err)
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// AsSendError returns err as a SendError, wrapping any other error as Transient and Unknown. A nil err
// returns nil.
func AsSendError(err error) *SendError {
	if err == nil {
		return nil
	}
	var se *SendError
	if errors.As(err, &se) {
		return se
	}
	return &SendError{Kind: Transient, Certainty: Unknown, Err: err}
}
