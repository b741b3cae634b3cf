package slack

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
	"herald/platforms/wire"
)

// Platform is the name of this platform.
const Platform platforms.Name = "slack"

// Defaults of Options. The limits are Slack's own, see https://docs.slack.dev/reference/methods and
// https://docs.slack.dev/reference/block-kit/blocks.
const (
	DefaultAPIURL = "https://slack.com/api/"

	// DefaultConnectTimeout bounds a connection attempt and the wait for Slack's hello.
	DefaultConnectTimeout = 15 * time.Second
	// DefaultPingEvery is how often we ask Slack for a sign of life; Slack itself pings about as often.
	DefaultPingEvery = 10 * time.Second
	// DefaultDeafAfter is how long a connection may be silent before it counts as dead.
	DefaultDeafAfter = 30 * time.Second

	DefaultBackoffMin = 200 * time.Millisecond
	DefaultBackoffMax = 30 * time.Second
	// DefaultLookup bounds the names that are asked for while an event waits: Slack wants the acknowledgement
	// within 3 s.
	DefaultLookup = 1500 * time.Millisecond

	textLimit     = 39000   // of the 40,000 that chat.postMessage takes before it cuts
	maxUpload     = 1 << 30 // Slack takes files up to 1 GB
	uploadTries   = 3
	threadsKept   = 5000
	privatePosts  = 5 // a response URL takes five posts
	maxPrompts    = 4
	maxPrefix     = 500
	commandName   = "herald"
	feedbackID    = "herald_feedback"
	metadataEvent = "herald_message"
)

// Token is one workspace's bot token.
type Token struct {
	Token string // "xoxb-…", a secret
	// Team is the workspace's id where the settings name it: another one in Slack's answer is told in the log.
	Team string
}

// Options configures the adapters of one app. Tokens and AppToken are mandatory; New fills in the defaults.
type Options struct {
	// Tokens are the bot tokens, one per workspace. Repetitions are one.
	Tokens []Token
	// AppToken is the app-level token with the scope connections:write, "xapp-…". It is a secret.
	AppToken string
	// APIURL is the root of the Web API. Empty is DefaultAPIURL.
	APIURL string
	// Proxy is the URL of an HTTP(S) proxy; another scheme is ignored with a line in the log. Empty takes the
	// proxy of the environment, unless IgnoreProxyEnv is set. NO_PROXY wins over both.
	Proxy          string
	IgnoreProxyEnv bool

	// RequireMention nil is true: a message that opens no thread of ours must speak to the bot.
	RequireMention *bool
	// FreeChannels are where RequireMention does not hold, MentionChannels where it always does; both by id.
	FreeChannels, MentionChannels []string
	// ThreadRequireMention wants a mention in threads too, StrictMention in every message outside direct chats.
	ThreadRequireMention, StrictMention bool
	// IgnoreOtherMentions drops messages that open by addressing somebody else.
	IgnoreOtherMentions bool
	// AllowedChannels are the only ones that are answered, IgnoredChannels those that never are; by id. Direct
	// chats are exempt from the first.
	AllowedChannels, IgnoredChannels []string
	// AllowBots returns "none", "mentions" (that very message must name us) or "all"; nil is "none". It is asked for
	// each message of a bot, so that the setting can change while the adapter runs.
	AllowBots func() string
	// APIHumans are the ids of people whose posts with their own token count as theirs and not as a bot's.
	APIHumans []string
	// MentionPatterns are further wake words: regular expressions, case-insensitive. A bad one is reported in the
	// log and ignored.
	MentionPatterns []string
	// ReactionTriggers hands reactions on: nil none, "true" those on our messages, otherwise these emoji (names
	// without colons) on any message.
	ReactionTriggers []string
	// ReactionTarget is where a reaction is answered, as "channel" or "channel:thread". Empty is its own place.
	ReactionTarget string

	// ReplyInThread nil is true: a message that is in no thread opens one.
	ReplyInThread *bool
	// ReplyBroadcast shows the first part of the first reply of a thread in the channel too.
	ReplyBroadcast bool
	// ReplyPrefix is put in front of every answer.
	ReplyPrefix string
	// UnfurlLinks and UnfurlMedia set Slack's previews; nil is Slack's own default.
	UnfurlLinks, UnfurlMedia *bool
	// RichBlocks sends tables as blocks. FeedbackButtons adds thumbs to answers, and needs RichBlocks.
	RichBlocks, FeedbackButtons bool
	// TaskCards shows bubbles about the work as task cards.
	TaskCards bool
	// NativeStreaming nil is true: answers in threads grow by Slack's own streams.
	NativeStreaming *bool
	// Prompts are the suggestions of a new assistant thread, at most 4. AssistantTitles nil is true: an assistant
	// thread is named after its first message.
	Prompts         []PromptSettings
	AssistantTitles *bool
	// Reactions lets React put emoji on messages. Off, React returns Unsupported.
	Reactions bool
	// RateLimit keeps sends under Slack's limits. nil means true; false is for private servers. PostsPerSecond is how
	// many messages a channel gets then; 0 is Slack's number, 1.
	RateLimit      *bool
	PostsPerSecond float64

	// ConnectTimeout, PingEvery, DeafAfter, BackoffMin, BackoffMax and Lookup: 0 are the defaults.
	ConnectTimeout, PingEvery, DeafAfter time.Duration
	BackoffMin, BackoffMax, Lookup       time.Duration

	// Memory returns where an account keeps what must outlast a restart. nil forgets.
	Memory func(platforms.AccountID) platforms.Memory
	// Log takes one line per notable event. The zero value is silent.
	Log zerolog.Logger
	// Metrics is told what an operator counts. nil is nobody.
	// Polled counts one connection attempt or batch: "ok", "network", "refused" (by the store), "auth". Dropped counts an
	// event that was not handed on, by reason: "own", "ignored", "chat", "bot", "other_user", "unmentioned", "service",
	// "deleted", "unchanged", "reaction", "empty", "undecodable", "unsupported", "team", "rate_limited" (Slack did not deliver
	// it).
	Metrics platforms.Metrics
	// Clock is the time. nil is the system's.
	Clock wire.Clock
}

// settings are Options checked and filled in; all accounts of an app share them.
type settings struct {
	Options
	api       *url.URL
	proxy     *url.URL
	mention   bool
	inThread  bool
	streaming bool
	titles    bool
	limited   bool
	patterns  wire.WakeWords

	free, must, allowed, ignored, humans map[string]bool

	onReactions bool
	emoji       map[string]bool // nil: only those on our messages
	target      platforms.Address
}

var tokenPattern = regexp.MustCompile(`^x[a-z]{3}(\.[a-z0-9-]+)?-[A-Za-z0-9_.+/=-]+$`)

// check validates o. The error names the key, the value (unless it is a secret) and what is allowed.
func (o Options) check() (*settings, error) {
	yes := func(p *bool) bool { return p == nil || *p }
	s := &settings{Options: o, mention: yes(o.RequireMention), inThread: yes(o.ReplyInThread), streaming: yes(o.NativeStreaming),
		titles: yes(o.AssistantTitles), limited: yes(o.RateLimit)}
	if err := s.checkTokens(); err != nil {
		return nil, err
	}
	if err := s.checkURLs(); err != nil {
		return nil, err
	}
	if err := s.checkTimes(); err != nil {
		return nil, err
	}
	if s.AllowBots == nil {
		s.AllowBots = func() string { return "none" }
	}
	if len(s.Prompts) > maxPrompts {
		return nil, setting("suggested_prompts", fmt.Errorf("%d are too many: Slack shows at most %d", len(s.Prompts), maxPrompts), "")
	}
	if len(s.ReplyPrefix) > maxPrefix {
		return nil, setting("reply_prefix", fmt.Errorf("has %d bytes: want at most %d", len(s.ReplyPrefix), maxPrefix), "")
	}
	if s.FeedbackButtons && !s.RichBlocks {
		s.Log.Warn().Msg("platforms.slack.feedback_buttons needs rich_blocks and is off")
		s.FeedbackButtons = false
	}
	s.free, s.must, s.allowed, s.ignored, s.humans = set(o.FreeChannels), set(o.MentionChannels), set(o.AllowedChannels),
		set(o.IgnoredChannels), set(o.APIHumans)
	if s.allowed["*"] {
		s.allowed = nil
	}
	s.reactions()
	s.patterns = wire.NewWakeWords(o.MentionPatterns, o.Log)
	if s.Metrics == nil {
		s.Metrics = platforms.NoMetrics{}
	}
	if s.Clock == nil {
		s.Clock = wire.System{}
	}
	if s.Memory == nil {
		s.Memory = func(platforms.AccountID) platforms.Memory { return platforms.NewMemory() }
	}
	return s, nil
}

func (s *settings) checkTokens() error {
	var kept []Token
	seen := map[string]bool{}
	for _, t := range s.Tokens {
		t.Token = strings.TrimSpace(t.Token)
		if t.Token == "" || seen[t.Token] {
			continue
		}
		seen[t.Token] = true
		switch {
		case !tokenPattern.MatchString(t.Token):
			return setting("bot_token", errors.New("is malformed: want xoxb- and the rest, without spaces"), "copy the Bot User OAuth Token from the app's page Install App")
		case strings.HasPrefix(t.Token, "xapp-"):
			return setting("bot_token", errors.New("is an app-level token"), "xapp-… belongs to SLACK_APP_TOKEN; the bot token begins with xoxb-")
		case strings.HasPrefix(t.Token, "xoxp-"):
			return setting("bot_token", errors.New("is a user token"), "take the Bot User OAuth Token, which begins with xoxb-")
		}
		kept = append(kept, t)
	}
	s.Tokens = kept
	switch {
	case len(kept) == 0:
		return setting("bot_token", errors.New("is empty"), "set SLACK_BOT_TOKEN to the Bot User OAuth Token of the app")
	case s.AppToken == "":
		return setting("app_token", errors.New("is empty"), "set SLACK_APP_TOKEN to an app-level token with the scope connections:write")
	case !tokenPattern.MatchString(s.AppToken) || !strings.HasPrefix(s.AppToken, "xapp-"):
		return setting("app_token", errors.New("is malformed: want xapp- and the rest, without spaces"), "make an app-level token on the app's page Basic Information")
	}
	return nil
}

func (s *settings) checkURLs() error {
	if s.APIURL == "" {
		s.APIURL = DefaultAPIURL
	}
	s.APIURL = strings.TrimRight(s.APIURL, "/") + "/"
	u, err := url.Parse(s.APIURL)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		return setting("api_url", errors.New("want an absolute URL with scheme http or https"), "")
	}
	s.api = u
	if s.Proxy == "" {
		return nil
	}
	p, err := url.Parse(s.Proxy)
	switch {
	case err != nil || p.Host == "":
		return setting("proxy", errors.New("is no URL"), "")
	case p.Scheme != "http" && p.Scheme != "https":
		s.Log.Warn().Str("scheme", p.Scheme).Msg("platforms.slack.proxy is ignored: only http and https proxies are used for Slack")
	default:
		s.proxy = p
	}
	return nil
}

func (s *settings) checkTimes() error {
	for _, d := range []struct {
		key   string
		value *time.Duration
		def   time.Duration
	}{
		{"connect_timeout", &s.ConnectTimeout, DefaultConnectTimeout},
		{"ping_every", &s.PingEvery, DefaultPingEvery},
		{"deaf_after", &s.DeafAfter, DefaultDeafAfter},
		{"backoff_min", &s.BackoffMin, DefaultBackoffMin},
		{"backoff_max", &s.BackoffMax, DefaultBackoffMax},
		{"lookup", &s.Lookup, DefaultLookup},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < time.Millisecond {
			return setting(d.key, fmt.Errorf("%s is too short: want at least 1ms", *d.value), "")
		}
	}
	s.BackoffMax = max(s.BackoffMax, s.BackoffMin)
	return nil
}

// reactions reads which reactions are handed on, and where they are answered.
func (s *settings) reactions() {
	for _, name := range s.ReactionTriggers {
		switch name = strings.Trim(strings.TrimSpace(strings.ToLower(name)), ":"); name {
		case "", "false", "off":
		case "true", "on":
			s.onReactions = true
		default:
			s.onReactions = true
			if s.emoji == nil {
				s.emoji = map[string]bool{}
			}
			s.emoji[slackName(name)] = true
		}
	}
	chat, thread, _ := strings.Cut(s.ReactionTarget, ":")
	s.target = platforms.Address{Platform: Platform, Chat: platforms.ChatID(strings.TrimSpace(chat)),
		Thread: platforms.ThreadID(strings.TrimSpace(thread))}
}

func setting(key string, err error, hint string) *platforms.StartError {
	return &platforms.StartError{Account: platforms.Account{Platform: Platform}, Setting: "platforms.slack." + key, Err: err, Hint: hint}
}

func set(values []string) map[string]bool {
	m := make(map[string]bool, len(values))
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" {
			m[v] = true
		}
	}
	return m
}
