package gateway_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/all"
)

// The packages whose structs are settings.
const (
	configPackage    = "herald/gateway/config"
	platformsPackage = "herald/platforms"
)

// settingTypes carry settings from the configuration to the package that owns the behaviour: a value that is
// handed over and read by nobody is as untrue as a key that nobody reads.
var settingTypes = []string{
	"herald/gateway/config.DisplaySettings", "herald/gateway/turn.Settings", "herald/gateway/turn/show.Display", "herald/gateway/turn/show.MediaPolicy",
	"herald/gateway/agent.Limits", "herald/gateway/agent.Compaction",
	"herald/gateway/agent.PromptInput", "herald/gateway/agent.Input", "herald/gateway/model/provider.Settings",
	"herald/gateway/model/provider.Endpoint", "herald/gateway/model.RetryPolicy", "herald/gateway/access.Policy",
	"herald/gateway/access.PlatformPolicy", "herald/gateway/access.LoopLimits", "herald/gateway/router.Options",
	"herald/gateway/delivery.Options", "herald/sessions/sqlite.Retention",
	"herald/platforms/fetch.Options", "herald/tools/checkpoint.Options",
	"herald/tools.Options", "herald/tools.ResultOptions", "herald/tools/sandbox/local.Options", "herald/tools/sandbox/docker.Options", "herald/tools/sandbox/ssh.Options", "herald/tools/terminal.Deps",
	"herald/tools/files.Deps", "herald/tools/memory.Options",
}

// A key of config.yaml that does nothing is a lie to the operator. Every field of the configuration is read by
// somebody outside gateway/config, directly or through a method of it that somebody calls; and every field of the
// types that carry settings onwards is read too.
func TestConfig_EveryKeyIsUsed(t *testing.T) {
	m := loadModule(t)
	reads := map[string]bool{}   // "package.Type.Field"
	through := map[string]bool{} // fields that methods of config read which are called outside
	called := map[string]bool{}  // functions and methods of config that are used outside
	for _, p := range m.packages {
		if p.path == configPackage {
			continue
		}
		for _, s := range p.selected() {
			if strings.HasSuffix(s.inside, ".Settings).Check") {
				continue // a value that is only checked does nothing
			}
			reads[s.field] = true
			called[s.fn] = true
		}
	}
	own := m.find(configPackage).selected()
	reach(called, own)
	for _, s := range own {
		if called[s.inside] && s.inside != "" {
			through[s.field] = true
		}
	}
	var unused []string
	for _, field := range m.settings(t) {
		if !reads[field] && !through[field] {
			unused = append(unused, field)
		}
	}
	require.Empty(t, unused, "these settings can be set and nobody reads them")
}

// reach adds to the called functions of a package those that they call there. A call of an interface's method is a
// call of every method of that name.
func reach(called map[string]bool, own []selection) {
	for n := -1; n != len(called); {
		n = len(called)
		for _, s := range own {
			method := s.inside[strings.LastIndexByte(s.inside, '.')+1:]
			if s.inside != "" && called["("+configPackage+".Block)."+method] {
				called[s.inside] = true
			}
			if called[s.inside] && s.inside != "" && s.fn != "" {
				called[s.fn] = true
			}
		}
	}
}

// module is every package of Herald, type-checked without its tests.
type module struct{ packages []*checked }

type checked struct {
	path  string
	files []*ast.File
	pkg   *types.Package
	info  *types.Info
}

func (m *module) find(path string) *checked {
	for _, p := range m.packages {
		if p.path == path {
			return p
		}
	}
	return nil
}

func loadModule(t *testing.T) *module {
	out, err := exec.Command("go", "list", "-tags", "sqlite_fts5", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,CgoFiles,Standard", "herald/...").Output()
	require.NoError(t, err)
	type listed struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
	}
	exports := map[string]string{}
	var ours []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		require.NoError(t, dec.Decode(&p))
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, "herald/") {
			ours = append(ours, p)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	m := &module{}
	for _, p := range ours {
		c := &checked{path: p.ImportPath, info: &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{},
			Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			c.files = append(c.files, f)
		}
		conf := types.Config{Importer: imports, Error: func(error) {}} // what cgo makes is not there; the rest is
		c.pkg, _ = conf.Check(p.ImportPath, fset, c.files, c.info)
		m.packages = append(m.packages, c)
	}
	require.Greater(t, len(m.packages), 30)
	return m
}

// settings lists the fields to look for: all of the configuration's leaves, and those of settingTypes.
func (m *module) settings(t *testing.T) []string {
	var out []string
	fields := func(pkg *types.Package, name string) {
		object := pkg.Scope().Lookup(name)
		require.NotNil(t, object, "%s.%s is gone; take it out of settingTypes", pkg.Path(), name)
		s, ok := object.Type().Underlying().(*types.Struct)
		require.True(t, ok)
		for i := range s.NumFields() {
			if f := s.Field(i); f.Exported() && !f.Embedded() {
				out = append(out, pkg.Path()+"."+name+"."+f.Name())
			}
		}
	}
	seen := map[string]bool{}
	var walk func(types.Type)
	walk = func(at types.Type) {
		switch at := types.Unalias(at).(type) {
		case *types.Pointer:
			walk(at.Elem())
		case *types.Slice:
			walk(at.Elem())
		case *types.Map:
			walk(at.Elem())
		case *types.Named:
			s, ok := at.Underlying().(*types.Struct)
			if !ok {
				walk(at.Underlying())
				return
			}
			name, home := at.Obj().Name(), at.Obj().Pkg().Path()
			if home != configPackage && !strings.HasPrefix(home, platformsPackage) || seen[home+"."+name] || name == "Secret" || name == "Rate" {
				return
			}
			seen[home+"."+name] = true
			fields(at.Obj().Pkg(), name)
			for i := range s.NumFields() {
				walk(s.Field(i).Type())
			}
		}
	}
	walk(m.find(configPackage).pkg.Scope().Lookup("Config").Type())
	for _, kind := range all.Kinds() {
		p := m.find(platformsPackage + "/" + string(kind.Name()))
		require.NotNil(t, p, kind.Name())
		walk(p.pkg.Scope().Lookup("Settings").Type())
	}
	require.Greater(t, len(out), 300)
	handed := slices.Clone(settingTypes)
	for _, kind := range all.Kinds() {
		handed = append(handed, platformsPackage+"/"+string(kind.Name())+".Options")
	}
	for _, name := range handed {
		i := strings.LastIndexByte(name, '.')
		p := m.find(name[:i])
		require.NotNil(t, p, name)
		fields(p.pkg, name[i+1:])
	}
	sort.Strings(out)
	return slices.Compact(out)
}

// selection is one x.f: the field or the function it names, and the function of the package it stands in.
type selection struct{ field, fn, inside string }

// selected lists what a package reads. The left side of an assignment is no reading.
func (c *checked) selected() []selection {
	var out []selection
	for _, f := range c.files {
		for _, d := range f.Decls {
			inside := ""
			if fn, ok := d.(*ast.FuncDecl); ok {
				inside = nameOf(c.info.Defs[fn.Name])
			}
			written := map[ast.Expr]bool{}
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					for _, left := range n.Lhs {
						written[left] = n.Tok == token.ASSIGN
					}
				case *ast.SelectorExpr:
					if s := c.info.Selections[n]; s != nil && s.Kind() == types.FieldVal {
						if !written[n] {
							out = append(out, selection{field: owner(s) + "." + s.Obj().Name(), inside: inside})
						}
					} else if object := c.info.Uses[n.Sel]; object != nil {
						out = append(out, selection{fn: nameOf(object), inside: inside})
					}
				}
				return true
			})
		}
	}
	return out
}

// owner is the struct type that a selected field belongs to, embedded ones followed.
func owner(s *types.Selection) string {
	at := s.Recv()
	for _, i := range s.Index()[:len(s.Index())-1] {
		at = deref(at).Underlying().(*types.Struct).Field(i).Type()
	}
	if named, ok := deref(at).(*types.Named); ok && named.Obj().Pkg() != nil {
		return named.Obj().Pkg().Path() + "." + named.Obj().Name()
	}
	return ""
}

func deref(t types.Type) types.Type {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		return types.Unalias(p.Elem())
	}
	return t
}

// nameOf names a function or method across packages.
func nameOf(o types.Object) string {
	fn, ok := o.(*types.Func)
	if !ok {
		return ""
	}
	return fmt.Sprint(fn.FullName())
}
