package gateway_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// maxColumns is the longest line of code or comment, in characters; a tab counts as one. What stands in string literals
// does not count, and rows of tables may be longer.
const maxColumns = 140

// tableRow is an element of a composite literal that fills its line.
var tableRow = regexp.MustCompile(`^(\{.*\}|"[^"]*":.*|` + "`.*" + `|[\w.]+:\s+\{.*\}|[\w.]+: .*\}),?$`)

func TestSource_LinesAreShort(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range longLines(text) {
			t.Errorf("%s:%d has more than %d columns", path, line, maxColumns)
		}
		return nil
	})
	require.NoError(t, err)
}

// longLines returns the numbers of the lines of a Go file that are too long, from 1.
func longLines(text []byte) []int {
	lines := strings.Split(string(text), "\n")
	literal := literalColumns(text, len(lines))
	var long []int
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if utf8.RuneCountInString(line)-literal[i] <= maxColumns {
			continue
		}
		if strings.HasPrefix(trimmed, "//") && strings.Contains(trimmed, "://") || !strings.HasPrefix(trimmed, "//") && tableRow.MatchString(trimmed) {
			continue
		}
		long = append(long, i+1)
	}
	return long
}

// literalColumns returns how many characters of each line stand in string literals; all of a line in a raw string.
func literalColumns(text []byte, lines int) []int {
	out := make([]int, lines)
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, func(token.Position, string) {}, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return out
		}
		if tok != token.STRING && tok != token.CHAR {
			continue
		}
		first := file.Line(pos) - 1
		for i, part := range strings.Split(lit, "\n") {
			out[first+i] += utf8.RuneCountInString(part)
		}
	}
}
