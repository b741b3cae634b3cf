package platformtest

import (
	"testing"
	"time"

	"herald/platforms"
)

// P4 for edits: after any trouble the message shows the old text or the new one, and there is one message.
func editOutcomes(t *testing.T, s *stage) {
	if !s.adapter.Traits().Edit {
		s.lacks("editing")
	}
	p := s.first()
	old := s.word()
	receipt := s.mustSend(p, old)
	for _, trouble := range troubles {
		t.Run(string(trouble), func(t *testing.T) {
			defer s.in(t)()
			if !s.world.Break(trouble) {
				s.lacks(string(trouble))
			}
			limit := patience
			if trouble == SilentBefore || trouble == SilentAfter {
				limit = 300 * time.Millisecond
			}
			word := s.word()
			edit := platforms.Outgoing{Address: p.Address, Edit: receipt.Message, Text: say(word)}
			_, err := s.send(limit, edit)
			s.world.Heal()
			now := s.world.Visible(p)
			if len(now) != 1 {
				t.Fatalf("%d messages are visible, want the one", len(now))
			}
			switch e := platforms.AsSendError(err); {
			case err == nil && now[0].Text != word:
				t.Fatalf("success, and %q is visible, want %q", now[0].Text, word)
			case err != nil && e.Certainty == platforms.NotSent && now[0].Text != old:
				t.Fatalf("%v, and %q is visible, want the old %q", err, now[0].Text, old)
			case err != nil && now[0].Text != old && now[0].Text != word:
				t.Fatalf("%v, and %q is visible", err, now[0].Text)
			}
			// An edit may always be repeated.
			s.until("the edit works after the trouble", func() bool { _, err := s.send(patience, edit); return err == nil })
			if now := s.world.Visible(p); len(now) != 1 || now[0].Text != word {
				t.Fatalf("visible is %+v, want one message %q", now, word)
			}
			old = word
		})
	}
}

// P2: what a platform delivers twice at the same moment is kept once.
func doubled(t *testing.T, s *stage) {
	people, ok := s.world.(Doubler)
	if !ok {
		s.lacks("doubling")
	}
	for i := range 10 {
		word := s.word()
		id := people.SayTwice(s.first(), word)
		if e := s.events(i + 1)[i]; e.Message == nil || e.Message.ID != id || e.Message.Text != word {
			t.Fatalf("event %s %+v, want %q", e.Kind(), e.Message, word)
		}
	}
	last := s.word()
	s.world.Say(s.first(), last) // whatever was on its way is there when this is
	if e := s.events(11)[10]; e.Message.Text != last {
		t.Fatalf("the last event is %+v", e.Message)
	}
}

// shuffled: none of several messages is lost when they come in another order.
func shuffled(t *testing.T, s *stage) {
	people, ok := s.world.(Shuffler)
	if !ok {
		s.lacks("shuffling")
	}
	want := map[string]bool{}
	var texts []string
	for range 10 {
		word := s.word()
		want[word], texts = true, append(texts, word)
	}
	people.SayShuffled(s.first(), texts...)
	for _, e := range s.events(len(texts)) {
		if e.Message == nil || !want[e.Message.Text] {
			t.Fatalf("event %s %+v", e.Kind(), e.Message)
		}
		delete(want, e.Message.Text)
	}
}

// storm: a service that answers everything with an error for a while is asked with patience, and heard again after.
func storm(t *testing.T, s *stage) {
	world, ok := s.world.(Stormer)
	if !ok {
		s.lacks("storms")
	}
	world.Storm()
	s.world.Drop()
	s.until("health notices", func() bool { return !s.adapter.Health().Inbound })
	before, began := world.Calls(), time.Now()
	p, word := s.first(), s.word()
	_, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(word)})
	if e := platforms.AsSendError(err); e == nil || e.Kind != platforms.Transient || s.copies(p, word) != 0 {
		t.Fatalf("a send in the storm: %v and %d copies, want transient and none", err, s.copies(p, word))
	}
	// A rate needs a while to be one: the first attempts may follow each other at once.
	s.until("some attempts are made", func() bool {
		return world.Calls() >= before+3 && time.Since(began) > 300*time.Millisecond
	})
	if rate := float64(world.Calls()-before) / time.Since(began).Seconds(); rate > 500 {
		t.Errorf("%.0f calls a second during the storm: there is no backoff", rate)
	}
	s.world.Heal()
	s.until("health is fine again", func() bool { return s.adapter.Health().Inbound })
	s.world.Say(p, word)
	if e := s.events(1)[0]; e.Message == nil || e.Message.Text != word {
		t.Fatalf("after the storm came %+v, want %q", e, word)
	}
	s.until("sends work again", func() bool {
		_, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(s.word())})
		return err == nil
	})
}

// revoked: the account is paused, says which setting to look at, and does not ask on and on.
func revoked(t *testing.T, s *stage) {
	world, ok := s.world.(Revoker)
	if !ok {
		s.lacks("revocation")
	}
	world.Revoke()
	s.world.Drop()
	var err error
	for range 5 { // the first may take a connection that has just died
		_, err = s.send(patience, platforms.Outgoing{Address: s.first().Address, Text: say(s.word())})
		if err == nil || platforms.AsSendError(err).Certainty == platforms.NotSent {
			break
		}
	}
	if e := platforms.AsSendError(err); e == nil || e.Kind != platforms.AuthFailed || e.Certainty != platforms.NotSent {
		t.Errorf("a send with revoked credentials: %v, want auth_failed, not sent", err)
	}
	s.until("health says so", func() bool { h := s.adapter.Health(); return !h.Inbound && h.Detail != "" })
	s.noSecrets()
	if h := s.adapter.Health(); h.State == "connected" {
		t.Errorf("health is %+v", h)
	}
	s.gaveUp = true // Run may have returned its StartError
}
