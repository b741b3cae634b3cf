package slack

import "herald/platforms"

// Settings is the block platforms.slack. Its own fields replace the common ones of the same key.
type Settings struct {
	platforms.Common
	BotToken      platforms.Secret `yaml:"bot_token" env:"SLACK_BOT_TOKEN" doc:"the Bot User OAuth Token (xoxb-…); a comma list serves several workspaces"`
	AppToken      platforms.Secret `yaml:"app_token" env:"SLACK_APP_TOKEN" doc:"the app-level token (xapp-…) with the scope connections:write"`
	APIURL        string           `yaml:"api_url" env:"SLACK_API_URL" check:"url" doc:"another Web API server; unset: https://slack.com/api/"`
	Proxy         platforms.Secret `yaml:"proxy" env:"SLACK_PROXY" check:"proxy" doc:"HTTP proxy for this platform alone; a secret, because it may hold a password"`
	Mention       bool             `yaml:"require_mention" default:"true" env:"SLACK_REQUIRE_MENTION" doc:"in channels only messages that speak to the bot are answered; replies in a thread where it takes part need no mention"`
	FreeChannels  []string         `yaml:"free_response_channels" env:"SLACK_FREE_RESPONSE_CHANNELS" doc:"ids of channels where require_mention does not hold"`
	MustMention   []string         `yaml:"require_mention_channels" env:"SLACK_REQUIRE_MENTION_CHANNELS" doc:"ids of channels where messages must mention the bot, whatever the two settings above say"`
	ThreadMention bool             `yaml:"thread_require_mention" default:"false" env:"SLACK_THREAD_REQUIRE_MENTION" doc:"replies in threads need a mention too"`
	StrictMention bool             `yaml:"strict_mention" default:"false" env:"SLACK_STRICT_MENTION" doc:"every message outside direct chats needs a mention"`
	IgnoreOthers  bool             `yaml:"ignore_other_user_mentions" default:"false" env:"SLACK_IGNORE_OTHER_USER_MENTIONS" doc:"messages that begin by addressing somebody else are not for the bot"`
	Channels      []string         `yaml:"allowed_channels" env:"SLACK_ALLOWED_CHANNELS" doc:"ids of the only channels that are answered; direct chats are exempt"`
	Ignored       []string         `yaml:"ignored_channels" env:"SLACK_IGNORED_CHANNELS" doc:"ids of channels that are never answered"`
	APIHumans     []string         `yaml:"api_human_users" env:"SLACK_API_HUMAN_USERS" doc:"ids of people whose posts with their own token count as theirs and not as a bot's"`
	Triggers      []string         `yaml:"reaction_triggers" env:"SLACK_REACTION_TRIGGERS" doc:"reactions that are handed on: true for those on the bot's messages, or the names of emoji on any message"`
	TriggerTarget string           `yaml:"reaction_trigger_target" env:"SLACK_REACTION_TRIGGER_TARGET" check:"text" doc:"where a reaction is answered, as channel or channel:thread; unset: where it is"`
	InThread      bool             `yaml:"reply_in_thread" default:"true" env:"SLACK_REPLY_IN_THREAD" doc:"a message in a channel is answered in a thread of its own"`
	Broadcast     bool             `yaml:"reply_broadcast" default:"false" doc:"the first part of a thread's first answer shows in the channel too"`
	Prefix        string           `yaml:"reply_prefix" check:"text" doc:"text in front of every answer"`
	UnfurlLinks   *bool            `yaml:"unfurl_links" doc:"previews of links; unset: as Slack does"`
	UnfurlMedia   *bool            `yaml:"unfurl_media" doc:"previews of pictures and videos; unset: as Slack does"`
	RichBlocks    bool             `yaml:"rich_blocks" default:"false" doc:"send tables as Slack's own"`
	Feedback      bool             `yaml:"feedback_buttons" default:"false" doc:"thumbs below answers, noted in the log; needs rich_blocks"`
	TaskCards     bool             `yaml:"native_task_cards" default:"false" doc:"show bubbles about the work as task cards"`
	Streaming     bool             `yaml:"native_streaming" default:"true" doc:"answers in threads grow by Slack's own streams, where streaming is on; off: by edits"`
	Prompts       []PromptSettings `yaml:"suggested_prompts" doc:"suggestions of a new assistant thread, at most 4"`
	Titles        bool             `yaml:"assistant_thread_titles" default:"true" doc:"name an assistant thread after its first message"`
}

// PromptSettings is one suggestion of an assistant thread.
type PromptSettings struct {
	Title   string `yaml:"title" check:"text" doc:"what the person sees; unset: the message"`
	Message string `yaml:"message" check:"text" doc:"what is sent when it is chosen"`
}

// On reports whether Slack is to be started: enabled, or not set and one of its tokens is there.
func (s Settings) On() bool { return s.Starts(s.BotToken.IsSet() || s.AppToken.IsSet()) }
