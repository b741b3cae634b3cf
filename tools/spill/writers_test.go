package spill

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain are the places that open or make files without this package, and why they may. The key is the file and the call.
var plain = map[string]string{
	"cmd/herald/slack.go os.WriteFile":               "a manifest, to the file that the person at the shell names",
	"cmd/herald/teams.go os.WriteFile":               "a manifest, to the file that the person at the shell names",
	"gateway/admin/rotating.go os.OpenFile":          "a log is appended to; no link is followed, and its directory is the owner's",
	"sessions/lock/lock.go os.OpenFile":              "the record of a lock that is held, in place; no link is followed",
	"sessions/sqlite/open.go os.OpenFile":            "the database is opened again and again; its home is the owner's",
	"tools/checkpoint/git.go os.OpenFile":            "a lock file; no link is followed",
	"platforms/signal/voice.go os.WriteFile":         "a directory of its own that was made a moment ago, for the owner alone, with a random name",
	"tools/sandbox/local/supervisor.go os.WriteFile": "a name in /proc/self",
}

// No writer opens what somebody else may have put in its way: files are made exclusively, by this package or with O_EXCL.
// A plain call in a place that is not in the table above turns this test red.
func TestWriters_MakeFilesExclusively(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, top := range []string{"cmd/herald", "cron", "gateway", "platforms", "sessions", "tools"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, e fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(root, path)
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.Dir(rel), "test") || rel == "tools/spill/spill.go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if name := plainCall(n); name != "" {
					key := filepath.ToSlash(rel) + " " + name
					seen[key] = true
					require.Contains(t, plain, key, "use tools/spill, or O_EXCL; see the table in this test")
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	for key := range plain {
		require.Contains(t, seen, key, "nothing does this any more: take it out of the table")
	}
}

// plainCall names a call that may open a file that is there already for writing.
func plainCall(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := fun.X.(*ast.Ident)
	name := fun.Sel.Name
	switch {
	case ok && pkg.Name == "os" && (name == "WriteFile" || name == "Create"):
		return "os." + name
	case name != "OpenFile" || len(call.Args) < 2:
		return ""
	}
	flags := map[string]bool{}
	ast.Inspect(call.Args[1], func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			flags[id.Name] = true
		}
		return true
	})
	if (flags["O_CREATE"] || flags["O_TRUNC"] || flags["O_APPEND"]) && !flags["O_EXCL"] {
		if ok && pkg.Name == "os" {
			return "os.OpenFile"
		}
		return "OpenFile"
	}
	return ""
}
