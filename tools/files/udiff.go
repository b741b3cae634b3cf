package files

import (
	"fmt"
	"slices"
	"strings"
)

// diffContext is how many unchanged lines stand around a change.
const diffContext = 3

// unifiedDiff returns the change from old to new in the format of diff -u, empty when they are equal. The
// anchors are the lines that stand once in each text (patience), so that the work grows with n log n and
// moved blocks stay readable.
func unifiedDiff(oldName, newName, old, new string) string {
	if old == new && oldName == newName {
		return ""
	}
	x, y := diffLines(old), diffLines(new)
	edits := compare(x, y)
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", oldName, newName)
	for _, h := range group(edits) {
		writeHunk(&b, x, y, h)
	}
	return b.String()
}

// diffLines keeps the line ends, and marks a last line without one as diff does.
func diffLines(s string) []string {
	if s == "" {
		return nil
	}
	l := strings.SplitAfter(s, "\n")
	if l[len(l)-1] == "" {
		return l[:len(l)-1]
	}
	l[len(l)-1] += "\n\\ No newline at end of file\n"
	return l
}

// edit replaces x[x0:x1] by y[y0:y1].
type edit struct{ x0, x1, y0, y1 int }

// compare returns the edits between two texts in order.
func compare(x, y []string) []edit {
	var edits []edit
	var walk func(x0, x1, y0, y1 int)
	walk = func(x0, x1, y0, y1 int) {
		for x0 < x1 && y0 < y1 && x[x0] == y[y0] {
			x0, y0 = x0+1, y0+1
		}
		for x0 < x1 && y0 < y1 && x[x1-1] == y[y1-1] {
			x1, y1 = x1-1, y1-1
		}
		if x0 == x1 && y0 == y1 {
			return
		}
		anchors := unique(x[x0:x1], y[y0:y1])
		if len(anchors) == 0 {
			edits = append(edits, edit{x0, x1, y0, y1})
			return
		}
		px, py := x0, y0
		for _, a := range anchors {
			ax, ay := x0+a[0], y0+a[1]
			if ax < px || ay < py {
				continue // taken by the anchor before
			}
			walk(px, ax, py, ay)
			px, py = ax, ay
			for px < x1 && py < y1 && x[px] == y[py] {
				px, py = px+1, py+1
			}
		}
		walk(px, x1, py, y1)
	}
	walk(0, len(x), 0, len(y))
	return edits
}

// unique pairs the lines that stand once in each text, in an order that both share and as many as possible.
func unique(x, y []string) [][2]int {
	type count struct{ x, y, xi, yi int }
	counts := map[string]*count{}
	at := func(l string) *count {
		c := counts[l]
		if c == nil {
			c = &count{}
			counts[l] = c
		}
		return c
	}
	for i, l := range x {
		c := at(l)
		c.x, c.xi = c.x+1, i
	}
	for i, l := range y {
		c := at(l)
		c.y, c.yi = c.y+1, i
	}
	var pairs [][2]int
	for i, l := range x {
		if c := counts[l]; c.x == 1 && c.y == 1 {
			pairs = append(pairs, [2]int{i, c.yi})
		}
	}
	return increasing(pairs)
}

// increasing returns the longest part of pairs whose second numbers grow; the first ones do already.
func increasing(pairs [][2]int) [][2]int {
	var ends []int // ends[k] is the pair that ends the best run of length k+1
	previous := make([]int, len(pairs))
	for i, p := range pairs {
		k, _ := slices.BinarySearchFunc(ends, p[1], func(e, v int) int { return pairs[e][1] - v })
		previous[i] = -1
		if k > 0 {
			previous[i] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	var out [][2]int
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = previous[i] {
			out = append(out, pairs[i])
		}
	}
	slices.Reverse(out)
	return out
}

// group joins edits whose context would touch.
func group(edits []edit) [][]edit {
	var out [][]edit
	for _, e := range edits {
		if k := len(out); k > 0 {
			last := out[k-1][len(out[k-1])-1]
			if e.x0-last.x1 <= 2*diffContext {
				out[k-1] = append(out[k-1], e)
				continue
			}
		}
		out = append(out, []edit{e})
	}
	return out
}

func writeHunk(b *strings.Builder, x, y []string, edits []edit) {
	first, last := edits[0], edits[len(edits)-1]
	before := min(diffContext, first.x0)
	after := min(diffContext, len(x)-last.x1)
	x0, x1 := first.x0-before, last.x1+after
	y0, y1 := first.y0-before, last.y1+after
	fmt.Fprintf(b, "@@ -%s +%s @@\n", lineRange(x0, x1-x0), lineRange(y0, y1-y0))
	at := x0
	put := func(mark byte, lines []string) {
		for _, l := range lines {
			b.WriteByte(mark)
			b.WriteString(l)
		}
	}
	for _, e := range edits {
		put(' ', x[at:e.x0])
		put('-', x[e.x0:e.x1])
		put('+', y[e.y0:e.y1])
		at = e.x1
	}
	put(' ', x[at:x1])
}

func lineRange(from, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", from)
	}
	if n == 1 {
		return fmt.Sprintf("%d", from+1)
	}
	return fmt.Sprintf("%d,%d", from+1, n)
}
