package tree

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Change is one key whose value differs between two configurations.
type Change struct {
	// Key is the dotted key.
	Key string
	// Old and New are the values as config.yaml would have them; "***" for a secret, "" for one that is not set.
	Old, New string
	// Reload says what the new value needs to take effect.
	Reload Reload
	// Part is the block below Spec.Bare that the key belongs to; empty: none.
	Part string
}

// String returns one line for the log.
func (c Change) String() string {
	return fmt.Sprintf("%s: %q to %q (%s)", c.Key, c.Old, c.New, c.Reload)
}

// Diff lists what differs between two structs of type Root, in the order of their keys.
func (t *Tree) Diff(before, after any) []Change {
	var out []Change
	diff(t.root, valueOf(before), valueOf(after), "", &out)
	return out
}

// diff compares the fields of two structs.
func diff(k *key, a, b reflect.Value, path string, out *[]Change) {
	for _, f := range k.fields {
		diffValue(f, f.get(a), f.get(b), join(path, f.name), out)
	}
}

func diffValue(k *key, a, b reflect.Value, path string, out *[]Change) {
	switch {
	case k.fields != nil:
		diff(k, a, b, path, out)
	case k.elem != nil && k.typ.Kind() == reflect.Map:
		for _, name := range mapNames(a, b) {
			diffValue(k.elem, entry(a, name), entry(b, name), join(path, name), out)
		}
	case !reflect.DeepEqual(a.Interface(), b.Interface()) && (a.Kind() != reflect.Slice || a.Len()+b.Len() > 0):
		*out = append(*out, Change{Key: path, Old: text(k, a), New: text(k, b), Reload: k.reload, Part: k.part})
	}
}

// KeepRunning puts the values of running into loaded for all keys that need a restart. loaded is a copy of a struct of
// type Root; values that it shares with the original are copied before they are changed.
func (t *Tree) KeepRunning(running, loaded any) { keep(t.root, valueOf(running), valueOf(loaded)) }

func keep(k *key, from, to reflect.Value) {
	for _, f := range k.fields {
		if f.slot > 0 {
			ownPart(f, to)
		}
		switch {
		case f.fields != nil:
			keep(f, f.get(from), f.get(to))
		case f.reload == ReloadRestart:
			f.get(to).Set(f.get(from))
		}
	}
}

// ownPart gives a struct a value of its own for a part.
func ownPart(f *key, v reflect.Value) {
	parts := v.FieldByIndex(f.index)
	if f.slot == 1 {
		own := reflect.MakeSlice(parts.Type(), parts.Len(), parts.Len())
		reflect.Copy(own, parts)
		parts.Set(own)
	}
	copied := reflect.New(f.typ)
	copied.Elem().Set(f.get(v))
	parts.Index(f.slot - 1).Set(copied)
}

// entry returns a map's element, or the zero value when it has none.
func entry(m reflect.Value, name string) reflect.Value {
	if v := m.MapIndex(reflect.ValueOf(name)); v.IsValid() {
		return v
	}
	return reflect.Zero(m.Type().Elem())
}

// mapNames returns the names in any of the maps, sorted.
func mapNames(maps ...reflect.Value) []string {
	names := map[string]bool{}
	for _, m := range maps {
		for _, n := range m.MapKeys() {
			names[n.String()] = true
		}
	}
	return sortedKeys(names)
}

// text is a leaf's value in one line, secrets masked.
func text(k *key, v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Slice && k.elem == nil:
		return strings.Join(v.Interface().([]string), ", ")
	case v.Kind() == reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = fmt.Sprintf("%+v", v.Index(i).Interface())
		}
		return strings.Join(parts, ", ")
	}
	if v.Type() == durationType {
		return shortDuration(time.Duration(v.Int()))
	}
	return fmt.Sprint(v.Interface())
}

// shortDuration is 30m for 30m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
