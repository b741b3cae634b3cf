package files

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"herald/tools/sandbox"
)

// maxIgnore is the longest ignore file that is read, in bytes.
const maxIgnore = 1 << 20

// ignoreFiles are read in each directory; the later one has the last word.
var ignoreFiles = []string{".gitignore", ".ignore"}

// versionControl are the directories that a search never enters.
var versionControl = map[string]bool{".git": true, ".hg": true, ".svn": true, ".jj": true}

// ignoreRule is one line of an ignore file.
type ignoreRule struct {
	re      *regexp.Regexp // on the path relative to the file's directory
	negated bool
	dirs    bool
}

// ignores are the rules of a directory and of those above it.
type ignores struct {
	dir   string
	rules []ignoreRule
	up    *ignores
}

// parseIgnore reads rules in the format of gitignore(5). Lines that are no pattern are left out, as git does.
func parseIgnore(b []byte) []ignoreRule {
	var rules []ignoreRule
	for line := range bytes.Lines(b) {
		if r, ok := parseIgnoreLine(strings.TrimRight(string(line), "\r\n")); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func parseIgnoreLine(l string) (ignoreRule, bool) {
	for strings.HasSuffix(l, " ") && !strings.HasSuffix(l, `\ `) {
		l = l[:len(l)-1]
	}
	if l == "" || l[0] == '#' {
		return ignoreRule{}, false
	}
	var r ignoreRule
	if l[0] == '!' {
		r.negated, l = true, l[1:]
	}
	if strings.HasSuffix(l, "/") {
		r.dirs, l = true, strings.TrimRight(l, "/")
	}
	anchored := strings.Contains(l, "/")
	l = strings.TrimPrefix(l, "/")
	if l == "" {
		return ignoreRule{}, false
	}
	// Braces have no meaning in ignore files.
	l = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(l)
	if !anchored {
		l = "**/" + l
	}
	re, err := compileGlob(l)
	if err != nil {
		return ignoreRule{}, false
	}
	r.re = re
	return r, true
}

// match reports whether a path is ignored: the nearest directory with a rule for it decides, and in it the
// last rule.
func (i *ignores) match(path string, dir bool) bool {
	for ; i != nil; i = i.up {
		rel, ok := below(i.dir, path)
		if !ok {
			continue
		}
		for k := len(i.rules) - 1; k >= 0; k-- {
			r := i.rules[k]
			if (!r.dirs || dir) && r.re.MatchString(rel) {
				return !r.negated
			}
		}
	}
	return false
}

// enter adds the rules of a directory. entries is its listing, so that nothing is opened that is not there.
func (i *ignores) enter(ctx context.Context, env sandbox.Environment, dir string, has func(name string) bool) *ignores {
	var rules []ignoreRule
	for _, name := range ignoreFiles {
		if !has(name) {
			continue
		}
		if b, err := env.ReadFile(ctx, filepath.Join(dir, name), maxIgnore); err == nil {
			rules = append(rules, parseIgnore(b)...)
		}
	}
	if len(rules) == 0 {
		return i
	}
	return &ignores{dir: dir, rules: rules, up: i}
}

// outerIgnores reads the rules above a directory, up to the root of its repository. Outside of a repository
// there are none.
func outerIgnores(ctx context.Context, env sandbox.Environment, dir string) *ignores {
	var above []string // from dir upwards
	for d := dir; ; d = filepath.Dir(d) {
		above = append(above, d)
		if _, err := env.Lstat(ctx, filepath.Join(d, ".git")); err == nil {
			break
		}
		if filepath.Dir(d) == d {
			return nil
		}
	}
	root := above[len(above)-1]
	var out *ignores
	if b, err := env.ReadFile(ctx, filepath.Join(root, ".git", "info", "exclude"), maxIgnore); err == nil {
		if rules := parseIgnore(b); len(rules) > 0 {
			out = &ignores{dir: root, rules: rules}
		}
	}
	for k := len(above) - 1; k > 0; k-- { // dir itself is entered by the walk
		d := above[k]
		out = out.enter(ctx, env, d, func(name string) bool {
			_, err := env.Lstat(ctx, filepath.Join(d, name))
			return err == nil
		})
	}
	return out
}
