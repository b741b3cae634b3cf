package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// Origin is where a value came from. The zero value is the default.
type Origin struct {
	// Kind is "", "file", "dotenv", "env" or "flag".
	Kind string
	// File and Line say where in config.yaml or .env.
	File string
	Line int
	// Name is the variable or flag.
	Name string
}

// String returns "default", "config.yaml:12", "env NAME", ".env:3 NAME" or "flag --name".
func (o Origin) String() string {
	switch o.Kind {
	case "file":
		return fmt.Sprintf("%s:%d", filepath.Base(o.File), o.Line)
	case "dotenv":
		return fmt.Sprintf("%s:%d %s", filepath.Base(o.File), o.Line, o.Name)
	case "env":
		return "env " + o.Name
	case "flag":
		return "flag --" + o.Name
	}
	return "default"
}

// place is the origin for messages: with the whole path of a file.
func (o Origin) place() string {
	switch o.Kind {
	case "file":
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case "dotenv":
		return fmt.Sprintf("%s in %s:%d", o.Name, o.File, o.Line)
	case "env":
		return "variable " + o.Name
	case "flag":
		return "flag --" + o.Name
	}
	return ""
}

// Problem is one thing that is wrong, in words for an operator. It never holds a secret.
type Problem struct {
	// Key is the dotted key; empty for a file that can't be read.
	Key string
	// Where is the file and line, variable or flag; empty when no single place is to blame.
	Where string
	// Text says what is wrong, with the value and what is allowed, or what to do.
	Text string
}

// Error returns "key: text (where)".
func (p Problem) Error() string {
	var b strings.Builder
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	if p.Where != "" {
		b.WriteString(" (" + p.Where + ")")
	}
	return b.String()
}

// Report is what Load found out: the problems and the origin of each value.
type Report struct {
	// Errors keep the daemon from starting. Warnings do not.
	Errors   []Problem
	Warnings []Problem
	origins  map[string]Origin
}

// Origin returns where the value of a dotted key came from. The entries of a map or list share their container's
// origin when they have none of their own.
func (r *Report) Origin(path string) Origin {
	for {
		if o, ok := r.origins[path]; ok {
			return o
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return Origin{}
		}
		path = path[:i]
	}
}

// Err returns all errors as one, a line each, or nil.
func (r *Report) Err() error {
	if len(r.Errors) == 0 {
		return nil
	}
	lines := make([]string, len(r.Errors))
	for i, p := range r.Errors {
		lines[i] = p.Error()
	}
	return errors.New(strings.Join(lines, "\n"))
}

// Text returns all problems for a person: errors, then warnings, a line each, and a last line that sums up.
func (r *Report) Text() string {
	var b strings.Builder
	for _, p := range r.Errors {
		b.WriteString("error: " + p.Error() + "\n")
	}
	for _, p := range r.Warnings {
		b.WriteString("warning: " + p.Error() + "\n")
	}
	switch {
	case len(r.Errors) > 0:
		fmt.Fprintf(&b, "The configuration has errors (%d); Herald does not start with it.\n", len(r.Errors))
	case len(r.Warnings) > 0:
		fmt.Fprintf(&b, "The configuration can be used; see the warnings (%d).\n", len(r.Warnings))
	default:
		b.WriteString("The configuration is good.\n")
	}
	return b.String()
}

// Errorf adds an error. o is where the value that is to blame came from.
func (r *Report) Errorf(key string, o Origin, format string, args ...any) {
	r.Errors = append(r.Errors, Problem{Key: key, Where: o.place(), Text: fmt.Sprintf(format, args...)})
}

// Warnf adds a warning. o is where the value that is to blame came from.
func (r *Report) Warnf(key string, o Origin, format string, args ...any) {
	r.Warnings = append(r.Warnings, Problem{Key: key, Where: o.place(), Text: fmt.Sprintf(format, args...)})
}

// Quote shows a value in a message: quoted, and cut when it is long.
func Quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// BareError takes the path off an error, for a message that names it anyway.
func BareError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
