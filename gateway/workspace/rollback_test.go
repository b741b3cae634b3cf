package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// A person whose files the agent broke goes back: by text and by button, with their own edits kept and named, the last
// turn undone, and a way to take the rollback back.
func TestRollback_TakesBackWhatTheAgentDid(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if _, ok := r.ToolResult(); ok {
			return modeltest.Text("broken as asked")
		}
		if strings.Contains(r.LastUser(), "hello") {
			return modeltest.Text("hi")
		}
		return modeltest.Calls("c1", "terminal", `{"command":"echo broken > plan.txt; echo new > made.txt; echo agent > mine.txt"}`)
	})
	h := gatewaytest.Start(t, script)
	file := func(name string) string {
		data, err := os.ReadFile(filepath.Join(h.Home, "workspace", name))
		if os.IsNotExist(err) {
			return "<gone>"
		}
		require.NoError(t, err)
		return strings.TrimSpace(string(data))
	}
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(h.Home, "workspace", name), []byte(text), 0o600))
	}
	write("plan.txt", "the plan")
	write("mine.txt", "before")
	h.Telegram.Say(7, "/rollback")
	h.Await(7, "There is no checkpoint")
	h.Telegram.Say(7, "break my files")
	h.Await(7, "broken as asked")
	require.Equal(t, "broken", file("plan.txt"))
	write("mine.txt", "my own edit after the agent")

	h.Telegram.Say(7, "/rollback")
	h.Await(7, "before terminal: 3 files changed since")
	h.Telegram.Say(7, "/rollback 1")
	h.Await(7, "comes back: plan.txt")
	h.Await(7, "goes, because the agent made it: made.txt")
	h.Await(7, "kept, because you changed it: mine.txt")
	require.Equal(t, "broken", file("plan.txt"), "a preview changes nothing")
	preview := h.Await(7, "comes back: plan.txt")
	require.Equal(t, "Go back", preview.Buttons[0][0].Text)
	_, ok := h.Telegram.Press(7, preview.ID, preview.Buttons[0][0].Data, telegramtest.User{ID: 7})
	require.True(t, ok)
	h.Await(7, "2 files are as they were: made.txt, plan.txt")
	h.Await(7, "The last turn of our conversation is undone as well.")
	require.Equal(t, []string{"the plan", "<gone>", "my own edit after the agent"}, []string{file("plan.txt"), file("made.txt"), file("mine.txt")})

	h.Telegram.Say(7, "hello")
	h.Await(7, "hi")
	requests := script.Requests()
	require.Len(t, requests[len(requests)-1].Messages, 1, "the model does not remember the turn that was taken back")

	h.Telegram.Say(7, "/rollback undo")
	h.Await(7, "The rollback is taken back.")
	require.Equal(t, []string{"broken", "new"}, []string{file("plan.txt"), file("made.txt")})
	h.Telegram.Say(7, "/rollback 99 now")
	h.Await(7, "is no number from 1 to")
	h.Telegram.Say(7, "/diff session --stat")
	h.Await(7, "insertion")
}
