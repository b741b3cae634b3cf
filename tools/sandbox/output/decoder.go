package output

import "unicode/utf8"

// Decoder makes valid UTF-8 of a byte stream that is cut anywhere: an incomplete rune waits for its rest,
// an invalid byte becomes U+FFFD.
type Decoder struct{ rest []byte }

// Decode returns the text of b and of what was left before.
func (d *Decoder) Decode(b []byte) []byte {
	if len(d.rest) > 0 {
		b = append(d.rest, b...)
		d.rest = nil
	}
	if utf8.Valid(b) {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			if !utf8.FullRune(b) {
				d.rest = append([]byte(nil), b...)
				break
			}
			out = utf8.AppendRune(out, utf8.RuneError)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// Held is how many bytes of an incomplete rune wait for their rest.
func (d *Decoder) Held() int { return len(d.rest) }

// Flush returns what an incomplete rune at the end of the stream comes to.
func (d *Decoder) Flush() []byte {
	if len(d.rest) == 0 {
		return nil
	}
	d.rest = nil
	return utf8.AppendRune(nil, utf8.RuneError)
}
