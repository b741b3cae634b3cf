package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Secret holds a value that must never be shown. Every way to print it gives "***", or nothing when it is empty.
// The zero value is "not set".
type Secret struct{ value string }

// NewSecret wraps a value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the value itself. Call it where the value is used, and nowhere else.
func (s Secret) Reveal() string { return s.value }

// IsSet reports whether there is a value.
func (s Secret) IsSet() bool { return s.value != "" }

// Equal reports whether both hold the same value. It is for noticing changes, not for checking credentials.
func (s Secret) Equal(o Secret) bool { return s.value == o.value }

// String returns "***", or "" when nothing is set.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "***"
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// Format is String for every verb, so that %x and the like reveal nothing either.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText is String, for JSON, YAML and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON is String as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalYAML is String.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// placeholders are values that come with templates and are never a real secret.
var placeholders = [...]string{"changeme", "change-me", "change_me", "your-token-here", "your_token_here", "yourtoken",
	"your-token", "your_token", "your-bot-token", "your_bot_token", "your-api-key", "your_api_key", "your-api-key-here",
	"your_api_key_here", "your-key-here", "your-secret", "your_secret", "placeholder", "example", "password",
	"insert-token-here", "replace-me", "replace_me", "replaceme"}

// placeholder reports why a secret can't be a real one; "" when it may be. 4 is the least length (spec gateway 2.0).
func placeholder(v string) string {
	low := strings.ToLower(strings.TrimSpace(v))
	for _, p := range placeholders {
		if low == p || low == "<"+p+">" || low == "${"+p+"}" {
			return "is a placeholder"
		}
	}
	switch {
	case len(low) < 4:
		return "is shorter than 4 characters"
	case strings.Trim(low, "x*.-_") == "":
		return "is a placeholder"
	case strings.HasPrefix(low, "<") && strings.HasSuffix(low, ">"):
		return "is a placeholder"
	case strings.HasPrefix(low, "${") || strings.HasPrefix(low, "$("):
		return "is a variable that was not replaced"
	case strings.ContainsAny(v, "\r\n\x00"):
		return "contains a line break"
	}
	return ""
}

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
