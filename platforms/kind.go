package platforms

import (
	"context"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms/fetch"
)

// Kind is all that Herald knows of a platform beside its adapters. It lives in the platform's own package and holds no
// state; platforms/all lists all kinds. A kind may also be a Pager.
type Kind interface {
	// Name is the platform's name: a-z and 0-9, the same in addresses, config.yaml and the store, for good.
	Name() Name
	// About says how the platform is called elsewhere.
	About() About
	// Settings returns a pointer to a new, empty settings struct of the platform. The caller fills in the defaults of its
	// tags and what the operator has set.
	Settings() Settings
	// Rules answer what the core must not know by name.
	Rules() Rules
	// New makes an adapter for each account that the settings name. It connects to nobody. own is what Settings returned.
	// Logins that come with an error are good ones: the platform runs with them. The error is a *StartError where one
	// setting is to blame.
	New(host Host, own Settings) ([]Login, error)
}

// About is how people and variables name a platform.
type About struct {
	// Title is the name for people, such as "Microsoft Teams".
	Title string
	// Block says in a few words what the platform's block of config.yaml is for.
	Block string
	// Variables begins the variables that the ecosystem knows for every platform, such as TEAMS for TEAMS_ALLOWED_USERS.
	// Empty: the platform has none.
	Variables string
	// Obsolete are keys of the platform's block that no longer do anything. They are accepted with a warning.
	Obsolete []string
	// Door is true for the platform that people reach through Herald's own HTTP listener. Herald's other pages stand behind
	// the same door, so its adapter is a Door. Its settings need a restart, and Herald does not start when its adapter
	// can't be made: an open door is refused, not passed over (P13).
	Door bool
}

// Settings is a platform's block of config.yaml: a pointer to a struct that embeds Common. Its tags are those that
// herald/gateway/config documents. A type may also be Checked or Guests.
type Settings interface {
	// Shared returns what all platforms have, in the form that the core understands.
	Shared() Common
	// On reports whether the platform is to be started.
	On() bool
}

// Checked are settings with conditions that no single value can show.
type Checked interface {
	// Check reports what is wrong with the settings that were loaded.
	Check(Findings)
}

// Findings take what a check of settings has found. Keys are those of the platform's block, such as "token". No text holds
// a secret.
type Findings interface {
	// Errorf reports what keeps Herald from starting. key is what is wrong, blame the key whose line is shown.
	Errorf(key, blame, format string, args ...any)
	// Warnf reports what does not.
	Warnf(key, blame, format string, args ...any)
}

// Guests are settings that can let people of other chats than the allowed ones in, under conditions that the adapter checks.
type Guests interface{ Guests() bool }

// Login is one account that New has made.
type Login struct {
	Adapter Adapter
	// Identity is what no second daemon on this machine may use at the same time, such as a token; empty: nothing. It
	// never leaves the process. LockName says what it is, such as "telegram-bot-token".
	Identity, LockName string
	// Port is where a listener of its own serves the adapter's routes; 0: Herald's listener does. Host is its address,
	// empty for all. PortKey is the setting of the port, for messages.
	Port    int
	Host    string
	PortKey string
}

// Host is what Herald gives a platform to work with.
type Host struct {
	// Log takes one line per notable event.
	Log zerolog.Logger
	// Metrics is told what an operator counts on this platform.
	Metrics Metrics
	// Memory returns the small facts of an account, kept over restarts.
	Memory func(Account) Memory
	// Entries is a log of visible messages, for a platform that has no memory of its own.
	Entries Log
	// Downloads returns how files that messages name are fetched. servers are those of the own settings, which may be
	// private ones; proxy is the platform's own proxy, empty for none.
	Downloads func(proxy string, servers ...string) fetch.Options
	// Home is the profile's home directory, Media the platform's own directory for files, which need not exist yet.
	Home, Media string
	// ConnectTimeout bounds one attempt to connect.
	ConnectTimeout time.Duration
	// TrustEnv is true when HTTP_PROXY and its like are honoured.
	TrustEnv bool
	// Reactions is true when messages get emoji on this platform.
	Reactions bool
	// MaxMedia bounds a file that comes in and MaxText a text, in bytes, inclusive.
	MaxMedia, MaxText int64
	// Live returns the settings that are in force now: a key that takes effect at once is read from them.
	Live func() Settings
	// Commands are those of the command menu, for an adapter that must know them before it connects.
	Commands []CommandInfo
	// HTTP is Herald's own listener.
	HTTP Listener
	// Version is Herald's own.
	Version string
	// Now is the clock.
	Now func() time.Time
}

// Listener is Herald's HTTP listener as a Door needs it.
type Listener struct {
	// Address is the host:port that it is bound to.
	Address string
	// Password and Token open it; empty ones open nothing.
	Password, Token string
	// Hosts are further host names under which browsers may reach it.
	Hosts []string
}

// Metrics is told what happens on one platform, for counters. Its methods are quick and safe for concurrent use.
type Metrics interface {
	// Polled counts one attempt to receive, by outcome.
	Polled(outcome string)
	// Dropped counts an event that was not handed on, by reason.
	Dropped(reason string)
	// GateWaited counts how long a send waited for the rate gate.
	GateWaited(wait time.Duration)
}

// NoMetrics is the Metrics of nobody.
type NoMetrics struct{}

// Polled implements Metrics.
func (NoMetrics) Polled(string) {}

// Dropped implements Metrics.
func (NoMetrics) Dropped(string) {}

// GateWaited implements Metrics.
func (NoMetrics) GateWaited(time.Duration) {}

// Pager is a kind with pages for the operator, such as one that links a phone.
type Pager interface {
	// Pages returns patterns of net/http's ServeMux and what serves them. They are served behind the Door, whether the
	// platform is on or not.
	Pages(desk Desk) map[string]http.Handler
}

// Desk is what Herald gives the pages of a platform.
type Desk struct {
	// Host returns what an adapter that is made now would get.
	Host func() Host
	// Go runs fn beside the caller. Its context ends with Herald, which waits until fn has returned.
	Go func(fn func(context.Context))
	// Adapter returns the adapter that has an account now.
	Adapter func(Account) (Adapter, bool)
}

// Door is an adapter that lets people in through Herald's own HTTP listener; see About.Door.
type Door interface {
	Adapter
	// Opened is closed once the door takes messages for the first time.
	Opened() <-chan struct{}
	// Behind returns next behind the door: who may not come in never reaches it.
	Behind(next http.Handler) http.Handler
	// Static is the path below which the page's style and theme are served, for other pages behind the door.
	Static() string
	// Markdown turns a text of the model into HTML that is safe to put into a page.
	Markdown(source string) string
	// Title is what the page calls the assistant.
	Title() string
}
