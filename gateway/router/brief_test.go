package router_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/agent"
	"herald/gateway/model"
	rt "herald/gateway/router/routertest"
	"herald/gateway/turn"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
)

const news = "[Cron delivery: morning]\nthe wombat is well"

// bring makes a job's output part of a chat's conversation, as its delivery does.
func bring(r *rt.Rig, chat string) {
	r.Update(func(tx sessions.Tx) error {
		origin := sessions.Origin{Address: rt.Address(chat), ChatType: platforms.DM}
		s, err := tx.OpenSession(rt.KeyOf(chat), origin, time.Now())
		if err != nil {
			return err
		}
		return tx.Append(&sessions.Message{Session: s.ID, Role: sessions.User, Kind: sessions.KindMirror, Content: news, Active: true,
			At: time.Now()})
	})
}

// talk writes a request's messages down as "role: text" and requires that a provider would take them.
func talk(t *testing.T, req model.Request) (out []string) {
	t.Helper()
	for _, m := range req.Messages {
		line := m.Role + ": " + m.Text
		for _, c := range m.ToolCalls {
			line += "[" + c.ID + "]"
		}
		out = append(out, line)
	}
	require.Equal(t, req.Messages, model.Paired(req.Messages))
	require.Equal(t, "user", req.Messages[0].Role)
	return out
}

// A brief in a chat where nobody ever wrote is known to the first answer, once, also after a restart.
func TestBrief_BeginsAConversation(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		bring(r, "a")
		r.Say("a", "how is it?")
		require.Equal(t, []string{"user: " + news + "\n\n" + agent.DeliveryEnd + "\n\nhow is it?"}, talk(t, r.Model.Requests()[0]))
		r.Restart()
		r.Say("a", "really?")
		require.Equal(t, 1, strings.Count(strings.Join(talk(t, r.Model.Requests()[1]), "\n"), "wombat is well\n\n"+agent.DeliveryEnd+"\n\nhow is it?\nassistant"))
		r.View(func(v sessions.View) error {
			list, err := v.Sessions(sessions.SessionQuery{Live: true})
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, platforms.UserID("user-a"), list[0].Origin.User)
			return nil
		})
	})
}

// looker is a tool that does something while it runs.
func looker(during func()) tools.Tool {
	return tools.Tool{Spec: tools.Spec{Name: "look", Toolset: "test", Description: "Looks.", ReadOnly: true},
		Run: func(context.Context, tools.Call) (tools.Result, error) {
			during()
			return tools.Result{Content: "seen"}, nil
		}}
}

// A brief that arrives between a call and its result leaves both together, in this turn, in the next one, and after a
// restart, and is said to the model once.
func TestBrief_InTheMiddleOfATurn(t *testing.T) {
	var rig *rt.Rig
	look := looker(func() { bring(rig, "a") })
	rt.Within(t, rt.Options{Tools: []tools.Tool{look}}, func(t *testing.T, r *rt.Rig) {
		rig = r
		calls := 0
		r.Model.Answer = func(_ context.Context, req model.Request) (model.Response, error) {
			if calls++; calls == 1 {
				return model.Response{Text: "I look.", ToolCalls: []model.ToolCall{{ID: "c1", Name: "look", Arguments: "{}"}}}, nil
			}
			return model.Response{Text: "done"}, nil
		}
		r.Say("a", "go")
		require.Len(t, r.Model.Requests(), 2)
		talk(t, r.Model.Requests()[1])
		r.Say("a", "which news?")
		want := []string{"user: go", "assistant: I look.[c1]", "tool: seen", "user: " + news, "assistant: done", "user: which news?"}
		require.Equal(t, want, talk(t, r.Model.Requests()[2]))
		r.Restart()
		r.Say("a", "and?")
		require.Equal(t, append(want, "assistant: done", "user: and?"), talk(t, r.Model.Requests()[3]))
	})
}

// The brief is no message of a person: a compaction keeps the newest two of theirs, and a brief between them does not count.
func TestBrief_IsNoMessageOfAPersonForACompaction(t *testing.T) {
	set := func(s *turn.Settings) {
		s.Limits.Compaction = agent.Compaction{Enabled: true, Threshold: 0.0005, ProtectLast: 1, MinTailUser: 2, MaxAttempts: 1}
	}
	rt.Within(t, rt.Options{Set: set}, func(t *testing.T, r *rt.Rig) {
		r.Model.Answer = func(_ context.Context, req model.Request) (model.Response, error) {
			if strings.HasPrefix(req.System, "Summarise") {
				return model.Response{Text: "the gist"}, nil
			}
			return model.Response{Text: "re"}, nil
		}
		for range 4 {
			r.Say("a", strings.Repeat("long ", 40))
		}
		r.Say("a", "keep me")
		bring(r, "a")
		r.Say("a", "the question")
		last := r.Model.Requests()[len(r.Model.Requests())-1]
		lines := talk(t, last)
		require.Contains(t, lines[len(lines)-1], "the question")
		require.Contains(t, strings.Join(lines, "\n"), "the gist")
		require.Contains(t, strings.Join(lines, "\n"), "keep me")
	})
}

// The past of a thread is read without what a job has sent there: the conversation knows it.
func TestBrief_IsNotQuotedOnceMore(t *testing.T) {
	rt.Within(t, history(50), func(t *testing.T, r *rt.Rig) {
		r.Chat.Past = func(context.Context, platforms.MessageID, int) ([]platforms.Said, error) {
			own := platforms.Said{Own: true, Text: "the wombat is well"}
			return append([]platforms.Said{own}, said("poor thing")...), nil
		}
		bring(r, "a")
		r.Give(mention(r, "a", "what do you think?"))
		r.Settle()
		asked := r.Model.Asked()[0]
		require.Equal(t, 1, strings.Count(asked, "wombat"), asked)
		require.Contains(t, asked, "> Bob: poor thing")
		require.Less(t, strings.Index(asked, "wombat"), strings.Index(asked, "poor thing"))
	})
}
