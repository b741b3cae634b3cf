package tools

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Segment is a stretch of a batch: calls[Start:End]. The calls of a parallel one may run side by side; the
// others run one after the other. A segment starts when the one before it has ended.
type Segment struct {
	Parallel   bool
	Start, End int
}

// Plan cuts the calls of one model answer into segments, in order and without gaps. lookup gives the
// declaration of a tool; ok is false for an unknown one.
//
// Safe calls run together. Path-scoped ones do too unless their paths overlap and one of them writes: then a
// new segment begins. Everything else runs alone: sequential and barrier tools, unknown ones, and calls
// whose arguments are not a JSON object or whose paths can't be told. A call through the bridge
// (tool_call) counts as the call it carries.
func Plan(calls []Call, lookup func(name string) (Spec, bool)) []Segment {
	var p planner
	for i, call := range calls {
		p.add(i, admit(call, lookup))
	}
	p.flush(len(calls))
	return p.segments
}

// admission is what may run beside a call.
type admission struct {
	alone  bool
	scopes []scope
}

// scope is one path that a call touches, as the elements of its canonical form.
type scope struct {
	path  []string
	write bool
}

func (s scope) overlaps(o scope) bool {
	if !s.write && !o.write {
		return false
	}
	n := min(len(s.path), len(o.path))
	return slices.Equal(s.path[:n], o.path[:n])
}

// planner collects a run of calls that may be parallel.
type planner struct {
	segments []Segment
	start    int
	scopes   []scope
}

func (p *planner) add(i int, a admission) {
	if a.alone {
		p.flush(i)
		p.emit(Segment{Start: i, End: i + 1})
		p.start = i + 1
		return
	}
	for _, s := range a.scopes {
		if slices.ContainsFunc(p.scopes, s.overlaps) {
			p.flush(i)
			break
		}
	}
	p.scopes = append(p.scopes, a.scopes...)
}

// flush ends the current run before call i. A run of one is sequential.
func (p *planner) flush(i int) {
	if n := i - p.start; n > 0 {
		p.emit(Segment{Parallel: n > 1, Start: p.start, End: i})
	}
	p.start, p.scopes = i, nil
}

// emit adds a segment; sequential neighbours become one.
func (p *planner) emit(s Segment) {
	if last := len(p.segments) - 1; last >= 0 && !s.Parallel && !p.segments[last].Parallel {
		p.segments[last].End = s.End
		return
	}
	p.segments = append(p.segments, s)
}

// admit decides about one call.
func admit(call Call, lookup func(string) (Spec, bool)) admission {
	if call.Name == BridgeCall {
		inner, ok := Unwrap(call)
		if !ok {
			return admission{alone: true}
		}
		var all admission
		for _, c := range inner {
			if isBridge(c.Name) {
				return admission{alone: true}
			}
			a := admit(c, lookup)
			if a.alone {
				return a
			}
			all.scopes = append(all.scopes, a.scopes...)
		}
		return all
	}
	spec, ok := lookup(call.Name)
	if !ok || !isObject(call.Args) {
		return admission{alone: true}
	}
	switch spec.Parallel {
	case Safe:
		return admission{}
	case PathScoped:
		return scoped(call, spec)
	}
	return admission{alone: true}
}

// scoped asks a tool for its paths. A panic there counts as paths that can't be told.
func scoped(call Call, spec Spec) (a admission) {
	defer func() {
		if recover() != nil {
			a = admission{alone: true}
		}
	}()
	if spec.Paths == nil {
		return admission{alone: true}
	}
	paths, write, ok := spec.Paths(call)
	if !ok || len(paths) == 0 {
		return admission{alone: true}
	}
	for _, path := range paths {
		canonical, ok := CanonicalPath(call.Caller.Dir, path)
		if !ok {
			return admission{alone: true}
		}
		a.scopes = append(a.scopes, scope{path: strings.FieldsFunc(canonical, isSeparator), write: write})
	}
	return a
}

// CanonicalPath returns the one name of a file for comparing: absolute (a relative path is taken from dir),
// clean, links followed as far as the path exists, and in lower case where file systems usually ignore
// case (macOS, Windows). ok is false when no such name can be told.
func CanonicalPath(dir, path string) (canonical string, ok bool) {
	if path == "" || strings.ContainsRune(path, 0) {
		return "", false
	}
	if !filepath.IsAbs(path) {
		if !filepath.IsAbs(dir) {
			return "", false
		}
		path = filepath.Join(dir, path)
	}
	path = filepath.Clean(path)
	rest := ""
	for base := path; ; {
		if real, err := filepath.EvalSymlinks(base); err == nil {
			path = filepath.Join(real, rest)
			break
		}
		parent := filepath.Dir(base)
		if parent == base {
			break
		}
		rest = filepath.Join(filepath.Base(base), rest)
		base = parent
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		path = strings.ToLower(path)
	}
	return path, true
}

func isSeparator(r rune) bool { return r == filepath.Separator }

// Unwrap returns the calls that a call through the bridge carries, with the bridge's id and caller. Both
// shapes are understood: {name, arguments} and {calls: [{name, arguments}]}; arguments may be an object,
// the same as text, or blank. ok is false when the wrapper makes no sense.
func Unwrap(call Call) (calls []Call, ok bool) {
	type wrapped struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	var w struct {
		wrapped
		Calls json.RawMessage `json:"calls"`
	}
	if json.Unmarshal(unquoted(call.Args), &w) != nil {
		return nil, false
	}
	list := []wrapped{w.wrapped}
	if inner := unquoted(w.Calls); len(inner) > 0 {
		if w.Name != "" {
			return nil, false // both shapes at once
		}
		if inner[0] == '{' {
			inner = json.RawMessage("[" + string(inner) + "]")
		}
		if json.Unmarshal(inner, &list) != nil {
			return nil, false
		}
	}
	for _, one := range list {
		args := unquoted(one.Arguments)
		if len(args) == 0 {
			args = json.RawMessage(`{}`)
		}
		name := strings.TrimSpace(one.Name)
		if name == "" || !isObject(args) {
			return nil, false
		}
		calls = append(calls, Call{ID: call.ID, Name: name, Args: args, Caller: call.Caller})
	}
	return calls, len(calls) > 0
}

// unquoted returns JSON that was written as a JSON string, without white space around it; null is nothing.
func unquoted(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			raw = bytes.TrimSpace([]byte(text))
		}
	}
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// isObject reports whether arguments are a JSON object; blank ones are the empty object.
func isObject(args json.RawMessage) bool {
	trimmed := bytes.TrimSpace(args)
	return len(trimmed) == 0 || trimmed[0] == '{' && json.Valid(trimmed)
}
