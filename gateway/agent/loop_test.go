package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/agent"
	"herald/gateway/model"
	"herald/sessions"
	"herald/tools"
)

// stage is a model, a bus and a turn in memory, played from a script.
type stage struct {
	t       *testing.T
	info    model.Info
	replies []func(ctx context.Context, req model.Request) (model.Response, error)
	got     []model.Request

	run  func(tools.Call) tools.Result
	ran  []tools.Call
	rows []sessions.Message // committed by this turn, in order

	waiting  []sessions.Message
	cancel   context.CancelCauseFunc
	compacts []string
	restarts int
	used     int
}

func (s *stage) Info() model.Info { return s.info }

func (s *stage) Stream(ctx context.Context, req model.Request, on func(model.Delta)) (model.Response, error) {
	require.Equal(s.t, req.Messages, model.Paired(req.Messages), "the conversation is sound")
	s.got = append(s.got, req)
	require.NotEmpty(s.t, s.replies, "the model is asked once too often: %q", script(req.Messages))
	reply := s.replies[0]
	s.replies = s.replies[1:]
	resp, err := reply(ctx, req)
	on(model.Delta{Text: resp.Text})
	return resp, err
}

func (s *stage) Batch(ctx context.Context, calls []tools.Call, _ func(int, tools.Result)) []tools.Result {
	var out []tools.Result
	for _, c := range calls {
		for _, before := range s.ran {
			require.NotEqual(s.t, before.ID, c.ID, "two calls of a turn have one id")
		}
		s.ran = append(s.ran, c)
		r := tools.Result{Content: "ran " + c.Name, Exit: tools.ExitOK}
		if s.run != nil {
			r = s.run(c)
		}
		out = append(out, r)
		row := result(string(c.ID), r.Content)
		row.ToolName = c.Name
		s.keep(row)
	}
	return out
}

func (s *stage) keep(row sessions.Message) sessions.Message {
	row.ID, row.Turn = sessions.RowID(1000+len(s.rows)), 7
	s.rows = append(s.rows, row)
	return row
}

func (s *stage) Generating(cancel context.CancelCauseFunc) { s.cancel = cancel }
func (s *stage) Delta(model.Delta)                         {}
func (s *stage) Restart()                                  { s.restarts++ }
func (s *stage) Used(model.Usage, int)                     { s.used++ }

func (s *stage) Answer(_ context.Context, r model.Response) (sessions.Message, error) {
	row := answer(r.Text)
	for _, c := range r.ToolCalls {
		row.ToolCalls = append(row.ToolCalls, sessions.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return s.keep(row), nil
}

func (s *stage) Results(a sessions.Message) (out []sessions.Message) {
	for _, c := range a.ToolCalls {
		for _, row := range slices.Backward(s.rows) {
			if row.ToolCallID == c.ID {
				out = append(out, row)
				break
			}
		}
	}
	return out
}

func (s *stage) Absorb(context.Context) ([]sessions.Message, error) {
	var out []sessions.Message
	for _, row := range s.waiting {
		out = append(out, s.keep(row))
	}
	s.waiting = nil
	return out, nil
}

func (s *stage) Compact(_ context.Context, upTo sessions.RowID, keep []sessions.RowID, summary string) ([]sessions.Message, error) {
	s.compacts = append(s.compacts, summary)
	return []sessions.Message{of(sessions.KindSummary, user(summary)), user("the newest question")}, nil
}

func says(text string) func(context.Context, model.Request) (model.Response, error) {
	return func(context.Context, model.Request) (model.Response, error) {
		return model.Response{Text: text, Usage: model.Usage{Input: 10}}, nil
	}
}

func fails(kind model.Kind) func(context.Context, model.Request) (model.Response, error) {
	return func(context.Context, model.Request) (model.Response, error) {
		return model.Response{}, &model.Error{Kind: kind, Provider: "x", Err: errors.New("scripted")}
	}
}

// calls asks for tools, written as "id name" or "id name arguments".
func calls(list ...string) func(context.Context, model.Request) (model.Response, error) {
	return func(context.Context, model.Request) (model.Response, error) {
		var resp model.Response
		for _, c := range list {
			parts := append(strings.SplitN(c, " ", 3), "{}")
			resp.ToolCalls = append(resp.ToolCalls, model.ToolCall{ID: parts[0], Name: parts[1], Arguments: parts[2]})
		}
		return resp, nil
	}
}

func perform(t *testing.T, s *stage, limits agent.Limits, in agent.Input) (agent.Outcome, error) {
	t.Helper()
	s.t, s.info = t, model.Info{Provider: "x", Name: "m", Context: 100_000}
	in.Turn, in.System = 7, "system"
	if in.History == nil {
		in.History = []sessions.Message{user("go")}
	}
	loop := agent.Loop{Model: s, Bus: s, Limits: limits}
	return loop.Run(t.Context(), s, in)
}

func replies(list ...func(context.Context, model.Request) (model.Response, error)) *stage {
	return &stage{replies: list}
}

func last(req model.Request) string { return script(req.Messages)[len(req.Messages)-1] }

func TestLoop_RunsCallsUntilThereIsAnAnswer(t *testing.T) {
	s := replies(calls("a look", "b read"), calls("c look"), says("done"))
	out, err := perform(t, s, agent.DefaultLimits(), agent.Input{})
	require.NoError(t, err)
	require.Equal(t, "done", out.Response.Text)
	require.Equal(t, 3, out.Steps)
	require.Equal(t, 3, out.ToolCalls)
	require.Equal(t, 3, s.used)
	require.Equal(t, []string{"u: go", "a[a][b]: ", "t(a): ran look", "t(b): ran read", "a[c]: ", "t(c): ran look"}, script(s.got[2].Messages))
	require.Len(t, out.Rows, 6)
	require.Equal(t, 6, out.LastRows)
}

func TestLoop_TheStepBudgetEndsInAClosingAnswer(t *testing.T) {
	limits := agent.DefaultLimits()
	limits.MaxSteps = 2
	closing := func(ctx context.Context, req model.Request) (model.Response, error) {
		require.Contains(t, req.Ephemeral, "used all your steps")
		resp, _ := calls("z look")(ctx, req)
		resp.Text = "half of it"
		return resp, nil
	}
	s := replies(calls("a look"), calls("b look"), closing)
	out, err := perform(t, s, limits, agent.Input{})
	require.NoError(t, err)
	require.True(t, out.Exhausted)
	require.Equal(t, "half of it", out.Response.Text)
	require.Empty(t, out.Response.ToolCalls, "a call in the closing answer is not run")
	require.Len(t, s.ran, 2)
	require.Empty(t, s.got[1].Ephemeral)
}

// A model that fails the same call again and again is told so, then asked to close.
func TestLoop_GoingRoundInCirclesEnds(t *testing.T) {
	s := &stage{run: func(tools.Call) tools.Result {
		return tools.Result{Content: "no", IsError: true, Exit: tools.ExitError}
	}}
	for i := range 5 {
		s.replies = append(s.replies, calls(fmt.Sprint(i, " look")))
	}
	s.replies = append(s.replies, says("I give up"))
	out, err := perform(t, s, agent.DefaultLimits(), agent.Input{})
	require.NoError(t, err)
	require.Equal(t, "look", out.Looped)
	require.Empty(t, s.got[1].Ephemeral)
	require.Contains(t, s.got[2].Ephemeral, "failed 2 times")
	require.Contains(t, s.got[5].Ephemeral, "keep repeating")
}

func TestLoop_ARequestThatIsTooLongIsShortened(t *testing.T) {
	limits := agent.DefaultLimits()
	long := func() []sessions.Message {
		var rows []sessions.Message
		for i := range 20 {
			rows = append(rows, user(fmt.Sprint("question ", i)), answer("answer"))
		}
		return numbered(append(rows, user("the newest question"))...)
	}
	s := replies(fails(model.ContextLength), says("they asked a lot"), says("done"))
	out, err := perform(t, s, limits, agent.Input{History: long()})
	require.NoError(t, err)
	require.Equal(t, "done", out.Response.Text)
	require.Len(t, s.compacts, 1)
	require.Contains(t, s.compacts[0], "they asked a lot")
	require.Equal(t, "u: "+s.compacts[0]+"\n\nthe newest question", last(s.got[2]))

	t.Run("a summary that fails becomes a plain list", func(t *testing.T) {
		s := replies(fails(model.ContextLength), fails(model.Down), says("done"))
		_, err := perform(t, s, limits, agent.Input{History: long()})
		require.NoError(t, err)
		require.Contains(t, s.compacts[0], "user: question 3")
	})
	t.Run("not forever", func(t *testing.T) {
		s := replies(fails(model.ContextLength), says("summary"), fails(model.ContextLength))
		_, err := perform(t, s, limits, agent.Input{History: long()})
		var me *model.Error
		require.ErrorAs(t, err, &me)
		require.Equal(t, model.ContextLength, me.Kind, "what is left can't be shortened")
	})
	t.Run("at most MaxAttempts times", func(t *testing.T) {
		limits.Compaction.MaxAttempts = 0
		_, err := perform(t, replies(fails(model.ContextLength)), limits, agent.Input{History: long()})
		require.Error(t, err)
	})
}

func TestLoop_ShortensBeforeTheWindowIsFull(t *testing.T) {
	limits := agent.DefaultLimits()
	limits.Compaction.ProtectLast, limits.Compaction.TargetRatio = 2, 0
	rows := numbered(user("1"), answer("2"), user("3"), answer("4"), user("5"), answer("6"), user("7"), answer("8"), user("9"))
	full := agent.Input{History: rows, LastPrompt: 90_000, LastRows: len(rows)}
	s := replies(says("a summary"), says("done"))
	_, err := perform(t, s, limits, full)
	require.NoError(t, err)
	require.Len(t, s.compacts, 1)

	t.Run("a failed summary leaves it as it is for a while", func(t *testing.T) {
		now := time.Unix(0, 0)
		full.Now, full.Cooldown = func() time.Time { return now }, &agent.Cooldown{}
		s := replies(fails(model.Down), says("one"))
		_, err := perform(t, s, limits, full)
		require.NoError(t, err)
		require.Empty(t, s.compacts)
		_, err = perform(t, replies(says("two")), limits, full)
		require.NoError(t, err, "the model is not asked for a summary")
		now = now.Add(time.Minute)
		s = replies(says("a summary"), says("three"))
		_, err = perform(t, s, limits, full)
		require.NoError(t, err)
		require.Len(t, s.compacts, 1)
		require.False(t, full.Cooldown.Failing())
	})
}

// A correction that comes while the model writes starts the answer again with it.
func TestLoop_ARedirectStartsTheAnswerOver(t *testing.T) {
	s := &stage{}
	s.replies = []func(context.Context, model.Request) (model.Response, error){
		func(ctx context.Context, _ model.Request) (model.Response, error) {
			s.waiting = []sessions.Message{user("in French")}
			s.cancel(agent.ErrRedirected)
			<-ctx.Done()
			return model.Response{}, context.Cause(ctx)
		}, says("voilà"),
	}
	out, err := perform(t, s, agent.DefaultLimits(), agent.Input{})
	require.NoError(t, err)
	require.Equal(t, "voilà", out.Response.Text)
	require.Equal(t, "u: go\n\nin French", last(s.got[1]))
	require.Equal(t, 1, out.Steps, "a call that was cut off is no step")
}

// What arrives with the last word of an answer does not throw the answer away: it waits for the next turn.
func TestLoop_ACompleteAnswerStandsThoughACorrectionWaits(t *testing.T) {
	s := &stage{}
	s.replies = []func(context.Context, model.Request) (model.Response, error){
		func(context.Context, model.Request) (model.Response, error) {
			s.waiting = []sessions.Message{user("in French")}
			return model.Response{Text: "there"}, nil
		},
	}
	out, err := perform(t, s, agent.DefaultLimits(), agent.Input{})
	require.NoError(t, err)
	require.Equal(t, "there", out.Response.Text)
	require.Len(t, s.got, 1)
	require.Len(t, s.waiting, 1)
}

func TestLoop_ASteerGoesBehindTheRunningCalls(t *testing.T) {
	s := replies(calls("a look"), says("done"))
	s.run = func(tools.Call) tools.Result {
		s.waiting = []sessions.Message{of(sessions.KindSteer, user("in red"))}
		return tools.Result{Content: "blue"}
	}
	_, err := perform(t, s, agent.DefaultLimits(), agent.Input{})
	require.NoError(t, err)
	require.Equal(t, "t(a): blue\n\n[Note from the user while you were working: in red]", last(s.got[1]))
}

func TestLoop_EmptyAnswersAreAskedForAgain(t *testing.T) {
	s := replies(says(""), says(" \n"), says("done"))
	out, err := perform(t, s, agent.DefaultLimits(), agent.Input{})
	require.NoError(t, err)
	require.Equal(t, "done", out.Response.Text)
	require.Equal(t, 2, s.restarts)
	_, err = perform(t, replies(says(""), says(""), says("")), agent.DefaultLimits(), agent.Input{})
	var me *model.Error
	require.ErrorAs(t, err, &me)
	require.Equal(t, model.Invalid, me.Kind)
}

// What a model writes as arguments is mended where that can be told, and goes to the bus as it is elsewhere: its
// answer tells the model what is wrong.
func TestLoop_MalformedArguments(t *testing.T) {
	s := replies(calls(`a look {"path": "x",}`, `b look`, `c look {{{`), says("done"))
	s.replies[0] = func(context.Context, model.Request) (model.Response, error) {
		return model.Response{ToolCalls: []model.ToolCall{{ID: "a", Name: "look", Arguments: `{"path": "x",}`}, {ID: "b", Name: "look"},
			{ID: "c", Name: "look", Arguments: "no JSON at all"}}}, nil
	}
	_, err := perform(t, s, agent.DefaultLimits(), agent.Input{})
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"x"}`, string(s.ran[0].Args))
	require.JSONEq(t, `{}`, string(s.ran[1].Args))
	require.Equal(t, json.RawMessage("no JSON at all"), s.ran[2].Args)
}

// Providers omit ids, repeat them in one answer, and count from zero in the next one; the stage refuses repetitions.
func TestLoop_CallIDsAreUniqueInATurn(t *testing.T) {
	noIDs := func(context.Context, model.Request) (model.Response, error) {
		return model.Response{ToolCalls: []model.ToolCall{{Name: "look"}, {Name: "look"}}}, nil
	}
	earlier := append(numbered(user("before"), answer("", "0"), result("0", "x"), answer("yes")), user("go"))
	s := replies(calls("0 look", "0 look"), calls("0 look", "1 look"), noIDs, noIDs, says("done"))
	_, err := perform(t, s, agent.DefaultLimits(), agent.Input{History: earlier})
	require.NoError(t, err)
	require.Len(t, s.ran, 8)
	require.Equal(t, tools.CallID("0"), s.ran[0].ID, "an id that is free is kept")
}

func TestLoop_ResumesTheCallsOfACrashedTurn(t *testing.T) {
	asked := answer("", "done", "lost", "read", "never")
	asked.Turn = 7
	asked.ToolCalls[2].Name = "read"
	finished := result("done", "it is done")
	finished.Turn = 7
	in := agent.Input{History: []sessions.Message{user("go"), asked, finished}, RunAgain: func(name string) bool { return name == "read" },
		Calls: []sessions.CallRow{{Call: "done", State: sessions.CallFinished}, {Call: "lost", State: sessions.CallStarted}, {Call: "read", State: sessions.CallStarted}}}
	s := replies(calls("lost look"), says("all done"))
	_, err := perform(t, s, agent.DefaultLimits(), in)
	require.NoError(t, err)
	require.Equal(t, []string{"u: go", "a[done][lost][read][never]: ", "t(done): it is done", "t(lost): " + agent.UnknownOutcome,
		"t(read): ran read", "t(never): ran look"}, script(s.got[0].Messages))
	require.Equal(t, []tools.CallID{"read", "never"}, []tools.CallID{s.ran[0].ID, s.ran[1].ID})
	require.NotEqual(t, tools.CallID("lost"), s.ran[2].ID, "the journal knows that id already")

	t.Run("an earlier turn's hole is left alone", func(t *testing.T) {
		asked.Turn = 6
		in.History = []sessions.Message{user("go"), asked, answer("sorry"), user("again")}
		s := replies(says("done"))
		_, err := perform(t, s, agent.DefaultLimits(), in)
		require.NoError(t, err)
		require.Empty(t, s.ran)
	})
}

func TestLoop_EndsWithTheContext(t *testing.T) {
	s := &stage{t: t, info: model.Info{Context: 1000}}
	ctx, cancel := context.WithCancelCause(t.Context())
	s.replies = []func(context.Context, model.Request) (model.Response, error){
		func(ctx context.Context, _ model.Request) (model.Response, error) {
			cancel(errors.New("stopped by a person"))
			return model.Response{}, ctx.Err()
		},
	}
	loop := agent.Loop{Model: s, Bus: s, Limits: agent.DefaultLimits()}
	_, err := loop.Run(ctx, s, agent.Input{Turn: 7, History: []sessions.Message{user("go")}})
	require.EqualError(t, err, "stopped by a person")
}

func TestLoop_DatesMessagesOfPeople(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	row := user("go")
	row.At = at
	s := replies(says("done"))
	_, err := perform(t, s, agent.DefaultLimits(), agent.Input{History: []sessions.Message{row}, Timestamps: true,
		Now: func() time.Time { return at }})
	require.NoError(t, err)
	require.Equal(t, "u: [2026-03-04 05:06 UTC] go", last(s.got[0]))
}
