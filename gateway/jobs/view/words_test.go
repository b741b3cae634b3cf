package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs/view"
	"herald/locales"
)

// What people read of a schedule, in both languages.
func TestScheduleWords(t *testing.T) {
	catalogs, err := locales.New(locales.Options{})
	require.NoError(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)
	for _, c := range []struct{ text, en, de string }{
		{"30m", "every 30 minutes", "alle 30 Minuten"},
		{"every hour", "every hour", "jede Stunde"},
		{"every minute", "every minute", "jede Minute"},
		{"every 90m", "every 1 hour 30 minutes", "alle 1 Stunde 30 Minuten"},
		{"every 1d", "every 24 hours", "alle 24 Stunden"},
		{"in 20 minutes", "once on Mon 2026-11-30 08:20", "einmal am Mo 30.11.2026 08:20"},
		{"2027-01-31T09:00", "once on Sun 2027-01-31 09:00", "einmal am So 31.01.2027 09:00"},
		{"every day at 9am", "every day at 9:00", "täglich um 9:00"},
		{"every weekday at 9:05", "on weekdays at 9:05", "werktags (Mo–Fr) um 9:05"},
		{"0 9 * * mon-fri", "on weekdays at 9:00", "werktags (Mo–Fr) um 9:00"},
		{"weekends at noon", "on weekends at 12:00", "am Wochenende um 12:00"},
		{"every monday at 14:00", "every Monday at 14:00", "jeden Montag um 14:00"},
		{"mon, wed and fri 14:00", "every Monday, Wednesday and Friday at 14:00", "jeden Montag, Mittwoch und Freitag um 14:00"},
		{"30 6 1 * *", "on day 1 of every month at 6:30", "am 1. jedes Monats um 6:30"},
		{"*/15 * * * *", "every 15 minutes", "alle 15 Minuten"},
		{"* * * * *", "every minute", "jede Minute"},
		{"0 * * * *", "every hour", "jede Stunde"},
		{"30 * * * *", "every hour at minute 30", "jede Stunde zur Minute 30"},
		{"*/7 * * * *", "by the expression */7 * * * *", "nach dem Ausdruck */7 * * * *"},
		{"0 9-17 * * 1-5", "by the expression 0 9-17 * * 1-5", "nach dem Ausdruck 0 9-17 * * 1-5"},
		{"0 9 1 6 *", "by the expression 0 9 1 6 *", "nach dem Ausdruck 0 9 1 6 *"},
		{"0 9 1 * 1", "by the expression 0 9 1 * 1", "nach dem Ausdruck 0 9 1 * 1"},
		{"0 9 * * 1#2", "", ""},
	} {
		s, err := cron.Parse(c.text, now, berlin)
		if c.en == "" {
			require.Error(t, err, c.text)
			continue
		}
		require.NoError(t, err, c.text)
		require.Equal(t, c.en, view.ScheduleWords(catalogs.Printer("en"), s, berlin), c.text)
		require.Equal(t, c.de, view.ScheduleWords(catalogs.Printer("de"), s, berlin), c.text)
	}
}

func TestNextWords(t *testing.T) {
	catalogs, err := locales.New(locales.Options{})
	require.NoError(t, err)
	lordHowe, err := time.LoadLocation("Australia/Lord_Howe")
	require.NoError(t, err)
	at := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	en := catalogs.Printer("en")
	require.Empty(t, view.NextWords(en, nil, lordHowe))
	require.Equal(t, `Next time (Australia/Lord_Howe): Tue 2026-12-01 09:00`, view.NextWords(en, []time.Time{at}, lordHowe))
	require.Equal(t, `Nächste Male (UTC): Mo 30.11.2026 22:00, Mo 30.11.2026 23:00`, view.NextWords(catalogs.Printer("de"), []time.Time{at, at.Add(time.Hour)}, time.UTC))
	require.NotEqual(t, "Local", view.ZoneName(time.Local, at), "the machine's zone has no name that people know")
}
