package accounts

import (
	"context"
	"net/http"
	"slices"

	"herald/platforms"
)

// Mount puts the adapters' routes on a mux, and the platforms' own pages behind the doors. Routes of adapters that come
// later are added when they come.
func (a *Accounts) Mount(mux *http.ServeMux) {
	a.mu.Lock()
	a.mux = mux
	list := slices.Clone(a.list)
	a.mu.Unlock()
	for _, acc := range list {
		a.route(mux, acc)
	}
	for _, door := range a.Doors() {
		for _, kind := range a.o.Config().Platforms.Kinds() {
			pager, ok := kind.(platforms.Pager)
			if !ok {
				continue
			}
			desk := platforms.Desk{Host: func() platforms.Host { return a.host(kind) }, Go: a.beside, Adapter: a.Adapter}
			for pattern, page := range pager.Pages(desk) {
				mux.Handle(pattern, door.Behind(page))
			}
		}
	}
}

// beside runs fn until the accounts are stopped. Pages are served only while they run.
func (a *Accounts) beside(fn func(context.Context)) {
	a.mu.RLock()
	ctx := a.ctx
	a.mu.RUnlock()
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		fn(ctx)
	}()
}

// route serves an adapter's patterns by whatever adapter has the account at the time of the request.
func (a *Accounts) route(mux *http.ServeMux, acc *account) {
	handler, ok := acc.Adapter.(platforms.Handler)
	if !ok || acc.Port != 0 {
		return
	}
	name := acc.Adapter.Account()
	for pattern, h := range handler.Routes() {
		a.mu.Lock()
		known := a.routes[name.String()+" "+pattern]
		a.routes[name.String()+" "+pattern] = true
		a.mu.Unlock()
		if known {
			continue
		}
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			now := a.find(name)
			switch {
			case now == acc:
				h.ServeHTTP(w, r)
			case now != nil && now.Port != 0:
				http.NotFound(w, r) // it has a listener of its own now
			case now == nil:
				http.Error(w, "this platform is not running", http.StatusServiceUnavailable)
			default:
				if later, ok := now.Adapter.(platforms.Handler); ok {
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
