package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/gateway/delivery"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var place = platforms.Address{Platform: "test", Account: "bot", Chat: "7"}

// service is a scripted platform: it keeps what is visible and answers each call as told.
type service struct {
	traits platforms.Traits
	notes  []string // of the first receipt

	mu      sync.Mutex
	script  []error // one per call; nil and past the end: success
	visible map[platforms.MessageID]string
	order   []string
	calls   []call
	nonces  map[string]platforms.MessageID
}

type call struct {
	at  time.Time
	out platforms.Outgoing
}

func (s *service) Account() platforms.Account                { return place.AccountOf() }
func (s *service) Traits() platforms.Traits                  { return s.traits }
func (s *service) Health() platforms.Health                  { return platforms.Health{Inbound: true} }
func (s *service) Run(context.Context, platforms.Sink) error { return nil }

func (s *service) Send(_ context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call{time.Now(), out})
	if len(s.script) > 0 {
		err := s.script[0]
		s.script = s.script[1:]
		var se *platforms.SendError
		if err != nil && (!errors.As(err, &se) || se.Certainty == platforms.NotSent) {
			return platforms.Receipt{}, err
		}
		if err != nil {
			s.take(out)
			return platforms.Receipt{}, err
		}
	}
	receipt := platforms.Receipt{Message: s.take(out), Notes: s.notes}
	s.notes = nil
	return receipt, nil
}

func (s *service) take(out platforms.Outgoing) platforms.MessageID {
	if s.visible == nil {
		s.visible, s.nonces = map[platforms.MessageID]string{}, map[string]platforms.MessageID{}
	}
	id := out.Edit
	if known, ok := s.nonces[out.Nonce]; ok && s.traits.Idempotent && id == "" {
		return known
	}
	if id == "" {
		id = platforms.MessageID(fmt.Sprint(len(s.order) + 1))
		s.order = append(s.order, out.Text.Plain)
		s.nonces[out.Nonce] = id
	}
	s.visible[id] = out.Text.Plain
	return id
}

// finder is a service that can look a nonce up.
type finder struct{ *service }

func (f finder) Find(_ context.Context, out platforms.Outgoing) (platforms.MessageID, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, ok := f.nonces[out.Nonce]
	return id, ok, nil
}

func (s *service) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for i := range s.order {
		out = append(out, s.visible[platforms.MessageID(fmt.Sprint(i+1))])
	}
	return out
}

// made returns the calls so far.
func (s *service) made() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// lookup finds the one adapter of a test.
type lookup struct{ adapter platforms.Adapter }

func (l lookup) Adapter(platforms.Account) (platforms.Adapter, bool) {
	return l.adapter, l.adapter != nil
}

// english speaks English at every address.
func english(platforms.Address) *locales.Printer {
	catalogs, err := locales.New(locales.Options{})
	if err != nil {
		panic(err)
	}
	return catalogs.Printer("en")
}

func doubt(id sessions.OutboxID) string {
	return english(place).T("delivery.unknown", locales.Int("id", int64(id)))
}

func text(s string) platforms.Text { return platforms.Text{Body: s, Plain: s, Markdown: s} }

func final(s string) *sessions.OutboxRow {
	return &sessions.OutboxRow{Kind: sessions.OutFinal, Message: platforms.Outgoing{Address: place, Text: text(s)}}
}

// bench is a worker on a real store.
type bench struct {
	t     *testing.T
	path  string
	store *sqlite.Store
	w     *delivery.Worker
}

func open(t *testing.T, adapter platforms.Adapter, path string) *bench {
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	require.NoError(t, err)
	b := &bench{t: t, path: path, store: store}
	b.w = delivery.New(delivery.Options{Store: store, Adapters: lookup{adapter}, Printer: english, Log: zerolog.Nop()})
	require.NoError(t, b.w.Recover(t.Context()))
	return b
}

func (b *bench) close() {
	b.w.Close()
	require.NoError(b.t, b.store.Close())
}

func (b *bench) post(rows ...*sessions.OutboxRow) {
	b.t.Helper()
	require.NoError(b.t, b.w.Post(b.t.Context(), rows...))
}

func (b *bench) row(id sessions.OutboxID) sessions.OutboxRow {
	b.t.Helper()
	var row sessions.OutboxRow
	require.NoError(b.t, b.store.View(b.t.Context(), func(v sessions.View) (err error) {
		row, err = v.OutboxRow(id)
		return err
	}))
	return row
}

// within runs a test with a clock of its own, on a real store.
func within(t *testing.T, s *service, adapter platforms.Adapter, fn func(*testing.T, *bench)) {
	path := filepath.Join(t.TempDir(), "herald.db")
	synctest.Test(t, func(t *testing.T) {
		b := open(t, adapter, path)
		defer b.close()
		fn(t, b)
	})
}

func refusal(kind platforms.FailureKind, c platforms.Certainty, after time.Duration) error {
	return &platforms.SendError{Kind: kind, Certainty: c, RetryAfter: after, Err: errors.New("scripted")}
}

// P3: messages of an address leave in the order they were committed, also when the first one has to wait.
func TestWorker_KeepsOrder(t *testing.T) {
	s := &service{script: []error{refusal(platforms.Transient, platforms.NotSent, 0)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		b.post(final("one"), final("two"), final("three"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"one", "two", "three"}, s.texts())
	})
}

// P8: not one call is made inside a retry-after window, and the window holds over a restart.
func TestWorker_HonoursRetryAfterAlsoAfterARestart(t *testing.T) {
	s := &service{script: []error{refusal(platforms.RateLimited, platforms.NotSent, 30*time.Second)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		began := time.Now()
		b.post(final("patient"))
		time.Sleep(10 * time.Second)
		b.w.Close()
		require.NoError(t, b.store.Close())
		again := open(t, s, b.path)
		*b = *again
		other := final("another one")
		b.post(other)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, s.made(), 1, "the gate is shut for the whole address")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"patient", "another one"}, s.texts())
		require.GreaterOrEqual(t, s.made()[1].at.Sub(began), 30*time.Second)
	})
}

// P4: an unknown outcome is surfaced once and never repeated by itself.
func TestWorker_SurfacesAnUnknownOutcomeOnce(t *testing.T) {
	s := &service{traits: platforms.Traits{Buttons: true}, script: []error{refusal(platforms.Transient, platforms.Unknown, 0)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		row := final("fragile")
		b.post(row)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"fragile", doubt(row.ID)}, s.texts())
		require.Equal(t, sessions.OutUnknown, b.row(row.ID).State)
		require.Equal(t, delivery.ResendData(row.ID), s.made()[1].out.Buttons[0][0].Data)
		id, ok := delivery.ParseResend(s.made()[1].out.Buttons[0][0].Data)
		require.True(t, ok)
		resend := func() (again *sessions.OutboxRow, err error) {
			err = b.store.Update(t.Context(), sessions.EdgeCommand, func(tx sessions.Tx) error {
				again, err = b.w.Resend(tx, id, place, "maybe twice")
				return err
			})
			return again, err
		}
		again, err := resend()
		require.NoError(t, err)
		b.w.Take(again)
		synctest.Wait()
		require.Equal(t, "maybe twice\nfragile", s.texts()[2])
		_, err = resend()
		require.ErrorIs(t, err, delivery.ErrNotUnknown, "a second press sends nothing")
	})
}

// A part of a long message is as long as the platform allows: it is sent again without the label, not refused.
func TestWorker_ResendsAFullPart(t *testing.T) {
	traits := platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.SignalStyles, Limit: 100, Unit: platforms.UTF16, Number: true}}
	full := strings.Repeat("😀", 50)
	s := &service{traits: traits, script: []error{refusal(platforms.Transient, platforms.Unknown, 0)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		row := final(full)
		row.Message.Text.Styles = []platforms.Style{{Start: 0, Length: 100, Kind: "BOLD"}}
		b.post(row)
		time.Sleep(time.Minute)
		synctest.Wait()
		var again *sessions.OutboxRow
		require.NoError(t, b.store.Update(t.Context(), sessions.EdgeCommand, func(tx sessions.Tx) (err error) {
			again, err = b.w.Resend(tx, row.ID, place, "maybe twice")
			return err
		}))
		b.w.Take(again)
		synctest.Wait()
		require.Equal(t, full, s.texts()[2])
		require.Equal(t, row.Message.Text.Styles, again.Message.Text.Styles)
	})
}

// What could not be sent is told in full, in as many messages as it needs.
func TestWorker_TellsEveryNote(t *testing.T) {
	var notes []string
	for i := range 30 {
		notes = append(notes, fmt.Sprintf("file-%02d.png was not sent: it is too large.", i))
	}
	s := &service{traits: platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.SignalStyles, Limit: 300, Unit: platforms.UTF16,
		Number: true}}, notes: notes}
	within(t, s, s, func(t *testing.T, b *bench) {
		b.post(final("see"))
		time.Sleep(time.Minute)
		synctest.Wait()
		all := strings.Join(s.texts(), "\n")
		require.Greater(t, len(s.texts()), 4)
		for _, note := range notes {
			require.Contains(t, all, note)
		}
	})
}

func TestWorker_RepeatsWhatCanNotDouble(t *testing.T) {
	t.Run("an idempotent platform", func(t *testing.T) {
		s := &service{traits: platforms.Traits{Idempotent: true}, script: []error{refusal(platforms.Transient, platforms.Unknown, 0)}}
		within(t, s, s, func(t *testing.T, b *bench) {
			b.post(final("once"))
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, []string{"once"}, s.texts())
			require.Len(t, s.made(), 2)
		})
	})
	t.Run("an edit", func(t *testing.T) {
		s := &service{script: []error{nil, refusal(platforms.Transient, platforms.Unknown, 0)}}
		within(t, s, s, func(t *testing.T, b *bench) {
			b.post(final("old"))
			edit := final("new")
			edit.Message.Edit = "1"
			b.post(edit)
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, []string{"new"}, s.texts())
		})
	})
	t.Run("a nonce that can be looked up and is there", func(t *testing.T) {
		s := &service{script: []error{refusal(platforms.Transient, platforms.Unknown, 0)}}
		within(t, s, finder{s}, func(t *testing.T, b *bench) {
			row := final("found")
			b.post(row)
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, []string{"found"}, s.texts())
			require.Equal(t, sessions.OutSent, b.row(row.ID).State)
			require.Len(t, s.made(), 1)
		})
	})
}

// A message that was being sent when its process was killed is in doubt, not sent again.
func TestWorker_RecoverTreatsAnInterruptedSendAsUnknown(t *testing.T) {
	s := &service{}
	path := filepath.Join(t.TempDir(), "herald.db")
	synctest.Test(t, func(t *testing.T) {
		b := open(t, s, path)
		row := final("cut off")
		row.State, row.Attempts = sessions.OutAttempting, 1
		require.NoError(t, b.store.Update(t.Context(), sessions.EdgeSend, func(tx sessions.Tx) error { return tx.PutOutbox(row) }))
		b.close()
		b = open(t, s, path)
		defer b.close()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{doubt(row.ID)}, s.texts())
	})
}

func TestWorker_GivesUpForGoodOnARefusalAndSaysSo(t *testing.T) {
	s := &service{script: []error{refusal(platforms.BadRequest, platforms.NotSent, 0)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		row := final("bad")
		b.post(row, final("good"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.ElementsMatch(t, []string{"good", english(place).T("delivery.failed", locales.Str("reason", "scripted"))}, s.texts())
		require.Equal(t, sessions.OutFailed, b.row(row.ID).State)
	})
}

// Only a whole chat is a dead target; its own next message revives it.
func TestWorker_DeadTargets(t *testing.T) {
	s := &service{script: []error{refusal(platforms.Forbidden, platforms.NotSent, 0)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		b.post(final("to nobody"))
		time.Sleep(time.Second)
		synctest.Wait()
		_, dead := b.w.DeadTarget(place)
		require.True(t, dead)
		notice := &sessions.OutboxRow{Kind: sessions.OutSend, Message: platforms.Outgoing{Address: place, Text: text("skipped")}}
		b.post(notice)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, s.made(), 1, "a dead chat is not asked again")
		require.Equal(t, sessions.OutFailed, b.row(notice.ID).State)
		require.NoError(t, b.store.Update(t.Context(), sessions.EdgeAccept, func(tx sessions.Tx) error { return b.w.Revive(tx, place) }))
		b.post(final("back"))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"back"}, s.texts())
	})
	thread := &service{script: []error{refusal(platforms.ThreadGone, platforms.NotSent, 0)}}
	within(t, thread, thread, func(t *testing.T, b *bench) {
		b.post(final("to a thread"))
		time.Sleep(time.Second)
		synctest.Wait()
		_, dead := b.w.DeadTarget(place)
		require.False(t, dead, "a missing thread never marks the chat")
	})
}

func TestLive_GrowsInOneMessageThatTheFinalRowCompletes(t *testing.T) {
	s := &service{traits: platforms.Traits{Edit: true}}
	within(t, s, s, func(t *testing.T, b *bench) {
		live := b.w.Live(delivery.LiveOptions{At: place, Turn: 5, Preview: true, First: time.Second, Interval: time.Second})
		live.Set(text("a"))
		synctest.Wait()
		require.Empty(t, s.texts(), "nothing before the first delay")
		time.Sleep(1100 * time.Millisecond)
		live.Set(text("a b"))
		synctest.Wait()
		require.Equal(t, []string{"a"}, s.texts())
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"a b"}, s.texts())
		require.True(t, live.End())
		done := final("a b c")
		done.Turn = 5
		b.post(done)
		synctest.Wait()
		require.Equal(t, []string{"a b c"}, s.texts(), "one message, edited")
	})
}

// What is only for show is dropped inside a gate, and three refusals in a row end the show.
func TestLive_GivesWayToGates(t *testing.T) {
	limited := refusal(platforms.RateLimited, platforms.NotSent, 10*time.Second)
	s := &service{traits: platforms.Traits{Edit: true}, script: []error{nil, limited, limited, limited}}
	within(t, s, s, func(t *testing.T, b *bench) {
		live := b.w.Live(delivery.LiveOptions{At: place, Turn: 5, Preview: true, Interval: time.Second})
		for i := range 60 {
			live.Set(text(fmt.Sprint("frame ", i)))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.Len(t, s.made(), 4)
		for i := 2; i < len(s.made()); i++ {
			require.GreaterOrEqual(t, s.made()[i].at.Sub(s.made()[i-1].at), 10*time.Second, "P8")
		}
		live.End()
		done := final("the end")
		done.Turn = 5
		b.post(done)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"the end"}, s.texts())
	})
}

func TestWorker_ClaimBeginsTheAttemptInTheSameCommit(t *testing.T) {
	s := &service{}
	within(t, s, s, func(t *testing.T, b *bench) {
		row := final("claimed")
		b.w.Claim([]*sessions.OutboxRow{row})
		require.Equal(t, sessions.OutAttempting, row.State)
		later := final("later")
		b.post(later)
		synctest.Wait()
		require.Empty(t, s.texts(), "nothing passes a claimed row")
		b.post(row)
		synctest.Wait()
		require.Equal(t, []string{"claimed", "later"}, s.texts())

		row = final("released")
		b.w.Claim([]*sessions.OutboxRow{row})
		b.w.Release([]*sessions.OutboxRow{row})
		require.Equal(t, sessions.OutPending, row.State)
		b.post(final("goes on"))
		synctest.Wait()
		require.Equal(t, "goes on", s.texts()[2])
	})
}

// A send that hangs holds its lane, never the one of control answers (P14).
func TestWorker_ControlHasALaneOfItsOwn(t *testing.T) {
	hung := &hanging{service: &service{}}
	within(t, hung.service, hung, func(t *testing.T, b *bench) {
		hung.release = make(chan struct{}) // of this test's own time
		b.post(final("hangs"))
		synctest.Wait()
		status := &sessions.OutboxRow{Kind: sessions.OutControl, Lane: place.String() + "#control",
			Message: platforms.Outgoing{Address: place, Text: text("status")}}
		b.post(status)
		synctest.Wait()
		require.Equal(t, []string{"status"}, hung.texts())
		close(hung.release)
		synctest.Wait()
		require.Equal(t, []string{"status", "hangs"}, hung.texts())
	})
}

type hanging struct {
	*service
	release chan struct{}
}

func (h *hanging) Send(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	if out.Text.Plain == "hangs" {
		select {
		case <-h.release:
		case <-ctx.Done():
			return platforms.Receipt{}, ctx.Err()
		}
	}
	return h.service.Send(ctx, out)
}

// P3: a preview of a later answer is not seen before an earlier one that has to wait.
func TestLive_WaitsBehindAnEarlierAnswer(t *testing.T) {
	s := &service{traits: platforms.Traits{Edit: true}, script: []error{refusal(platforms.Transient, platforms.NotSent, 0)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		b.post(final("earlier"))
		synctest.Wait()
		live := b.w.Live(delivery.LiveOptions{At: place, Turn: 5, Preview: true})
		live.Set(text("later"))
		synctest.Wait()
		require.Empty(t, s.texts())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"earlier", "later"}, s.texts())
		live.End()
	})
}
