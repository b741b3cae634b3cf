package signal

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync/atomic"
)

// eventLimit is the most bytes of one event; a longer one is skipped.
const eventLimit = 4 << 20

// events reads server-sent events. Make one with newEvents.
type events struct {
	r *bufio.Reader
	// alive is called for every line, comments too.
	alive func()
	// comments is true once a comment has been seen: this daemon sends signs of life.
	comments atomic.Bool
}

func newEvents(r io.Reader, alive func()) *events {
	return &events{r: bufio.NewReaderSize(r, 32<<10), alive: alive}
}

// sse is one event of a stream.
type sse struct {
	id   string // empty when the server gives none
	data []byte
}

var errEventTooLong = errors.New("an event of the stream is over the limit")

// next returns the next event with data. errEventTooLong says that one was skipped; the stream goes on.
func (e *events) next() (sse, error) {
	var out sse
	var size int
	var seen, skip bool
	for {
		line, long, err := e.line()
		if err != nil {
			return sse{}, err
		}
		e.alive()
		skip = skip || long
		if len(line) == 0 && !long {
			switch {
			case skip:
				return sse{}, errEventTooLong
			case seen:
				return out, nil
			}
			out = sse{}
			continue
		}
		if line = line[:len(line):len(line)]; line[0] == ':' {
			e.comments.Store(true)
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id":
			if len(value) <= 256 && bytes.IndexByte(value, 0) < 0 {
				out.id = string(value)
			}
		case "data":
			if seen {
				out.data = append(out.data, '\n')
			}
			seen = true
			if size += len(value) + 1; size > eventLimit {
				skip, out.data = true, nil
				continue
			}
			out.data = append(out.data, value...)
		}
	}
}

// line returns the next line without its end. long says that it is over the limit; only its beginning is returned.
func (e *events) line() (line []byte, long bool, err error) {
	for {
		part, err := e.r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(line) > eventLimit {
				long, line = true, line[:1]
			}
			e.alive()
			continue
		case err != nil:
			return nil, false, err
		}
		if !long {
			line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		}
		return line, long, nil
	}
}
