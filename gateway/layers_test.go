package gateway_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers is the table of docs/architecture.md: a package may import what stands below it here, and nothing of
// Herald beside that. "*" is everything below.
var layers = map[string][]string{
	"cmd/herald":         {"*"},
	"gateway":            {"*"},
	"gateway/config":     {"gateway/config/tree", "platforms"},
	"gateway/router":     {"gateway/turn", "sessions", "platforms", "locales"},
	"gateway/turn":       {"gateway/agent", "gateway/model", "gateway/delivery", "sessions", "platforms", "tools", "locales"},
	"gateway/agent":      {"gateway/model", "sessions", "platforms", "tools"},
	"gateway/model":      {},
	"gateway/model/pool": {"gateway/agent", "gateway/model", "gateway/config", "sessions"},
	"gateway/toolbox":    {"gateway/workspace", "gateway/approval", "gateway/admin", "gateway/config", "gateway/model", "cron", "sessions", "platforms", "tools", "locales"},
	"gateway/workspace":  {"gateway/config", "sessions", "platforms", "tools", "deploy"},
	"gateway/terms": {"gateway/config", "gateway/agent", "gateway/jobs", "gateway/model", "gateway/router", "gateway/turn", "gateway/workspace",
		"cron", "sessions", "platforms"},
	"gateway/access":    {"gateway/config", "sessions", "platforms", "locales"},
	"gateway/directory": {"gateway/config", "sessions", "platforms"},
	"gateway/accounts":  {"gateway/config", "sessions", "platforms"},
	"gateway/approval":  {"gateway/access", "gateway/config", "gateway/model", "gateway/turn", "sessions", "platforms", "tools", "locales"},
	"gateway/command":   {"*"},
	"gateway/delivery":  {"sessions", "platforms", "locales"},
	"gateway/admin":     {"gateway/accounts", "gateway/model", "sessions", "platforms", "tools"},
	"platforms":         {},
	"platforms/format":  {"platforms"},
	"platforms/fetch":   {},
	"platforms/wire":    {"platforms"},
	"platforms/all":     {"platforms"},
	"sessions":          {"platforms"},
	"sessions/sqlite":   {"sessions", "platforms"},
	"cron":              {"sessions", "platforms"},
	"tools":             {},
	"deploy":            {},
	"locales":           {},

	"gateway/config/tree": {"platforms"},

	"gateway/jobs": {"cron", "gateway/jobs/brief", "gateway/jobs/provision", "gateway/jobs/view", "gateway/router", "gateway/turn", "gateway/model",
		"gateway/delivery", "sessions", "platforms", "tools"},
	"gateway/jobs/brief":     {"locales", "cron", "gateway/delivery", "sessions", "platforms"},
	"gateway/jobs/provision": {"cron", "gateway/config", "platforms"},
	"gateway/jobs/view":      {"locales", "cron", "gateway/jobs/brief", "gateway/jobs/provision", "gateway/delivery", "sessions", "platforms"},
	"gateway/jobs/desk":      {"locales", "cron", "gateway/jobs/view", "sessions", "platforms", "tools"},
	"gateway/jobs/page":      {"cron", "gateway/jobs/brief", "gateway/jobs/view", "sessions"},
}

// isAdapter reports whether a room is one platform's. They need no row: each may import what "platforms" may, and no other one.
func isAdapter(room string) bool {
	_, listed := layers[room]
	return strings.HasPrefix(room, "platforms/") && !listed
}

// A consumer may use the packages inside a room that it may enter, such as sessions/failpoint in sessions.
func room(path string) string {
	for p := path; p != ""; {
		if _, ok := layers[p]; ok || strings.HasPrefix(p, "platforms/") && strings.Count(p, "/") == 1 {
			return p
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			return p
		}
		p = p[:i]
	}
	return path
}

func TestLayers_ImportsPointDown(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags", "sqlite_fts5", "-json=ImportPath,Imports", "herald/...").Output()
	require.NoError(t, err)
	dec := json.NewDecoder(strings.NewReader(string(out)))
	packages := 0
	for dec.More() {
		var p struct {
			ImportPath string
			Imports    []string
		}
		require.NoError(t, dec.Decode(&p))
		packages++
		self := strings.TrimPrefix(p.ImportPath, "herald/")
		if strings.HasPrefix(self, "cmd/") || strings.HasPrefix(self, "platforms/platformtest") || strings.HasSuffix(self, "test") {
			continue // commands wire everything; helpers of tests are no part of the daemon
		}
		mine := room(self)
		allowed, known := layers[mine]
		if isAdapter(mine) {
			allowed, known = []string{"platforms"}, true
		}
		require.True(t, known, "%s stands in no room of docs/architecture.md", self)
		for _, imported := range p.Imports {
			other, ours := strings.CutPrefix(imported, "herald/")
			if !ours {
				continue
			}
			theirs := room(other)
			require.NotEqual(t, "gateway", theirs, "%s imports gateway; only cmd may", self)
			if isAdapter(theirs) && theirs != mine {
				require.Equal(t, "platforms/all", mine, "%s imports an adapter; the list of kinds and commands alone may", self)
			}
			if theirs == mine || strings.HasPrefix(theirs, mine+"/") || strings.HasPrefix(mine, theirs+"/") {
				continue
			}
			ok := false
			for _, a := range allowed {
				ok = ok || a == "*" || theirs == a || strings.HasPrefix(theirs, a+"/")
			}
			require.True(t, ok, "%s imports %s, which is not below it in docs/architecture.md", self, other)
		}
	}
	require.Greater(t, packages, 20)
}

// sandboxLayers is the order inside of tools/sandbox: what each package may import of it. Rooms let their sub-packages
// import each other, so this is checked apart.
var sandboxLayers = map[string][]string{
	"":            {},
	"attempt":     {},
	"proc":        {},
	"scratch":     {},
	"shell":       {""},
	"output":      {""},
	"mounts":      {""},
	"execution":   {"", "output"},
	"local":       {"", "shell", "output", "execution", "proc", "scratch"},
	"remote":      {"", "shell", "output", "execution"},
	"ssh":         {"", "shell", "output", "remote", "scratch"},
	"docker":      {"", "execution", "mounts", "remote", "attempt"},
	"auto":        {"", "docker", "attempt"},
	"sandboxtest": {"", "shell", "output", "proc"},
}

func TestLayers_Sandbox(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags", "sqlite_fts5", "-json=ImportPath,Imports", "herald/tools/sandbox/...").Output()
	require.NoError(t, err)
	const root = "herald/tools/sandbox"
	inside := func(path string) (string, bool) {
		if path == root {
			return "", true
		}
		return strings.CutPrefix(path, root+"/")
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	packages := 0
	for dec.More() {
		var p struct {
			ImportPath string
			Imports    []string
		}
		require.NoError(t, dec.Decode(&p))
		packages++
		self, _ := inside(p.ImportPath)
		allowed, known := sandboxLayers[self]
		require.True(t, known, "%s has no row here", p.ImportPath)
		for _, imported := range p.Imports {
			if other, is := inside(imported); is {
				require.Contains(t, allowed, other, "%s imports %s", p.ImportPath, imported)
			}
		}
	}
	require.Len(t, sandboxLayers, packages)
}

// Nothing below the root knows a Gateway: the root makes values and hands them over.
func TestLayers_NothingBelowTheRootHoldsAGateway(t *testing.T) {
	held := regexp.MustCompile(`\*?\bgateway\.Gateway\b|\*Gateway\b`)
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Dir(path) == "." || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if strings.HasSuffix(filepath.Dir(path), "test") {
			return nil // helpers of tests start a whole daemon
		}
		files++
		text, err := os.ReadFile(path)
		require.False(t, held.Match(text), "%s names a Gateway", path)
		return err
	})
	require.NoError(t, err)
	require.Greater(t, files, 100)
}
