package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/sessions"
)

// BenchmarkUpdate is one small write a call, from 50 callers at once.
func BenchmarkUpdate(b *testing.B) {
	s := openStore(b)
	ctx := context.Background()
	b.SetParallelism(25)
	var n atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		name := fmt.Sprint(n.Add(1))
		for pb.Next() { // the time changes: SQLite writes nothing where nothing changes
			err := s.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error { return tx.SetValue("bench", name, []byte(`{"a":1}`), time.Now()) })
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	report(b, s)
}

// BenchmarkUpdateAlone is the latency of a durable write without company.
func BenchmarkUpdateAlone(b *testing.B) {
	s := openStore(b)
	ctx := context.Background()
	for b.Loop() {
		err := s.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error { return tx.SetValue("bench", "x", []byte(`{"a":1}`), time.Now()) })
		if err != nil {
			b.Fatal(err)
		}
	}
	report(b, s)
}

func report(b *testing.B, s *Store) {
	m := s.Metrics()
	b.ReportMetric(float64(m.Updates)/float64(m.Commits), "updates/commit")
	b.ReportMetric(float64(m.Latency.Microseconds())/float64(m.Updates), "µs/update")
}

// BenchmarkOpenWarm opens and closes a store of 2,000 rows.
func BenchmarkOpenWarm(b *testing.B) {
	path := filepath.Join(b.TempDir(), "herald.db")
	s, err := Open(context.Background(), Options{Path: path})
	require.NoError(b, err)
	require.NoError(b, s.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
		se, err := tx.OpenSession(keyOf("u"), origin("u"), clock)
		for range 2000 {
			if err == nil {
				err = tx.Append(&sessions.Message{Session: se.ID, Role: sessions.User, Content: "some words to keep"})
			}
		}
		return err
	}))
	require.NoError(b, s.catchUp(context.Background()))
	require.NoError(b, s.Close())
	var opening time.Duration
	for b.Loop() {
		start := time.Now()
		s, err := Open(context.Background(), Options{Path: path})
		opening += time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(opening.Microseconds())/float64(b.N), "µs/open")
}

// BenchmarkTurn is the durable life of one turn, from 50 chats at once: accept, begin, finish, send,
// receipt.
func BenchmarkTurn(b *testing.B) {
	s := openStore(b)
	b.SetParallelism(25)
	var chats, events atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		user := fmt.Sprint("user", chats.Add(1))
		for pb.Next() {
			if err := oneTurn(s, user, fmt.Sprint(events.Add(1))); err != nil {
				b.Fatal(err)
			}
		}
	})
	report(b, s)
}

// oneTurn runs the five commits of a turn without tools.
func oneTurn(s *Store, user, eventID string) error {
	ctx := context.Background()
	key := keyOf(user)
	e := event(eventID, user, "how is the weather in Berlin today?")
	var inbox sessions.InboxID
	err := s.Update(ctx, sessions.EdgeAccept, func(tx sessions.Tx) (err error) {
		inbox, _, err = tx.PutInbox(sessions.InboxItem{Key: key, Event: e})
		return err
	})
	if err != nil {
		return err
	}
	turn := &sessions.Turn{Key: key, Address: e.Address, ReplyTo: e.Message.ID}
	err = s.Update(ctx, sessions.EdgeTurnBegin, func(tx sessions.Tx) error {
		se, err := tx.OpenSession(key, origin(user), time.Now())
		if err != nil {
			return err
		}
		turn.Session = se.ID
		if err := tx.BeginTurn(turn); err != nil {
			return err
		}
		if err := tx.SetInbox(sessions.InboxClaimed, turn.ID, "", inbox); err != nil {
			return err
		}
		return tx.Append(&sessions.Message{Session: se.ID, Turn: turn.ID, Role: sessions.User, Content: e.Message.Text})
	})
	if err != nil {
		return err
	}
	out := &sessions.OutboxRow{Kind: sessions.OutFinal, Turn: turn.ID, Session: turn.Session,
		Message: platforms.Outgoing{Address: e.Address, Text: platforms.Text{Body: "It is sunny, with 12 degrees."}}}
	err = s.Update(ctx, sessions.EdgeTurnFinish, func(tx sessions.Tx) error {
		if err := tx.Append(&sessions.Message{Session: turn.Session, Turn: turn.ID, Role: sessions.Assistant, Content: "It is sunny, with 12 degrees."}); err != nil {
			return err
		}
		if err := tx.PutOutbox(out); err != nil {
			return err
		}
		if err := tx.AddUsage(turn.Session, sessions.Usage{Calls: 1, Input: 1000, Output: 20}); err != nil {
			return err
		}
		if err := tx.SetTurn(turn.ID, sessions.TurnDone, "", time.Now()); err != nil {
			return err
		}
		return tx.SetInbox(sessions.InboxDone, turn.ID, "", inbox)
	})
	if err != nil {
		return err
	}
	out.State = sessions.OutAttempting
	if err := s.Update(ctx, sessions.EdgeSend, func(tx sessions.Tx) error { return tx.SetOutbox(*out) }); err != nil {
		return err
	}
	out.State = sessions.OutSent
	return s.Update(ctx, sessions.EdgeReceipt, func(tx sessions.Tx) error { return tx.SetOutbox(*out) })
}

// BenchmarkSearch searches 20,000 rows by words and by pieces.
func BenchmarkSearch(b *testing.B) {
	s := openStore(b)
	se := openSession(b, s, "u")
	update(b, s, func(tx sessions.Tx) error {
		for i := range 20000 {
			m := &sessions.Message{Session: se.ID, Role: sessions.User, Content: fmt.Sprintf("note %d about milk, bread and 牛奶面包 number %d", i, i*7)}
			if err := tx.Append(m); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(b, s.catchUp(b.Context()))
	for _, text := range []string{"milk 1400", "牛奶面", "面包"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				err := s.View(context.Background(), func(v sessions.View) error {
					hits, err := v.Search(sessions.SearchQuery{Text: text, Scope: sessions.Scope{All: true}})
					if err == nil && len(hits) == 0 {
						err = fmt.Errorf("no hit")
					}
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
