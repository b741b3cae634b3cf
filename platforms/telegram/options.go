package telegram

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
	"herald/platforms/wire"
)

// Platform is the name of this platform.
const Platform platforms.Name = "telegram"

// Defaults of Options. The limits are the Bot API's own, see https://core.telegram.org/bots/api and
// https://core.telegram.org/bots/faq.
const (
	DefaultBaseURL     = "https://api.telegram.org"
	DefaultPollTimeout = 50 * time.Second
	DefaultPollMargin  = 10 * time.Second

	// DefaultConnectTimeout is the project's own choice: the API answers within one second as a rule.
	DefaultConnectTimeout = 30 * time.Second

	DefaultBackoffMin  = 200 * time.Millisecond
	DefaultBackoffMax  = 15 * time.Second
	DefaultAlbumWait   = 400 * time.Millisecond
	DefaultMaxCommands = 60
	DefaultWebhookPath = "/webhooks/telegram"

	// MaxCommands is the most commands setMyCommands takes.
	MaxCommands = 100

	publicUpload   = 50 << 20   // api.telegram.org takes at most 50 MB
	localUpload    = 2000 << 20 // a private server takes up to 2000 MB
	publicDownload = 20 << 20   // getFile of api.telegram.org serves at most 20 MB
	textLimit      = 4096       // UTF-16 units after parsing
	captionLimit   = 1024       // UTF-16 units after parsing
	photoLimit     = 10 << 20   // sendPhoto takes at most 10 MB
	albumLimit     = 10         // sendMediaGroup takes 2 to 10 files
)

// Options configures an Adapter. Only Token is mandatory; New fills in the defaults.
type Options struct {
	// Token is the bot's token, "<digits>:<secret>". It is a secret.
	Token string
	// BaseURL is the root of the Bot API server, without "/bot<token>". Empty is DefaultBaseURL; another
	// one is a private server, which lifts the file limits (upload 2000 MB, download without a limit).
	BaseURL string
	// FileURL is the root that files are downloaded from, without "/bot<token>". Empty is BaseURL + "/file".
	FileURL string
	// LocalRoot is the folder of a private server in local mode, whose getFile answers an absolute path.
	// Only files below it are read. Empty refuses absolute paths.
	LocalRoot string
	// Proxy is the URL of an HTTP(S) or SOCKS5 proxy. Empty takes the proxy of the environment, unless
	// IgnoreProxyEnv is set.
	Proxy          string
	IgnoreProxyEnv bool
	// FallbackIPs are addresses of the Bot API server that are tried in order when its name does not resolve.
	FallbackIPs []string
	// ConnectTimeout bounds one attempt to connect, and the first question to the server. 0 is
	// DefaultConnectTimeout.
	ConnectTimeout time.Duration

	// WebhookURL switches from polling to a webhook: the public https address that Telegram posts to. Its
	// path need not be WebhookPath: a reverse proxy may stand between.
	WebhookURL string
	// WebhookSecret is what Telegram repeats in a header of each post: 1 to 256 of A-Z a-z 0-9 _ -. It is a
	// secret, and mandatory with WebhookURL.
	WebhookSecret string
	// WebhookPath is the route on Herald's listener. Empty is DefaultWebhookPath.
	WebhookPath string

	// RequireMention drops group messages that don't speak to the bot: no mention, no reply to it, no
	// /command@name, no match of MentionPatterns.
	RequireMention bool
	// FreeChats are the groups where RequireMention does not hold, by id.
	FreeChats []string
	// MentionPatterns are further wake words for groups: regular expressions, case-insensitive. A bad one is
	// reported in the log and ignored.
	MentionPatterns []string
	// ExclusiveBotMentions treats a group message that names other bots and not ours as meant for them. nil
	// means true.
	ExclusiveBotMentions *bool
	// BotsRequireMention takes messages of other bots only when they name ours.
	BotsRequireMention bool
	// IgnoredThreads are topics the bot never answers in, as "<thread>" for every chat or "<chat>/<thread>".
	// "1" is the General topic.
	IgnoredThreads []string
	// ObserveUnmentioned hands unaddressed group messages on as Observed instead of dropping them.
	ObserveUnmentioned bool
	// AllowedChats are the groups and channels where the bot answers, by id. Empty means all. Direct chats
	// are not touched.
	AllowedChats []string
	// GuestMode answers in groups outside AllowedChats, when mentioned.
	GuestMode bool

	// Reactions lets React put emoji on messages. Off, React returns Unsupported.
	Reactions bool
	// MaxCommands is how many commands the menu shows, 1 to 100. 0 is DefaultMaxCommands.
	MaxCommands int
	// DisableLinkPreviews sends messages without link previews.
	DisableLinkPreviews bool
	// RateLimit keeps sends and edits under Telegram's limits. nil means true; false is for private servers.
	RateLimit *bool

	// PollTimeout is how long one getUpdates waits on the server, in whole seconds, at least one. 0 is
	// DefaultPollTimeout.
	PollTimeout time.Duration
	// PollMargin is how much longer than PollTimeout an answer may take before the connection counts as
	// dead. 0 is DefaultPollMargin.
	PollMargin time.Duration
	// BackoffMin and BackoffMax bound the wait between failed polls. 0 are the defaults.
	BackoffMin, BackoffMax time.Duration
	// AlbumWait is how long the rest of an album is waited for. 0 is DefaultAlbumWait, negative is no wait.
	AlbumWait time.Duration

	// Log takes one line per notable event. The zero value is silent.
	Log zerolog.Logger
	// Metrics is told what an operator counts. nil is nobody.
	// Polled counts one poll: "ok", "network", "conflict", "refused" (by the store), "http", "auth". Dropped counts an update
	// that made no event, by reason: "unmentioned", "other_bot", "bot", "chat", "thread", "service", "empty", "undecodable",
	// "unsupported".
	Metrics platforms.Metrics
	// Clock is the time. nil is the system's.
	Clock wire.Clock
}

var (
	tokenPattern  = regexp.MustCompile(`^([0-9]{1,19}):[A-Za-z0-9_.~=+-]+$`)
	secretPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
)

// settings are Options checked and filled in.
type settings struct {
	Options
	account       platforms.Account
	proxy         *url.URL // nil: none is set
	proxyPassword string
	api           *url.URL
	files         string
	private       bool // not api.telegram.org
	exclusive     bool
	limited       bool
	patterns      wire.WakeWords
	threads       map[string]bool
	chats         map[string]bool
	free          map[string]bool // where people need not mention the bot
	allowsAll     bool
	pollSecs      int
}

// check validates o. The error names the key, the value (unless it is a secret) and what is allowed.
func (o Options) check() (settings, error) {
	s := settings{Options: o, exclusive: o.ExclusiveBotMentions == nil || *o.ExclusiveBotMentions, limited: o.RateLimit == nil || *o.RateLimit}
	s.account.Platform = Platform
	match := tokenPattern.FindStringSubmatch(o.Token)
	switch {
	case o.Token == "":
		return s, setting("token", errors.New("is empty"), "set TELEGRAM_BOT_TOKEN to the token that @BotFather gave")
	case match == nil:
		return s, setting("token", errors.New("is malformed: want digits, a colon and the secret part, without spaces"), "copy the whole token from @BotFather")
	}
	s.account.ID = platforms.AccountID(match[1])
	if s.BaseURL == "" {
		s.BaseURL = DefaultBaseURL
	}
	s.BaseURL = rootOf(s.BaseURL)
	var err error
	if s.api, err = webURL(s.BaseURL, "http", "https"); err != nil {
		return s, s.setting("base_url", err)
	}
	s.private = s.api.Hostname() != "api.telegram.org"
	s.files = rootOf(s.FileURL)
	if s.files == "" {
		s.files = s.BaseURL + "/file"
	} else if _, err := webURL(s.files, "http", "https"); err != nil {
		return s, s.setting("base_file_url", err)
	}
	if s.LocalRoot != "" {
		if !filepath.IsAbs(s.LocalRoot) {
			return s, s.setting("local_root", fmt.Errorf("%q is not an absolute path", s.LocalRoot))
		}
		if info, err := os.Stat(s.LocalRoot); err != nil || !info.IsDir() {
			return s, s.setting("local_root", fmt.Errorf("%q is not a folder", s.LocalRoot))
		}
	}
	if s.Proxy != "" {
		proxy, err := webURL(s.Proxy, "http", "https", "socks5", "socks5h")
		if err != nil {
			return s, s.setting("proxy", err)
		}
		s.proxy = proxy
		s.proxyPassword, _ = proxy.User.Password()
	}
	if err := s.checkWebhook(); err != nil {
		return s, err
	}
	if err := s.checkNumbers(); err != nil {
		return s, err
	}
	s.threads, s.chats, s.free = set(o.IgnoredThreads), set(o.AllowedChats), set(o.FreeChats)
	for _, ip := range o.FallbackIPs {
		if net.ParseIP(ip) == nil {
			return s, s.setting("fallback_ips", fmt.Errorf("%q is no IP address", ip))
		}
	}
	s.allowsAll = len(s.chats) == 0 || s.chats["*"]
	if s.Metrics == nil {
		s.Metrics = platforms.NoMetrics{}
	}
	if s.Clock == nil {
		s.Clock = wire.System{}
	}
	s.patterns = wire.NewWakeWords(o.MentionPatterns, o.Log)
	return s, nil
}

func (s *settings) checkWebhook() error {
	if s.WebhookPath == "" {
		s.WebhookPath = DefaultWebhookPath
	}
	if !strings.HasPrefix(s.WebhookPath, "/") || strings.ContainsAny(s.WebhookPath, " {}") {
		return s.setting("webhook_path", fmt.Errorf("%q: want a path that starts with / and holds no space or brace", s.WebhookPath))
	}
	if s.WebhookURL == "" {
		return nil
	}
	if _, err := webURL(s.WebhookURL, "https", "http"); err != nil {
		return s.setting("webhook_url", err)
	}
	if s.WebhookSecret == "" {
		e := s.setting("webhook_secret", errors.New("is missing: without it anybody could post messages"))
		e.Hint = "set TELEGRAM_WEBHOOK_SECRET to a long random word"
		return e
	}
	if !secretPattern.MatchString(s.WebhookSecret) {
		return s.setting("webhook_secret", errors.New("holds a character that Telegram refuses: want 1 to 256 of A-Z a-z 0-9 _ -"))
	}
	return nil
}

func (s *settings) checkNumbers() error {
	for _, d := range []struct {
		key   string
		value *time.Duration
		def   time.Duration
		least time.Duration
	}{
		{"poll_timeout", &s.PollTimeout, DefaultPollTimeout, time.Second},
		{"connect_timeout", &s.ConnectTimeout, DefaultConnectTimeout, time.Millisecond},
		{"poll_margin", &s.PollMargin, DefaultPollMargin, 10 * time.Millisecond},
		{"backoff_min", &s.BackoffMin, DefaultBackoffMin, time.Millisecond},
		{"backoff_max", &s.BackoffMax, DefaultBackoffMax, time.Millisecond},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < d.least {
			return s.setting(d.key, fmt.Errorf("%s is too short: want at least %s", *d.value, d.least))
		}
	}
	s.BackoffMax = max(s.BackoffMax, s.BackoffMin)
	s.pollSecs = int(s.PollTimeout / time.Second)
	s.PollTimeout = time.Duration(s.pollSecs) * time.Second
	if s.AlbumWait == 0 {
		s.AlbumWait = DefaultAlbumWait
	}
	if s.Options.MaxCommands == 0 {
		s.Options.MaxCommands = DefaultMaxCommands
	}
	if s.Options.MaxCommands < 1 || s.Options.MaxCommands > MaxCommands {
		return s.setting("max_commands", fmt.Errorf("%d is out of range: want 1 to %d", s.Options.MaxCommands, MaxCommands))
	}
	return nil
}

// secretMatches compares in constant time.
func (s *settings) secretMatches(got string) bool {
	return s.WebhookSecret != "" && subtle.ConstantTimeCompare([]byte(got), []byte(s.WebhookSecret)) == 1
}

func (s *settings) setting(key string, err error) *platforms.StartError {
	return &platforms.StartError{Account: s.account, Setting: "platforms.telegram." + key, Err: err}
}

func setting(key string, err error, hint string) *platforms.StartError {
	return &platforms.StartError{Account: platforms.Account{Platform: Platform}, Setting: "platforms.telegram." + key, Err: err, Hint: hint}
}

// rootOf cuts the end off that other bot libraries want in these settings: ".../bot" and slashes.
func rootOf(base string) string {
	return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(base, "/"), "/bot"), "/")
}

// webURL parses an absolute URL with one of the schemes. Its errors repeat no user info.
func webURL(raw string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("is no URL")
	}
	if u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("%q: want an absolute URL with scheme %s", u.Redacted(), strings.Join(schemes, " or "))
	}
	return u, nil
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
