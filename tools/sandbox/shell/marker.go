package shell

import "bytes"

// maxMarkerPath bounds the directory that a marker may carry, in bytes; Linux knows no longer path.
const maxMarkerPath = 4096

// Marker is the in-band report of the shell about its directory, of the form
//
//	\x01HERALD-DIR:<id>:<directory>:<id>\x01
//
// It takes the report out of the stream of one command wherever it stands: a background child may write
// after it. The id is random for the environment and numbered for the command, so that neither output of
// the command nor a report of another one is taken for it.
type Marker struct {
	begin, end []byte
	held       []byte // the part of the stream that may become a marker
	Value      string
	Seen       bool
}

// NewMarker makes a marker that carries the directory. id is random, and numbered for the command.
func NewMarker(id string) *Marker { return NewReport("DIR", id) }

// NewReport makes a marker that carries something else than the directory; kind says what.
func NewReport(kind, id string) *Marker {
	return &Marker{begin: []byte("\x01HERALD-" + kind + ":" + id + ":"), end: []byte(":" + id + "\x01")}
}

// script is the shell command that prints the marker. It works in every POSIX shell.
func (m *Marker) script() string { return m.Print(`"$PWD"`) }

// Print is the shell command that prints the marker around a word of the shell.
func (m *Marker) Print(word string) string {
	return "printf '\\001%s%s%s\\001' '" + string(m.begin[1:]) + "' " + word + " '" + string(m.end[:len(m.end)-1]) + "' 2>/dev/null"
}

// Filter takes the next bytes of the stream and returns those that are output for certain. What it returns
// is valid until the next call.
func (m *Marker) Filter(b []byte) []byte {
	if m.Seen {
		return b
	}
	m.held = append(m.held, b...)
	at := bytes.Index(m.held, m.begin)
	if at < 0 {
		keep := partial(m.held, m.begin)
		return m.release(len(m.held) - keep)
	}
	rest := m.held[at+len(m.begin):]
	stop := bytes.Index(rest, m.end)
	switch {
	case stop >= 0:
		m.Value, m.Seen = string(rest[:stop]), true
		out := append(bytes.Clone(m.held[:at]), rest[stop+len(m.end):]...)
		m.held = nil
		return out
	case len(rest) > maxMarkerPath+len(m.end):
		// Not a marker after all: a beginning without an end.
		return m.release(at + len(m.begin))
	default:
		return m.release(at)
	}
}

// release hands out the first n held bytes.
func (m *Marker) release(n int) []byte {
	out := bytes.Clone(m.held[:n])
	m.held = append(m.held[:0], m.held[n:]...)
	return out
}

// Flush returns what was held at the end of the stream.
func (m *Marker) Flush() []byte {
	out := m.held
	m.held = nil
	return out
}

// partial returns the length of the longest suffix of b that is a prefix of pattern.
func partial(b, pattern []byte) int {
	for n := min(len(b), len(pattern)-1); n > 0; n-- {
		if bytes.Equal(b[len(b)-n:], pattern[:n]) {
			return n
		}
	}
	return 0
}
