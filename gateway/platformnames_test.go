package gateway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"herald/platforms/all"
)

// What the core knows of a platform stands in its Kind. No file of gateway, cron and sessions, tests aside, imports an
// adapter or has a text that is a platform's name, begins with it as a variable or a key does, or holds it as a word, where
// it is no word of the language. The demo model is left out: what it knows stands for what a model knows of the world.
func TestPlatformNames_StandInNoCore(t *testing.T) {
	names := map[string]bool{}
	for _, kind := range all.Kinds() {
		names[string(kind.Name())] = true
	}
	require.Greater(t, len(names), 5)
	var found []string
	files := 0
	for _, root := range []string{".", "../cron", "../sessions"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || path == "model/demo" || strings.HasSuffix(d.Name(), "test")):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			files++
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && namesPlatform(text, names) {
					found = append(found, set.Position(lit.Pos()).String()+" "+lit.Value)
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, files, 150)
	require.Empty(t, found, "move what differs by platform into its Kind: settings, rules, New")
}

// ordinary are names of platforms that are words of the language too.
var ordinary = map[string]bool{"web": true, "signal": true, "teams": true}

// namesPlatform reports whether a text is a platform's name, alone or with what makes it a key, a variable, a target or a
// package.
func namesPlatform(text string, names map[string]bool) bool {
	low := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(text, "herald/"), "platforms/"))
	if rest, ok := strings.CutPrefix(low, "platforms."); ok {
		low = rest
	}
	if names[low] || text == "herald/platforms/all" {
		return true
	}
	for name := range names {
		rest, ok := strings.CutPrefix(low, name)
		switch {
		case !ok || rest == "" || strings.Contains(rest, " "):
		case strings.ContainsAny(rest[:1], ".:/"), rest[0] == '_' && text == strings.ToUpper(text):
			return true
		}
	}
	word := func(r rune) bool { return !unicode.IsLetter(r) }
	return slices.ContainsFunc(strings.FieldsFunc(low, word), func(w string) bool { return names[w] && !ordinary[w] })
}

func TestPlatformNames_AreRecognised(t *testing.T) {
	names := map[string]bool{"telegram": true, "web": true, "signal": true}
	for _, text := range []string{"telegram", "Telegram", "herald/platforms/telegram", "herald/platforms/all", "platforms.telegram.token",
		"TELEGRAM_BOT_TOKEN", "telegram:1", "telegram/", "as Telegram does"} {
		require.True(t, namesPlatform(text, names), text)
	}
	for _, text := range []string{"", "telegrams", "herald/platforms", "web_search", "a signal"} {
		require.False(t, namesPlatform(text, names), text)
	}
}
