package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// ArgumentError says what is wrong with the arguments of a call, so that a model can repair them in one step.
type ArgumentError struct {
	// Path says where: arguments, arguments.options.count, arguments["we-ird"][0].
	Path string
	// Constraint is the keyword of the schema that is not met: required, type, enum, ...
	Constraint string
	// Value is what was given, as JSON, shortened; empty when something is missing.
	Value string
	// Allowed says what would be valid.
	Allowed string
	// Message says it in words, at most 600 characters.
	Message string
}

// Error returns the message.
func (e *ArgumentError) Error() string { return e.Message }

// maxArgumentMessage bounds the message of an ArgumentError, in characters.
const maxArgumentMessage = 600

// ValidateArguments checks args (a JSON object, coerced) against parameters (a JSON Schema, nil for
// none). The error is an *ArgumentError, or another one when the schema itself can't be used, in which case
// the arguments count as good.
func ValidateArguments(args, parameters json.RawMessage) error {
	s, err := compile(parameters)
	if err != nil {
		return err
	}
	return s.validate(args)
}

// validate checks decoded arguments. It never panics; an internal failure is a plain error.
func (s *schema) validate(args json.RawMessage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("validate arguments: panic: %v", p)
		}
	}()
	m, derr := decodeArgs(args)
	if derr != nil {
		return &ArgumentError{Path: "arguments", Constraint: "type", Value: shorten(string(args)), Allowed: "a JSON object",
			Message: cut(derr.Error())}
	}
	if s.resolved == nil {
		return nil
	}
	plain, nerr := plainNumbers(m, "arguments")
	if nerr != nil {
		return nerr
	}
	verr := s.resolved.Validate(plain)
	if verr == nil {
		return nil
	}
	if v := s.explain(m, s.root, "arguments", 0); v != nil {
		return v
	}
	return s.unexplained(verr)
}

// unexplained turns the library's error into ours: the constraint is the keyword that its innermost part
// starts with.
func (s *schema) unexplained(err error) *ArgumentError {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	constraint, _, ok := strings.Cut(text, ":")
	if !ok || strings.ContainsRune(constraint, ' ') {
		constraint = "schema"
	}
	return &ArgumentError{Path: "arguments", Constraint: constraint, Message: cut(text)}
}

// explain finds the first place where a value does not fit: required names first, then what is wrong with
// a value itself, then its parts in the order of their names. Nil: this walk finds nothing.
func (s *schema) explain(v any, sub *jsonschema.Schema, path string, depth int) *ArgumentError {
	sub = s.deref(sub)
	if sub == nil || depth > coerceDepth {
		return nil
	}
	checks := []func(any, *jsonschema.Schema, string) *ArgumentError{s.badType, badChoice, badNumber, badText, badLength}
	for _, check := range checks {
		if e := check(v, sub, path); e != nil {
			return e
		}
	}
	for _, part := range sub.AllOf {
		if e := s.explain(v, part, path, depth+1); e != nil {
			return e
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return s.badObject(v, sub, path, depth)
	case []any:
		for i, item := range v {
			part := sub.Items
			if i < len(sub.PrefixItems) {
				part = sub.PrefixItems[i]
			}
			if e := s.explain(item, part, fmt.Sprintf("%s[%d]", path, i), depth+1); e != nil {
				return e
			}
		}
	}
	return nil
}

func (s *schema) badType(v any, sub *jsonschema.Schema, path string) *ArgumentError {
	types := s.typesOf(sub)
	got := jsonKind(v)
	if types == nil || slices.Contains(types, got) || got == "integer" && slices.Contains(types, "number") {
		return nil
	}
	return fault(path, "type", v, strings.Join(slices.Compact(slices.Sorted(slices.Values(types))), " or "), "has type %s", got)
}

func badChoice(v any, sub *jsonschema.Schema, path string) *ArgumentError {
	plain, _ := plainNumbers(v, path)
	if sub.Enum != nil && !slices.ContainsFunc(sub.Enum, func(e any) bool { return jsonschema.Equal(e, plain) }) {
		return fault(path, "enum", v, "one of "+list(sub.Enum), "is not one of the choices")
	}
	if sub.Const != nil && !jsonschema.Equal(*sub.Const, plain) {
		return fault(path, "const", v, list([]any{*sub.Const}), "is not the only value allowed")
	}
	return nil
}

func badNumber(v any, sub *jsonschema.Schema, path string) *ArgumentError {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil
	}
	switch {
	case sub.Minimum != nil && f < *sub.Minimum:
		return fault(path, "minimum", v, fmt.Sprintf("%v or more", *sub.Minimum), "is too small")
	case sub.ExclusiveMinimum != nil && f <= *sub.ExclusiveMinimum:
		return fault(path, "exclusiveMinimum", v, fmt.Sprintf("more than %v", *sub.ExclusiveMinimum), "is too small")
	case sub.Maximum != nil && f > *sub.Maximum:
		return fault(path, "maximum", v, fmt.Sprintf("%v or less", *sub.Maximum), "is too large")
	case sub.ExclusiveMaximum != nil && f >= *sub.ExclusiveMaximum:
		return fault(path, "exclusiveMaximum", v, fmt.Sprintf("less than %v", *sub.ExclusiveMaximum), "is too large")
	case sub.MultipleOf != nil && *sub.MultipleOf != 0 && math.Mod(f, *sub.MultipleOf) != 0:
		return fault(path, "multipleOf", v, fmt.Sprintf("a multiple of %v", *sub.MultipleOf), "is not a multiple")
	}
	return nil
}

func badText(v any, sub *jsonschema.Schema, path string) *ArgumentError {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	n := utf8.RuneCountInString(text)
	switch {
	case sub.MinLength != nil && n < *sub.MinLength:
		return fault(path, "minLength", v, fmt.Sprintf("%d characters or more", *sub.MinLength), "has %d characters", n)
	case sub.MaxLength != nil && n > *sub.MaxLength:
		return fault(path, "maxLength", v, fmt.Sprintf("%d characters or fewer", *sub.MaxLength), "has %d characters", n)
	}
	return nil
}

func badLength(v any, sub *jsonschema.Schema, path string) *ArgumentError {
	items, ok := v.([]any)
	if !ok {
		return nil
	}
	switch {
	case sub.MinItems != nil && len(items) < *sub.MinItems:
		return fault(path, "minItems", v, fmt.Sprintf("%d items or more", *sub.MinItems), "has %d items", len(items))
	case sub.MaxItems != nil && len(items) > *sub.MaxItems:
		return fault(path, "maxItems", v, fmt.Sprintf("%d items or fewer", *sub.MaxItems), "has %d items", len(items))
	}
	return nil
}

func (s *schema) badObject(m map[string]any, sub *jsonschema.Schema, path string, depth int) *ArgumentError {
	missing := slices.DeleteFunc(slices.Clone(sub.Required), func(name string) bool { _, ok := m[name]; return ok })
	if len(missing) > 0 {
		return fault(path, "required", nil, "required are "+strings.Join(sub.Required, ", "), "lacks %s", strings.Join(missing, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		prop, known := sub.Properties[name]
		switch {
		case known:
			if e := s.explain(m[name], prop, child(path, name), depth+1); e != nil {
				return e
			}
		case isFalse(sub.AdditionalProperties) && len(sub.PatternProperties) == 0:
			names := slices.Sorted(maps.Keys(sub.Properties))
			allowed := strings.Join(names, ", ")
			if allowed == "" {
				allowed = "no arguments"
			}
			if near := nearest(name, names); near != "" {
				return fault(child(path, name), "additionalProperties", m[name], allowed, "is not known, did you mean %s", near)
			}
			return fault(child(path, name), "additionalProperties", m[name], allowed, "is not known")
		case sub.AdditionalProperties != nil && len(sub.PatternProperties) == 0:
			if e := s.explain(m[name], sub.AdditionalProperties, child(path, name), depth+1); e != nil {
				return e
			}
		}
	}
	return nil
}

// fault describes one violation.
func fault(path, constraint string, v any, allowed, format string, args ...any) *ArgumentError {
	value, err := encode(v)
	if err != nil {
		value = nil
	}
	e := &ArgumentError{Path: path, Constraint: constraint, Value: shorten(string(value)), Allowed: allowed}
	what := fmt.Sprintf(format, args...)
	switch constraint {
	case "required":
		e.Value = ""
		e.Message = cut(fmt.Sprintf("%s %s; %s", path, what, allowed))
	default:
		e.Message = cut(fmt.Sprintf("%s (%s) %s; allowed: %s", path, e.Value, what, allowed))
	}
	return e
}

// isFalse reports whether a schema takes nothing ("additionalProperties": false).
func isFalse(s *jsonschema.Schema) bool {
	if s == nil || s.Not == nil {
		return false
	}
	text, err := json.Marshal(s.Not)
	return err == nil && (string(text) == "true" || string(text) == "{}")
}

// plainNumbers copies a decoded value with its numbers as float64, which is what the validator takes.
func plainNumbers(v any, path string) (any, *ArgumentError) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return nil, fault(path, "type", v, "a number that fits in 64 bits", "is out of range")
		}
		return f, nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			item, err := plainNumbers(v[i], fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			out[i] = item
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			item, err := plainNumbers(v[name], child(path, name))
			if err != nil {
				return nil, err
			}
			out[name] = item
		}
		return out, nil
	}
	return v, nil
}

// list writes values as JSON, at most 20 of them.
func list(values []any) string {
	var parts []string
	for i, v := range values {
		if i == 20 {
			parts = append(parts, "...")
			break
		}
		text, err := encode(v)
		if err == nil {
			parts = append(parts, string(text))
		}
	}
	return strings.Join(parts, ", ")
}

// shorten keeps the first 80 characters of a value.
func shorten(s string) string { return ellipsis(s, 80) }

// cut bounds a message.
func cut(s string) string { return ellipsis(s, maxArgumentMessage) }

// ellipsis keeps at most n characters; a longer text ends in "…".
func ellipsis(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		n--
		if n == 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// nearest returns the candidate that is at most two edits away from name (one for names of up to four
// characters), the closest one first in order; empty when there is none.
func nearest(name string, candidates []string) string {
	best, limit := "", 3
	if len(name) <= 4 {
		limit = 2
	}
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < limit {
			best, limit = c, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes; names are ASCII.
func distance(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		prev := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := prev
			if a[i-1] != b[j-1] {
				cost++
			}
			prev = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
