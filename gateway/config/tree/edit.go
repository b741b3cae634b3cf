package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrHandmade says that a file is written in a way that Edit does not dare to change.
var ErrHandmade = errors.New("the file is written in a way that can't be changed safely")

// Edit changes config.yaml as a careful person would: it replaces a few characters or adds a line, and everything
// else stays as it is, comments included. What comes out is read again and compared before the file is replaced. A file
// that is missing is made, for its owner alone. change is given the text and returns the new one; see SetText and SetList.
func Edit(name string, change func(text []byte) ([]byte, error)) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	mode := fs.FileMode(0o600)
	old, err := os.ReadFile(name)
	switch {
	case err == nil:
		if info, err := os.Stat(name); err == nil {
			mode = info.Mode().Perm()
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", name, err)
	}
	text, err := change(old)
	if err != nil {
		return fmt.Errorf("change %s: %w", name, err)
	}
	if bytes.Equal(text, old) {
		return nil
	}
	if len(text) > MaxFileBytes {
		return fmt.Errorf("change %s: it would be larger than 1 MiB", name)
	}
	return replaceFile(name, text, mode)
}

// replaceFile writes a file beside the old one and puts it in its place.
func replaceFile(name string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".config-*.yaml")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// SetText returns the text with a value at a dotted key of one or two parts.
func SetText(text []byte, key, value string) ([]byte, error) {
	return edit(text, key, value)
}

// SetList returns the text with a list of texts at a dotted key of one or two parts.
func SetList(text []byte, key string, values []string) ([]byte, error) {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return edit(text, key, list)
}

// edit puts a value at a key and makes sure that nothing else has changed.
func edit(text []byte, key string, value any) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandmade, err)
	}
	want := map[string]any{}
	if err := yaml.Unmarshal(text, &want); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandmade, err)
	}
	if want == nil { // a document that is null
		want = map[string]any{}
	}
	parts := strings.Split(key, ".")
	if !put(want, parts, value) {
		return nil, fmt.Errorf("%w: %s is no group of settings there", ErrHandmade, parts[0])
	}
	e := editor{lines: splitLines(text)}
	if err := e.set(&doc, parts, value); err != nil {
		return nil, err
	}
	out := []byte(strings.Join(e.lines, ""))
	got := map[string]any{}
	if err := yaml.Unmarshal(out, &got); err != nil || !reflect.DeepEqual(want, got) {
		return nil, ErrHandmade
	}
	return out, nil
}

// put sets a value in the decoded form.
func put(m map[string]any, parts []string, value any) bool {
	if len(parts) == 1 {
		m[parts[0]] = value
		return true
	}
	switch inner := m[parts[0]].(type) {
	case map[string]any:
		if inner == nil {
			return false
		}
		inner[parts[1]] = value
	case nil:
		m[parts[0]] = map[string]any{parts[1]: value}
	default:
		return false
	}
	return true
}

// splitLines cuts a text behind its line ends.
func splitLines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	lines := strings.SplitAfter(string(text), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// editor changes lines. Lines and columns of nodes count from 1.
type editor struct{ lines []string }

func (e *editor) set(doc *yaml.Node, parts []string, value any) error {
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		e.insert(len(e.lines), block(parts, value, 0))
		return nil
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode || top.Style&yaml.FlowStyle != 0 {
		return ErrHandmade
	}
	k, v := pair(top, parts[0])
	switch {
	case k == nil:
		e.insert(e.after(top), block(parts, value, top.Column-1))
		return nil
	case len(parts) == 1:
		return e.replace(k, v, value)
	case isNull(v) && v.Value == "":
		e.insert(k.Line, block(parts[1:], value, k.Column+1))
		return nil
	case v.Kind != yaml.MappingNode || v.Style&yaml.FlowStyle != 0 || len(v.Content) == 0:
		return ErrHandmade
	}
	ik, iv := pair(v, parts[1])
	if ik == nil {
		e.insert(e.after(v), block(parts[1:], value, v.Column-1))
		return nil
	}
	return e.replace(ik, iv, value)
}

// pair finds a key of a mapping.
func pair(m *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Kind == yaml.ScalarNode && m.Content[i].Value == name {
			return m.Content[i], m.Content[i+1]
		}
	}
	return nil, nil
}

// block writes a key with its value, as whole lines.
func block(parts []string, value any, indent int) string {
	pad := strings.Repeat(" ", indent)
	if len(parts) == 2 {
		return pad + parts[0] + ":\n" + block(parts[1:], value, indent+2)
	}
	list, ok := value.([]any)
	switch {
	case !ok:
		return pad + parts[0] + ": " + scalarText(value) + "\n"
	case len(list) == 0:
		return pad + parts[0] + ": []\n"
	}
	var b strings.Builder
	b.WriteString(pad + parts[0] + ":\n")
	for _, v := range list {
		b.WriteString(pad + "  - " + scalarText(v) + "\n")
	}
	return b.String()
}

// scalarText writes one text so that YAML reads it back.
func scalarText(v any) string {
	out, err := yaml.Marshal(v)
	text := strings.TrimSuffix(string(out), "\n")
	if err != nil || strings.Contains(text, "\n") {
		return fmt.Sprintf("%q", v)
	}
	return text
}

// insert puts whole lines before line at (from 0).
func (e *editor) insert(at int, text string) {
	if at > 0 && !strings.HasSuffix(e.lines[at-1], "\n") {
		e.lines[at-1] += "\n"
	}
	e.lines = slices.Insert(e.lines, at, splitLines([]byte(text))...)
}

// after is the number of lines up to the end of a block node: its last line with content and what belongs to a text of
// several lines there.
func (e *editor) after(n *yaml.Node) int {
	last := n.Line
	var visit func(*yaml.Node)
	visit = func(n *yaml.Node) {
		end := n.Line
		if n.Kind == yaml.ScalarNode {
			end += strings.Count(n.Value, "\n") // at least; the check of the result finds what it misses
		}
		last = max(last, end)
		for _, c := range n.Content {
			visit(c)
		}
	}
	visit(n)
	// A folded text, or a flow list of several lines, goes on with deeper lines.
	for last < len(e.lines) {
		line := strings.TrimRight(e.lines[last], " \t\r\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		body := strings.TrimLeft(line, " ")
		if body == "" || strings.HasPrefix(body, "#") || indent <= n.Column-1 && !strings.HasPrefix(body, "]") && !strings.HasPrefix(body, "}") {
			break
		}
		last++
	}
	return min(last, len(e.lines))
}

// replace gives a key another value.
func (e *editor) replace(k, v *yaml.Node, value any) error {
	if v.Kind == yaml.AliasNode || v.Anchor != "" {
		return ErrHandmade
	}
	list, isList := value.([]any)
	if isList && v.Kind == yaml.SequenceNode && v.Style&yaml.FlowStyle == 0 && len(v.Content) > 0 {
		if err := e.replaceItems(v, list); err != nil || len(list) > 0 {
			return err
		}
		v = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	}
	flow := ""
	if isList {
		texts := make([]string, len(list))
		for i, item := range list {
			texts[i] = fmt.Sprintf("%q", item)
		}
		flow = "[" + strings.Join(texts, ", ") + "]"
	} else {
		flow = scalarText(value)
	}
	if k.Line > len(e.lines) {
		return ErrHandmade
	}
	line := e.lines[k.Line-1]
	colon := k.Column - 1 + len(k.Value)
	if colon >= len(line) || line[k.Column-1:colon] != k.Value || line[colon] != ':' {
		return ErrHandmade // a quoted key, or characters that count differently
	}
	rest := line[colon+1:]
	old, comment := cutComment(rest)
	if v.Kind != yaml.ScalarNode && v.Line != k.Line {
		return ErrHandmade
	}
	if strings.TrimSpace(old) == "" && !isNull(v) {
		return ErrHandmade
	}
	e.lines[k.Line-1] = line[:colon+1] + " " + flow + comment
	return nil
}

// cutComment cuts what stands behind a key into its value and the comment with the space before it and the line end.
func cutComment(rest string) (value, tail string) {
	var quote byte
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			if before := strings.TrimRight(rest[:i], " \t"); before == "" || strings.ContainsRune("[,{:", rune(before[len(before)-1])) {
				quote = c
			}
		case c == '#' && i > 0 && (rest[i-1] == ' ' || rest[i-1] == '\t'), c == '\n', c == '\r':
			end := len(strings.TrimRight(rest[:i], " \t"))
			return rest[:end], rest[end:]
		}
	}
	end := len(strings.TrimRight(rest, " \t"))
	return rest[:end], rest[end:]
}

// replaceItems brings a block list to other values: the lines of items that stay are not touched.
func (e *editor) replaceItems(v *yaml.Node, list []any) error {
	have := make([]string, len(v.Content))
	for i, item := range v.Content {
		if item.Kind != yaml.ScalarNode || strings.Contains(item.Value, "\n") || i > 0 && item.Line == v.Content[i-1].Line {
			return ErrHandmade
		}
		have[i] = item.Value
	}
	pad := strings.Repeat(" ", v.Column-1)
	end := v.Content[len(v.Content)-1].Line
	var fresh strings.Builder
	for _, value := range list {
		if text, ok := value.(string); !ok || !slices.Contains(have, text) {
			fresh.WriteString(pad + "- " + scalarText(value) + "\n")
		}
	}
	e.insert(end, fresh.String())
	for i := len(v.Content) - 1; i >= 0; i-- {
		if !slices.Contains(list, any(have[i])) {
			at := v.Content[i].Line - 1
			e.lines = slices.Delete(e.lines, at, at+1)
		}
	}
	return nil
}
