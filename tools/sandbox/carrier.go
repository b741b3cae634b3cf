package sandbox

import (
	"context"
	"errors"
	"io"
)

// errVanished is wrapped by the errors of a carrier whose place is gone for good: its container was removed. Commands
// that were under way may have had an effect; a new place has to be made before the next one.
var errVanished = errors.New("the place is gone")

// carrier runs programs in a place that is not this machine: a container, or a host behind SSH. It is the only thing
// that those environments do differently; remote builds shell, files and kills on it.
type carrier interface {
	// backend names the kind, as Environment.Backend does.
	backend() string
	// run runs a program of the place to its end and returns its exit code. It starts in the root directory, as the
	// leader of a session of its own, with the variables of s.env beside those of the place; their values are in no
	// argument list. When ctx ends, the connection is dropped and run returns ctx's error; the program is left alone.
	// An error means that the program did not run or that its end was not seen; it wraps ErrUnavailable, or errVanished.
	run(ctx context.Context, argv []string, s streams) (exit int, err error)
	// close ends the connections and waits for what they need.
	close() error
}

// streams are what a carried program reads and writes. A nil reader is an empty input; a nil writer drops what comes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	env      map[string]string
}
