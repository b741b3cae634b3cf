package gateway

import (
	"context"
	"errors"
	"path/filepath"

	"herald/gateway/command"
	"herald/gateway/config"
	"herald/platforms"
	"herald/platforms/slack"
)

// slackAccounts makes an account for each workspace whose bot token is there: in the setting, and in
// slack_tokens.json of the profile. They share one connection.
func slackAccounts(g *Gateway, cfg *config.Config) ([]*account, error) {
	s := cfg.Platforms.Slack
	path := filepath.Join(g.opt.Paths.Home, "slack_tokens.json")
	more, err := slack.ReadTokens(path)
	if err != nil {
		return nil, &platforms.StartError{Account: platforms.Account{Platform: slack.Platform}, Setting: path, Err: err,
			Hint: `write it as {"T0123": {"token": "xoxb-…", "team_name": "Example"}}, or remove it`}
	}
	adapters, err := slack.New(g.slackOptions(s, append(slack.SplitTokens(s.BotToken.Reveal()), more...)))
	if err != nil {
		return nil, err
	}
	var list []*account
	for _, a := range adapters {
		// Asks nobody. Here already, so that "!stop" works from the first message on.
		_ = a.SetCommands(context.Background(), command.New(command.Services{}).Infos())
		list = append(list, &account{adapter: a, lockName: "slack-bot-token", identity: string(a.Account().ID)})
	}
	if len(list) == 0 {
		return nil, errors.New("no Slack workspace is set")
	}
	return list, nil
}

func (g *Gateway) slackOptions(s config.Slack, tokens []slack.Token) slack.Options {
	limit := s.RateLimit.On
	o := slack.Options{
		Tokens: tokens, AppToken: s.AppToken.Reveal(), APIURL: s.APIURL, Proxy: s.Proxy.Reveal(), IgnoreProxyEnv: !g.cfg().Gateway.TrustEnv,
		ConnectTimeout: g.cfg().Gateway.ConnectTimeout, RequireMention: &s.Mention, FreeChannels: s.FreeChannels, MentionChannels: s.MustMention,
		ThreadRequireMention: s.ThreadMention, StrictMention: s.StrictMention, IgnoreOtherMentions: s.IgnoreOthers,
		AllowedChannels: s.Channels, IgnoredChannels: s.Ignored, APIHumans: s.APIHumans, MentionPatterns: s.MentionPatterns,
		AllowBots:        func() string { return g.cfg().Platforms.Slack.AllowBots },
		ReactionTriggers: s.Triggers, ReactionTarget: s.TriggerTarget, ReplyInThread: &s.InThread, ReplyBroadcast: s.Broadcast,
		ReplyPrefix: s.Prefix, UnfurlLinks: s.UnfurlLinks, UnfurlMedia: s.UnfurlMedia, RichBlocks: s.RichBlocks, FeedbackButtons: s.Feedback,
		TaskCards: s.TaskCards, NativeStreaming: &s.Streaming, AssistantTitles: &s.Titles, Reactions: g.reacts(slack.Platform), RateLimit: &limit, PostsPerSecond: s.RateLimit.PerSecond,
		Memory: func(id platforms.AccountID) platforms.Memory {
			return g.memoryOf(platforms.Account{Platform: slack.Platform, ID: id})
		},
		Log: g.log, Metrics: g.metrics.Adapter("slack"),
	}
	for _, p := range s.Prompts {
		o.Prompts = append(o.Prompts, slack.Prompt{Title: p.Title, Message: p.Message})
	}
	return o
}
