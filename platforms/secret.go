package platforms

import "fmt"

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
