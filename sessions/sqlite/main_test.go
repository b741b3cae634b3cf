package sqlite

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/platforms"
	"herald/sessions"
)

// childMode names, in the environment, what a re-executed test binary is to do instead of running tests.
const childMode = "HERALD_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		os.Exit(runChild(mode))
	}
	goleak.VerifyTestMain(m)
}

// clock is a fixed start for rows that tests make.
var clock = time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)

func openStore(t testing.TB, change ...func(*Options)) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "home", "herald.db"), change...)
}

func openAt(t testing.TB, path string, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{Path: path, Clock: func() time.Time { return clock }}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func update(t testing.TB, s *Store, fn func(sessions.Tx) error) {
	t.Helper()
	require.NoError(t, s.Update(t.Context(), sessions.EdgeState, fn))
}

func viewing(t testing.TB, s *Store, fn func(sessions.View)) {
	t.Helper()
	require.NoError(t, s.View(t.Context(), func(v sessions.View) error { fn(v); return nil }))
}

func origin(user string) sessions.Origin {
	return sessions.Origin{
		Address:  platforms.Address{Platform: "telegram", Account: "bot", Chat: platforms.ChatID(user)},
		ChatType: platforms.DM, User: platforms.UserID(user), UserName: "Name of " + user,
	}
}

func keyOf(user string) sessions.Key {
	return sessions.KeyFor(sessions.KeySource{Platform: "telegram", ChatType: platforms.DM, Chat: platforms.ChatID(user)},
		sessions.DefaultKeyOptions())
}

// openSession returns the current session of a person's DM.
func openSession(t testing.TB, s *Store, user string) sessions.Session {
	t.Helper()
	var out sessions.Session
	update(t, s, func(tx sessions.Tx) (err error) {
		out, err = tx.OpenSession(keyOf(user), origin(user), clock)
		return err
	})
	return out
}

// say appends plain rows, user and assistant in turn, each pair with a turn number of its own.
func say(t testing.TB, s *Store, id sessions.ID, texts ...string) []*sessions.Message {
	t.Helper()
	var rows []*sessions.Message
	for i, text := range texts {
		role := sessions.User
		if i%2 == 1 {
			role = sessions.Assistant
		}
		rows = append(rows, &sessions.Message{Session: id, Role: role, Content: text, At: clock})
	}
	update(t, s, func(tx sessions.Tx) error { return tx.Append(rows...) })
	return rows
}

func event(id, user, text string) platforms.Event {
	return platforms.Event{
		ID: platforms.EventID(id), Address: platforms.Address{Platform: "telegram", Account: "bot", Chat: platforms.ChatID(user)},
		ChatType: platforms.DM, Sender: platforms.User{ID: platforms.UserID(user), Name: "Name of " + user}, Addressed: true,
		Message: &platforms.Message{ID: platforms.MessageID("m" + id), Text: text},
	}
}

func contents(rows []sessions.Message) []string {
	out := []string{}
	for _, m := range rows {
		out = append(out, m.Content)
	}
	return out
}

// How long and how often a test polls.
const (
	pollFor   = 20 * time.Second
	pollEvery = 5 * time.Millisecond
)

// lockedBuffer takes a log from several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
