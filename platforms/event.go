package platforms

import (
	"context"
	"fmt"
	"time"
)

// ChatType is what kind of room an event came from; it is part of the session key.
type ChatType string

// The kinds of room.
const (
	DM      ChatType = "dm"      // one person and the bot
	Group   ChatType = "group"   // a closed circle of people
	Channel ChatType = "channel" // an open room of a workspace or server
	Thread  ChatType = "thread"  // a room whose address is a thread of its own (Discord threads)
)

// Event is one thing that happened on a platform, or that Herald itself brings to a conversation. Exactly one of
// Message, Command, Click, Reaction, Edited and Internal is set. It is stored as JSON in the inbox, so a field may be added
// but never renamed.
type Event struct {
	// ID deduplicates: a redelivery carries the same one. Never empty.
	ID EventID `json:"id"`
	// Address is where an answer goes, thread included.
	Address Address `json:"address"`
	// ChatType, Scope, ChatName, Topic and ParentChat describe the room. ParentChat is the channel a
	// thread hangs in, where the platform tells.
	ChatType   ChatType `json:"chat_type"`
	Scope      ScopeID  `json:"scope,omitempty"`
	ChatName   string   `json:"chat_name,omitempty"`
	Topic      string   `json:"topic,omitempty"`
	ParentChat ChatID   `json:"parent_chat,omitempty"`
	// Sender is who did it. A zero ID means that the platform does not say (an anonymous admin post).
	Sender User `json:"sender"`
	// At is the platform's own time of the event, an Instant; zero when it gives none.
	At time.Time `json:"at,omitzero"`
	// Addressed is true when the bot was spoken to: a DM, a mention, a reply to the bot, a command.
	Addressed bool `json:"addressed,omitempty"`
	// Observed asks the core to keep the message as context without starting a turn.
	Observed bool `json:"observed,omitempty"`

	Message  *Message  `json:"message,omitempty"`
	Command  *Command  `json:"command,omitempty"`
	Click    *Click    `json:"click,omitempty"`
	Reaction *Reaction `json:"reaction,omitempty"`
	Edited   *Edited   `json:"edited,omitempty"`
	// Internal is made by the core alone; from an adapter it is refused.
	Internal *Internal `json:"internal,omitempty"`
}

// Kind returns which body the event carries: "message", "command", "click", "reaction", "edited" or
// "internal", and "" when none is set.
func (e Event) Kind() string {
	switch {
	case e.Message != nil:
		return "message"
	case e.Command != nil:
		return "command"
	case e.Click != nil:
		return "click"
	case e.Reaction != nil:
		return "reaction"
	case e.Edited != nil:
		return "edited"
	case e.Internal != nil:
		return "internal"
	}
	return ""
}

// Validate reports what makes the event unusable: no id, no platform, account or chat, or not exactly one
// body. The core refuses such an event; an adapter that sends one has a bug.
func (e Event) Validate() error {
	bodies := 0
	for _, set := range []bool{e.Message != nil, e.Command != nil, e.Click != nil, e.Reaction != nil, e.Edited != nil, e.Internal != nil} {
		if set {
			bodies++
		}
	}
	switch {
	case e.ID == "":
		return fmt.Errorf("event without id")
	case e.Address.Platform == "" || e.Address.Account == "" || e.Address.Chat == "":
		return fmt.Errorf("event %q: incomplete address %q", e.ID, e.Address)
	case !e.At.IsZero() && Instant(e.At).IsZero():
		return fmt.Errorf("event %q: no calendar has the time %s", e.ID, e.At)
	case bodies != 1:
		return fmt.Errorf("event %q: %d bodies, want exactly 1", e.ID, bodies)
	}
	return nil
}

// Instant is a time that a platform tells, in UTC. One outside of the years 1 to 9999 is none, and becomes zero: JSON, in which
// events are kept, has no form for it, and its message must not be lost for it.
func Instant(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// User is the author of an event.
type User struct {
	ID UserID `json:"id,omitempty"`
	// Alt is a second stable id of the same person (a Signal UUID beside the number). Where it is set it
	// is the one that session keys use.
	Alt UserID `json:"alt,omitempty"`
	// Name is for people to read; it decides nothing.
	Name string `json:"name,omitempty"`
	// Username is the platform's handle without "@", for allowlists that people write by hand.
	Username string `json:"username,omitempty"`
	IsBot    bool   `json:"is_bot,omitempty"`
	// Roles are the ids of groups of people that the room's owner put the person in (Discord roles), for allowlists.
	Roles []string `json:"roles,omitempty"`
	// Language is the person's language tag where the platform tells, such as "de".
	Language string `json:"language,omitempty"`
}

// Message is text and attachments that a person wrote.
type Message struct {
	ID          MessageID    `json:"id"`
	Text        string       `json:"text,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	ReplyTo     *Quote       `json:"reply_to,omitempty"`
	// Earlier is true when the place has messages that the core was never shown and that this one builds on: the
	// first mention in the middle of a thread. The turn reads them through Historian, once.
	Earlier bool `json:"earlier,omitempty"`
}

// Quote is the message that an inbound message answers.
type Quote struct {
	ID         MessageID `json:"id"`
	Text       string    `json:"text,omitempty"`
	AuthorID   UserID    `json:"author_id,omitempty"`
	AuthorName string    `json:"author_name,omitempty"`
	// Own is true when the quoted message is one of ours.
	Own bool `json:"own,omitempty"`
}

// Command is a native slash command: the platform has parsed the name already. A command typed as text
// arrives as a Message and is parsed in the core.
type Command struct {
	Name      string    `json:"name"` // without the slash
	Args      string    `json:"args,omitempty"`
	MessageID MessageID `json:"message_id,omitempty"`
	// Reply is an opaque token with which the adapter can answer privately (a Slack response URL, a
	// Discord interaction). It is a secret: never logged.
	Reply string `json:"reply,omitempty"`
}

// Click is a press on a button of one of our messages.
type Click struct {
	MessageID MessageID `json:"message_id"`
	// Data is what Button.Data carried, unchanged.
	Data string `json:"data"`
	// Reply is the platform's token to answer the click with; see Clicker.
	Reply string `json:"reply,omitempty"`
}

// Reaction is an emoji put on, or taken off, a message.
type Reaction struct {
	MessageID MessageID `json:"message_id"`
	Emoji     string    `json:"emoji"`
	Removed   bool      `json:"removed,omitempty"`
	// OnOwn is true when the message is one of ours.
	OnOwn bool `json:"on_own,omitempty"`
	// Trigger is true when the operator's settings make this reaction a message to the bot: it starts a turn. One
	// that was removed never does.
	Trigger bool `json:"trigger,omitempty"`
}

// Edited is a new version of a message that was delivered before.
type Edited struct {
	MessageID MessageID `json:"message_id"`
	Text      string    `json:"text"`
}

// Internal is news for the agent that no person wrote: a background process has ended, a job is due.
type Internal struct {
	// Source is what brings it: "process", "cron".
	Source string `json:"source"`
	// Session is the stretch of conversation that it belongs to; when another one has begun in its place, nobody hears
	// of it. Empty belongs to whichever is current.
	Session string `json:"session,omitempty"`
	// Text is for the model.
	Text string `json:"text"`
}

// Sink takes events into the core.
type Sink interface {
	// Accept returns nil only after every event of the batch is committed (or was before: a duplicate is
	// nil and does nothing). Order within a batch is kept. On an error none of the batch may be
	// acknowledged to the platform; the adapter offers it again later. Errors: the context's, ErrRefused
	// when the store can't take events now (full disk, shutting down). An event that Validate refuses is
	// counted, logged and dropped: it would fail each time.
	Accept(ctx context.Context, events ...Event) error
}

// ErrRefused says that the core can't take events now and that nothing was kept; offer them again.
var ErrRefused = fmt.Errorf("inbound refused: the store cannot take events now")
