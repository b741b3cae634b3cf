package discord

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/wire"
)

// Platform is the name of this platform.
const Platform platforms.Name = "discord"

// Defaults of Options and limits of Discord, see https://discord.com/developers/docs.
const (
	DefaultAPIURL         = "https://discord.com/api/v10"
	DefaultConnectTimeout = 20 * time.Second
	DefaultOpenTimeout    = 30 * time.Second
	DefaultAckTimeout     = 20 * time.Second
	DefaultBackoffMin     = 500 * time.Millisecond
	DefaultBackoffMax     = 30 * time.Second
	// DefaultIdentifyEvery is how often a session may be begun.
	DefaultIdentifyEvery = 5 * time.Second
	DefaultHistoryLimit  = 50

	DefaultMissedWindow   = 6 * time.Hour
	DefaultMissedLimit    = 100
	DefaultMissedDispatch = 10
	DefaultMissedAttempts = 3

	textLimit  = 2000     // code points of a message, markup included
	freeUpload = 10 << 20 // bytes of one file where nobody pays
	filesLimit = 10       // files of one message
	titleLimit = 100      // code points of a thread's name
	tokenLife  = 15 * time.Minute
	pageLimit  = 100 // messages of one page of history
	anyone     = "*"
)

// SyncPolicy says how the application commands at Discord are brought in line with ours.
type SyncPolicy string

// The policies.
const (
	SyncSafe SyncPolicy = "safe" // only what differs is created, changed or deleted
	SyncBulk SyncPolicy = "bulk" // all of them are written at once
	SyncOff  SyncPolicy = "off"  // nothing is touched
)

// Options configures an Adapter. Only Token is mandatory; New fills in the defaults. Lists of channels hold ids
// of channels, threads or the channels that threads hang in; "*" is every one.
type Options struct {
	// Token is the bot's token. It is a secret.
	Token string
	// APIURL is the root of the REST API, such as DefaultAPIURL. A URL without a path gets "/api/v10".
	APIURL string
	// Proxy is the URL of an HTTP or SOCKS5 proxy (http, socks5, socks5h). Empty takes the proxy of the environment, unless
	// IgnoreProxyEnv is set.
	Proxy          string
	IgnoreProxyEnv bool
	// RateLimit keeps requests under the limits that Discord tells. nil means true; false is for private
	// servers. Windows after a refusal are kept in any case.
	RateLimit *bool

	// IgnoredChannels are never answered in; they win over everything else.
	IgnoredChannels []string
	// AllowedChannels are the only ones answered in. Empty means all. Direct chats are not touched.
	AllowedChannels []string
	// RequireMention drops channel messages that don't speak to the bot. nil means true.
	RequireMention *bool
	// FreeChannels are where RequireMention does not hold.
	FreeChannels []string
	// FreeAutoThread makes threads in FreeChannels too, for every message.
	FreeAutoThread bool
	// IgnoreOtherMentions drops a message that mentions others and not us where no mention is needed. nil
	// means true.
	IgnoreOtherMentions *bool
	// ThreadRequireMention wants a mention also in threads that the bot takes part in.
	ThreadRequireMention bool
	// BotsRequireMention takes messages of other bots only when they name ours in the text. nil means true.
	BotsRequireMention *bool
	// MentionPatterns are further wake words for channels: regular expressions, case-insensitive. A bad one
	// is reported in the log and ignored.
	MentionPatterns []string

	// AutoThread answers a mention in a text channel in a thread of its own. nil means true.
	AutoThread *bool
	// NoThreadChannels are where AutoThread does not hold.
	NoThreadChannels []string
	// HistoryLimit is how many earlier messages of a thread are read at the first mention in it, at most 100.
	// 0 is DefaultHistoryLimit, negative switches that off.
	HistoryLimit int
	// LookupRoles fills in a person's roles in direct chats too, from the servers shared with the bot, and
	// asks Discord for the Server Members intent. Set it when the core has a list of allowed roles.
	LookupRoles bool

	// Reactions lets React put emoji on messages. Off, React returns Unsupported.
	Reactions bool
	// MentionEveryone, MentionRoles, MentionUsers and MentionReplied say whom our messages may notify. The
	// last two are true when nil.
	MentionEveryone, MentionRoles bool
	MentionUsers, MentionReplied  *bool

	// NoCommands leaves the application commands at Discord alone and answers none: another process of the
	// same bot does.
	NoCommands bool
	// CommandSync is how SetCommands works. Empty is SyncSafe.
	CommandSync SyncPolicy
	// CommandRecreate lets SyncSafe delete and create again a command that Discord will not change.
	CommandRecreate bool

	// Missed fetches what was written while the bot was away for too long to be told by Discord.
	Missed Missed

	// ConnectTimeout bounds one attempt to connect, OpenTimeout each step until Discord says that the session
	// is there, AckTimeout the answer to a heartbeat (it is never more than the heartbeat's own interval). 0
	// are the defaults.
	ConnectTimeout, OpenTimeout, AckTimeout time.Duration
	// BackoffMin and BackoffMax bound the wait between failed connections. 0 are the defaults.
	BackoffMin, BackoffMax time.Duration
	// IdentifyEvery is the least time between two new sessions. 0 is DefaultIdentifyEvery.
	IdentifyEvery time.Duration

	// Downloads says what fetching the files of messages may do. The server of an own APIURL is let in
	// beside it.
	Downloads fetch.Options
	// Memory keeps the session, the threads that the bot takes part in, and what was caught up. nil forgets
	// at the end of the process.
	Memory platforms.Memory
	// Log takes one line per notable event. The zero value is silent.
	Log zerolog.Logger
	// Metrics is told what an operator counts. nil is nobody.
	// Polled counts one connection's end: "reconnect", "network", "deaf", "invalid", "auth". Dropped counts a happening that
	// made no event, by reason.
	Metrics platforms.Metrics
}

// Missed are the caps of catching up. Zero numbers are the defaults.
type Missed struct {
	Enabled bool
	// Channels are looked at; without any, those where a message was accepted before.
	Channels []string
	// Window is how old a message may be, Limit how many of one channel are looked at, Dispatches how many
	// are handed on at one connect, Attempts how often one message is.
	Window                      time.Duration
	Limit, Dispatches, Attempts int
}

// settings are Options checked and filled in.
type settings struct {
	Options
	account       platforms.Account
	bot           string   // the bot's user id, where the token tells
	proxy         *url.URL // nil: none is set
	proxyPassword string
	api           *url.URL
	limited       bool
	ignored       chans
	allowed       chans
	free          chans
	noThread      chans
	missed        chans
	patterns      wire.WakeWords
	requires      bool // a mention
	ignoresOthers bool
	botsMention   bool
	autoThread    bool
	mentionUsers  bool
	mentionReply  bool
}

// check validates o. The error names the key, the value (unless it is a secret) and what is allowed.
func (o Options) check() (settings, error) {
	s := settings{
		Options: o, limited: orTrue(o.RateLimit), requires: orTrue(o.RequireMention), ignoresOthers: orTrue(o.IgnoreOtherMentions),
		botsMention: orTrue(o.BotsRequireMention), autoThread: orTrue(o.AutoThread), mentionUsers: orTrue(o.MentionUsers),
		mentionReply: orTrue(o.MentionReplied),
		ignored:      setOf(o.IgnoredChannels), allowed: setOf(o.AllowedChannels), free: setOf(o.FreeChannels),
		noThread: setOf(o.NoThreadChannels), missed: setOf(o.Missed.Channels),
	}
	s.account.Platform = Platform
	s.Token = bareToken(o.Token)
	switch {
	case s.Token == "":
		return s, s.setting("token", errors.New("is empty"), "set DISCORD_BOT_TOKEN to the token of the Bot page of the developer portal")
	case strings.ContainsAny(s.Token, " \t\r\n\"'"):
		return s, s.setting("token", errors.New("is malformed: it holds spaces or quotes"), "copy the whole token from the Bot page of the developer portal")
	}
	s.bot, s.account = botOf(s.Token), AccountOf(o.Token)
	if err := s.checkURLs(); err != nil {
		return s, err
	}
	if err := s.checkNumbers(); err != nil {
		return s, err
	}
	switch s.CommandSync {
	case "":
		s.CommandSync = SyncSafe
	case SyncSafe, SyncBulk, SyncOff:
	default:
		return s, s.setting("command_sync_policy", fmt.Errorf("%q: want safe, bulk or off", s.CommandSync), "")
	}
	if s.Metrics == nil {
		s.Metrics = platforms.NoMetrics{}
	}
	if s.Memory == nil {
		s.Memory = platforms.NewMemory()
	}
	s.patterns = wire.NewWakeWords(o.MentionPatterns, o.Log)
	return s, nil
}

func (s *settings) checkURLs() error {
	if s.APIURL == "" {
		s.APIURL = DefaultAPIURL
	}
	var err error
	if s.api, err = webURL(strings.TrimRight(s.APIURL, "/"), "http", "https"); err != nil {
		return s.setting("api_url", err, "")
	}
	switch {
	case s.api.Path == "":
		s.api.Path = "/api/v10"
	case strings.HasSuffix(s.api.Path, "/api"):
		s.api.Path += "/v10"
	}
	if s.Proxy == "" {
		return nil
	}
	proxy, err := webURL(s.Proxy, "http", "socks5", "socks5h")
	if err != nil {
		return s.setting("proxy", err, "")
	}
	s.proxy = proxy
	s.proxyPassword, _ = proxy.User.Password()
	return nil
}

func (s *settings) checkNumbers() error {
	for _, d := range []struct {
		key   string
		value *time.Duration
		def   time.Duration
	}{
		{"connect_timeout", &s.ConnectTimeout, DefaultConnectTimeout},
		{"open_timeout", &s.OpenTimeout, DefaultOpenTimeout},
		{"ack_timeout", &s.AckTimeout, DefaultAckTimeout},
		{"backoff_min", &s.BackoffMin, DefaultBackoffMin},
		{"backoff_max", &s.BackoffMax, DefaultBackoffMax},
		{"identify_every", &s.IdentifyEvery, DefaultIdentifyEvery},
		{"missed_message_backfill.window_seconds", &s.Missed.Window, DefaultMissedWindow},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < time.Millisecond {
			return s.setting(d.key, fmt.Errorf("%s is too short", *d.value), "")
		}
	}
	s.BackoffMax = max(s.BackoffMax, s.BackoffMin)
	if s.HistoryLimit == 0 {
		s.HistoryLimit = DefaultHistoryLimit
	}
	s.HistoryLimit = min(s.HistoryLimit, pageLimit)
	for _, n := range []struct {
		key   string
		value *int
		def   int
	}{
		{"limit", &s.Missed.Limit, DefaultMissedLimit},
		{"max_dispatches", &s.Missed.Dispatches, DefaultMissedDispatch},
		{"max_attempts", &s.Missed.Attempts, DefaultMissedAttempts},
	} {
		if *n.value == 0 {
			*n.value = n.def
		}
		if *n.value < 0 {
			return s.setting("missed_message_backfill."+n.key, fmt.Errorf("%d: want a positive number", *n.value), "")
		}
	}
	return nil
}

// ownServers names the server of an own API for downloads; Discord's content network is a public place.
func (s *settings) ownServers() []string {
	if s.api.Host == "discord.com" {
		return nil
	}
	return []string{s.api.Scheme + "://" + s.api.Host}
}

func (s *settings) setting(key string, err error, hint string) *platforms.StartError {
	return &platforms.StartError{Account: s.account, Setting: "platforms.discord." + key, Err: err, Hint: hint}
}

// AccountOf returns the account of a token: the bot's user id, which is the token's first part. Where that can't be read
// it is a short hash of the token.
func AccountOf(token string) platforms.Account {
	token = bareToken(token)
	if bot := botOf(token); bot != "" {
		return platforms.Account{Platform: Platform, ID: platforms.AccountID(bot)}
	}
	sum := sha256.Sum256([]byte(token))
	return platforms.Account{Platform: Platform, ID: platforms.AccountID(hex.EncodeToString(sum[:6]))}
}

// bareToken takes off what people copy along.
func bareToken(token string) string { return strings.TrimPrefix(strings.TrimSpace(token), "Bot ") }

// botOf returns the bot's user id, which is the first part of a token in base64; "" when it is not one.
func botOf(token string) string {
	first, _, _ := strings.Cut(token, ".")
	id, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(first, "="))
	if err != nil {
		id, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(first, "="))
	}
	if err != nil || snowflake(string(id)) == 0 {
		return ""
	}
	return string(id)
}

// snowflake parses an id; 0 when it is not one.
func snowflake(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || len(id) > 20 {
		return 0
	}
	return n
}

// discordEpoch is what the time in a snowflake counts from, in milliseconds since 1970.
const discordEpoch = 1420070400000

// when returns the time that an id was made.
func when(id string) time.Time {
	n := snowflake(id)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + discordEpoch).UTC()
}

// idAt returns the smallest id of a time.
func idAt(t time.Time) string {
	ms := max(0, t.UnixMilli()-discordEpoch)
	return strconv.FormatUint(uint64(ms)<<22, 10)
}

// chans is a set of channel ids.
type chans map[string]bool

func setOf(values []string) chans {
	m := make(chans, len(values))
	for _, v := range values {
		if v = strings.TrimPrefix(strings.TrimSpace(v), "#"); v != "" {
			m[v] = true
		}
	}
	return m
}

// holds reports whether the set has the place: itself, its parent, or every one.
func (c chans) holds(p place) bool {
	return len(c) > 0 && (c[anyone] || c[p.channel] || c[p.parent])
}

func orTrue(b *bool) bool { return b == nil || *b }

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
