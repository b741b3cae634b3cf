package tree

import (
	"bytes"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"herald/platforms"
)

// Show returns all settings as YAML, with the origin of each value as a comment. Secrets are "***". The text can be used as
// a config.yaml once the secrets are taken out. r may be nil: then there are no comments.
func (t *Tree) Show(settings any, r *Report) []byte {
	return encode(show(t.root, valueOf(settings), r, "", everything))
}

// ShowChanged is Show with only the values that are not the default.
func (t *Tree) ShowChanged(settings any, r *Report) []byte {
	n := show(t.root, valueOf(settings), r, "", func(path string, _ reflect.Value) bool { return r != nil && r.touched(path) })
	if len(n.Content) == 0 {
		return []byte("# every value is the default\n")
	}
	return encode(n)
}

func encode(n *yaml.Node) []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return []byte("# " + err.Error() + "\n") // a tree of our own always encodes
	}
	return b.Bytes()
}

// everything and nonZero choose what show shows.
func everything(string, reflect.Value) bool  { return true }
func nonZero(_ string, v reflect.Value) bool { return !v.IsZero() }

// show makes the mapping of a struct, of those leaves that keep chooses.
func show(k *key, v reflect.Value, r *Report, path string, keep func(string, reflect.Value) bool) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range k.fields {
		p := join(path, f.name)
		fv := f.get(v)
		var n *yaml.Node
		if f.fields != nil {
			if n = show(f, fv, r, p, keep); len(n.Content) == 0 {
				continue
			}
		} else {
			if !keep(p, fv) {
				continue
			}
			n = showValue(f, fv, r, p)
			if n.Kind == yaml.ScalarNode || n.Style == yaml.FlowStyle {
				n.LineComment = comment(r, p)
			}
		}
		m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.name}, n)
	}
	return m
}

// touched reports whether a key, or one below it, was set.
func (r *Report) touched(path string) bool {
	if _, ok := r.origins[path]; ok {
		return true
	}
	for p := range r.origins {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

func comment(r *Report, path string) string {
	if r == nil {
		return ""
	}
	return r.Origin(path).String()
}

// showValue makes the node of a leaf, map or list.
func showValue(k *key, v reflect.Value, r *Report, path string) *yaml.Node {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
		}
		v = v.Elem()
	}
	switch {
	case k.elem != nil && v.Len() == 0 && v.Kind() == reflect.Map:
		return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	case v.Kind() == reflect.Slice && v.Len() == 0:
		return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	case v.Kind() == reflect.Map:
		m := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range mapNames(v) {
			e, p := entry(v, name), join(path, name)
			var n *yaml.Node
			if k.elem.fields != nil {
				n = show(k.elem, e, r, p, nonZero)
			} else {
				n = showValue(k.elem, e, r, p)
				if n.Kind == yaml.ScalarNode || n.Style == yaml.FlowStyle {
					n.LineComment = comment(r, p)
				}
			}
			m.Content = append(m.Content, scalar(name), n)
		}
		return m
	case k.elem != nil:
		s := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			s.Content = append(s.Content, show(k.elem, v.Index(i), nil, "", everything))
		}
		return s
	case v.Kind() == reflect.Slice:
		s := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, t := range v.Interface().([]string) {
			s.Content = append(s.Content, scalar(t))
		}
		return s
	case v.Kind() == reflect.String:
		return scalar(v.String())
	case v.Type() == secretType:
		if !v.Interface().(platforms.Secret).IsSet() {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
		}
		return scalar("***")
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text(k, v)}
}

// scalar is a text that reads back as a text.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}
