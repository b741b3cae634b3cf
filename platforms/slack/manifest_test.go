package slack

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/slacktest"
)

func manyCommands(n int) []platforms.CommandInfo {
	out := []platforms.CommandInfo{{Name: "status", Description: "What goes on"}, {Name: "help", Description: "Help", Args: "[command]"}}
	for i := range n {
		out = append(out, platforms.CommandInfo{Name: fmt.Sprintf("cmd-%d", i), Description: "Does something"})
	}
	return out
}

// Slack takes the manifest, whatever its options.
func TestManifest_IsValid(t *testing.T) {
	for name, o := range map[string]ManifestOptions{
		"plain":         {Commands: manyCommands(10)},
		"many commands": {Commands: manyCommands(80)},
		"agent":         {Commands: manyCommands(3), AgentView: true, Name: "Our Agent 2.0", LongDescription: strings.Repeat("It helps. ", 20)},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := Manifest(o)
			require.NoError(t, err)
			require.Empty(t, slacktest.ValidateManifest(out), "%s", out)
		})
	}
}

func TestManifest_Refuses(t *testing.T) {
	for name, o := range map[string]ManifestOptions{
		"35":     {Name: strings.Repeat("x", 36)},
		"175":    {LongDescription: "too short"},
		"4000":   {LongDescription: strings.Repeat("x", 4001)},
		"letter": {Name: "…"},
	} {
		_, err := Manifest(o)
		require.ErrorContains(t, err, name)
	}
}

func TestSlashCommands_LeavesOutWhatSlackHasItself(t *testing.T) {
	got := SlashCommands(manyCommands(80))
	require.Len(t, got, 50)
	require.Equal(t, "/herald", got[0].Command)
	require.Equal(t, SlashCommand{Command: "/help", Description: "Help", Usage: "[command]", Escape: true}, got[1])
	for _, c := range got {
		require.NotEqual(t, "/status", c.Command)
	}
}

// The scopes that are asked for are those of the methods that are called, and the other way round.
func TestScopes_AreThoseOfTheMethodsThatAreCalled(t *testing.T) {
	called := map[string]bool{"auth.test": true, "conversations.history": true, "conversations.replies": true} // these are put into variables
	pattern := regexp.MustCompile(`a\.do\(ctx, "([a-zA-Z._]+)"|const method = "([a-zA-Z._]+)"`)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range pattern.FindAllStringSubmatch(string(source), -1) {
			called[firstOf(m[1], m[2])] = true
		}
	}
	listed := map[string]bool{}
	for _, s := range scopes {
		require.True(t, len(s.methods)+len(s.events) > 0 || s.name == "commands", "%s is for nothing", s.name)
		for _, m := range s.methods {
			listed[m] = true
			require.True(t, called[m], "%s is asked for %s, which is not called", s.name, m)
		}
	}
	for method := range called {
		require.True(t, listed[method] || slices.Contains(scopelessMethods, method), "no scope is listed for %s", method)
	}
	require.Greater(t, len(called), 20)
}
