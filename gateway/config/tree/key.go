package tree

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"herald/platforms"
)

// Reload says what a changed value needs to take effect.
type Reload string

// The kinds of reload, from the lightest.
const (
	ReloadLive    Reload = "live"    // at once
	ReloadSession Reload = "session" // for sessions that begin afterwards
	ReloadAdapter Reload = "adapter" // the part is started again
	ReloadRestart Reload = "restart" // the daemon is started again
)

// key is one node of the tree that the tags describe. Leaves hold a value, the others have children.
type key struct {
	name   string // as in config.yaml; "*" for the elements of a map or list
	path   string // dotted, from the root
	index  []int  // where the field is in its parent struct
	slot   int    // which of the Parts in that field, from 1; 0: the field is no Parts
	part   string // the block below Spec.Bare that the key belongs to
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
	secretType   = reflect.TypeFor[platforms.Secret]()
	rateType     = reflect.TypeFor[platforms.Rate]()
	bytesType    = reflect.TypeFor[Bytes]()
	partsType    = reflect.TypeFor[Parts]()
)

// addFields adds the fields of a struct, embedded ones in place. A field replaces an embedded one of the same name.
// Fields that are not exported are no settings.
func (s *Spec) addFields(k *key, t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), at...), i)
		switch {
		case !f.IsExported():
		case f.Type == partsType:
			s.addParts(k, index)
		case f.Anonymous:
			before := len(k.fields)
			s.addFields(k, f.Type, index)
			k.fields = append(k.fields[:before], without(k.fields[before:], t)...)
		default:
			k.fields = append(k.fields, s.newKey(k, &key{index: index, typ: f.Type}, f.Tag))
		}
	}
}

// addParts adds the blocks that are known at run time only.
func (s *Spec) addParts(k *key, index []int) {
	for i, p := range s.Parts {
		block := &key{index: index, slot: i + 1, typ: p.Type, name: p.Name, doc: p.Doc, label: p.Label, reload: p.Reload}
		k.fields = append(k.fields, s.newKey(k, block, ""))
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

// newKey completes a key by its tag and its parent.
func (s *Spec) newKey(parent, k *key, tag reflect.StructTag) *key {
	env := k.readTag(string(tag))
	k.path, k.part = join(parent.path, k.name), parent.part
	if s.Bare != "" && parent.path == s.Bare {
		k.part = k.name
	}
	if k.reload == "" {
		k.reload = parent.reload
	}
	if k.label == "" {
		k.label = parent.label
	}
	k.env = s.envNames(k.path, env, k.label)
	switch t := k.typ; {
	case t == secretType || t == rateType:
	case t.Kind() == reflect.Struct:
		k.env = nil // its fields are set one by one
		s.addFields(k, t, nil)
	case t.Kind() == reflect.Map:
		k.elem = s.newElem(k, t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		k.elem = s.newElem(k, t.Elem())
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
			panic("settings: tag of " + k.name + ": " + tag)
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
			panic("settings: tag of " + k.name + ": no meaning for " + name)
		}
	}
	return env
}

// newElem describes the elements of a map or list.
func (s *Spec) newElem(parent *key, t reflect.Type) *key {
	k := &key{name: "*", path: parent.path + ".*", part: parent.part, typ: t, doc: "one entry", reload: parent.reload, check: parent.check}
	if t.Kind() == reflect.Struct {
		s.addFields(k, t, nil)
	}
	return k
}

// envNames returns the variables of a key: the prefix and its path; without the bare block for the keys below it; and the
// names the ecosystem knows, with {N} replaced by the label of the block.
func (s *Spec) envNames(path, tag, label string) []string {
	names := []string{s.envName(path)}
	if rest, ok := strings.CutPrefix(path, s.Bare+"."); ok && s.Bare != "" {
		names = append(names, s.envName(rest))
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

// envName is the mechanical name: the prefix and the path in upper case with "_" for ".".
func (s *Spec) envName(path string) string {
	b := append(make([]byte, 0, len(s.Prefix)+len(path)), s.Prefix...)
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
func (k *key) get(parent reflect.Value) reflect.Value {
	v := parent.FieldByIndex(k.index)
	if k.slot > 0 {
		return v.Index(k.slot - 1).Elem().Elem()
	}
	return v
}

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
