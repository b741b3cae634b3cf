package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxFileBytes is the most that config.yaml or .env may have.
const MaxFileBytes = 1 << 20

// maxDepth bounds nesting and the chains of YAML aliases, which may be circular.
const maxDepth = 32

// decoder puts what is given into one struct of settings.
type decoder struct {
	tree   *Tree
	root   *key
	config reflect.Value
	report *Report
	origin Origin // of the whole document; Line is set for each value
	file   bool   // a config.yaml, in which secrets have no place
	later  []deferred
}

// deferred is a value under another name than its own. It is looked at when all plain ones are known, which win.
type deferred struct {
	path, from string
	node       *yaml.Node
}

// document reads a whole config.yaml. Problems go to the report.
func (d *decoder) document(name string, data []byte) {
	d.origin, d.file = Origin{Kind: "file", File: name}, true
	defer func() { d.origin, d.file = Origin{}, false }()
	report := d.report
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return // empty
	}
	if err != nil {
		line, text := YAMLError(err)
		report.Errorf("", d.at(line), "is not YAML: %s; none of the file was used", text)
		return
	}
	var second yaml.Node
	if dec.Decode(&second) == nil {
		report.Warnf("", d.at(second.Line), "only the first document of the file is used; remove the others")
	}
	top := doc.Content[0]
	if isNull(top) {
		return
	}
	d.value(d.root, d.config, top, "", 0)
	for i := 0; i < len(d.later) && i < 100; i++ { // bounded, because aliases can make it endless
		d.resolve(d.later[i])
	}
}

// resolve puts a deferred value in its place.
func (d *decoder) resolve(l deferred) {
	k, v := d.locate(l.path)
	if o, ok := d.report.origins[l.path]; ok && o.Kind == "file" && k.leaf() {
		d.report.Warnf(l.from, d.at(l.node.Line), "is not used, because %s is set in line %d", l.path, o.Line)
		return
	}
	d.value(k, v, l.node, l.path, 0)
}

// locate returns a key that is part of structs only, and its value.
func (d *decoder) locate(path string) (*key, reflect.Value) {
	k, v := d.root, d.config
	for name := range strings.SplitSeq(path, ".") {
		k = k.field(name)
		v = k.get(v)
	}
	return k, v
}

func (d *decoder) at(line int) Origin {
	o := d.origin
	if o.Kind == "file" {
		o.Line = line
	}
	return o
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// YAMLError takes the line out of an error of the YAML library; 1 where it names none.
func YAMLError(err error) (line int, text string) {
	text = err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	return max(line, 1), text
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// follow goes through aliases; nil when they never end.
func follow(n *yaml.Node) *yaml.Node {
	for range maxDepth {
		if n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return nil
}

// value decodes n into the place of k.
func (d *decoder) value(k *key, v reflect.Value, n *yaml.Node, path string, depth int) {
	n = follow(n)
	if n == nil || depth > maxDepth {
		d.report.Errorf(path, d.origin, "is nested too deeply")
		return
	}
	switch {
	case isNull(n): // nothing is said: the default stays
	case k.fields != nil:
		d.object(k, v, n, path, depth)
	case k.elem != nil && k.typ.Kind() == reflect.Map:
		d.mapping(k, v, n, path, depth)
	case k.elem != nil:
		d.objects(k, v, n, path, depth)
	case k.typ.Kind() == reflect.Slice:
		d.list(k, v, n, path)
	default:
		d.scalar(k, v, n, path)
	}
}

// pairs returns the keys and values of a mapping, merge keys (<<) included; plain keys win over merged ones.
// A key that stands twice is reported.
func (d *decoder) pairs(n *yaml.Node, path string, depth int) (keys, values []*yaml.Node) {
	seen := map[string]int{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := follow(n.Content[i])
		switch {
		case key == nil || key.Kind != yaml.ScalarNode:
			d.report.Errorf(path, d.at(n.Content[i].Line), "a key must be a plain word")
		case key.Tag == "!!merge" && seen["<<"] == 0: // one only: more could multiply without end
			seen["<<"] = max(key.Line, 1)
			merges = append(merges, n.Content[i+1])
		case seen[key.Value] != 0:
			d.report.Errorf(join(path, key.Value), d.at(key.Line), "stands twice; the first is in line %d", seen[key.Value])
		default:
			seen[key.Value] = max(key.Line, 1)
			keys, values = append(keys, key), append(values, n.Content[i+1])
		}
	}
	for _, m := range merges {
		from := follow(m)
		if from == nil || from.Kind != yaml.MappingNode || depth > maxDepth {
			d.report.Errorf(path, d.at(m.Line), "<< wants an alias of keys with values")
			continue
		}
		mk, mv := d.pairs(from, path, depth+8)
		for i, key := range mk {
			if seen[key.Value] == 0 {
				seen[key.Value] = max(key.Line, 1)
				keys, values = append(keys, key), append(values, mv[i])
			}
		}
	}
	return keys, values
}

// object decodes a mapping into a struct.
func (d *decoder) object(k *key, v reflect.Value, n *yaml.Node, path string, depth int) {
	if n.Kind == yaml.ScalarNode && k.short != "" {
		f := k.field(k.short)
		d.value(f, f.get(v), n, join(path, f.name), depth+1)
		return
	}
	if n.Kind != yaml.MappingNode {
		d.report.Errorf(path, d.at(n.Line), "is %s: want keys with values: %s", kindOf(n), strings.Join(k.names(), ", "))
		return
	}
	keys, values := d.pairs(n, path, depth)
	for i, name := range keys {
		if f := k.field(name.Value); f != nil {
			d.value(f, f.get(v), values[i], join(path, f.name), depth+1)
			continue
		}
		d.unknown(k, v, name, values[i], path, depth)
	}
	for _, f := range k.fields {
		if f.required && f.get(v).IsZero() && path != "" {
			d.report.Errorf(join(path, f.name), d.at(n.Line), "is missing: want %s", f.allowed(f.typ))
		}
	}
}

// unknown handles a key that the struct does not have: a name from elsewhere, or a mistake.
func (d *decoder) unknown(k *key, v reflect.Value, name, n *yaml.Node, path string, depth int) {
	full := join(path, name.Value)
	for _, r := range d.tree.spec.Renamed {
		if r.From != full {
			continue
		}
		if r.To == "" {
			d.report.Warnf(full, d.at(name.Line), "has no effect any more; remove it")
		} else {
			d.report.Warnf(full, d.at(name.Line), "is now called %s", r.To)
			d.later = append(d.later, deferred{r.To, full, n})
		}
		return
	}
	spec := d.tree.spec
	parent, _, _ := strings.Cut(path, ".")
	switch {
	case path == "" && spec.Bare != "" && d.root.find(join(spec.Bare, name.Value)) != nil:
		d.later = append(d.later, deferred{join(spec.Bare, name.Value), full, n})
		return
	case path != "" && path == spec.Inner && name.Value != spec.Inner && d.root.field(name.Value) != nil:
		d.later = append(d.later, deferred{name.Value, full, n})
		return
	case spec.Bare != "" && parent == spec.Bare && strings.Count(path, ".") == 1 && name.Value == spec.Loose:
		d.value(k, v, n, path, depth+1)
		return
	}
	hint := ""
	if near := Nearest(name.Value, k.names()); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", join(path, near))
	} else if far := d.elsewhere(name.Value); far != "" {
		hint = fmt.Sprintf("; did you mean %s?", far)
	}
	d.report.Warnf(full, d.at(name.Line), "unknown key, ignored%s", hint)
}

// elsewhere finds the only key of that very name in another block.
func (d *decoder) elsewhere(name string) string {
	found := ""
	d.root.each(func(k *key) {
		if k.name == name && found == "" {
			found = k.path
		}
	})
	return found
}

func (k *key) names() []string {
	names := make([]string, len(k.fields))
	for i, f := range k.fields {
		names[i] = f.name
	}
	return names
}

// mapping decodes into a map with free names, or with those that Spec.Names has.
func (d *decoder) mapping(k *key, v reflect.Value, n *yaml.Node, path string, depth int) {
	if n.Kind != yaml.MappingNode {
		d.report.Errorf(path, d.at(n.Line), "is %s: want names with values", kindOf(n))
		return
	}
	d.report.origins[path] = d.at(n.Line)
	keys, values := d.pairs(n, path, depth)
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for i, name := range keys {
		full := join(path, name.Value)
		if known := d.tree.spec.Names[k.keys]; k.keys != "" && !slices.Contains(known, name.Value) {
			hint := ""
			if near := Nearest(name.Value, known); near != "" {
				hint = "; did you mean " + near + "?"
			}
			d.report.Warnf(full, d.at(name.Line), "no such %s, ignored%s", k.keys, hint)
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(reflect.ValueOf(name.Value)); old.IsValid() {
			e.Set(old)
		}
		d.value(k.elem, e, values[i], full, depth+1)
		v.SetMapIndex(reflect.ValueOf(name.Value), e)
	}
}

// objects decodes a list of structs. It replaces what was there.
func (d *decoder) objects(k *key, v reflect.Value, n *yaml.Node, path string, depth int) {
	if n.Kind != yaml.SequenceNode {
		d.report.Errorf(path, d.at(n.Line), "is %s: want a list", kindOf(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(n.Content))
	for i, item := range n.Content {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(k.elem, e, item, fmt.Sprintf("%s.%d", path, i), depth+1)
		out = reflect.Append(out, e)
	}
	v.Set(out)
	d.report.origins[path] = d.at(n.Line)
}

// list decodes a list of texts; a single text is split at commas.
func (d *decoder) list(k *key, v reflect.Value, n *yaml.Node, path string) {
	var items []*yaml.Node
	switch n.Kind {
	case yaml.SequenceNode:
		items = n.Content
	case yaml.ScalarNode:
		d.setText(k, v, n.Value, path, d.at(n.Line))
		return
	default:
		d.report.Errorf(path, d.at(n.Line), "is %s: want a list", kindOf(n))
		return
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		item = follow(item)
		if item == nil || item.Kind != yaml.ScalarNode || isNull(item) {
			d.report.Errorf(path, d.at(n.Line), "holds something that is no text: want a list of texts")
			return
		}
		texts = append(texts, item.Value)
	}
	d.setList(k, v, texts, path, d.at(n.Line))
}

// scalar decodes one value.
func (d *decoder) scalar(k *key, v reflect.Value, n *yaml.Node, path string) {
	if v.Type() == secretType && d.file {
		d.report.Errorf(path, d.at(n.Line),
			"is a secret and has no place in config.yaml; move it to the .env file as %s=…, and change it if others could read it",
			k.env[len(k.env)-1])
		return
	}
	if n.Kind != yaml.ScalarNode {
		d.report.Errorf(path, d.at(n.Line), "is %s: want %s", kindOf(n), k.allowed(k.typ))
		return
	}
	d.setText(k, v, n.Value, path, d.at(n.Line))
}

// setText puts a text into a leaf, and notes where it came from. A list is split at commas, or at the path
// separator where the key says so.
func (d *decoder) setText(k *key, v reflect.Value, text, path string, o Origin) {
	if k.typ.Kind() == reflect.Slice {
		sep := ","
		if k.sep == "path" {
			sep = string(os.PathListSeparator)
		}
		var texts []string
		for part := range strings.SplitSeq(text, sep) {
			if part = strings.TrimSpace(part); part != "" {
				texts = append(texts, part)
			}
		}
		d.setList(k, v, texts, path, o)
		return
	}
	if err := k.set(v, text); err != nil {
		switch {
		case k.typ == secretType:
			d.report.Errorf(path, o, "%v", err)
		case k.check == "url" && strings.Contains(text, "@"): // it may hold a password
			d.report.Errorf(path, o, "the address is no good: %v", err)
		default:
			d.report.Errorf(path, o, "%s is no good: %v", Quote(text), err)
		}
		return
	}
	d.report.origins[path] = o
}

// setList puts texts into a list.
func (d *decoder) setList(k *key, v reflect.Value, texts []string, path string, o Origin) {
	out := make([]string, 0, len(texts))
	for _, t := range texts {
		s, err := k.text(t)
		if err != nil {
			d.report.Errorf(path, o, "%s is no good: %v", Quote(t), err)
			return
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	v.Set(reflect.ValueOf(out))
	d.report.origins[path] = o
}

// kindOf names what stands there, for messages; without its content.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a block of keys"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}
