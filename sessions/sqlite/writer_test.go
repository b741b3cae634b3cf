package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"herald/sessions"
)

// gate holds the writer inside an Update until release is called, so that a test can fill the queue.
// release returns that Update's error.
func gate(t *testing.T, s *Store) (release func() error) {
	t.Helper()
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- s.Update(context.Background(), sessions.EdgeState, func(sessions.Tx) error {
			close(entered)
			<-leave
			return nil
		})
	}()
	<-entered
	return func() error {
		close(leave)
		return <-done
	}
}

// waitQueue returns when n updates wait.
func waitQueue(t *testing.T, s *Store, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Metrics().Queue == n }, 10*time.Second, time.Millisecond)
}

// Updates that wait together share a commit, and an error or panic of one undoes only that one.
func TestStore_Update_GroupCommitIsolatesFailures(t *testing.T) {
	var observed atomic.Int64
	s := openStore(t, func(o *Options) {
		o.Observe = func(edge sessions.Edge, latency time.Duration, batch int) {
			observed.Add(1)
			if latency <= 0 || batch < 1 || edge == "" {
				panic("observer is given nonsense")
			}
		}
	})
	before := s.Metrics()
	release := gate(t, s)
	boom := errors.New("boom")
	errs := make([]error, 90)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
				if err := tx.SetValue("v", strconv.Itoa(i), []byte("1"), clock); err != nil {
					return err
				}
				switch i % 3 {
				case 1:
					return boom
				case 2:
					panic("no")
				}
				return nil
			})
		})
	}
	waitQueue(t, s, len(errs))
	require.NoError(t, release())
	wg.Wait()
	after := s.Metrics()
	require.Equal(t, int64(91), after.Updates-before.Updates)
	require.LessOrEqual(t, after.Commits-before.Commits, int64(2), "they shared a commit")
	require.GreaterOrEqual(t, after.LargestBatch, int64(90))
	require.Equal(t, int64(60), after.Failed-before.Failed)
	require.Equal(t, int64(91), observed.Load())
	require.Positive(t, after.Latency)
	viewing(t, s, func(v sessions.View) {
		list, err := v.Values("v")
		require.NoError(t, err)
		require.Len(t, list, 30)
	})
	var pe *PanicError
	for i, err := range errs {
		switch i % 3 {
		case 0:
			require.NoError(t, err)
		case 1:
			require.Equal(t, boom, err)
		case 2:
			require.ErrorAs(t, err, &pe)
			require.Equal(t, "no", pe.Value)
			require.Contains(t, string(pe.Stack), "writer_test.go")
		}
	}
}

func TestStore_Update_BatchIsBounded(t *testing.T) {
	s := openStore(t, func(o *Options) { o.MaxBatch = 10 })
	release := gate(t, s)
	var wg sync.WaitGroup
	for i := range 35 {
		wg.Go(func() {
			_ = s.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
				return tx.SetValue("v", strconv.Itoa(i), []byte("1"), clock)
			})
		})
	}
	waitQueue(t, s, 35)
	require.NoError(t, release())
	wg.Wait()
	require.LessOrEqual(t, s.Metrics().LargestBatch, int64(10))
}

func TestStore_Update_Cancelled(t *testing.T) {
	s := openStore(t)
	release := gate(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- s.Update(ctx, sessions.EdgeState, func(sessions.Tx) error { t.Error("it ran"); return nil })
	}()
	waitQueue(t, s, 1)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled, "while it waits it ends at once")
	require.NoError(t, release())

	// Once begun it is finished.
	ctx, cancel = context.WithCancel(context.Background())
	err := s.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		cancel()
		return tx.SetValue("v", "kept", []byte("1"), clock)
	})
	require.NoError(t, err)
	require.ErrorIs(t, s.Update(ctx, sessions.EdgeState, func(sessions.Tx) error { return nil }), context.Canceled)
	require.ErrorIs(t, s.View(ctx, func(sessions.View) error { return nil }), context.Canceled)
	viewing(t, s, func(v sessions.View) {
		_, err := v.Value("v", "kept")
		require.NoError(t, err)
	})
}

func TestStore_Update_OrderOfArrival(t *testing.T) {
	s := openStore(t)
	release := gate(t, s)
	var wg sync.WaitGroup
	var order []int
	for i := range 20 {
		wg.Go(func() {
			_ = s.Update(context.Background(), sessions.EdgeState, func(sessions.Tx) error { order = append(order, i); return nil })
		})
		waitQueue(t, s, i+1)
	}
	require.NoError(t, release())
	wg.Wait()
	require.IsIncreasing(t, order)
}

func TestStore_View_SeesEveryFinishedUpdateAndOneSnapshot(t *testing.T) {
	s := openStore(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			name := strconv.Itoa(g)
			for i := range 40 {
				want := strconv.Itoa(i)
				if err := s.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
					if err := tx.SetValue("a", name, []byte(want), clock); err != nil {
						return err
					}
					return tx.SetValue("b", name, []byte(want), clock)
				}); err != nil {
					t.Error(err)
				}
				if err := s.View(context.Background(), func(v sessions.View) error {
					mine, err := v.Value("a", name)
					if err != nil || string(mine.Data) != want {
						return fmt.Errorf("read %q, wrote %q: %w", mine.Data, want, err)
					}
					a, err := v.Values("a")
					if err != nil {
						return err
					}
					b, err := v.Values("b")
					if err != nil || len(a) != len(b) {
						return fmt.Errorf("%d and %d values: %w", len(a), len(b), err)
					}
					for i := range a {
						if string(a[i].Data) != string(b[i].Data) {
							return fmt.Errorf("a torn snapshot: %s and %s", a[i].Data, b[i].Data)
						}
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestStore_View_PanicAndErrorLeaveItUsable(t *testing.T) {
	s := openStore(t, func(o *Options) { o.Readers = 1 })
	var pe *PanicError
	require.ErrorAs(t, s.View(t.Context(), func(sessions.View) error { panic("no") }), &pe)
	boom := errors.New("boom")
	require.ErrorIs(t, s.View(t.Context(), func(sessions.View) error { return boom }), boom)
	viewing(t, s, func(v sessions.View) {
		_, err := v.Counts()
		require.NoError(t, err)
		_, _, err = v.(*view).c.exec("INSERT INTO meta (name, value) VALUES ('x', 1)")
		require.ErrorIs(t, err, sessions.ErrReadOnly, "a view can't write")
	})
}

func TestStore_Close_FinishesWhatWaits(t *testing.T) {
	path := t.TempDir() + "/herald.db"
	s, err := Open(t.Context(), Options{Path: path})
	require.NoError(t, err)
	release := gate(t, s)
	done := make(chan error, 5)
	for i := range 5 {
		go func() {
			done <- s.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
				return tx.SetValue("v", strconv.Itoa(i), []byte("1"), clock)
			})
		}()
	}
	waitQueue(t, s, 5)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	require.Eventually(t, func() bool {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return s.writer.closed
	}, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, s.Update(t.Context(), sessions.EdgeState, func(sessions.Tx) error { return nil }), sessions.ErrClosed)
	require.NoError(t, release())
	require.NoError(t, <-closed)
	for range 5 {
		require.NoError(t, <-done)
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.View(t.Context(), func(sessions.View) error { return nil }), sessions.ErrClosed)
	require.NoFileExists(t, path+"-wal", "a clean close leaves one file")
	require.FileExists(t, path+".lock")
	viewing(t, openAt(t, path), func(v sessions.View) {
		list, err := v.Values("v")
		require.NoError(t, err)
		require.Len(t, list, 5)
	})
}

func TestStore_Update_Concurrent(t *testing.T) {
	s := openStore(t)
	var wg sync.WaitGroup
	for g := range 30 {
		wg.Go(func() {
			for i := range 10 {
				if err := oneTurn(s, fmt.Sprint("user", g), fmt.Sprint(g, "-", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	m := s.Metrics()
	require.Less(t, m.Commits, m.Updates, "group commit groups")
	viewing(t, s, func(v sessions.View) {
		n, err := v.Counts()
		require.NoError(t, err)
		n.Bytes = 0
		require.Equal(t, sessions.Counts{Sessions: 30, Live: 30, Messages: 600}, n)
	})
}

// A function that ends its goroutine, as a failing test does, costs its transaction and not the store.
func TestStore_Update_Goexit(t *testing.T) {
	s := openStore(t, func(o *Options) { o.Readers = 1 })
	lost := func(tx sessions.Tx) error {
		assert.NoError(t, tx.SetValue("v", "lost", []byte("1"), clock))
		runtime.Goexit()
		return nil
	}
	exit := func(*conn) error { runtime.Goexit(); return nil }
	// On the writer's own goroutine, because the writer was not free.
	for _, call := range []func() error{
		func() error { return s.Update(context.Background(), sessions.EdgeState, lost) },
		func() error { return s.alone(context.Background(), exit) },
	} {
		release := gate(t, s)
		failed := make(chan error)
		go func() { failed <- call() }()
		waitQueue(t, s, 1)
		require.NoError(t, release())
		require.ErrorIs(t, <-failed, errExit)
	}
	// On the goroutine of the caller, which ends, and nothing else.
	for _, call := range []func(){
		func() { _ = s.Update(context.Background(), sessions.EdgeState, lost) },
		func() { _ = s.alone(context.Background(), exit) },
	} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			call()
		}()
		<-ended
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.View(context.Background(), func(v sessions.View) error {
			_, _ = v.Counts()
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	update(t, s, func(tx sessions.Tx) error { return tx.SetValue("v", "kept", []byte("1"), clock) })
	viewing(t, s, func(v sessions.View) {
		list, err := v.Values("v")
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, "kept", list[0].Name)
	})
}

// A step in a savepoint is undone alone, by an error and by a panic, also inside another one.
func TestStore_Update_SavepointUndoesOnlyItself(t *testing.T) {
	s := openStore(t)
	session := openSession(t, s, "ada")
	boom := errors.New("boom")
	update(t, s, func(tx sessions.Tx) error {
		say := func(text string) error {
			return tx.Append(&sessions.Message{Session: session.ID, Role: sessions.User, Content: text, Active: true, At: clock})
		}
		require.NoError(t, say("before"))
		require.Equal(t, boom, tx.Savepoint(func() error {
			require.NoError(t, say("lost"))
			return boom
		}))
		var pe *PanicError
		require.ErrorAs(t, tx.Savepoint(func() error {
			require.NoError(t, say("lost too"))
			panic("no")
		}), &pe)
		require.NoError(t, tx.Savepoint(func() error {
			require.Equal(t, boom, tx.Savepoint(func() error {
				require.NoError(t, say("lost inside"))
				return boom
			}))
			return say("kept")
		}))
		return say("after")
	})
	viewing(t, s, func(v sessions.View) {
		rows, err := v.Transcript(session.ID, true, 0, 0)
		require.NoError(t, err)
		require.Equal(t, []string{"before", "kept", "after"}, contents(rows))
		hits, err := v.Search(sessions.SearchQuery{Text: "lost", Scope: sessions.Scope{All: true}})
		require.NoError(t, err)
		require.Empty(t, hits)
	})
}
