package ask_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/gateway/model"
	rt "herald/gateway/router/routertest"
	"herald/gateway/turn/ask"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// room is a chat whose model calls one tool for each word of a message: "ask" asks a question, "run" wants an approval.
type room struct {
	*rt.Rig
	mu     sync.Mutex
	result []string
	calls  []tools.Call
}

func (r *room) note(call tools.Call, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result, r.calls = append(r.result, text), append(r.calls, call)
}

func (r *room) results() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.result)
}

func tool(name string, run func(ctx context.Context, call tools.Call) (string, error)) tools.Tool {
	return tools.Tool{Spec: tools.Spec{Name: name, Toolset: "test", Description: "test", Parallel: tools.Safe, Resumable: true, Timeout: -1,
		Parameters: json.RawMessage(`{"type":"object"}`)},
		Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
			text, err := run(ctx, call)
			return tools.Result{Content: text}, err
		}}
}

func within(t *testing.T, fn func(t *testing.T, r *room)) {
	t.Helper()
	r := &room{}
	question := tool("ask", func(ctx context.Context, call tools.Call) (string, error) {
		answer, err := r.Asker.Ask(ctx, call, "Which one?", []string{"red", "blue"})
		if err == nil {
			r.note(call, answer)
		}
		return answer, err
	})
	run := tool("run", func(ctx context.Context, call tools.Call) (string, error) {
		a, err := r.Asker.Approve(ctx, call, ask.Request{Command: "rm -rf secret-name", Preview: "rm -rf …", Kinds: []string{"recursive_delete"},
			Choices: []ask.Choice{ask.ChoiceOnce, ask.ChoiceSession, ask.ChoiceDeny}, Timeout: time.Minute})
		if err == nil {
			r.note(call, string(a.Choice)+" "+a.Reason)
		}
		return string(a.Choice), err
	})
	rt.Within(t, rt.Options{Tools: []tools.Tool{question, run}}, func(t *testing.T, rig *rt.Rig) {
		r.Rig = rig
		rig.Model.Answer = func(_ context.Context, req model.Request) (model.Response, error) {
			last := req.Messages[len(req.Messages)-1]
			resp := model.Response{Text: "done"}
			if last.Role == "user" {
				for i, word := range strings.Fields(last.Text) {
					resp.ToolCalls = append(resp.ToolCalls, model.ToolCall{ID: fmt.Sprint("c", i), Name: word, Arguments: `{}`})
				}
			}
			return resp, nil
		}
		fn(t, r)
	})
}

// open returns the ids of the questions in the store.
func (r *room) open() (ids []string) {
	r.View(func(v sessions.View) error {
		values, err := v.Values(sessions.SpaceQuestion)
		for _, value := range values {
			ids = append(ids, value.Name)
		}
		return err
	})
	return ids
}

func (r *room) waits() (out []ask.Approval) {
	r.View(func(v sessions.View) (err error) {
		out, err = ask.PendingApprovals(v)
		return err
	})
	return out
}

// decide writes a decision down and wakes the call, as a command does.
func (r *room) decide(id string, choice ask.Choice, reason string) error {
	var a ask.Approval
	var rows []*sessions.OutboxRow
	err := r.Store.Update(context.Background(), sessions.EdgeCommand, func(tx sessions.Tx) (err error) {
		a, rows, err = r.Asker.Decide(tx, id, choice, reason, "Ada")
		return err
	})
	if err == nil {
		r.Worker.Take(rows...)
		r.Asker.Wake(a)
		r.Settle()
	}
	return err
}

func TestAsk_AnswerIsTheNextMessage(t *testing.T) {
	for said, want := range map[string]string{"2": "blue", " 1 ": "red", "green, please": "green, please", "3": "3"} {
		t.Run(said, func(t *testing.T) {
			within(t, func(t *testing.T, r *room) {
				r.Say("a", "ask")
				require.Equal(t, "Which one?\n\nChoose one, or write an answer:", r.Chat.Last("a"))
				require.Len(t, r.open(), 1)
				r.Say("a", said)
				require.Equal(t, []string{want}, r.results())
				require.Equal(t, "done", r.Chat.Last("a"))
				require.Empty(t, r.open(), "the end of the turn forgets its questions")
				require.Equal(t, sessions.InboxDone, r.Inbox(2).State)
				require.NotContains(t, r.Transcript("a"), "user: "+said, "an answer is no message of its own")
				require.Equal(t, []string{"Which one?\n\nAnswer: " + want}, r.Chat.Edits(), "the buttons are taken away")
			})
		})
	}
}

func TestAsk_ButtonsBelongToWhoWasAsked(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		r.Say("a", "ask")
		id := r.open()[0]
		click := func(id string, choice int, user platforms.UserID) error {
			defer r.Settle()
			return r.Asker.AnswerClick(context.Background(), r.Inbox(1), id, choice, user)
		}
		require.ErrorIs(t, click("nothing", 0, "user-a"), ask.ErrStale)
		require.ErrorIs(t, click(id, 2, "user-a"), ask.ErrStale, "there are two choices")
		require.ErrorIs(t, click(id, 0, "user-b"), ask.ErrNotAsked)
		require.Empty(t, r.results())
		require.NoError(t, click(id, 1, "user-a"))
		require.Equal(t, []string{"blue"}, r.results())
		require.ErrorIs(t, click(id, 0, "user-a"), ask.ErrStale)
	})
}

// A question is put once: the next process finds it, and takes an answer that came while nothing ran.
func TestAsk_SurvivesARestart(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		r.Say("a", "ask")
		before := r.open()
		r.Restart()
		require.Equal(t, before, r.open())
		require.Len(t, r.Chat.Shown("a"), 1, "it is not put once more")
		r.Say("a", "1")
		require.Equal(t, []string{"red"}, r.results())
	})
}

// The answer counts when the process dies after its commit.
func TestAsk_AnswerThatNobodyHeardCounts(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		r.Say("a", "ask")
		id := r.open()[0]
		r.Update(func(tx sessions.Tx) error {
			value, err := tx.Value(sessions.SpaceQuestion, id)
			require.NoError(t, err)
			var q map[string]any
			require.NoError(t, json.Unmarshal(value.Data, &q))
			q["answer"], q["answered"] = "blue", true
			data, err := json.Marshal(q)
			require.NoError(t, err)
			return tx.SetValue(sessions.SpaceQuestion, id, data, time.Now())
		})
		r.Restart()
		require.Equal(t, []string{"blue"}, r.results())
		require.Equal(t, "done", r.Chat.Last("a"))
	})
}

func TestAsk_AFailedCommitLeavesTheQuestionOpen(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		r.Say("a", "ask")
		r.Store.Fail(sessions.EdgeCommand, 1)
		err := r.Asker.AnswerClick(context.Background(), r.Inbox(1), r.open()[0], 0, "user-a")
		require.ErrorIs(t, err, sessions.ErrFull)
		require.Empty(t, r.results())
		require.NoError(t, r.Asker.AnswerClick(context.Background(), r.Inbox(1), r.open()[0], 0, "user-a"))
		r.Settle()
		require.Equal(t, []string{"red"}, r.results())
	})
}

func TestAsk_NobodyOutsideAChat(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		_, err := r.Asker.Ask(context.Background(), tools.Call{}, "Anybody?", nil)
		require.ErrorIs(t, err, ask.ErrNobody)
		_, err = r.Asker.Approve(context.Background(), tools.Call{}, ask.Request{})
		require.ErrorIs(t, err, ask.ErrNobody)
		_, err = r.Asker.Ask(context.Background(), tools.Call{Caller: tools.Caller{Turn: 99}}, "Anybody?", nil)
		require.ErrorIs(t, err, ask.ErrNobody)
	})
}

func TestApprove_Prompt(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		r.Say("a", "run")
		prompt := r.Chat.Last("a")
		for _, want := range []string{"May I run this command?", "rm -rf …", "removes directories with everything in them", "within 1 minute"} {
			require.Contains(t, prompt, want)
		}
		require.NotContains(t, prompt, "secret-name", "the preview is shown, not the command")
		require.NotContains(t, prompt, "/approve", "a platform with buttons needs no words to type")
		waits := r.waits()
		require.Len(t, waits, 1)
		require.Equal(t, platforms.UserID("user-a"), waits[0].Requester)
		require.Equal(t, rt.KeyOf("a"), waits[0].Key)
		r.View(func(v sessions.View) error {
			value, err := v.Value(sessions.SpaceApproval, waits[0].ID)
			require.NotContains(t, string(value.Data), "secret-name", "of the command only a hash is kept")
			return err
		})
	})
}

func TestApprove_DecidedOnce(t *testing.T) {
	for _, choice := range []ask.Choice{ask.ChoiceOnce, ask.ChoiceSession, ask.ChoiceDeny} {
		t.Run(string(choice), func(t *testing.T) {
			within(t, func(t *testing.T, r *room) {
				r.Say("a", "run")
				id := r.waits()[0].ID
				require.ErrorIs(t, r.decide(id, ask.ChoiceAlways, ""), ask.ErrNotOffered)
				require.ErrorIs(t, r.decide("nothing", choice, ""), ask.ErrStale)
				require.Empty(t, r.results())
				require.NoError(t, r.decide(id, choice, "because"))
				require.Equal(t, []string{string(choice) + " because"}, r.results())
				require.Empty(t, r.waits())
				require.ErrorIs(t, r.decide(id, choice, ""), ask.ErrStale)
				require.Equal(t, "done", r.Chat.Last("a"))
				r.View(func(v sessions.View) error {
					last, ok, err := ask.LastApproval(v, rt.KeyOf("a"))
					require.True(t, ok, "who comes late is answered with it")
					require.Equal(t, choice, last.Choice)
					require.Equal(t, "Ada", last.By)
					return err
				})
			})
		})
	}
}

func TestApprove_TimeIsOver(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		r.Say("a", "run")
		id := r.waits()[0].ID
		r.Wait(59)
		require.Empty(t, r.results())
		r.Wait(2)
		require.Equal(t, []string{"timeout "}, r.results())
		require.ErrorIs(t, r.decide(id, ask.ChoiceOnce, ""), ask.ErrExpired)
		require.Contains(t, strings.Join(r.Chat.Shown("a"), "\n"), "Nobody answered in time", "said in a message where nothing can be edited")
	})
}

// A decision that was committed counts when the process dies before its call hears of it.
func TestApprove_SurvivesARestart(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		r.Say("a", "run")
		id := r.waits()[0].ID
		r.Update(func(tx sessions.Tx) error {
			_, _, err := r.Asker.Decide(tx, id, ask.ChoiceOnce, "", "Ada")
			return err
		})
		r.Restart()
		require.Equal(t, []string{"once "}, r.results())
		require.Equal(t, []string{"done"}, r.Chat.Shown("a")[1:], "it was not asked once more")
	})
}

func TestApprove_FoundByCallAndText(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		r.Say("a", "run")
		require.NoError(t, r.decide(r.waits()[0].ID, ask.ChoiceOnce, ""))
		r.mu.Lock()
		call := r.calls[0]
		r.mu.Unlock()
		a, ok, err := r.Asker.FindApproval(context.Background(), call, "rm -rf secret-name")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, ask.ChoiceOnce, a.Choice)
		_, ok, err = r.Asker.FindApproval(context.Background(), call, "rm -rf other")
		require.NoError(t, err)
		require.False(t, ok, "another text was not approved")
		call.ID = "other"
		_, ok, err = r.Asker.FindApproval(context.Background(), call, "rm -rf secret-name")
		require.NoError(t, err)
		require.False(t, ok, "nor another call")
	})
}

// Several calls of one turn may wait, also for different things.
func TestPending_QuestionAndApprovalTogether(t *testing.T) {
	within(t, func(t *testing.T, r *room) {
		r.Say("a", "ask run")
		require.Len(t, r.open(), 1)
		require.Len(t, r.waits(), 1)
		r.Say("a", "1")
		require.Equal(t, []string{"red"}, r.results())
		require.NoError(t, r.decide(r.waits()[0].ID, ask.ChoiceDeny, ""))
		require.Equal(t, []string{"red", "deny "}, r.results())
		require.Equal(t, "done", r.Chat.Last("a"))
	})
}

func TestParseQuestion(t *testing.T) {
	id, choice, ok := ask.ParseQuestion("ask:ab12:3")
	require.True(t, ok)
	require.Equal(t, "ab12", id)
	require.Equal(t, 3, choice)
	for _, bad := range []string{"", "ask:", "ask:ab", "ask:ab:", "ask:ab:x", "ask:ab:-1", "ap:ab:1"} {
		_, _, ok := ask.ParseQuestion(bad)
		require.False(t, ok, bad)
	}
}

func TestParseApproval(t *testing.T) {
	id, choice, ok := ask.ParseApproval("ap:ab12:once")
	require.True(t, ok)
	require.Equal(t, "ab12", id)
	require.Equal(t, ask.ChoiceOnce, choice)
	for _, bad := range []string{"", "ap:", "ap:ab", "ask:ab:1"} {
		_, _, ok := ask.ParseApproval(bad)
		require.False(t, ok, bad)
	}
}

func TestChoice_Allows(t *testing.T) {
	for choice, want := range map[ask.Choice]bool{ask.ChoiceOnce: true, ask.ChoiceSession: true, ask.ChoiceAlways: true, ask.ChoiceDeny: false,
		ask.ChoiceTimeout: false, ask.ChoiceVoid: false, "": false} {
		require.Equal(t, want, choice.Allows(), choice)
	}
}
