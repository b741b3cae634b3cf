package tools

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxExpansion is how many schemas may apply to one value, references followed. Real ones need a handful.
const maxExpansion = 5_000

// refWalk looks for references that a validator must not follow. Schemas come from MCP servers too: one
// that refers to itself without going into the value would never end, and a few lines that refer to each
// other twice would be followed millions of times.
type refWalk struct {
	root any
	// weight is the number of schemas that apply to the same value as the one at a path; 0 while it is
	// being computed.
	weight map[string]int
}

// checkRefs returns an error for a schema that must not be used: a reference that leads nowhere, back to
// itself, or to more than maxExpansion schemas, or one of a kind that only a full validator can follow.
// external is true when a reference leaves the document, which is no error.
func checkRefs(root any) (external bool, err error) {
	w := &refWalk{root: root, weight: map[string]int{}}
	err = w.visit(root, "", func(m map[string]any, path string) error {
		for _, k := range []string{"$dynamicRef", "$recursiveRef", "$id"} {
			if _, ok := m[k].(string); ok && (path != "" || k != "$id") {
				return fmt.Errorf("it uses %s at %q", k, path)
			}
		}
		if name, bad := unknownType(m["type"]); bad {
			return fmt.Errorf("it has the unknown type %q at %q", name, path)
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return nil
		}
		if !strings.HasPrefix(ref, "#") {
			external = true
			return nil
		}
		_, err := w.weigh(path)
		return err
	})
	return external, err
}

// visit calls fn with every schema of a document.
func (w *refWalk) visit(v any, path string, fn func(map[string]any, string) error) error {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if err := fn(m, path); err != nil {
		return err
	}
	for key, sub := range m {
		at := path + "/" + escapePointer(key)
		switch key {
		case "const", "default", "enum", "example", "examples":
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			named, _ := sub.(map[string]any)
			for name, s := range named {
				if err := w.visit(s, at+"/"+escapePointer(name), fn); err != nil {
					return err
				}
			}
		default:
			if list, ok := sub.([]any); ok {
				for i, s := range list {
					if err := w.visit(s, at+"/"+strconv.Itoa(i), fn); err != nil {
						return err
					}
				}
				continue
			}
			if err := w.visit(sub, at, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// weigh counts the schemas that apply to the same value as the one at path.
func (w *refWalk) weigh(path string) (int, error) {
	if n, seen := w.weight[path]; seen {
		if n == 0 {
			return 0, fmt.Errorf("the reference at %q leads back to itself", path)
		}
		return n, nil
	}
	v, ok := w.at(path)
	if !ok {
		return 0, fmt.Errorf("there is nothing at %q, which a reference names", path)
	}
	m, ok := v.(map[string]any)
	if !ok {
		w.weight[path] = 1
		return 1, nil
	}
	w.weight[path] = 0
	total := 1
	for _, next := range w.beside(m, path) {
		n, err := w.weigh(next)
		if err != nil {
			return 0, err
		}
		if total += n; total > maxExpansion {
			return 0, fmt.Errorf("more than %d schemas apply to one value at %q", maxExpansion, path)
		}
	}
	w.weight[path] = total
	return total, nil
}

// beside returns the paths of the schemas that a schema applies to the same value.
func (w *refWalk) beside(m map[string]any, path string) []string {
	var out []string
	if ref, ok := m["$ref"].(string); ok && strings.HasPrefix(ref, "#") {
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(ref, "#"), "/"))
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[key].([]any)
		for i := range list {
			out = append(out, path+"/"+key+"/"+strconv.Itoa(i))
		}
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		if _, ok := m[key]; ok {
			out = append(out, path+"/"+key)
		}
	}
	named, _ := m["dependentSchemas"].(map[string]any)
	for name := range named {
		out = append(out, path+"/dependentSchemas/"+escapePointer(name))
	}
	return out
}

// unknownType finds a type that JSON Schema does not have: no value would be valid.
func unknownType(v any) (name string, bad bool) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, t := range list {
		if name, ok := t.(string); ok && !slices.Contains(typeNames, name) {
			return name, true
		}
	}
	return "", false
}

// at follows a JSON pointer; the empty one is the document. Anchors ("#name") are not followed.
func (w *refWalk) at(path string) (any, bool) {
	v := w.root
	if path == "" {
		return v, true
	}
	if path[0] != '/' {
		return nil, false
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[part]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			v = node[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func escapePointer(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }
