package tree

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// Reference returns a text in Markdown with every key: its meaning, what it may be, its default, its variables, and what
// a change of it needs. It is made from the same tags that Load reads.
func (t *Tree) Reference() []byte {
	var b bytes.Buffer
	t.root.reference(&b, true)
	return b.Bytes()
}

// reference writes a struct's keys as a section, then the sections of the blocks in it.
func (k *key) reference(b *bytes.Buffer, top bool) {
	title, text := "`"+k.path+"`", "What it is for: "+k.doc+"."
	if top {
		title, text = "Top level", "Keys that belong to no block."
	}
	var leaves, blocks []*key
	for _, f := range k.fields {
		if f.fields != nil || f.elem != nil && f.elem.fields != nil {
			blocks = append(blocks, f)
		} else {
			leaves = append(leaves, f)
		}
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n", title, text)
	if len(leaves) > 0 {
		b.WriteString("\n| key | meaning | values | default | variables | change |\n|---|---|---|---|---|---|\n")
	}
	for _, f := range leaves {
		vars := make([]string, len(f.env))
		for i, n := range f.env {
			vars[i] = "`" + n + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s |\n", f.name, cell(f.doc), cell(f.allowed(f.typ)), f.shownDefault(), strings.Join(vars, " "), f.reload)
	}
	for _, f := range blocks {
		if f.elem == nil {
			f.reference(b, false)
			continue
		}
		shape := "a list; each entry has the keys below"
		if f.typ.Kind() == reflect.Map {
			shape = "by name; each entry has the keys below"
		}
		entry := *f.elem
		entry.doc = f.doc + " (" + shape + ")"
		entry.reference(b, false)
	}
}

// shownDefault is the default as a cell.
func (k *key) shownDefault() string {
	switch {
	case k.typ == secretType, !k.hasDef && k.typ.Kind() != reflect.Bool:
		return ""
	case k.def == "":
		return "`\"\"`"
	}
	return "`" + cell(k.def) + "`"
}

// cell keeps a text within its cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
