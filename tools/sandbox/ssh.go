package sandbox

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
)

const (
	// sshConnect is how long a connection may take.
	sshConnect = 15 * time.Second
	// sshPersist is how long a connection that nobody uses stays open, also after the daemon was killed.
	sshPersist = 10 * time.Minute
	// sshSessions is how many programs run over one connection at a time; the usual server allows ten.
	sshSessions = 8
	// maxSocketPath is what fits into the address of a Unix socket on every system, without its final NUL; the client
	// appends sshSocketSuffix bytes while it makes one.
	maxSocketPath   = 103
	sshSocketSuffix = 17
)

// SSHOptions configure an environment on another host, reached with the OpenSSH client of this machine. The host must
// have sh and what busybox has; with bash commands get the state of a login shell.
type SSHOptions struct {
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
	// SpillDir, Passthrough, Deny, InitFiles and Window are as in LocalOptions.
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

// NewSSH makes the environment; the first command connects. Errors of its methods that wrap ErrUnavailable say whether
// the host is unreachable, refuses us, or is another one than before, and what to do.
func NewSSH(o SSHOptions) (Environment, error) {
	c, err := newSSHCarrier(o)
	if err != nil {
		return nil, err
	}
	return newRemote(c, remoteOptions{
		Dir: o.Dir, SpillDir: o.SpillDir, Window: o.Window, Passthrough: o.Passthrough, Deny: o.Deny, InitFiles: o.InitFiles, Env: o.Env,
		KeepJobs: o.KeepJobs, JobGrace: o.JobGrace, JobLog: o.JobLog,
	}), nil
}

// sshCarrier runs programs over shared connections: each has a master, a background process of the client that holds
// it, and a control socket by which other client processes open sessions in it.
type sshCarrier struct {
	opts   SSHOptions
	client string        // the program
	dir    string        // of the control sockets; owner-only
	dial   chan struct{} // holds a token while nobody connects: servers drop clients that connect in crowds

	mu      sync.Mutex
	closed  bool
	masters []*sshMaster
}

type sshMaster struct {
	socket string
	used   int // sessions; under sshCarrier.mu
}

func newSSHCarrier(o SSHOptions) (*sshCarrier, error) {
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
		return nil, fmt.Errorf("%w: the ssh program is not installed here; install the OpenSSH client", ErrUnavailable)
	}
	dir, err := socketDir(os.TempDir(), "/tmp")
	if err != nil {
		return nil, err
	}
	c := &sshCarrier{opts: o, client: client, dir: dir, dial: make(chan struct{}, 1)}
	c.dial <- struct{}{}
	return c, nil
}

// socketDir makes an owner-only directory whose sockets have names that are short enough, in the first of bases that
// is short enough itself.
func socketDir(bases ...string) (string, error) {
	removeLeftovers(time.Now())
	for _, base := range bases {
		dir, err := makePrivate(base)
		if err != nil {
			continue
		}
		if len(dir)+len("/000")+sshSocketSuffix <= maxSocketPath {
			return dir, nil
		}
		_ = os.Remove(dir)
	}
	return "", fmt.Errorf("ssh sandbox: no directory for the control socket: its path may have %d bytes, tried in %q", maxSocketPath, bases)
}

func (*sshCarrier) backend() string { return "ssh" }

// options are the arguments of the client that all its uses have in common.
func (c *sshCarrier) options(m *sshMaster, control string) []string {
	args := []string{"-T"}
	if c.opts.Config != "" {
		args = append(args, "-F", c.opts.Config)
	}
	set := func(name, value string) { args = append(args, "-o", name+"="+value) }
	set("BatchMode", "yes")
	set("LogLevel", "ERROR")
	set("ConnectTimeout", strconv.Itoa(int(sshConnect/time.Second)))
	set("ServerAliveInterval", "10") // a dead link is noticed after half a minute
	set("ServerAliveCountMax", "3")
	set("StrictHostKeyChecking", "accept-new")
	if c.opts.KnownHosts != "" {
		set("UserKnownHostsFile", sshWord(c.opts.KnownHosts))
	}
	for _, off := range []string{"ForwardAgent", "ForwardX11", "PermitLocalCommand"} {
		set(off, "no")
	}
	set("ClearAllForwardings", "yes")
	set("RequestTTY", "no")
	set("ControlMaster", control)
	set("ControlPath", sshWord(m.socket))
	set("ControlPersist", strconv.Itoa(int(sshPersist/time.Second)))
	if c.opts.Key != "" {
		set("IdentityFile", sshWord(c.opts.Key))
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

// sshWord quotes a file name for the client's configuration, where a percent sign begins a placeholder.
func sshWord(s string) string {
	s = strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`).Replace(s)
	return `"` + s + `"`
}

// command makes a run of the client. It has no terminal to ask on.
func (c *sshCarrier) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.client, args...)
	cmd.Env = environ(Scrub(os.Environ(), []string{"SSH_AUTH_SOCK", "KRB5CCNAME"}, c.opts.Deny))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	return cmd
}

// run implements carrier. What the program is and its variables go over its standard input, line by line, before the
// input of the program itself: an argument list has bounds, and can be read by others on both sides.
func (c *sshCarrier) run(ctx context.Context, argv []string, s streams) (int, error) {
	m, err := c.session(ctx)
	if err != nil {
		return -1, err
	}
	defer c.leave(m)
	word := randomID()
	prelude, err := sshPrelude(argv, s.env, word)
	if err != nil {
		return -1, err
	}
	cmd := c.command(ctx, append(c.options(m, "no"), "--", c.opts.Host, fmt.Sprintf(sshBoot, word))...)
	var errs tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = prelude, after(word, s.out), &errs
	if s.in != nil {
		cmd.Stdin = io.MultiReader(prelude, s.in)
	}
	if s.err != nil {
		cmd.Stderr = io.MultiWriter(&errs, after(word, s.err))
	}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return -1, ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() != sshFailed && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	case errors.As(err, &exit):
		return -1, c.explain(errs.line(), "the connection was lost")
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return -1, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return 0, nil
}

// sshFailed is the client's own exit code.
const sshFailed = 255

// sshBoot is what the user's login shell on the host runs, whichever it is: one line without quotes, backslashes and
// exclamation marks inside. It reads its script up to a line that is the word; a connection that breaks before runs
// nothing. A shell reads lines of a pipe byte by byte, so that the rest of the input is the program's. What comes
// before it says the word was printed by start files of the login shell.
const sshBoot = `exec sh -c 'n=$(echo; echo x) n=${n%%x} p=; while IFS= read -r l; do if [ "$l" = %[1]s ]; then echo %[1]s; echo %[1]s >&2; eval "$p"; exit 255; fi; p=$p$l$n; done; exit 255'`

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

// sshPrelude is the script that makes the host's shell the program.
func sshPrelude(argv []string, env map[string]string, word string) (io.Reader, error) {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if variable.MatchString(name) {
			fmt.Fprintf(&b, "export %s=%s\n", name, quote(env[name]))
		}
	}
	b.WriteString("cd /\nunset n p l\nexec")
	for _, a := range argv {
		b.WriteByte(' ')
		b.WriteString(quote(a))
	}
	if bytes.IndexByte(b.Bytes(), 0) >= 0 {
		return nil, errors.New("an argument or a variable contains a NUL byte")
	}
	fmt.Fprintf(&b, "\n%s\n", word)
	return &b, nil
}

// session takes a place in a connection, which is made where there is none.
func (c *sshCarrier) session(ctx context.Context) (*sshMaster, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	i := slices.IndexFunc(c.masters, func(m *sshMaster) bool { return m.used < sshSessions })
	if i < 0 {
		i = len(c.masters)
		c.masters = append(c.masters, &sshMaster{socket: filepath.Join(c.dir, strconv.Itoa(i))})
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

func (c *sshCarrier) leave(m *sshMaster) {
	c.mu.Lock()
	m.used--
	c.mu.Unlock()
}

// connect starts a master unless it is there. A master that ended has removed its socket.
func (c *sshCarrier) connect(ctx context.Context, m *sshMaster) error {
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
		return errClosed
	}
	if err := c.knownHosts(); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, 2*sshConnect)
	defer cancel()
	var errs tail
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
	return c.explain(errs.text(), err.Error())
}

// knownHosts makes the directory of the file that the client writes.
func (c *sshCarrier) knownHosts() error {
	if c.opts.KnownHosts == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.opts.KnownHosts), 0o700); err != nil {
		return fmt.Errorf("%w: known hosts of ssh: %w", ErrUnavailable, err)
	}
	return nil
}

// explain makes an error of what the client said that tells what to do. otherwise is said when it said nothing.
func (c *sshCarrier) explain(said, otherwise string) error {
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
		return fmt.Errorf("%w: %s has another host key than before: it was set up anew, or somebody is in between; "+
			"if you know why, remove its line with ssh-keygen -R %s -f %s", ErrUnavailable, host, host, quote(file))
	case has("Host key verification failed"):
		return fmt.Errorf("%w: the host key of %s can't be verified: %s", ErrUnavailable, host, last)
	case has("Permission denied", "Too many authentication failures"):
		return fmt.Errorf("%w: %s refuses us (%s): check terminal.ssh_user and terminal.ssh_key, and that the key needs no passphrase "+
			"or is in an agent", ErrUnavailable, host, last)
	case has("Could not resolve", "Connection refused", "timed out", "No route to host", "unreachable", "Connection reset", "Connection closed", "not responding"):
		return fmt.Errorf("%w: %s can't be reached (%s): check terminal.ssh_host and terminal.ssh_port, and whether it runs", ErrUnavailable, host, last)
	}
	return fmt.Errorf("%w: ssh to %s: %s", ErrUnavailable, host, last)
}

// close ends the masters and removes their sockets.
func (c *sshCarrier) close() error {
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
