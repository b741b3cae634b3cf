package slack

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
)

const patience = 15 * time.Second

func textOf(raw json.RawMessage) string {
	var p struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &p)
	return p.Text
}

// running is an adapter at work on a world.
type running struct {
	*Adapter
	t    testing.TB
	w    *world
	sink *platformtest.Sink
	stop func() error
}

// run starts an adapter and waits until it hears. It is stopped at the end of the test.
func (w *world) run(t testing.TB) *running {
	t.Helper()
	r := w.begin(t)
	r.until("the adapter hears", func() bool { return r.Health().Inbound })
	return r
}

// begin starts an adapter.
func (w *world) begin(t testing.TB) *running {
	t.Helper()
	r := &running{Adapter: w.Adapter(t).(*Adapter), t: t, w: w, sink: &platformtest.Sink{}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, r.sink) }()
	var result error
	stopped := false
	r.stop = func() error {
		if !stopped {
			stopped = true
			cancel()
			select {
			case result = <-ended:
			case <-time.After(patience):
				t.Errorf("Run did not return")
			}
		}
		return result
	}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

func (r *running) until(what string, cond func() bool) {
	r.t.Helper()
	require.Eventually(r.t, cond, patience, 2*time.Millisecond, what)
}

// events waits for n events and returns them.
func (r *running) events(n int) []platforms.Event {
	r.t.Helper()
	r.until("events", func() bool { return len(r.sink.Events()) >= n })
	require.Len(r.t, r.sink.Events(), n)
	return r.sink.Events()
}

// settled waits until Slack knows that all events were taken, and stops the adapter.
func (r *running) settled() {
	r.t.Helper()
	r.until("all is acknowledged", func() bool { return r.w.fake.Pending() == 0 })
	require.NoError(r.t, r.stop())
}

func (r *running) send(out platforms.Outgoing) platforms.Receipt {
	r.t.Helper()
	receipt, err := r.try(out)
	require.NoError(r.t, err)
	return receipt
}

func (r *running) try(out platforms.Outgoing) (platforms.Receipt, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.Send(ctx, out)
}

func say(text string) platforms.Text { return platforms.Text{Body: text, Plain: text, Markdown: text} }
