package platformtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"herald/platforms"
)

// P4: at most one visible copy, and no more certainty than there is.
func outcomes(t *testing.T, s *stage) {
	for _, trouble := range troubles {
		t.Run(string(trouble), func(t *testing.T) {
			defer s.in(t)()
			p, word := s.first(), s.word()
			if !s.world.Break(trouble) {
				s.lacks(string(trouble))
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
		s.lacks(string(RateRefused))
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
		s.lacks("editing")
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
		s.lacks("deleting")
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
		s.lacks("typing")
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
	ours, before := receipt.Message, 0
	target, shown := ours, func() string { return s.world.Visible(p)[0].Emoji }
	if ours == "" { // the adapter is told no ids of our own messages, so only those of people can be reacted to
		watcher, ok := s.world.(ReactionWatcher)
		if !ok {
			t.Fatal("the receipt has no id, and the World has no ReactionWatcher")
		}
		ours, before = s.world.Visible(p)[0].ID, 1
		target = s.world.Say(p, s.word())
		s.events(1)
		shown = func() string { return watcher.EmojiOn(p, target) }
	}
	if reactor, ok := s.adapter.(platforms.Reactor); ok {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, emoji := range []string{"👀", "👍", ""} {
			if err := reactor.React(ctx, p.Address, target, emoji); err != nil {
				t.Fatalf("react %q: %v", emoji, err)
			}
			if got := shown(); got != emoji {
				t.Fatalf("emoji is %q, want %q", got, emoji)
			}
		}
	}
	people, ok := s.world.(ReactionSender)
	if !ok {
		s.lacks("reactions of people")
	}
	people.React(p, ours, "👍")
	e := s.events(before + 1)[before]
	if e.Reaction == nil || e.Reaction.Emoji != "👍" || e.Reaction.MessageID != ours || e.Reaction.Removed || !e.Reaction.OnOwn {
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
		s.lacks("buttons")
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
		if e.Click == nil || e.Click.Data != "n:1" || e.Click.MessageID != receipt.Message || e.Address != p.Address || e.Sender.ID == "" ||
			e.ChatType != p.Type {
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

// limits: the longest text goes out in one message, one unit more is refused for certain.
func limits(t *testing.T, s *stage) {
	traits := s.adapter.Traits().Text
	if traits.Limit == 0 {
		s.lacks("a text limit")
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

// secrets: whatever goes wrong, no text holds one (the cleanup of every check looks at its errors).
func secrets(t *testing.T, s *stage) {
	if _, ok := s.adapter.(platforms.Secretive); !ok {
		s.lacks("secrets")
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
