package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"herald/tools"
)

// maxPatched is the largest file that patch changes, in bytes.
const maxPatched = 20 << 20

type patchArgs struct {
	Mode         string  `json:"mode"`
	Path         string  `json:"path"`
	OldString    *string `json:"old_string"`
	NewString    *string `json:"new_string"`
	ReplaceAll   bool    `json:"replace_all"`
	Patch        string  `json:"patch"`
	CrossProfile bool    `json:"cross_profile"`
}

type patchResult struct {
	Success       bool                   `json:"success"`
	FilesModified []string               `json:"files_modified"`
	FilesCreated  []string               `json:"files_created,omitempty"`
	FilesDeleted  []string               `json:"files_deleted,omitempty"`
	Replacements  int                    `json:"replacements,omitempty"`
	Strategy      string                 `json:"strategy,omitempty"` // when it was not exact
	Diff          string                 `json:"diff"`
	Lint          map[string]*lintResult `json:"lint,omitempty"`
	Warnings      []string               `json:"_warnings,omitempty"`
}

const patchSchema = `{
  "type": "object",
  "properties": {
    "mode": {"type": "string", "enum": ["replace", "patch"], "default": "replace", "description": "replace changes one text in one file; patch applies a multi-file patch."},
    "path": {"type": "string", "description": "replace: the file."},
    "old_string": {"type": "string", "description": "replace: the text to replace, with enough lines around it to be unique."},
    "new_string": {"type": "string", "description": "replace: what comes in its place; empty deletes it."},
    "replace_all": {"type": "boolean", "default": false, "description": "replace: change every place where old_string stands."},
    "patch": {"type": "string", "description": "patch: text of the form\n*** Begin Patch\n*** Update File: a.txt\n@@ line before the change\n kept line\n-removed line\n+added line\n*** Add File: b.txt\n+content\n*** Delete File: c.txt\n*** Move File: d.txt -> e.txt\n*** End Patch"},
    "cross_profile": {"type": "boolean", "default": false, "description": "Change another profile's files, where the operator allows that."}
  },
  "required": ["mode"],
  "additionalProperties": false
}`

func (f *Family) patchTool() tools.Tool {
	return tools.Tool{
		Spec: tools.Spec{
			Name: "patch", Toolset: "file", Core: true, Emoji: "🔧", Preview: "path",
			Description: "Change parts of files. In mode replace small differences of white space, indentation and quotes between old_string and the file are bridged, but the place must be unique. " +
				"In mode patch several files are updated, added, deleted or moved, all of them or none. The answer has a unified diff.",
			Parameters: json.RawMessage(patchSchema), Parallel: tools.PathScoped, Paths: f.patchScopes,
		},
		Run: f.patch,
	}
}

// patchScopes reserves the file of a replacement, or every path in the headers of a patch.
func (f *Family) patchScopes(call tools.Call) ([]string, bool, bool) {
	var a patchArgs
	if decode(call, &a) != nil {
		return nil, false, false
	}
	if a.Mode == "patch" || a.Mode == "" && a.Patch != "" {
		return f.absolute(call.Caller, headerPaths(a.Patch), true)
	}
	return f.absolute(call.Caller, []string{a.Path}, true)
}

func (f *Family) patch(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a patchArgs
	if err := decode(call, &a); err != nil {
		return tools.Result{}, err
	}
	ops, err := a.operations()
	if err != nil {
		return fail(err)
	}
	p, err := f.place(call.Caller)
	if err != nil {
		return fail(err)
	}
	e := &edits{f: f, p: p, call: call, guard: f.guard(ctx, p), cross: a.CrossProfile, byReal: map[string]*edited{}}
	f.writing.Lock()
	err = e.run(ctx, ops)
	f.writing.Unlock()
	if err != nil {
		return fail(f.advise(call, e, err))
	}
	r := e.result()
	for _, d := range e.files {
		if !d.exists {
			continue
		}
		if l := lintChange(ctx, p.env, d.t.real, d.before, d.after); l != nil {
			if r.Lint == nil {
				r.Lint = map[string]*lintResult{}
			}
			r.Lint[d.t.name] = l
		}
	}
	return tools.JSON(r), nil
}

// operation is one step of a call: a replacement or a part of a patch.
type operation struct {
	fileOp
	replace  bool
	old, new string
	all      bool
}

// operations checks the arguments.
func (a patchArgs) operations() ([]operation, error) {
	mode := a.Mode
	if mode == "" {
		mode = "replace"
		if a.Patch != "" {
			mode = "patch"
		}
	}
	switch mode {
	case "replace":
		switch {
		case a.Path == "":
			return nil, errors.New("path is missing; mode replace needs path, old_string and new_string")
		case a.OldString == nil:
			return nil, errors.New("old_string is missing; mode replace needs path, old_string and new_string")
		case a.NewString == nil:
			return nil, errors.New("new_string is missing; give an empty string to delete the text")
		}
		return []operation{{fileOp: fileOp{kind: opUpdate, path: a.Path}, replace: true, old: *a.OldString, new: *a.NewString,
			all: a.ReplaceAll}}, nil
	case "patch":
		if strings.TrimSpace(a.Patch) == "" {
			return nil, errors.New("patch is missing; mode patch needs the text of a patch")
		}
		parsed, err := parseV4A(a.Patch)
		if err != nil {
			return nil, err
		}
		ops := make([]operation, len(parsed))
		for i, op := range parsed {
			ops[i].fileOp = op
		}
		return ops, nil
	}
	return nil, fmt.Errorf("mode: %q is not known; allowed are replace and patch", a.Mode)
}

// advise adds what to do next to an error of a text that was not found, more so each time.
func (f *Family) advise(call tools.Call, e *edits, err error) error {
	if !errors.Is(err, ErrNoMatch) && !errors.Is(err, ErrAmbiguous) || e.failing == "" {
		return err
	}
	switch n := f.tracker.failed(call.Caller.Session, e.failing); {
	case n == 1 && errors.Is(err, ErrNoMatch):
		return fmt.Errorf("%w. Read the file and copy the text from there, without the line numbers", err)
	case n == 2:
		return fmt.Errorf("%w. This is the second try that failed on this file: read it again, it is not what you think it is", err)
	case n > 2:
		return fmt.Errorf("%w. %d tries failed on this file: stop guessing. Read the part you want to change, or write the whole file with write_file", err, n)
	}
	return err
}

// edited is one file while a call works on it.
type edited struct {
	t      target
	before []byte // nil when it did not exist
	after  []byte
	was    bool        // it existed
	exists bool        // it is to exist
	mode   fs.FileMode // of the file, or of the one that moves here; 0 for a new one
	stamp  stamp
}

// edits collects all changes in memory and makes them on disk when every one is known to fit.
type edits struct {
	f        *Family
	p        place
	call     tools.Call
	guard    *guard
	cross    bool
	files    []*edited // in order of first use
	byReal   map[string]*edited
	moves    map[string]string
	warnings []string
	count    int
	strategy string
	failing  string // the file of the step that failed
}

func (e *edits) run(ctx context.Context, ops []operation) error {
	for _, op := range ops {
		if err := e.apply(ctx, op); err != nil {
			return err
		}
	}
	return e.commit(ctx)
}

// open loads a file once, after both guards have let it pass: the diff shows what it holds.
func (e *edits) open(ctx context.Context, path string) (*edited, error) {
	t, err := e.p.target(ctx, path)
	if err != nil {
		return nil, err
	}
	if d, ok := e.byReal[t.real]; ok {
		return d, nil
	}
	if err := e.f.mayWrite(ctx, e.guard, e.call, t, e.cross); err != nil {
		return nil, err
	}
	d := &edited{t: t}
	info, err := e.p.env.Stat(ctx, t.real)
	switch {
	case isNotExist(err):
	case err != nil:
		return nil, describe(path, err)
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", path)
	case !info.IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	default:
		if err := mayRead(e.guard, t, e.cross); err != nil {
			return nil, err
		}
		b, err := e.p.env.ReadFile(ctx, t.real, maxPatched)
		if err != nil {
			return nil, describe(path, err)
		}
		d.was, d.exists, d.before, d.after = true, true, b, b
		d.mode, d.stamp = info.Mode, stampOf(info)
	}
	e.files = append(e.files, d)
	e.byReal[t.real] = d
	return d, nil
}

// apply does one step in memory.
func (e *edits) apply(ctx context.Context, op operation) error {
	d, err := e.open(ctx, op.path)
	if err != nil {
		return err
	}
	if op.kind == opAdd {
		if d.exists {
			return fmt.Errorf("%s exists already; update it instead of adding it", op.path)
		}
		d.exists, d.after = true, []byte(op.content)
		return nil
	}
	if !d.exists {
		return e.f.missing(ctx, e.p, d.t, fs.ErrNotExist)
	}
	if d.was && e.f.tracker.stale(e.call.Caller.Session, d.t.real, d.stamp) {
		e.warnings = append(e.warnings, staleWarning(op.path))
	}
	switch op.kind {
	case opDelete:
		d.exists, d.after = false, nil
		return nil
	case opUpdate:
		if err := e.update(d, op); err != nil {
			return fmt.Errorf("%s: %w", op.path, err)
		}
	}
	if op.to == "" {
		return nil
	}
	return e.move(ctx, d, op.to)
}

func (e *edits) move(ctx context.Context, d *edited, to string) error {
	n, err := e.open(ctx, to)
	if err != nil {
		return err
	}
	if n.exists {
		return fmt.Errorf("%s exists already; %s can't be moved there", to, d.t.name)
	}
	n.exists, n.after, n.mode = true, d.after, d.mode
	d.exists, d.after = false, nil
	if e.moves == nil {
		e.moves = map[string]string{}
	}
	e.moves[n.t.real] = d.t.real
	return nil
}

// update changes the text of a file. A file whose lines all end in CR LF is changed as one with plain line
// ends and keeps its own.
func (e *edits) update(d *edited, op operation) error {
	text := string(d.after)
	crlf := strings.Contains(text, "\r\n") && strings.Count(text, "\r\n") == strings.Count(text, "\n") &&
		strings.Count(text, "\r") == strings.Count(text, "\n")
	if crlf {
		text = strings.ReplaceAll(text, "\r\n", "\n")
		op.old, op.new = strings.ReplaceAll(op.old, "\r\n", "\n"), strings.ReplaceAll(op.new, "\r\n", "\n")
	}
	e.failing = d.t.real
	var err error
	if op.replace {
		var how string
		if text, how, e.count, err = Replace(text, op.old, op.new, op.all); how != "exact" {
			e.strategy = how
		}
	} else {
		text, err = applyHunks(text, op.hunks)
	}
	if err != nil {
		return err
	}
	if crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	e.failing = ""
	d.after = []byte(text)
	return nil
}

// changed reports whether the disk has to change for the file.
func (d *edited) changed() bool {
	return d.was != d.exists || string(d.before) != string(d.after)
}

// commit writes what changed, then removes what is to go. When a step fails the steps before it are undone.
func (e *edits) commit(ctx context.Context) error {
	var done []*edited
	for _, removing := range []bool{false, true} {
		for _, d := range e.files {
			if !d.changed() || d.exists == removing {
				continue
			}
			if err := e.put(ctx, d); err != nil {
				return e.undo(ctx, done, d, err)
			}
			done = append(done, d)
		}
	}
	for _, d := range done {
		if d.exists {
			e.f.noteWrite(ctx, e.p.env, e.call.Caller.Session, d.t.real)
		} else {
			e.f.tracker.wrote(e.call.Caller.Session, d.t.real, stamp{}, false)
		}
	}
	return nil
}

// put brings one file on disk to its new state.
func (e *edits) put(ctx context.Context, d *edited) error {
	env := e.p.env
	if !d.exists {
		return env.Remove(ctx, d.t.real)
	}
	if !d.was {
		if err := env.MkdirAll(ctx, filepath.Dir(d.t.real), 0o777); err != nil {
			return err
		}
	}
	return e.create(ctx, d, d.after)
}

// create writes a file with the mode that it had, or that of the file it was.
func (e *edits) create(ctx context.Context, d *edited, content []byte) error {
	if err := e.p.env.WriteFile(ctx, d.t.real, content, newFileMode); err != nil || d.mode == 0 {
		return err
	}
	return e.p.env.Chmod(ctx, d.t.real, d.mode)
}

// undo restores the files of done. It goes on after ctx has ended.
func (e *edits) undo(ctx context.Context, done []*edited, failed *edited, cause error) error {
	ctx = context.WithoutCancel(ctx)
	var left []string
	for _, d := range done {
		var err error
		if d.was {
			err = e.create(ctx, d, d.before)
		} else {
			err = e.p.env.Remove(ctx, d.t.real)
		}
		if err != nil {
			left = append(left, d.t.name)
		}
	}
	err := fmt.Errorf("%s could not be changed: %w; nothing was changed", failed.t.name, cause)
	if len(left) > 0 {
		err = fmt.Errorf("%s could not be changed: %w; the change of %s could not be taken back", failed.t.name, cause, strings.Join(left, ", "))
	}
	return err
}

// result tells what was done.
func (e *edits) result() patchResult {
	r := patchResult{Success: true, FilesModified: []string{}, Warnings: e.warnings, Replacements: e.count, Strategy: e.strategy}
	var diff strings.Builder
	moved := map[string]bool{}
	for _, from := range e.moves {
		moved[from] = true
	}
	for _, d := range e.files {
		if !d.changed() {
			continue
		}
		r.FilesModified = append(r.FilesModified, d.t.real)
		oldName, newName, before := "a/"+e.name(d), "b/"+e.name(d), d.before
		switch from, isMove := e.moves[d.t.real]; {
		case isMove && d.exists && e.byReal[from].was:
			oldName, before = "a/"+e.name(e.byReal[from]), e.byReal[from].before
			r.FilesCreated = append(r.FilesCreated, d.t.real)
		case d.exists && !d.was:
			oldName = "/dev/null"
			r.FilesCreated = append(r.FilesCreated, d.t.real)
		case !d.exists:
			newName = "/dev/null"
			r.FilesDeleted = append(r.FilesDeleted, d.t.real)
			if moved[d.t.real] {
				continue // the diff of the new name shows it
			}
		}
		diff.WriteString(unifiedDiff(oldName, newName, text(before), text(d.after)))
	}
	r.Diff = diff.String()
	return r
}

// name is a file's path in a diff.
func (e *edits) name(d *edited) string { return strings.TrimPrefix(e.p.display(d.t.real), "/") }

func text(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
