package telegram

import (
	"strings"
	"time"

	"herald/platforms"
)

// Settings is the block platforms.telegram.
type Settings struct {
	platforms.Common
	Token          platforms.Secret `yaml:"token" env:"TELEGRAM_BOT_TOKEN" doc:"the bot's token from @BotFather"`
	BaseURL        string           `yaml:"base_url" check:"url" doc:"an own Bot API server; unset: https://api.telegram.org"`
	BaseFileURL    string           `yaml:"base_file_url" check:"url" doc:"where that server hands out files; unset: base_url"`
	LocalMode      bool             `yaml:"local_mode" default:"false" doc:"that server runs with --local: files are paths on this machine and may have 2 GB"`
	LocalRoot      string           `yaml:"local_root" default:"/var/lib/telegram-bot-api" check:"abspath" doc:"with local_mode: the directory of that server's files; nothing outside it is read"`
	Proxy          platforms.Secret `yaml:"proxy" env:"TELEGRAM_PROXY" check:"proxy" doc:"HTTP or SOCKS5 proxy for this platform alone; a secret, because it may hold a password"`
	WebhookURL     string           `yaml:"webhook_url" env:"TELEGRAM_WEBHOOK_URL" check:"url" doc:"public https address for updates; unset: long polling"`
	WebhookSecret  platforms.Secret `yaml:"webhook_secret" env:"TELEGRAM_WEBHOOK_SECRET" doc:"what Telegram must send along; mandatory with webhook_url"`
	WebhookPort    int              `yaml:"webhook_port" default:"8443" min:"0" max:"65535" env:"TELEGRAM_WEBHOOK_PORT" doc:"port of a listener for the webhook alone, on all addresses; 0: the HTTP listener serves it"`
	PollTimeout    time.Duration    `yaml:"poll_timeout" default:"30s" min:"0s" max:"50s" doc:"how long one poll waits for updates"`
	GuestMode      bool             `yaml:"guest_mode" default:"false" doc:"with allowed_chats set: other chats are answered when they speak to the bot"`
	ExclusiveBots  bool             `yaml:"exclusive_bot_mentions" default:"true" doc:"a message that mentions another bot and not us is not for us"`
	IgnoredThreads []string         `yaml:"ignored_threads" doc:"ids of topics that are never answered"`
	Observe        bool             `yaml:"observe_unmentioned_group_messages" default:"false" doc:"keep group messages that are not for the bot as context"`
	MaxCommands    int              `yaml:"max_commands" default:"60" min:"1" max:"100" doc:"entries of the command menu"`
	NoLinkPreviews bool             `yaml:"disable_link_previews" default:"false" doc:"send links without a preview"`
	FallbackIPs    []string         `yaml:"fallback_ips" env:"TELEGRAM_FALLBACK_IPS" check:"ip" doc:"addresses to try when the name does not resolve"`
}

// On reports whether Telegram is to be started: enabled, or not set and a token is there.
func (s Settings) On() bool { return s.Starts(s.Token.IsSet()) }

// Guests implements platforms.Guests.
func (s Settings) Guests() bool { return s.GuestMode }

// Check implements platforms.Checked.
func (s Settings) Check(f platforms.Findings) {
	if s.Enabled != nil && !*s.Enabled && s.Token.IsSet() {
		f.Warnf("enabled", "enabled", "Telegram stays off although TELEGRAM_BOT_TOKEN is set")
	}
	if !s.On() {
		return
	}
	if !s.Token.IsSet() {
		f.Errorf("token", "enabled", "Telegram is on and has no token; set TELEGRAM_BOT_TOKEN in the environment or in .env")
	}
	if s.WebhookURL == "" {
		return
	}
	if !s.WebhookSecret.IsSet() {
		f.Errorf("webhook_secret", "webhook_url",
			"webhook_url is set and there is no secret, so anyone could send updates; set TELEGRAM_WEBHOOK_SECRET in the environment or in .env")
	} else if !goodSecret(s.WebhookSecret.Reveal()) {
		f.Errorf("webhook_secret", "webhook_secret", "Telegram takes 1 to 256 letters, digits, _ and - here")
	}
	if !strings.HasPrefix(s.WebhookURL, "https://") && s.BaseURL == "" {
		f.Errorf("webhook_url", "webhook_url", "%q: Telegram calls https addresses only", s.WebhookURL)
	}
}

func goodSecret(s string) bool {
	return len(s) <= 256 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
