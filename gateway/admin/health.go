package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"herald/platforms"
)

// AccountHealth is one account's inbound path.
type AccountHealth struct {
	Account string    `json:"account"`
	Ready   bool      `json:"ready"`
	State   string    `json:"state"`
	Detail  string    `json:"detail,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Last    time.Time `json:"last_event,omitzero"`
}

// Health is what /readyz and the status verb tell.
type Health struct {
	// Ready is true when every account can take inbound now and the store can be written.
	Ready    bool            `json:"ready"`
	State    string          `json:"state"` // "running", "stopping", "store full", ...
	Accounts []AccountHealth `json:"accounts"`
	Problems []string        `json:"problems,omitempty"`
}

// AccountOf makes an AccountHealth.
func AccountOf(a platforms.Account, h platforms.Health) AccountHealth {
	return AccountHealth{Account: a.String(), Ready: h.Inbound, State: h.State, Detail: h.Detail, Since: h.Since, Last: h.LastEvent}
}

// HealthHandler serves /healthz: 200 while the process answers. It tells no details.
func HealthHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
}

// ReadyHandler serves /readyz: 200 when inbound can be admitted now on every account, else 503, with the
// accounts as JSON (P12). details false leaves out everything but the verdicts, for callers that are not known.
func ReadyHandler(health func() Health, details func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := health()
		if !details(r) {
			h.Problems, h.Accounts = nil, slices.Clone(h.Accounts)
			for i := range h.Accounts {
				h.Accounts[i].Detail = ""
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !h.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h)
	})
}
