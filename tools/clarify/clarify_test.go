package clarify

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// person answers; it notes what it was asked.
type person struct {
	answer   string
	err      error
	wait     time.Duration
	question string
	choices  []string
	asked    int
}

func (p *person) Ask(ctx context.Context, _ tools.Call, question string, choices []string) (string, error) {
	p.asked++
	p.question, p.choices = question, choices
	select {
	case <-time.After(p.wait):
		return p.answer, p.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func dispatch(t *testing.T, p *person, ctx context.Context, args string, unattended bool) tools.Result {
	t.Helper()
	r := tools.NewRegistry(tools.RegistryOptions{})
	require.NoError(t, r.Register(New(p)))
	return tools.NewBus(tools.Options{Registry: r}).Dispatch(ctx, tools.Call{ID: "1", Name: Name, Args: json.RawMessage(args),
		Caller: tools.Caller{Unattended: unattended}})
}

func TestClarify_Asks(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		choices    []string
		want       string
	}{
		{"open", `{"question":" Which one? "}`, nil, `{"question":"Which one?","user_response":"the red"}`},
		{"choices", `{"question":"Which one?","choices":["red"," blue ","red",""]}`, []string{"red", "blue"}, `{"question":"Which one?","choices_offered":["red","blue"],"user_response":"the red"}`},
		{"choices as text", `{"question":"Which one?","choices":"[\"red\",\"blue\"]"}`, []string{"red", "blue"}, `{"question":"Which one?","choices_offered":["red","blue"],"user_response":"the red"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &person{answer: " the red\n"}
			got := dispatch(t, p, t.Context(), tt.args, false)
			require.Equal(t, tools.ExitOK, got.Exit, got.Content)
			require.Equal(t, "Which one?", p.question)
			require.Equal(t, tt.choices, p.choices)
			require.JSONEq(t, tt.want, got.Content)
		})
	}
}

func TestClarify_Refuses(t *testing.T) {
	for _, tt := range []struct {
		args       string
		unattended bool
		says       string
	}{
		{`{}`, false, "question"},
		{`{"question":"  "}`, false, "blank"},
		{`{"question":"x","choices":["1","2","3","4","5"]}`, false, "4 items or fewer"},
		{`{"question":"` + strings.Repeat("x", 2001) + `"}`, false, "2000 characters"},
		{`{"question":"x","choices":["` + strings.Repeat("x", 201) + `"]}`, false, "200 characters"},
		{`{"question":"x","other":1}`, false, "choices, question"},
		{`{"question":"x"}`, true, "nobody can answer"},
	} {
		p := &person{wait: time.Hour}
		got := dispatch(t, p, t.Context(), tt.args, tt.unattended)
		require.True(t, got.IsError, tt.args)
		require.Contains(t, got.Content, tt.says)
		require.Zero(t, p.asked)
	}
	got := dispatch(t, &person{err: errors.New("chat is gone")}, t.Context(), `{"question":"x"}`, false)
	require.Equal(t, tools.ExitError, got.Exit)
	require.Contains(t, got.Content, "chat is gone")
}

func TestClarify_WaitsWithoutLimitAndStopsWhenCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := dispatch(t, &person{answer: "yes", wait: 48 * time.Hour}, t.Context(), `{"question":"x"}`, false)
		require.Equal(t, tools.ExitOK, got.Exit)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got = dispatch(t, &person{wait: 48 * time.Hour}, ctx, `{"question":"x"}`, false)
		require.Equal(t, tools.ExitCancelled, got.Exit)
	})
}

func TestClarify_Spec(t *testing.T) {
	s := New(&person{}).Spec
	require.True(t, s.Resumable && s.Hidden && s.Parallel == tools.Barrier && s.Timeout < 0 && !s.ReadOnly)
}
