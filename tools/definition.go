package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Definition is a tool as it is offered to a model.
type Definition struct {
	Name        string
	Description string
	// Parameters is a JSON Schema of type object in the shape that every model server takes.
	Parameters json.RawMessage
}

// Definitions returns what to offer, sorted by name: the named tools that exist and whose checks pass.
// names nil means all. Descriptions that change (Spec.Describe) are asked for now. The same registry and
// verdicts give the same bytes.
func (r *Registry) Definitions(ctx context.Context, names []string) []Definition {
	if names == nil {
		names = r.Names()
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)

	entries := r.snapshot()
	pass := r.newPass()
	defs := make([]Definition, 0, len(names))
	for _, name := range names {
		e := entries[name]
		if e == nil || !pass.ok(ctx, e) {
			continue
		}
		description, parameters := r.described(e)
		defs = append(defs, Definition{Name: name, Description: description, Parameters: r.sanitised(name, parameters)})
	}
	return defs
}

// described returns the current description and parameters. What Describe leaves empty stays as declared;
// after an error or a panic of it, or with parameters that are not a schema, the declared ones are used.
func (r *Registry) described(e *entry) (description string, parameters json.RawMessage) {
	spec := e.tool.Spec
	if spec.Describe == nil {
		return spec.Description, spec.Parameters
	}
	d, p, err := safeDescribe(spec.Describe)
	if err == nil {
		err = checkParameters(p)
	}
	if err != nil {
		r.log.Warn().Err(err).Str("tool", spec.Name).Msg("dynamic description failed, the static one is used")
		return spec.Description, spec.Parameters
	}
	if d == "" {
		d = spec.Description
	}
	if p == nil {
		p = spec.Parameters
	}
	return d, p
}

func safeDescribe(fn func() (string, json.RawMessage, error)) (d string, p json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return fn()
}

// sanitised returns the parameters in a portable shape, or as they are when that fails.
func (r *Registry) sanitised(name string, parameters json.RawMessage) json.RawMessage {
	clean, err := SanitizeSchema(parameters)
	if err != nil {
		r.log.Warn().Err(err).Str("tool", name).Msg("parameters not sanitised")
		return parameters
	}
	return clean
}

// SanitizeSchema rewrites the parameters of a tool so that strict model servers (grammar-based ones such
// as llama.cpp, and hosted ones that refuse unusual shapes) take them:
//
//   - nil becomes an object without properties, and so does an object schema that lacks them;
//   - combinators at the root are dropped, because hosted servers refuse the whole request for them;
//   - a bare type name in place of a schema becomes a schema of that type;
//   - a list of types becomes one type, or anyOf of them; null among them becomes "nullable": true;
//   - anyOf or oneOf with a null branch loses it and becomes nullable; one branch left is merged in;
//   - an array gets items, and required names only what is in properties.
//
// Values under const, default, enum, example and examples are data and stay as they are. A schema that needs none of it
// comes back with its keys in their order, without white space. Validation uses the original schema.
func SanitizeSchema(parameters json.RawMessage) (json.RawMessage, error) {
	if parameters == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	tree, err := decodeNumbers(parameters)
	if err != nil {
		return nil, fmt.Errorf("sanitise schema: %w", err)
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("sanitise schema: it is not an object")
	}
	s := sanitizer{}
	for _, k := range []string{"anyOf", "oneOf", "allOf", "not", "enum"} {
		if _, has := root[k]; has {
			delete(root, k)
			s.changed = true
		}
	}
	if root["type"] != "object" {
		root["type"] = "object"
		s.changed = true
	}
	clean := s.schema(root)
	if !s.changed {
		var b bytes.Buffer
		if err := json.Compact(&b, parameters); err != nil {
			return nil, fmt.Errorf("sanitise schema: %w", err)
		}
		return b.Bytes(), nil
	}
	return encode(clean)
}

// sanitizer walks one schema and notes whether it changed anything.
type sanitizer struct{ changed bool }

// typeNames are the types that JSON Schema knows.
var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

func (s *sanitizer) schema(v any) any {
	if name, ok := v.(string); ok && slices.Contains(typeNames, name) {
		s.changed = true
		v = map[string]any{"type": name}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return v // true, false, or something the server has to judge
	}
	for key, sub := range m {
		m[key] = s.keyword(key, sub)
	}
	s.types(m)
	s.branches(m, "anyOf")
	s.branches(m, "oneOf")
	s.object(m)
	if m["type"] == "array" && m["items"] == nil && m["prefixItems"] == nil {
		m["items"] = map[string]any{}
		s.changed = true
	}
	return m
}

// keyword descends into what holds schemas.
func (s *sanitizer) keyword(key string, v any) any {
	switch key {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		if m, ok := v.(map[string]any); ok {
			for name, sub := range m {
				m[name] = s.schema(sub)
			}
		}
	case "items", "additionalProperties", "additionalItems", "contains", "not", "if", "then", "else", "propertyNames":
		if list, ok := v.([]any); ok {
			return s.list(list)
		}
		return s.schema(v)
	case "anyOf", "oneOf", "allOf", "prefixItems":
		if list, ok := v.([]any); ok {
			return s.list(list)
		}
	}
	return v
}

func (s *sanitizer) list(list []any) []any {
	for i, sub := range list {
		list[i] = s.schema(sub)
	}
	return list
}

// types replaces a list of types.
func (s *sanitizer) types(m map[string]any) {
	list, ok := m["type"].([]any)
	if !ok {
		return
	}
	s.changed = true
	rest := slices.DeleteFunc(slices.Clone(list), func(t any) bool { return t == "null" })
	if len(rest) < len(list) {
		m["nullable"] = true
	}
	_, hasAny := m["anyOf"]
	switch {
	case len(rest) == 0:
		m["type"] = "null"
		delete(m, "nullable")
	case len(rest) == 1 || hasAny:
		m["type"] = rest[0]
	default:
		delete(m, "type")
		var branches []any
		for _, t := range rest {
			branches = append(branches, s.schema(map[string]any{"type": t}))
		}
		m["anyOf"] = branches
	}
}

// branches takes null out of a combinator and merges a single branch into its parent.
func (s *sanitizer) branches(m map[string]any, key string) {
	list, ok := m[key].([]any)
	if !ok {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(list), isNullSchema)
	if len(rest) == len(list) || len(rest) == 0 {
		return
	}
	s.changed = true
	m["nullable"] = true
	m[key] = rest
	branch, ok := rest[0].(map[string]any)
	if len(rest) > 1 || !ok {
		return
	}
	delete(m, key)
	for k, v := range branch {
		if _, taken := m[k]; !taken {
			m[k] = v
		}
	}
}

func isNullSchema(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["type"] == "null"
}

// object gives object schemas their properties and prunes required.
func (s *sanitizer) object(m map[string]any) {
	if m["type"] != "object" {
		return
	}
	properties, ok := m["properties"].(map[string]any)
	if !ok {
		properties = map[string]any{}
		m["properties"] = properties
		s.changed = true
	}
	required, ok := m["required"].([]any)
	if !ok {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(required), func(v any) bool {
		name, ok := v.(string)
		_, known := properties[name]
		return !ok || !known
	})
	if len(kept) == len(required) {
		return
	}
	s.changed = true
	if len(kept) == 0 {
		delete(m, "required")
		return
	}
	m["required"] = kept
}

// decodeNumbers decodes one JSON value and keeps numbers as they are written.
func decodeNumbers(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	end := dec.InputOffset()
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more behind the JSON value, at byte %d", end)
	}
	return v, nil
}

// encode is json.Marshal without escaping <, > and &.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
