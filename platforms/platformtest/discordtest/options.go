package discordtest

import "time"

// Defaults of Options, as the service has them.
const (
	DefaultHeartbeat         = 41250 * time.Millisecond
	DefaultResumeWindow      = 3 * time.Minute
	DefaultInteractionWindow = 3 * time.Second
	DefaultTokenLife         = 15 * time.Minute
	DefaultUsername          = "herald"
)

// Options configures a fake. The zero value takes any token and grants every privileged intent.
type Options struct {
	// Token is the only bot token that is let in, without "Bot ". Empty lets every token in.
	Token string
	// BotID is the bot's user and application id. Empty makes one.
	BotID ID
	// Username is the bot's name. Empty is DefaultUsername.
	Username string
	// WithoutIntents are privileged intents that the developer portal does not grant: an identify that asks for one
	// is closed with 4014.
	WithoutIntents Intents
	// Heartbeat is the interval that hello asks for. 0 is DefaultHeartbeat. A connection without a heartbeat for two
	// intervals is closed with 4009.
	Heartbeat time.Duration
	// ResumeWindow is how long a session without a connection can be resumed, and its events are kept. 0 is
	// DefaultResumeWindow, negative is not at all.
	ResumeWindow time.Duration
	// InteractionWindow is how long an interaction waits for its first answer. 0 is DefaultInteractionWindow.
	InteractionWindow time.Duration
	// TokenLife is how long an interaction token works after that. 0 is DefaultTokenLife.
	TokenLife time.Duration
	// RealLimits puts the buckets that bots see in practice on the routes (5 messages in 5 seconds a channel, one
	// reaction in 250 ms …). Otherwise every bucket takes 1000 requests a second. Limit sets one route.
	RealLimits bool
	// Keep is how many messages of a channel and how many acts are remembered, 0 for all: soak runs set it.
	Keep int
}

// Intents are the bits of the gateway's event groups.
type Intents int

// The intents.
const (
	IntentGuilds          Intents = 1 << 0
	IntentMembers         Intents = 1 << 1 // privileged
	IntentPresences       Intents = 1 << 8 // privileged
	IntentGuildMessages   Intents = 1 << 9
	IntentGuildReactions  Intents = 1 << 10
	IntentGuildTyping     Intents = 1 << 11
	IntentDirectMessages  Intents = 1 << 12
	IntentDirectReactions Intents = 1 << 13
	IntentDirectTyping    Intents = 1 << 14
	IntentMessageContent  Intents = 1 << 15 // privileged
	privilegedIntents             = IntentMembers | IntentPresences | IntentMessageContent
	everyIntent           Intents = 1<<26 - 1
)

// Permissions are the bits of roles and overwrites.
type Permissions uint64

// The permissions that the fake looks at.
const (
	ManageChannels       Permissions = 1 << 4
	AddReactions         Permissions = 1 << 6
	Administrator        Permissions = 1 << 3
	ViewChannel          Permissions = 1 << 10
	SendMessages         Permissions = 1 << 11
	ManageMessages       Permissions = 1 << 13
	EmbedLinks           Permissions = 1 << 14
	AttachFiles          Permissions = 1 << 15
	ReadMessageHistory   Permissions = 1 << 16
	MentionEveryone      Permissions = 1 << 17
	UseExternalEmojis    Permissions = 1 << 18
	UseCommands          Permissions = 1 << 31
	ManageThreads        Permissions = 1 << 34
	CreatePublicThreads  Permissions = 1 << 35
	CreatePrivateThreads Permissions = 1 << 36
	SendInThreads        Permissions = 1 << 38
)

// MemberPermissions are those of @everyone in a new guild.
const MemberPermissions = AddReactions | ViewChannel | SendMessages | EmbedLinks | AttachFiles | ReadMessageHistory |
	UseExternalEmojis | UseCommands | CreatePublicThreads | CreatePrivateThreads | SendInThreads
