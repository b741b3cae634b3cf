package cron

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse_TodayAndTomorrow(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, c := range []struct{ now, text, want string }{
		{"2026-11-30T07:00:00Z", "tomorrow at 8am", "2026-12-01T07:00:00Z"},
		{"2026-11-30T07:00:00Z", "Tomorrow 8:30", "2026-12-01T07:30:00Z"},
		{"2026-11-30T07:00:00Z", "today at 18:00", "2026-11-30T17:00:00Z"},
		{"2026-11-30T07:00:00Z", "at 18:00 today", "2026-11-30T17:00:00Z"},
		{"2026-11-30T07:00:00Z", "at noon tomorrow", "2026-12-01T11:00:00Z"},
		{"2026-11-30T07:00:00Z", "at 8:01", "2026-11-30T07:01:00Z"},
		{"2026-11-30T07:00:00Z", "at 8", "2026-12-01T07:00:00Z"},
		{"2026-11-30T23:30:00Z", "tomorrow at 9", "2026-12-02T08:00:00Z"},    // it is the first of December there
		{"2027-03-27T12:00:00Z", "tomorrow at 9", "2027-03-28T07:00:00Z"},    // the clocks go forward in the night
		{"2027-03-27T12:00:00Z", "tomorrow at 2:30", "2027-03-28T01:00:00Z"}, // a time that is left out: the end of the gap
		{"2026-12-31T12:00:00Z", "tomorrow at midnight", "2026-12-31T23:00:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		require.NoError(t, err)
		s, err := Parse(c.text, now, berlin)
		require.NoError(t, err, c.text)
		require.Equal(t, Once, s.Kind)
		require.Equal(t, c.want, s.At.Format(time.RFC3339), c.text)
	}
	now := time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)
	for _, bad := range []string{"today at 7", "tomorrow", "at", "at tomorrow", "tomorrow at 25:00", "18:00", "at 8 yesterday",
		"today at 8 tomorrow", "at at 8", ", at 9"} {
		_, err := Parse(bad, now, berlin)
		require.Error(t, err, bad)
	}
}
