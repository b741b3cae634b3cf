package tree

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size. It reads as a number of bytes or with a unit: 10MB, 128MiB, 4 GiB.
type Bytes int64

// byteUnits are tried in this order: the longer suffix first.
var byteUnits = [...]struct {
	name string
	n    float64
}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"k", 1 << 10}, {"m", 1 << 20},
	{"g", 1 << 30}, {"b", 1}}

// ParseBytes reads a size; negative and unknown forms are errors.
func ParseBytes(s string) (Bytes, error) {
	t, unit := strings.ToLower(strings.TrimSpace(s)), 1.0
	for _, u := range byteUnits {
		if strings.HasSuffix(t, u.name) {
			t, unit = strings.TrimSpace(strings.TrimSuffix(t, u.name)), u.n
			break
		}
	}
	n, err := strconv.ParseFloat(t, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n*unit > 1<<60 {
		return 0, fmt.Errorf("not a size")
	}
	return Bytes(n * unit), nil
}

// String returns the size in the largest binary unit that divides it.
func (b Bytes) String() string {
	for i := 2; i >= 0; i-- {
		if u := int64(byteUnits[i].n); b != 0 && int64(b)%u == 0 {
			return strconv.FormatInt(int64(b)/u, 10) + [...]string{"KiB", "MiB", "GiB"}[i]
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
