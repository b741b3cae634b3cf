package tree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Source is where Load looks.
type Source struct {
	// Home is the directory of config.yaml and .env. Empty: no files are read.
	Home string
	// File is the configuration file in place of config.yaml in Home; it must exist.
	File string
	// Environ is the environment as "NAME=value" texts, such as os.Environ(). nil: none.
	Environ []string
	// Flags are values by dotted key that the command line gave, such as {"http.listen": "127.0.0.1:0"}.
	Flags map[string]string
	// UserHome is what "~/" in paths stands for; empty: the HOME of Environ.
	UserHome string
}

// Load fills settings, a pointer to an empty struct of type Root. They are complete in any case: a value that is no good is
// left as it was before, and the report says so. Load reads config.yaml and .env in the home, both of which may be missing,
// and nothing else.
func (t *Tree) Load(src Source, settings any) *Report {
	d := t.decode(settings)
	setDefaults(t.root, d.config)
	if name, required := src.file(); name != "" {
		if data, ok := d.report.readFile(name, required); ok {
			d.document(name, data)
		}
	}
	vars := src.variables(d.report)
	d.environment(vars)
	d.flags(src.Flags)
	home := src.UserHome
	if home == "" {
		home = vars["HOME"].value
	}
	expandHome(t.root, d.config, home)
	return d.report
}

// Read puts the text of one config.yaml into settings, a pointer to a struct of type Root that has its defaults.
func (t *Tree) Read(name string, text []byte, settings any) *Report {
	d := t.decode(settings)
	d.document(name, text)
	return d.report
}

func (t *Tree) decode(settings any) *decoder {
	return &decoder{tree: t, root: t.root, config: valueOf(settings), report: &Report{origins: map[string]Origin{}}}
}

// Files are the names of what Load reads; they need not exist.
func (s Source) Files() []string {
	var out []string
	if name, _ := s.file(); name != "" {
		out = append(out, name)
	}
	if s.Home != "" {
		out = append(out, filepath.Join(s.Home, ".env"))
	}
	return out
}

// file returns the configuration file's name and whether it must exist.
func (s Source) file() (name string, required bool) {
	switch {
	case s.File != "":
		return s.File, true
	case s.Home != "":
		return filepath.Join(s.Home, "config.yaml"), false
	}
	return "", false
}

// readFile reads a file of at most MaxFileBytes.
func (r *Report) readFile(name string, required bool) (data []byte, ok bool) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if required {
			r.Errorf("", Origin{}, "%s: there is no such file; check the path", name)
		}
		return nil, false
	}
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	}
	switch {
	case err != nil:
		r.Errorf("", Origin{}, "%s: cannot be read: %v; %s", name, BareError(err), Ownership(name))
		return nil, false
	case len(data) > MaxFileBytes:
		r.Errorf("", Origin{}, "%s: is larger than 1 MiB; a configuration is a short text", name)
		return nil, false
	}
	return data, true
}

// variable is one value of the environment or .env.
type variable struct {
	value  string
	origin Origin
}

// variables collects .env and, above it, the environment. Empty values count as not set.
func (s Source) variables(r *Report) map[string]variable {
	vars := make(map[string]variable, len(s.Environ))
	if s.Home != "" {
		name := filepath.Join(s.Home, ".env")
		if data, ok := r.readFile(name, false); ok {
			r.checkSecretFile(name)
			list, problems := ParseDotEnv(data)
			for _, p := range problems {
				r.Errorf("", Origin{}, "%s: %s", name, p)
			}
			for _, v := range list {
				if v.Value != "" {
					vars[v.Name] = variable{v.Value, Origin{Kind: "dotenv", File: name, Line: v.Line, Name: v.Name}}
				}
			}
		}
	}
	for _, e := range s.Environ {
		if name, value, ok := strings.Cut(e, "="); ok && strings.TrimSpace(value) != "" {
			vars[name] = variable{value, Origin{Kind: "env", Name: name}}
		}
	}
	return vars
}

// checkSecretFile refuses a .env that others may read or write.
func (r *Report) checkSecretFile(name string) {
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return
	}
	r.Errorf("", Origin{},
		"%s: others may read or change it (mode %04o), and it holds secrets; run: chmod 600 %s", name, info.Mode().Perm(), name)
}

// environment takes the values of all known variables and warns of those with our prefix that nobody knows.
func (d *decoder) environment(vars map[string]variable) {
	known := map[string]bool{} // those of vars that some key reads
	visit := func(k *key, v reflect.Value) {
		used := ""
		for _, name := range k.env {
			e, ok := vars[name]
			if !ok {
				continue
			}
			known[name] = true
			switch {
			case used != "":
				if vars[used].value != e.value {
					d.report.Warnf(k.path, e.origin, "is not used, because %s is set as well", used)
				}
			default:
				used = name
				d.variable(k, v, e)
			}
		}
	}
	d.walk(d.root, d.config, visit)
	d.namedMaps(vars, known)
	spec := d.tree.spec
	var strange []string
	for name := range vars {
		foreign := func(begin string) bool { return strings.HasPrefix(name, begin) }
		if strings.HasPrefix(name, spec.Prefix) && !known[name] && !slices.ContainsFunc(spec.Foreign, foreign) {
			strange = append(strange, name)
		}
	}
	slices.Sort(strange)
	for _, name := range strange {
		hint := ""
		if near := Nearest(name, d.tree.variableNames()); near != "" {
			hint = "; did you mean " + near + "?"
		}
		d.report.Warnf("", vars[name].origin, "unknown variable, ignored%s", hint)
	}
}

// variableNames lists every variable that a key reads, sorted.
func (t *Tree) variableNames() []string {
	var names []string
	t.root.each(func(k *key) {
		names = append(names, k.env...)
		if k.keys == "" {
			return
		}
		for _, p := range t.spec.Names[k.keys] {
			for _, f := range k.elem.fields {
				names = append(names, t.spec.envName(join(join(k.path, p), f.name)))
			}
		}
	})
	slices.Sort(names)
	return names
}

// walk visits every key that a text can set: leaves, and whole maps and lists.
func (d *decoder) walk(k *key, v reflect.Value, visit func(*key, reflect.Value)) {
	for _, f := range k.fields {
		fv := f.get(v)
		if f.fields != nil {
			d.walk(f, fv, visit)
			continue
		}
		visit(f, fv)
	}
}

// namedMaps takes variables such as HERALD_DISPLAY_PLATFORMS_WEB_TOOL_PROGRESS: one value of one entry in a map whose
// names are known.
func (d *decoder) namedMaps(vars map[string]variable, known map[string]bool) {
	d.walk(d.root, d.config, func(k *key, v reflect.Value) {
		if k.keys == "" || k.elem.fields == nil {
			return
		}
		prefix := k.env[0] + "_"
		if !slices.ContainsFunc(sortedKeys(vars), func(name string) bool { return strings.HasPrefix(name, prefix) }) {
			return
		}
		for _, p := range d.tree.spec.Names[k.keys] {
			e := reflect.New(v.Type().Elem()).Elem()
			if old := v.MapIndex(reflect.ValueOf(p)); old.IsValid() {
				e.Set(old)
			}
			found := false
			for _, f := range k.elem.fields {
				path := join(join(k.path, p), f.name)
				name := d.tree.spec.envName(path)
				if val, ok := vars[name]; ok {
					known[name], found = true, true
					d.setText(f, f.get(e), val.value, path, val.origin)
				}
			}
			if found {
				if v.IsNil() {
					v.Set(reflect.MakeMap(v.Type()))
				}
				v.SetMapIndex(reflect.ValueOf(p), e)
			}
		}
	})
}

// variable puts one variable's text into a key. Maps and lists of blocks are written in YAML, and so may lists be.
func (d *decoder) variable(k *key, v reflect.Value, e variable) {
	if k.leaf() && (k.typ.Kind() != reflect.Slice || !strings.HasPrefix(strings.TrimSpace(e.value), "[")) {
		d.setText(k, v, e.value, k.path, e.origin)
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(e.value), &doc); err != nil || len(doc.Content) == 0 {
		d.report.Errorf(k.path, e.origin, "the value is not YAML: want %s, such as [a, b] or {a: b}", k.allowed(k.typ))
		return
	}
	d.origin = e.origin
	if k.elem != nil {
		v.SetZero()
	}
	d.value(k, v, doc.Content[0], k.path, 0)
	d.origin = Origin{}
}

// flags takes the values of the command line.
func (d *decoder) flags(flags map[string]string) {
	for _, path := range sortedKeys(flags) {
		o := Origin{Kind: "flag", Name: path}
		k := d.root.find(path)
		if k == nil || !k.leaf() || strings.Contains(k.path, "*") {
			d.report.Errorf(path, o, "there is no such key")
			continue
		}
		_, v := d.locate(path)
		d.setText(k, v, flags[path], path, o)
	}
}

// expandHome replaces "~/" in absolute paths.
func expandHome(k *key, v reflect.Value, home string) {
	for _, f := range k.fields {
		fv := f.get(v)
		switch {
		case f.fields != nil:
			expandHome(f, fv, home)
		case f.check != "abspath" || home == "":
		case fv.Kind() == reflect.String:
			if rest, ok := strings.CutPrefix(fv.String(), "~/"); ok {
				fv.SetString(filepath.Join(home, rest))
			}
		case fv.Kind() == reflect.Slice:
			for i := range fv.Len() {
				if rest, ok := strings.CutPrefix(fv.Index(i).String(), "~/"); ok {
					fv.Index(i).SetString(filepath.Join(home, rest))
				}
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
