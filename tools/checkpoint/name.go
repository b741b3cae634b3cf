package checkpoint

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// rel is a path from a project's directory, any bytes, as JSON can hold it.
type rel string

const coded = "base64:"

// MarshalText writes a name that is no UTF-8 in base64.
func (r rel) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(r)) && !strings.HasPrefix(string(r), coded) {
		return []byte(r), nil
	}
	return []byte(coded + base64.StdEncoding.EncodeToString([]byte(r))), nil
}

// UnmarshalText reads what MarshalText wrote.
func (r *rel) UnmarshalText(text []byte) error {
	data, ok := strings.CutPrefix(string(text), coded)
	if !ok {
		*r = rel(text)
		return nil
	}
	name, err := base64.StdEncoding.DecodeString(data)
	*r = rel(name)
	return err
}
