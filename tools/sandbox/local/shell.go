package local

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/shell"
	"herald/tools/spill"
)

// findShell looks once how commands can be run here. With bash it captures what a login shell makes of the
// environment; when that fails each command gets a login shell, or a plain bash where login shells do not
// work at all. Without bash it is sh.
func (l *Environment) findShell(ctx context.Context) (shell.Shell, error) {
	env := sandbox.Scrub(l.opts.Environ(), l.pass, l.opts.Deny)
	delete(env, "BASH_ENV")
	delete(env, "ENV")
	env["HOME"] = l.home
	if env["PATH"] == "" {
		env["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	if env["TERM"] == "" {
		env["TERM"] = "dumb"
	}
	if l.opts.Shell != "" && filepath.Base(l.opts.Shell) != "bash" {
		return l.chosenShell(ctx, env)
	}
	bash, err := l.opts.LookPath(cmp.Or(l.opts.Shell, "bash"))
	if err != nil && l.opts.Shell != "" {
		return shell.Shell{}, fmt.Errorf("%w: the shell %q that was chosen is not there: %w", sandbox.ErrUnavailable, l.opts.Shell, err)
	}
	if err != nil {
		sh, err := l.opts.LookPath("sh")
		if err != nil {
			return shell.Shell{}, fmt.Errorf("%w: neither bash nor sh is on PATH; install one of them", sandbox.ErrUnavailable)
		}
		return shell.Shell{Argv: []string{sh, "-c"}, Env: env}, nil
	}
	if s, err := l.snapshot(ctx, bash, env); err == nil {
		return s, nil
	}
	if ctx.Err() != nil {
		return shell.Shell{}, ctx.Err()
	}
	for _, argv := range [][]string{{bash, "-l", "-c"}, {bash, "-c"}} {
		if _, err := l.probe(ctx, argv, env, "true"); err == nil {
			return shell.Shell{Argv: argv, Env: env}, nil
		}
	}
	return shell.Shell{}, fmt.Errorf("%w: %s does not run", sandbox.ErrUnavailable, bash)
}

// chosenShell is another shell than bash that was asked for by name. It must understand what args writes.
func (l *Environment) chosenShell(ctx context.Context, env map[string]string) (shell.Shell, error) {
	path, err := l.opts.LookPath(l.opts.Shell)
	if err != nil {
		return shell.Shell{}, fmt.Errorf("%w: the shell %q that was chosen is not there: %w", sandbox.ErrUnavailable, l.opts.Shell, err)
	}
	const script = "trap 'printf yes; exit 0' EXIT\nset -- x 'exit 3'\n__herald_line=$2; shift; eval \"$__herald_line\""
	out, err := l.probe(ctx, []string{path, "-c"}, env, script)
	if err != nil || string(out) != "yes" {
		return shell.Shell{}, fmt.Errorf("%w: the shell %s does not speak as sh does", sandbox.ErrUnavailable, path)
	}
	return shell.Shell{Argv: []string{path, "-c"}, Env: env}, nil
}

// snapshot runs the start files of a login shell once. Variables come back as data and pass the same
// filter as the daemon's own, so that a secret exported in a start file does not get through.
func (l *Environment) snapshot(ctx context.Context, bash string, env map[string]string) (shell.Shell, error) {
	cut := shell.NewCut(l.id)
	out, err := l.probe(ctx, []string{bash, "-l", "-c"}, env, shell.SnapshotScript(cut, l.opts.InitFiles))
	if err != nil {
		return shell.Shell{}, err
	}
	vars, functions, err := shell.ParseSnapshot(out, cut, l.pass, l.opts.Deny)
	if err != nil {
		return shell.Shell{}, err
	}
	file := filepath.Join(l.private, "snapshot.sh")
	if err := spill.WriteExclusive(file, functions, true, true); err != nil {
		return shell.Shell{}, err
	}
	return shell.Shell{Argv: []string{bash, "-c"}, Env: vars, Source: file}, nil
}

// probe runs a short script of ours and returns its output. The processes it started do not outlive it.
func (l *Environment) probe(ctx context.Context, argv []string, env map[string]string, script string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, shell.SnapshotTimeout)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:len(argv):len(argv)], script)...)
	cmd.Env, cmd.Dir, cmd.Stdout = sandbox.Environ(env), "/", &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return out.Bytes(), err
}
