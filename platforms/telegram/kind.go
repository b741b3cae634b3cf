package telegram

import (
	"strings"

	"herald/platforms"
)

// Kind is what Herald knows of Telegram.
type Kind struct{}

// Name implements platforms.Kind.
func (Kind) Name() platforms.Name { return Platform }

// About implements platforms.Kind.
func (Kind) About() platforms.About {
	return platforms.About{Title: "Telegram", Block: "Telegram bots", Variables: "TELEGRAM",
		Obsolete: []string{"drop_pending_on_cold_boot", "parse_mode"}}
}

// Settings implements platforms.Kind.
func (Kind) Settings() platforms.Settings { return &Settings{} }

// Rules implements platforms.Kind. The ids of groups and channels are negative. Telegram allows a bot few reactions.
func (Kind) Rules() platforms.Rules {
	return platforms.Rules{
		DirectChat: func(chat platforms.ChatID) bool { return chat != "" && strings.Trim(string(chat), "0123456789") == "" },
		Topics:     true, NoReactions: true, HomeRank: 1,
	}
}

// New makes the one account of a bot token.
func (Kind) New(host platforms.Host, own platforms.Settings) ([]platforms.Login, error) {
	s := own.(*Settings)
	limit, files := s.RateLimit.On, ""
	if s.LocalMode {
		files = s.LocalRoot
	}
	adapter, err := New(Options{
		Token: s.Token.Reveal(), BaseURL: s.BaseURL, FileURL: s.BaseFileURL, LocalRoot: files, Proxy: s.Proxy.Reveal(),
		IgnoreProxyEnv: !host.TrustEnv, FallbackIPs: s.FallbackIPs, ConnectTimeout: host.ConnectTimeout, FreeChats: s.FreeResponseChats,
		WebhookURL: s.WebhookURL, WebhookSecret: s.WebhookSecret.Reveal(), RequireMention: s.RequireMention,
		MentionPatterns: s.MentionPatterns, ExclusiveBotMentions: &s.ExclusiveBots, BotsRequireMention: s.BotsRequireMention,
		IgnoredThreads: s.IgnoredThreads, ObserveUnmentioned: s.Observe, AllowedChats: s.AllowedChats, GuestMode: s.GuestMode,
		Reactions: host.Reactions, MaxCommands: s.MaxCommands, DisableLinkPreviews: s.NoLinkPreviews, RateLimit: &limit,
		PollTimeout: s.PollTimeout, Log: host.Log, Metrics: host.Metrics,
	})
	if err != nil {
		return nil, err
	}
	login := platforms.Login{Adapter: adapter, LockName: "telegram-bot-token", Identity: s.Token.Reveal()}
	if s.WebhookURL != "" {
		login.Port, login.PortKey = s.WebhookPort, "platforms.telegram.webhook_port"
	}
	return []platforms.Login{login}, nil
}
