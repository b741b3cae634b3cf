package discord

import "herald/platforms"

// Settings is the block platforms.discord. Its own fields replace the common ones of the same key. Lists of channels may
// hold channels, threads, and channels that threads hang in.
type Settings struct {
	platforms.Common
	Token           platforms.Secret `yaml:"token" env:"DISCORD_BOT_TOKEN" doc:"the bot's token from the Bot page of the developer portal"`
	APIURL          string           `yaml:"api_url" env:"DISCORD_API_URL" check:"url" doc:"another REST API server, which also names its gateway; unset: https://discord.com/api/v10"`
	Proxy           platforms.Secret `yaml:"proxy" env:"DISCORD_PROXY" check:"proxy" doc:"HTTP or SOCKS5 proxy for this platform alone; a secret, because it may hold a password"`
	Channels        []string         `yaml:"allowed_channels" env:"DISCORD_ALLOWED_CHANNELS" doc:"ids of the only channels that are answered; direct chats are exempt"`
	Ignored         []string         `yaml:"ignored_channels" env:"DISCORD_IGNORED_CHANNELS" doc:"ids of channels that are never answered; wins over every other list"`
	Mention         bool             `yaml:"require_mention" default:"true" env:"DISCORD_REQUIRE_MENTION" doc:"in channels only messages that speak to the bot are answered; in threads where it takes part no mention is needed"`
	FreeChannels    []string         `yaml:"free_response_channels" env:"DISCORD_FREE_RESPONSE_CHANNELS" doc:"ids of channels where require_mention does not hold; no threads are opened there"`
	FreeThreads     bool             `yaml:"free_response_auto_thread" default:"false" env:"DISCORD_FREE_RESPONSE_AUTO_THREAD" doc:"open threads in free_response_channels too, one for each message"`
	IgnoreOthers    bool             `yaml:"ignore_no_mention" default:"true" env:"DISCORD_IGNORE_NO_MENTION" doc:"where no mention is needed, leave messages alone that mention others and not the bot"`
	ThreadMention   bool             `yaml:"thread_require_mention" default:"false" env:"DISCORD_THREAD_REQUIRE_MENTION" doc:"messages in threads need a mention too"`
	InlineMention   bool             `yaml:"bots_require_inline_mention" default:"true" env:"DISCORD_BOTS_REQUIRE_INLINE_MENTION" doc:"a bot that may talk must name ours in its text; a reply is not enough"`
	AutoThread      bool             `yaml:"auto_thread" default:"true" env:"DISCORD_AUTO_THREAD" doc:"a mention in a text channel is answered in a thread of its own"`
	NoThread        []string         `yaml:"no_thread_channels" env:"DISCORD_NO_THREAD_CHANNELS" doc:"ids of channels where auto_thread does not hold"`
	History         bool             `yaml:"history_backfill" default:"true" env:"DISCORD_HISTORY_BACKFILL" doc:"read what was said before the first mention in a thread"`
	HistoryLimit    int              `yaml:"history_backfill_limit" default:"50" min:"1" max:"100" env:"DISCORD_HISTORY_BACKFILL_LIMIT" doc:"how many messages that are at most"`
	Missed          MissedSettings   `yaml:"missed_message_backfill" doc:"messages that came while Herald was away for longer than Discord keeps them"`
	Mentions        MentionSettings  `yaml:"allow_mentions" doc:"whom messages of the bot may notify"`
	SlashCommands   bool             `yaml:"slash_commands" default:"true" doc:"register and answer application commands; off for a second process of the same bot"`
	CommandSync     string           `yaml:"command_sync_policy" default:"safe" oneof:"safe,bulk,off" env:"DISCORD_COMMAND_SYNC_POLICY" doc:"how application commands are registered: safe (only what differs), bulk (all at once), off"`
	CommandRecreate bool             `yaml:"command_sync_allow_recreate" default:"false" env:"DISCORD_COMMAND_SYNC_ALLOW_RECREATE" doc:"with safe: a command that Discord will not change is deleted and created again"`
}

// MissedSettings is how missed messages are caught up.
type MissedSettings struct {
	Enabled       bool     `yaml:"enabled" default:"false" doc:"read and answer messages that came while Herald was away"`
	Channels      []string `yaml:"channels" doc:"ids of channels that are looked at; unset: those where a message was answered before"`
	WindowSeconds int      `yaml:"window_seconds" default:"21600" min:"1" max:"604800" doc:"how old a message may be, in seconds"`
	Limit         int      `yaml:"limit" default:"100" min:"1" max:"1000" doc:"how many messages of one channel are looked at"`
	MaxDispatches int      `yaml:"max_dispatches" default:"10" min:"1" max:"1000" doc:"how many messages are taken up at one start"`
	MaxAttempts   int      `yaml:"max_attempts" default:"3" min:"1" max:"100" doc:"how often one message is"`
}

// MentionSettings says whom messages of the bot may notify.
type MentionSettings struct {
	Everyone    bool `yaml:"everyone" default:"false" env:"DISCORD_ALLOW_MENTION_EVERYONE" doc:"@everyone and @here"`
	Roles       bool `yaml:"roles" default:"false" env:"DISCORD_ALLOW_MENTION_ROLES" doc:"roles"`
	Users       bool `yaml:"users" default:"true" env:"DISCORD_ALLOW_MENTION_USERS" doc:"people"`
	RepliedUser bool `yaml:"replied_user" default:"true" env:"DISCORD_ALLOW_MENTION_REPLIED_USER" doc:"the person whose message is quoted"`
}

// On reports whether Discord is to be started: enabled, or not set and a token is there.
func (s Settings) On() bool { return s.Starts(s.Token.IsSet()) }
