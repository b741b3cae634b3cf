package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dstZones change their clocks in ways of their own: by an hour at night, by half an hour, and for Ramadan.
var dstZones = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"}

// every returns the instants of a schedule in (from, to].
func every(t *testing.T, text string, from, to time.Time, loc *time.Location) []time.Time {
	t.Helper()
	s, err := Parse(text, from, loc)
	require.NoError(t, err)
	var out []time.Time
	for base := from; ; {
		next, ok := s.Next(base, loc)
		if !ok || next.After(to) {
			return out
		}
		if !next.After(base) || next.Location() != time.UTC {
			t.Fatalf("next is %s, base %s", next, base)
		}
		out, base = append(out, next), next
	}
}

// TestNext_TwoYearsOfClockChanges walks two years minute by minute, with a table of what the clock shows, and compares
// every schedule with what a person would expect of that clock.
func TestNext_TwoYearsOfClockChanges(t *testing.T) {
	for _, name := range dstZones {
		t.Run(name, func(t *testing.T) {
			loc := zone(t, name)
			from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			to := time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
			changes := 0
			for at := from; at.Before(to); {
				_, end := at.In(loc).ZoneBounds()
				if end.IsZero() || end.After(to) {
					break
				}
				changes, at = changes+1, end
			}
			require.GreaterOrEqual(t, changes, 4, "the zone changes its clock twice a year")
			clock := readClock(from, to, loc)
			for quarter := range 96 {
				hour, minute := quarter/4, quarter%4*15
				t.Run(fmt.Sprintf("%02d:%02d", hour, minute), func(t *testing.T) {
					daily(t, every(t, fmt.Sprintf("%d %d * * *", minute, hour), from, to, loc), quarter, clock, from, to, loc)
				})
			}
			t.Run("every weekday", func(t *testing.T) {
				for _, at := range every(t, "every weekday at 2:30am", from, to, loc) {
					day := at.In(loc).Weekday()
					require.True(t, day >= time.Monday && day <= time.Friday, "%s is a %s", at, day)
				}
			})
			t.Run("every quarter of an hour", func(t *testing.T) {
				last := from
				for _, at := range every(t, "*/15 * * * *", from, to, loc) {
					if at.In(loc).Minute()%15 != 0 || at.Sub(last) != 15*time.Minute {
						t.Fatalf("%s after %s", at.In(loc), last.In(loc))
					}
					last = at
				}
			})
			t.Run("interval", func(t *testing.T) {
				last := from
				for _, at := range every(t, "every 90m", from, from.AddDate(1, 0, 0), loc) {
					require.Equal(t, 90*time.Minute, at.Sub(last))
					last = at
				}
			})
		})
	}
}

// calendar holds, for each day of a zone and each quarter of an hour, the first minute at which the clock of that day shows
// that time or a later one.
type calendar map[string]*[96]time.Time

// readClock walks the minutes from one instant to another and reads the zone's clock.
func readClock(from, to time.Time, loc *time.Location) calendar {
	c := calendar{}
	var key string
	last := 0
	for at := from.Add(-24 * time.Hour); at.Before(to.Add(24 * time.Hour)); at = at.Add(time.Minute) {
		shown := at.In(loc)
		if shown.Day() != last {
			key, last = shown.Format(time.DateOnly), shown.Day()
		}
		day := c[key]
		if day == nil {
			day = new([96]time.Time)
			c[key] = day
		}
		for q := (shown.Hour()*60 + shown.Minute()) / 15; q >= 0 && day[q].IsZero(); q-- {
			day[q] = at
		}
	}
	return c
}

// daily checks that a time of day comes once on each day of the zone's calendar, at that time, or at the end of the gap
// that leaves it out.
func daily(t *testing.T, got []time.Time, quarter int, clock calendar, from, to time.Time, loc *time.Location) {
	want := map[string]time.Time{}
	for day, firsts := range clock {
		if at := firsts[quarter]; at.After(from) && !at.After(to) {
			want[day] = at
		}
	}
	seen := map[string]bool{}
	for _, at := range got {
		day := at.In(loc).Format(time.DateOnly)
		if seen[day] || !want[day].Equal(at) {
			t.Fatalf("on %s at %s, want once and at %s", day, at.In(loc), want[day].In(loc))
		}
		seen[day] = true
	}
	require.Len(t, got, len(want), "a day is missing")
}

func TestNext_TheHoursThatPeopleAskAbout(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		require.NoError(t, err)
		return v.UTC()
	}
	for _, row := range []struct{ name, expr, base, want string }{
		{"repeated hour, from before it", "30 2 * * *", "2026-10-25T01:59:00+02:00", "2026-10-25T02:30:00+02:00"},
		{"repeated hour, after it ran: the next day", "30 2 * * *", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		{"repeated hour, asked in the second one: the next day", "30 2 * * *", "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00"},
		{"two instants in the repeated hour do not interleave", "0,30 2 * * *", "2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00"},
		{"gap hour comes at its end", "30 2 * * *", "2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00"},
		{"after the gap the clock is kept", "30 2 * * *", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		{"every hour goes through the repeated one", "0 * * * *", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"},
		{"every hour goes through the gap", "0 * * * *", "2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00"},
		{"hourly on one day of the year", "0 * 1 1 *", "2026-10-25T02:00:00+02:00", "2027-01-01T00:00:00+01:00"},
		{"leap day", "0 9 29 2 *", "2026-10-25T02:00:00+02:00", "2028-02-29T09:00:00+01:00"},
		{"7 is Sunday", "0 9 * * 5-7/2", "2026-11-28T12:00:00+01:00", "2026-11-29T09:00:00+01:00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := Parse(row.expr, at("2026-01-01T00:00:00Z"), berlin)
			require.NoError(t, err)
			next, ok := s.Next(at(row.base), berlin)
			require.True(t, ok)
			require.Equal(t, at(row.want), next)
		})
	}
	t.Run("a one-shot has one instant", func(t *testing.T) {
		s, err := Parse("in 1h", at("2026-01-01T00:00:00Z"), berlin)
		require.NoError(t, err)
		next, ok := s.Next(at("2026-01-01T00:00:00Z"), berlin)
		require.True(t, ok)
		require.Equal(t, at("2026-01-01T01:00:00Z"), next)
		_, ok = s.Next(next, berlin)
		require.False(t, ok)
	})
	t.Run("a naive time in a gap is the gap's end", func(t *testing.T) {
		s, err := Parse("2026-03-29T02:30", at("2026-01-01T00:00:00Z"), berlin)
		require.NoError(t, err)
		require.Equal(t, at("2026-03-29T03:00:00+02:00"), s.At)
	})
}

func BenchmarkNext(b *testing.B) {
	berlin := zone(b, "Europe/Berlin")
	for _, text := range []string{"0 9 * * 1-5", "*/15 * * * *", "every 30m", "0 9 29 2 *"} {
		b.Run(strings.ReplaceAll(text, " ", "_"), func(b *testing.B) {
			now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
			s, err := Parse(text, now, berlin)
			require.NoError(b, err)
			for b.Loop() {
				s.Next(now, berlin)
			}
		})
	}
}
