package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaCache compiles a tool's parameters once for each text of them: a tool that describes itself at each
// listing may change them.
type schemaCache struct {
	mu   sync.Mutex
	text string
	got  *schema
	err  error
}

// schema is compiled parameters.
type schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved // nil: validation is not possible, coercion still is
}

func (c *schemaCache) get(parameters json.RawMessage) (s *schema, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.got == nil && c.err == nil || c.text != string(parameters) {
		c.text = string(parameters)
		c.got, c.err = compile(parameters)
		fresh = true
	}
	return c.got, fresh, c.err
}

// compile prepares parameters. A schema that points outside itself is compiled without validation. An
// error means that arguments can't be judged.
func compile(parameters json.RawMessage) (s *schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("compile schema: panic: %v", p)
		}
	}()
	if parameters == nil {
		parameters = json.RawMessage(`{"type":"object"}`)
	}
	tree, err := decodeNumbers(parameters)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	if root, ok := tree.(map[string]any); ok {
		delete(root, "$schema") // the validator refuses the whole schema for a name that it does not know
	}
	tree = openAPINull(tree)
	text, err := encode(tree)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	root := &jsonschema.Schema{}
	if err := json.Unmarshal(text, root); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	external, err := checkSchema(root)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	s = &schema{root: root}
	if external {
		return s, nil
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		return s, fmt.Errorf("compile schema: %w", err)
	}
	s.resolved = resolved
	return s, nil
}

// checkSchema is checkRefs on what the validator has understood: it takes keywords in any case ("$REF"),
// which the text would not show.
func checkSchema(root *jsonschema.Schema) (external bool, err error) {
	text, err := json.Marshal(root)
	if err != nil {
		return false, err
	}
	tree, err := decodeNumbers(text)
	if err != nil {
		return false, err
	}
	return checkRefs(tree)
}

// openAPINull turns OpenAPI's "nullable": true into JSON Schema. Data under literal keywords is not touched.
func openAPINull(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = openAPINull(v[i])
		}
	case map[string]any:
		for key, sub := range v {
			switch key {
			case "const", "default", "enum", "example", "examples":
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
				if m, ok := sub.(map[string]any); ok {
					for name, s := range m {
						m[name] = openAPINull(s)
					}
				}
			default:
				v[key] = openAPINull(sub)
			}
		}
		if v["nullable"] == true {
			return nullable(v)
		}
	}
	return v
}

func nullable(m map[string]any) any {
	delete(m, "nullable")
	if list, ok := m["enum"].([]any); ok {
		m["enum"] = append(list[:len(list):len(list)], nil)
	}
	switch t := m["type"].(type) {
	case string:
		if t != "null" {
			m["type"] = []any{t, "null"}
		}
		return m
	case []any:
		for _, name := range t {
			if name == "null" {
				return m
			}
		}
		m["type"] = append(t, "null")
		return m
	}
	if len(m) == 0 {
		return m // everything is allowed already
	}
	return map[string]any{"anyOf": []any{m, map[string]any{"type": "null"}}}
}

// deref follows local references of the form #/a/b, at most a few steps; what it can't follow it returns.
func (s *schema) deref(sub *jsonschema.Schema) *jsonschema.Schema {
	for range 8 {
		if sub == nil || !strings.HasPrefix(sub.Ref, "#") {
			return sub
		}
		target := s.pointer(strings.TrimPrefix(sub.Ref, "#"))
		if target == nil {
			return sub
		}
		sub = target
	}
	return sub
}

// pointer finds the definition that a reference names. Only the root and its definitions are looked up,
// which is what generators emit.
func (s *schema) pointer(path string) *jsonschema.Schema {
	if path == "" || path == "/" {
		return s.root
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(parts) != 2 {
		return nil
	}
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[1])
	switch parts[0] {
	case "$defs":
		return s.root.Defs[name]
	case "definitions":
		return s.root.Definitions[name]
	case "properties":
		return s.root.Properties[name]
	}
	return nil
}

// typesOf returns the types that a schema takes, nil for all. Branches of a combinator count together.
func (s *schema) typesOf(sub *jsonschema.Schema) []string {
	return s.types(sub, 0)
}

func (s *schema) types(sub *jsonschema.Schema, depth int) []string {
	sub = s.deref(sub)
	if sub == nil || depth > 8 {
		return nil
	}
	if sub.Type != "" {
		return []string{sub.Type}
	}
	if sub.Types != nil {
		return sub.Types
	}
	var all []string
	for _, branches := range [][]*jsonschema.Schema{sub.AnyOf, sub.OneOf} {
		for _, b := range branches {
			types := s.types(b, depth+1)
			if types == nil {
				return nil
			}
			all = append(all, types...)
		}
	}
	if all != nil {
		return all
	}
	for _, b := range sub.AllOf {
		if types := s.types(b, depth+1); types != nil {
			return types
		}
	}
	return nil
}

// branch returns the part of a combinator that takes a type, or the schema itself.
func (s *schema) branch(sub *jsonschema.Schema, typ string) *jsonschema.Schema {
	sub = s.deref(sub)
	if sub == nil || sub.Type != "" || sub.Types != nil {
		return sub
	}
	for _, branches := range [][]*jsonschema.Schema{sub.AnyOf, sub.OneOf, sub.AllOf} {
		for _, b := range branches {
			b = s.deref(b)
			if b != nil && (b.Type == typ || slices.Contains(b.Types, typ)) {
				return b
			}
		}
	}
	return sub
}
