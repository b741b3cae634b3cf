package telegram

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/telegramtest"
	"herald/platforms/wire"
)

// listener serves an adapter's routes, as Herald's own listener does.
func listener(t *testing.T) (*httptest.Server, *http.ServeMux) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server, mux
}

const hookSecret = "hook_secret-123"

func hooked(t *testing.T) (*running, string) {
	server, mux := listener(t)
	r := run(t, func(o *Options) {
		o.WebhookURL, o.WebhookSecret, o.WebhookPath = server.URL+"/hooks/tg", hookSecret, "/hooks/tg"
	})
	for pattern, handler := range r.a.Routes() {
		mux.Handle(pattern, handler)
	}
	eventually(t, func() bool { return r.a.Health().Inbound }, "the webhook is registered")
	return r, server.URL + "/hooks/tg"
}

// P1 for webhooks: 200 only after the commit; what was refused comes again with the same id, in order.
func TestWebhook_AcknowledgesAfterTheCommit(t *testing.T) {
	r, _ := hooked(t)
	r.sink.Fail(platforms.ErrRefused)
	r.fake.Say(person, "one")
	r.fake.Say(person, "two")
	eventually(t, func() bool { return len(r.sink.Offered()) >= 2 }, "it is offered again")
	require.Equal(t, 2, r.fake.Pending())
	r.sink.Fail(nil)
	events := r.events(t, 2)
	require.Equal(t, "one", events[0].Message.Text)
	require.Equal(t, "two", events[1].Message.Text)
	require.Equal(t, r.sink.Offered()[0].ID, events[0].ID)
	eventually(t, func() bool { return r.fake.Pending() == 0 }, "both are acknowledged")
	_, err := r.a.Send(t.Context(), outgoing(person, "answer"))
	require.NoError(t, err)
	require.NoError(t, r.stop())
	require.Zero(t, r.fake.Calls("deleteWebhook"), "a stop leaves the webhook, so that updates wait")
}

// P13: nobody but Telegram gets in.
func TestWebhook_RefusesStrangers(t *testing.T) {
	r, url := hooked(t)
	update := `{"update_id":7,"message":{"message_id":1,"date":1,"chat":{"id":501,"type":"private"},"from":{"id":501,"first_name":"P"},"text":"hi"}}`
	post := func(method, secret, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		require.NoError(t, err)
		if secret != "" {
			req.Header.Set(telegramtest.SecretHeader, secret)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	defer http.DefaultClient.CloseIdleConnections()
	require.Equal(t, 401, post("POST", "", update))
	require.Equal(t, 401, post("POST", hookSecret+"x", update))
	require.Equal(t, 401, post("POST", hookSecret[:5], update))
	require.Equal(t, 405, post("GET", hookSecret, ""))
	require.Equal(t, 400, post("POST", hookSecret, "garbage"))
	require.Equal(t, 413, post("POST", hookSecret, strings.Repeat(" ", maxPost+1)+update))
	require.Empty(t, r.sink.Offered())
	require.Equal(t, 200, post("POST", hookSecret, update))
	require.Len(t, r.sink.Events(), 1)
	require.Equal(t, 200, post("POST", hookSecret, `{"update_id":8,"message":"no object"}`), "unreadable: it would come forever")
	require.Equal(t, 1, r.count.dropped["undecodable"])
	require.NoError(t, r.stop())
	require.Equal(t, 503, post("POST", hookSecret, update), "nobody is there to take it")
}

func TestWebhook_BadAddressIsFinal(t *testing.T) {
	w := startWorld(t)
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Method: "setWebhook", Status: 400, Description: "Bad Request: bad webhook: HTTPS url must be provided for webhook"})
	a, err := New(func() Options {
		o := w.options()
		o.WebhookURL, o.WebhookSecret = "http://x.example", hookSecret
		return o
	}())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = a.Run(ctx, &platformtest.Sink{})
	var start *platforms.StartError
	require.ErrorAs(t, err, &start)
	require.Equal(t, "platforms.telegram.webhook_url", start.Setting)
	require.Contains(t, err.Error(), "HTTPS url must be provided")
}

// tickingClock is the real clock, but for the wait between two looks at the webhook, which ends when the test says so.
type tickingClock struct {
	wire.Clock
	tick chan struct{}
}

func (c tickingClock) Sleep(ctx context.Context, d time.Duration) error {
	if d != webhookCheck {
		return c.Clock.Sleep(ctx, d)
	}
	select {
	case <-c.tick:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// P12: Telegram is asked whether its calls arrive. A webhook that was taken off is registered again, and one that can't be
// reached is not ready.
func TestWebhook_IsWatched(t *testing.T) {
	clock := tickingClock{wire.System{}, make(chan struct{})}
	server, mux := listener(t)
	r := run(t, func(o *Options) {
		o.WebhookURL, o.WebhookSecret, o.WebhookPath, o.Clock = server.URL+"/hooks/tg", hookSecret, "/hooks/tg", clock
	})
	for pattern, handler := range r.a.Routes() {
		mux.Handle(pattern, handler)
	}
	eventually(t, func() bool { return r.a.Health().Inbound }, "the webhook is registered")

	resp, err := http.Get(r.url + "/bot" + testToken + "/deleteWebhook") // as another program with the token would
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	clock.tick <- struct{}{}
	eventually(t, func() bool { return r.fake.Calls("setWebhook") == 2 && r.a.Health().Inbound }, "it is registered again")

	r.sink.Fail(platforms.ErrRefused)
	r.fake.Say(person, "one")
	eventually(t, func() bool { return len(r.sink.Offered()) > 0 && r.fake.Pending() > 0 }, "it is refused")
	eventually(t, func() bool {
		select {
		case clock.tick <- struct{}{}:
		default:
		}
		return r.a.Health().State == "deaf"
	}, "what Telegram says of its calls is seen")
	require.False(t, r.a.Health().Inbound)
	r.sink.Fail(nil)
	r.events(t, 1)
	clock.tick <- struct{}{}
	eventually(t, func() bool { return r.a.Health().Inbound }, "it is ready again")
}
