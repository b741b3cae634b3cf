package slack

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"herald/platforms"
)

// Kind is what Herald knows of Slack.
type Kind struct{}

// Name implements platforms.Kind.
func (Kind) Name() platforms.Name { return Platform }

// About implements platforms.Kind.
func (Kind) About() platforms.About {
	return platforms.About{Title: "Slack", Block: "a Slack app", Variables: "SLACK"}
}

// Settings implements platforms.Kind.
func (Kind) Settings() platforms.Settings { return &Settings{} }

// Rules implements platforms.Kind. The ids of chats are unique in a workspace only; those of direct chats begin with "D".
func (Kind) Rules() platforms.Rules {
	return platforms.Rules{
		ScopedChats: true, StrayThreads: true, HomeRank: 3,
		DirectChat:  func(chat platforms.ChatID) bool { return strings.HasPrefix(string(chat), "D") },
		ReplyThread: func(platforms.ChatType) bool { return true },
	}
}

// New makes an account for each workspace whose bot token is there: in the setting, and in slack_tokens.json of the
// profile. They share one connection.
func (Kind) New(host platforms.Host, own platforms.Settings) ([]platforms.Login, error) {
	s := own.(*Settings)
	path := filepath.Join(host.Home, "slack_tokens.json")
	more, err := ReadTokens(path)
	if err != nil {
		return nil, &platforms.StartError{Account: platforms.Account{Platform: Platform}, Setting: path, Err: err,
			Hint: `write it as {"T0123": {"token": "xoxb-…", "team_name": "Example"}}, or remove it`}
	}
	adapters, err := New(s.options(host, append(SplitTokens(s.BotToken.Reveal()), more...)))
	if err != nil {
		return nil, err
	}
	var list []platforms.Login
	for _, a := range adapters {
		// Asks nobody. Here already, so that "!stop" works from the first message on.
		_ = a.SetCommands(context.Background(), host.Commands)
		list = append(list, platforms.Login{Adapter: a, LockName: "slack-bot-token", Identity: string(a.Account().ID)})
	}
	if len(list) == 0 {
		return nil, errors.New("no Slack workspace is set")
	}
	return list, nil
}

func (s *Settings) options(host platforms.Host, tokens []Token) Options {
	limit := s.RateLimit.On
	return Options{
		Tokens: tokens, AppToken: s.AppToken.Reveal(), APIURL: s.APIURL, Proxy: s.Proxy.Reveal(), IgnoreProxyEnv: !host.TrustEnv,
		ConnectTimeout: host.ConnectTimeout, RequireMention: &s.Mention, FreeChannels: s.FreeChannels, MentionChannels: s.MustMention,
		ThreadRequireMention: s.ThreadMention, StrictMention: s.StrictMention, IgnoreOtherMentions: s.IgnoreOthers,
		AllowedChannels: s.Channels, IgnoredChannels: s.Ignored, APIHumans: s.APIHumans, MentionPatterns: s.MentionPatterns,
		AllowBots:        func() string { return host.Live().Shared().AllowBots },
		ReactionTriggers: s.Triggers, ReactionTarget: s.TriggerTarget, ReplyInThread: &s.InThread, ReplyBroadcast: s.Broadcast,
		ReplyPrefix: s.Prefix, UnfurlLinks: s.UnfurlLinks, UnfurlMedia: s.UnfurlMedia, RichBlocks: s.RichBlocks, FeedbackButtons: s.Feedback,
		TaskCards: s.TaskCards, NativeStreaming: &s.Streaming, AssistantTitles: &s.Titles, Reactions: host.Reactions, RateLimit: &limit,
		PostsPerSecond: s.RateLimit.PerSecond,
		Memory: func(id platforms.AccountID) platforms.Memory {
			return host.Memory(platforms.Account{Platform: Platform, ID: id})
		},
		Prompts: s.Prompts, Log: host.Log, Metrics: host.Metrics,
	}
}
