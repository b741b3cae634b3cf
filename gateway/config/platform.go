package config

import (
	"strings"
	"time"
)

// knownPlatforms are the names that may stand below display.platforms and the like.
var knownPlatforms = [...]string{"web", "telegram", "slack", "signal", "teams", "discord", "webhook", "api_server"}

// Platforms holds one block per platform.
type Platforms struct {
	Web      Web      `yaml:"web" doc:"the browser chat" reload:"restart"`
	Telegram Telegram `yaml:"telegram" name:"TELEGRAM" doc:"Telegram bots"`
	Teams    Teams    `yaml:"teams" name:"TEAMS" doc:"Microsoft Teams bots"`
	Slack    Slack    `yaml:"slack" name:"SLACK" doc:"a Slack app"`
	Discord  Discord  `yaml:"discord" name:"DISCORD" doc:"a Discord bot"`
	Signal   Signal   `yaml:"signal" name:"SIGNAL" doc:"a Signal account through signal-cli"`
}

// Block is the configuration of one platform.
type Block interface {
	// Shared returns what all platforms have.
	Shared() Platform
	// On reports whether the platform is to be started.
	On() bool
}

// NamedBlock is a block with the platform's name.
type NamedBlock struct {
	Name string
	Block
}

// Blocks returns the blocks of all platforms, each name once, in a fixed order.
func (p Platforms) Blocks() []NamedBlock {
	return []NamedBlock{
		{"web", p.Web},
		{"telegram", p.Telegram},
		{"teams", p.Teams},
		{"slack", p.Slack},
		{"discord", p.Discord},
		{"signal", p.Signal},
	}
}

// Guests is a Block that answers people outside allowed_chats under conditions of its own.
type Guests interface{ Guests() bool }

// EnvPrefixes returns what the names of all platforms' environment variables begin with.
func EnvPrefixes() []string {
	var out []string
	for _, name := range knownPlatforms {
		out = append(out, strings.ToUpper(name)+"_")
	}
	return out
}

// Platform is what every platform's block has (spec gateway 2.0, 3.1, 3.3). Lists of people hold platform ids.
type Platform struct {
	// Enabled nil: on when the platform has its credentials. False wins over credentials.
	Enabled *bool `yaml:"enabled" doc:"switch the platform on or off; unset: on when its credentials are there"`

	AllowedUsers       []string `yaml:"allowed_users" env:"{N}_ALLOWED_USERS" reload:"live" doc:"ids of people who may talk, in any chat; * means everyone"`
	GroupAllowedUsers  []string `yaml:"group_allowed_users" env:"{N}_GROUP_ALLOWED_USERS" reload:"live" doc:"ids of people who may talk in groups"`
	GroupAllowedChats  []string `yaml:"group_allowed_chats" env:"{N}_GROUP_ALLOWED_CHATS" reload:"live" doc:"ids of groups where everyone may talk"`
	AllowedChats       []string `yaml:"allowed_chats" env:"{N}_ALLOWED_CHATS" doc:"ids of the only chats that are answered; empty: all that the other rules allow"`
	AllowFrom          []string `yaml:"allow_from" reload:"live" doc:"ids of people who may talk, in any chat; * means everyone"`
	GroupAllowFrom     []string `yaml:"group_allow_from" reload:"live" doc:"ids of people who may talk in groups"`
	AllowedRoles       []string `yaml:"allowed_roles" env:"{N}_ALLOWED_ROLES" doc:"ids of roles whose people may talk, where the platform has roles (Discord)"`
	AllowAll           bool     `yaml:"allow_all" default:"false" env:"{N}_ALLOW_ALL_USERS" reload:"live" doc:"everyone on this platform may talk"`
	AllowUsernames     bool     `yaml:"allow_usernames" default:"false" reload:"live" doc:"the lists may hold @names; weaker than ids, because a name can change hands"`
	AllowBots          string   `yaml:"allow_bots" default:"none" oneof:"none,mentions,all" env:"{N}_ALLOW_BOTS" reload:"live" doc:"bots that may talk: none, those that mention us, or all"`
	AdminFrom          []string `yaml:"allow_admin_from" reload:"live" doc:"ids of people who may use every command in direct chats; unset: everyone who may talk"`
	UserCommands       []string `yaml:"user_allowed_commands" reload:"live" doc:"commands that the others may use in direct chats, beside /help and /whoami"`
	GroupAdminFrom     []string `yaml:"group_allow_admin_from" reload:"live" doc:"the same as allow_admin_from, for groups"`
	GroupUserCommands  []string `yaml:"group_user_allowed_commands" reload:"live" doc:"the same as user_allowed_commands, for groups"`
	UnauthorizedDM     string   `yaml:"unauthorized_dm_behavior" oneof:"pair,ignore" reload:"live" doc:"what a stranger's direct message gets; unset: the general value"`
	HomeChannel        Home     `yaml:"home_channel" short:"chat" reload:"live" doc:"where notices that belong to no conversation go"`
	CronSurface        string   `yaml:"cron_continuable_surface" default:"thread" oneof:"thread,in_channel" reload:"live" doc:"where a reply goes on with what a scheduled job has sent: in a thread that is opened for it, where the platform has threads, or in the channel itself"`
	ReplyTo            string   `yaml:"reply_to_mode" default:"first" oneof:"off,first,all" env:"{N}_REPLY_TO_MODE" reload:"live" doc:"which parts of an answer quote the question: none, the first, all"`
	RestartNotice      bool     `yaml:"gateway_restart_notification" default:"true" reload:"live" doc:"say in the home channel that Herald has restarted"`
	Typing             bool     `yaml:"typing_indicator" default:"true" reload:"live" doc:"show that an answer is being made"`
	Reactions          *bool    `yaml:"reactions" env:"{N}_REACTIONS" doc:"show with emoji on a message that it was seen and how its turn ended, in direct chats and where the bot is spoken to; unset: on where the platform can, on Telegram and Teams off"`
	TypingStatus       string   `yaml:"typing_status_text" check:"text" reload:"live" doc:"what the sign of life says while no tool runs, where the platform shows words; unset: the platform's own"`
	RateLimit          Rate     `yaml:"rate_limit" default:"on" doc:"sends of our own accord: on (the platform's numbers), off (a private server), or messages a second per chat"`
	ChannelPrompts     Texts    `yaml:"channel_prompts" reload:"live" doc:"text added to the prompt of one chat or thread, by its id (a thread also as chat:thread); never stored"`
	ChannelOverrides   Channels `yaml:"channel_overrides" reload:"live" doc:"another model or prompt for one chat or thread, by its id; a thread may also be written chat:thread"`
	RequireMention     bool     `yaml:"require_mention" default:"false" env:"{N}_REQUIRE_MENTION" doc:"in groups only messages that speak to the bot are answered"`
	FreeResponseChats  []string `yaml:"free_response_channels" env:"{N}_FREE_RESPONSE_CHATS" doc:"ids of groups where require_mention does not hold"`
	MentionPatterns    []string `yaml:"mention_patterns" check:"regexp" doc:"patterns, in any case, that count as speaking to the bot"`
	BotsRequireMention bool     `yaml:"bots_require_mention" default:"true" doc:"a bot that may talk must speak to us, even where people need not"`
}

// Shared implements Block.
func (p Platform) Shared() Platform { return p }

// on is whether a platform is to be started that has its credentials or not.
func (p Platform) on(credentials bool) bool {
	if p.Enabled != nil {
		return *p.Enabled
	}
	return credentials
}

// Texts and Channels are keyed by the platform's own chat or thread id.
type (
	Texts    map[string]string
	Channels map[string]ChannelOverride
)

// ChannelOverride replaces settings in one chat. The order is: the session's /model, this, the general one.
type ChannelOverride struct {
	Model        string `yaml:"model" check:"text" doc:"the model's name"`
	Provider     string `yaml:"provider" oneof:"openai,anthropic,openrouter,ollama,demo" doc:"who serves it"`
	SystemPrompt string `yaml:"system_prompt" check:"long" doc:"text in place of the whole prompt; never stored"`
}

// Home is a home channel. Setting it does not switch the platform on.
type Home struct {
	Chat   string `yaml:"chat" env:"{N}_HOME_CHANNEL" check:"text" doc:"the chat's id"`
	Thread string `yaml:"thread" env:"{N}_HOME_CHANNEL_THREAD_ID" check:"text" doc:"the thread's id, if it is one"`
	Name   string `yaml:"name" default:"Home" env:"{N}_HOME_CHANNEL_NAME" check:"text" doc:"its name for people"`
}

// IsSet reports whether there is a home channel.
func (h Home) IsSet() bool { return h.Chat != "" }

// Web is the browser chat. Its door is http.listen, http.password and http.token.
type Web struct {
	Platform
	Title string `yaml:"title" default:"Herald" check:"text" doc:"the page's title"`
}

// On reports whether the browser chat is served: yes, unless it is switched off.
func (w Web) On() bool { return w.on(true) }

// Telegram is spec gateway 2.5.
type Telegram struct {
	Platform
	Token          Secret        `yaml:"token" env:"TELEGRAM_BOT_TOKEN" doc:"the bot's token from @BotFather"`
	BaseURL        string        `yaml:"base_url" check:"url" doc:"an own Bot API server; unset: https://api.telegram.org"`
	BaseFileURL    string        `yaml:"base_file_url" check:"url" doc:"where that server hands out files; unset: base_url"`
	LocalMode      bool          `yaml:"local_mode" default:"false" doc:"that server runs with --local: files are paths on this machine and may have 2 GB"`
	LocalRoot      string        `yaml:"local_root" default:"/var/lib/telegram-bot-api" check:"abspath" doc:"with local_mode: the directory of that server's files; nothing outside it is read"`
	Proxy          Secret        `yaml:"proxy" env:"TELEGRAM_PROXY" check:"proxy" doc:"HTTP or SOCKS5 proxy for this platform alone; a secret, because it may hold a password"`
	WebhookURL     string        `yaml:"webhook_url" env:"TELEGRAM_WEBHOOK_URL" check:"url" doc:"public https address for updates; unset: long polling"`
	WebhookSecret  Secret        `yaml:"webhook_secret" env:"TELEGRAM_WEBHOOK_SECRET" doc:"what Telegram must send along; mandatory with webhook_url"`
	WebhookPort    int           `yaml:"webhook_port" default:"8443" min:"0" max:"65535" env:"TELEGRAM_WEBHOOK_PORT" doc:"port of a listener for the webhook alone, on all addresses; 0: the HTTP listener serves it"`
	PollTimeout    time.Duration `yaml:"poll_timeout" default:"30s" min:"0s" max:"50s" doc:"how long one poll waits for updates"`
	GuestMode      bool          `yaml:"guest_mode" default:"false" doc:"with allowed_chats set: other chats are answered when they speak to the bot"`
	ExclusiveBots  bool          `yaml:"exclusive_bot_mentions" default:"true" doc:"a message that mentions another bot and not us is not for us"`
	IgnoredThreads []string      `yaml:"ignored_threads" doc:"ids of topics that are never answered"`
	Observe        bool          `yaml:"observe_unmentioned_group_messages" default:"false" doc:"keep group messages that are not for the bot as context"`
	MaxCommands    int           `yaml:"max_commands" default:"60" min:"1" max:"100" doc:"entries of the command menu"`
	NoLinkPreviews bool          `yaml:"disable_link_previews" default:"false" doc:"send links without a preview"`
	FallbackIPs    []string      `yaml:"fallback_ips" env:"TELEGRAM_FALLBACK_IPS" check:"ip" doc:"addresses to try when the name does not resolve"`
}

// On reports whether Telegram is to be started: enabled, or not set and a token is there.
func (t Telegram) On() bool { return t.on(t.Token.IsSet()) }

// Guests implements Guests.
func (t Telegram) Guests() bool { return t.GuestMode }
