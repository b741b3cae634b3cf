package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"

	"herald/tools/sandbox"
)

// Bounds of the syntax check.
const (
	maxLint     = 1 << 20 // bytes of a file; longer ones are not checked
	maxFindings = 10      // errors reported
	pythonTime  = 5 * time.Second
)

// lintResult reports the syntax errors that a change brought in.
type lintResult struct {
	Language string   `json:"language"`
	Errors   []string `json:"new_errors"`
}

// finding is one syntax error. Two findings are the same when their messages are: a line number moves with
// every edit above it.
type finding struct {
	line int
	text string
}

func (f finding) String() string {
	if f.line > 0 {
		return fmt.Sprintf("line %d: %s", f.line, f.text)
	}
	return f.text
}

// lintChange checks the new content of a file and reports the errors that the old one did not have; nil when
// there are none or when the language is not known.
func lintChange(ctx context.Context, env sandbox.Environment, path string, before, after []byte) *lintResult {
	check, language := linter(ctx, env, path)
	if check == nil || len(after) > maxLint {
		return nil
	}
	found := check(after)
	if len(found) == 0 {
		return nil
	}
	known := map[string]int{}
	if before != nil {
		for _, f := range check(before) {
			known[f.text]++
		}
	}
	r := &lintResult{Language: language}
	for _, f := range found {
		if known[f.text] > 0 {
			known[f.text]--
			continue
		}
		if len(r.Errors) < maxFindings {
			r.Errors = append(r.Errors, f.String())
		}
	}
	if len(r.Errors) == 0 {
		return nil
	}
	return r
}

// linter picks the check for a file by its extension.
func linter(ctx context.Context, env sandbox.Environment, path string) (check func([]byte) []finding, language string) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		return lintJSON, "json"
	case ".yaml", ".yml":
		return lintYAML, "yaml"
	case ".toml":
		return lintTOML, "toml"
	case ".go":
		return lintGo, "go"
	case ".py":
		return func(b []byte) []finding { return lintPython(ctx, env, b) }, "python"
	}
	return nil, ""
}

func lintJSON(b []byte) []finding {
	d := json.NewDecoder(bytes.NewReader(b))
	var v json.RawMessage
	err := d.Decode(&v)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.New("there is more after the first value")
		}
	}
	line := bytes.Count(b[:min(d.InputOffset(), int64(len(b)))], []byte("\n")) + 1
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = bytes.Count(b[:min(max(syntax.Offset, 0), int64(len(b)))], []byte("\n")) + 1
	}
	return []finding{{line, err.Error()}}
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func lintYAML(b []byte) (found []finding) {
	defer func() {
		if p := recover(); p != nil { // the library panics on some broken input
			found = []finding{{0, fmt.Sprint(p)}}
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(b))
	for {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			text := strings.TrimPrefix(err.Error(), "yaml: ")
			f := finding{text: yamlLine.ReplaceAllString(text, "")}
			if m := yamlLine.FindStringSubmatch(text); m != nil {
				_, _ = fmt.Sscan(m[1], &f.line)
			}
			return []finding{f}
		}
	}
}

func lintTOML(b []byte) []finding {
	var v map[string]any
	_, err := toml.Decode(string(b), &v)
	var parse toml.ParseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &parse):
		return []finding{{parse.Position.Line, parse.Message}}
	}
	return []finding{{0, err.Error()}}
}

func lintGo(b []byte) []finding {
	_, err := parser.ParseFile(token.NewFileSet(), "", b, parser.AllErrors|parser.SkipObjectResolution)
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		return nil
	}
	var found []finding
	for _, e := range list {
		found = append(found, finding{e.Pos.Line, e.Msg})
	}
	return found
}

// pythonCheck prints "line:message" for source on stdin that does not parse.
const pythonCheck = `python3 -I -c 'import ast,sys
try:
    ast.parse(sys.stdin.buffer.read())
except SyntaxError as e:
    print("%d:%s" % (e.lineno or 0, e.msg))
except ValueError as e:
    print("0:%s" % e)'`

// lintPython asks the Python of the environment; without one there is nothing to report.
func lintPython(ctx context.Context, env sandbox.Environment, b []byte) []finding {
	r, err := env.Exec(ctx, sandbox.Command{Line: pythonCheck, Dir: "/", Stdin: bytes.NewReader(b), Timeout: pythonTime})
	if err != nil || r.ExitCode != 0 {
		return nil
	}
	line, text, ok := strings.Cut(strings.TrimSpace(r.Output), ":")
	if !ok {
		return nil
	}
	f := finding{text: text}
	_, _ = fmt.Sscan(line, &f.line)
	return []finding{f}
}
