package gateway_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model"
	"herald/gateway/model/modeltest"
	"herald/sessions"
)

func TestConversation_AnswersAndRemembers(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo())
	h.Telegram.Say(7, "hello")
	h.Await(7, "re: hello")
	h.Telegram.Say(7, "again")
	h.Await(7, "re: again")
	requests := h.Model.Requests()
	last := requests[len(requests)-1]
	require.Equal(t, []string{"user", "assistant", "user"}, roles(last.Messages))
	require.Equal(t, requests[0].System, last.System, "the prompt is byte-stable within a session")
	require.Contains(t, last.System, "telegram")
	h.Telegram.Say(8, "other")
	h.Await(8, "re: other")
	requests = h.Model.Requests()
	require.Len(t, requests[len(requests)-1].Messages, 1, "P6: no byte of one chat reaches another's prompt")
}

func roles(messages []model.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Role)
	}
	return out
}

func TestTools_RunThroughTheBusAndTheirResultsReachTheModel(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if text, ok := r.ToolResult(); ok {
			return modeltest.Text("done: " + text)
		}
		return modeltest.Calls("c1", "write_file", `{"path":"notes.txt","content":"milk"}`)
	})
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "write milk to notes.txt")
	h.Await(7, "done:")
	data, err := os.ReadFile(filepath.Join(h.Home, "workspace", "notes.txt"))
	require.NoError(t, err)
	require.Equal(t, "milk", strings.TrimSpace(string(data)))
}

// P3 and P14: while a model hangs, control commands answer, and /stop frees the conversation.
func TestStop_AnswersWhileTheModelHangs(t *testing.T) {
	var hang atomic.Bool
	hang.Store(true)
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if hang.Load() {
			return modeltest.Reply{HangHeader: true}
		}
		return modeltest.Text("free again")
	})
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "think for ever")
	h.Until("the model is asked", func() bool { return len(script.Requests()) == 1 })
	h.Telegram.Say(7, "/status")
	h.Await(7, "Waiting for the model")
	h.Telegram.Say(7, "/stop")
	h.Await(7, "Stopped.")
	hang.Store(false)
	h.Telegram.Say(7, "still there?")
	h.Await(7, "free again")
}

func TestStop_EndsAToolAndItsProcesses(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if _, ok := r.ToolResult(); ok {
			return modeltest.Text("after")
		}
		return modeltest.Calls("c1", "terminal", `{"command":"echo started > marker; sleep 600"}`)
	})
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "run")
	h.Until("the command runs", func() bool {
		_, err := os.Stat(filepath.Join(h.Home, "workspace", "marker"))
		return err == nil
	})
	h.Telegram.Say(7, "/status")
	h.Await(7, "terminal")
	h.Telegram.Say(7, "/stop")
	h.Await(7, "Stopped.")
	h.Halt() // returns only when no goroutine of a tool is left
	require.Zero(t, h.Count(7, "after"))
}

func TestBusy_InterruptRedirectsTheRunningAnswer(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if strings.Contains(r.LastUser(), "second") {
			return modeltest.Text("re: " + r.LastUser())
		}
		return modeltest.Reply{HangHeader: true}
	})
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "first")
	h.Until("the model is asked", func() bool { return len(script.Requests()) == 1 })
	h.Telegram.Say(7, "second")
	h.Await(7, "re: first\n\nsecond")
	h.Await(7, "changing course")
}

func TestBusy_QueueWaitsAndComesNext(t *testing.T) {
	release := make(chan struct{})
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if r.LastUser() == "first" {
			<-release
		}
		return modeltest.Text("re: " + r.LastUser())
	})
	h := gatewaytest.Start(t, script, func(h *gatewaytest.House) { h.Set["display.busy_input_mode"] = "queue" })
	h.Telegram.Say(7, "first")
	h.Until("the model is asked", func() bool { return len(script.Requests()) == 1 })
	h.Telegram.Say(7, "second")
	h.Await(7, "comes next")
	h.Telegram.Say(7, "/queue third")
	h.Await(7, "number 2 in line")
	close(release)
	h.Await(7, "re: first")
	h.Await(7, "re: second")
	h.Await(7, "re: third")
	require.Equal(t, 1, h.Count(7, "re: third"))
}

func TestBusy_SteerReachesTheNextToolResult(t *testing.T) {
	gate := make(chan struct{})
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		text, ok := r.ToolResult()
		if !ok {
			return modeltest.Calls("c1", "terminal", `{"command":"while [ ! -e go ]; do sleep 0.05; done; echo ran"}`)
		}
		return modeltest.Text("saw: " + text)
	})
	close(gate)
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "work")
	h.UntilStatus(7, "Running: terminal")
	h.Telegram.Say(7, "/steer use the blue one")
	h.Await(7, "after the current step")
	require.NoError(t, os.WriteFile(filepath.Join(h.Home, "workspace", "go"), nil, 0o600))
	m := h.Await(7, "saw: ")
	require.Contains(t, m.Text, "use the blue one")
}

func TestNewUndoRetry(t *testing.T) {
	n := 0
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		n++
		return modeltest.Text(strings.Repeat("x", n) + " messages=" + string(rune('0'+len(r.Messages))))
	})
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "one")
	h.Await(7, "x messages=1")
	h.Telegram.Say(7, "two")
	h.Await(7, "xx messages=3")
	h.Telegram.Say(7, "/undo now")
	h.Await(7, "The last turn is undone")
	h.Telegram.Say(7, "three")
	h.Await(7, "xxx messages=3")
	h.Telegram.Say(7, "/retry")
	h.Await(7, "xxxx messages=3")
	h.Telegram.Say(7, "/new Shopping list -y")
	h.Await(7, "New session: Shopping list")
	h.Telegram.Say(7, "four")
	h.Await(7, "xxxxx messages=1")
	h.Telegram.Say(7, "/sessions")
	h.Await(7, "Shopping list")
	h.Telegram.Say(7, "/resume 2")
	h.Await(7, "Back in")
	h.Telegram.Say(7, "five")
	h.Await(7, "xxxxxx messages=5")
}

// P1, P10: what waits when the daemon stops is answered after the next start, once.
func TestRestart_WaitingMessagesAreAnsweredOnce(t *testing.T) {
	var hang atomic.Bool
	hang.Store(true)
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if hang.Load() {
			return modeltest.Reply{HangHeader: true}
		}
		return modeltest.Text("re: " + r.LastUser())
	})
	h := gatewaytest.Start(t, script, func(h *gatewaytest.House) { h.Set["agent.restart_drain_timeout"] = "50ms" })
	h.Telegram.Say(7, "keep me")
	h.Until("the model is asked", func() bool { return len(script.Requests()) == 1 })
	h.Halt()
	hang.Store(false)
	h.Run()
	h.Await(7, "re: keep me")
	h.Halt()
	require.Equal(t, 1, h.Count(7, "re: keep me"))
	report, err := h.Store().Check(context.Background())
	require.NoError(t, err)
	require.True(t, report.OK(), report.String())
}

func TestModel_FailuresAreSaidInWords(t *testing.T) {
	for name, c := range map[string]struct {
		reply modeltest.Reply
		want  string
	}{
		"refused key": {modeltest.Failing(401, "invalid_request_error", "Incorrect API key provided"), "refused the key"},
		"garbage":     {modeltest.Garbage("text/html", "<html>proxy</html>"), "made no sense"},
		"too long":    {modeltest.TooLong(), "too long for the model"},
		"no model":    {modeltest.Failing(404, "invalid_request_error", "The model does not exist"), "does not know this model"},
	} {
		t.Run(name, func(t *testing.T) {
			script := modeltest.Answering(func(modeltest.Request) modeltest.Reply { return c.reply })
			h := gatewaytest.Start(t, script, func(h *gatewaytest.House) { h.Set["agent.api_max_retries"] = "0" })
			h.Telegram.Say(7, "hello")
			h.Await(7, c.want)
			require.NotContains(t, h.Log.String(), "sk-house-tests", "no key in the log")
		})
	}
}

func TestTranscript_HoldsEveryStep(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if _, ok := r.ToolResult(); ok {
			return modeltest.Text("finished")
		}
		return modeltest.Calls("c1", "terminal", `{"command":"echo hi"}`)
	})
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "go")
	h.Await(7, "finished")
	h.Halt()
	s := h.Store()
	require.NoError(t, s.View(context.Background(), func(v sessions.View) error {
		list, err := v.Sessions(sessions.SessionQuery{})
		require.NoError(t, err)
		require.Len(t, list, 1)
		rows, err := v.Transcript(list[0].ID, true, 0, 0)
		require.NoError(t, err)
		var got []string
		for _, row := range rows {
			got = append(got, string(row.Role))
		}
		require.Equal(t, []string{"user", "assistant", "tool", "assistant"}, got)
		require.Positive(t, list[0].Usage.Input)
		return nil
	}))
}
