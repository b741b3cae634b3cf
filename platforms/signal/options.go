package signal

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
	"herald/platforms/wire"
)

// Platform is the name of this platform.
const Platform platforms.Name = "signal"

// Defaults of Options. The daemon sends a comment every 15 s.
const (
	DefaultURL          = "http://127.0.0.1:8080"
	DefaultRPCTimeout   = 30 * time.Second
	DefaultCheckTimeout = 10 * time.Second
	DefaultBackoffMin   = 2 * time.Second
	DefaultBackoffMax   = time.Minute
	DefaultSilence      = 2 * time.Minute
	DefaultCheckEvery   = 30 * time.Second
	DefaultShortStream  = 10 * time.Second
	DefaultTypingPause  = 16 * time.Second

	// TextLimit is how many UTF-16 units one message has at most.
	TextLimit = 8000
	// FileLimit is the most bytes of one attachment, in and out.
	FileLimit = 100 << 20
	// imagesAtOnce is how many pictures go into one message.
	imagesAtOnce = 32
)

// Options configures an Adapter. Only Account is mandatory; New fills in the defaults.
type Options struct {
	// URL is the root of the daemon's HTTP interface, without /api/v1. Empty is DefaultURL.
	URL string
	// Account is our phone number, "+15550001111".
	Account string
	// IgnoreProxyEnv keeps HTTP_PROXY and its like out.
	IgnoreProxyEnv bool

	// Groups returns the groups where the account answers, by id (with or without "group:"); "*" is all. It is asked for
	// every message from a group. nil, and an empty list, is none.
	Groups func() []string
	// AllowedChats, when it has entries, narrows Groups further.
	AllowedChats []string
	// RequireMention drops group messages that don't speak to the account: no mention, no quote of ours, no match of
	// MentionPatterns. FreeChats are groups where it does not hold.
	RequireMention bool
	FreeChats      []string
	// MentionPatterns are wake words for groups: regular expressions, case-insensitive. A bad one is reported in the log
	// and ignored.
	MentionPatterns []string
	// IgnoreAttachments leaves the files of people out.
	IgnoreAttachments bool
	// Reactions lets React put emoji on messages. Off, React returns Unsupported.
	Reactions bool
	// ReadReceipts tells people that their message was read, once the core has begun to answer it.
	ReadReceipts bool

	// RPCTimeout bounds one call whose context has no earlier end, CheckTimeout one health check.
	RPCTimeout, CheckTimeout time.Duration
	// BackoffMin and BackoffMax bound the wait between attempts to connect, before 30 percent are added or taken off at random.
	BackoffMin, BackoffMax time.Duration
	// Silence is how long a stream may be without a sign of life, CheckEvery how often that is looked at.
	Silence, CheckEvery time.Duration
	// ShortStream is the age below which a stream that ended without an event is a sign of trouble.
	ShortStream time.Duration
	// TypingPause is the first pause after three failed typing signs; it doubles, up to a minute.
	TypingPause time.Duration
	// FFmpeg is the program that converts voice notes. Empty looks for ffmpeg in PATH; "-" is none.
	FFmpeg string

	// Memory keeps small facts over restarts. nil is one that forgets.
	Memory platforms.Memory
	// Log takes one line per notable event. Numbers in it are masked. The zero value is silent.
	Log zerolog.Logger
	// Metrics is told what an operator counts. nil is nobody.
	// Polled counts the end of one stream: "ok", "network", "http", "silent", "short", "refused" (by the store). Dropped
	// counts an event that made no message, by reason: "group", "chat", "unmentioned", "own", "echo", "story", "empty",
	// "receipt", "typing", "undecodable", "undecryptable", "no_sender", "account", "unsupported".
	Metrics platforms.Metrics
}

// settings are Options checked and filled in.
type settings struct {
	Options
	account     platforms.Account
	chats, free map[string]bool
	patterns    wire.WakeWords
}

var numberForm = regexp.MustCompile(`^\+[1-9][0-9]{4,14}$`)

// check validates o. The error names the key, the value and what is allowed.
func (o Options) check() (settings, error) {
	s := settings{Options: o, account: platforms.Account{Platform: Platform}}
	s.Account = Number(o.Account)
	switch {
	case s.Account == "":
		e := s.setting("account", errors.New("is empty"))
		e.Hint = "set SIGNAL_ACCOUNT to the number that signal-cli is registered or linked with, such as +15550001111"
		return s, e
	case !numberForm.MatchString(s.Account):
		return s, s.setting("account", errors.New("is no phone number: want + and 5 to 15 digits, with the country code"))
	}
	s.account.ID = platforms.AccountID(s.Account)
	if err := s.checkURL(); err != nil {
		return s, err
	}
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&s.RPCTimeout, DefaultRPCTimeout}, {&s.CheckTimeout, DefaultCheckTimeout}, {&s.BackoffMin, DefaultBackoffMin},
		{&s.BackoffMax, DefaultBackoffMax}, {&s.Silence, DefaultSilence}, {&s.CheckEvery, DefaultCheckEvery},
		{&s.ShortStream, DefaultShortStream}, {&s.TypingPause, DefaultTypingPause},
	} {
		*d.value = cmp.Or(*d.value, d.def)
	}
	s.BackoffMax = max(s.BackoffMax, s.BackoffMin)
	s.chats, s.free = groupSet(o.AllowedChats), groupSet(o.FreeChats)
	s.patterns = wire.NewWakeWords(o.MentionPatterns, o.Log)
	if s.Memory == nil {
		s.Memory = platforms.NewMemory()
	}
	if s.Metrics == nil {
		s.Metrics = platforms.NoMetrics{}
	}
	return s, nil
}

func (s *settings) checkURL() error {
	root, err := Root(s.URL)
	if err != nil {
		return s.setting("http_url", err)
	}
	s.URL = root
	return nil
}

// Root returns the root of a daemon's HTTP interface as calls need it: empty is DefaultURL, and /api/v1 or one of its
// paths at the end is cut off.
func Root(raw string) (string, error) {
	raw = cmp.Or(strings.TrimSpace(raw), DefaultURL)
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", errors.New("is no URL")
	case u.User != nil:
		return "", errors.New("holds a user name: signal-cli has no passwords; keep it on the loopback or behind a tunnel")
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q: want http:// or https:// and a host, such as %s", raw, DefaultURL)
	}
	path := strings.TrimRight(u.Path, "/")
	for _, tail := range []string{"/rpc", "/events", "/check", "/api/v1"} {
		path = strings.TrimRight(strings.TrimSuffix(path, tail), "/")
	}
	return u.Scheme + "://" + u.Host + path, nil
}

func (s *settings) setting(key string, err error) *platforms.StartError {
	return &platforms.StartError{Account: s.account, Setting: "platforms.signal." + key, Err: err}
}

var numberTidy = strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", ".", "")

func tidyNumber(number string) string { return numberTidy.Replace(number) }

// Number returns a phone number as an account is named by it: without spaces and separators.
func Number(text string) string { return tidyNumber(strings.TrimSpace(text)) }

// groupPrefix marks a ChatID as a group's.
const groupPrefix = "group:"

// groupSet is a set of group ids without their prefix.
func groupSet(ids []string) map[string]bool {
	m := map[string]bool{}
	for _, id := range ids {
		if id = strings.TrimPrefix(strings.TrimSpace(id), groupPrefix); id != "" {
			m[id] = true
		}
	}
	return m
}
