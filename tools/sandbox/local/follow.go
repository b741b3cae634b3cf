package local

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/output"
)

// attend passes the output on while it comes. It returns true when the command has ended and all of its output was
// passed on, and false when the environment leaves the command running.
func (j *job) attend(c sandbox.Command) (ended bool) {
	t := &jobTail{job: j, log: logReader{dir: j.dir}, buf: make([]byte, 32<<10)}
	defer t.log.close()
	defer j.closePipes()
	t.pump(c.Replay, j.Ref().Offset)
	for supervised := j.openBell(); ; {
		t.pump(c.Output, -1)
		if !supervised {
			break
		}
		supervised = j.listen()
		select {
		case <-j.left:
			return false
		default:
		}
	}
	code, known := readExit(j.dir)
	if !known {
		if !j.outwait() {
			return false
		}
		code = sandbox.ExitUnknown
	}
	t.flush(c.Output)
	j.code = code
	return true
}

// openBell opens the pipe that wakes attend; false means that there is none.
func (j *job) openBell() bool {
	bell, err := openPipe(j.dir, jobBell, os.O_RDONLY)
	if err != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.bell = bell
	select {
	case <-j.left: // before there was a bell to stop
		_ = bell.SetReadDeadline(time.Unix(1, 0))
	default:
	}
	return true
}

// listen waits for more output. It returns false when the supervisor is gone.
func (j *job) listen() bool {
	var buf [4096]byte
	for {
		_, err := j.bell.Read(buf[:])
		switch {
		case err == nil:
			return true
		case !errors.Is(err, syscall.EAGAIN):
			return false
		}
		// Not every system wakes a reader of a pipe with a name.
		select {
		case <-j.left:
			return false
		case <-time.After(lookEvery / 5):
		}
	}
}

// outwait waits for the end of a command whose supervisor is gone; false means that the environment leaves it.
func (j *job) outwait() bool {
	for j.who.alive() {
		select {
		case <-j.left:
			return false
		case <-time.After(lookEvery):
		}
	}
	return true
}

// leave ends attend, and leaves the command alone.
func (j *job) leave() {
	close(j.left)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.bell != nil {
		_ = j.bell.SetReadDeadline(time.Unix(1, 0))
	}
}

func (j *job) closePipes() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range []*os.File{j.in, j.bell} {
		if f != nil {
			_ = f.Close()
		}
	}
	j.in, j.bell = nil, nil
}

// jobTail makes text of a job's log.
type jobTail struct {
	job *job
	log logReader
	dec output.Decoder
	buf []byte
}

// pump passes on what the log has, up to the byte with the number until; -1 is all of it.
func (t *jobTail) pump(sink io.Writer, until int64) {
	for until < 0 || t.log.at < until {
		buf := t.buf
		if until >= 0 {
			buf = buf[:min(int64(len(buf)), until-t.log.at)]
		}
		n, missed, err := t.log.read(buf)
		if missed > 0 {
			t.pass(sink, append(t.dec.Flush(), output.Dropped(missed)...))
		}
		if n == 0 || err != nil {
			return
		}
		t.pass(sink, t.dec.Decode(buf[:n]))
	}
}

// pass hands text to the sink. The offset is ahead of the sink, so that who asks from within it finds it counted.
func (t *jobTail) pass(sink io.Writer, text []byte) {
	t.job.mu.Lock()
	t.job.offset = max(t.job.offset, t.log.at-int64(t.dec.Held()))
	t.job.mu.Unlock()
	if sink != nil && len(text) > 0 {
		_, _ = sink.Write(text)
	}
}

func (t *jobTail) flush(sink io.Writer) { t.pass(sink, t.dec.Flush()) }

// lostJob returns the directory of a job that ended without anybody to write it down.
func lostJob(dir string) (fs.FileInfo, error) {
	who, err := readIdentity(dir)
	if err == nil && who.alive() {
		return nil, errors.New("it runs")
	}
	return os.Lstat(dir)
}
