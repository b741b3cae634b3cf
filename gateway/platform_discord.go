package gateway

import (
	"time"

	"herald/gateway/config"
	"herald/platforms/discord"
)

// discordAccounts makes the one account of a bot token.
func discordAccounts(g *Gateway, cfg *config.Config) ([]*account, error) {
	d := cfg.Platforms.Discord
	limit, bots, history := d.RateLimit.On, d.BotsRequireMention && d.InlineMention, -1
	if d.History {
		history = d.HistoryLimit
	}
	token := d.Token.Reveal()
	adapter, err := discord.New(discord.Options{
		Token: token, APIURL: d.APIURL, Proxy: d.Proxy.Reveal(), IgnoreProxyEnv: !cfg.Gateway.TrustEnv, RateLimit: &limit,
		IgnoredChannels: d.Ignored, AllowedChannels: d.Channels, RequireMention: &d.Mention, FreeChannels: d.FreeChannels,
		FreeAutoThread: d.FreeThreads, IgnoreOtherMentions: &d.IgnoreOthers, ThreadRequireMention: d.ThreadMention,
		BotsRequireMention: &bots, MentionPatterns: d.MentionPatterns, AutoThread: &d.AutoThread, NoThreadChannels: d.NoThread,
		HistoryLimit: history, LookupRoles: len(d.AllowedRoles) > 0, Reactions: g.reacts(discord.Platform), MentionEveryone: d.Mentions.Everyone, MentionRoles: d.Mentions.Roles,
		MentionUsers: &d.Mentions.Users, MentionReplied: &d.Mentions.RepliedUser, NoCommands: !d.SlashCommands,
		CommandSync: discord.SyncPolicy(d.CommandSync), CommandRecreate: d.CommandRecreate,
		Missed: discord.Missed{
			Enabled: d.Missed.Enabled, Channels: d.Missed.Channels, Window: time.Duration(d.Missed.WindowSeconds) * time.Second,
			Limit: d.Missed.Limit, Dispatches: d.Missed.MaxDispatches, Attempts: d.Missed.MaxAttempts,
		},
		ConnectTimeout: cfg.Gateway.ConnectTimeout, Downloads: g.downloads(d.Proxy.Reveal(), d.APIURL),
		Memory: g.memoryOf(discord.AccountOf(token)), Log: g.log, Metrics: g.metrics.Adapter(discord.Platform),
	})
	if err != nil {
		return nil, err
	}
	return []*account{{adapter: adapter, lockName: "discord-bot-token", identity: token}}, nil
}
