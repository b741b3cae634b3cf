package remote

import (
	"context"
	"errors"
	"io"
)

// ErrVanished is wrapped by the errors of a carrier whose other side is gone for good: its container was removed. Commands
// that were under way may have had an effect; a new one has to be made before the next one.
var ErrVanished = errors.New("the container or host is gone")

// Carrier runs programs on another side than this machine: in a container, or on a host behind SSH. It is the only thing
// that those environments do differently; remote builds shell, files and kills on it.
type Carrier interface {
	// Backend names the kind, as Environment.Backend does.
	Backend() string
	// Run runs a program of the other side to its end and returns its exit code. It starts in the root directory, as the
	// leader of a session of its own, with the variables of s.env beside those of the other side; their values are in no
	// argument list. When ctx ends, the connection is dropped and run returns ctx's error; the program is left alone.
	// An error means that the program did not run or that its end was not seen; it wraps ErrUnavailable, or ErrVanished.
	Run(ctx context.Context, argv []string, s Streams) (exit int, err error)
	// Close ends the connections and waits for what they need.
	Close() error
}

// Streams are what a carried program reads and writes. A nil reader is an empty input; a nil writer drops what comes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Env      map[string]string
}
