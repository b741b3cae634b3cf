package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

// clock is a time that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newPairing(t *testing.T) (*Pairing, *sqlite.Store, *clock) {
	t.Helper()
	s, c := open(t, filepath.Join(t.TempDir(), "herald.db")), newClock()
	p, err := NewPairing(t.Context(), s, rules(), c.now)
	require.NoError(t, err)
	return p, s, c
}

func TestPairing_RequestApprove(t *testing.T) {
	p, store, c := newPairing(t)
	ctx := t.Context()
	gate := New(Policy{}, p)
	e := from(person("1"), platforms.DM)
	require.True(t, gate.Decide(e, false).Pairing)

	code, err := p.Request(ctx, tg, "1", "Anna")
	require.NoError(t, err)
	require.Len(t, code.Reveal(), CodeLength)
	require.Empty(t, strings.Trim(code.Reveal(), CodeAlphabet))
	waiting, approved, err := p.List(ctx)
	require.NoError(t, err)
	require.Equal(t, []Pending{{Platform: tg, User: "1", Name: "Anna", At: c.now()}}, waiting)
	require.Empty(t, approved)

	// As a person would type it.
	typed := " " + strings.ToLower(code.Reveal()[:4]) + "-" + code.Reveal()[4:] + "\n"
	got, err := p.Approve(ctx, tg, typed)
	require.NoError(t, err)
	require.Equal(t, Approval{Platform: tg, User: "1", Name: "Anna", At: c.now()}, got)
	require.Equal(t, RulePaired, gate.Decide(e, false).Rule)
	require.False(t, gate.Decide(from(person("12"), platforms.DM), false).Allowed)

	_, err = p.Approve(ctx, tg, code.Reveal())
	require.ErrorIs(t, err, ErrWrongCode, "a code works once")
	_, err = p.Request(ctx, tg, "1", "Anna")
	require.ErrorIs(t, err, ErrAlreadyApproved)

	again, err := NewPairing(ctx, store, rules(), c.now)
	require.NoError(t, err)
	require.True(t, again.Approved(tg, "1"), "an approval survives a restart")
	require.True(t, again.Any(tg))
	require.False(t, again.Any("tele"))

	found, err := p.Revoke(ctx, tg, "1")
	require.NoError(t, err)
	require.True(t, found)
	require.False(t, gate.Decide(e, false).Allowed)
	found, err = p.Revoke(ctx, tg, "1")
	require.NoError(t, err)
	require.False(t, found)
	_, err = p.Request(ctx, tg, "1", "Anna")
	require.NoError(t, err, "who was revoked may ask again")
}

func TestPairing_Times(t *testing.T) {
	p, _, c := newPairing(t)
	ctx := t.Context()
	first, err := p.Request(ctx, tg, "1", "")
	require.NoError(t, err)

	c.advance(RequestEvery - time.Second)
	_, err = p.Request(ctx, tg, "1", "")
	var soon *TooSoonError
	require.ErrorAs(t, err, &soon)
	require.Equal(t, time.Second, soon.Wait)

	c.advance(time.Second)
	second, err := p.Request(ctx, tg, "1", "")
	require.NoError(t, err)
	require.NotEqual(t, first.Reveal(), second.Reveal())
	_, err = p.Approve(ctx, tg, first.Reveal())
	require.ErrorIs(t, err, ErrWrongCode, "a new code replaces the old one")

	c.advance(CodeTTL)
	_, err = p.Approve(ctx, tg, second.Reveal())
	require.ErrorIs(t, err, ErrWrongCode, "a code runs out")
	waiting, _, err := p.List(ctx)
	require.NoError(t, err)
	require.Empty(t, waiting)
}

func TestPairing_Valid_UntilTheLastMoment(t *testing.T) {
	p, _, c := newPairing(t)
	code, err := p.Request(t.Context(), tg, "1", "")
	require.NoError(t, err)
	c.advance(CodeTTL - time.Second)
	_, err = p.Approve(t.Context(), "slack", code.Reveal())
	require.ErrorIs(t, err, ErrWrongCode, "a code belongs to its platform")
	_, err = p.Approve(t.Context(), tg, code.Reveal())
	require.NoError(t, err)
}

func TestPairing_MaxPending(t *testing.T) {
	p, _, c := newPairing(t)
	ctx := t.Context()
	for i := range MaxPending {
		_, err := p.Request(ctx, tg, platforms.UserID(fmt.Sprint(i)), "")
		require.NoError(t, err)
	}
	_, err := p.Request(ctx, tg, "x", "")
	require.ErrorIs(t, err, ErrTooManyPending)
	_, err = p.Request(ctx, "slack", "x", "")
	require.NoError(t, err, "platforms count apart")
	c.advance(RequestEvery)
	_, err = p.Request(ctx, tg, "0", "")
	require.NoError(t, err, "a new code of a user who waits takes no place")
	c.advance(CodeTTL - RequestEvery)
	_, err = p.Request(ctx, tg, "x", "")
	require.NoError(t, err, "those that ran out make room")

	n, err := p.Clear(ctx, tg)
	require.NoError(t, err)
	require.Equal(t, 2, n) // "0" and "x"
	n, err = p.Clear(ctx, "")
	require.NoError(t, err)
	require.Zero(t, n, "the one on the other platform has run out")
}

func TestPairing_Lock(t *testing.T) {
	p, store, c := newPairing(t)
	ctx := t.Context()
	code, err := p.Request(ctx, tg, "1", "")
	require.NoError(t, err)
	for i := range MaxFailures - 1 {
		_, err := p.Approve(ctx, tg, "WRONGXYZ")
		require.ErrorIs(t, err, ErrWrongCode, "%d", i)
	}
	var locked *LockedError
	_, err = p.Approve(ctx, tg, "WRONGXYZ")
	require.ErrorAs(t, err, &locked)
	require.Equal(t, c.now().Add(LockTime), locked.Until)
	_, err = p.Approve(ctx, tg, code.Reveal())
	require.ErrorAs(t, err, &locked, "the right code is refused as well")
	again, err := NewPairing(ctx, store, rules(), c.now)
	require.NoError(t, err)
	_, err = again.Approve(ctx, tg, code.Reveal())
	require.ErrorAs(t, err, &locked, "and after a restart")

	other, err := p.Request(ctx, "slack", "1", "")
	require.NoError(t, err)
	_, err = p.Approve(ctx, "slack", other.Reveal())
	require.NoError(t, err, "another platform is not locked")

	c.advance(LockTime)
	fresh, err := p.Request(ctx, tg, "1", "")
	require.NoError(t, err)
	_, err = p.Approve(ctx, tg, fresh.Reveal())
	require.NoError(t, err)
	for range MaxFailures - 1 { // a right code has set the count to nothing
		_, err := p.Approve(ctx, tg, "WRONGXYZ")
		require.ErrorIs(t, err, ErrWrongCode)
	}
}

// The code is nowhere but in the hands of its user: not in the store, a log or an error.
func TestPairing_CodeIsSecret(t *testing.T) {
	p, store, _ := newPairing(t)
	ctx := t.Context()
	code, err := p.Request(ctx, tg, "1", "Anna")
	require.NoError(t, err)
	j, err := json.Marshal(map[string]Code{"c": code})
	require.NoError(t, err)
	_, wrong := p.Approve(ctx, tg, "WRONGXYZ")
	waiting, _, err := p.List(ctx)
	require.NoError(t, err)
	shown := fmt.Sprintf("%v %+v %#v %s %q %x %s %v %+v", code, code, code, code, code, code, j, wrong, waiting)
	require.NotContains(t, shown, code.Reveal())
	require.NotContains(t, shown, fmt.Sprintf("%x", code.Reveal()))
	require.NotContains(t, shown, "WRONGXYZ")
	require.NoError(t, store.View(ctx, func(v sessions.View) error {
		for _, space := range []sessions.Space{sessions.SpacePairingPending, sessions.SpacePairingRequests, sessions.SpacePairingFailures,
			sessions.SpacePairingApproved} {
			values, err := v.Values(space)
			require.NoError(t, err)
			for _, val := range values {
				require.NotContains(t, val.Name+string(val.Data), code.Reveal())
			}
		}
		return nil
	}))
}

func TestPairing_NeedsNames(t *testing.T) {
	p, _, _ := newPairing(t)
	_, err := p.Request(t.Context(), tg, "", "")
	require.Error(t, err)
	_, err = p.Request(t.Context(), "", "1", "")
	require.Error(t, err)
}

func TestNewCode_UsesTheWholeAlphabet(t *testing.T) {
	require.Len(t, CodeAlphabet, 32)
	require.NotContains(t, CodeAlphabet, "0")
	require.False(t, strings.ContainsAny(CodeAlphabet, "01IO"))
	seen, codes := map[rune]bool{}, map[string]bool{}
	for range 500 {
		code := newCode()
		require.False(t, codes[code])
		codes[code] = true
		for _, r := range code {
			seen[r] = true
		}
	}
	require.Len(t, seen, 32)
}

func TestAdmitBot(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "herald.db"), newClock().now()
	store := open(t, path)
	limits := DefaultLoopLimits()
	bot := from(platforms.User{ID: "7", IsBot: true}, platforms.Group)
	admit := func(e platforms.Event) (ok, began bool) {
		t.Helper()
		require.NoError(t, store.Update(t.Context(), sessions.EdgeAccept, func(tx sessions.Tx) (err error) {
			ok, began, err = AdmitBot(tx, limits, e, now)
			return err
		}))
		return ok, began
	}
	for i := range limits.MaxEvents {
		e := bot
		e.Address.Thread = platforms.ThreadID(fmt.Sprint(i % 3)) // threads of a chat count together
		ok, _ := admit(e)
		require.True(t, ok, i)
		now = now.Add(time.Second)
	}
	ok, began := admit(bot)
	require.False(t, ok)
	require.True(t, began)
	ok, began = admit(bot)
	require.False(t, ok)
	require.False(t, began, "one notice")

	ok, _ = admit(from(person("1"), platforms.Group))
	require.True(t, ok, "people pass")
	other := bot
	other.Address.Chat = "-200"
	ok, _ = admit(other)
	require.True(t, ok, "another chat has its own count")

	require.NoError(t, store.Close())
	store = open(t, path) // a restart forgets nothing
	now = now.Add(limits.Cooldown - time.Second)
	ok, _ = admit(bot)
	require.False(t, ok)
	now = now.Add(time.Second)
	ok, _ = admit(bot)
	require.True(t, ok, "after the cooldown")

	for range 3 * limits.MaxEvents { // slower than the limit: never stopped
		now = now.Add(limits.Window / time.Duration(limits.MaxEvents))
		ok, _ = admit(bot)
		require.True(t, ok)
	}

	off := limits
	off.Off = true
	limits = off
	for range 50 {
		ok, _ = admit(bot)
		require.True(t, ok)
	}
}

func TestSweepBots(t *testing.T) {
	store, now, limits := open(t, filepath.Join(t.TempDir(), "herald.db")), newClock().now(), DefaultLoopLimits()
	bot := from(platforms.User{ID: "7", IsBot: true}, platforms.Group)
	count := func(at time.Time) (n int) {
		t.Helper()
		require.NoError(t, store.Update(t.Context(), sessions.EdgeKeep, func(tx sessions.Tx) error {
			err := SweepBots(tx, limits, at)
			values, verr := tx.Values(sessions.SpaceBotLoop)
			n = len(values)
			return errors.Join(err, verr)
		}))
		return n
	}
	require.NoError(t, store.Update(t.Context(), sessions.EdgeAccept, func(tx sessions.Tx) error {
		_, _, err := AdmitBot(tx, limits, bot, now)
		return err
	}))
	require.Equal(t, 1, count(now.Add(limits.Cooldown)))
	require.Zero(t, count(now.Add(limits.Cooldown+time.Second)))
}

func BenchmarkDecide(b *testing.B) {
	g := New(on(PlatformPolicy{AllowedUsers: []string{"1", "2", "3"}, AllowFrom: []string{"4"}}), nil)
	e := from(person("4"), platforms.DM)
	b.ReportAllocs()
	for b.Loop() {
		if !g.Decide(e, false).Allowed {
			b.Fatal("not allowed")
		}
	}
}
