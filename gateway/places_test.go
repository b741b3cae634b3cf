package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// elsewhere returns the bot's messages in a chat that are not in a topic.
func elsewhere(h *gatewaytest.House, chat int64, thread int) []string {
	var out []string
	for _, m := range h.Telegram.Visible(chat) {
		if m.Thread != thread {
			out = append(out, fmt.Sprintf("%d: %s", m.Thread, m.Text))
		}
	}
	return out
}

// P5: what belongs to a topic stays in it: the streamed answer, progress, questions and their buttons, notices of
// commands and of doubtful deliveries, and what comes after a restart.
func TestPlaces_EverythingOfATopicStaysInIt(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		last := r.LastUser()
		if text, ok := r.ToolResult(); ok {
			return modeltest.Text("after the tool: " + text)
		}
		switch {
		case strings.Contains(last, "tool"):
			reply := modeltest.Calls("c1", "terminal", `{"command":"echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended"}`)
			reply.Text = "I begin."
			return reply
		case strings.Contains(last, "ask"):
			return modeltest.Calls("c2", "clarify", `{"question":"Which colour?","choices":["red","blue"]}`)
		}
		return modeltest.Text("re: " + last)
	})
	h := gatewaytest.Start(t, script, gatewaytest.InGroups, func(h *gatewaytest.House) {
		h.Set["display.tool_progress"] = "all"
		h.Set["agent.restart_drain_timeout"] = "50ms"
	})
	topic := h.Telegram.AddTopic(gatewaytest.Forum, "Garden")
	other := h.Telegram.AddTopic(gatewaytest.Forum, "Kitchen")

	h.Write(gatewaytest.Forum, topic, gatewaytest.Ann, "hello")
	h.Await(gatewaytest.Forum, "re: ")
	h.Write(gatewaytest.Forum, topic, gatewaytest.Ann, "/status")
	h.Await(gatewaytest.Forum, "State: idle")
	h.Write(gatewaytest.Forum, topic, gatewaytest.Ann, "use a tool")
	h.Await(gatewaytest.Forum, "I begin.")
	h.Await(gatewaytest.Forum, "💻 terminal")
	require.NoError(t, os.WriteFile(filepath.Join(h.Home, "workspace", "go"), nil, 0o600))
	h.Await(gatewaytest.Forum, "after the tool:")
	require.Empty(t, elsewhere(h, gatewaytest.Forum, topic))

	h.Write(gatewaytest.Forum, topic, gatewaytest.Ann, "ask me")
	q := h.Await(gatewaytest.Forum, "Which colour?")
	_, ok := h.Telegram.Press(gatewaytest.Forum, q.ID, q.Buttons[1][0].Data, gatewaytest.Ann)
	require.True(t, ok)
	h.Await(gatewaytest.Forum, "Answer: blue")
	h.Until("the answer is used", func() bool { return h.Count(gatewaytest.Forum, "after the tool:") == 2 })

	h.Telegram.Break(telegramtest.Fault{Method: "sendMessage", Trouble: telegramtest.ResetAfter})
	h.Write(gatewaytest.Forum, topic, gatewaytest.Ann, "fragile")
	h.Await(gatewaytest.Forum, "I can't tell whether my last message arrived")
	require.Empty(t, elsewhere(h, gatewaytest.Forum, topic))

	require.NoError(t, os.Remove(filepath.Join(h.Home, "workspace", "go")))
	h.Write(gatewaytest.Forum, topic, gatewaytest.Ann, "the tool again")
	h.Until("the tool runs", func() bool { return h.Count(gatewaytest.Forum, "I begin.") == 2 })
	h.Halt()
	require.NoError(t, os.WriteFile(filepath.Join(h.Home, "workspace", "go"), nil, 0o600))
	h.Run()
	h.Until("the turn goes on", func() bool { return h.Count(gatewaytest.Forum, "after the tool:") == 3 })
	require.Empty(t, elsewhere(h, gatewaytest.Forum, topic), "also after a restart")

	h.Write(gatewaytest.Forum, other, gatewaytest.Ann, "hello")
	h.Until("the other topic is answered", func() bool { return len(elsewhere(h, gatewaytest.Forum, topic)) == 1 })
	requests := h.Model.Requests()
	require.Len(t, requests[len(requests)-1].Messages, 1, "P6: topics are conversations of their own")
}

// P6: in a group each person has a conversation of their own.
func TestPlaces_PeopleOfAGroupAreApart(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), gatewaytest.InGroups)
	h.Write(-55, 0, gatewaytest.Ann, "my secret is moth")
	h.Await(-55, "secret is moth")
	h.Write(-55, 0, gatewaytest.Bob, "what do you know")
	h.Await(-55, "what do you know")
	requests := h.Model.Requests()
	require.Len(t, requests[1].Messages, 1)
	require.NotContains(t, string(requests[1].Body), "moth")
}

// P6: what one person has said, noted or had remembered does not reach another one's prompt or searches.
func TestPlaces_NothingOfOnePersonReachesAnother(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if text, ok := r.ToolResult(); ok {
			return modeltest.Text("result: " + text)
		}
		switch last := r.LastUser(); {
		case strings.HasPrefix(last, "remember "):
			return modeltest.Calls("c1", "memory", `{"action":"add","target":"user","content":"likes the `+strings.TrimPrefix(last, "remember ")+`"}`)
		case strings.HasPrefix(last, "note "):
			return modeltest.Calls("c1", "memory", `{"action":"add","target":"memory","content":"a note on the `+strings.TrimPrefix(last, "note ")+`"}`)
		case strings.HasPrefix(last, "todo "):
			return modeltest.Calls("c1", "todo", `{"todos":[{"id":"1","content":"feed the `+strings.TrimPrefix(last, "todo ")+`","status":"pending"}]}`)
		case last == "todos":
			return modeltest.Calls("c1", "todo", `{}`)
		case strings.HasPrefix(last, "search"):
			return modeltest.Calls("c1", "session_search", `{"query":"luna"}`)
		case last == "browse":
			return modeltest.Calls("c1", "session_search", `{}`)
		}
		return modeltest.Text("re: " + r.LastUser())
	})
	h := gatewaytest.Start(t, script)
	for i, text := range []string{"remember luna moth", "note luna moth", "todo luna moth", "my luna moth flies"} {
		h.Telegram.Say(7, text)
		h.Until("it is answered", func() bool { return len(finals(h, 7)) == i+1 })
	}
	h.Telegram.Say(7, "search")
	h.Until("the owner finds it", func() bool { return h.Count(7, `"mode":"search"`) > 0 && h.Count(7, "moth flies") > 1 })

	before := len(h.Model.Requests())
	for i, text := range []string{"hello", "todos", "search", "browse", "/sessions all", "/new now", "hello again"} {
		h.Telegram.Say(8, text)
		h.Until("it is answered", func() bool { return len(finals(h, 8)) == i+1 })
	}
	for _, r := range h.Model.Requests()[before:] {
		require.NotContains(t, string(r.Body), "luna moth")
	}
	for _, text := range h.Texts(8) {
		require.NotContains(t, text, "moth")
	}
	// A new session of the first person knows what was remembered.
	h.Telegram.Say(7, "/new --yes")
	h.Await(7, "New session")
	h.Telegram.Say(7, "hello")
	h.Await(7, "re: hello")
	requests := h.Model.Requests()
	require.Contains(t, requests[len(requests)-1].System, "likes the luna moth")
	require.Contains(t, requests[len(requests)-1].System, "a note on the luna moth")
}

// finals returns the bot's messages in a chat without progress bubbles.
func finals(h *gatewaytest.House, chat int64) []string {
	var out []string
	for _, text := range h.Texts(chat) {
		if strings.HasPrefix(text, "result: ") || strings.HasPrefix(text, "re: ") || strings.Contains(text, "ession") {
			out = append(out, text)
		}
	}
	return out
}
