package sqlite

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"herald/sessions"
)

func job(id string, next time.Time) sessions.Job {
	return sessions.Job{ID: sessions.JobID(id), Name: "Brief " + id, Source: "chat", Spec: []byte(`{"a":1}`), Progress: []byte(`{}`),
		Next: next, Created: clock, Updated: clock}
}

func putJobs(t testing.TB, s *Store, jobs ...sessions.Job) {
	t.Helper()
	update(t, s, func(tx sessions.Tx) error {
		for _, j := range jobs {
			if err := tx.PutJob(j); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestStore_Jobs_KeepEveryField(t *testing.T) {
	s := openStore(t)
	first := job("0a1b2c3d4e5f", clock.Add(time.Hour))
	second := job("ffffffffffff", time.Time{})
	second.Created = clock.Add(time.Second)
	putJobs(t, s, second, first)
	viewing(t, s, func(v sessions.View) {
		list, err := v.Jobs()
		require.NoError(t, err)
		require.Empty(t, cmp.Diff([]sessions.Job{first, second}, list))
		_, err = v.Job("none")
		require.ErrorIs(t, err, sessions.ErrNotFound)
	})
	first.Name, first.Next, first.Created, first.Updated = "Other", time.Time{}, clock.Add(time.Minute), clock.Add(time.Minute)
	putJobs(t, s, first)
	viewing(t, s, func(v sessions.View) {
		got, err := v.Job(first.ID)
		require.NoError(t, err)
		first.Created = clock
		require.Empty(t, cmp.Diff(first, got), "a replaced job keeps when it was made")
	})
	bad := job("bad", time.Time{})
	bad.Spec = []byte("{")
	require.ErrorContains(t, s.Update(t.Context(), sessions.EdgeState, func(tx sessions.Tx) error { return tx.PutJob(bad) }), "no JSON")
}

func TestStore_JobsDue_LongestDueFirst(t *testing.T) {
	s := openStore(t)
	viewing(t, s, func(v sessions.View) {
		next, err := v.NextJob()
		require.NoError(t, err)
		require.True(t, next.IsZero())
	})
	putJobs(t, s, job("late", clock.Add(-time.Hour)), job("now", clock), job("soon", clock.Add(time.Nanosecond)),
		job("later", clock.Add(-2*time.Hour)), job("off", time.Time{}))
	viewing(t, s, func(v sessions.View) {
		due, err := v.JobsDue(clock, 10)
		require.NoError(t, err)
		require.Len(t, due, 3)
		require.Equal(t, []sessions.JobID{"later", "late", "now"}, []sessions.JobID{due[0].ID, due[1].ID, due[2].ID})
		due, err = v.JobsDue(clock, 1)
		require.NoError(t, err)
		require.Len(t, due, 1)
		next, err := v.NextJob()
		require.NoError(t, err)
		require.Equal(t, clock.Add(-2*time.Hour), next)
	})
}

// P9: a slot is claimed once, whoever tries, and has one end.
func TestStore_ClaimRun_OnceForASlot(t *testing.T) {
	s := openStore(t)
	slot := clock
	putJobs(t, s, job("a", slot))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []sessions.RunID
	for range 16 {
		wg.Go(func() {
			r := sessions.Run{Job: "a", Slot: slot, Kind: sessions.RunOnTime}
			claimed := false
			err := s.Update(t.Context(), sessions.EdgeState, func(tx sessions.Tx) (err error) {
				claimed, err = tx.ClaimRun(&r, slot.Add(time.Hour))
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil && claimed {
				won = append(won, r.ID)
			}
		})
	}
	wg.Wait()
	require.Len(t, won, 1)
	viewing(t, s, func(v sessions.View) {
		j, err := v.Job("a")
		require.NoError(t, err)
		require.Equal(t, slot.Add(time.Hour), j.Next)
		r, err := v.Run(won[0])
		require.NoError(t, err)
		require.Equal(t, sessions.Run{ID: won[0], Job: "a", Slot: slot, Until: slot, Slots: 1, Kind: sessions.RunOnTime,
			State:  sessions.RunClaimed,
			Result: []byte("{}"), Began: clock}, r)
	})
	update(t, s, func(tx sessions.Tx) error {
		return tx.EndRun(won[0], sessions.RunFailed, "no model", []byte(`{"sent":[]}`), clock.Add(time.Second))
	})
	err := s.Update(t.Context(), sessions.EdgeState, func(tx sessions.Tx) error {
		return tx.EndRun(won[0], sessions.RunRan, "", nil, clock)
	})
	require.ErrorIs(t, err, sessions.ErrConflict, "an end is an end")
	viewing(t, s, func(v sessions.View) {
		r, err := v.Run(won[0])
		require.NoError(t, err)
		require.Equal(t, sessions.RunFailed, r.State)
		require.Equal(t, "no model", r.Reason)
		require.JSONEq(t, `{"sent":[]}`, string(r.Result))
		require.Equal(t, clock.Add(time.Second), r.Ended)
	})
}

func TestStore_ClaimRun_MovesOnlyTheSlotThatIsNext(t *testing.T) {
	s := openStore(t)
	putJobs(t, s, job("a", clock))
	claim := func(r sessions.Run, next time.Time) (claimed bool) {
		update(t, s, func(tx sessions.Tx) (err error) {
			claimed, err = tx.ClaimRun(&r, next)
			return err
		})
		return claimed
	}
	require.True(t, claim(sessions.Run{Job: "a", Slot: clock.Add(time.Minute), Kind: sessions.RunManual}, time.Time{}), "a person's run beside the plan")
	require.True(t, claim(sessions.Run{Job: "a", Slot: clock.Add(-time.Hour), Until: clock.Add(-time.Minute), Slots: 60,
		State: sessions.RunMissed, Reason: "not running"}, time.Time{}))
	require.False(t, claim(sessions.Run{Job: "none", Slot: clock}, clock), "the job is gone")
	viewing(t, s, func(v sessions.View) {
		j, err := v.Job("a")
		require.NoError(t, err)
		require.Equal(t, clock, j.Next)
		runs, err := v.Runs(sessions.RunQuery{Job: "a", State: sessions.RunMissed})
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, 60, runs[0].Slots)
		require.Equal(t, clock, runs[0].Ended)
		open, err := v.Runs(sessions.RunQuery{State: sessions.RunClaimed})
		require.NoError(t, err)
		require.Len(t, open, 1)
	})
	update(t, s, func(tx sessions.Tx) error { return tx.DeleteJob("a") })
	viewing(t, s, func(v sessions.View) {
		runs, err := v.Runs(sessions.RunQuery{})
		require.NoError(t, err)
		require.Empty(t, runs, "the runs of a removed job go with it")
	})
}

func TestStore_TrimRuns_KeepsTheNewestAndWhatRuns(t *testing.T) {
	s := openStore(t)
	putJobs(t, s, job("a", clock), job("b", clock))
	update(t, s, func(tx sessions.Tx) error {
		for i := range 10 {
			for _, id := range []sessions.JobID{"a", "b"} {
				r := sessions.Run{Job: id, Slot: clock.Add(time.Duration(i) * time.Minute)}
				if i != 2 {
					r.State = sessions.RunRan
				}
				if _, err := tx.ClaimRun(&r, time.Time{}); err != nil {
					return err
				}
			}
		}
		n, err := tx.TrimRuns("a", 3)
		require.Equal(t, 6, n)
		return err
	})
	viewing(t, s, func(v sessions.View) {
		runs, err := v.Runs(sessions.RunQuery{Job: "a"})
		require.NoError(t, err)
		require.Len(t, runs, 4)
		require.Equal(t, sessions.RunClaimed, runs[3].State)
		runs, err = v.Runs(sessions.RunQuery{Job: "b"})
		require.NoError(t, err)
		require.Len(t, runs, 10)
	})
}

// Runs are read in pieces, of one job or of one state, and from an index: a long history costs the reader nothing.
func TestStore_Runs_InPieces(t *testing.T) {
	s := openStore(t)
	putJobs(t, s, job("a", clock), job("b", clock))
	states := []sessions.RunState{sessions.RunRan, sessions.RunFailed}
	update(t, s, func(tx sessions.Tx) error {
		for i := range 20 {
			r := sessions.Run{Job: []sessions.JobID{"a", "b"}[i%2], Slot: clock.Add(time.Duration(i) * time.Minute), State: states[i/2%2]}
			if _, err := tx.ClaimRun(&r, time.Time{}); err != nil {
				return err
			}
		}
		return nil
	})
	viewing(t, s, func(v sessions.View) {
		for _, q := range []sessions.RunQuery{{}, {Job: "a"}, {State: sessions.RunFailed}, {Job: "b", State: sessions.RunRan}} {
			q.Limit = 100
			whole, err := v.Runs(q)
			require.NoError(t, err)
			require.NotEmpty(t, whole)
			var pieces []sessions.Run
			q.Limit = 3
			for {
				some, err := v.Runs(q)
				require.NoError(t, err)
				if len(some) == 0 {
					break
				}
				pieces = append(pieces, some...)
				q.Before = some[len(some)-1].ID
			}
			require.Equal(t, whole, pieces)
		}
		for _, where := range []string{"job = 'a'", "state = 'claimed'", "state = 'failed'", "job = 'a' AND state = 'claimed'", "state = 'failed' AND id < 9"} {
			plan := ""
			require.NoError(t, v.(*view).c.query(t.Context(), "EXPLAIN QUERY PLAN "+sqlRun+"WHERE 1 AND "+where+" ORDER BY id DESC LIMIT 5", func(r row) error {
				plan += r.text(3) + "\n"
				return nil
			}))
			require.Contains(t, plan, "USING INDEX", where)
			require.NotContains(t, plan, "TEMP B-TREE", where)
		}
	})
}

// What the scheduler asks each minute is answered from an index, and asking writes nothing.
func BenchmarkJobsDue_TenThousandJobs(b *testing.B) {
	s := openStore(b)
	update(b, s, func(tx sessions.Tx) error {
		for range 10_000 {
			if err := tx.PutJob(job(string(sessions.NewJobID()), clock.Add(time.Hour))); err != nil {
				return err
			}
		}
		return nil
	})
	for b.Loop() {
		viewing(b, s, func(v sessions.View) {
			due, err := v.JobsDue(clock, 1000)
			require.NoError(b, err)
			require.Empty(b, due)
			_, err = v.NextJob()
			require.NoError(b, err)
		})
	}
}
