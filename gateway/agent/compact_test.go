package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/gateway/agent"
	"herald/gateway/model"
	"herald/sessions"
)

func numbered(rows ...sessions.Message) []sessions.Message {
	for i := range rows {
		rows[i].ID = sessions.RowID(i + 1)
	}
	return rows
}

func TestPlanSpan(t *testing.T) {
	talk := numbered(user("1"), answer("2"), user("3"), answer("4"), user("5"), answer("6"))
	tools := numbered(user("1"), answer("", "a", "b"), result("a", ""), result("b", ""), answer("5"), user("6"), answer("", "c"),
		result("c", ""), answer("9"))
	heard := numbered(user("1"), answer("2"), user("3"), answer("", "a"), of(sessions.KindObserved, user("5")), result("a", ""), answer("7"))
	for _, c := range []struct {
		name        string
		rows        []sessions.Message
		first, last int
		keep, old   []sessions.RowID // nil old: nothing to do
	}{
		{"the middle", talk, 1, 2, []sessions.RowID{1}, []sessions.RowID{2, 3, 4}},
		{"the newest question stays", talk, 0, 0, nil, []sessions.RowID{1, 2, 3, 4}},
		{"questions that wait together stay together", numbered(user("1"), answer("2"), user("3"), user("4"), user("5")), 0, 1, nil, []sessions.RowID{1, 2}},
		{"one row is not worth it", talk, 3, 2, nil, nil},
		{"nothing but what is protected", talk, 10, 10, nil, nil},
		{"results stay with a protected call", tools, 2, 4, []sessions.RowID{1, 2, 3, 4}, nil},
		{"a cut in the results moves before their call", tools, 0, 6, nil, nil},
		{"behind the results", tools, 0, 4, nil, []sessions.RowID{1, 2, 3, 4, 5}},
		{"what was heard is no question, and no cut", heard, 0, 3, nil, []sessions.RowID{1, 2}},
		{"nobody has spoken", numbered(of(sessions.KindMirror, answer("1")), of(sessions.KindMirror, answer("2"))), 0, 0, nil, []sessions.RowID{1, 2}},
		{"empty", nil, 3, 20, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			span, ok := agent.PlanSpan(c.rows, c.first, c.last)
			require.Equal(t, c.old != nil, ok)
			if !ok {
				return
			}
			var old []sessions.RowID
			for _, row := range span.Old {
				old = append(old, row.ID)
			}
			require.Equal(t, c.keep, span.Keep)
			require.Equal(t, c.old, old)
			require.Equal(t, old[len(old)-1], span.UpTo)
		})
	}
}

// A compaction never tears a call from its results, and never takes away what the person has asked for.
func TestPlanSpan_KeepsPairsTogetherAndTheNewestQuestion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rowsOf(t)
		span, ok := agent.PlanSpan(rows, rapid.IntRange(0, 8).Draw(t, "first"), rapid.IntRange(0, 25).Draw(t, "last"))
		if !ok {
			return
		}
		taken := map[sessions.RowID]bool{}
		for _, row := range span.Old {
			taken[row.ID] = true
		}
		part := func(id sessions.RowID) int {
			switch {
			case taken[id]:
				return 1
			case id <= span.UpTo:
				return 0
			}
			return 2
		}
		require.GreaterOrEqual(t, len(span.Old), 2)
		require.Equal(t, int(span.UpTo), len(span.Old)+len(span.Keep), "every row up to the last one is summarised or kept")
		answered := true
		for i := len(rows) - 1; i >= 0; i-- {
			row := rows[i]
			if row.Role == sessions.Assistant && row.Kind == sessions.KindPlain && len(row.ToolCalls) == 0 {
				break
			}
			if row.Role == sessions.User && row.Kind == sessions.KindPlain {
				answered = answered && !taken[row.ID]
			}
		}
		require.True(t, answered, "a question without an answer is never summarised")
		newest := sessions.RowID(0)
		for i, row := range rows {
			if row.Role == sessions.User && row.Kind == sessions.KindPlain {
				newest = row.ID
			}
			if len(row.ToolCalls) == 0 {
				continue
			}
			for _, other := range rows[i+1:] {
				if len(other.ToolCalls) > 0 {
					break
				}
				if other.Role == sessions.Tool {
					require.Equal(t, part(row.ID) == 1, part(other.ID) == 1, "call in row %d, result in row %d", row.ID, other.ID)
				}
			}
		}
		if newest > 0 {
			require.NotEqual(t, 1, part(newest), "the newest question is row %d", newest)
		}
	})
}

// teller is a model that gives one answer.
type teller struct {
	info model.Info
	text string
	err  error
	got  model.Request
}

func (m *teller) Info() model.Info { return m.info }

func (m *teller) Stream(_ context.Context, req model.Request, on func(model.Delta)) (model.Response, error) {
	m.got = req
	on(model.Delta{Text: m.text})
	return model.Response{Text: m.text}, m.err
}

func TestSummarise(t *testing.T) {
	rows := numbered(user("The key is under the mat."), answer("", "a"), result("a", "found it"), of(sessions.KindNotice, answer("restarted")))
	m := &teller{info: model.Info{Provider: "x", Context: 1000}, text: " They hid a key. \n"}
	text, err := agent.Summarise(t.Context(), m, rows, "keys")
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(text, "\nThey hid a key."), text)
	require.Contains(t, m.got.System, "keys")
	require.Contains(t, m.got.Messages[0].Text, "user: The key is under the mat.\nassistant called look {}\ntool: found it\n")
	require.NotContains(t, m.got.Messages[0].Text, "restarted")

	plain, err := agent.Summarise(t.Context(), &teller{info: model.Info{Provider: "demo"}, text: "never asked"}, rows, "")
	require.NoError(t, err)
	require.Contains(t, plain, "under the mat")
	for name, m := range map[string]*teller{"an error": {err: errors.New("down")}, "an empty answer": {text: " \n"}} {
		t.Run(name, func(t *testing.T) {
			text, err := agent.Summarise(t.Context(), m, rows, "")
			require.NoError(t, err)
			require.Equal(t, plain, text, "a plain list takes its place, the same each time")
		})
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	_, err = agent.Summarise(ended, &teller{err: context.Canceled}, rows, "")
	require.EqualError(t, err, "stopped")

	long := numbered(user(strings.Repeat("ä", 100_000)))
	_, err = agent.Summarise(t.Context(), m, long, "")
	require.NoError(t, err)
	require.LessOrEqual(t, len(m.got.Messages[0].Text), 3000+10, "what does not fit the model is cut")
}
