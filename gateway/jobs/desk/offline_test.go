package desk

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs/view"
	"herald/sessions/sqlite"
)

// Without a daemon a job is checked as well: a script that is not there is named. Nothing can be run.
func TestOffline_Clerk(t *testing.T) {
	home := t.TempDir()
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(home, "herald.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	clerk, err := Offline{Store: store, Home: home, SkillsDir: filepath.Join(home, "skills"), Zone: time.UTC}.Clerk()
	require.NoError(t, err)
	add := func(c cron.Change) error {
		_, err := clerk.Do(t.Context(), Args{Action: "add", Change: c})
		return err
	}
	require.ErrorContains(t, add(cron.Change{Schedule: ptr("30m"), Script: ptr("nope.sh"), NoAgent: ptr(true)}), `script "nope.sh"`)
	require.ErrorContains(t, add(cron.Change{Schedule: ptr("30m"), Prompt: ptr("x"), Monitor: ptr("nope.sh")}), `monitor "nope.sh"`)
	require.NoError(t, add(cron.Change{Name: ptr("tea"), Schedule: ptr("30m"), Prompt: ptr("x")}))
	_, err = clerk.Do(t.Context(), Args{Action: "run", Job: "tea"})
	require.ErrorIs(t, err, ErrNoScheduler)
	_, err = clerk.Do(t.Context(), Args{Action: "tick"})
	require.ErrorIs(t, err, ErrNoScheduler)
	r, err := clerk.Do(t.Context(), Args{Action: "doctor"})
	require.NoError(t, err)
	require.Equal(t, view.IssueScheduler, r.Issues[0].Kind)
}
