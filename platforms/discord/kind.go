package discord

import (
	"time"

	"herald/platforms"
)

// Kind is what Herald knows of Discord.
type Kind struct{}

// Name implements platforms.Kind.
func (Kind) Name() platforms.Name { return Platform }

// About implements platforms.Kind.
func (Kind) About() platforms.About {
	return platforms.About{Title: "Discord", Block: "a Discord bot", Variables: "DISCORD"}
}

// Settings implements platforms.Kind.
func (Kind) Settings() platforms.Settings { return &Settings{} }

// Rules implements platforms.Kind. Memory notices would be seen by the whole channel.
func (Kind) Rules() platforms.Rules {
	return platforms.Rules{
		ReplyThread: func(t platforms.ChatType) bool { return t != platforms.DM }, ThreadRooms: true,
		NoMemoryNotices: true, HomeRank: 2,
	}
}

// New makes the one account of a bot token.
func (Kind) New(host platforms.Host, own platforms.Settings) ([]platforms.Login, error) {
	s := own.(*Settings)
	limit, bots, history := s.RateLimit.On, s.BotsRequireMention && s.InlineMention, -1
	if s.History {
		history = s.HistoryLimit
	}
	token, proxy := s.Token.Reveal(), s.Proxy.Reveal()
	adapter, err := New(Options{
		Token: token, APIURL: s.APIURL, Proxy: proxy, IgnoreProxyEnv: !host.TrustEnv, RateLimit: &limit,
		IgnoredChannels: s.Ignored, AllowedChannels: s.Channels, RequireMention: &s.Mention, FreeChannels: s.FreeChannels,
		FreeAutoThread: s.FreeThreads, IgnoreOtherMentions: &s.IgnoreOthers, ThreadRequireMention: s.ThreadMention,
		BotsRequireMention: &bots, MentionPatterns: s.MentionPatterns, AutoThread: &s.AutoThread, NoThreadChannels: s.NoThread,
		HistoryLimit: history, LookupRoles: len(s.AllowedRoles) > 0, Reactions: host.Reactions,
		MentionEveryone: s.Mentions.Everyone, MentionRoles: s.Mentions.Roles, MentionUsers: &s.Mentions.Users,
		MentionReplied: &s.Mentions.RepliedUser, NoCommands: !s.SlashCommands,
		CommandSync: SyncPolicy(s.CommandSync), CommandRecreate: s.CommandRecreate,
		Missed: Missed{
			Enabled: s.Missed.Enabled, Channels: s.Missed.Channels, Window: time.Duration(s.Missed.WindowSeconds) * time.Second,
			Limit: s.Missed.Limit, Dispatches: s.Missed.MaxDispatches, Attempts: s.Missed.MaxAttempts,
		},
		ConnectTimeout: host.ConnectTimeout, Downloads: host.Downloads(proxy, s.APIURL),
		Memory: host.Memory(AccountOf(token)), Log: host.Log, Metrics: host.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return []platforms.Login{{Adapter: adapter, LockName: "discord-bot-token", Identity: token}}, nil
}
