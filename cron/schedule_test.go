package cron

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

func TestParse_Forms(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	now := time.Date(2026, 11, 29, 12, 0, 30, 0, time.UTC)
	for text, want := range map[string]Schedule{
		"every 30m":                  {Kind: Interval, Every: 30 * time.Minute, Display: "every 30m"},
		"30m":                        {Kind: Interval, Every: 30 * time.Minute, Display: "every 30m"},
		" Every  2 Hours ":           {Kind: Interval, Every: 2 * time.Hour, Display: "every 120m"},
		"every hour":                 {Kind: Interval, Every: time.Hour, Display: "every 60m"},
		"every minute":               {Kind: Interval, Every: time.Minute, Display: "every 1m"},
		"1d":                         {Kind: Interval, Every: 24 * time.Hour, Display: "every 1440m"},
		"every day at 9am":           {Kind: Clock, Expr: "0 9 * * *", Display: "every day at 9am"},
		"daily at 14:05":             {Kind: Clock, Expr: "5 14 * * *", Display: "daily at 14:05"},
		"Every weekday at 9":         {Kind: Clock, Expr: "0 9 * * 1-5", Display: "Every weekday at 9"},
		"weekends at noon":           {Kind: Clock, Expr: "0 12 * * 0,6", Display: "weekends at noon"},
		"every mon, wed and fri 7pm": {Kind: Clock, Expr: "0 19 * * 1,3,5", Display: "every mon, wed and fri 7pm"},
		"sunday and sun midnight":    {Kind: Clock, Expr: "0 0 * * 0", Display: "sunday and sun midnight"},
		"every tuesdays at 12:30am":  {Kind: Clock, Expr: "30 0 * * 2", Display: "every tuesdays at 12:30am"},
		"*/5 9-17 * * mon-fri":       {Kind: Clock, Expr: "*/5 9-17 * * mon-fri", Display: "*/5 9-17 * * mon-fri"},
		"0 9 * * 7":                  {Kind: Clock, Expr: "0 9 * * 7", Display: "0 9 * * 7"},
		"2027-01-31T09:00":           {Kind: Once, At: time.Date(2027, 1, 31, 8, 0, 0, 0, time.UTC), Display: "2027-01-31T09:00"},
		"2027-01-31 09:00:10":        {Kind: Once, At: time.Date(2027, 1, 31, 8, 0, 10, 0, time.UTC), Display: "2027-01-31 09:00:10"},
		"2027-01-31T09:00:00-05:00":  {Kind: Once, At: time.Date(2027, 1, 31, 14, 0, 0, 0, time.UTC), Display: "2027-01-31T09:00:00-05:00"},
		"in 2h":                      {Kind: Once, At: time.Date(2026, 11, 29, 14, 0, 30, 0, time.UTC), Display: "in 2h"},
		"2026-11-29T13:00":           {Kind: Once, At: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Display: "2026-11-29T13:00"}, // 30 s ago, inside the grace
	} {
		t.Run(text, func(t *testing.T) {
			got, err := Parse(text, now, berlin)
			require.NoError(t, err)
			b, err := json.Marshal(got)
			require.NoError(t, err)
			var stored Schedule
			require.NoError(t, json.Unmarshal(b, &stored))
			require.Equal(t, want, stored, "what is stored")
			back, err := stored.Restore()
			require.NoError(t, err)
			require.Equal(t, got, back, "what comes back from the store")
		})
	}
}

func TestParse_WhatIsWrongIsNamed(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for text, says := range map[string]string{
		"":                     "empty",
		"soon":                 "none of the forms",
		"every 0m":             "at least 1 minute",
		"every 99999999999d":   "at most 3650 days",
		"every 5 years":        "no duration",
		"every weekday at 25":  "no duration",
		"every mon at 13pm":    "no duration",
		"61 9 * * *":           "minute 0-59",
		"0 9 * * 8":            "weekday 0-7",
		"0 9 31 2 *":           "no such day in any year",
		"0 9 * * * *":          "5 fields",
		"2027-02-30T09:00":     "no date and time that exists",
		"2026-11-29T11:57:00Z": "has passed",
		"in never":             "no duration",
		", at 9":               "none of the forms",
		"every , and":          "no duration",
		"0 9 * * 1-7/0":        "weekday 0-7",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := Parse(text, now, time.UTC)
			var bad *Error
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, says)
			require.Equal(t, text, bad.Text)
		})
	}
}

func TestRestore_RefusesWhatNobodyWrote(t *testing.T) {
	for _, s := range []Schedule{{}, {Kind: Once}, {Kind: Interval}, {Kind: Interval, Every: 90 * time.Second}, {Kind: Clock, Expr: "9 *"},
		{Kind: "weekly"}} {
		_, err := s.Restore()
		require.Error(t, err, "%+v", s)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"every 30m", "0 9 * * 1-5", "every mon and tue at 9:30pm", "2027-01-31T09:00", "in 2h", "*/7 * 1,15 jan-mar 5-7/2"} {
		f.Add(s)
	}
	now := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, now, berlin)
		if err != nil {
			return
		}
		base := now
		for range 3 {
			next, ok := s.Next(base, berlin)
			if !ok {
				require.Equal(t, Once, s.Kind)
				return
			}
			require.True(t, next.After(base), "%q: %s is not after %s", text, next, base)
			base = next
		}
	})
}
