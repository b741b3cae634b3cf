package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one server-sent event.
const maxEvent = 16 << 20

var errTooLong = errors.New("the answer is larger than any sensible one")

// Events reads server-sent events. Get one from Answer.Events and return it with Release.
type Events struct {
	r     *bufio.Reader
	line  []byte // a line that did not fit the reader's buffer
	data  []byte
	event []byte
}

func newEvents() *Events { return &Events{r: bufio.NewReaderSize(nil, 16<<10)} }

// NewEvents reads events from r, outside of any call.
func NewEvents(r io.Reader) *Events {
	e := newEvents()
	e.r.Reset(r)
	return e
}

// Events returns a reader of the body's events and what kind of body it seems to be: "events", "json" (a
// server that ignored the wish to stream) or "html" (no model server at all). For json, read the body from
// the reader's Rest.
func (a *Answer) Events() (e *Events, kind string) {
	e = a.client.readers.Get().(*Events)
	e.r.Reset(a)
	// Leading blank lines would hide what the body is.
	for range 64 {
		head, err := e.r.Peek(1)
		if err != nil || !bytes.ContainsAny(head, " \t\r\n") {
			break
		}
		e.r.Discard(1)
	}
	head, _ := e.r.Peek(1)
	if len(head) == 1 && head[0] == 0xEF {
		head, _ = e.r.Peek(4)
	}
	return e, a.kind(head)
}

// Release returns the reader for reuse. Nothing that Next returned may be used after it.
func (a *Answer) Release(e *Events) {
	e.r.Reset(nil)
	if cap(e.line) > 1<<20 || cap(e.data) > 1<<20 {
		return
	}
	a.client.readers.Put(e)
}

// Rest reads all that is left, at most 64 MiB.
func (e *Events) Rest() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(e.r, maxBody+1))
	if err == nil && len(b) > maxBody {
		err = errTooLong
	}
	return b, err
}

// Next returns the next event that has data: its type, empty for none, and the data. Both are valid until
// the next call. Comments, ids and retry hints are skipped. At the end it returns io.EOF; an event that the
// end cut off in the middle of a line is returned as far as it came.
func (e *Events) Next() (event, data []byte, err error) {
	e.event, e.data = e.event[:0], e.data[:0]
	some := false
	for {
		line, err := e.readLine()
		if err != nil && len(line) == 0 {
			if some {
				return e.event, e.data, nil
			}
			return nil, nil, err
		}
		if len(line) == 0 {
			if some {
				return e.event, e.data, nil
			}
			e.event = e.event[:0]
			continue
		}
		name, value, _ := bytes.Cut(line, colon)
		value = bytes.TrimPrefix(value, space)
		switch string(name) {
		case "data":
			if some {
				e.data = append(e.data, '\n')
			}
			some = true
			if len(e.data)+len(value) > maxEvent {
				return nil, nil, errTooLong
			}
			e.data = append(e.data, value...)
		case "event":
			e.event = append(e.event[:0], value...)
		}
	}
}

var (
	colon = []byte(":")
	space = []byte(" ")
)

// readLine returns a line without its end. With an error it returns what came before it.
func (e *Events) readLine() ([]byte, error) {
	line, err := e.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		e.line = append(e.line[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = e.r.ReadSlice('\n')
			if len(e.line)+len(line) > maxEvent {
				return nil, errTooLong
			}
			e.line = append(e.line, line...)
		}
		line = e.line
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), err
}
