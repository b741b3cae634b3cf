package teamstest

import (
	"encoding/json"
	"time"
)

// User is a person.
type User struct {
	ID    string // "29:…", the bot's own name for the person
	AAD   string // the Entra object id
	Name  string
	Email string // also the user principal name
	// Tenant is where the person belongs; a guest's is another than the bot's.
	Tenant string
}

// RoomType is Teams' conversationType.
type RoomType string

// The types of room.
const (
	Personal RoomType = "personal"
	Group    RoomType = "groupChat"
	Channel  RoomType = "channel"
)

// Room is a chat or a channel, without threads: a thread's conversation id is ID + ";messageid=" + its root.
type Room struct {
	ID      string // "a:…", "19:…@thread.v2" or "19:…@thread.tacv2"
	Type    RoomType
	Name    string // empty for a personal chat
	Tenant  string
	Team    Team // of a channel
	Members []User
}

// Team is a team with channels. Its id is that of its General channel.
type Team struct {
	ID    string // "19:…@thread.tacv2"
	Group string // the Entra group id
	Name  string
}

// File is a file that a person sends or the bot sent.
type File struct {
	Name string
	MIME string
	Body []byte
	// Inline: a picture in the text and not a file beside it.
	Inline bool
	// URL is where the bot said the file is; empty for a person's.
	URL string
	// Awaiting: the bot asked by a file consent card whether it may send it, and has no answer.
	Awaiting bool
}

// Post is a message that a person writes.
type Post struct {
	// Room is a room's ID, and Thread the root message to answer in a channel. In a channel, no Thread starts
	// one.
	Room, Thread string
	// From is who writes. The zero value is the room's first member.
	From User
	// Text is what they type. Mention puts "@bot" before it; Mentions are people mentioned after it.
	Text     string
	Mention  bool
	Mentions []User
	// Files are files and pictures. In personal chats a file comes with a pre-authorised URL, elsewhere only as
	// a reference that Graph resolves, as in Teams.
	Files []File
	// Quote is a message that the person answers in a chat: its text is in a quotation.
	Quote string
	// HTML asks for a rich message, so that the text/html mirror has a <strong> that the text has not.
	HTML bool
}

// Button is a button of a card.
type Button struct {
	Title string
	// Type is "Action.Execute", "Action.Submit", "Action.OpenUrl", or a hero card's "messageBack", "imBack",
	// "invoke".
	Type string
	Verb string
	Data json.RawMessage
	URL  string
}

// Message is a message as it is in a room.
type Message struct {
	ID     string
	Room   string
	Thread string // the root, in a channel; a root's own is its ID
	From   string // "28:…" or "29:…"
	Bot    bool   // one of the bot's
	// Text is what people read: the text, or what stands on the cards where there is none. Raw is the activity as it
	// came or went.
	Text   string
	Format string // "markdown", "plain", "xml"
	Raw    json.RawMessage
	Cards  []json.RawMessage // the content of its cards, adaptive ones and others
	// CardText is what people read on the cards: text blocks, facts, titles, one a line.
	CardText string
	Buttons  []Button
	Files    []File
	// ReplyTo is the activity that the message answers, where the room shows it.
	ReplyTo string
	// Mentioned are the ids in mention entities whose text is in Text.
	Mentioned []string
	// Reactions are the reaction types on it by who put them there.
	Reactions map[string][]string
	// Streaming: the text is still growing. Informative is the status line of such a stream.
	Streaming   bool
	Informative string
	Alert       bool // channelData.notification.alert
	Deleted     bool // a person deleted it; what the bot deletes is gone
	At, Edited  time.Time
}

// Act is one thing that the bot did or a person did, in order.
type Act struct {
	// Verb is "say", "send", "edit", "delete", "typing", "stream", "react", "unreact", "create" or "upload".
	Verb    string
	Room    string
	Thread  string
	Message string
	Text    string
	Bot     bool
	At      time.Time
}

// Delivery is one attempt to hand an activity to the bot.
type Delivery struct {
	Activity string // the activity's id
	Type     string // its type
	Status   int    // of the answer; 0 when none came
	Body     []byte // of the answer
	Err      string // why no answer came
	Attempt  int    // from 1
	Took     time.Duration
}

// Invocation is an invoke activity and what the bot answered.
type Invocation struct {
	ID   string
	Name string // "adaptiveCard/action", "fileConsent/invoke"
	Done bool
	// Status is the HTTP status, 0 when no answer came, and Body the answer.
	Status int
	Body   json.RawMessage
	// Text is the message that an adaptiveCard/action answer shows to the presser, and Card the card it puts in
	// the place of the pressed one, for the presser only.
	Text string
	Card json.RawMessage
	// Err says what the person's client would call "Something went wrong".
	Err string
}
