package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/gateway/delivery"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

// threaded is a service that opens a thread named after the message's id.
type threaded struct {
	*service
	late bool // the thread is opened although the message is refused
}

func (s threaded) Send(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	receipt, err := s.service.Send(ctx, out)
	switch {
	case out.Thread == "" || out.Address.Thread != "":
	case err == nil:
		receipt.Thread = platforms.ThreadID("t" + receipt.Message)
	case s.late:
		receipt.Thread = "topic"
	}
	return receipt, err
}

func (s threaded) Find(ctx context.Context, out platforms.Outgoing) (platforms.MessageID, bool, error) {
	return finder{s.service}.Find(ctx, out)
}

func (s threaded) OpenThread(_ context.Context, _ platforms.Outgoing, id platforms.MessageID) platforms.ThreadID {
	return platforms.ThreadID("t" + id)
}

// noFind hides that a service can look a nonce up.
type noFind struct{ platforms.Adapter }

func brief(s string) *sessions.OutboxRow {
	return &sessions.OutboxRow{Kind: sessions.OutBrief, Message: platforms.Outgoing{Address: place, Text: text(s), Thread: "morning"}}
}

// briefs is a worker whose Settled writes each call down and answers as told.
type briefs struct {
	*bench
	calls  []string
	follow func(sessions.Tx, sessions.OutboxRow) ([]*sessions.OutboxRow, error)
}

func (b *briefs) settled(tx sessions.Tx, row sessions.OutboxRow, thread platforms.ThreadID) ([]*sessions.OutboxRow, error) {
	b.calls = append(b.calls, fmt.Sprintf("%s %s %s %s", row.Message.Text.Plain, row.State, row.Sent, thread))
	if err := tx.SetValue("seeded", delivery.BriefName(row.ID), []byte("1"), row.Created); err != nil {
		return nil, err
	}
	if b.follow == nil {
		return nil, nil
	}
	return b.follow(tx, row)
}

func withBriefs(t *testing.T, adapter platforms.Adapter, before func(*sqlite.Store), fn func(*testing.T, *briefs)) {
	path := filepath.Join(t.TempDir(), "herald.db")
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		require.NoError(t, err)
		if before != nil {
			before(store)
		}
		b := &briefs{bench: &bench{t: t, path: path, store: store}}
		b.w = delivery.New(delivery.Options{Store: store, Adapters: lookup{adapter}, Printer: english, Log: zerolog.Nop(), Settled: b.settled})
		require.NoError(t, b.w.Recover(t.Context()))
		defer b.close()
		fn(t, b)
	})
}

func (b *briefs) seeded() int {
	var list []sessions.Value
	require.NoError(b.t, b.store.View(b.t.Context(), func(v sessions.View) (err error) {
		list, err = v.Values("seeded")
		return err
	}))
	return len(list)
}

// What follows from a brief is committed with its receipt and queued, in the thread that was opened for it.
func TestSettled_FollowsAConfirmedSend(t *testing.T) {
	s := &service{}
	withBriefs(t, threaded{service: s}, nil, func(t *testing.T, b *briefs) {
		b.follow = func(tx sessions.Tx, row sessions.OutboxRow) ([]*sessions.OutboxRow, error) {
			more := final("the rest")
			return []*sessions.OutboxRow{more}, tx.PutOutbox(more)
		}
		b.post(brief("one"), final("an answer"))
		synctest.Wait()
		require.Equal(t, []string{"one sent 1 t1"}, b.calls, "once, for briefs only")
		require.ElementsMatch(t, []string{"one", "an answer", "the rest"}, s.texts())
	})
}

// P4: what follows may fail, the receipt stands and the message is sent once.
func TestSettled_ItsErrorKeepsTheReceipt(t *testing.T) {
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New("no mirror") },
		"a panic":  func() error { panic("no mirror") },
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{}
			withBriefs(t, threaded{service: s}, nil, func(t *testing.T, b *briefs) {
				b.follow = func(sessions.Tx, sessions.OutboxRow) ([]*sessions.OutboxRow, error) { return nil, fail() }
				row := brief("one")
				b.post(row)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, sessions.OutSent, b.row(row.ID).State)
				require.Len(t, s.made(), 1)
				require.Len(t, b.calls, 1)
				require.Zero(t, b.seeded(), "what it wrote is undone")
			})
		})
	}
}

// A full disk is no error of the hook: the receipt is written with what follows once there is room.
func TestSettled_IsTriedAgainWithTheStore(t *testing.T) {
	s := &service{}
	withBriefs(t, threaded{service: s}, nil, func(t *testing.T, b *briefs) {
		full := 2
		b.follow = func(sessions.Tx, sessions.OutboxRow) ([]*sessions.OutboxRow, error) {
			if full--; full >= 0 {
				return nil, sessions.ErrFull
			}
			return nil, nil
		}
		row := brief("one")
		b.post(row)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, sessions.OutSent, b.row(row.ID).State)
		require.Len(t, s.made(), 1)
		require.Equal(t, 1, b.seeded())
	})
}

// A process that was killed between the send and its receipt: in doubt the hook hears so, found it hears the send.
func TestSettled_AfterACrashBetweenSendAndReceipt(t *testing.T) {
	crash := func(s *service, arrived bool) func(*sqlite.Store) {
		return func(store *sqlite.Store) {
			row := brief("cut off")
			row.State, row.Attempts, row.Message.Nonce = sessions.OutAttempting, 1, "n1"
			require.NoError(t, store.Update(context.Background(), sessions.EdgeSend, func(tx sessions.Tx) error { return tx.PutOutbox(row) }))
			if arrived {
				s.take(row.Message)
			}
		}
	}
	t.Run("in doubt", func(t *testing.T) {
		s := &service{}
		withBriefs(t, noFind{threaded{service: s}}, crash(s, true), func(t *testing.T, b *briefs) {
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, []string{"cut off unknown  "}, b.calls)
			require.Len(t, s.texts(), 2, "the brief and one notice")
		})
	})
	t.Run("found", func(t *testing.T) {
		s := &service{}
		withBriefs(t, threaded{service: s}, crash(s, true), func(t *testing.T, b *briefs) {
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, []string{"cut off sent 1 t1"}, b.calls)
			require.Equal(t, []string{"cut off"}, s.texts())
		})
	})
}

// A refusal for good, and a chat that is dead already.
func TestSettled_HearsOfFailures(t *testing.T) {
	s := &service{script: []error{refusal(platforms.Forbidden, platforms.NotSent, 0)}}
	withBriefs(t, threaded{service: s}, nil, func(t *testing.T, b *briefs) {
		b.post(brief("refused"), brief("dead"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"refused failed  ", "dead failed  "}, b.calls)
		require.Empty(t, s.texts())
	})
}

// A thread that was opened before a send that failed is not opened again.
func TestWorker_KeepsAThreadThatIsOpen(t *testing.T) {
	s := &service{script: []error{refusal(platforms.Transient, platforms.NotSent, 0)}}
	withBriefs(t, threaded{service: s, late: true}, nil, func(t *testing.T, b *briefs) {
		b.post(brief("one"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, s.made(), 2)
		require.Equal(t, platforms.ThreadID("topic"), s.made()[1].out.Address.Thread)
		require.Equal(t, []string{"one sent 1 topic"}, b.calls)
	})
}

// A brief in doubt that a person asks for again brings with it what is to follow.
func TestResend_HandsOnWhatFollowsABrief(t *testing.T) {
	s := &service{traits: platforms.Traits{Buttons: true}, script: []error{refusal(platforms.Transient, platforms.Unknown, 0)}}
	withBriefs(t, noFind{threaded{service: s}}, nil, func(t *testing.T, b *briefs) {
		row := brief("fragile")
		require.NoError(t, b.store.Update(t.Context(), sessions.EdgeQueue, func(tx sessions.Tx) error {
			if err := tx.PutOutbox(row); err != nil {
				return err
			}
			return tx.SetValue(sessions.SpaceBrief, delivery.BriefName(row.ID), []byte(`"the brief"`), time.Now())
		}))
		b.w.Take(row)
		synctest.Wait()
		var again *sessions.OutboxRow
		require.NoError(t, b.store.Update(t.Context(), sessions.EdgeCommand, func(tx sessions.Tx) (err error) {
			again, err = b.w.Resend(tx, row.ID, place, "maybe twice")
			return err
		}))
		id := again.ID
		b.w.Take(again)
		synctest.Wait()
		require.Equal(t, []string{"fragile unknown  ", "maybe twice\nfragile sent 3 t3"}, b.calls)
		require.NoError(t, b.store.View(t.Context(), func(v sessions.View) error {
			kept, err := v.Value(sessions.SpaceBrief, delivery.BriefName(id))
			require.NoError(t, err)
			require.JSONEq(t, `"the brief"`, string(kept.Data))
			_, err = v.Value(sessions.SpaceBrief, delivery.BriefName(row.ID))
			require.ErrorIs(t, err, sessions.ErrNotFound)
			return nil
		}))
	})
}

// A thread that was kept for a job and is gone does not fail its brief: it gets a new one.
func TestWorker_OpensANewThreadForOneThatIsGone(t *testing.T) {
	s := &service{script: []error{refusal(platforms.ThreadGone, platforms.NotSent, 0)}}
	withBriefs(t, threaded{service: s}, nil, func(t *testing.T, b *briefs) {
		row := brief("one")
		row.Message.Address.Thread = "kept"
		b.post(row)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, s.made(), 2)
		require.Empty(t, s.made()[1].out.Address.Thread)
		require.Equal(t, []string{"one sent 1 t1"}, b.calls)
	})
}
