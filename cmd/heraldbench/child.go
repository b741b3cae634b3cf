package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopLimit is how long a daemon may take to end after SIGTERM.
const stopLimit = 30 * time.Second

// child is the daemon under test, with everything that it starts: it leads a process group.
type child struct {
	line string // a shell command that starts it in the foreground
	env  []string
	log  *os.File

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has been waited for
}

// start starts the daemon. Call it only while none runs.
func (c *child) start() error {
	c.cmd = exec.Command("/bin/sh", "-c", "exec "+c.line)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = c.env, c.log, c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("start %q: %w", c.line, err)
	}
	ended := make(chan struct{})
	c.ended = ended
	go func() {
		_ = c.cmd.Wait() // how it ended is judged by who ends it
		close(ended)
	}()
	return nil
}

// group is the daemon's process group.
func (c *child) group() int { return c.cmd.Process.Pid }

func (c *child) usage() (usage, error) { return groupUsage(c.group()) }

// kill ends the whole group with SIGKILL and waits. Nothing happens when none runs.
func (c *child) kill() {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	_ = syscall.Kill(-c.group(), syscall.SIGKILL)
	<-c.ended
	c.cmd = nil
}

// stop ends the daemon as a service manager does.
func (c *child) stop() error {
	if err := syscall.Kill(c.group(), syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	select {
	case <-c.ended:
		c.kill() // what it may have left behind
		return nil
	case <-time.After(stopLimit):
		c.kill()
		return fmt.Errorf("the daemon did not end within %s of SIGTERM", stopLimit)
	}
}
