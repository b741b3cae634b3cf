package demo

import (
	"encoding/json"
	"strconv"
	"strings"

	"herald/gateway/model"
)

// planned is one call to make.
type planned struct {
	tool string
	args fields
	// exact arguments were spelled out by the user: nothing is left out.
	exact bool
}

// step is one thing to do for a request.
type step struct {
	// calls returns what to call next, given the results of the step so far; nothing when it is done. A nil
	// func calls nothing.
	calls func(so []outcome) []planned
	// report says what came of it; nil describes each result.
	report func(so []outcome) string
	// slow answers are streamed over time.
	slow bool
	// tool is the first tool that the step needs, empty for talk.
	tool string
	// file is what "it" means in the next step.
	file string
	// whole text belongs to the step: " and " does not end it.
	whole bool
	// joins says that " and " may come before it although it calls no tool.
	joins bool
}

// once returns a step of one call.
func once(tool string, args ...field) *step {
	return &step{tool: tool, calls: func(so []outcome) []planned {
		if len(so) > 0 {
			return nil
		}
		return []planned{{tool: tool, args: args}}
	}}
}

// say returns a step that only talks.
func say(text string) *step {
	return &step{report: func([]outcome) string { return text }}
}

type field struct {
	key   string
	value any
}

// fields is a JSON object whose members keep their order.
type fields []field

// MarshalJSON writes the members in order.
func (f fields) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range f {
		if i > 0 {
			b = append(b, ',')
		}
		k, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		v, err := encode(m.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, k...), ':'), v...)
	}
	return append(b, '}'), nil
}

// encode is json.Marshal without the escaping meant for HTML.
func encode(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// String returns the object's JSON; every value here can be written.
func (f fields) String() string {
	b, err := f.MarshalJSON()
	if err != nil {
		return "{}"
	}
	return string(b)
}

// schema is what matters here of a JSON Schema.
type schema struct {
	Type       json.RawMessage   `json:"type"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Enum       []json.RawMessage `json:"enum"`
	Items      *schema           `json:"items"`
}

func schemaOf(raw json.RawMessage) schema {
	var s schema
	if json.Unmarshal(raw, &s) != nil {
		return schema{}
	}
	return s
}

// is reports whether the schema's type is, or has among others, name.
func (s schema) is(name string) bool {
	var one string
	if json.Unmarshal(s.Type, &one) == nil {
		return one == name
	}
	var many []string
	if json.Unmarshal(s.Type, &many) == nil {
		for _, t := range many {
			if t == name {
				return true
			}
		}
	}
	return false
}

// coerce turns a word that the user wrote into a value of the schema's type.
func (s schema) coerce(word string) any {
	switch {
	case s.is("string"):
		return word
	case s.is("integer"):
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			return n
		}
	case s.is("number"):
		if n, err := strconv.ParseFloat(word, 64); err == nil {
			return n
		}
	case s.is("boolean"):
		switch strings.ToLower(word) {
		case "true", "yes", "on", "1":
			return true
		case "false", "no", "off", "0":
			return false
		}
	case s.is("array"):
		if strings.HasPrefix(word, "[") && json.Valid([]byte(word)) {
			return json.RawMessage(word)
		}
		item := schema{Type: json.RawMessage(`"string"`)}
		if s.Items != nil {
			item = *s.Items
		}
		list := []any{}
		for _, w := range strings.Split(word, ",") {
			if w = strings.TrimSpace(w); w != "" {
				list = append(list, item.coerce(w))
			}
		}
		return list
	case s.is("object"):
		if object, err := model.ParseArguments(word); err == nil {
			return object
		}
	}
	return word
}

// direct reads the arguments of "use <tool> with …": JSON, key=value pairs, or one bare text for the first
// required parameter.
func direct(raw string, s schema) (fields, string) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return nil, ""
	}
	if raw[0] == '{' || strings.HasPrefix(raw, "```") {
		object, err := model.ParseArguments(raw)
		if err != nil {
			return nil, err.Error()
		}
		return orderedFields(object), ""
	}
	if pairs := pairsOf(raw); len(pairs) > 0 {
		var out fields
		for _, p := range pairs {
			out = append(out, field{p[0], s.Properties[p[0]].coerce(p[1])})
		}
		return out, ""
	}
	if len(s.Required) > 0 {
		key := s.Required[0]
		return fields{{key, s.Properties[key].coerce(unquote(raw))}}, ""
	}
	return nil, "I need its arguments as JSON or as name=value pairs."
}

// orderedFields keeps an object's members as they are.
func orderedFields(object json.RawMessage) fields {
	dec := json.NewDecoder(strings.NewReader(string(object)))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	var out fields
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return out
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return out
		}
		name, _ := key.(string)
		out = append(out, field{name, value})
	}
	return out
}

// pairsOf reads "a=1 b='two words'". Nothing when the text is not made of pairs alone.
func pairsOf(s string) [][2]string {
	var out [][2]string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimLeft(s, " \t\n,") {
		eq := strings.IndexByte(s, '=')
		if eq <= 0 || strings.ContainsAny(s[:eq], " \t\n\"'") {
			return nil
		}
		key := s[:eq]
		s = s[eq+1:]
		var value string
		if s != "" && strings.IndexByte("\"'`", s[0]) >= 0 {
			end := strings.IndexByte(s[1:], s[0])
			if end < 0 {
				return nil
			}
			value, s = s[1:end+1], s[end+2:]
		} else if s != "" && (s[0] == '{' || s[0] == '[') {
			end := balanced(s)
			value, s = s[:end], s[end:]
		} else {
			end := strings.IndexAny(s, " \t\n")
			if end < 0 {
				end = len(s)
			}
			value, s = strings.TrimSuffix(s[:end], ","), s[end:]
		}
		out = append(out, [2]string{key, value})
	}
	return out
}

// balanced returns the length of the JSON value that s begins with, all of s when it does not end.
func balanced(s string) int {
	dec := json.NewDecoder(strings.NewReader(s))
	var v json.RawMessage
	if dec.Decode(&v) != nil {
		return len(s)
	}
	return int(dec.InputOffset())
}
