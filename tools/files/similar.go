package files

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"herald/tools/sandbox"
)

// maxSimilar is how many names a missing file suggests.
const maxSimilar = 5

// similar returns names beside a missing file that look like it, the closest first.
func similar(ctx context.Context, env sandbox.Environment, path string) []string {
	entries, err := env.List(ctx, filepath.Dir(path))
	if err != nil || len(entries) > 20_000 {
		return nil
	}
	want := strings.ToLower(filepath.Base(path))
	stem := strings.TrimSuffix(want, filepath.Ext(want))
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	for _, e := range entries {
		have := strings.ToLower(e.Name)
		far := distance(want, have)
		switch {
		case have == want:
			far = 0
		case len(stem) >= 3 && strings.Contains(have, stem), len(have) >= 3 && strings.Contains(want, have):
			far = min(far, 2)
		}
		if far <= max(2, len(want)/3) {
			found = append(found, candidate{e.Name, far})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Or(a.far-b.far, strings.Compare(a.name, b.name)) })
	var names []string
	for _, c := range found[:min(len(found), maxSimilar)] {
		names = append(names, c.name)
	}
	return names
}

// distance is the number of single-byte edits between two names.
func distance(a, b string) int {
	if d := len(a) - len(b); d > 20 || d < -20 {
		return 100
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
