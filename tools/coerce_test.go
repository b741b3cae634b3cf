package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const coerceSchema = `{"type":"object","properties":{
	"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"},
	"o":{"type":"object","properties":{"x":{"type":"integer"},"opt":{"type":"string"}}},
	"r":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},
	"ai":{"type":"array","items":{"type":"integer"}},"as":{"type":"array","items":{"type":"string"}},
	"ao":{"type":"array","items":{"type":"object","properties":{"x":{"type":"boolean"}}}},
	"si":{"type":["string","integer"]},"in":{"type":["integer","null"]},"sn":{"type":["string","null"]},
	"on":{"type":"integer","nullable":true},"any":{"anyOf":[{"type":"integer"},{"type":"null"}]},
	"ref":{"$ref":"#/$defs/t"},"free":{},"e":{"type":["string","null"],"enum":["null",null]},
	"ib":{"type":["integer","boolean"]}
},"$defs":{"t":{"type":"object","properties":{"x":{"type":"number"}}}},"required":["r0"]}`

func TestCoerce(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"integer", `{"i":"42"}`, `{"i":42}`},
		{"negative and padded", `{"i":" -7 "}`, `{"i":-7}`},
		{"whole number in other clothes", `{"i":"42.0"}`, `{"i":42}`},
		{"exponent", `{"i":"1e3"}`, `{"i":1000}`},
		{"whole float for an integer", `{"i":5.0}`, `{"i":5}`},
		{"large integer keeps its digits", `{"i":"9007199254740993"}`, `{"i":9007199254740993}`},
		{"fraction is no integer", `{"i":"4.5"}`, ``},
		{"huge exponent is left alone", `{"i":"1e999999999"}`, ``},
		{"text is no integer", `{"i":"4 apples"}`, ``},
		{"blank is no integer", `{"i":""}`, ``},
		{"number", `{"n":"4.50"}`, `{"n":4.5}`},
		{"no NaN, Inf, hexadecimal or separators", `{"n":"NaN","i":"Inf","b":"0x10"}`, ``},
		{"boolean", `{"b":"True"}`, `{"b":true}`},
		{"false", `{"b":"false"}`, `{"b":false}`},
		{"yes is no boolean", `{"b":"yes"}`, ``},
		{"a string stays a string", `{"s":"42"}`, ``},
		{"a number for a string stays", `{"s":42}`, ``},
		{"object", `{"o":"{\"x\":\"1\"}"}`, `{"o":{"x":1}}`},
		{"broken object", `{"o":"{x"}`, ``},
		{"a list is no object", `{"o":"[1]"}`, ``},
		{"blank object", `{"o":" "}`, `{"o":{}}`},
		{"blank object with required fields stays", `{"r":""}`, ``},
		{"array as text", `{"ai":"[\"1\",2]"}`, `{"ai":[1,2]}`},
		{"scalar for an array", `{"as":"a"}`, `{"as":["a"]}`},
		{"scalar for an array, repaired", `{"ai":"5"}`, `{"ai":[5]}`},
		{"number for an array", `{"ai":5}`, `{"ai":[5]}`},
		{"text that begins like a list", `{"as":"[draft] note"}`, `{"as":["[draft] note"]}`},
		{"object for an array stays", `{"ao":{"x":true}}`, ``},
		{"nested", `{"ao":[{"x":"true"},"{\"x\":\"false\"}"]}`, `{"ao":[{"x":true},{"x":false}]}`},
		{"string is taken where both are", `{"si":"42"}`, ``},
		{"the first type that parses", `{"ib":"true"}`, `{"ib":true}`},
		{"null as text", `{"in":"null","sn":"NULL","on":"null","any":"null"}`, `{"in":null,"sn":null,"on":null,"any":null}`},
		{"null as text is a choice", `{"e":"null"}`, ``},
		{"null stays where it may", `{"in":null,"free":null}`, ``},
		{"null for an optional argument is left out", `{"i":null,"as":null,"o":{"opt":null,"x":1}}`, `{"o":{"x":1}}`},
		{"number for nullable", `{"in":"3","on":"4","any":"5"}`, `{"in":3,"on":4,"any":5}`},
		{"reference", `{"ref":{"x":"1.5"}}`, `{"ref":{"x":1.5}}`},
		{"unknown arguments stay", `{"zzz":"42","free":"42"}`, ``},
		{"blank", ``, `{}`},
		{"null", `null`, `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := Coerce(json.RawMessage(tt.in), json.RawMessage(coerceSchema))
			require.NoError(t, err)
			if tt.want == "" {
				require.Equal(t, tt.in, string(got), "the very same bytes")
				return
			}
			require.JSONEq(t, tt.want, string(got))
			require.NotContains(t, string(got), "e+", "integers in plain digits")
		})
	}
}

func TestCoerce_Warns(t *testing.T) {
	_, warnings, err := Coerce(json.RawMessage(`{"as":"[draft"}`), json.RawMessage(coerceSchema))
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "arguments.as")
}

func TestCoerce_Refuses(t *testing.T) {
	for _, in := range []string{`[]`, `"x"`, `4`, `{`, `{}{}`, `{"a":1`} {
		_, _, err := Coerce(json.RawMessage(in), nil)
		require.Error(t, err, in)
	}
	got, _, err := Coerce(json.RawMessage(`{"i":"42"}`), json.RawMessage(`{"type":17}`))
	require.NoError(t, err, "a schema that makes no sense changes nothing")
	require.Equal(t, `{"i":"42"}`, string(got))
}

func TestValidateArguments(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"priority":{"enum":["low","urgent"]},"options":{"type":"object","properties":{"count":{"type":"integer","minimum":1,"maximum":9}},"required":["count"],"additionalProperties":false},
		"we-ird":{"type":"array","items":{"type":"string","minLength":2},"minItems":1,"maxItems":2},"s":{"type":"string","maxLength":3,"pattern":"^a"},
		"c":{"const":1},"m":{"type":"number","multipleOf":2},"x":{"exclusiveMinimum":0,"exclusiveMaximum":2},
		"u":{"anyOf":[{"type":"string"},{"type":"object","required":["k"]}]},"nul":{"type":"string","nullable":true},
		"lit":{"enum":[{"nullable":true,"$ref":"x"}]},"map":{"type":"object","additionalProperties":{"type":"integer"}}
	},"additionalProperties":false}`
	for _, tt := range []struct{ args, path, constraint, allowed string }{
		{`{}`, "", "", ""},
		{`{"priority":"urgent","options":{"count":9},"we-ird":["ab"],"nul":null,"lit":{"nullable":true,"$ref":"x"},"map":{"a":1}}`, "", "", ""},
		{`{"priority":"high"}`, "arguments.priority", "enum", `"low", "urgent"`},
		{`{"options":{"count":"many"}}`, "arguments.options.count", "type", "integer"},
		{`{"options":{"count":1.5}}`, "arguments.options.count", "type", "integer"},
		{`{"options":{"count":0}}`, "arguments.options.count", "minimum", "1 or more"},
		{`{"options":{"count":10}}`, "arguments.options.count", "maximum", "9 or less"},
		{`{"options":{}}`, "arguments.options", "required", "count"},
		{`{"options":{"count":1,"cuont":2}}`, "arguments.options.cuont", "additionalProperties", "count"},
		{`{"options":"x"}`, "arguments.options", "type", "object"},
		{`{"we-ird":["a"]}`, `arguments["we-ird"][0]`, "minLength", "2 characters"},
		{`{"we-ird":[]}`, `arguments["we-ird"]`, "minItems", "1 items"},
		{`{"we-ird":["ab","cd","ef"]}`, `arguments["we-ird"]`, "maxItems", "2 items"},
		{`{"s":"abcd"}`, "arguments.s", "maxLength", "3 characters"},
		{`{"s":"b"}`, "arguments", "pattern", ""},
		{`{"c":2}`, "arguments.c", "const", "1"},
		{`{"m":3}`, "arguments.m", "multipleOf", "2"},
		{`{"x":0}`, "arguments.x", "exclusiveMinimum", "more than 0"},
		{`{"x":2}`, "arguments.x", "exclusiveMaximum", "less than 2"},
		{`{"u":4}`, "arguments.u", "type", "object or string"},
		{`{"u":{}}`, "arguments", "anyOf", ""},
		{`{"map":{"a":"b"}}`, "arguments.map.a", "type", "integer"},
		{`{"zzz":1}`, "arguments.zzz", "additionalProperties", "priority"},
		{`{"m":1e999}`, "arguments.m", "type", "64 bits"},
		{`[1]`, "arguments", "type", "JSON object"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			err := ValidateArguments(json.RawMessage(tt.args), json.RawMessage(schema))
			if tt.constraint == "" {
				require.NoError(t, err)
				return
			}
			var bad *ArgumentError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, tt.path, bad.Path)
			require.Equal(t, tt.constraint, bad.Constraint)
			require.Contains(t, bad.Allowed, tt.allowed)
			require.NotContains(t, bad.Message, "\n")
		})
	}
}

// Schemas come from MCP servers: one that never ends, or explodes, must not take the daemon along.
func TestCompile_RefusesReferencesThatNeverEnd(t *testing.T) {
	doubling := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 40 {
		doubling += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling += `"d40":{}}}`
	for _, schema := range []string{
		`{"type":"object","$ref":"#"}`,
		`{"type":"object","properties":{"a":{"$reF":"#/properties/a"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"$ref":"#/properties/a"}]}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"not":{"$ref":"#/$defs/x"}}}}`,
		`{"type":"object","$dynamicRef":"#a","$dynamicAnchor":"a"}`,
		`{"type":"object","properties":{"a":{"$ref":"#anchor"}}}`,
		doubling,
	} {
		_, err := compile(json.RawMessage(schema))
		require.Error(t, err, "%.80s", schema)
		var bad *ArgumentError
		require.False(t, errors.As(ValidateArguments(json.RawMessage(`{"a":"b"}`), json.RawMessage(schema)), &bad))
	}
	// Going into the value is fine.
	const tree = `{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}},"n":{"type":"integer"}},"additionalProperties":false}`
	require.NoError(t, ValidateArguments(json.RawMessage(`{"kids":[{"kids":[{"n":1}]}]}`), json.RawMessage(tree)))
	var bad *ArgumentError
	require.ErrorAs(t, ValidateArguments(json.RawMessage(`{"kids":[{"kids":[{"n":"x"}]}]}`), json.RawMessage(tree)), &bad)
	require.Equal(t, "arguments.kids[0].kids[0].n", bad.Path)
}

// A schema that can't be used is never in the way of a call.
func TestValidateArguments_FailsOpen(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/missing"}}}`,
		`{"type":"object","properties":{"a":{"type":"nonsense"}}}`,
		`{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}`,
		`{"type":"object","properties":{"a":{"minLength":"x"}}}`,
		`{"type":"object","$schema":"http://json-schema.org/draft-03/schema#"}`,
	} {
		err := ValidateArguments(json.RawMessage(`{"a":"b"}`), json.RawMessage(schema))
		var bad *ArgumentError
		require.False(t, errors.As(err, &bad), "%s: %v", schema, err)
	}
}

func FuzzCoerce(f *testing.F) {
	for _, s := range []string{`{"i":"42"}`, `{"ao":"[{\"x\":\"true\"}]"}`, `{"o":""}`, ``, `{"in":"null"}`, `[`, `{"i":1e5,"n":"1e-7"}`} {
		f.Add(s, coerceSchema)
	}
	f.Add(`{"a":"1"}`, `{"type":"object","properties":{"a":{"$ref":"#"}}}`)
	f.Add(`{"a":{"a":"1"}}`, `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`)
	f.Fuzz(func(t *testing.T, args, schema string) {
		got, _, err := Coerce(json.RawMessage(args), json.RawMessage(schema))
		if err != nil {
			return
		}
		var m map[string]any
		if uerr := json.Unmarshal(got, &m); uerr != nil && !strings.Contains(uerr.Error(), "cannot unmarshal number") {
			t.Fatalf("coerced %q is no object: %v", got, uerr)
		}
		again, _, err := Coerce(got, json.RawMessage(schema))
		if err != nil {
			t.Fatalf("second coercion of %q: %v", got, err)
		}
		if string(again) != string(got) {
			t.Fatalf("not stable: %q then %q", got, again)
		}
		_ = ValidateArguments(got, json.RawMessage(schema))
		if _, err := SanitizeSchema(json.RawMessage(schema)); err != nil && json.Valid([]byte(schema)) &&
			strings.HasPrefix(strings.TrimSpace(schema), "{") {
			t.Fatalf("sanitise %q: %v", schema, err)
		}
	})
}
