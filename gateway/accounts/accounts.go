// Package accounts runs the accounts of a profile: it makes their adapters from the kinds of platforms that the
// configuration switches on, takes their machine-wide locks, keeps them alive, serves their routes and says how each of them
// is. An account that can't be made or has stopped is named in the log and in health, and the others go on. It knows nothing
// of sessions, turns or who may talk: events go to a platforms.Sink.
package accounts

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/config"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/lock"
)

// Store keeps what adapters remember.
type Store interface {
	sessions.Store
	// ChatLog is the log of visible messages for platforms without a memory of their own.
	ChatLog() platforms.Log
}

// Options is what Accounts are made from.
type Options struct {
	// Config returns the configuration in force.
	Config  func() *config.Config
	Paths   config.Paths
	Profile string
	Version string
	Store   Store
	// Metrics returns what counts the events of a platform.
	Metrics func(platforms.Name) platforms.Metrics
	// Commands are those of the command menu.
	Commands []platforms.CommandInfo
	// Address is the host:port of the HTTP listener.
	Address string
	// More are adapters that no configuration names (tests).
	More []platforms.Adapter
	Log  zerolog.Logger
	Now  func() time.Time
}

// Accounts are the adapters of a profile. Make them with New, mount their routes, then Start them.
type Accounts struct {
	o       Options
	lockDir string
	info    lock.Info

	mu     sync.RWMutex
	list   []*account
	failed map[platforms.Name]*platforms.StartError // could not even be made
	sink   platforms.Sink                           // of Start, with the next two
	ctx    context.Context
	halt   context.CancelFunc
	mux    *http.ServeMux
	routes map[string]bool

	wg     sync.WaitGroup
	paused atomic.Bool
}

// New makes the adapters that the configuration names. It connects to nobody. An adapter that can't be made is noted and does
// not stop the others, except for a door: one that is open to everyone is refused (P13). Accounts that come with an error
// are to be released.
func New(o Options) (*Accounts, error) {
	a := &Accounts{o: o, lockDir: lockDir(o.Config().Gateway.LockDir, o.Paths.Home), info: lock.Info{Home: o.Paths.Home, Profile: o.Profile},
		failed: map[platforms.Name]*platforms.StartError{}, routes: map[string]bool{}}
	if err := a.build(""); err != nil {
		return a, err
	}
	for _, adapter := range o.More {
		a.add(platforms.Login{Adapter: adapter})
	}
	return a, nil
}

// lockDir is where the locks of tokens are: all daemons of a person use the same directory. set is the setting.
func lockDir(set, home string) string {
	if set != "" {
		return set
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			user = home
		}
		state = filepath.Join(user, ".local", "state")
	}
	return filepath.Join(state, "herald", "gateway-locks")
}

// add takes an account in, and runs it when the others run already.
func (a *Accounts) add(login platforms.Login) {
	acc := &account{Login: login, done: make(chan struct{})}
	a.mu.Lock()
	a.list = append(a.list, acc)
	delete(a.failed, acc.Adapter.Account().Platform)
	ctx, mux := a.ctx, a.mux
	a.mu.Unlock()
	if mux != nil {
		a.route(mux, acc)
	}
	if ctx != nil {
		a.launch(ctx, acc)
	}
}

// remove stops a platform's adapters and forgets them. It waits until their connections are closed, so that
// a new adapter is never the second one.
func (a *Accounts) remove(name platforms.Name) {
	a.mu.Lock()
	var gone []*account
	a.list = slices.DeleteFunc(a.list, func(acc *account) bool {
		if acc.Adapter.Account().Platform == name {
			gone = append(gone, acc)
			return true
		}
		return false
	})
	delete(a.failed, name)
	a.mu.Unlock()
	for _, acc := range gone {
		if acc.stop != nil {
			acc.stop()
			<-acc.done
		}
		acc.release()
	}
}

// Restart makes the adapters of these platforms again with the configuration in force and runs them; "" means all that can
// be. A door lives as long as the HTTP listener.
func (a *Accounts) Restart(names map[platforms.Name]bool) {
	again := false
	for _, kind := range a.o.Config().Platforms.Kinds() {
		if name := kind.Name(); !kind.About().Door && (names[name] || names[""]) {
			a.remove(name)
			_ = a.build(name) // only a door's error comes back
			again = true
		}
	}
	if again {
		a.setCommands()
	}
}

// Start runs every adapter until ctx ends, with what they receive going to sink, and gives the platforms the command menu.
func (a *Accounts) Start(ctx context.Context, sink platforms.Sink) {
	a.mu.Lock()
	a.sink = sink
	a.ctx, a.halt = context.WithCancel(ctx)
	ctx = a.ctx
	list := slices.Clone(a.list)
	a.mu.Unlock()
	for _, acc := range list {
		a.launch(ctx, acc)
	}
	a.setCommands()
}

// Pause refuses everything that comes in from now on: the platforms keep it and offer it again.
func (a *Accounts) Pause() { a.paused.Store(true) }

// Wait stops the adapters and returns when they have ended.
func (a *Accounts) Wait() {
	a.mu.RLock()
	halt := a.halt
	a.mu.RUnlock()
	if halt != nil {
		halt()
	}
	a.wg.Wait()
}

// Release unlocks the tokens.
func (a *Accounts) Release() {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, acc := range a.list {
		acc.release()
	}
}

// inbound is the sink of the adapters: it hands on what comes in until the accounts are paused.
type inbound struct{ a *Accounts }

// Accept implements platforms.Sink.
func (in inbound) Accept(ctx context.Context, events ...platforms.Event) error {
	if in.a.paused.Load() {
		return platforms.ErrRefused
	}
	return in.a.sink.Accept(ctx, events...)
}

// AwaitDoor returns when the doors take messages, at the latest when ctx ends: an address that is shown is one that works.
func (a *Accounts) AwaitDoor(ctx context.Context) {
	for _, door := range a.Doors() {
		select {
		case <-door.Opened():
		case <-ctx.Done():
			return
		}
	}
}
