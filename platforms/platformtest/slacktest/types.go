package slacktest

import (
	"encoding/json"
	"time"
)

// Team is a workspace with the app's installation in it.
type Team struct {
	ID     string // "T…"; empty makes one
	Name   string // empty is "Herald Test"
	Domain string // empty is made of Name
	// BotToken is the installation's token. Empty makes one. Old tokens stay known, see Server.Revoke.
	BotToken string
	BotUser  string // the bot's user id, "U…"; empty makes one
	BotID    string // the bot's own id, "B…"; empty makes one
	BotName  string // empty is "herald"
	// Scopes are what the bot token was granted. nil is AllScopes.
	Scopes []string
}

// User is a person or another app's bot.
type User struct {
	ID          string // "U…"; empty makes one
	Name        string // the handle; empty is made of RealName
	RealName    string // empty is "Pat Doe"
	DisplayName string
	Email       string
	TZ          string // empty is "Europe/Berlin"
	IsBot       bool   // another app's bot; BotID and AppID are made when empty
	BotID       string
	AppID       string
	Deleted     bool
	// Guest is a restricted user, Stranger one of another workspace in a shared channel.
	Guest, Stranger bool
}

// ChannelKind is what a conversation is.
type ChannelKind string

// The kinds, as Slack's channel_type names them.
const (
	Public  ChannelKind = "channel"
	Private ChannelKind = "group"
	IM      ChannelKind = "im"
	MPIM    ChannelKind = "mpim"
)

// Channel is a conversation. The bot is a member unless WithoutBot says otherwise.
type Channel struct {
	ID      string      // "C…", "G…" or "D…"; empty makes one
	Kind    ChannelKind // empty is Public
	Name    string      // empty is made of ID; an IM has none
	Topic   string
	Purpose string
	// Members are user ids besides the bot. An IM has exactly one.
	Members    []string
	WithoutBot bool
	Archived   bool
	// Refuse, when not empty, is the error code that every post of the bot there gets, such as
	// "restricted_action" or "is_archived".
	Refuse string
}

// Upload is a file that a person shares.
type Upload struct {
	Name string
	MIME string // empty is guessed from Name
	Body []byte
	// Mode is Slack's file mode. Empty is "hosted"; "external" has no bytes, "tombstone" is deleted,
	// "snippet" is text. "check_file_info" sends the event with file_access only, as for Slack Connect.
	Mode string
}

// Post is a message that a person writes.
type Post struct {
	Team    string // empty is the only team
	Channel string
	// User writes. Empty is the first member that is a person.
	User string
	// Text is the event's text as Slack delivers it: & < > escaped, mentions as <@U…>. Escape makes it.
	Text string
	// Mention puts the bot's mention in front of Text (and of Blocks that are made).
	Mention bool
	// Thread is the ts of the root when it is a reply. Broadcast sends it to the channel too.
	Thread    string
	Broadcast bool
	// Blocks are the message's blocks as JSON. nil makes the rich_text block that Slack's composer makes of
	// Text; NoBlocks leaves them out, as posts of the Web API come.
	Blocks   json.RawMessage
	NoBlocks bool
	// Attachments are legacy attachments as JSON: unfurls, shared messages.
	Attachments json.RawMessage
	Files       []Upload
	// Subtype is set for what is no plain message: "me_message", "channel_join", "bot_message",
	// "channel_topic". Files set "file_share" and Broadcast "thread_broadcast" themselves.
	Subtype string
	// Metadata is {"event_type": …, "event_payload": …}.
	Metadata json.RawMessage
	// ViaAPI marks a post that an app made with User's own token: it carries bot_id and app_id of that app.
	ViaAPI bool
	// ClientMsgID is the composer's id. Empty makes one for people.
	ClientMsgID string
	// Silent keeps the message without sending an event: history from before the bot came.
	Silent bool
}

// Button is something in a message that a person can act on.
type Button struct {
	Label    string
	ActionID string
	BlockID  string
	Value    string
	URL      string
	Style    string   // "", "primary" or "danger"
	Kind     string   // "button", "static_select", "overflow", "checkboxes", "radio_buttons", "feedback_buttons", …
	Options  []string // the values of a select's options
	Confirm  bool     // it asks back first
}

// File is a file of a message.
type File struct {
	ID    string
	Name  string
	Title string
	MIME  string
	Body  []byte
	// User put it there.
	User string
}

// Reaction is an emoji on a message.
type Reaction struct {
	Name  string // without colons: "eyes"
	Users []string
}

// Streaming is how far a message of chat.startStream is.
type Streaming string

// The states of a stream.
const (
	NotStreamed Streaming = ""
	Streams     Streaming = "streaming"
	Sealed      Streaming = "completed"
)

// Message is a message as it is in a channel.
type Message struct {
	Team, Channel string
	TS            string // its id
	Thread        string // the ts of its thread's root, empty outside threads and for a root
	Broadcast     bool   // a reply that is in the channel too
	User          string
	BotID         string // of the bot that wrote it
	Own           bool   // the app's bot wrote it
	Username      string // chat:write.customize's name
	Subtype       string
	// Text is what people read: blocks when there are any, else the text; escapes undone, mrkdwn marks as
	// they were sent. Fallback is the text with escapes undone when there are blocks (notifications show it).
	Text     string
	Fallback string
	// Raw is the text field as it was sent. Markdown says that it came as markdown_text.
	Raw         string
	Markdown    bool
	Blocks      json.RawMessage
	Attachments json.RawMessage
	Metadata    json.RawMessage
	Files       []File
	Buttons     []Button
	Reactions   []Reaction
	// Ephemeral is the user who alone sees it.
	Ephemeral string
	Streaming Streaming
	// Chunks are the task and plan updates of a stream, as JSON.
	Chunks []json.RawMessage
	// UnfurlLinks and UnfurlMedia are what the bot asked for; nil is Slack's default.
	UnfurlLinks, UnfurlMedia *bool
	At, Edited               time.Time
}

// Press is a person's act on a button, select or other element of a message or view.
type Press struct {
	Team    string // empty is the only team
	Channel string
	Message string // ts, ephemeral ones too
	User    string // empty is the first member that is a person
	// Button names the element by its action_id, label or value.
	Button string
	// Option is the value or label that is picked in a select, radio, checkboxes or overflow element.
	Option string
}

// Command is a slash command that a person runs. Slack allows none in threads.
type Command struct {
	Team    string // empty is the only team
	Channel string
	User    string // empty is the first member that is a person
	Name    string // "/herald"
	Text    string
}

// Interaction is what became of a Press, Command or view.
type Interaction struct {
	EnvelopeID  string
	TriggerID   string
	ResponseURL string
	Acked       bool
	// Failed is what the person was told instead: "dispatch_failed" when no connection was there to take it,
	// "operation_timeout" when nobody acknowledged it within three seconds. Slack doesn't send these again.
	Failed string
	// Payload is what the acknowledgement carried, nil for none.
	Payload json.RawMessage
	// Responses are the posts to the response URL that were taken, as JSON, oldest first.
	Responses []json.RawMessage
}

// Act is one thing that happened, in order.
type Act struct {
	At time.Time
	// Verb is say, post, ephemeral, update, delete, react, unreact, upload, status, title, prompts, home,
	// stream-start, stream-append, stream-stop, respond or ack.
	Verb    string
	Team    string
	Channel string
	Thread  string
	TS      string
	User    string
	Text    string
}

// Request is a Web API call as it came.
type Request struct {
	At     time.Time
	Method string
	Team   string // of the token; empty for the app token
	// Params are the parameters; values that are no strings in a JSON body are their JSON.
	Params map[string]string
	// JSON says that the body was JSON.
	JSON bool
}
