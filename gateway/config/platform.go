package config

import (
	"strings"
	"time"

	"herald/platforms"
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

// The blocks of platforms are described in package platforms, where the platforms themselves can use them.
type (
	Platform = platforms.Common
	Home     = platforms.HomeChannel
)

// Web is the browser chat. Its door is http.listen, http.password and http.token.
type Web struct {
	Platform
	Title string `yaml:"title" default:"Herald" check:"text" doc:"the page's title"`
}

// On reports whether the browser chat is served: yes, unless it is switched off.
func (w Web) On() bool { return w.Starts(true) }

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
func (t Telegram) On() bool { return t.Starts(t.Token.IsSet()) }

// Guests implements Guests.
func (t Telegram) Guests() bool { return t.GuestMode }
