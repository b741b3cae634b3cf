package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"herald/platforms"
)

// Change is one key whose value differs between two configurations.
type Change struct {
	// Key is the dotted key.
	Key string
	// Old and New are the values as config.yaml would have them; "***" for a secret, "" for one that is not set.
	Old, New string
	// Reload says what the new value needs to take effect.
	Reload Reload
	// Platform is whose adapter has to be started anew, for ReloadAdapter; empty: all of them.
	Platform platforms.Name
}

// String returns one line for the log.
func (c Change) String() string {
	return fmt.Sprintf("%s: %q to %q (%s)", c.Key, c.Old, c.New, c.Reload)
}

// Diff lists what differs, in the order of the Config.
func Diff(before, after *Config) []Change {
	var out []Change
	diff(keyTree(), reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem(), "", &out)
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
		c := Change{Key: path, Old: text(k, a), New: text(k, b), Reload: k.reload}
		if rest, ok := strings.CutPrefix(path, "platforms."); ok && k.reload == ReloadAdapter {
			name, _, _ := strings.Cut(rest, ".")
			c.Platform = platforms.Name(name)
		}
		*out = append(*out, c)
	}
}

// InForce returns what a running daemon obeys after a reload: loaded, but with the values of running for all keys that
// need a restart. Neither is changed.
func InForce(running, loaded *Config) *Config {
	out := *loaded
	keep(keyTree(), reflect.ValueOf(running).Elem(), reflect.ValueOf(&out).Elem())
	return &out
}

func keep(k *key, from, to reflect.Value) {
	for _, f := range k.fields {
		switch {
		case f.fields != nil:
			keep(f, f.get(from), f.get(to))
		case f.reload == ReloadRestart:
			f.get(to).Set(f.get(from))
		}
	}
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
