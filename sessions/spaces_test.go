package sessions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/sessions"
)

// The table of spaces names each constant once, in order, with an owner whose code uses it; and nobody names a space by a
// string of their own.
func TestSpaces_TableIsTrue(t *testing.T) {
	users, bare := spaceUsers(t)
	require.Empty(t, bare, "a space is a constant of sessions/spaces.go")
	names := spaceConstants(t)
	var listed []string
	for _, info := range sessions.Spaces() {
		constant, ok := names[string(info.Space)]
		require.True(t, ok, "%s is no constant", info.Space)
		require.NotEmpty(t, info.Name)
		require.NotEmpty(t, info.Holds)
		require.Contains(t, users[constant], info.Owner, "%s says that its owner is %s, which does not use it", info.Space, info.Owner)
		listed = append(listed, string(info.Space))
	}
	require.Len(t, listed, len(names), "each constant is in the table")
	require.Equal(t, len(listed), len(slices.Compact(slices.Sorted(slices.Values(listed)))), "each once")
}

// spaceConstants returns the constants of sessions/spaces.go by their values.
func spaceConstants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "spaces.go", nil, 0)
	require.NoError(t, err)
	out := map[string]string{}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			value := spec.(*ast.ValueSpec)
			if typ, ok := value.Type.(*ast.Ident); ok && typ.Name == "Space" {
				out[strings.Trim(value.Values[0].(*ast.BasicLit).Value, `"`)] = value.Names[0].Name
			}
		}
	}
	require.NotEmpty(t, out)
	return out
}

// spaceUsers returns the packages that use each constant, and the calls that name a space by a string.
func spaceUsers(t *testing.T) (users map[string][]string, bare []string) {
	t.Helper()
	users = map[string][]string{}
	fset := token.NewFileSet()
	for _, root := range []string{"../gateway", "../cron", "../sessions"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			room := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "sessions" && strings.HasPrefix(n.Sel.Name, "Space") {
						users[n.Sel.Name] = append(users[n.Sel.Name], room)
					}
				case *ast.CallExpr:
					if fun, ok := n.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "SetValue" && len(n.Args) > 0 {
						if _, ok := n.Args[0].(*ast.BasicLit); ok {
							bare = append(bare, fset.Position(n.Pos()).String())
						}
					}
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	return users, bare
}
