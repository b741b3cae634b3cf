package tree

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns a JSON Schema (draft 2020-12) of config.yaml, for editors. Secrets are left out, since they have no
// place there.
func (t *Tree) Schema() []byte {
	s := t.schemaOf(t.root)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = t.spec.Title
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return []byte("{}") // a schema of our own always encodes
	}
	return append(b, '\n')
}

// schemaOf describes one key.
func (t *Tree) schemaOf(k *key) *jsonschema.Schema {
	s := &jsonschema.Schema{Description: k.doc}
	switch {
	case k.fields != nil:
		s.Type, s.Properties = "object", map[string]*jsonschema.Schema{}
		for _, f := range k.fields {
			if f.typ == secretType {
				continue
			}
			s.Properties[f.name] = t.schemaOf(f)
			s.PropertyOrder = append(s.PropertyOrder, f.name)
			if f.required {
				s.Required = append(s.Required, f.name)
			}
		}
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
		if k.short != "" {
			return &jsonschema.Schema{Description: k.doc, AnyOf: []*jsonschema.Schema{{Type: "string"}, s}}
		}
	case k.elem != nil && k.typ.Kind() == reflect.Map:
		s.Type, s.AdditionalProperties = "object", t.schemaOf(k.elem)
		if k.keys != "" {
			s.PropertyNames = &jsonschema.Schema{Enum: anys(t.spec.Names[k.keys])}
		}
	case k.elem != nil:
		s.Type, s.Items = "array", t.schemaOf(k.elem)
	case k.typ.Kind() == reflect.Slice:
		item := &jsonschema.Schema{Types: []string{"string", "number"}}
		if len(k.oneof) > 0 {
			item = &jsonschema.Schema{Enum: anys(k.oneof)}
		}
		s.AnyOf = []*jsonschema.Schema{{Type: "array", Items: item}, {Type: "string"}}
	default:
		schemaLeaf(k, s)
	}
	return s
}

func schemaLeaf(k *key, s *jsonschema.Schema) {
	t := k.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	text, integer, number := &jsonschema.Schema{Type: "string"}, &jsonschema.Schema{Type: "integer"}, &jsonschema.Schema{Type: "number"}
	boolean := &jsonschema.Schema{Type: "boolean"}
	switch {
	case len(k.oneof) > 0:
		s.Enum = anys(k.oneof)
		for _, o := range k.oneof {
			if o == "off" {
				s.Enum = append(s.Enum, false) // what YAML 1.1 editors make of a bare off
			}
		}
	case t == rateType:
		s.AnyOf = []*jsonschema.Schema{text, number, boolean}
	case t == bytesType:
		s.AnyOf = []*jsonschema.Schema{text, integer}
	case t == durationType:
		s.AnyOf = []*jsonschema.Schema{text, number}
	case t.Kind() == reflect.Bool:
		s.Type = "boolean"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Float64:
		n := number
		if t.Kind() == reflect.Int {
			n = integer
		}
		n.Minimum, n.Maximum = bound(k.min), bound(k.max)
		if len(k.words) == 0 {
			s.Type, s.Minimum, s.Maximum = n.Type, n.Minimum, n.Maximum
		} else {
			s.AnyOf = []*jsonschema.Schema{n, {Enum: anys(k.words)}}
		}
	default:
		s.Types = []string{"string", "number"} // ids are often written without quotes
	}
	if k.hasDef {
		s.Default = schemaDefault(t, k.def)
	}
}

// schemaDefault is a default in JSON: a boolean or number as it is, all else a string.
func schemaDefault(t reflect.Type, def string) json.RawMessage {
	plain := t.Kind() == reflect.Bool || t.Kind() == reflect.Int || t.Kind() == reflect.Float64
	if plain && json.Valid([]byte(strings.TrimSpace(def))) {
		return json.RawMessage(def)
	}
	b, _ := json.Marshal(def)
	return b
}

func bound(s string) *float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	return &n
}

func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}
