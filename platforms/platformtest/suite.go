package platformtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
	{"the outcome of a send is known truly", outcomes},
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
	{"deaf is not ready", deafness},
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
	for name := range h.Skip {
		if !known[name] {
			t.Errorf("Harness.Skip names %q, which is no check", name)
		}
	}
}

// stage is one check's world with an adapter running on it.
type stage struct {
	t       *testing.T
	world   World
	adapter platforms.Adapter
	sink    *Sink
	stop    func()
	errs    []error
	count   int
}

func newStage(t *testing.T, h Harness) *stage {
	s := &stage{t: t, world: h.New(t), sink: &Sink{}}
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
			if err != nil {
				s.t.Errorf("Run returned %v after its context ended, want nil", err)
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

// P1: what the core has not committed stays with the platform.
func ackAfterCommit(t *testing.T, s *stage) {
	s.sink.Fail(platforms.ErrRefused)
	s.world.Say(s.first(), s.word())
	s.until("the event is offered a second time", func() bool { return len(s.sink.Offered()) >= 2 })
	offered := s.sink.Offered()
	if offered[0].ID != offered[1].ID {
		t.Fatalf("the refused event came back as %q, was %q", offered[1].ID, offered[0].ID)
	}
	if n := s.world.Unacknowledged(); n == 0 {
		t.Fatal("the service was told of an event that is not committed")
	}
	if s.adapter.Health().Inbound {
		t.Error("the adapter says inbound is fine while the core refuses events")
	}
	s.stop() // a crash now must lose nothing
	s.sink.Fail(nil)
	s.start()
	if got := s.events(1)[0]; got.ID != offered[0].ID {
		t.Fatalf("after a restart the event came as %q, was %q", got.ID, offered[0].ID)
	}
	s.until("the event is acknowledged", func() bool { return s.world.Unacknowledged() == 0 })
}

// P2: a redelivery is recognisable, also after a restart.
func redelivery(t *testing.T, s *stage) {
	s.world.Say(s.first(), s.word())
	id := s.events(1)[0].ID
	s.until("the event is acknowledged", func() bool { return s.world.Unacknowledged() == 0 })
	for _, restart := range []bool{false, true} {
		if restart {
			s.stop()
			s.start()
		}
		before := len(s.sink.Offered())
		if !s.world.Redeliver() {
			t.Skip("this service never redelivers")
		}
		s.until("the redelivery is handed on", func() bool { return len(s.sink.Offered()) > before })
		for _, e := range s.sink.Offered()[before:] {
			if e.ID != id {
				t.Fatalf("restart %v: the redelivery came as %q, was %q", restart, e.ID, id)
			}
		}
		s.until("the redelivery is acknowledged", func() bool { return s.world.Unacknowledged() == 0 })
	}
	s.events(1)
}

// P3: events keep the order of their arrival.
func order(t *testing.T, s *stage) {
	const n = 60
	var want []string
	for range n {
		word := s.word()
		want = append(want, word)
		s.world.Say(s.first(), word)
	}
	for i, e := range s.events(n) {
		if e.Message == nil || e.Message.Text != want[i] {
			t.Fatalf("event %d is %+v, want %q", i, e.Message, want[i])
		}
	}
}

// P5: the address of an event leads back to its place.
func roundTrip(t *testing.T, s *stage) {
	places := s.world.Places()
	for i, p := range places {
		t.Run(p.Name, func(t *testing.T) {
			defer s.in(t)()
			word := s.word()
			id := s.world.Say(p, word)
			e := s.events(i + 1)[i]
			if e.Address != p.Address || e.ChatType != p.Type || !e.Addressed || e.Observed {
				t.Fatalf("the event says %+v, type %q, addressed %v, observed %v; want %+v, type %q, addressed", e.Address, e.ChatType, e.Addressed, e.Observed, p.Address, p.Type)
			}
			if e.Kind() != "message" || e.Message.Text != word || e.Message.ID != id {
				t.Fatalf("the event holds %s %+v, want message %s %q", e.Kind(), e.Message, id, word)
			}
			if e.Sender.ID == "" || e.Sender.Name == "" {
				t.Fatalf("the sender is %+v, want an id and a name", e.Sender)
			}
			answer := s.word()
			receipt, err := s.send(patience, platforms.Outgoing{Address: e.Address, Text: say(answer), ReplyTo: e.Message.ID})
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range places {
				want := 0
				if q == p {
					want = 1
				}
				if got := s.copies(q, answer); got != want {
					t.Fatalf("%d copies of the reply in %s, want %d", got, q.Name, want)
				}
			}
			if last := s.world.Visible(p); receipt.Message != "" && last[len(last)-1].ID != receipt.Message {
				t.Fatalf("the receipt says %q, the visible message is %q", receipt.Message, last[len(last)-1].ID)
			}
		})
	}
}

// P4: at most one visible copy, and no more certainty than there is.
func outcomes(t *testing.T, s *stage) {
	for _, trouble := range troubles {
		t.Run(string(trouble), func(t *testing.T) {
			defer s.in(t)()
			p, word := s.first(), s.word()
			if !s.world.Break(trouble) {
				t.Skip("this service can't go wrong so")
			}
			limit := patience
			if trouble == SilentBefore || trouble == SilentAfter {
				limit = 300 * time.Millisecond
			}
			_, err := s.send(limit, platforms.Outgoing{Address: p.Address, Text: say(word)})
			for i := 0; i < 5 && trouble == Unreachable && err != nil && platforms.AsSendError(err).Certainty == platforms.Unknown; i++ {
				// It took a connection that had just died. When those are used up, none can be made.
				_, err = s.send(limit, platforms.Outgoing{Address: p.Address, Text: say(word)})
			}
			s.world.Heal()
			copies := s.copies(p, word)
			e := platforms.AsSendError(err)
			switch {
			case err == nil && copies != 1:
				t.Fatalf("success, and %d copies are visible", copies)
			case err != nil && e.Certainty == platforms.NotSent && copies != 0:
				t.Fatalf("%v, and %d copies are visible", err, copies)
			case copies > 1:
				t.Fatalf("%v, and %d copies are visible", err, copies)
			}
			switch trouble {
			case RateRefused:
				if err == nil || e.Kind != platforms.RateLimited || e.Certainty != platforms.NotSent || e.RetryAfter <= 0 {
					t.Fatalf("got %v, want rate_limited, not sent, with a time to wait", err)
				}
			case Unreachable:
				if err == nil || e.Certainty != platforms.NotSent || e.Kind != platforms.Transient {
					t.Fatalf("got %v, want transient, not sent", err)
				}
			default:
				if err != nil && e.Kind != platforms.Transient {
					t.Fatalf("got %v, want transient", err)
				}
			}
			// The way is free again, and the old message does not come late.
			after := s.word()
			s.until("a send after the trouble works", func() bool {
				_, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(after)})
				return err == nil
			})
			if now := s.copies(p, word); now != copies {
				t.Fatalf("%d copies later, %d before", now, copies)
			}
		})
	}
}

// P8: inside a window nothing is asked.
func politeness(t *testing.T, s *stage) {
	p := s.first()
	first := s.mustSend(p, s.word())
	if !s.world.Break(RateRefused) {
		t.Skip("this service has no rate limit")
	}
	word := s.word()
	if _, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(s.word())}); err == nil {
		t.Fatal("the refused send was reported as a success")
	}
	tries := []func() error{
		func() error {
			_, err := s.send(100*time.Millisecond, platforms.Outgoing{Address: p.Address, Text: say(word)})
			return err
		},
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.adapter.Traits().Edit && first.Message != "" {
		tries = append(tries, func() error {
			_, err := s.send(100*time.Millisecond, platforms.Outgoing{Address: p.Address, Edit: first.Message, Text: say(s.word())})
			return err
		})
	}
	if typist, ok := s.adapter.(platforms.Typist); ok {
		tries = append(tries, func() error { return typist.Typing(ctx, p.Address) })
	}
	for i, try := range tries {
		e := platforms.AsSendError(try())
		if e == nil || e.Kind != platforms.RateLimited || e.Certainty != platforms.NotSent || e.RetryAfter <= 0 {
			t.Errorf("try %d inside the window: %v, want rate_limited, not sent, with the time left", i, e)
		}
	}
	if bad := s.world.Impolite(); len(bad) > 0 {
		t.Fatalf("requests inside the window: %v", bad)
	}
	s.until("the window ends", func() bool {
		_, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(word)})
		return err == nil
	})
	if bad := s.world.Impolite(); len(bad) > 0 {
		t.Fatalf("requests inside the window: %v", bad)
	}
	if n := s.copies(p, word); n != 1 {
		t.Fatalf("%d copies, want 1", n)
	}
}

func edits(t *testing.T, s *stage) {
	if !s.adapter.Traits().Edit {
		t.Skip("the platform can't edit")
	}
	p := s.first()
	receipt := s.mustSend(p, s.word())
	word := s.word()
	for i := range 3 {
		got, err := s.send(patience, platforms.Outgoing{Address: p.Address, Edit: receipt.Message, Text: say(word)})
		if err != nil || got.Message != receipt.Message {
			t.Fatalf("edit %d: %+v, %v", i, got, err)
		}
	}
	if seen := s.world.Visible(p); len(seen) != 1 || seen[0].Text != word {
		t.Fatalf("visible is %+v, want one message %q", seen, word)
	}
	if deleter, ok := s.adapter.(platforms.Deleter); ok {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := deleter.Delete(ctx, p.Address, receipt.Message); err != nil {
			t.Fatal(err)
		}
		_, err := s.send(patience, platforms.Outgoing{Address: p.Address, Edit: receipt.Message, Text: say(s.word())})
		if e := platforms.AsSendError(err); e == nil || e.Kind != platforms.MessageGone || e.Certainty != platforms.NotSent {
			t.Fatalf("edit of a deleted message: %v, want message_gone, not sent", err)
		}
	}
}

func deletes(t *testing.T, s *stage) {
	deleter, ok := s.adapter.(platforms.Deleter)
	if !ok {
		t.Skip("the platform can't delete")
	}
	p := s.first()
	receipt := s.mustSend(p, s.word())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range 2 {
		if err := deleter.Delete(ctx, p.Address, receipt.Message); err != nil {
			t.Fatalf("delete %d: %v", i, err)
		}
	}
	if seen := s.world.Visible(p); len(seen) != 0 {
		t.Fatalf("still visible: %+v", seen)
	}
}

func typing(t *testing.T, s *stage) {
	typist, ok := s.adapter.(platforms.Typist)
	if !ok {
		t.Skip("the platform shows no typing")
	}
	if typist.TypingEvery() <= 0 {
		t.Fatalf("TypingEvery is %s", typist.TypingEvery())
	}
	watcher, watched := s.world.(TypingWatcher)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, p := range s.world.Places() {
		if err := typist.Typing(ctx, p.Address); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if watched {
			s.until("typing is seen in "+p.Name, func() bool { return watcher.TypingSeen(p) })
		}
	}
}

func reacting(t *testing.T, s *stage) {
	p := s.first()
	receipt := s.mustSend(p, s.word())
	if reactor, ok := s.adapter.(platforms.Reactor); ok {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, emoji := range []string{"👀", "👍", ""} {
			if err := reactor.React(ctx, p.Address, receipt.Message, emoji); err != nil {
				t.Fatalf("react %q: %v", emoji, err)
			}
			if got := s.world.Visible(p)[0].Emoji; got != emoji {
				t.Fatalf("emoji is %q, want %q", got, emoji)
			}
		}
	}
	people, ok := s.world.(ReactionSender)
	if !ok {
		t.Skip("people can't react here")
	}
	people.React(p, receipt.Message, "👍")
	e := s.events(1)[0]
	if e.Reaction == nil || e.Reaction.Emoji != "👍" || e.Reaction.MessageID != receipt.Message || e.Reaction.Removed || !e.Reaction.OnOwn {
		t.Fatalf("event %s %+v, want a reaction on our message", e.Kind(), e.Reaction)
	}
	if e.Address.Chat != p.Address.Chat || e.Sender.ID == "" {
		t.Fatalf("the reaction is from %+v at %+v", e.Sender, e.Address)
	}
}

// P5 for buttons: a press comes from the place of its message.
func buttons(t *testing.T, s *stage) {
	presser, ok := s.world.(Presser)
	if !ok || !s.adapter.Traits().Buttons {
		t.Skip("the platform has no buttons")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, p := range s.world.Places() {
		rows := [][]platforms.Button{{{Label: "Yes", Data: "y:1", Style: "primary"}, {Label: "No", Data: "n:1", Style: "danger"}}}
		receipt, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(s.word()), Buttons: rows})
		if err != nil {
			t.Fatal(err)
		}
		presser.Press(p, receipt.Message, "No")
		e := s.events(i + 1)[i]
		if e.Click == nil || e.Click.Data != "n:1" || e.Click.MessageID != receipt.Message || e.Address != p.Address || e.Sender.ID == "" || e.ChatType != p.Type {
			t.Fatalf("event %s %+v at %+v by %+v, want a press of No in %s", e.Kind(), e.Click, e.Address, e.Sender, p.Name)
		}
		if clicker, ok := s.adapter.(platforms.Clicker); ok {
			if err := clicker.AnswerClick(ctx, e.Address, *e.Click, "Thanks"); err != nil {
				t.Fatal(err)
			}
			if text, ok := presser.Answered(); !ok || text != "Thanks" {
				t.Fatalf("the presser was told %q, %v", text, ok)
			}
		}
		if !s.adapter.Traits().Edit {
			continue
		}
		if _, err := s.send(patience, platforms.Outgoing{Address: p.Address, Edit: receipt.Message, Text: say(s.word())}); err != nil {
			t.Fatal(err)
		}
		if seen := s.world.Visible(p); len(seen[len(seen)-1].Buttons) != 0 {
			t.Fatalf("an edit without rows left the buttons %v", seen[len(seen)-1].Buttons)
		}
	}
}

func rewriting(t *testing.T, s *stage) {
	people, ok := s.world.(Rewriter)
	if !ok {
		t.Skip("people can't edit here")
	}
	p := s.first()
	id := s.world.Say(p, s.word())
	s.events(1)
	word := s.word()
	people.Rewrite(p, id, word)
	e := s.events(2)[1]
	if e.Edited == nil || e.Edited.MessageID != id || e.Edited.Text != word || e.Address != p.Address {
		t.Fatalf("event %s %+v, want an edit of %s to %q", e.Kind(), e.Edited, id, word)
	}
}

// limits: the longest text goes out in one message, one unit more is refused for certain.
func limits(t *testing.T, s *stage) {
	traits := s.adapter.Traits().Text
	if traits.Limit == 0 {
		t.Skip("the platform has no limit")
	}
	p := s.first()
	unit := map[platforms.Unit]int{platforms.CodePoints: 1, platforms.UTF16: 2, platforms.Bytes: 4}[traits.Unit]
	full := strings.Repeat("😀", traits.Limit/unit) + strings.Repeat("a", traits.Limit%unit)
	if _, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(full)}); err != nil {
		t.Fatalf("a text of exactly %d units was refused: %v", traits.Limit, err)
	}
	if seen := s.world.Visible(p); len(seen) != 1 || seen[0].Text != full {
		t.Fatalf("%d messages are visible, want the one as it was", len(seen))
	}
	_, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(full + "b")})
	if e := platforms.AsSendError(err); e == nil || e.Kind != platforms.TooLong || e.Certainty != platforms.NotSent {
		t.Fatalf("one unit over the limit: %v, want too_long, not sent", err)
	}
}

// P12: connected but deaf is not ready.
func deafness(t *testing.T, s *stage) {
	if !s.world.Deafen() {
		t.Skip("there is no inbound path that could be deaf")
	}
	s.until("health notices that nothing comes in", func() bool { return !s.adapter.Health().Inbound })
	h := s.adapter.Health()
	if h.State == "" || h.State == "connected" || h.Detail == "" || h.Since.IsZero() {
		t.Errorf("deaf health is %+v, want a state, a reason and a time", h)
	}
	word := s.word()
	s.world.Say(s.first(), word)
	s.world.Hear()
	s.until("health is fine again", func() bool { return s.adapter.Health().Inbound })
	if e := s.events(1)[0]; e.Message == nil || e.Message.Text != word {
		t.Fatalf("after the outage came %+v, want %q", e, word)
	}
	if h := s.adapter.Health(); h.State != "connected" || h.Detail != "" || h.LastEvent.IsZero() {
		t.Errorf("health is %+v, want connected and no detail", h)
	}
}

// reconnecting: after 20 cuts there is one connection, and no goroutine more.
func reconnecting(t *testing.T, s *stage) {
	s.world.Say(s.first(), s.word())
	s.events(1)
	before := runtime.NumGoroutine()
	for i := range 20 {
		if !s.world.Drop() {
			t.Skip("there are no connections to cut")
		}
		word := s.word()
		s.world.Say(s.first(), word)
		if e := s.events(i + 2)[i+1]; e.Message == nil || e.Message.Text != word {
			t.Fatalf("after cut %d came %+v, want %q", i, e, word)
		}
	}
	s.until("at most one inbound connection lives", func() bool { return s.world.Receivers() <= 1 })
	if !eventually(func() bool { return runtime.NumGoroutine() <= before+4 }) {
		t.Fatalf("%d goroutines after 20 reconnects, %d before", runtime.NumGoroutine(), before)
	}
}

// stopping: Run ends soon, also while the core hangs or the service is away.
func stopping(t *testing.T, s *stage) {
	const soon = 2 * time.Second
	stop := func(when string) {
		begun := time.Now()
		s.stop()
		if took := time.Since(begun); took > soon {
			t.Errorf("%s: Run took %s to return, want at most %s", when, took, soon)
		}
	}
	stop("idle")
	if h := s.adapter.Health(); h.Inbound || h.State != "stopped" {
		t.Errorf("health after Run is %+v, want stopped", h)
	}
	s.start()
	release := s.sink.Block()
	s.world.Say(s.first(), s.word())
	s.until("the event is offered", func() bool { return len(s.sink.Offered()) > 0 })
	stop("while the core hangs")
	release()
	if n := s.world.Unacknowledged(); n == 0 {
		t.Error("the event of a hanging core was acknowledged")
	}
	s.start()
	s.events(1)
	if s.world.Break(Unreachable) {
		stop("while the service is away")
		s.world.Heal()
		s.start()
	}
	if s.world.Deafen() {
		s.until("the silence is noticed", func() bool { return !s.adapter.Health().Inbound })
		stop("while nothing comes in")
		s.world.Hear()
	}
}

// secrets: whatever goes wrong, no text holds one (the cleanup of every check looks at its errors).
func secrets(t *testing.T, s *stage) {
	if _, ok := s.adapter.(platforms.Secretive); !ok {
		t.Skip("the adapter has no secrets")
	}
	p := s.first()
	wrong := p.Address
	wrong.Chat = "999999999"
	for _, trouble := range troubles {
		if s.world.Break(trouble) {
			_, _ = s.send(300*time.Millisecond, platforms.Outgoing{Address: p.Address, Text: say(s.word())})
			s.noSecrets()
			s.world.Heal()
		}
	}
	_, err := s.send(patience, platforms.Outgoing{Address: wrong, Text: say(s.word())})
	if err == nil {
		t.Fatal("a send to nowhere succeeded")
	}
	if len(s.errs) == 0 {
		t.Fatal("no error to look at")
	}
}
