package tree

import (
	"fmt"
	"reflect"
)

// Spec describes settings: the types that hold them and the names under which they can be given.
type Spec struct {
	// Root is the struct type of all settings.
	Root reflect.Type
	// Prefix begins the mechanical variable of each key, such as "HERALD_". A variable that begins so and that no key reads
	// is pointed out, except for those that begin with one of Foreign.
	Prefix  string
	Foreign []string
	// Parts are the blocks that Root's field of type Parts holds.
	Parts []Part
	// Names are the keys that a map may have, by the word in the map's tag "keys".
	Names map[string][]string
	// Renamed are keys of older and of related configurations.
	Renamed []Renaming
	// Bare is a block whose blocks may also stand at the top level of config.yaml, and whose name may be left out of
	// variables. Loose is a name below one of these blocks under which the block's own keys are understood as well.
	Bare, Loose string
	// Inner is a block in which the keys of the top level are understood as well.
	Inner string
	// Title is the title of the schema.
	Title string
}

// Part is a block whose type is known at run time only.
type Part struct {
	// Name is its key, Label what replaces {N} in variables, Doc its meaning, Reload what a change needs; empty ones are
	// the parent's.
	Name, Label, Doc string
	Reload           Reload
	// Type is the struct type of its values.
	Type reflect.Type
}

// Parts holds the value of each Part, in the order of Spec.Parts: pointers to structs.
type Parts []any

// Renaming is a key that is now called To; an empty To is a key that no longer does anything. Both are accepted with a
// warning.
type Renaming struct{ From, To string }

// Tree is the keys of settings. Making one is cheap enough for each use; it is never changed, so it may be shared.
type Tree struct {
	spec Spec
	root *key
}

// New reads the tags of a Spec. A tag that makes no sense is a bug and panics.
func New(spec Spec) *Tree {
	root := &key{typ: spec.Root, reload: ReloadLive}
	spec.addFields(root, spec.Root, nil)
	return &Tree{spec, root}
}

// Default fills an empty struct of type Root with the defaults of the tags.
func (t *Tree) Default(into any) { setDefaults(t.root, valueOf(into)) }

// valueOf is the struct behind a pointer to Root.
func valueOf(settings any) reflect.Value { return reflect.ValueOf(settings).Elem() }

// setDefaults fills in the defaults of the tags, and makes the values of parts. A default that does not parse is a bug in
// the tag.
func setDefaults(k *key, v reflect.Value) {
	for _, f := range k.fields {
		if f.slot > 0 {
			parts := v.FieldByIndex(f.index)
			parts.Set(reflect.Append(parts, reflect.New(f.typ)))
		}
		fv := f.get(v)
		switch {
		case f.fields != nil:
			setDefaults(f, fv)
		case f.hasDef && f.typ.Kind() == reflect.Slice:
			fv.Set(reflect.ValueOf(split(f.def)))
		case f.hasDef:
			if err := f.set(fv, f.def); err != nil {
				panic(fmt.Sprintf("settings: default of %s: %v", f.path, err))
			}
		}
	}
}

// Key is one setting, for those who list them.
type Key struct {
	// Name is its last part, Path all of it with dots.
	Name, Path string
	// Doc is its meaning, Min and Max are its bounds, Short is the field that a bare value of a block sets.
	Doc, Min, Max, Short string
	// Variables set it, in the order in which they are looked at.
	Variables []string
	Type      reflect.Type
	Reload    Reload
	// Leaf is true when it holds a value of its own, Secret when that is never shown.
	Leaf, Secret bool
}

// Keys lists all keys, blocks before what is in them; entries of maps and lists are left out.
func (t *Tree) Keys() []Key {
	var out []Key
	t.root.each(func(k *key) {
		out = append(out, Key{Name: k.name, Path: k.path, Doc: k.doc, Min: k.min, Max: k.max, Short: k.short, Variables: k.env,
			Type: k.typ, Reload: k.reload, Leaf: k.leaf(), Secret: k.typ == secretType})
	})
	return out
}

// Has reports whether there is a key with this path. Entries of maps are found by any name.
func (t *Tree) Has(path string) bool { return t.root.find(path) != nil }
