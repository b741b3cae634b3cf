package platformtest

import (
	"slices"
	"testing"

	"herald/platforms"
)

// ownThread: Outgoing.Thread opens a thread in which what follows lands and whose replies carry its address, also after a
// restart, or none is reported and the message stands where it was sent.
func ownThread(t *testing.T, s *stage) {
	people, threads := s.world.(Threader)
	var roots []Place
	if threads {
		roots = people.Roots()
	}
	named := func(p Place) (string, platforms.Receipt) {
		s.t.Helper()
		word := s.word()
		receipt, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(word), Thread: "Morning brief"})
		if err != nil {
			s.t.Fatal(err)
		}
		return word, receipt
	}
	for _, p := range s.world.Places() {
		if slices.ContainsFunc(roots, func(r Place) bool { return r.Address == p.Address }) {
			continue
		}
		word, receipt := named(p)
		if receipt.Thread != "" {
			t.Fatalf("%s: the receipt says thread %q, want none", p.Name, receipt.Thread)
		}
		s.onlyIn(p, word)
	}
	if !threads {
		s.lacks("threads of messages")
	}
	heard := 0
	for _, p := range roots {
		t.Run(p.Name, func(t *testing.T) {
			defer s.in(t)()
			word, receipt := named(p)
			if receipt.Thread == "" {
				t.Fatal("the receipt names no thread")
			}
			in := Place{Name: p.Name + ", its thread", Type: p.Type, Address: p.Address}
			in.Address.Thread = receipt.Thread
			if s.copies(p, word)+s.copies(in, word) == 0 {
				t.Fatal("the message is not visible")
			}
			answered := func() {
				t.Helper()
				reply := s.word()
				s.world.Say(in, reply)
				heard++
				e := s.events(heard)[heard-1]
				if e.Address != in.Address || e.ChatType != in.Type || !e.Addressed || e.Message == nil || e.Message.Text != reply ||
					e.Message.Earlier {
					t.Fatalf("the reply says %+v, type %q, addressed %v, %+v; want %+v, type %q, addressed, nothing missed", e.Address, e.ChatType, e.Addressed, e.Message, in.Address, in.Type)
				}
			}
			answered() // before anything else is sent there
			for _, restart := range []bool{false, true} {
				if restart {
					s.stop()
					s.start()
				}
				if room, err := s.adapter.(platforms.Describer).Describe(t.Context(), in.Address); err != nil || room.Address != in.Address ||
					room.Type != in.Type {
					t.Fatalf("the thread is described as %+v (%v), want %+v, type %q", room, err, in.Address, in.Type)
				}
				more := s.word()
				s.mustSend(in, more)
				if n := s.copies(in, more); n != 1 {
					t.Fatalf("%d copies of what follows in the thread, want one", n)
				}
				for _, q := range s.world.Places() {
					if n := s.copies(q, more); n != 0 {
						t.Fatalf("%d copies of what follows in %s, want none", n, q.Name)
					}
				}
				answered()
			}
		})
	}
}
