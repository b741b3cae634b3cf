package format

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"herald/platforms"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Each testdata/source/*.md is rendered to each dialect with the limits of its platform, and once cut small.
func TestRender_Golden(t *testing.T) {
	sources, err := filepath.Glob("testdata/source/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, path := range sources {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		for _, d := range dialects {
			t.Run(name+"/"+string(d), func(t *testing.T) {
				traits := real[d]
				got := describe(renderChecked(t, string(source), traits))
				traits.Limit, traits.Number = 220, true
				require.NoError(t, checkLossless(string(source), traits))
				got += "\n######## at most 220 ########\n" + describe(renderChecked(t, string(source), traits))
				golden(t, filepath.Join("testdata", string(d), name+".golden"), got)
			})
		}
	}
}

// Inputs of 30,000 characters: what they become is kept by its hash, with the lengths of the chunks.
func TestRender_GoldenLong(t *testing.T) {
	sources, err := filepath.Glob("testdata/source/*.md")
	require.NoError(t, err)
	var all strings.Builder
	for all.Len() < 40000 {
		for _, path := range sources {
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			all.Write(source)
			all.WriteString("\n\n")
		}
	}
	source := runes(all.String(), 30000)
	require.Equal(t, 30000, Length(source, platforms.CodePoints))
	for _, d := range dialects {
		t.Run(string(d), func(t *testing.T) {
			traits := real[d]
			require.NoError(t, checkLossless(source, traits))
			texts := renderChecked(t, source, traits)
			var s strings.Builder
			fmt.Fprintf(&s, "%d chunks\n", len(texts))
			for _, text := range texts {
				fmt.Fprintf(&s, "body %d, plain %d, markdown %d, %d styles, %x\n", Length(text.Body, traits.Unit), Length(text.Plain, traits.Unit),
					Length(text.Markdown, traits.Unit), len(text.Styles), sha256.Sum256(fmt.Append(nil, text)))
			}
			golden(t, filepath.Join("testdata", string(d), "long.golden"), s.String())
		})
	}
}

func describe(texts []platforms.Text) string {
	var s strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&s, "==== %d ====\n%s\n", i+1, text.Body)
		if text.Plain != text.Body && len(texts) == 1 {
			fmt.Fprintf(&s, "---- plain\n%s\n", text.Plain)
		}
		if text.Markdown != text.Body && len(texts) > 1 {
			fmt.Fprintf(&s, "---- markdown\n%s\n", text.Markdown)
		}
		for _, st := range text.Styles {
			fmt.Fprintf(&s, "%d:%d:%s\n", st.Start, st.Length, st.Kind)
		}
	}
	return s.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test -update")
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}
