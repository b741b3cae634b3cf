//go:build failpoint

package crash

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is one start of the daemon.
type process struct {
	cmd       *exec.Cmd
	failpoint string
	log       string // file
	ended     chan struct{}
	err       error // of Wait; read after ended
}

// launch starts the daemon with a failpoint, "" for none.
func launch(env []string, flags []string, failpoint, log string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{cmd: exec.Command(binary, append([]string{"run"}, flags...)...), failpoint: failpoint, log: log, ended: make(chan struct{})}
	p.cmd.Env = append(append([]string(nil), env...), "HERALD_FAILPOINT="+failpoint)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// alive reports whether the process runs.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// killed reports whether SIGKILL has ended the process. Read it after ended.
func (p *process) killed() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// wait returns false when the process has not ended within d.
func (p *process) wait(d time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// tail returns the end of the log, and whether the race detector has found something in it.
func (p *process) tail(most int) (text string, race bool) {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error(), false
	}
	text = string(data)
	race = strings.Contains(text, "DATA RACE")
	if !race && len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return filepath.Base(p.log) + " (" + p.failpoint + ")\n" + text, race
}
