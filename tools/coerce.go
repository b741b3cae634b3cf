package tools

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// coerceDepth is how deep arguments are looked into; below it they stay as they are.
const coerceDepth = 64

// Coerce repairs what models commonly get wrong about types, as far as parameters (a JSON Schema, nil for
// none) say what is meant, and changes nothing else:
//
//   - a string becomes an integer, number, boolean, object or array where the schema wants that, does not
//     take strings, and the text parses; a whole number written as 5.0 or 1e3 becomes an integer;
//   - a single scalar becomes a list of one where a list is wanted;
//   - "null" becomes null where null is allowed, and a null for an optional argument that can't be null is
//     taken as left out;
//   - a blank string becomes {} for an object without required fields;
//   - the same in nested objects and lists.
//
// Blank args are {}. Arguments without a property in the schema stay untouched. When nothing changed the
// bytes come back as they were. warnings name repairs that may be wrong. The error says that args is not a
// JSON object. Parameters that are not a valid schema change nothing.
func Coerce(args, parameters json.RawMessage) (coerced json.RawMessage, warnings []string, err error) {
	s, _ := compile(parameters)
	if s == nil {
		s = &schema{}
	}
	c := coercer{schema: s}
	return c.args(args)
}

// decodeArgs decodes what a model wrote; blank means no arguments.
func decodeArgs(args json.RawMessage) (map[string]any, error) {
	if strings.TrimSpace(string(args)) == "" {
		return map[string]any{}, nil
	}
	v, err := decodeNumbers(args)
	if err != nil {
		return nil, fmt.Errorf("arguments are not valid JSON: %w", err)
	}
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case nil:
		return map[string]any{}, nil
	}
	return nil, fmt.Errorf("arguments must be a JSON object, not %s", jsonKind(v))
}

// coercer repairs one set of arguments.
type coercer struct {
	schema   *schema
	changed  bool
	warnings []string
}

func (c *coercer) args(args json.RawMessage) (json.RawMessage, []string, error) {
	m, err := decodeArgs(args)
	if err != nil {
		return args, nil, err
	}
	if trimmed := strings.TrimSpace(string(args)); trimmed == "" || trimmed == "null" {
		args = json.RawMessage(`{}`)
	}
	c.object(m, c.schema.root, "arguments", 0)
	if !c.changed {
		return args, nil, nil
	}
	out, err := encode(m)
	if err != nil {
		return args, nil, fmt.Errorf("encode arguments: %w", err)
	}
	return out, c.warnings, nil
}

// object repairs the known properties in place.
func (c *coercer) object(m map[string]any, sub *jsonschema.Schema, path string, depth int) {
	sub = c.schema.branch(sub, "object")
	if sub == nil || depth > coerceDepth {
		return
	}
	for name, prop := range sub.Properties {
		v, ok := m[name]
		if !ok {
			continue
		}
		types := c.schema.typesOf(prop)
		if v == nil && types != nil && !slices.Contains(types, "null") && !slices.Contains(sub.Required, name) {
			delete(m, name)
			c.changed = true
			continue
		}
		m[name] = c.value(v, prop, child(path, name), depth+1)
	}
}

// value repairs one value.
func (c *coercer) value(v any, sub *jsonschema.Schema, path string, depth int) any {
	sub = c.schema.deref(sub)
	if sub == nil || depth > coerceDepth {
		return v
	}
	types := c.schema.typesOf(sub)
	switch v := v.(type) {
	case map[string]any:
		c.object(v, sub, path, depth)
		return v
	case []any:
		c.list(v, sub, path, depth)
		return v
	case string:
		return c.text(v, sub, types, path, depth)
	case json.Number:
		if slices.Contains(types, "integer") && !slices.Contains(types, "number") {
			if whole, ok := wholeNumber(v.String()); ok && whole != v.String() {
				c.changed = true
				return json.Number(whole)
			}
		}
		if types != nil && !slices.Contains(types, "number") && !slices.Contains(types, "integer") {
			return c.wrap(v, sub, types, path, depth)
		}
	case bool:
		if types != nil && !slices.Contains(types, "boolean") {
			return c.wrap(v, sub, types, path, depth)
		}
	}
	return v
}

// list repairs the items in place.
func (c *coercer) list(v []any, sub *jsonschema.Schema, path string, depth int) {
	sub = c.schema.branch(sub, "array")
	if sub == nil {
		return
	}
	for i := range v {
		item := sub.Items
		if i < len(sub.PrefixItems) {
			item = sub.PrefixItems[i]
		}
		v[i] = c.value(v[i], item, fmt.Sprintf("%s[%d]", path, i), depth+1)
	}
}

// text repairs a string.
func (c *coercer) text(s string, sub *jsonschema.Schema, types []string, path string, depth int) any {
	trimmed := strings.TrimSpace(s)
	if slices.Contains(types, "null") && strings.EqualFold(trimmed, "null") && !slices.Contains(sub.Enum, any(s)) {
		c.changed = true
		return nil
	}
	if types == nil || slices.Contains(types, "string") {
		return s
	}
	if slices.Contains(types, "integer") || slices.Contains(types, "number") {
		if n, ok := parseNumber(trimmed, !slices.Contains(types, "number")); ok {
			c.changed = true
			return n
		}
	}
	if slices.Contains(types, "boolean") {
		switch strings.ToLower(trimmed) {
		case "true", "false":
			c.changed = true
			return strings.EqualFold(trimmed, "true")
		}
	}
	if slices.Contains(types, "object") {
		branch := c.schema.branch(sub, "object")
		if trimmed == "" && len(branch.Required) == 0 {
			c.changed = true
			return map[string]any{}
		}
		if v, err := decodeNumbers([]byte(trimmed)); err == nil {
			if m, ok := v.(map[string]any); ok {
				c.changed = true
				c.object(m, sub, path, depth+1)
				return m
			}
		}
	}
	if slices.Contains(types, "array") && strings.HasPrefix(trimmed, "[") {
		if v, err := decodeNumbers([]byte(trimmed)); err == nil {
			if list, ok := v.([]any); ok {
				c.changed = true
				c.list(list, sub, path, depth+1)
				return list
			}
		}
		c.warnings = append(c.warnings, fmt.Sprintf("%s looks like a JSON list but does not parse; it is taken as one item", path))
	}
	return c.wrap(s, sub, types, path, depth)
}

// wrap makes a list of one where a list is wanted.
func (c *coercer) wrap(v any, sub *jsonschema.Schema, types []string, path string, depth int) any {
	if !slices.Contains(types, "array") {
		return v
	}
	c.changed = true
	list := []any{v}
	c.list(list, sub, path, depth+1)
	return list
}

// parseNumber parses a JSON-like number. whole asks for an integer.
func parseNumber(s string, whole bool) (json.Number, bool) {
	n, ok := wholeNumber(s)
	if ok {
		return json.Number(n), true
	}
	if whole {
		return "", false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "xXpP_nNiI") { // no hexadecimal, no separators, no NaN or Inf
		return "", false
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), true
}

// wholeNumber returns a whole number in plain digits, whatever way it is written: 42, +42, 42.0, 4.2e1.
// Texts longer than 40 characters and exponents that would need more than 40 digits are not taken.
func wholeNumber(s string) (string, bool) {
	if s == "" || len(s) > 40 || strings.Trim(s, "+-.0123456789eE") != "" {
		return "", false
	}
	if _, exp, has := strings.Cut(strings.ToLower(s), "e"); has {
		if e, err := strconv.Atoi(exp); err != nil || e > 40 || e < -40 {
			return "", false
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || !r.IsInt() {
		return "", false
	}
	return r.Num().String(), true
}

// child appends a property to a path: arguments.name, or arguments["odd name"].
func child(path, name string) string {
	plain := name != ""
	for i, r := range name {
		plain = plain && (r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || i > 0 && '0' <= r && r <= '9')
	}
	if plain {
		return path + "." + name
	}
	return path + "[" + strconv.Quote(name) + "]"
}

// jsonKind names the JSON type of a decoded value.
func jsonKind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if _, ok := wholeNumber(v.String()); ok {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
