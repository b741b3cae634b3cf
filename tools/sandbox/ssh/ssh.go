// Package ssh is the environment on another host, reached with the OpenSSH client of this machine. It carries programs over
// shared connections; what they do there is package remote's.
package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/output"
	"herald/tools/sandbox/remote"
	"herald/tools/sandbox/scratch"
	"herald/tools/sandbox/shell"
)

const (
	// connectTimeout is how long a connection may take.
	connectTimeout = 15 * time.Second
	// persistTime is how long a connection that nobody uses stays open, also after the daemon was killed.
	persistTime = 10 * time.Minute
	// maxSessionsEach is how many programs run over one connection at a time; the usual server allows ten.
	maxSessionsEach = 8
	// maxSocketPath is what fits into the address of a Unix socket on every system, without its final NUL; the client
	// appends socketSuffix bytes while it makes one.
	maxSocketPath = 103
	socketSuffix  = 17
)

// Options configure an environment on another host, reached with the OpenSSH client of this machine. The host must
// have sh and what busybox has; with bash commands get the state of a login shell.
type Options struct {
	// Host is a name, an address, or an alias of the client's configuration.
	Host string
	// User, Port and Key (a private key file) are what the client's configuration says when they are zero.
	User string
	Port int
	Key  string
	// Config is the client's configuration file; empty takes the user's.
	Config string
	// KnownHosts is the file, absolute, with the keys of hosts. A host that is not in it yet is added; one with another
	// key than before is refused. Empty takes the client's own file.
	KnownHosts string
	// Dir is where sessions start on the host: absolute, "~", or "~/" and a path below home. Empty is home.
	Dir string
	// SpillDir, Passthrough, Deny, InitFiles and Window are as in local.Options.
	SpillDir    string
	Passthrough []string
	Deny        []string
	InitFiles   []string
	Window      int
	// KeepJobs makes Close leave background commands running for the next daemon; without it Close ends them.
	KeepJobs bool
	// JobGrace is how long a background command has to end after TERM, before KILL; 0 takes a second.
	JobGrace time.Duration
	// JobLog is how many bytes of a background command's output are kept on the host; 0 takes DefaultJobLog.
	JobLog int64
	// Env returns variables that every command gets, as they are now; nil adds none. They go over standard input: no
	// argument list has them.
	Env func() map[string]string
}

// New makes the environment; the first command connects. Errors of its methods that wrap ErrUnavailable say whether
// the host is unreachable, refuses us, or is another one than before, and what to do.
func New(o Options) (sandbox.Environment, error) {
	c, err := newCarrier(o)
	if err != nil {
		return nil, err
	}
	return over(c), nil
}

// over makes the environment that runs over a carrier.
func over(c *carrier) *remote.Environment {
	o := c.opts
	return remote.New(c, remote.Options{
		Dir: o.Dir, SpillDir: o.SpillDir, Window: o.Window, Passthrough: o.Passthrough, Deny: o.Deny, InitFiles: o.InitFiles, Env: o.Env,
		KeepJobs: o.KeepJobs, JobGrace: o.JobGrace, JobLog: o.JobLog,
	})
}

// carrier runs programs over shared connections: each has a master, a background process of the client that holds
// it, and a control socket by which other client processes open sessions in it.
type carrier struct {
	opts   Options
	client string        // the program
	dir    string        // of the control sockets; owner-only
	dial   chan struct{} // holds a token while nobody connects: servers drop clients that connect in crowds

	mu      sync.Mutex
	closed  bool
	masters []*master
}

type master struct {
	socket string
	used   int // sessions; under carrier.mu
}

func newCarrier(o Options) (*carrier, error) {
	switch {
	case o.Host == "":
		return nil, errors.New("ssh sandbox: no host is set; set terminal.ssh_host")
	case strings.HasPrefix(o.Host, "-") || strings.ContainsFunc(o.Host, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, fmt.Errorf("ssh sandbox: %q is no host name", o.Host)
	case strings.HasPrefix(o.User, "-") || strings.ContainsFunc(o.User, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, fmt.Errorf("ssh sandbox: %q is no user name", o.User)
	case o.Port < 0 || o.Port > 65535:
		return nil, fmt.Errorf("ssh sandbox: %d is no port", o.Port)
	case o.KnownHosts != "" && !filepath.IsAbs(o.KnownHosts):
		return nil, fmt.Errorf("ssh sandbox: KnownHosts %q is not an absolute path", o.KnownHosts)
	case o.Dir != "" && o.Dir != "~" && !strings.HasPrefix(o.Dir, "~/") && !strings.HasPrefix(o.Dir, "/"):
		return nil, fmt.Errorf("ssh sandbox: directory %q is neither absolute nor below ~", o.Dir)
	}
	client, err := exec.LookPath("ssh")
	if err != nil {
		return nil, fmt.Errorf("%w: the ssh program is not installed here; install the OpenSSH client", sandbox.ErrUnavailable)
	}
	dir, err := socketDir(os.TempDir(), "/tmp")
	if err != nil {
		return nil, err
	}
	c := &carrier{opts: o, client: client, dir: dir, dial: make(chan struct{}, 1)}
	c.dial <- struct{}{}
	return c, nil
}

// socketDir makes an owner-only directory whose sockets have names that are short enough, in the first of bases that
// is short enough itself.
func socketDir(bases ...string) (string, error) {
	scratch.Sweep(time.Now())
	for _, base := range bases {
		dir, err := scratch.Make(base)
		if err != nil {
			continue
		}
		if len(dir)+len("/000")+socketSuffix <= maxSocketPath {
			return dir, nil
		}
		_ = os.Remove(dir)
	}
	return "", fmt.Errorf("ssh sandbox: no directory for the control socket: its path may have %d bytes, tried in %q", maxSocketPath, bases)
}

// Backend implements remote.Carrier.
func (*carrier) Backend() string { return "ssh" }

// options are the arguments of the client that all its uses have in common.
func (c *carrier) options(m *master, control string) []string {
	args := []string{"-T"}
	if c.opts.Config != "" {
		args = append(args, "-F", c.opts.Config)
	}
	set := func(name, value string) { args = append(args, "-o", name+"="+value) }
	set("BatchMode", "yes")
	set("LogLevel", "ERROR")
	set("ConnectTimeout", strconv.Itoa(int(connectTimeout/time.Second)))
	set("ServerAliveInterval", "10") // a dead link is noticed after half a minute
	set("ServerAliveCountMax", "3")
	set("StrictHostKeyChecking", "accept-new")
	if c.opts.KnownHosts != "" {
		set("UserKnownHostsFile", configWord(c.opts.KnownHosts))
	}
	for _, off := range []string{"ForwardAgent", "ForwardX11", "PermitLocalCommand"} {
		set(off, "no")
	}
	set("ClearAllForwardings", "yes")
	set("RequestTTY", "no")
	set("ControlMaster", control)
	set("ControlPath", configWord(m.socket))
	set("ControlPersist", strconv.Itoa(int(persistTime/time.Second)))
	if c.opts.Key != "" {
		set("IdentityFile", configWord(c.opts.Key))
		set("IdentitiesOnly", "yes")
	}
	if c.opts.User != "" {
		args = append(args, "-l", c.opts.User)
	}
	if c.opts.Port != 0 {
		args = append(args, "-p", strconv.Itoa(c.opts.Port))
	}
	return args
}

// configWord quotes a file name for the client's configuration, where a percent sign begins a placeholder.
func configWord(s string) string {
	s = strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`).Replace(s)
	return `"` + s + `"`
}

// command makes a run of the client. It has no terminal to ask on.
func (c *carrier) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.client, args...)
	cmd.Env = sandbox.Environ(sandbox.Scrub(os.Environ(), []string{"SSH_AUTH_SOCK", "KRB5CCNAME"}, c.opts.Deny))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	return cmd
}

// Run implements remote.Carrier. What the program is and its variables go over its standard input, line by line, before the
// input of the program itself: an argument list has bounds, and can be read by others on both sides.
func (c *carrier) Run(ctx context.Context, argv []string, s remote.Streams) (int, error) {
	m, err := c.session(ctx)
	if err != nil {
		return -1, err
	}
	defer c.leave(m)
	word := sandbox.NewID()
	prelude, err := newPrelude(argv, s.Env, word)
	if err != nil {
		return -1, err
	}
	cmd := c.command(ctx, append(c.options(m, "no"), "--", c.opts.Host, fmt.Sprintf(bootScript, word))...)
	var errs output.Tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = prelude, after(word, s.Out), &errs
	if s.In != nil {
		cmd.Stdin = io.MultiReader(prelude, s.In)
	}
	if s.Err != nil {
		cmd.Stderr = io.MultiWriter(&errs, after(word, s.Err))
	}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return -1, ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() != clientFailed && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	case errors.As(err, &exit):
		return -1, c.explain(errs.Line(), "the connection was lost")
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return -1, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
	}
	return 0, nil
}

// clientFailed is the client's own exit code.
const clientFailed = 255

// bootScript is what the user's login shell on the host runs, whichever it is: one line without quotes, backslashes and
// exclamation marks inside. It reads its script up to a line that is the word; a connection that breaks before runs
// nothing. A shell reads lines of a pipe byte by byte, so that the rest of the input is the program's. What comes
// before it says the word was printed by start files of the login shell.
const bootScript = `exec sh -c 'n=$(echo; echo x) n=${n%%x} p=; while IFS= read -r l; do if [ "$l" = %[1]s ]; then echo %[1]s; echo %[1]s >&2; eval "$p"; exit 255; fi; p=$p$l$n; done; exit 255'`

// afterWord is a writer that drops all up to a line that is the word.
type afterWord struct {
	line []byte
	held []byte
	to   io.Writer
	seen bool
}

func after(word string, to io.Writer) io.Writer {
	if to == nil {
		return nil
	}
	return &afterWord{line: []byte(word + "\n"), to: to}
}

func (a *afterWord) Write(b []byte) (int, error) {
	if a.seen {
		return a.to.Write(b)
	}
	a.held = append(a.held, b...)
	_, rest, ok := bytes.Cut(a.held, a.line)
	if !ok {
		a.held = bytes.Clone(a.held[max(0, len(a.held)-len(a.line)):])
		return len(b), nil
	}
	a.seen, a.held = true, nil
	if len(rest) > 0 {
		if _, err := a.to.Write(rest); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// newPrelude is the script that makes the host's shell the program.
func newPrelude(argv []string, env map[string]string, word string) (io.Reader, error) {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if shell.Exportable(name) {
			fmt.Fprintf(&b, "export %s=%s\n", name, shell.Quote(env[name]))
		}
	}
	b.WriteString("cd /\nunset n p l\nexec")
	for _, a := range argv {
		b.WriteByte(' ')
		b.WriteString(shell.Quote(a))
	}
	if bytes.IndexByte(b.Bytes(), 0) >= 0 {
		return nil, errors.New("an argument or a variable contains a NUL byte")
	}
	fmt.Fprintf(&b, "\n%s\n", word)
	return &b, nil
}

// session takes a place in a connection, which is made where there is none.
func (c *carrier) session(ctx context.Context) (*master, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, sandbox.ErrClosed
	}
	i := slices.IndexFunc(c.masters, func(m *master) bool { return m.used < maxSessionsEach })
	if i < 0 {
		i = len(c.masters)
		c.masters = append(c.masters, &master{socket: filepath.Join(c.dir, strconv.Itoa(i))})
	}
	m := c.masters[i]
	m.used++
	c.mu.Unlock()
	if err := c.connect(ctx, m); err != nil {
		c.leave(m)
		return nil, err
	}
	return m, nil
}

func (c *carrier) leave(m *master) {
	c.mu.Lock()
	m.used--
	c.mu.Unlock()
}

// connect starts a master unless it is there. A master that ended has removed its socket.
func (c *carrier) connect(ctx context.Context, m *master) error {
	if _, err := os.Lstat(m.socket); err == nil {
		return nil
	}
	select {
	case <-c.dial:
		defer func() { c.dial <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := os.Lstat(m.socket); err == nil {
		return nil // another one made it meanwhile
	}
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return sandbox.ErrClosed
	}
	if err := c.knownHosts(); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	var errs output.Tail
	cmd := c.command(short, append(c.options(m, "yes"), "--", c.opts.Host, "true")...)
	cmd.Stderr = &errs
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case short.Err() != nil:
		return c.explain("timed out", "")
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	}
	return c.explain(errs.Text(), err.Error())
}

// knownHosts makes the directory of the file that the client writes.
func (c *carrier) knownHosts() error {
	if c.opts.KnownHosts == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.opts.KnownHosts), 0o700); err != nil {
		return fmt.Errorf("%w: known hosts of ssh: %w", sandbox.ErrUnavailable, err)
	}
	return nil
}

// explain makes an error of what the client said that tells what to do. otherwise is said when it said nothing.
func (c *carrier) explain(said, otherwise string) error {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(said, p) })
	}
	last := strings.TrimSpace(said[strings.LastIndexByte(strings.TrimRight(said, "\r\n"), '\n')+1:])
	if last == "" {
		last = otherwise
	}
	host := c.opts.Host
	switch {
	case has("HOST IDENTIFICATION HAS CHANGED"):
		file := c.opts.KnownHosts
		if file == "" {
			file = "~/.ssh/known_hosts"
		}
		return fmt.Errorf("%w: %s has another host key than before: it was set up again, or somebody is in between; "+
			"if you know why, remove its line with ssh-keygen -R %s -f %s", sandbox.ErrUnavailable, host, host, shell.Quote(file))
	case has("Host key verification failed"):
		return fmt.Errorf("%w: the host key of %s can't be verified: %s", sandbox.ErrUnavailable, host, last)
	case has("Permission denied", "Too many authentication failures"):
		return fmt.Errorf("%w: %s refuses us (%s): check terminal.ssh_user and terminal.ssh_key, and that the key needs no passphrase "+
			"or is in an agent", sandbox.ErrUnavailable, host, last)
	case has("Could not resolve", "Connection refused", "timed out", "No route to host", "unreachable", "Connection reset", "Connection closed", "not responding"):
		return fmt.Errorf("%w: %s can't be reached (%s): check terminal.ssh_host and terminal.ssh_port, and whether it runs", sandbox.ErrUnavailable, host, last)
	}
	return fmt.Errorf("%w: ssh to %s: %s", sandbox.ErrUnavailable, host, last)
}

// Close ends the masters and removes their sockets.
func (c *carrier) Close() error {
	c.mu.Lock()
	c.closed = true
	masters := c.masters
	c.mu.Unlock()
	<-c.dial // nobody connects any more
	defer func() { c.dial <- struct{}{} }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, m := range masters {
		if _, err := os.Lstat(m.socket); err == nil {
			_ = c.command(ctx, append(c.options(m, "no"), "-O", "exit", "--", c.opts.Host)...).Run()
		}
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("ssh sandbox: %w", err)
	}
	return nil
}
