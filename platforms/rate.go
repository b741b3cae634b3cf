package platforms

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Rate says how fast we send of our own accord. Waits that a platform orders (Retry-After) hold in any case.
type Rate struct {
	// On is false for no limit, on a private server.
	On bool
	// PerSecond is messages a second in one chat; 0 takes the platform's own numbers. Always 0 when On is false.
	PerSecond float64
}

// ParseRate reads "on", "off" or a positive number.
func ParseRate(s string) (Rate, error) {
	switch t := strings.ToLower(strings.TrimSpace(s)); t {
	case "on", "true", "yes", "auto", "default":
		return Rate{On: true}, nil
	case "off", "false", "no", "none":
		return Rate{}, nil
	default:
		n, err := strconv.ParseFloat(t, 64)
		if err != nil || math.IsNaN(n) || n <= 0 || n > 1e6 {
			return Rate{}, fmt.Errorf("not a rate")
		}
		return Rate{On: true, PerSecond: n}, nil
	}
}

// String returns the form that ParseRate reads.
func (r Rate) String() string {
	switch {
	case !r.On:
		return "off"
	case r.PerSecond > 0:
		return strconv.FormatFloat(r.PerSecond, 'g', -1, 64)
	}
	return "on"
}
