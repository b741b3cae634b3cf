package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reload says what a changed value needs to take effect.
type Reload string

// The kinds of reload, from the lightest.
const (
	ReloadLive    Reload = "live"    // at once
	ReloadSession Reload = "session" // for sessions that begin afterwards
	ReloadAdapter Reload = "adapter" // the platform's adapter is started anew
	ReloadRestart Reload = "restart" // the daemon is started anew
)

// key is one node of the tree that the tags of Config describe. Leaves hold a value, the others have children.
type key struct {
	name   string // as in config.yaml; "*" for the elements of a map or list
	path   string // dotted, from the root
	index  []int  // where the field is in its parent struct
	typ    reflect.Type
	fields []*key // of a struct
	elem   *key   // of a map, or of a list of structs

	def, doc, check, sep, short, keys, label string
	hasDef, required                         bool
	oneof, words                             []string
	min, max                                 string
	env                                      []string // in the order they are looked at
	reload                                   Reload
}

// leaf reports whether the key holds a value of its own.
func (k *key) leaf() bool { return k.fields == nil && k.elem == nil }

// field finds a child by its name.
func (k *key) field(name string) *key {
	for _, f := range k.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// find walks a dotted path down from k. Elements of a map are found by any name. nil when there is no such key.
func (k *key) find(path string) *key {
	at := k
	for part := range strings.SplitSeq(path, ".") {
		switch {
		case at.fields != nil:
			if at = at.field(part); at == nil {
				return nil
			}
		case at.elem != nil && at.typ.Kind() == reflect.Map:
			at = at.elem
		default:
			return nil
		}
	}
	return at
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
	rateType     = reflect.TypeFor[Rate]()
	bytesType    = reflect.TypeFor[Bytes]()
)

// keyTree reads the tags of Config. It is cheap enough to be built for each use.
func keyTree() *key {
	root := &key{typ: reflect.TypeFor[Config](), reload: ReloadLive}
	root.addFields(root.typ, nil)
	return root
}

// addFields adds the fields of a struct, embedded ones in place. A field replaces an embedded one of the same name.
func (k *key) addFields(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), at...), i)
		if f.Anonymous {
			before := len(k.fields)
			k.addFields(f.Type, index)
			k.fields = append(k.fields[:before], without(k.fields[before:], t)...)
			continue
		}
		k.fields = append(k.fields, newKey(k, f.Type, f.Tag, index))
	}
}

// without returns the keys that t has no field of its own for.
func without(keys []*key, t reflect.Type) []*key {
	own := map[string]bool{}
	for i := range t.NumField() {
		if f := t.Field(i); !f.Anonymous {
			own[f.Tag.Get("yaml")] = true
		}
	}
	return slices.DeleteFunc(keys, func(k *key) bool { return own[k.name] })
}

func newKey(parent *key, t reflect.Type, tag reflect.StructTag, index []int) *key {
	k := &key{index: index, typ: t}
	env := k.readTag(string(tag))
	k.path = join(parent.path, k.name)
	if k.reload == "" {
		k.reload = parent.reload
	}
	if k.label == "" {
		k.label = parent.label
	}
	k.env = envNames(k.path, env, k.label)
	switch {
	case t == secretType || t == rateType:
	case t.Kind() == reflect.Struct:
		k.env = nil // its fields are set one by one
		k.addFields(t, nil)
	case t.Kind() == reflect.Map:
		k.elem = newElem(k, t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		k.elem = newElem(k, t.Elem())
	}
	return k
}

// readTag reads a field's tag in one pass (reflect's Get reads it from the start for each name) and returns the
// ecosystem's variables.
func (k *key) readTag(tag string) (env string) {
	for tag = strings.TrimLeft(tag, " "); tag != ""; tag = strings.TrimLeft(tag, " ") {
		name, rest, _ := strings.Cut(tag, ":")
		quoted, err := strconv.QuotedPrefix(rest)
		value, uerr := strconv.Unquote(quoted)
		if err != nil || uerr != nil {
			panic("config: tag of " + k.name + ": " + tag)
		}
		tag = rest[len(quoted):]
		switch name {
		case "yaml":
			k.name = value
		case "doc":
			k.doc = value
		case "default":
			k.def, k.hasDef = value, true
		case "min":
			k.min = value
		case "max":
			k.max = value
		case "oneof":
			k.oneof = split(value)
		case "words":
			k.words = split(value)
		case "check":
			k.check = value
		case "sep":
			k.sep = value
		case "short":
			k.short = value
		case "keys":
			k.keys = value
		case "name":
			k.label = value
		case "required":
			k.required = true
		case "reload":
			k.reload = Reload(value)
		case "env":
			env = value
		default:
			panic("config: tag of " + k.name + ": no meaning for " + name)
		}
	}
	return env
}

// newElem describes the elements of a map or list.
func newElem(parent *key, t reflect.Type) *key {
	k := &key{name: "*", path: parent.path + ".*", typ: t, doc: "one entry", reload: parent.reload, check: parent.check}
	if t.Kind() == reflect.Struct {
		k.addFields(t, nil)
	}
	return k
}

// envNames returns the variables of a key: HERALD_ and its path; without "platforms" for the keys below it; and
// the names the ecosystem knows, with {N} replaced by the label of the block.
func envNames(path, tag, label string) []string {
	names := []string{envName(path)}
	if rest, ok := strings.CutPrefix(path, "platforms."); ok {
		names = append(names, envName(rest))
	}
	for _, n := range split(tag) {
		if strings.Contains(n, "{N}") {
			if label == "" {
				continue
			}
			n = strings.ReplaceAll(n, "{N}", label)
		}
		names = append(names, n)
	}
	return names
}

// envName is the mechanical name: HERALD_ and the path in upper case with "_" for ".".
func envName(path string) string {
	b := append(make([]byte, 0, 7+len(path)), "HERALD_"...)
	for _, c := range []byte(path) { // keys are a-z, 0-9, "_" and "."
		switch {
		case c == '.':
			c = '_'
		case 'a' <= c && c <= 'z':
			c -= 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

// each calls fn for every key below k, in the order of the struct; map and list elements are left out.
func (k *key) each(fn func(*key)) {
	for _, f := range k.fields {
		fn(f)
		f.each(fn)
	}
}

// get returns the field that k describes, given the value of k's parent struct.
func (k *key) get(parent reflect.Value) reflect.Value { return parent.FieldByIndex(k.index) }

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Nearest returns the candidate closest to a mistyped name, or "" when none is close enough to be meant.
func Nearest(name string, candidates []string) string {
	best, least := "", 1+max(1, len(name)/3)
	low := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, c := range candidates {
		if d := distance(low, strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between a and b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	var two, one, row [65]int
	for j := range len(b) + 1 {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, one[j]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(b)]
}
