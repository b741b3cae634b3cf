package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/gateway/agent"
	"herald/gateway/model"
	"herald/platforms"
	"herald/sessions"
)

// toolNames are all tools that a session may have.
var toolNames = []string{"clarify", "memory", "patch", "process", "read_file", "search_files", "session_search", "terminal", "todo", "write_file"}

// common are tool names that are English words too; as a tool they stand behind one of these words.
var common = map[string][]string{"memory": {"with memory"}, "process": {"process("}, "patch": {"Prefer patch"}, "terminal": {"Use terminal"},
	"clarify": {"with clarify"}, "todo": {"with todo"}}

func promptInput(tools []string) agent.PromptInput {
	return agent.PromptInput{
		Session: sessions.Session{ID: "20260304_050607_0a0b0c0d", Origin: sessions.Origin{Address: platforms.Address{Platform: "telegram"},
			ChatType: platforms.DM, UserName: "Ada"}},
		Tools: tools, Model: model.Info{Provider: "x", Name: "m"}, Now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("CET", 3600)), Dir: "/work",
	}
}

// A prompt that names a tool which is not there makes models call it.
func TestPrompt_NamesNoAbsentToolAndIsByteStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var have []string
		for _, name := range toolNames {
			if rapid.Bool().Draw(t, name) {
				have = append(have, name)
			}
		}
		prompt := agent.Prompt(promptInput(have))
		require.Equal(t, prompt, agent.Prompt(promptInput(have)))
		for _, name := range toolNames {
			signs := common[name]
			if signs == nil {
				signs = []string{name}
			}
			if strings.Contains(strings.Join(have, " "), name) {
				continue
			}
			for _, sign := range signs {
				require.NotContains(t, prompt, sign, "with %v", have)
			}
		}
	})
}

func TestPrompt(t *testing.T) {
	in := promptInput([]string{"memory", "terminal"})
	prompt := agent.Prompt(in)
	require.Contains(t, prompt, "with Ada in a direct chat")
	require.Contains(t, prompt, "Wednesday, March 04, 2026 (CET, UTC+01:00)")
	require.Contains(t, prompt, "Model: x/m. Session: 20260304_050607_0a0b0c0d.")
	require.Contains(t, prompt, "below /work")
	require.Contains(t, prompt, "with memory")
	require.NotContains(t, prompt, "5:06", "the time of day would make each prompt another one")

	in.HidePeople = true
	require.NotContains(t, agent.Prompt(in), "Ada")
	in.Session.Origin.ChatType, in.Session.Origin.ChatName, in.Session.Origin.Shared = platforms.Group, "Ada's room", true
	require.NotContains(t, agent.Prompt(in), "Ada")
	in.HidePeople = false
	in.Identity, in.Instructions, in.Memory, in.User = "You are Bob.\n", "Be kind.", "MEMORY: use search_files", "USER: Ada"
	prompt = agent.Prompt(in)
	require.True(t, strings.HasPrefix(prompt, "You are Bob.\n"))
	for _, part := range []string{"Be kind.", "MEMORY: use search_files", "USER: Ada", `called "Ada's room"`, "Several people talk here"} {
		require.Contains(t, prompt, part)
	}
	require.NotContains(t, agent.Prompt(promptInput(nil)), "/work", "a session without tools has no directory")
}
