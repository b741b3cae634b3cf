package cron_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/cron"
)

func TestFindSentence(t *testing.T) {
	now := time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)
	for _, c := range []struct{ text, schedule, prompt string }{
		{"every weekday at 9 send me the news", "every weekday at 9", "send me the news"},
		{"Every Weekday at 9am, send me the news", "Every Weekday at 9am", "send me the news"},
		{"in 20 minutes remind me to call Bob", "in 20 minutes", "remind me to call Bob"},
		{"in half an hour: tea", "in 30m", "tea"},
		{"in an hour look at the oven", "in 1 hour", "look at the oven"},
		{"each day at noon eat", "every day at noon", "eat"},
		{"hourly check the build", "every hour", "check the build"},
		{"0 9 * * 1-5 | prompt with * stars", "0 9 * * 1-5", "prompt with * stars"},
		{"0 9 * * 1-5 tell me the news", "0 9 * * 1-5", "tell me the news"},
		{"30m check the build", "30m", "check the build"},
		{"every 30 min check the build", "every 30 min", "check the build"},
		{"every 2 h water the plants", "every 2 h", "water the plants"},
		{"every monday, wednesday and friday at 9:30 pm write the log", "every monday, wednesday and friday at 9:30 pm", "write the log"},
		{"mon and thu 14:00 stand up", "mon and thu 14:00", "stand up"},
		{"2027-01-31T09:00 happy birthday", "2027-01-31T09:00", "happy birthday"},
		{"2027-01-31 09:00 happy birthday", "2027-01-31 09:00", "happy birthday"},
		{"remind me to call Bob in 10 minutes", "in 10 minutes", "remind me to call Bob"},
		{"tell me the time every 5 minutes", "every 5 minutes", "tell me the time"},
		{"remind me every weekday at 9 to stretch", "every weekday at 9", "remind me to stretch"},
		{"every minute tell me the time", "every minute", "tell me the time"},
		{"every day at 8 summarise\nthis:\n\n- a\n- b", "every day at 8", "summarise\nthis:\n\n- a\n- b"},
		{"every hour", "every hour", ""},
		{"at 9 send me the news", "at 9", "send me the news"},
		{"tomorrow at 8am, remind me that the train leaves", "tomorrow at 8am", "remind me that the train leaves"},
		{"remind me tomorrow at noon to eat", "tomorrow at noon", "remind me to eat"},
		{"call Bob today at 18:00", "today at 18:00", "call Bob"},
		{"look at 5 files every day at 9", "every day at 9", "look at 5 files"},
		{"every day at 9am 5 jokes please", "every day at 9am", "5 jokes please"},
	} {
		p, ok, err := cron.FindSentence(c.text, now, time.UTC)
		require.NoError(t, err, c.text)
		require.True(t, ok, c.text)
		require.Equal(t, cron.Sentence{c.schedule, c.prompt}, p, c.text)
	}
	for _, none := range []string{"", "hello", "remind me to rest for 5 minutes", "what happened in the meantime?", "buy milk", "every so often say hi"} {
		_, ok, err := cron.FindSentence(none, now, time.UTC)
		require.NoError(t, err, none)
		require.False(t, ok, none)
	}
	_, ok, err := cron.FindSentence("now and then | say hi", now, time.UTC)
	require.False(t, ok)
	var bad *cron.Error
	require.ErrorAs(t, err, &bad, "what stands before the bar is meant as a schedule")
}

// Whatever the sentence: the schedule is one, and no word of the rest is lost.
func TestFindSentence_LosesNoWord(t *testing.T) {
	now := time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		vocabulary := rapid.SampledFrom([]string{"every", "weekday", "at", "9", "in", "20", "minutes", "30m", "send", "me", "the", "news,", "*", "0", "and", "monday", "|", "\n", "ä", "daily"})
		text := strings.Join(rapid.SliceOfN(vocabulary, 0, 30).Draw(t, "words"), " ")
		p, ok, err := cron.FindSentence(text, now, time.UTC)
		if err != nil || !ok {
			return
		}
		_, err = cron.Parse(p.Schedule, now, time.UTC)
		require.NoError(t, err)
		count := func(s string) int {
			return len(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \n|,;:.-–", r) }))
		}
		require.Equal(t, count(text), count(p.Schedule)+count(p.Prompt), "%q %q", text, p)
	})
}
