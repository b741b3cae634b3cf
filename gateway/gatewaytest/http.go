package gatewaytest

import (
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"

	"herald/gateway/admin"
	"herald/gateway/config"
)

// Get asks the daemon's own HTTP server, and returns the status and the body.
func (h *House) Get(path string) (int, string) {
	h.T.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(strings.TrimSuffix(h.Gateway.URL(), "/") + path)
	require.NoError(h.T, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(h.T, err)
	return resp.StatusCode, string(body)
}

// Metrics returns what /metrics says.
func (h *House) Metrics() string {
	h.T.Helper()
	_, body := h.Get("/metrics")
	return body
}

// Ready returns what /readyz says; its status must agree.
func (h *House) Ready() admin.Health {
	h.T.Helper()
	status, body := h.Get("/readyz")
	var r admin.Health
	require.NoError(h.T, json.Unmarshal([]byte(body), &r), body)
	require.Equal(h.T, r.Ready, status == http.StatusOK, body)
	return r
}

// Inbox counts the rows of the stopped house's inbox by "state: reason".
func (h *House) Inbox() map[string]int {
	h.T.Helper()
	db, err := sql.Open("sqlite3", "file:"+config.PathsFor(h.Home).DB+"?mode=ro")
	require.NoError(h.T, err)
	defer db.Close()
	rows, err := db.Query("SELECT state, reason, count(*) FROM inbox GROUP BY state, reason")
	require.NoError(h.T, err)
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var state, reason string
		var n int
		require.NoError(h.T, rows.Scan(&state, &reason, &n))
		out[state+": "+reason] = n
	}
	require.NoError(h.T, rows.Err())
	return out
}
