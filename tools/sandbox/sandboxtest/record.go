package sandboxtest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
)

// Record is a sink that can be looked at.
type Record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *Record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *Record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// Shows waits for a text.
func (r *Record) Shows(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(r.String(), text); {
		if time.Now().After(deadline) {
			t.Fatalf("%q never came; there is %q", text, r.String())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// Ends waits for the end of a background command and returns its exit code.
func Ends(t *testing.T, p sandbox.Process) int {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("it never ended")
	}
	return p.ExitCode()
}

// Writer is a function as a writer.
type Writer func([]byte)

func (w Writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// MustExec runs a command line, which must be possible; its exit code may be any.
func MustExec(t *testing.T, e sandbox.Environment, line string) sandbox.Result {
	t.Helper()
	r, err := e.Exec(t.Context(), sandbox.Command{Line: line})
	require.NoError(t, err)
	return r
}
