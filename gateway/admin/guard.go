package admin

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// Guard tells the callers that may see details: those of this machine, and those that carry the token.
type Guard struct {
	// Token returns the token of the HTTP listener; empty: there is none.
	Token func() string
}

// Known reports whether a request may see details.
func (g Guard) Known(r *http.Request) bool {
	if token := g.Token(); token != "" {
		given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1 {
			return true
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	forwarded := r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != ""
	return err == nil && ip != nil && ip.IsLoopback() && !forwarded
}

// Only lets only known callers through.
func (g Guard) Only(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.Known(r) {
			http.Error(w, "metrics are for this machine, or for who sends the token (HERALD_HTTP_TOKEN) as a bearer token", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
