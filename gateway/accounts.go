package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
	"herald/sessions/lock"
)

// account is one adapter with what is known of it.
type account struct {
	adapter platforms.Adapter
	// identity is what no second daemon may use at the same time (a token), empty for none; lockName says
	// of what kind it is. It never leaves the process.
	identity, lockName string
	held               *lock.Lock
	// port is where a listener of its own serves the adapter's routes; 0: the common one does. host is its address,
	// empty for all. portKey is the setting of the port.
	port    int
	host    string
	portKey string
	failure atomic.Pointer[error]
	ended   atomic.Bool // Run has returned
	stop    context.CancelFunc
	done    chan struct{}
}

// accounts runs the adapters of a profile and finds them by account.
type accounts struct {
	log     zerolog.Logger
	lockDir string
	info    lock.Info
	sink    platforms.Sink

	mu     sync.RWMutex
	list   []*account
	failed map[platforms.Name]*platforms.StartError // could not even be made
	ctx    context.Context                          // set by start
	halt   context.CancelFunc
	mux    *http.ServeMux
	routes map[string]bool

	wg     sync.WaitGroup
	paused atomic.Bool
}

func newAccounts(log zerolog.Logger, lockDir string, info lock.Info) *accounts {
	return &accounts{log: log, lockDir: lockDir, info: info, failed: map[platforms.Name]*platforms.StartError{}, routes: map[string]bool{}}
}

// add takes an account in, and runs it when the others run already.
func (a *accounts) add(acc *account) {
	acc.done = make(chan struct{})
	a.mu.Lock()
	a.list = append(a.list, acc)
	delete(a.failed, acc.adapter.Account().Platform)
	ctx := a.ctx
	a.mu.Unlock()
	if a.mux != nil {
		a.route(acc)
	}
	if ctx != nil {
		a.launch(ctx, acc)
	}
}

// fail notes a platform that can't be made: it is named in the log and in health.
func (a *accounts) fail(name platforms.Name, err error) {
	var se *platforms.StartError
	if !errors.As(err, &se) {
		se = &platforms.StartError{Err: err}
	}
	se.Account.Platform = name
	a.mu.Lock()
	a.failed[se.Account.Platform] = se
	a.mu.Unlock()
	a.log.Error().Str("account", se.Account.String()).Err(err).Msg("a platform can't start; the others go on")
}

// remove stops a platform's adapters and forgets them. It waits until their connections are closed, so that
// a new adapter is never the second one.
func (a *accounts) remove(name platforms.Name) {
	a.mu.Lock()
	var gone []*account
	a.list = slices.DeleteFunc(a.list, func(acc *account) bool {
		if acc.adapter.Account().Platform == name {
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

// find returns the account entry.
func (a *accounts) find(name platforms.Account) *account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, acc := range a.list {
		if acc.adapter.Account() == name {
			return acc
		}
	}
	return nil
}

// Adapter implements delivery.Adapters.
func (a *accounts) Adapter(name platforms.Account) (platforms.Adapter, bool) {
	acc := a.find(name)
	if acc == nil {
		return nil, false
	}
	return acc.adapter, true
}

// names returns the accounts that exist.
func (a *accounts) names() []platforms.Account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	out := make([]platforms.Account, len(a.list))
	for i, acc := range a.list {
		out[i] = acc.adapter.Account()
	}
	return out
}

// trusted returns the platforms whose door is their own.
func (a *accounts) trusted() []platforms.Name {
	var out []platforms.Name
	for _, name := range a.names() {
		if a.isTrusted(name) {
			out = append(out, name.Platform)
		}
	}
	return out
}

func (a *accounts) isTrusted(name platforms.Account) bool {
	acc := a.find(name)
	return acc != nil && acc.adapter.Traits().Trusted
}

// mount puts the adapters' routes on a mux; those of adapters that come later are added when they come.
func (a *accounts) mount(mux *http.ServeMux) {
	a.mu.Lock()
	a.mux = mux
	list := slices.Clone(a.list)
	a.mu.Unlock()
	for _, acc := range list {
		a.route(acc)
	}
}

// route serves an adapter's patterns by whatever adapter has the account at the time of the request.
func (a *accounts) route(acc *account) {
	handler, ok := acc.adapter.(platforms.Handler)
	if !ok || acc.port != 0 {
		return
	}
	name := acc.adapter.Account()
	own := handler.Routes()
	for pattern, h := range own {
		a.mu.Lock()
		known := a.routes[name.String()+" "+pattern]
		a.routes[name.String()+" "+pattern] = true
		a.mu.Unlock()
		if known {
			continue
		}
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			now := a.find(name)
			switch {
			case now == acc:
				h.ServeHTTP(w, r)
			case now != nil && now.port != 0:
				http.NotFound(w, r) // it has a listener of its own now
			case now == nil:
				http.Error(w, "this platform is not running", http.StatusServiceUnavailable)
			default:
				if later, ok := now.adapter.(platforms.Handler); ok {
					if h := later.Routes()[pattern]; h != nil {
						h.ServeHTTP(w, r)
						return
					}
				}
				http.NotFound(w, r)
			}
		})
	}
}

// start runs every adapter until ctx ends.
func (a *accounts) start(ctx context.Context) {
	a.mu.Lock()
	a.ctx, a.halt = context.WithCancel(ctx)
	ctx = a.ctx
	list := slices.Clone(a.list)
	a.mu.Unlock()
	for _, acc := range list {
		a.launch(ctx, acc)
	}
}

func (a *accounts) launch(ctx context.Context, acc *account) {
	ctx, acc.stop = context.WithCancel(ctx)
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		defer close(acc.done)
		a.run(ctx, acc)
	}()
}

// awaitDoor returns when the platforms whose door is their own take messages, at the latest after limit: an
// address that is told is one that works.
func (a *accounts) awaitDoor(limit time.Duration) {
	deadline := time.Now().Add(limit)
	for _, name := range a.names() {
		adapter, ok := a.Adapter(name)
		for ok && adapter.Traits().Trusted && !adapter.Health().Inbound && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
}

// lockRetry is how often a token that another daemon holds is tried again.
const lockRetry = 10 * time.Second

// run keeps one adapter alive. Its own errors are for ever; a token that another daemon uses is asked for
// again, because that daemon may end.
func (a *accounts) run(ctx context.Context, acc *account) {
	name := acc.adapter.Account()
	defer acc.ended.Store(true)
	for told := false; ; {
		err := a.claim(acc)
		if err == nil {
			break
		}
		acc.failure.Store(&err)
		if !told {
			a.log.Error().Str("account", name.String()).Err(err).Msg("this account is used by another process; trying again until it is free")
			told = true
		}
		timer := time.NewTimer(lockRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
	acc.failure.Store(nil)
	if acc.port != 0 {
		stop, err := a.listen(acc)
		if err != nil {
			acc.failure.Store(&err)
			a.log.Error().Str("account", name.String()).Err(err).Msg("a platform can't start; the others go on")
			return
		}
		defer stop()
	}
	if err := acc.adapter.Run(ctx, a); err != nil && ctx.Err() == nil {
		acc.failure.Store(&err)
		a.log.Error().Str("account", name.String()).Err(err).Msg("a platform has stopped; the others go on")
	}
}

// listen serves an adapter's routes on its own port until stop is called.
func (a *accounts) listen(acc *account) (stop func(), err error) {
	handler, ok := acc.adapter.(platforms.Handler)
	if !ok {
		return func() {}, nil
	}
	routes := handler.Routes()
	if alone, ok := acc.adapter.(interface {
		OwnRoutes() map[string]http.Handler
	}); ok {
		routes = alone.OwnRoutes()
	}
	mux := http.NewServeMux()
	for pattern, h := range routes {
		mux.Handle(pattern, h)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(acc.host, strconv.Itoa(acc.port)))
	if err != nil {
		return nil, &platforms.StartError{Account: acc.adapter.Account(), Setting: acc.portKey, Err: err,
			Hint: "stop what uses the port, choose another one, or set it to 0 to take the common HTTP listener"}
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			a.log.Error().Str("account", acc.adapter.Account().String()).Err(err).Msg("a listener has ended")
		}
	}()
	a.log.Info().Str("account", acc.adapter.Account().String()).Str("address", listener.Addr().String()).Msg("a platform has a listener of its own")
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}, nil
}

// claim takes the machine-wide lock of the account's identity.
func (a *accounts) claim(acc *account) error {
	if acc.identity == "" || acc.held != nil {
		return nil
	}
	if err := os.MkdirAll(a.lockDir, 0o700); err != nil {
		return fmt.Errorf("directory of token locks: %w (set gateway.lock_dir to a directory that can be written)", err)
	}
	sum := sha256.Sum256([]byte(acc.identity))
	info := a.info
	info.What = "a " + strings.ReplaceAll(acc.lockName, "-", " ")
	held, err := lock.Acquire(filepath.Join(a.lockDir, acc.lockName+"-"+hex.EncodeToString(sum[:8])+".lock"), info)
	if err != nil {
		return err
	}
	acc.held = held
	return nil
}

func (acc *account) release() {
	if acc.held != nil {
		_ = acc.held.Release()
		acc.held = nil
	}
}

// each calls fn for every adapter beside the caller, bounded in time; an error is only logged.
func (a *accounts) each(fn func(context.Context, platforms.Adapter) error) {
	a.mu.RLock()
	ctx, list := a.ctx, slices.Clone(a.list)
	a.mu.RUnlock()
	if ctx == nil {
		return
	}
	for _, acc := range list {
		a.wg.Add(1)
		go func() {
			defer a.wg.Done()
			call, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if err := fn(call, acc.adapter); err != nil && ctx.Err() == nil {
				a.log.Warn().Str("account", acc.adapter.Account().String()).Err(err).Msg("the command menu could not be set")
			}
		}()
	}
}

// Accept implements platforms.Sink in front of the router: nothing new comes in while the daemon stops.
func (a *accounts) Accept(ctx context.Context, events ...platforms.Event) error {
	if a.paused.Load() {
		return platforms.ErrRefused
	}
	return a.sink.Accept(ctx, events...)
}

// pauseInbound refuses everything from now on: the platforms keep it and offer it again.
func (a *accounts) pauseInbound() { a.paused.Store(true) }

// wait stops the adapters and returns when they have ended.
func (a *accounts) wait() {
	a.mu.RLock()
	halt := a.halt
	a.mu.RUnlock()
	if halt != nil {
		halt()
	}
	a.wg.Wait()
}

// release gives the token locks back.
func (a *accounts) release() {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, acc := range a.list {
		acc.release()
	}
}

// state is an account for people.
type state struct {
	account platforms.Account
	health  platforms.Health
}

// states returns every account, those that could not be made included, in a stable order.
func (a *accounts) states() []state {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var out []state
	for _, acc := range a.list {
		h := acc.adapter.Health()
		if err := acc.failure.Load(); err != nil {
			h.Inbound, h.State, h.Detail = false, "waiting", (*err).Error()
			if acc.ended.Load() {
				h.State = "stopped"
			}
		}
		if a.paused.Load() {
			h.Inbound, h.State = false, "stopping"
		}
		out = append(out, state{acc.adapter.Account(), h})
	}
	for name, se := range a.failed {
		out = append(out, state{platforms.Account{Platform: name, ID: se.Account.ID}, platforms.Health{State: "stopped", Detail: se.Error()}})
	}
	slices.SortFunc(out, func(x, y state) int { return strings.Compare(x.account.String(), y.account.String()) })
	return out
}

// answerClick tells the presser of a button what came of it, without making anybody wait.
func (a *accounts) answerClick(at platforms.Address, click platforms.Click, text string) {
	adapter, ok := a.Adapter(at.AccountOf())
	if !ok {
		return
	}
	clicker, can := adapter.(platforms.Clicker)
	if !can {
		return
	}
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := clicker.AnswerClick(ctx, at, click, text); err != nil {
			a.log.Debug().Str("account", at.AccountOf().String()).Err(err).Msg("a button press could not be answered")
		}
	}()
}
