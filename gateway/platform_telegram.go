package gateway

import (
	"herald/gateway/config"
	"herald/platforms"
	"herald/platforms/telegram"
)

// telegramAccounts makes the one account of a bot token.
func telegramAccounts(g *Gateway, cfg *config.Config) ([]*account, error) {
	adapter, err := g.newTelegram(cfg)
	if err != nil {
		return nil, err
	}
	t := cfg.Platforms.Telegram
	acc := &account{adapter: adapter, lockName: "telegram-bot-token", identity: t.Token.Reveal()}
	if t.WebhookURL != "" {
		acc.port, acc.portKey = t.WebhookPort, "platforms.telegram.webhook_port"
	}
	return []*account{acc}, nil
}

func (g *Gateway) newTelegram(cfg *config.Config) (platforms.Adapter, error) {
	t := cfg.Platforms.Telegram
	limit, files := t.RateLimit.On, ""
	if t.LocalMode {
		files = t.LocalRoot
	}
	return telegram.New(telegram.Options{
		Token: t.Token.Reveal(), BaseURL: t.BaseURL, FileURL: t.BaseFileURL, LocalRoot: files, Proxy: t.Proxy.Reveal(),
		IgnoreProxyEnv: !cfg.Gateway.TrustEnv, FallbackIPs: t.FallbackIPs, ConnectTimeout: cfg.Gateway.ConnectTimeout, FreeChats: t.FreeResponseChats,
		WebhookURL: t.WebhookURL, WebhookSecret: t.WebhookSecret.Reveal(), RequireMention: t.RequireMention,
		MentionPatterns: t.MentionPatterns, ExclusiveBotMentions: &t.ExclusiveBots, BotsRequireMention: t.BotsRequireMention,
		IgnoredThreads: t.IgnoredThreads, ObserveUnmentioned: t.Observe, AllowedChats: t.AllowedChats, GuestMode: t.GuestMode,
		Reactions: g.reacts("telegram"), MaxCommands: t.MaxCommands, DisableLinkPreviews: t.NoLinkPreviews, RateLimit: &limit,
		PollTimeout: t.PollTimeout, Log: g.log, Metrics: g.metrics.Adapter("telegram"),
	})
}
