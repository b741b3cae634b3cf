package teams

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/teamstest"
)

const patience = 15 * time.Second

// run is a world with an adapter that runs.
type run struct {
	*world
	t    *testing.T
	a    *Adapter
	sink *platformtest.Sink
	stop func() error
}

func start(t *testing.T, o teamstest.Options, alter func(*Options)) *run {
	r := &run{world: startWorld(t, o), t: t, sink: &platformtest.Sink{}}
	r.alter = alter
	r.begin()
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// begin runs a new adapter, as a start of the daemon does, and waits until it hears.
func (r *run) begin() {
	r.t.Helper()
	r.a = r.adapter(r.t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	a := r.a
	go func() { ended <- a.Run(ctx, r.sink) }()
	var result error
	stopped := false
	r.stop = func() error {
		if !stopped {
			stopped = true
			cancel()
			result = <-ended
		}
		return result
	}
	r.until("the adapter hears", func() bool { return r.a.Health().Inbound })
}

func (r *run) restart() {
	r.t.Helper()
	require.NoError(r.t, r.stop())
	r.begin()
}

func (r *run) until(what string, cond func() bool) {
	r.t.Helper()
	require.Eventually(r.t, cond, patience, 2*time.Millisecond, what)
}

func (r *run) events(n int) []platforms.Event {
	r.t.Helper()
	r.until("events", func() bool { return len(r.sink.Events()) >= n })
	events := r.sink.Events()
	require.Len(r.t, events, n)
	return events
}

func (r *run) send(out platforms.Outgoing) (platforms.Receipt, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.a.Send(ctx, out)
}

func (r *run) mustSend(out platforms.Outgoing) platforms.Receipt {
	r.t.Helper()
	receipt, err := r.send(out)
	require.NoError(r.t, err)
	return receipt
}

func (r *run) atDM() platforms.Address     { return r.address(r.dm.ID, "") }
func (r *run) atGroup() platforms.Address  { return r.address(r.group.ID, "") }
func (r *run) atThread() platforms.Address { return r.address(r.channel.ID, r.root) }

func text(s string) platforms.Text { return platforms.Text{Body: s, Plain: s, Markdown: s} }

func sendErrorOf(t *testing.T, err error) *platforms.SendError {
	t.Helper()
	var e *platforms.SendError
	require.True(t, errors.As(err, &e), "%v", err)
	return e
}

func serve(h http.Handler, method, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
	return rec
}

func jsonUnmarshal(s string, into any) error { return json.Unmarshal([]byte(s), into) }
