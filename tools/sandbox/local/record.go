package local

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"herald/tools/sandbox"
	"herald/tools/sandbox/proc"
	"herald/tools/spill"
)

// A background command of this machine is a job. It has a directory of its own, which only the daemon's user can
// enter, and a supervisor: a small process that owns the command's input, output and terminal. The supervisor
// survives the daemon, so that whatever happens to the daemon the output is kept within its bounds, a terminal stays
// open and the exit code is written down. These are the names in the directory:
const (
	jobState  = "state.json" // who it is; written before the start is reported
	jobExit   = "exit"       // the exit code in decimal; written after the last output
	jobInput  = "in"         // a pipe: frames for the supervisor
	jobBell   = "bell"       // a pipe: a byte for each piece of output; its end of file is the supervisor's end
	jobClosed = "in.closed"  // the input was closed
)

// minJobLog keeps a segment larger than what is read in one piece.
const minJobLog = 4 << 10

// jobSpec is what the supervisor is told, through a pipe: variables are in no argument list and on no disk.
type jobSpec struct {
	Job   string       `json:"job"` // the directory
	Argv  []string     `json:"argv"`
	Dir   string       `json:"dir"`
	Env   []string     `json:"env"`
	Mark  string       `json:"mark"`
	Input bool         `json:"input"`
	TTY   *sandbox.TTY `json:"tty"`
	Log   int64        `json:"log"`
}

// jobIdentity is the content of state.json. It tells the command from a later process with its number.
type jobIdentity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // 0 when it could not be read; such a one is found by its mark alone
	Boot  string `json:"boot,omitempty"`
	Mark  string `json:"mark"`
	Input bool   `json:"input,omitempty"`
	TTY   bool   `json:"tty,omitempty"`
}

// jobReady is what the supervisor answers once.
type jobReady struct {
	jobIdentity
	Error string `json:"error,omitempty"`
}

// bootID names the time since the last start of the machine, after which process ids and start times start over. It is
// empty where the system has no such name.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// alive reports whether the command's shell still runs and is the one that was started.
func (i jobIdentity) alive() bool {
	if i.PID <= 1 || i.Start == 0 || i.Boot != bootID() {
		return false
	}
	row, err := proc.Read(i.PID)
	return err == nil && row.Start == i.Start && !row.Zombie
}

// readIdentity reads a job's state.json.
func readIdentity(dir string) (jobIdentity, error) {
	var i jobIdentity
	b, err := os.ReadFile(filepath.Join(dir, jobState))
	if err != nil {
		return i, err
	}
	if err := json.Unmarshal(b, &i); err != nil {
		return i, fmt.Errorf("%s: %w", jobState, err)
	}
	return i, nil
}

// writeWhole writes a small file of a job in one step.
func writeWhole(dir, name string, data []byte) error {
	temp := filepath.Join(dir, name+".new")
	if err := spill.WriteExclusive(temp, data, true, true); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(dir, name))
}

// readExit returns the exit code that the supervisor wrote down.
func readExit(dir string) (int, bool) {
	b, err := os.ReadFile(filepath.Join(dir, jobExit))
	if err != nil {
		return 0, false
	}
	code, err := strconv.Atoi(string(bytes.TrimSpace(b)))
	return code, err == nil
}

// Frames of the input pipe: a kind, the length of the data as two bytes, the data. A whole frame is no longer than
// what every system writes to a pipe in one piece, so a daemon that dies leaves no half of one.
const (
	frameData  = 'd'
	frameClose = 'c'
	frameHead  = 3
	frameMax   = 512 - frameHead
)

func frame(kind byte, data []byte) []byte {
	b := make([]byte, frameHead, frameHead+len(data))
	b[0] = kind
	binary.BigEndian.PutUint16(b[1:], uint16(len(data)))
	return append(b, data...)
}

// readFrame reads one frame into buf, which has room for frameMax bytes.
func readFrame(r io.Reader, buf []byte) (kind byte, data []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint16(head[1:]))
	if n > frameMax {
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	_, err = io.ReadFull(r, buf[:n])
	return head[0], buf[:n], err
}

// makePipes makes the two pipes of a job.
func makePipes(dir string) error {
	for _, name := range []string{jobInput, jobBell} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			return &os.PathError{Op: "mkfifo", Path: filepath.Join(dir, name), Err: err}
		}
	}
	return nil
}

// openPipe opens a pipe of a job without waiting for its other end. For writing it is ENXIO when nobody reads.
func openPipe(dir, name string, flag int) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), flag|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// noReader reports whether a pipe has nobody at its other end.
func noReader(err error) bool {
	return errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrNotExist)
}
