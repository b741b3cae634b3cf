package tree

import "strings"

// Nearest returns the candidate closest to a mistyped name, or "" when none is close enough to be meant.
func Nearest(name string, candidates []string) string {
	best, least := "", 1+max(1, len(name)/3)
	low := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, c := range candidates {
		if d := distance(low, strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between a and b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	var two, one, row [65]int
	for j := range len(b) + 1 {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, one[j]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(b)]
}
