package gateway

import (
	"herald/platforms"
	"herald/platforms/fetch"
	"herald/sessions"
)

// memoryOf returns what an account's adapter may remember over restarts.
func (g *Gateway) memoryOf(account platforms.Account) platforms.Memory {
	return sessions.MemoryOf(g.store, account, g.now)
}

// downloads returns how an adapter fetches what messages name. own are servers of the platform's own configuration
// (a base URL that may be a private one); proxy is the platform's own proxy, empty for none.
func (g *Gateway) downloads(proxy string, own ...string) fetch.Options {
	cfg := g.cfg()
	o := fetch.Options{TrustEnv: cfg.Gateway.TrustEnv, Proxy: proxy, Connect: cfg.Gateway.ConnectTimeout}
	for _, entry := range append(own, cfg.Gateway.DownloadHosts...) {
		if entry != "" {
			o.Allow = append(o.Allow, entry)
		}
	}
	return o
}
