package platformtest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"herald/platforms"
)

// P5: progress, its edits, buttons, files and late sends land where their address says and nowhere else, also from
// an adapter that has seen no event yet (a brief, a restart notice, a background result).
func staysInPlace(t *testing.T, s *stage) {
	places := s.world.Places()
	for _, p := range places { // what an adapter must have seen of a place, it has seen before the restart
		s.world.Say(p, s.word())
	}
	s.events(len(places))
	s.stop()
	s.start()
	file := filepath.Join(t.TempDir(), "brief.txt")
	if err := os.WriteFile(file, []byte("numbers"), 0o600); err != nil {
		t.Fatal(err)
	}
	row := [][]platforms.Button{{{Label: "Yes", Data: "y:1"}, {Label: "No", Data: "n:1"}}}
	for _, p := range places {
		for _, kind := range []struct {
			name string
			out  platforms.Outgoing
		}{
			{"late answer", platforms.Outgoing{}},
			{"progress", platforms.Outgoing{Progress: true, Interim: true}},
			{"silent notice", platforms.Outgoing{Silent: true}},
			{"buttons", platforms.Outgoing{Buttons: row}},
			{"file", platforms.Outgoing{Attachments: []platforms.Attachment{{Kind: platforms.Document, Name: "brief.txt", MIME: "text/plain", Path: file}}}},
		} {
			t.Run(p.Name+"/"+kind.name, func(t *testing.T) {
				defer s.in(t)()
				out, word := kind.out, s.word()
				out.Address, out.Text = p.Address, say(word)
				receipt, err := s.send(patience, out)
				if err != nil {
					t.Fatal(err)
				}
				s.onlyIn(p, word)
				if !s.adapter.Traits().Edit || receipt.Message == "" {
					return
				}
				word = s.word()
				if _, err := s.send(patience, platforms.Outgoing{Address: p.Address, Edit: receipt.Message, Text: say(word)}); err != nil {
					t.Fatalf("edit: %v", err)
				}
				s.onlyIn(p, word)
			})
		}
	}
}

// onlyIn requires one visible copy of text at p and none elsewhere.
func (s *stage) onlyIn(p Place, text string) {
	s.t.Helper()
	for _, q := range s.world.Places() {
		want := 0
		if q == p {
			want = 1
		}
		if got := s.copies(q, text); got != want {
			s.t.Fatalf("%d copies in %s, want %d", got, q.Name, want)
		}
	}
}

// quoting: an answer of a person that names a message says which, and whether it is ours; ours names theirs.
func quoting(t *testing.T, s *stage) {
	people, ok := s.world.(Quoter)
	if !ok {
		s.lacks("quotes")
	}
	p := s.first()
	ours := s.mustSend(p, s.word())
	theirs := s.world.Say(p, s.word())
	s.events(1)
	id := ours.Message
	if id == "" { // the adapter is told no ids, but people name ours
		id = s.world.Visible(p)[0].ID
	}
	people.SayReply(p, id, s.word())
	e := s.events(2)[1]
	if q := e.Message.ReplyTo; q == nil || q.ID != id || !q.Own {
		t.Fatalf("the quote is %+v, want our message %s", q, id)
	}
	word := s.word()
	if _, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(word), ReplyTo: theirs}); err != nil {
		t.Fatal(err)
	}
	seen := s.world.Visible(p)
	if last := seen[len(seen)-1]; last.ReplyTo != theirs {
		t.Fatalf("the answer quotes %q, want %q", last.ReplyTo, theirs)
	}
	// A message that can't be quoted any more must not keep the answer back.
	word = s.word()
	if _, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(word), ReplyTo: theirs + "9"}); err != nil {
		t.Fatalf("an answer to a message that is gone: %v", err)
	}
	s.onlyIn(p, word)
}

// commanding: P5 and privacy for native commands, in every place that has them.
func commanding(t *testing.T, s *stage) {
	people, ok := s.world.(Commander)
	if !ok {
		s.lacks("native commands")
	}
	if lister, ok := s.adapter.(platforms.CommandLister); ok {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := lister.SetCommands(ctx, []platforms.CommandInfo{{Name: "status", Description: "What goes on", Args: "[all]"}}); err != nil {
			t.Fatal(err)
		}
	}
	p := s.first()
	people.Command(p, "status", "all of it")
	e := s.events(1)[0]
	if e.Command == nil || e.Command.Name != "status" || e.Command.Args != "all of it" || e.Sender.ID == "" || !e.Addressed ||
		e.Address.Chat != p.Address.Chat {
		t.Fatalf("event %s %+v at %+v by %+v, want the command", e.Kind(), e.Command, e.Address, e.Sender)
	}
	if e.Command.Reply == "" {
		s.lacks("private answers")
	}
	var words []string
	for range 3 {
		word := s.word()
		words = append(words, word)
		if _, err := s.send(patience, platforms.Outgoing{Address: e.Address, Text: say(word), Private: e.Command.Reply}); err != nil {
			t.Fatal(err)
		}
		if n := s.copies(p, word); n != 0 {
			t.Fatalf("%d copies for everybody, want none", n)
		}
	}
	if got := people.Told(p); !slices.Equal(got, words) {
		t.Fatalf("the invoker was told %q, want %q", got, words)
	}
}
