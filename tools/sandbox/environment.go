package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Exit codes that Exec makes itself. All others come from the command; a command that a signal ended has
// 128 plus the signal's number.
const (
	ExitTimeout     = 124
	ExitInterrupted = 130
	// ExitUnknown is the exit code of a Process whose end nobody saw: it ended while its supervisor was gone.
	ExitUnknown = -1
)

// MaxCommand is the longest Command.Line, in bytes (inclusive). The kernel allows 128 KiB for one argument.
const MaxCommand = 100_000

// ErrUnavailable is wrapped by errors that mean the environment itself is out of reach (no shell, an engine that
// does not answer), not that a command failed in it. Trying again later may help.
var ErrUnavailable = errors.New("sandbox is not available")

// ErrTooLarge is wrapped by ReadFile when a file has more bytes than the caller allowed.
var ErrTooLarge = errors.New("file is too large")

// ErrNotRegular is wrapped by Open, ReadFile and WriteFile when the path is a directory, a device, a
// socket or a pipe.
var ErrNotRegular = errors.New("not a regular file")

// ErrGone is wrapped by Resume when nothing is known of the process, and by Process.Write and CloseInput when it has
// ended or its input is closed.
var ErrGone = errors.New("the process is gone")

// ErrClosed is what every method of a closed environment that needs its machine or container returns. It wraps ErrUnavailable.
var ErrClosed = fmt.Errorf("%w: it was closed", ErrUnavailable)

// ErrForeign is wrapped by Kill when another environment started the process.
var ErrForeign = errors.New("the process belongs to another environment")

// DefaultJobLog is how many bytes of the output of a background command are kept.
const DefaultJobLog = 8 << 20

// Environment is a machine or container with a shell and files. Implementations are safe for concurrent use: commands of
// many sessions run side by side in one environment. All paths are absolute paths inside it; a relative
// one is an error.
type Environment interface {
	// Backend names the kind: "local", "docker", "ssh".
	Backend() string
	// Home is the absolute home directory of the user that commands run as.
	Home() string
	// Dir is the directory where the session left off; ok false means that the session has run no command
	// here yet, and dir is where the first one would start.
	Dir(session string) (dir string, ok bool)
	// Forget drops what is known about a session. Its files stay.
	Forget(session string)

	// Exec runs a command to its end. A command that fails, times out or is interrupted is a Result and no
	// error; an error means that it could not be run. A cancelled ctx interrupts it (ExitInterrupted); a
	// passed deadline of ctx counts as a timeout (ExitTimeout). Either way the whole process tree is killed
	// and the output so far is returned.
	Exec(ctx context.Context, c Command) (Result, error)
	// Start runs a command in the background. ctx bounds the start alone; when it ends first, nothing is left
	// running. Command.Timeout is not used. Output and exit code are kept in the environment, so that Resume finds them.
	Start(ctx context.Context, c Command) (Process, error)
	// Resume takes up a process that an earlier daemon started, also one that ended meanwhile. Of ref only the ID must
	// be set. What was put out before ref.Offset goes to c.Replay, the rest to c.Output; c has no other use. ErrGone
	// means that no process of that ID is known here, so it never started or its record was removed.
	Resume(ctx context.Context, ref Ref, c Command) (Process, error)
	// Kill ends a process of Start or Resume and all that it started, and returns when it is gone or when ctx ends.
	// Killing one that has ended does nothing. A process that only has the number of the one that was started is
	// never signalled.
	Kill(ctx context.Context, p Process) error

	Files

	// Close kills the commands of Exec, releases the environment and waits for its goroutines. What Start began is
	// ended or left running, as the environment is configured; Done of one that is left running is never closed.
	Close() error
}

// Files is the part of an Environment that the file tools use. Where a file is opened or written the last
// component is never followed when it is a symbolic link: resolve with RealPath first, check the result, and
// use that. Errors wrap fs.ErrNotExist,
// fs.ErrPermission, ErrTooLarge and ErrNotRegular where they apply.
type Files interface {
	// Stat follows symbolic links; Lstat does not.
	Stat(ctx context.Context, path string) (FileInfo, error)
	Lstat(ctx context.Context, path string) (FileInfo, error)
	// RealPath resolves every symbolic link. Of a path that does not exist the existing part is resolved
	// and the rest is kept, so that a check of a file about to be made sees where it would land.
	RealPath(ctx context.Context, path string) (string, error)
	// List returns the entries of a directory sorted by name, not following links.
	List(ctx context.Context, dir string) ([]FileInfo, error)
	// Open reads a regular file from its start. It never blocks on a pipe or a device.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// ReadFile reads a whole regular file of at most max bytes.
	ReadFile(ctx context.Context, path string, max int64) ([]byte, error)
	// WriteFile replaces a file in one step: readers see the old bytes or the new ones. An existing file
	// keeps its mode, and its owner where that is allowed; a new one gets mode as the umask allows.
	WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error
	// MkdirAll makes a directory and its parents; existing ones are kept as they are.
	MkdirAll(ctx context.Context, dir string, mode fs.FileMode) error
	// Chmod sets the permission bits of a file, following links.
	Chmod(ctx context.Context, path string, mode fs.FileMode) error
	// Remove deletes one file, link or empty directory.
	Remove(ctx context.Context, path string) error
	// Rename moves a file and refuses to replace an existing target.
	Rename(ctx context.Context, from, to string) error
}

// FileInfo describes a file or a directory entry.
type FileInfo struct {
	Name    string // the last component
	Size    int64  // bytes
	Mode    fs.FileMode
	ModTime time.Time
}

// IsDir reports whether it is a directory.
func (i FileInfo) IsDir() bool { return i.Mode.IsDir() }

// IsRegular reports whether it is a plain file.
func (i FileInfo) IsRegular() bool { return i.Mode.IsRegular() }

// Command is one shell command.
type Command struct {
	// Line is shell text of 1 to MaxCommand bytes without NUL.
	Line string
	// Session is the key under which the working directory is remembered; empty remembers nothing.
	Session string
	// Dir, absolute, is where this one command runs; it changes nothing for the next one. Unlike a
	// remembered directory it is never replaced by another: an unusable one is an error.
	Dir string
	// Start, absolute, is where a session begins that ran nothing here yet; empty takes the environment's.
	Start string
	// Stdin is fed to the command; nil means that it reads end of file at once. It is read in its own
	// goroutine, so it should be bytes in memory or a reader that ends when closed.
	Stdin io.Reader
	// Env holds variables added to the scrubbed environment.
	Env map[string]string
	// Timeout ends the command; 0 means no limit but that of ctx.
	Timeout time.Duration
	// Output receives the text while it comes, as valid UTF-8, from one goroutine at a time; it must not
	// block. nil drops it. It may still be called shortly after Exec returned early (see Result.Detached).
	Output io.Writer
	// Errors receives what the command writes to stderr, as Output does, and keeps it out of Output and of the Result.
	// nil mixes both as they come. Only Exec of the local environment can tell them apart; elsewhere it is an error.
	Errors io.Writer

	// The rest is for Start and Resume alone.

	// ID names the process: 1 to 64 letters, digits, "_" and "-", not used before in this environment. Empty takes a
	// random one. A caller that notes it before Start finds the process again whatever happens to the daemon.
	ID string
	// Input keeps the command's input open for Process.Write. Stdin, if set, is written first.
	Input bool
	// TTY runs the command on a terminal of its own, with Input. Only the local environment has terminals.
	TTY *TTY
	// Replay receives what a resumed process had put out before Ref.Offset, as far as it is kept, before anything goes
	// to Output. nil drops it.
	Replay io.Writer
}

// TTY is the size of a terminal, in characters. Zeros take 24 rows of 80.
type TTY struct {
	Rows, Cols uint16
}

// Ref is what finds a process again after a restart of the daemon. It is stored as JSON.
type Ref struct {
	ID string `json:"id"`
	// PID, Start and Mark tell the process from another one that has its number by now: the shell's id, its start time
	// in the unit of its machine, and the value of the variable that all its processes carry.
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
	Mark  string `json:"mark,omitempty"`
	// Dir is the directory in the environment that holds its output and exit code.
	Dir string `json:"dir,omitempty"`
	// Offset is how many bytes of the output went to Command.Output.
	Offset int64 `json:"offset,omitempty"`
}

// Result is how a command ended.
type Result struct {
	// Output is stdout and stderr as they came, valid UTF-8, cut in the middle when longer than the
	// window. A timeout or an interrupt adds a line that says so.
	Output   string
	ExitCode int
	// Dir is the directory of the session afterwards; Observed tells that this command reported it.
	Dir      string
	Observed bool
	// TimedOut and Interrupted tell why the environment ended the command.
	TimedOut, Interrupted bool
	// Truncated is true when Output leaves out a part; FullPath is where all of it is (up to the cap of
	// the spill file), or empty when it could not be stored.
	Truncated bool
	FullPath  string
	// TotalChars is how many characters the command wrote.
	TotalChars int64
	// Took is the wall time.
	Took time.Duration
	// Note is for the reader of the result: the directory was gone and another was used. Usually empty.
	Note string
	// Detached is true when the backstop returned before the processes were seen to end.
	Detached bool
	// Recreated is true when the container was gone and this command ran in a new one: what was not in its lasting
	// directories is lost, and so are its background processes.
	Recreated bool
}

// Process is a command that Start began.
type Process interface {
	// ID is unique within the environment, also over its restarts: Command.ID where that was given.
	ID() string
	// PID is the process id of the shell inside the environment.
	PID() int
	// Done is closed after the command ended and its output was drained.
	Done() <-chan struct{}
	// ExitCode is valid after Done. ExitUnknown means that the end was not seen.
	ExitCode() int
	// Write feeds the input of a command that was started with Input or TTY. It waits at most some seconds for a
	// command that does not read, and then returns how much was taken and an error that wraps os.ErrDeadlineExceeded.
	// Without an input it is an error; after the end, or after CloseInput, it is ErrGone.
	Write(p []byte) (int, error)
	// CloseInput ends the input: the command reads end of file after what was written. On a terminal it is Ctrl-D,
	// which a program takes for the end at the beginning of a line. Closing twice does nothing.
	CloseInput() error
	// Ref is what Resume needs, as of now.
	Ref() Ref
}
