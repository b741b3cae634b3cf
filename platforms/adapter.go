package platforms

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Adapter carries one account of one platform. All methods are safe for concurrent use.
type Adapter interface {
	// Account says whom the adapter serves. It never changes.
	Account() Account
	// Traits says what the platform can do. They never change after Run has begun.
	Traits() Traits
	// Run connects, receives, and hands every event to sink until ctx ends; it reconnects by itself with
	// backoff, closing the old connection first. It returns nil when ctx ended and all its goroutines
	// are gone, and otherwise a *StartError: an auth or config error that waiting can't mend.
	Run(ctx context.Context, sink Sink) error
	// Send delivers one message, or one edit where Outgoing.Edit is set. Errors are *SendError. It makes
	// at most one visible message per call for the same content: on an unclear outcome it returns
	// Unknown and leaves the decision to the caller. It is bounded: ctx always carries a deadline.
	Send(ctx context.Context, out Outgoing) (Receipt, error)
	// Health says whether inbound flows now (P12). It does no I/O.
	Health() Health
}

// ErrPermanent is wrapped by errors of Run that waiting can't mend.
var ErrPermanent = errors.New("cannot start")

// StartError is why an adapter gave up: what is wrong with which setting, and what to do next. It never
// takes the daemon down; the account is paused and named in health and status.
type StartError struct {
	Account Account
	Setting string // the config key or variable to look at
	Err     error  // what is wrong, free of secrets
	Hint    string // what to do next
}

// Error returns one line with account, setting, cause and hint.
func (e *StartError) Error() string {
	s := e.Account.String() + ": "
	if e.Setting != "" {
		s += e.Setting + ": "
	}
	s += e.Err.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap lets errors.Is find both the cause and ErrPermanent.
func (e *StartError) Unwrap() []error { return []error{e.Err, ErrPermanent} }

// Health is the state of an account's inbound path.
type Health struct {
	// Inbound is true when an event that the platform has now would reach Accept. "Connected but deaf" is
	// false.
	Inbound bool
	// State is one word for people: "starting", "connected", "reconnecting", "deaf", "paused", "stopped".
	State string
	// Since is when State began.
	Since time.Time
	// Detail says why, free of secrets; empty when all is well.
	Detail string
	// LastEvent is when the platform last proved to be alive (an event, a poll answer, a heartbeat ack).
	LastEvent time.Time
}

// Unit is what a platform counts its text limit in.
type Unit int

// The units.
const (
	CodePoints Unit = iota
	UTF16
	Bytes
)

// Dialect is the markup a platform takes. platforms/format renders each.
type Dialect string

// The dialects.
const (
	Plain        Dialect = "plain"
	Markdown     Dialect = "markdown"      // as it is: the web page, surfaces that render Markdown
	TelegramHTML Dialect = "telegram_html" // Bot API parse_mode HTML
	SlackMrkdwn  Dialect = "slack_mrkdwn"
	DiscordMD    Dialect = "discord_md"
	TeamsMD      Dialect = "teams_md"
	SignalStyles Dialect = "signal_styles" // plain text and ranges
)

// TextTraits is what the splitter needs to know.
type TextTraits struct {
	Dialect Dialect
	// Limit is how much text one message may hold, in Unit, inclusive. 0 means no limit.
	Limit int
	Unit  Unit
	// CountMarkup is true when the limit counts Body with its markup (Discord, Slack) and false when it
	// counts the text that is left after the platform has parsed it (Telegram).
	CountMarkup bool
	// Number adds " (i/n)" to the chunks of a split message; ten units are reserved for it.
	Number bool
}

// Tier is how chatty a platform's defaults are.
type Tier string

// The tiers.
const (
	TierHigh        Tier = "high"
	TierHighQuiet   Tier = "high_quiet"
	TierMedium      Tier = "medium"
	TierMediumQuiet Tier = "medium_quiet"
	TierLow         Tier = "low"
	TierMinimal     Tier = "minimal"
)

// Traits is what a platform can do.
type Traits struct {
	Text TextTraits
	Tier Tier
	// Edit: messages of ours can be changed later, so answers can be streamed.
	Edit bool
	// Buttons: Outgoing.Buttons are shown.
	Buttons bool
	// Threads: Address.Thread means something.
	Threads bool
	// Idempotent: a repeated Send with the same Nonce makes no second message, so an unknown outcome may
	// be repeated.
	Idempotent bool
	// Trusted: the platform authenticates people itself and everyone who gets through may talk (the
	// browser page, whose door is its password or the loopback).
	Trusted bool
	// Attachments: files can be sent. MaxUpload is the most bytes of one file, 0 for no limit known.
	Attachments bool
	MaxUpload   int64
	// EditInterval is the least time between two edits of one message. 0 takes the core's default.
	EditInterval time.Duration
	// CommandPrefix is how a person types a command here: "/" nearly everywhere.
	CommandPrefix string
	// ThreadCommandPrefix is the same inside a thread; empty is CommandPrefix. Slack delivers no "/" there.
	ThreadCommandPrefix string
	// AppendOnly: a growing answer is shown by appending, so each preview must begin with the one before it
	// and no cursor may stand at its end.
	AppendOnly bool
}

// PrefixIn returns how a person types a command at a place.
func (t Traits) PrefixIn(at Address) string {
	if at.Thread != "" && t.ThreadCommandPrefix != "" {
		return t.ThreadCommandPrefix
	}
	return t.CommandPrefix
}

// The optional interfaces: an adapter has one by implementing it.
type (
	// Deleter removes a message of ours. A message that is gone already is success.
	Deleter interface {
		Delete(ctx context.Context, at Address, id MessageID) error
	}
	// Typist shows that an answer is being made. The platform forgets it after some seconds: callers
	// repeat it while work goes on, every TypingEvery.
	Typist interface {
		Typing(ctx context.Context, at Address) error
		TypingEvery() time.Duration
	}
	// Narrator is a Typist whose sign of life can say in words what goes on ("reads report.txt"). text "" takes
	// it off. Like Typing it is repeated while work goes on.
	Narrator interface {
		Typist
		Narrate(ctx context.Context, at Address, text string) error
	}
	// Reactor puts emoji on a message in place of our earlier one, or takes ours off when emoji is "".
	Reactor interface {
		React(ctx context.Context, at Address, id MessageID, emoji string) error
	}
	// Clicker answers a button press with a short text for the presser, as the platform expects it.
	Clicker interface {
		AnswerClick(ctx context.Context, at Address, click Click, text string) error
	}
	// CommandLister takes the commands for the platform's own menu. Names fit every platform (a-z, 0-9, _).
	CommandLister interface {
		SetCommands(ctx context.Context, commands []CommandInfo) error
	}
	// Reconciler finds out whether a send whose outcome was unknown did arrive.
	Reconciler interface {
		// Find looks for the message with out.Nonce. found false with a nil error means: certainly not
		// there.
		Find(ctx context.Context, out Outgoing) (id MessageID, found bool, err error)
	}
	// Threader opens the thread of a message that was sent, for out.Thread: what Send does itself, for a message that
	// Find found. "" when there is none to open or it can't be opened.
	Threader interface {
		OpenThread(ctx context.Context, out Outgoing, id MessageID) ThreadID
	}
	// Historian reads what was said at a place before a message, oldest first, at most limit entries; the turn
	// asks when Message.Earlier is set.
	Historian interface {
		History(ctx context.Context, at Address, before MessageID, limit int) ([]Said, error)
	}
	// Directory lists the rooms that the account can write to and the people it knows, so that a person can
	// name one. It pages through everything, within ctx.
	Directory interface {
		Rooms(ctx context.Context) ([]Room, error)
	}
	// Describer tells what the events from a place carry, whether somebody has written there or not: what is sent to it on our
	// own account belongs to the conversation that a reply will continue.
	Describer interface {
		// Describe returns the place as events name it: its address, which may be another one than at (a person's id stands
		// for their direct chat), its type and scope, and the person of a direct chat where that is known. It may ask the
		// platform. The error is a *SendError.
		Describe(ctx context.Context, at Address) (Room, error)
	}
	// Opener finds or makes the direct chat with a person.
	Opener interface {
		Open(ctx context.Context, user UserID) (Address, error)
	}
	// Handler is an adapter that lives on Herald's HTTP listener (the browser page, webhooks).
	Handler interface {
		// Routes returns patterns of net/http's ServeMux and what serves them. Called once before Run.
		Routes() map[string]http.Handler
	}
	// Secretive names values that must never reach a log or a chat.
	Secretive interface {
		Secrets() []string
	}
)

// Said is one message of a place's past.
type Said struct {
	ID     MessageID
	Sender User
	Text   string
	Own    bool // the bot's
	At     time.Time
}

// Room is a place with a name, or a person.
type Room struct {
	// Address is where a message to it goes. It is empty for a person whose chat must be opened first.
	Address Address
	// User is set for a person.
	User UserID
	Type ChatType
	// Name is what people call it, without "#" or "@". Aliases are further names (a handle beside a display name).
	Name    string
	Aliases []string
	// Scope and Parent tell rooms of the same name apart.
	Scope  ScopeID
	Parent string
}

// CommandInfo is one entry of a platform's command menu.
type CommandInfo struct {
	Name        string
	Description string
	Args        string // a hint such as "[name]", empty for none
}
