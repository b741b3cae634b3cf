package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"herald/tools"
	"herald/tools/sandbox"
)

type writeArgs struct {
	Path         *string `json:"path"`
	Content      *string `json:"content"`
	CrossProfile bool    `json:"cross_profile"`
}

type writeResult struct {
	Path          string      `json:"path"`
	BytesWritten  int         `json:"bytes_written"`
	Created       bool        `json:"created,omitempty"`
	FilesModified []string    `json:"files_modified"`
	Lint          *lintResult `json:"lint,omitempty"`
	Warning       string      `json:"_warning,omitempty"`
}

const writeSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "File to write: absolute, relative to the working directory, or starting with ~/. Missing directories are made."},
    "content": {"type": "string", "description": "All of the new content. An empty string makes an empty file."},
    "cross_profile": {"type": "boolean", "default": false, "description": "Write into another profile's files, where the operator allows that."}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`

func (f *Family) writeTool() tools.Tool {
	return tools.Tool{
		Spec: tools.Spec{
			Name: "write_file", Toolset: "file", Core: true, Emoji: "✍️", Preview: "path",
			Description: "Write a whole file, replacing what is there. To change a part of a file use patch. Syntax errors that the new content brings in are reported for JSON, YAML, TOML, Go and Python.",
			Parameters:  json.RawMessage(writeSchema), Parallel: tools.PathScoped, Paths: f.scopes(true, ""),
		},
		Run: f.write,
	}
}

func (f *Family) write(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a writeArgs
	if err := decode(call, &a); err != nil {
		return tools.Result{}, err
	}
	switch {
	case a.Path == nil:
		return fail(errors.New("path is missing; give the file to write as a string"))
	case a.Content == nil:
		return fail(errors.New("content is missing, so nothing was written; give all of the file's content as a string (an empty string makes an empty file). If the content was too long to send, write the file in parts with patch"))
	}
	p, err := f.place(call.Caller)
	if err != nil {
		return fail(err)
	}
	t, err := p.target(ctx, *a.Path)
	if err != nil {
		return fail(err)
	}
	if err := f.mayWrite(ctx, f.guard(ctx, p), call, t, a.CrossProfile); err != nil {
		return fail(err)
	}
	r, before, err := f.replaceFile(ctx, p, call.Caller.Session, t, []byte(*a.Content))
	if err != nil {
		return fail(err)
	}
	r.Lint = lintChange(ctx, p.env, t.real, before, []byte(*a.Content))
	return tools.JSON(r), nil
}

// replaceFile writes the content and returns what was there before, as far as lint wants it.
func (f *Family) replaceFile(ctx context.Context, p place, session string, t target, content []byte) (writeResult, []byte, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	r := writeResult{Path: t.name, BytesWritten: len(content), FilesModified: []string{t.real}}
	var before []byte
	info, err := p.env.Stat(ctx, t.real)
	switch {
	case isNotExist(err):
		r.Created = true
		if err := p.env.MkdirAll(ctx, filepath.Dir(t.real), 0o777); err != nil {
			return r, nil, fmt.Errorf("the directory of %s can't be made: %w", t.name, err)
		}
	case err != nil:
		return r, nil, describe(t.name, err)
	case info.IsDir():
		return r, nil, fmt.Errorf("%s is a directory; give the path of a file in it", t.name)
	case !info.IsRegular():
		return r, nil, fmt.Errorf("%s is not a regular file; it can't be written", t.name)
	default:
		if f.tracker.stale(session, t.real, stampOf(info)) {
			r.Warning = staleWarning(t.name)
		}
		if info.Size <= maxLint {
			before, _ = p.env.ReadFile(ctx, t.real, maxLint)
		}
	}
	if err := p.env.WriteFile(ctx, t.real, content, newFileMode); err != nil {
		return r, nil, describe(t.name, err)
	}
	f.noteWrite(ctx, p.env, session, t.real)
	return r, before, nil
}

// noteWrite remembers the file as the session left it.
func (f *Family) noteWrite(ctx context.Context, env sandbox.Environment, session, real string) {
	info, err := env.Stat(ctx, real)
	f.tracker.wrote(session, real, stampOf(info), err == nil)
}

func staleWarning(name string) string {
	return name + " had changed since you last read it: someone else wrote to it in between. Their change may be lost; read the file and check."
}
