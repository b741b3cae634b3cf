package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

const forum = int64(-1001)

var (
	ann = telegramtest.User{ID: 7001, FirstName: "Ann", Username: "ann"}
	bob = telegramtest.User{ID: 7002, FirstName: "Bob", Username: "bob"}
)

// inGroups lets everybody talk in every group.
func inGroups(h *house) { h.set["platforms.telegram.group_allow_from"] = "*" }

// post makes somebody write into a topic of a chat.
func (h *house) post(chat int64, thread int, who telegramtest.User, text string) int {
	return h.tg.Write(telegramtest.Post{Chat: chat, Thread: thread, From: who, Text: text})[0]
}

// elsewhere returns the bot's messages in a chat that are not in a topic.
func (h *house) elsewhere(chat int64, thread int) []string {
	var out []string
	for _, m := range h.tg.Visible(chat) {
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
	h := start(t, script, inGroups, func(h *house) {
		h.set["display.tool_progress"] = "all"
		h.set["agent.restart_drain_timeout"] = "50ms"
	})
	topic := h.tg.AddTopic(forum, "Garden")
	other := h.tg.AddTopic(forum, "Kitchen")

	h.post(forum, topic, ann, "hello")
	h.await(forum, "re: ")
	h.post(forum, topic, ann, "/status")
	h.await(forum, "State: idle")
	h.post(forum, topic, ann, "use a tool")
	h.await(forum, "I begin.")
	h.await(forum, "💻 terminal")
	require.NoError(t, os.WriteFile(filepath.Join(h.home, "workspace", "go"), nil, 0o600))
	h.await(forum, "after the tool:")
	require.Empty(t, h.elsewhere(forum, topic))

	h.post(forum, topic, ann, "ask me")
	q := h.await(forum, "Which colour?")
	_, ok := h.tg.Press(forum, q.ID, q.Buttons[1][0].Data, ann)
	require.True(t, ok)
	h.await(forum, "Answer: blue")
	h.until("the answer is used", func() bool { return h.count(forum, "after the tool:") == 2 })

	h.tg.Break(telegramtest.Fault{Method: "sendMessage", Trouble: telegramtest.ResetAfter})
	h.post(forum, topic, ann, "fragile")
	h.await(forum, "I can't tell whether my last message arrived")
	require.Empty(t, h.elsewhere(forum, topic))

	require.NoError(t, os.Remove(filepath.Join(h.home, "workspace", "go")))
	h.post(forum, topic, ann, "the tool again")
	h.until("the tool runs", func() bool { return h.count(forum, "I begin.") == 2 })
	h.halt()
	require.NoError(t, os.WriteFile(filepath.Join(h.home, "workspace", "go"), nil, 0o600))
	h.run()
	h.until("the turn goes on", func() bool { return h.count(forum, "after the tool:") == 3 })
	require.Empty(t, h.elsewhere(forum, topic), "also after a restart")

	h.post(forum, other, ann, "hello")
	h.until("the other topic is answered", func() bool { return len(h.elsewhere(forum, topic)) == 1 })
	requests := h.llm.Requests()
	require.Len(t, requests[len(requests)-1].Messages, 1, "P6: topics are conversations of their own")
}

// P6: in a group each person has a conversation of their own.
func TestPlaces_PeopleOfAGroupAreApart(t *testing.T) {
	h := start(t, echo(), inGroups)
	h.post(-55, 0, ann, "my secret is moth")
	h.await(-55, "secret is moth")
	h.post(-55, 0, bob, "what do you know")
	h.await(-55, "what do you know")
	requests := h.llm.Requests()
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
	h := start(t, script)
	for i, text := range []string{"remember luna moth", "note luna moth", "todo luna moth", "my luna moth flies"} {
		h.tg.Say(7, text)
		h.until("it is answered", func() bool { return len(h.finals(7)) == i+1 })
	}
	h.tg.Say(7, "search")
	h.until("the owner finds it", func() bool { return h.count(7, `"mode":"search"`) > 0 && h.count(7, "moth flies") > 1 })

	before := len(h.llm.Requests())
	for i, text := range []string{"hello", "todos", "search", "browse", "/sessions all", "/new now", "hello again"} {
		h.tg.Say(8, text)
		h.until("it is answered", func() bool { return len(h.finals(8)) == i+1 })
	}
	for _, r := range h.llm.Requests()[before:] {
		require.NotContains(t, string(r.Body), "luna moth")
	}
	for _, text := range h.texts(8) {
		require.NotContains(t, text, "moth")
	}
	// A new session of the first person knows what was remembered.
	h.tg.Say(7, "/new --yes")
	h.await(7, "New session")
	h.tg.Say(7, "hello")
	h.await(7, "re: hello")
	requests := h.llm.Requests()
	require.Contains(t, requests[len(requests)-1].System, "likes the luna moth")
	require.Contains(t, requests[len(requests)-1].System, "a note on the luna moth")
}

// finals returns the bot's messages in a chat without progress bubbles.
func (h *house) finals(chat int64) []string {
	var out []string
	for _, text := range h.texts(chat) {
		if strings.HasPrefix(text, "result: ") || strings.HasPrefix(text, "re: ") || strings.Contains(text, "ession") {
			out = append(out, text)
		}
	}
	return out
}
