package shell

import (
	"bytes"
	"strings"
	"testing"
)

// The stream without the marker is the same however it is cut into reads.
func FuzzMarker(f *testing.F) {
	f.Add([]byte("hello"), []byte("after"), "/tmp", uint8(3))
	f.Add([]byte("\x01HERALD-DIR:"), []byte("\x01"), "/a:b", uint8(1))
	f.Fuzz(func(t *testing.T, before, after []byte, dir string, step uint8) {
		m := NewMarker("abc-1")
		if bytes.Contains(before, m.begin) || strings.Contains(dir, string(m.end)) || strings.ContainsRune(dir, 0) || len(dir) > maxMarkerPath {
			return
		}
		stream := bytes.Join([][]byte{before, m.begin, []byte(dir), m.end, after}, nil)
		first := bytes.Index(stream, m.begin)
		if first != len(before) || bytes.Index(stream[first+len(m.begin):], m.end) != len(dir) {
			return // the texts make a marker together
		}
		var out []byte
		for n := int(step)%7 + 1; len(stream) > 0; {
			k := min(n, len(stream))
			out = append(out, m.Filter(stream[:k])...)
			stream = stream[k:]
		}
		out = append(out, m.Flush()...)
		if want := append(bytes.Clone(before), after...); !bytes.Equal(out, want) || m.Value != dir {
			t.Fatalf("%q %q, want %q %q", out, m.Value, want, dir)
		}
	})
}
