package accounts

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
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"herald/platforms"
	"herald/sessions/lock"
)

// account is one adapter with what is known of it.
type account struct {
	platforms.Login
	held    *lock.Lock
	failure atomic.Pointer[error]
	ended   atomic.Bool // Run has returned
	stop    context.CancelFunc
	done    chan struct{}
}

func (a *Accounts) launch(ctx context.Context, acc *account) {
	ctx, acc.stop = context.WithCancel(ctx)
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		defer close(acc.done)
		a.run(ctx, acc)
	}()
}

// lockRetry is how often a token that another daemon holds is tried again.
const lockRetry = 10 * time.Second

// run runs one adapter. It is not run again after an error of its own. A token that another daemon uses is tried again and
// again, because that daemon may end.
func (a *Accounts) run(ctx context.Context, acc *account) {
	log := a.o.Log.With().Str("account", acc.Adapter.Account().String()).Logger()
	defer acc.ended.Store(true)
	for told := false; ; {
		err := a.claim(acc)
		if err == nil {
			break
		}
		acc.failure.Store(&err)
		if !told {
			log.Error().Err(err).Msg("this account is used by another process; trying again until it is free")
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
	if acc.Port != 0 {
		stop, err := a.listen(acc)
		if err != nil {
			acc.failure.Store(&err)
			log.Error().Err(err).Msg("a platform can't start; the others go on")
			return
		}
		defer stop()
	}
	if err := acc.Adapter.Run(ctx, inbound{a}); err != nil && ctx.Err() == nil {
		acc.failure.Store(&err)
		log.Error().Err(err).Msg("a platform has stopped; the others go on")
	}
}

// claim takes the machine-wide lock of the account's identity.
func (a *Accounts) claim(acc *account) error {
	if acc.Identity == "" || acc.held != nil {
		return nil
	}
	if err := os.MkdirAll(a.lockDir, 0o700); err != nil {
		return fmt.Errorf("directory of token locks: %w (set gateway.lock_dir to a directory that can be written)", err)
	}
	sum := sha256.Sum256([]byte(acc.Identity))
	info := a.info
	info.What = "a " + strings.ReplaceAll(acc.LockName, "-", " ")
	held, err := lock.Acquire(filepath.Join(a.lockDir, acc.LockName+"-"+hex.EncodeToString(sum[:8])+".lock"), info)
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

// listen serves an adapter's routes on its own port until stop is called.
func (a *Accounts) listen(acc *account) (stop func(), err error) {
	handler, ok := acc.Adapter.(platforms.Handler)
	if !ok {
		return func() {}, nil
	}
	routes := handler.Routes()
	if alone, ok := acc.Adapter.(interface {
		OwnRoutes() map[string]http.Handler
	}); ok {
		routes = alone.OwnRoutes()
	}
	mux := http.NewServeMux()
	for pattern, h := range routes {
		mux.Handle(pattern, h)
	}
	log := a.o.Log.With().Str("account", acc.Adapter.Account().String()).Logger()
	listener, err := net.Listen("tcp", net.JoinHostPort(acc.Host, strconv.Itoa(acc.Port)))
	if err != nil {
		return nil, &platforms.StartError{Account: acc.Adapter.Account(), Setting: acc.PortKey, Err: err,
			Hint: "stop what uses the port, choose another one, or set it to 0 to take the common HTTP listener"}
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error().Err(err).Msg("a listener has ended")
		}
	}()
	log.Info().Str("address", listener.Addr().String()).Msg("a platform has a listener of its own")
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}, nil
}
