package gateway_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/admin"
	"herald/gateway/config"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// get asks the daemon's own HTTP server.
func (h *house) get(path string) (int, string) {
	h.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(strings.TrimSuffix(h.gateway.URL(), "/") + path)
	require.NoError(h.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(h.t, err)
	return resp.StatusCode, string(body)
}

func (h *house) metrics() string {
	h.t.Helper()
	_, body := h.get("/metrics")
	return body
}

// ready returns what /readyz says.
func (h *house) ready() admin.Health {
	h.t.Helper()
	status, body := h.get("/readyz")
	var r admin.Health
	require.NoError(h.t, json.Unmarshal([]byte(body), &r), body)
	require.Equal(h.t, r.Ready, status == http.StatusOK, body)
	return r
}

// account returns one platform's part of it.
func account(r admin.Health, platform string) admin.AccountHealth {
	for _, a := range r.Accounts {
		if strings.HasPrefix(a.Account, platform+"/") {
			return a
		}
	}
	return admin.AccountHealth{}
}

// inbox counts the rows of the stopped house's inbox by "state: reason".
func (h *house) inbox() map[string]int {
	h.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+config.PathsFor(h.home).DB+"?mode=ro")
	require.NoError(h.t, err)
	defer db.Close()
	rows, err := db.Query("SELECT state, reason, count(*) FROM inbox GROUP BY state, reason")
	require.NoError(h.t, err)
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var state, reason string
		var n int
		require.NoError(h.t, rows.Scan(&state, &reason, &n))
		out[state+": "+reason] = n
	}
	require.NoError(h.t, rows.Err())
	return out
}

// P12: a connection that is open and brings nothing is told as deaf, for that account alone, and as ready again when
// it brings something.
func TestHealth_DeafAndBack(t *testing.T) {
	h := start(t, echo(), func(h *house) { h.set["platforms.telegram.poll_timeout"] = "1s" })
	h.until("all is ready", func() bool { return h.ready().Ready })
	h.tg.Break(telegramtest.Fault{Method: "getUpdates", Trouble: telegramtest.HangBefore, Times: -1})
	h.until("the account is told as deaf", func() bool { return account(h.ready(), "telegram").State == "deaf" })
	r := h.ready()
	require.False(t, r.Ready)
	require.NotEmpty(t, account(r, "telegram").Detail)
	require.True(t, account(r, "web").Ready, "the other account is not touched")
	status, _ := h.get("/healthz")
	require.Equal(t, http.StatusOK, status, "the process lives all the same")
	h.tg.Say(7, "are you there?")
	h.tg.Heal()
	h.await(7, "re: are you there?")
	h.until("it is ready again", func() bool { return h.ready().Ready })
}

// P12: a service that is gone is told too.
func TestHealth_ServiceGone(t *testing.T) {
	h := start(t, echo())
	h.until("all is ready", func() bool { return h.ready().Ready })
	h.tg.Shut()
	h.until("the account is not ready", func() bool { return !account(h.ready(), "telegram").Ready })
	require.NotContains(t, h.log.String(), botToken)
	require.NoError(t, h.tg.Open())
	h.until("it is ready again", func() bool { return h.ready().Ready })
	h.tg.Say(7, "back?")
	h.await(7, "re: back?")
}

// P13: nothing of a stranger starts anything: no message, command, button or reaction. P7: each is counted, logged,
// and kept with its reason.
func TestHealth_StrangersStartNothing(t *testing.T) {
	stranger := telegramtest.User{ID: 666, FirstName: "Mallory"}
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if text, ok := r.ToolResult(); ok {
			return modeltest.Text("you said " + text)
		}
		if strings.Contains(r.LastUser(), "ask") {
			return modeltest.Calls("c1", "clarify", `{"question":"Which colour?","choices":["red","blue"]}`)
		}
		return modeltest.Text("re: " + r.LastUser())
	})
	h := start(t, script, func(h *house) {
		h.env = append(h.env, "HERALD_TELEGRAM_ALLOW_FROM=7001")
		h.set["platforms.telegram.unauthorized_dm_behavior"] = "ignore"
	})
	h.post(-55, 0, ann, "ask me")
	q := h.await(-55, "Which colour?")
	asked := len(script.Requests())

	for i, act := range []func(){
		func() { h.post(666, 0, stranger, "let me in") },
		func() { h.post(666, 0, stranger, "/status") },
		func() { h.post(666, 0, stranger, "/stop") },
		func() { h.post(-55, 0, stranger, "blue, please") },
		func() { h.post(-55, 0, stranger, "/stop") },
		func() { h.tg.Press(-55, q.ID, q.Buttons[1][0].Data, stranger) },
		func() { h.tg.React(-55, q.ID, "", "👍", stranger) },
	} {
		act()
		h.until(fmt.Sprintf("act %d is refused", i), func() bool {
			return strings.Count(h.log.String(), `"message":"an event was dropped"`) == i+1
		})
	}
	require.Len(t, script.Requests(), asked)
	require.Empty(t, h.texts(666))
	require.Len(t, h.texts(-55), 1)
	metrics := h.metrics()
	require.Contains(t, metrics, `herald_inbound_events_total{kind="click",outcome="dropped",platform="telegram"} 1`)
	require.Contains(t, metrics, `herald_inbound_events_total{kind="reaction",outcome="dropped",platform="telegram"} 1`)
	require.NotContains(t, h.log.String(), "Mallory", "no person in the log")

	// The question still waits for the one who was asked.
	h.tg.Press(-55, q.ID, q.Buttons[0][0].Data, ann)
	h.await(-55, "you said")
	h.halt()
	n := 0
	for reason, count := range h.inbox() {
		if strings.HasPrefix(reason, "dropped: not allowed: ") {
			n += count
		}
	}
	require.Equal(t, 7, n)
}

// P7: what is dropped of people who may talk is counted, logged, kept with its reason and, where they wait for an
// answer, told.
func TestHealth_EveryDropIsVisible(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if r.LastUser() == "first" {
			return modeltest.Reply{HangHeader: true}
		}
		return modeltest.Text("re: " + r.LastUser())
	})
	h := start(t, script, func(h *house) {
		h.set["display.busy_input_mode"] = "queue"
		h.set["gateway.max_pending_per_session"] = "1"
	})
	h.tg.Say(8, "hello")
	hello := h.await(8, "re: hello")
	h.tg.React(8, hello.ID, "", "👍", telegramtest.User{})
	h.until("the reaction is dropped", func() bool { return strings.Contains(h.log.String(), "reactions start nothing here") })
	said := h.tg.Say(8, "teh")
	h.await(8, "re: teh")
	h.tg.Rewrite(8, said, "the")
	h.until("the edit is dropped", func() bool { return strings.Contains(h.log.String(), "before it was edited") })

	h.tg.Say(7, "first")
	h.until("the model is asked", func() bool { return len(script.Requests()) == 3 })
	h.tg.Say(7, "second")
	h.tg.Say(7, "third")
	h.await(7, "waits here already")
	metrics := h.metrics()
	for _, want := range []string{
		`herald_inbound_events_total{kind="reaction",outcome="dropped",platform="telegram"} 1`,
		`herald_inbound_events_total{kind="edited",outcome="dropped",platform="telegram"} 1`,
		`herald_inbound_events_total{kind="message",outcome="queue_full",platform="telegram"} 1`,
	} {
		require.Contains(t, metrics, want)
	}
	require.Contains(t, h.log.String(), "the queue is full")
	h.tg.Say(7, "/stop")
	h.await(7, "Stopped. ")
	h.halt()
	inbox := h.inbox()
	for _, want := range []string{"dropped: reactions start nothing here", "dropped: the message was taken before it was edited",
		"dropped: the queue is full", "dropped: stopped by /stop"} {
		require.Equal(t, 1, inbox[want], "%s in %v", want, inbox)
	}
}
