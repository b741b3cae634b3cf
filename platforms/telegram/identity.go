package telegram

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"herald/platforms"
	"herald/platforms/wire"
)

// identity is who the bot is. The id is known from the token; the name, which only groups need, comes
// from getMe while the first poll already runs.
type identity struct {
	tokenID int64
	known   chan struct{}
	got     *atomic.Pointer[profile]
}

// profile is what getMe told.
type profile struct {
	id       int64
	username string // lower case, without "@"
}

func newIdentity(account platforms.AccountID) identity {
	id, _ := strconv.ParseInt(string(account), 10, 64)
	return identity{tokenID: id, known: make(chan struct{}), got: &atomic.Pointer[profile]{}}
}

// profile returns what is known now; the name is empty before getMe has answered.
func (i *identity) profile() profile {
	if p := i.got.Load(); p != nil {
		return *p
	}
	return profile{id: i.tokenID}
}

// wait returns once getMe has answered.
func (i *identity) wait(ctx context.Context) error {
	select {
	case <-i.known:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// identify asks getMe until it answers, ctx ends, or the token is refused (the receiving loop reports that).
func (a *Adapter) identify(ctx context.Context) {
	if a.me.got.Load() != nil {
		return
	}
	wait := wire.NewBackoff(a.s.BackoffMin, a.s.BackoffMax)
	for {
		call, callCtx, cancel := newCall(ctx, a.s.ConnectTimeout)
		me, err := a.api.GetMe(callCtx)
		cancel()
		if err == nil {
			if a.me.got.CompareAndSwap(nil, &profile{id: me.ID, username: strings.ToLower(me.Username)}) {
				close(a.me.known)
			}
			return
		}
		if ctx.Err() != nil || call.Status == http.StatusUnauthorized {
			return
		}
		a.s.Log.Debug().Err(a.clean(err)).Msg("getMe failed, trying again")
		if wait.Wait(ctx, a.s.Clock, 0) != nil {
			return
		}
	}
}
