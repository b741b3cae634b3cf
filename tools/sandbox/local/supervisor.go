package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/proc"
)

// supervisorVerb is the argument that makes a program a supervisor.
const supervisorVerb = "supervise-background-command"

// The descriptors that a supervisor is started with: its jobSpec, and where its jobReady goes.
const (
	specFD  = 3
	readyFD = 4
)

// maxDrain bounds how long the output of what a command left behind is still read after its shell ended.
const maxDrain = 3 * time.Second

// SelfSupervisor is the command that makes this program supervise a background command: Options.Supervisor for
// programs whose main function asks IsSupervisor first.
func SelfSupervisor() ([]string, error) {
	exe := "/proc/self/exe" // of the child, so this very program, also when its file was replaced meanwhile
	if runtime.GOOS != "linux" {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("own program: %w", err)
		}
		exe = path
	}
	return []string{exe, supervisorVerb}, nil
}

// IsSupervisor reports whether this program was started as a supervisor; args are os.Args. Its main function then
// calls Supervise and exits with what that returns.
func IsSupervisor(args []string) bool { return len(args) == 2 && args[1] == supervisorVerb }

// Supervise runs one background command as Environment told it to, keeps its output and writes down how it ended. It
// returns the exit code of the supervisor itself: 0 unless the command could not be started.
func Supervise() int {
	// The end of a login, of the daemon or of a service is no reason to leave a command without its supervisor. The
	// signals are caught and not ignored: the command would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	syscall.CloseOnExec(specFD)
	syscall.CloseOnExec(readyFD)
	in, ready := os.NewFile(specFD, "spec"), os.NewFile(readyFD, "ready")
	if in == nil || ready == nil {
		return 1
	}
	var spec jobSpec
	err := json.NewDecoder(in).Decode(&spec)
	in.Close()
	var s *supervisor
	if err == nil {
		s, err = superviseJob(spec)
	}
	answer := jobReady{}
	if err != nil {
		answer.Error = err.Error()
	} else {
		answer.jobIdentity = s.who
	}
	_ = json.NewEncoder(ready).Encode(answer) // a daemon that died finds the same in the directory
	ready.Close()
	if err != nil {
		return 1
	}
	s.run()
	return 0
}

// supervisor owns a running command.
type supervisor struct {
	spec  jobSpec
	who   jobIdentity
	cmd   *exec.Cmd
	out   *os.File // the reading end of its output, or its terminal
	feed  *os.File // the writing end of its input; nil without one
	in    *os.File // frames
	bell  *os.File
	mu    sync.Mutex
	log   jobLog
	ended bool // the log takes nothing any more
	read  chan struct{}
	moved chan struct{} // has a token when output came
}

// superviseJob starts the command and writes down who it is.
func superviseJob(spec jobSpec) (*supervisor, error) {
	s := &supervisor{spec: spec, log: jobLog{dir: spec.Job, half: max(spec.Log, minJobLog) / 2}, read: make(chan struct{}),
		moved: make(chan struct{}, 1)}
	// Nobody who searches for the daemon by name should hit its supervisors: they hold what outlives it.
	_ = os.WriteFile("/proc/self/comm", []byte("job-"+filepath.Base(spec.Job)), 0)
	var err error
	if s.in, err = os.OpenFile(filepath.Join(spec.Job, jobInput), os.O_RDWR|syscall.O_NOFOLLOW, 0); err != nil {
		return nil, err
	}
	if s.bell, err = openPipe(spec.Job, jobBell, os.O_RDWR); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	s.who = jobIdentity{PID: s.cmd.Process.Pid, Boot: bootID(), Mark: spec.Mark, Input: s.feed != nil, TTY: spec.TTY != nil}
	if row, err := proc.Read(s.who.PID); err == nil {
		s.who.Start = row.Start // it is our child and not reaped, so the number is its own
	}
	b, err := json.Marshal(s.who)
	if err == nil {
		err = writeWhole(spec.Job, jobState, b)
	}
	if err != nil {
		_ = syscall.Kill(-s.who.PID, syscall.SIGKILL)
		return nil, err
	}
	return s, nil
}

// start starts the command as the leader of a session, on a terminal if that was asked for.
func (s *supervisor) start() error {
	cmd := exec.Command(s.spec.Argv[0], s.spec.Argv[1:]...)
	cmd.Dir, cmd.Env = s.spec.Dir, s.spec.Env
	s.cmd = cmd
	if t := s.spec.TTY; t != nil {
		master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: t.Rows, Cols: t.Cols})
		s.out, s.feed = master, master
		return err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	s.out, cmd.Stdout, cmd.Stderr = out, w, w
	if s.spec.Input {
		r, feed, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		cmd.Stdin, s.feed = r, feed
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// run serves the command until it ended and its output is drained.
func (s *supervisor) run() {
	go s.copyOutput()
	go s.copyInput()
	_ = s.cmd.Wait() // the pipes are ours, so this waits for the shell alone
	code := proc.ExitCode(s.cmd.ProcessState)
	s.drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.log.close()
	if err := writeWhole(s.spec.Job, jobExit, []byte(strconv.Itoa(code)+"\n")); err != nil && len(s.log.kept) > 0 {
		// A full disk: the segment that goes makes room for these few bytes.
		_ = os.Remove(segmentPath(s.spec.Job, s.log.kept[0]))
		_ = writeWhole(s.spec.Job, jobExit, []byte(strconv.Itoa(code)+"\n"))
	}
}

// drain waits until the output ended, or was quiet for a while: a child that was left behind may hold it open forever.
func (s *supervisor) drain() {
	limit := time.NewTimer(maxDrain)
	defer limit.Stop()
	for {
		quiet := time.NewTimer(execution.DrainTime)
		select {
		case <-s.read:
			quiet.Stop()
			return
		case <-limit.C:
			quiet.Stop()
			return
		case <-quiet.C:
			return
		case <-s.moved:
			quiet.Stop()
		}
	}
}

func (s *supervisor) copyOutput() {
	defer close(s.read)
	buf := make([]byte, 32<<10)
	for {
		n, err := s.out.Read(buf)
		if n > 0 && !s.store(buf[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// store logs a piece and rings; false means that the log is closed.
func (s *supervisor) store(p []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	_, _ = s.log.Write(p)
	select {
	case s.moved <- struct{}{}:
	default:
	}
	// A full pipe has rung enough. The descriptor does not block, so this is one call whatever its other end does.
	if raw, err := s.bell.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = syscall.Write(int(fd), []byte{1}) })
	}
	return true
}

// copyInput takes frames until the supervisor ends.
func (s *supervisor) copyInput() {
	buf := make([]byte, frameMax)
	for {
		kind, data, err := readFrame(s.in, buf)
		if err != nil {
			return
		}
		if s.feed == nil {
			continue
		}
		switch kind {
		case frameData:
			_, err = s.feed.Write(data)
		case frameClose:
			if s.spec.TTY != nil {
				_, err = s.feed.Write([]byte{4}) // the terminal's end of file
			} else {
				err = errors.Join(s.feed.Close(), io.ErrClosedPipe)
			}
		}
		if err != nil {
			s.feed = nil // the command does not read any more
		}
	}
}
