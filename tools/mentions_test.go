package tools_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools"
	"herald/tools/clarify"
	"herald/tools/memory"
	"herald/tools/sessionsearch"
	"herald/tools/todo"
)

// familiar are names of tools that models know from elsewhere, whether Herald has them or not.
var familiar = []string{
	"send_message", "tool_search", "tool_describe", "tool_call",
	"web_search", "web_extract", "terminal", "process", "read_file", "write_file", "patch", "search_files",
	"vision_analyze", "skills_list", "skill_view", "skill_manage",
	"browser_navigate", "browser_snapshot", "browser_click", "browser_type", "browser_scroll", "browser_back",
	"browser_press", "browser_get_images", "browser_vision", "browser_console", "browser_cdp", "browser_dialog",
	"todo", "memory", "session_search", "clarify", "execute_code", "delegate_task", "cronjob", "computer_use",
}

// For each subset of the tools, no definition names a tool that is not in the subset: a model would chase
// what it can't call. The names are those of familiar.
func TestDefinitions_NameNoAbsentTool(t *testing.T) {
	all := []tools.Tool{
		clarify.New(nil), todo.New(nil), sessionsearch.New(sessionsearch.Options{}),
		memory.New(memory.NewStore(memory.Options{Dir: t.TempDir()})),
	}
	for mask := range 1 << len(all) {
		r := tools.NewRegistry(tools.RegistryOptions{})
		var present []string
		for i, tool := range all {
			if mask&(1<<i) != 0 {
				require.NoError(t, r.Register(tool))
				present = append(present, tool.Name)
			}
		}
		defs := r.Definitions(t.Context(), nil)
		require.Len(t, defs, len(present))
		text := ""
		for _, d := range defs {
			require.NotEmpty(t, d.Description)
			text += fmt.Sprintln(d.Name, d.Description, string(d.Parameters))
		}
		for _, name := range familiar {
			if !slices.Contains(present, name) {
				require.NotRegexp(t, regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`), text, "present: %v", present)
			}
		}
	}
}

// The schemas that are shipped are good ones: they compile, and strict servers need no change but the rare one.
func TestDefinitions_SchemasAreUsable(t *testing.T) {
	for _, tool := range []tools.Tool{clarify.New(nil), todo.New(nil), sessionsearch.New(sessionsearch.Options{}),
		memory.New(memory.NewStore(memory.Options{Dir: t.TempDir()}))} {
		err := tools.ValidateArguments([]byte(`{"no such argument":1}`), tool.Parameters)
		var bad *tools.ArgumentError
		require.ErrorAs(t, err, &bad, tool.Name)
		clean, err := tools.SanitizeSchema(tool.Parameters)
		require.NoError(t, err)
		require.NotContains(t, string(clean), `"type":[`, tool.Name)
	}
}
