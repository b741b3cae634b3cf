package platformtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"herald/platforms"
)

// patience is how long the suite waits for something that must come. It is only reached by a failure.
const patience = 15 * time.Second

// check is one promise of the suite.
type check struct {
	name string
	run  func(*testing.T, *stage)
}

// checks are the promises, by the name that Harness.Skip uses.
var checks = []check{
	{"acknowledge only after the commit", ackAfterCommit},
	{"a redelivery carries the same id", redelivery},
	{"order is kept", order},
	{"a reply lands where the message came from", roundTrip},
	{"every kind of message stays in its place, also after a restart", staysInPlace},
	{"a thread of a message's own", ownThread},
	{"a quoted message is named", quoting},
	{"a slash command is answered to its invoker alone", commanding},
	{"the outcome of a send is known truly", outcomes},
	{"the outcome of an edit is known truly", editOutcomes},
	{"no request inside a retry window", politeness},
	{"an edit to the same content is success", edits},
	{"a deleted message is gone", deletes},
	{"typing", typing},
	{"reactions", reacting},
	{"buttons", buttons},
	{"people edit their messages", rewriting},
	{"files go out or leave a note", filesOut},
	{"files come in", filesIn},
	{"the text limit counts in the platform's unit", limits},
	{"a message that comes twice is kept once", doubled},
	{"messages out of order all arrive", shuffled},
	{"deaf is not ready", deafness},
	{"a storm of server errors passes", storm},
	{"credentials that were taken away pause the account", revoked},
	{"reconnecting leaves one connection", reconnecting},
	{"a stop is prompt", stopping},
	{"no error holds a secret", secrets},
}

// Run checks that an adapter keeps the contract of package platforms. Each check is a subtest with a fresh
// World.
func Run(t *testing.T, h Harness) {
	known := map[string]bool{}
	for _, c := range checks {
		known[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			if reason := h.Skip[c.name]; reason != "" {
				t.Skip(reason)
			}
			c.run(t, newStage(t, h))
		})
	}
	for name := range h.Lacks {
		if !slices.Contains(features, name) && !slices.Contains(troubles, Trouble(name)) {
			t.Errorf("Harness.Lacks names %q; want one of %q or %q", name, features, troubles)
		}
	}
	for name := range h.Skip {
		if !known[name] {
			t.Errorf("Harness.Skip names %q, which is no check", name)
		}
	}
}

// stage is one check's world with an adapter running on it.
type stage struct {
	t       *testing.T
	harness Harness
	world   World
	adapter platforms.Adapter
	sink    *Sink
	stop    func()
	errs    []error
	count   int
	// gaveUp allows Run to end by itself with a *platforms.StartError.
	gaveUp bool
}

func newStage(t *testing.T, h Harness) *stage {
	s := &stage{t: t, harness: h, world: h.New(t), sink: &Sink{}}
	s.start()
	t.Cleanup(func() {
		s.stop()
		for _, err := range s.sink.Invalid() {
			t.Errorf("invalid event: %v", err)
		}
		s.noSecrets()
	})
	return s
}

// start runs a new adapter and waits until it hears.
func (s *stage) start() {
	s.t.Helper()
	s.adapter = s.world.Adapter(s.t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	adapter := s.adapter
	go func() { ended <- adapter.Run(ctx, s.sink) }()
	stopped := false
	s.stop = func() {
		s.t.Helper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			var gaveUp *platforms.StartError
			switch {
			case err == nil:
			case s.gaveUp && errors.As(err, &gaveUp):
				s.errs = append(s.errs, err)
				if gaveUp.Setting == "" {
					s.t.Errorf("Run gave up with %v and names no setting", err)
				}
			default:
				s.t.Errorf("Run returned %T %v after its context ended, want nil", err, err)
			}
		case <-time.After(patience):
			s.t.Errorf("Run did not return within %s of its context's end", patience)
		}
	}
	s.until("the adapter hears", func() bool { return s.adapter.Health().Inbound })
}

// in makes t the test that the stage reports to until the returned function is called: a subtest's own.
func (s *stage) in(t *testing.T) (back func()) {
	outer := s.t
	s.t = t
	return func() { s.t = outer }
}

// lacks ends a check that needs what the world does not have: skipped with the platform's reason, else failed.
func (s *stage) lacks(feature string) {
	s.t.Helper()
	if reason := s.harness.Lacks[feature]; reason != "" {
		s.t.Skip(reason)
	}
	s.t.Fatalf("the World has no %s, and Harness.Lacks gives no reason of the platform's", feature)
}

// until waits for cond.
func (s *stage) until(what string, cond func() bool) {
	s.t.Helper()
	if !eventually(cond) {
		s.t.Fatalf("waited %s in vain: %s (health %+v)", patience, what, s.adapter.Health())
	}
}

// eventually polls cond until it holds or patience is over.
func eventually(cond func() bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			return cond()
		case <-tick.C:
		}
	}
	return true
}

// events waits until n events were kept and returns them.
func (s *stage) events(n int) []platforms.Event {
	s.t.Helper()
	s.until(fmt.Sprintf("%d events", n), func() bool { return len(s.sink.Events()) >= n })
	events := s.sink.Events()
	if len(events) > n {
		s.t.Fatalf("%d events, want %d: the last is %+v", len(events), n, events[len(events)-1])
	}
	return events
}

// word returns a text that no message had before.
func (s *stage) word() string {
	s.count++
	return fmt.Sprintf("word%03d", s.count)
}

// send sends within limit.
func (s *stage) send(limit time.Duration, out platforms.Outgoing) (platforms.Receipt, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.count++
	if out.Nonce == "" {
		out.Nonce = fmt.Sprintf("nonce-%d", s.count)
	}
	receipt, err := s.adapter.Send(ctx, out)
	s.note(err)
	return receipt, err
}

// mustSend sends text to a place.
func (s *stage) mustSend(p Place, text string) platforms.Receipt {
	s.t.Helper()
	receipt, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(text)})
	if err != nil {
		s.t.Fatalf("Send: %v", err)
	}
	return receipt
}

func say(text string) platforms.Text { return platforms.Text{Body: text, Plain: text, Markdown: text} }

// note keeps an error for the check of secrets, and requires it to be a SendError.
func (s *stage) note(err error) {
	s.t.Helper()
	if err == nil {
		return
	}
	s.errs = append(s.errs, err)
	var e *platforms.SendError
	if !errors.As(err, &e) {
		s.t.Errorf("%T %v is no *platforms.SendError", err, err)
	}
}

// copies counts the visible messages of a place that hold text.
func (s *stage) copies(p Place, text string) int {
	n := 0
	for _, v := range s.world.Visible(p) {
		if strings.Contains(v.Text, text) {
			n++
		}
	}
	return n
}

func (s *stage) first() Place { return s.world.Places()[0] }

func (s *stage) noSecrets() {
	s.t.Helper()
	secretive, ok := s.adapter.(platforms.Secretive)
	if !ok {
		return
	}
	texts := []string{s.adapter.Health().Detail}
	for _, err := range s.errs {
		texts = append(texts, err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", errors.Unwrap(err)))
	}
	for _, secret := range secretive.Secrets() {
		for _, text := range texts {
			if secret != "" && strings.Contains(text, secret) {
				s.t.Errorf("%q holds the secret %q", text, secret)
			}
		}
	}
}
