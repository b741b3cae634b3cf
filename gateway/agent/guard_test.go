package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/sessions"
	"herald/tools"
)

func TestGuard_Note(t *testing.T) {
	failed, fine := tools.Result{IsError: true, Content: "no"}, tools.Result{Content: "yes"}
	call := func(name, args string) []sessions.ToolCall { return []sessions.ToolCall{{Name: name, Arguments: args}} }
	reads := func(name string) bool { return name == "read" }
	type step struct {
		name, args string
		result     tools.Result
		warns      string // part of the warning, empty for none
		stop       string
	}
	again := func(n int, s step) []step {
		out := make([]step, n)
		for i := range out {
			out[i] = s
		}
		return out
	}
	for name, steps := range map[string][]step{
		"the same failing call": {
			{"a", "1", failed, "", ""}, {"a", "1", failed, "very call of a has failed 2", ""}, {"a", "1", failed, "a has failed 3", ""},
			{"a", "1", failed, "failed 4", ""}, {"a", "1", failed, "failed 5", "a"}},
		"the same tool with other arguments": append(append([]step{{"a", "1", failed, "", ""}, {"a", "2", failed, "", ""}, {"a", "3", failed, "a has failed 3", ""}},
			step{"a", "4", failed, "4 times", ""}, step{"a", "5", failed, "5 times", ""}, step{"a", "6", failed, "6 times", ""}, step{"a", "7", failed, "7 times", ""}),
			step{"a", "8", failed, "8 times", "a"}),
		"a success begins again": {
			{"a", "1", failed, "", ""}, {"a", "1", fine, "", ""}, {"a", "1", failed, "", ""}, {"a", "1", failed, "failed 2", ""}},
		"other tools in between do not": {
			{"a", "1", failed, "", ""}, {"b", "1", fine, "", ""}, {"a", "1", failed, "failed 2", ""}},
		"reading the same again": {
			{"read", "1", fine, "", ""}, {"read", "1", fine, "the same result 2 times", ""}, {"read", "2", fine, "", ""}, {"read", "1", fine, "3 times", ""},
			{"read", "1", fine, "4 times", ""}, {"read", "1", fine, "5 times", "read"}},
		"reading after a change":   {{"read", "1", fine, "", ""}, {"a", "1", fine, "", ""}, {"read", "1", fine, "", ""}},
		"reading something new":    {{"read", "1", fine, "", ""}, {"read", "1", tools.Result{Content: "new"}, "", ""}},
		"changing again and again": again(20, step{"a", "1", fine, "", ""}),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(DefaultGuardrails(), reads)
			for i, s := range steps {
				warning, stop := g.note(call(s.name, s.args), []tools.Result{s.result})
				if s.warns == "" {
					require.Empty(t, warning, i)
				}
				require.Contains(t, warning, s.warns, i)
				require.Equal(t, s.stop, stop, i)
			}
		})
	}
	off := newGuard(Guardrails{}, nil)
	for range 50 {
		warning, stop := off.note(call("a", "1"), []tools.Result{failed})
		require.Empty(t, warning+stop)
	}
}

func TestCooldown(t *testing.T) {
	now := time.Unix(1000, 0)
	var c Cooldown
	require.True(t, c.Cold(now))
	for i, want := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		c.Note(false, now)
		require.True(t, c.Failing())
		require.False(t, c.Cold(now.Add(want-time.Second)), i)
		now = now.Add(want)
		require.True(t, c.Cold(now), i)
	}
	c.Note(true, now)
	require.False(t, c.Failing())
	c.Note(false, now)
	require.True(t, c.Cold(now.Add(time.Minute)), "after a success the first step again")
	require.True(t, (*Cooldown)(nil).Cold(now))
}

func TestCompaction_Tail(t *testing.T) {
	row := func(role sessions.Role, tokens int) sessions.Message {
		return sessions.Message{Role: role, Kind: sessions.KindPlain, Content: string(make([]byte, 4*(tokens-4)))}
	}
	var rows []sessions.Message
	for range 10 {
		rows = append(rows, row(sessions.User, 10), row(sessions.Assistant, 90))
	}
	c := DefaultCompaction()
	c.Threshold, c.SmallThreshold, c.ThresholdTokens = 0.5, 0.5, 0
	require.Equal(t, 2, c.tail(rows, 1000), "100 of 500 tokens: one exchange")
	require.Equal(t, 4, c.tail(rows, 2000))
	require.Equal(t, 20, c.tail(rows, 1_000_000), "never more than protect_last_n")
	c.MinTailUser = 3
	require.Equal(t, 6, c.tail(rows, 1000), "three messages of people stay in any case")
	c.TargetRatio = 0
	require.Equal(t, 20, c.tail(rows, 1000), "full: all of protect_last_n")
	require.Zero(t, c.tail(nil, 1000))
}
