package discord

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/discordtest"
)

// patience is how long a test waits for what must come.
const patience = 15 * time.Second

// rig is a world with an adapter running on it.
type rig struct {
	t *testing.T
	*world
	a     *Adapter
	sink  *platformtest.Sink
	ended chan error
	quit  context.CancelFunc
	log   *lines
}

// lines is a log that tests can read.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// newRig makes a world and runs an adapter on it until the test ends.
func newRig(t *testing.T, fake discordtest.Options, change func(*Options)) *rig {
	r := prepareRig(t, fake, change)
	r.start()
	return r
}

// prepareRig is newRig without the running adapter.
func prepareRig(t *testing.T, fake discordtest.Options, change func(*Options)) *rig {
	if fake.Heartbeat == 0 {
		fake.Heartbeat = time.Second // a busy machine must not look deaf
	}
	r := &rig{t: t, world: startWorld(t, fake), sink: &platformtest.Sink{}, log: &lines{}}
	r.change = func(o *Options) {
		o.Log = zerolog.New(r.log)
		if change != nil {
			change(o)
		}
	}
	t.Cleanup(func() {
		r.stop()
		require.Empty(t, r.sink.Invalid())
		require.NotContains(t, r.log.String(), testToken)
	})
	return r
}

// launch runs a new adapter.
func (r *rig) launch() {
	r.a = r.make(r.t)
	ctx, cancel := context.WithCancel(context.Background())
	r.quit, r.ended = cancel, make(chan error, 1)
	go func() { r.ended <- r.a.Run(ctx, r.sink) }()
}

// start is launch, and waits until the adapter hears.
func (r *rig) start() {
	r.t.Helper()
	r.launch()
	r.until("the adapter hears", func() bool { return r.a.Health().Inbound })
}

// stop ends the adapter.
func (r *rig) stop() {
	r.t.Helper()
	if r.quit == nil {
		return
	}
	r.quit()
	r.quit = nil
	select {
	case err := <-r.ended:
		require.NoError(r.t, err)
	case <-time.After(patience):
		r.t.Fatal("Run did not return")
	}
}

// gaveUp waits until Run has returned its error.
func (r *rig) gaveUp() *platforms.StartError {
	r.t.Helper()
	select {
	case err := <-r.ended:
		r.quit = nil
		var start *platforms.StartError
		require.ErrorAs(r.t, err, &start)
		require.ErrorIs(r.t, err, platforms.ErrPermanent)
		return start
	case <-time.After(patience):
		r.t.Fatalf("Run goes on: %+v", r.a.Health())
	}
	return nil
}

func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain: %s (health %+v)\n%s", what, r.a.Health(), r.log)
		}
		<-tick.C
	}
}

// events waits for n events in all, and returns them.
func (r *rig) events(n int) []platforms.Event {
	r.t.Helper()
	r.until("events", func() bool { return len(r.sink.Events()) >= n })
	events := r.sink.Events()
	require.Len(r.t, events, n)
	return events
}

// last waits for the n-th event and returns it.
func (r *rig) last(n int) platforms.Event {
	r.t.Helper()
	return r.events(n)[n-1]
}

// settle makes sure that everything said so far has come through: a direct message is the barrier. It returns how many
// events there are without it.
func (r *rig) settle() int {
	r.t.Helper()
	mark := id(r.fake.Say(r.dm, "barrier"))
	n := 0
	r.until("the barrier", func() bool {
		for i, e := range r.sink.Events() {
			if e.Message != nil && e.Message.ID == mark {
				n = i
				return true
			}
		}
		return false
	})
	return n
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) send(out platforms.Outgoing) (platforms.Receipt, error) {
	r.t.Helper()
	return r.a.Send(r.ctx(), out)
}

func (r *rig) mustSend(out platforms.Outgoing) platforms.Receipt {
	r.t.Helper()
	receipt, err := r.send(out)
	require.NoError(r.t, err)
	return receipt
}

func words(text string) platforms.Text {
	return platforms.Text{Body: text, Plain: text, Markdown: text}
}

// failure is the SendError of err.
func failure(t *testing.T, err error) *platforms.SendError {
	t.Helper()
	var e *platforms.SendError
	require.True(t, errors.As(err, &e), "%T %v", err, err)
	return e
}

// texts are the bot's messages of a channel.
func (r *rig) texts(channel discordtest.ID) []string {
	var out []string
	for _, m := range r.fake.Visible(channel) {
		out = append(out, m.Text)
	}
	return out
}
