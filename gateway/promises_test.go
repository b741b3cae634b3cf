package gateway_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lastPromise is the highest number in docs/promises.md.
const lastPromise = 14

var (
	promiseHead = regexp.MustCompile(`(?m)^## P(\d+): `)
	namedTest   = regexp.MustCompile("`(Test[A-Za-z0-9_]*)`")
	testFunc    = regexp.MustCompile(`^func (Test\w*)\(`)
	cited       = regexp.MustCompile(`(?:^|[^A-Za-z0-9])P(\d+)(?: to P(\d+))?`)
)

// Each promise of docs/promises.md names tests that exist and that cite it.
func TestPromises_HaveTests(t *testing.T) {
	doc, err := os.ReadFile("../docs/promises.md")
	require.NoError(t, err)
	tests := citingTests(t)
	parts := promiseHead.FindAllStringSubmatchIndex(string(doc), -1)
	require.Len(t, parts, lastPromise)
	for i, p := range parts {
		number, err := strconv.Atoi(string(doc[p[2]:p[3]]))
		require.NoError(t, err)
		require.Equal(t, i+1, number, "promises stand in order")
		end := len(doc)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		names := namedTest.FindAllStringSubmatch(string(doc[p[1]:end]), -1)
		require.NotEmpty(t, names, "P%d has no test", number)
		for _, name := range names {
			cites, ok := tests[name[1]]
			if !ok {
				t.Errorf("P%d names %s, which does not exist", number, name[1])
			} else if !cites[number] {
				t.Errorf("P%d names %s, which does not cite it", number, name[1])
			}
		}
	}
}

// citingTests returns the promises that each test of the repository cites in its comment, its name or its body.
func citingTests(t *testing.T) map[string]map[int]bool {
	t.Helper()
	all := map[string]map[int]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			m := testFunc.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			from, to := i, i
			for from > 0 && strings.HasPrefix(lines[from-1], "//") {
				from--
			}
			for to < len(lines)-1 && lines[to] != "}" {
				to++
			}
			if all[m[1]] == nil {
				all[m[1]] = map[int]bool{}
			}
			for _, c := range cited.FindAllStringSubmatch(strings.Join(lines[from:to], "\n"), -1) {
				first, _ := strconv.Atoi(c[1])
				last := first
				if c[2] != "" {
					last, _ = strconv.Atoi(c[2])
				}
				for p := first; p <= last; p++ {
					all[m[1]][p] = true
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	return all
}
