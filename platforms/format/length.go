package format

import (
	"unicode/utf8"

	"herald/platforms"
)

// Length returns how long s is in unit u: UTF-16 code units, code points, or bytes. An unknown unit counts
// code points. Each invalid byte counts as one code point.
func Length(s string, u platforms.Unit) int {
	switch u {
	case platforms.Bytes:
		return len(s)
	case platforms.UTF16:
		n := 0
		for _, r := range s {
			n++
			if r > 0xFFFF {
				n++
			}
		}
		return n
	}
	return utf8.RuneCountInString(s)
}

// Cut returns the longest beginning of s that is at most limit long in unit u and ends between two characters.
func Cut(s string, limit int, u platforms.Unit) string {
	n := 0
	for i, r := range s {
		switch {
		case u == platforms.Bytes:
			_, size := utf8.DecodeRuneInString(s[i:])
			n += size
		case u == platforms.UTF16 && r > 0xFFFF:
			n += 2
		default:
			n++
		}
		if n > limit {
			return s[:i]
		}
	}
	return s
}

func lengthBytes(b []byte, u platforms.Unit) int {
	switch u {
	case platforms.Bytes:
		return len(b)
	case platforms.UTF16:
		n := 0
		for i := 0; i < len(b); {
			if b[i] < utf8.RuneSelf {
				n++
				i++
				continue
			}
			r, size := utf8.DecodeRune(b[i:])
			n++
			if r > 0xFFFF {
				n++
			}
			i += size
		}
		return n
	}
	return utf8.RuneCount(b)
}
