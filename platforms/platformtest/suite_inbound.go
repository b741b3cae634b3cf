package platformtest

import (
	"runtime"
	"testing"
	"time"

	"herald/platforms"
)

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
		t.Fatal("the service got word of an event that is not committed")
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
			s.lacks("redelivery")
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
			if d, ok := s.adapter.(platforms.Describer); !ok {
				t.Fatal("the adapter can't describe a place")
			} else if room, err := d.Describe(t.Context(), p.Address); err != nil || room.Address != e.Address || room.Type != e.ChatType ||
				room.Scope != e.Scope ||
				room.User != "" && room.User != e.Sender.ID {
				t.Fatalf("the place is described as %+v (%v), the event says %+v, type %q, scope %q by %q", room, err, e.Address, e.ChatType, e.Scope, e.Sender.ID)
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

func rewriting(t *testing.T, s *stage) {
	people, ok := s.world.(Rewriter)
	if !ok {
		s.lacks("rewriting")
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

// P12: connected but deaf is not ready.
func deafness(t *testing.T, s *stage) {
	if !s.world.Deafen() {
		s.lacks("deafness")
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
			s.lacks("connections")
		}
		word := s.word()
		s.world.Say(s.first(), word)
		if e := s.events(i + 2)[i+1]; e.Message == nil || e.Message.Text != word {
			t.Fatalf("after cut %d came %+v, want %q", i, e, word)
		}
	}
	s.until("at most one inbound connection lives", func() bool { return s.world.Receivers() <= 1 })
	if counter, ok := s.world.(Counter); ok && counter.MostReceivers() > 1 {
		t.Errorf("%d inbound connections lived at the same time, want never more than one", counter.MostReceivers())
	}
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
