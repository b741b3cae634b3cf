package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"herald/tools/sandbox"
	"herald/tools/sandbox/output"
)

// The scripts take every name as an argument, never as text of the script, and names are absolute, so that none is
// taken for an option. They need sh, stat -c, find, cat, wc, mv, mkdir, chmod, rm and readlink of coreutils or busybox.

// statFormat is what parseInfo reads: type and mode in hex, size, time in seconds, time with its fraction.
const statFormat = `'%f %s %Y %y'`

// call runs a script to its end and returns what it printed. name is the file that its errors are about.
func (r *Environment) call(ctx context.Context, op, name, script string, in io.Reader, args ...string) ([]byte, error) {
	var out output.Tail
	if err := r.stream(ctx, op, name, script, in, &out, args...); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// stream is call with a writer for the output.
func (r *Environment) stream(ctx context.Context, op, name, script string, in io.Reader, out io.Writer, args ...string) error {
	for _, a := range append([]string{name}, args...) {
		if strings.ContainsRune(a, 0) {
			return &fs.PathError{Op: op, Path: name, Err: syscall.EINVAL}
		}
	}
	if !path.IsAbs(name) {
		return fmt.Errorf("path %q is not absolute", name)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var errs output.Tail
	code, err := r.carrier.Run(ctx, scriptArgs(script, append([]string{name}, args...)),
		Streams{In: in, Out: out, Err: &errs, Env: map[string]string{"LC_ALL": "C"}})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case code != 0:
		return &fs.PathError{Op: op, Path: name, Err: scriptError(errs.Line(), code)}
	}
	return nil
}

// decodeScript makes the arguments of what scriptArgs wrote.
const decodeScript = `n=$#
while [ $n -gt 0 ]; do
	v=$(printf '%b_' "$1")
	shift
	set -- "$@" "${v%_}"
	n=$((n - 1))
done
`

// scriptArgs are the arguments that make sh run a script. Not every carrier takes an argument that is not UTF-8 (an
// engine reads JSON), so where one is not, all are written with escapes, and the script begins with taking them back.
func scriptArgs(script string, args []string) []string {
	if slices.IndexFunc(args, func(a string) bool { return !utf8.ValidString(a) }) < 0 {
		return append([]string{"sh", "-c", script, "sh"}, args...)
	}
	argv := []string{"sh", "-c", decodeScript + script, "sh"}
	for _, a := range args {
		var b strings.Builder
		for i := range len(a) {
			if c := a[i]; c == '\\' || c >= utf8.RuneSelf {
				fmt.Fprintf(&b, `\0%03o`, c)
			} else {
				b.WriteByte(c)
			}
		}
		argv = append(argv, b.String())
	}
	return argv
}

// messages are the texts of the errors of system calls, as programs of the other side end their complaints with in the C
// locale. A name in the middle of a complaint that looks like one does not count.
var messages = []struct {
	text string
	err  error
}{
	{"No such file or directory", syscall.ENOENT}, {"nonexistent directory", syscall.ENOENT}, {"Directory nonexistent", syscall.ENOENT},
	{"Permission denied", syscall.EACCES}, {"Operation not permitted", syscall.EPERM},
	{"File exists", syscall.EEXIST}, {"Not a directory", syscall.ENOTDIR}, {"Is a directory", syscall.EISDIR},
	{"Directory not empty", syscall.ENOTEMPTY}, {"Read-only file system", syscall.EROFS},
	{"No space left on device", syscall.ENOSPC}, {"File name too long", syscall.ENAMETOOLONG},
	{"Too many levels of symbolic links", syscall.ELOOP}, {"Symbolic link loop", syscall.ELOOP},
	{"Disk quota exceeded", syscall.EDQUOT}, {"Invalid argument", syscall.EINVAL},
	{"Not a regular file", sandbox.ErrNotRegular},
}

// scriptError makes an error of the last line that a script printed.
func scriptError(line string, code int) error {
	for _, m := range messages {
		if strings.HasSuffix(line, m.text) {
			return m.err
		}
	}
	if line == "" {
		return fmt.Errorf("the script ended with code %d", code)
	}
	return errors.New(line)
}

// parseInfo reads a line of statFormat.
func parseInfo(line, name string) (sandbox.FileInfo, error) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return sandbox.FileInfo{}, fmt.Errorf("stat says %q", line)
	}
	raw, err1 := strconv.ParseUint(f[0], 16, 32)
	size, err2 := strconv.ParseInt(f[1], 10, 64)
	sec, err3 := strconv.ParseInt(f[2], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return sandbox.FileInfo{}, fmt.Errorf("stat says %q: %w", line, err)
	}
	var nsec int64
	if len(f) > 4 {
		if _, frac, ok := strings.Cut(f[4], "."); ok {
			nsec, _ = strconv.ParseInt((frac + "000000000")[:9], 10, 64)
		}
	}
	return sandbox.FileInfo{Name: name, Size: size, Mode: goMode(uint32(raw)), ModTime: time.Unix(sec, nsec)}, nil
}

// goMode turns st_mode of Linux into Go's.
func goMode(raw uint32) fs.FileMode {
	m := fs.FileMode(raw & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if raw&bit != 0 {
			m |= flag
		}
	}
	switch raw & 0o170000 {
	case 0o040000:
		m |= fs.ModeDir
	case 0o120000:
		m |= fs.ModeSymlink
	case 0o010000:
		m |= fs.ModeNamedPipe
	case 0o140000:
		m |= fs.ModeSocket
	case 0o020000:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case 0o060000:
		m |= fs.ModeDevice
	case 0o100000:
	default:
		m |= fs.ModeIrregular
	}
	return m
}

// octal is mode as chmod takes it.
func octal(mode fs.FileMode) string {
	n := uint32(mode.Perm())
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&flag != 0 {
			n |= bit
		}
	}
	return fmt.Sprintf("%04o", n)
}

// Stat implements Files.
func (r *Environment) Stat(ctx context.Context, name string) (sandbox.FileInfo, error) {
	return r.stat(ctx, name, `stat -L -c `+statFormat+` -- "$1"`)
}

// Lstat implements Files.
func (r *Environment) Lstat(ctx context.Context, name string) (sandbox.FileInfo, error) {
	return r.stat(ctx, name, `stat -c `+statFormat+` -- "$1"`)
}

func (r *Environment) stat(ctx context.Context, name, script string) (sandbox.FileInfo, error) {
	out, err := r.call(ctx, "stat", name, script, nil)
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	return parseInfo(string(out), path.Base(name))
}

// realPathScript walks the components of a cleaned path and follows every link, also one that points to nothing.
const realPathScript = `fail() { printf '%s\n' "$1" >&2; exit 1; }
rest=${1#/} cur= links=0 end=x
while [ -n "$rest" ]; do
	case $rest in
	*/*) part=${rest%%/*} rest=${rest#*/} ;;
	*) part=$rest rest= ;;
	esac
	case $part in
	'' | .) continue ;;
	..) cur=${cur%/*}; continue ;;
	esac
	next=$cur/$part
	if [ -L "$next" ]; then
		links=$((links + 1))
		[ $links -le 40 ] || fail 'Too many levels of symbolic links'
		to=$(readlink -- "$next" && printf x) || fail 'Permission denied'
		to=${to%"$end"}
		to=${to%?}
		case $to in /*) cur= ;; esac
		rest=$to/$rest
	else
		if ! [ -e "$next" ]; then
			if [ -d "${cur:-/}" ]; then
				[ -x "${cur:-/}" ] || fail 'Permission denied'
			elif [ -e "$cur" ]; then
				fail 'Not a directory'
			fi
		fi
		cur=$next
	fi
done
printf '%s' "${cur:-/}"
`

// RealPath implements Files.
func (r *Environment) RealPath(ctx context.Context, name string) (string, error) {
	if path.IsAbs(name) {
		name = path.Clean(name)
	}
	out, err := r.call(ctx, "resolve", name, realPathScript, nil)
	return string(out), err
}

// listScript prints for each entry its line of statFormat, " ./", the name and "/", which no name contains.
const listScript = `fail() { printf '%s\n' "$1" >&2; exit 1; }
stat -L -c %f -- "$1" >/dev/null || exit 1
[ -d "$1" ] || fail 'Not a directory'
[ -r "$1" ] && cd "$1" 2>/dev/null || fail 'Permission denied'
find . ! -name . -prune -exec stat -c '%f %s %Y %y %n/' -- {} + 2>/dev/null
exit 0
`

// List implements Files.
func (r *Environment) List(ctx context.Context, dir string) ([]sandbox.FileInfo, error) {
	out, err := r.call(ctx, "list", dir, listScript, nil)
	if err != nil {
		return nil, err
	}
	infos := []sandbox.FileInfo{}
	for rest := string(out); rest != ""; {
		line, after, ok1 := strings.Cut(rest, " ./")
		name, next, ok2 := strings.Cut(after, "/\n")
		if !ok1 || !ok2 {
			return nil, &fs.PathError{Op: "list", Path: dir, Err: errors.New("the listing is cut off")}
		}
		i, err := parseInfo(line, name)
		if err != nil {
			return nil, &fs.PathError{Op: "list", Path: dir, Err: err}
		}
		infos, rest = append(infos, i), next
	}
	slices.SortFunc(infos, func(a, b sandbox.FileInfo) int { return cmp.Compare(a.Name, b.Name) })
	return infos, nil
}

// readScript prints the size and a newline, and then the file. It looks at what it opened: a name that became a link
// or another file meanwhile is refused.
const readScript = `fail() { printf '%s\n' "$1" >&2; exit 1; }
is=$(stat -c '%d:%i %s' -- "$1") || exit 1
[ -f "$1" ] && [ ! -L "$1" ] || fail 'Not a regular file'
[ -r "$1" ] || fail 'Permission denied'
exec 3<"$1" || exit 1
if opened=$(stat -L -c '%d:%i' /proc/self/fd/3 2>/dev/null); then
	[ "$opened" = "${is%% *}" ] || fail 'Not a regular file'
fi
printf '%s\n' "${is#* }"
exec cat <&3
`

// Open implements Files.
func (r *Environment) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	f, _, err := r.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// open returns the file and its size as the other side says it.
func (r *Environment) open(ctx context.Context, name string) (*file, int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	pr, pw := io.Pipe()
	f := &file{PipeReader: pr, cancel: cancel, over: make(chan struct{})}
	ok := r.spawn(func() {
		defer close(f.over)
		err := r.stream(ctx, "open", name, readScript, nil, pw)
		_ = pw.CloseWithError(err) // nil is the end of the file
	})
	if !ok {
		cancel()
		return nil, 0, sandbox.ErrClosed
	}
	// A byte at a time, so that nothing of the file is taken.
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(pr, b); err != nil {
			f.Close()
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: the other side says nothing of %s", sandbox.ErrUnavailable, name)
			}
			return nil, 0, err
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	size, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		f.Close()
		return nil, 0, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f, size, nil
}

// file reads a file of the other side while it comes.
type file struct {
	*io.PipeReader
	cancel context.CancelFunc
	over   chan struct{}
}

// Close drops the connection.
func (f *file) Close() error {
	f.cancel()
	_ = f.PipeReader.Close()
	<-f.over
	return nil
}

// ReadFile implements Files.
func (r *Environment) ReadFile(ctx context.Context, name string, max int64) ([]byte, error) {
	f, size, err := r.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tooLarge := func(size int64) error {
		return fmt.Errorf("%s: %w: %d bytes, at most %d are read", name, sandbox.ErrTooLarge, size, max)
	}
	if size > max {
		return nil, tooLarge(size)
	}
	// The size is a hint: files of /proc say 0, and others may grow meanwhile.
	buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := buf.ReadFrom(io.LimitReader(f, max+1)); err != nil {
		return nil, err
	}
	if n := int64(buf.Len()); n > max {
		return nil, tooLarge(n)
	}
	return buf.Bytes(), nil
}

// writeScript writes a temporary file beside the target and moves it into place. A connection that breaks ends its
// input early; the size tells, and then the old file stays.
const writeScript = `fail() { printf '%s\n' "$1" >&2; exit 1; }
old=
if [ -e "$1" ] || [ -L "$1" ]; then
	[ -f "$1" ] && [ ! -L "$1" ] || fail 'Not a regular file'
	old=$(stat -c '%u:%g %a' -- "$1") || exit 1
else
	stat -c %f -- "${1%/*}/." >/dev/null || exit 1
fi
new=$(printf '%o' $((0$4 & ~0$(umask))))
umask 077
trap 'rm -f -- "$2"' EXIT
trap 'exit 1' HUP INT TERM PIPE
( set -C && : >"$2" ) || exit 1
cat >"$2" || exit 1
[ "$(($(wc -c <"$2")))" = "$3" ] || fail 'the connection broke while the file was sent'
if [ -n "$old" ]; then
	chown -- "${old%% *}" "$2" 2>/dev/null
	chmod -- "${old#* }" "$2" || exit 1
else
	chmod -- "$new" "$2" || exit 1
fi
dd if=/dev/null of="$2" conv=notrunc,fsync 2>/dev/null
mv -fT -- "$2" "$1" || exit 1
trap - EXIT
`

// WriteFile implements Files. The new bytes are on disk before the name points to them.
func (r *Environment) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	dir := path.Dir(name)
	if strings.HasSuffix(name, "/") || name == "" {
		return &fs.PathError{Op: "write", Path: name, Err: sandbox.ErrNotRegular}
	}
	tmp := path.Join(dir, ".herald-"+sandbox.NewID()+".tmp")
	_, err := r.call(ctx, "write", name, writeScript, bytes.NewReader(data), tmp, strconv.Itoa(len(data)), octal(mode.Perm()))
	return err
}

// MkdirAll implements Files.
func (r *Environment) MkdirAll(ctx context.Context, dir string, mode fs.FileMode) error {
	const script = `[ -d "$1" ] && exit 0
umask "$(printf '%04o' $((0$(umask) | (0777 & ~0$2))))" && mkdir -p -- "$1"`
	_, err := r.call(ctx, "mkdir", dir, script, nil, octal(mode.Perm()))
	return err
}

// Chmod implements Files.
func (r *Environment) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	_, err := r.call(ctx, "chmod", name, `chmod -- "$2" "$1"`, nil, octal(mode))
	return err
}

// Remove implements Files.
func (r *Environment) Remove(ctx context.Context, name string) error {
	const script = `if [ -d "$1" ] && [ ! -L "$1" ]; then rmdir -- "$1"; else rm -- "$1"; fi`
	_, err := r.call(ctx, "remove", name, script, nil)
	return err
}

// Rename implements Files. The check and the move are two steps: two writers of the same new name at the same moment
// are not told apart.
func (r *Environment) Rename(ctx context.Context, from, to string) error {
	const script = `if [ -e "$2" ] || [ -L "$2" ]; then
	printf 'File exists\n' >&2
	exit 1
fi
stat -c %f -- "$1" >/dev/null && mv -nT -- "$1" "$2" || exit 1
[ -e "$1" ] || [ -L "$1" ] || exit 0
printf 'File exists\n' >&2
exit 1`
	if !path.IsAbs(to) {
		return fmt.Errorf("path %q is not absolute", to)
	}
	_, err := r.call(ctx, "rename", from, script, nil, to)
	return err
}
