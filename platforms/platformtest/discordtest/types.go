package discordtest

import "time"

// ID is a snowflake: decimal digits of a 64-bit number whose upper 42 bits are milliseconds since 2015.
type ID string

// User is a person or a bot.
type User struct {
	ID         ID
	Username   string
	GlobalName string // the display name
	Bot        bool
}

// ChannelType says what a channel is.
type ChannelType int

// The channel types.
const (
	TextChannel         ChannelType = 0
	DirectChannel       ChannelType = 1
	VoiceChannel        ChannelType = 2
	Category            ChannelType = 4
	AnnouncementChannel ChannelType = 5
	AnnouncementThread  ChannelType = 10
	PublicThread        ChannelType = 11
	PrivateThread       ChannelType = 12
	ForumChannel        ChannelType = 15
)

// Channel describes a channel or thread.
type Channel struct {
	ID     ID
	Guild  ID // empty for a direct channel
	Parent ID // a thread's channel, a channel's category
	Type   ChannelType
	Name   string
	Topic  string
	// Owner is who started a thread.
	Owner ID
	// Archived and Locked are a thread's state. Anybody's message opens an archived thread that is not locked.
	Archived, Locked bool
	// Members are those who joined a thread, or the people of a direct channel.
	Members []ID
}

// File is an attachment.
type File struct {
	Name string
	Type string // MIME type; empty is guessed from the name
	Body []byte
	// Description is the alt text.
	Description string
	// URL is where the bot finds it. Set by the fake.
	URL string
	// ID is set by the fake.
	ID ID
}

// Post is a message that somebody writes.
type Post struct {
	Channel ID
	// From is who writes. Empty is the other person of a direct channel, elsewhere the guild's first person.
	From ID
	Text string
	// Files are attached.
	Files []File
	// ReplyTo is the answered message of the same channel.
	ReplyTo ID
	// MentionBot puts a mention of the bot before the text. Other mentions are found in the text, as <@ID>, <@&ROLE>,
	// @everyone and @here.
	MentionBot bool
	// Quiet makes a reply without a ping of the answered author.
	Quiet bool
	// Voice marks a voice message: Files is one sound.
	Voice bool
	// Webhook, when set, writes as a webhook of that name, not as From.
	Webhook string
	// Type is the message type; 0 is an ordinary one, which becomes a reply (19) with ReplyTo. Others are system
	// messages: 6 pin, 7 join, 18 thread created …
	Type int
	// Forward makes Text and Files the snapshot of a forwarded message.
	Forward bool
	// Embeds are raw embeds.
	Embeds []byte
}

// Button is a button or a select menu as people see it.
type Button struct {
	Label    string // of a button; a select's placeholder
	Data     string // custom_id
	URL      string // of a link button
	Style    int    // 1 primary, 2 secondary, 3 success, 4 danger, 5 link
	Disabled bool
	Options  []Choice // of a select
}

// Choice is an entry of a select menu or of an autocompletion.
type Choice struct {
	Name  string
	Value any // string, float64 or bool
}

// Reaction is an emoji under a message.
type Reaction struct {
	Emoji string // the emoji, or name:id of a custom one
	By    []ID
}

// Message is a message as people see it.
type Message struct {
	ID      ID
	Channel ID
	From    ID
	Bot     bool // by the bot under test
	Type    int
	Text    string
	Files   []File
	Embeds  []byte // raw JSON, nil without
	Buttons [][]Button
	// ReplyTo is the answered message. Broken says that it is gone.
	ReplyTo   ID
	Reactions []Reaction
	// Pinged are the people, and "everyone", whom it notified: what its mentions and its allowed_mentions leave.
	Pinged []string
	Nonce  string
	// Ephemeral messages are seen by For alone, and by no request for messages.
	Ephemeral bool
	For       ID
	// Thinking is set while it is the placeholder of a deferred answer.
	Thinking bool
	// Silent was sent without a notification (flag 4096). NoPreviews hides embeds (flag 4).
	Silent, NoPreviews bool
	// Thread is the id of the thread that was started from it.
	Thread ID
	At     time.Time
	Edited time.Time // zero when it was not
}

// InteractionKind says what somebody did.
type InteractionKind int

// The kinds.
const (
	CommandRun    InteractionKind = 2
	ComponentUsed InteractionKind = 3
	Completion    InteractionKind = 4
	ModalSent     InteractionKind = 5
)

// Interaction is what became of a press, a pick, a command or a completion.
type Interaction struct {
	ID    ID
	Kind  InteractionKind
	Token string
	// Answered says that the bot called back in time. Type is how: 4 message, 5 deferred message, 6 deferred update,
	// 7 update, 8 choices, 9 modal.
	Answered bool
	Type     int
	Took     time.Duration
	// Private says that the answer is ephemeral.
	Private bool
	// Thinking says that a deferred answer did not come yet.
	Thinking bool
	// Text is that of the answer as it stands now.
	Text string
	// Original is the answer's message, Followups those after it.
	Original  ID
	Followups []ID
	// Choices of a completion.
	Choices []Choice
	// Modal is the raw data of a modal.
	Modal []byte
}

// Command is a use of an application command.
type Command struct {
	Channel ID
	// From is who runs it. Empty is as in Post.
	From ID
	Name string
	// Options in order. A value is a string, an int, a float64, a bool or an ID (a user, channel or role by the
	// command's definition); for a subcommand it is []Option.
	Options []Option
	// Focused is the option that is being typed, for Complete.
	Focused string
	// Target is the user or message of a context menu command.
	Target ID
}

// Option is a named value of a command.
type Option struct {
	Name  string
	Value any
}

// Registered is a command that the bot has registered.
type Registered struct {
	ID          ID
	Guild       ID // empty for a global one
	Name        string
	Description string
	Type        int
	Raw         []byte // the whole definition
}

// Act is one thing that happened, in order.
type Act struct {
	At      time.Time
	Verb    string // write, send, edit, delete, react, unreact, typing, thread, interaction, answer, followup
	Channel ID
	Message ID
	Who     ID
	Text    string
}
