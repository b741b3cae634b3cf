package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Defaults of Options, and the bounds of a git call's time.
const (
	DefaultMaxSnapshots = 20
	DefaultMaxTotal     = 500 << 20
	DefaultMaxFile      = 10 << 20
	DefaultTimeout      = 30 * time.Second
	MinTimeout          = 10 * time.Second
	MaxTimeout          = 60 * time.Second
	DefaultMaxEntries   = 50_000
)

// Options configure a Store.
type Options struct {
	// Dir is where everything is kept, such as <home>/checkpoints. It is made when the first picture is taken.
	Dir string
	// Enabled false makes every method do nothing.
	Enabled bool
	// MaxSnapshots is how many checkpoints of a directory are kept, at least 1; 0 takes the default.
	MaxSnapshots int
	// MaxTotal is the most bytes of the store after Prune; 0 is no cap.
	MaxTotal int64
	// MaxFile is the most bytes of a file that a checkpoint holds, inclusive; 0 or less is no cap.
	MaxFile int64
	// Timeout bounds one git call; 0 takes the default, others are brought into [MinTimeout, MaxTimeout].
	Timeout time.Duration
	// MaxEntries is the most files of a directory that is looked at; 0 takes the default.
	MaxEntries int
	// Home is the user's home directory, of which no picture is taken. Empty asks the system.
	Home string
	// Confine returns the directory that a container writes in and that holds an absolute path, empty for none. What is
	// read and written of such a path stays below that directory, whatever links the container makes, and no path above
	// it is ever looked at. nil: there are no containers.
	Confine func(path string) string
	Now     func() time.Time // nil: time.Now
	// Moment is called before and after everything that changes the disk, for tests that kill the process there; nil:
	// nothing.
	Moment func()
	Log    zerolog.Logger
}

// Store is the checkpoints of a profile. It is safe for concurrent use, and several processes may share its directory.
type Store struct {
	o    Options
	git  string // the program; empty: the store is off
	root string // the bare repository

	mu   sync.Mutex // one operation at a time in this process; the file lock keeps other processes out
	init bool
	held *os.File // the locked file, while an operation runs

	turns turns
	views views

	closing  sync.Mutex // guards closed and the beginning of operations
	closed   bool
	running  sync.WaitGroup
	life     context.Context // ends when the store is closed
	giveUp   context.CancelFunc
	realHome func() string
}

// The errors of this package.
var (
	// ErrOff says that checkpoints are switched off, or that git is not installed.
	ErrOff = errors.New("checkpoints are off")
	// ErrBusy says that another process works on the store.
	ErrBusy = errors.New("the checkpoint store is busy in another process; try again in a moment")
	// ErrNone says that a directory has no checkpoint.
	ErrNone = errors.New("there is no checkpoint")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("the checkpoint store is closed")
	// ErrRefused is wrapped by errors about a directory of which no picture is taken.
	ErrRefused = errors.New("no checkpoint is taken here")
)

// Open returns the store. Nothing is made on disk. Without git the store is off, which On tells.
func Open(o Options) *Store {
	if o.MaxSnapshots < 1 {
		o.MaxSnapshots = DefaultMaxSnapshots
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	o.Timeout = min(max(o.Timeout, MinTimeout), MaxTimeout)
	if o.MaxEntries <= 0 {
		o.MaxEntries = DefaultMaxEntries
	}
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Moment == nil {
		o.Moment = func() {}
	}
	s := &Store{o: o, root: filepath.Join(o.Dir, "store"), realHome: sync.OnceValue(func() string { return realDir(o.Home) })}
	s.life, s.giveUp = context.WithCancel(context.Background())
	if o.Enabled {
		s.git, _ = exec.LookPath("git")
	}
	return s
}

// Close ends what runs: a rollback that has begun to change files is brought to its end, everything else is given up,
// and no git process is left when it returns. Later operations fail with ErrClosed. An error is that of ctx, whose end
// gives up waiting.
func (s *Store) Close(ctx context.Context) error {
	s.closing.Lock()
	s.closed = true
	s.closing.Unlock()
	s.giveUp()
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a rollback is still under way: %w", ctx.Err())
	}
}

// begin counts an operation, whose context ends with the store.
func (s *Store) begin(ctx context.Context) (context.Context, func(), error) {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	s.running.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel(); s.running.Done() }, nil
}

// On reports whether pictures are taken.
func (s *Store) On() bool { return s.git != "" }

// Exceeds reports whether a file is over the size cap: strictly more bytes than it. What can't be looked at is not. It
// is the one predicate for taking and for restoring.
func (s *Store) Exceeds(path string) bool {
	if s.o.MaxFile <= 0 {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() > s.o.MaxFile
}

// Dir resolves a directory to the one that checkpoints are kept for, or says why there are none for it.
func (s *Store) Dir(dir string) (string, error) {
	named, err := filepath.Abs(dir)
	abs := named
	if err == nil {
		abs, err = filepath.EvalSymlinks(named)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if info, err := os.Lstat(abs); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%w: %s is no directory", ErrRefused, abs)
	}
	if root := s.confined(named); root != "" && !within(abs, root) {
		return "", fmt.Errorf("%w: %s leads out of the directory of its container", ErrRefused, dir)
	}
	switch {
	case abs == string(filepath.Separator):
		return "", fmt.Errorf("%w: %s is the whole machine", ErrRefused, abs)
	case abs == s.realHome():
		return "", fmt.Errorf("%w: %s is a home directory; work in a folder of it", ErrRefused, abs)
	case within(abs, s.o.Dir):
		return "", fmt.Errorf("%w: %s holds the checkpoints themselves", ErrRefused, abs)
	}
	return abs, nil
}

// confined returns the directory of a container that holds a path, without links; empty for none.
func (s *Store) confined(path string) string {
	if s.o.Confine == nil {
		return ""
	}
	root := s.o.Confine(path)
	if root == "" {
		return ""
	}
	return realDir(root)
}

// open opens a directory that Dir has returned. Below a container's directory it is opened from there, so that what the
// container puts in the place of a directory above it can't lead elsewhere.
func (s *Store) open(dir string) (*os.Root, error) {
	base := s.confined(dir)
	if base == "" || base == dir {
		return os.OpenRoot(dir)
	}
	rel, err := filepath.Rel(base, dir)
	if err != nil {
		return nil, err
	}
	outer, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer outer.Close()
	return outer.OpenRoot(rel)
}

// markers are what makes a directory the root of a project.
var markers = [...]string{".git", "pyproject.toml", "package.json", "Cargo.toml", "go.mod", "Makefile", "pom.xml", ".hg", "Gemfile"}

// RootFor returns the directory whose checkpoint covers a file: the nearest one that has checkpoints already, else the
// nearest ancestor with a project's marker below the home directory, else the file's own directory.
func (s *Store) RootFor(file string) string {
	dir := filepath.Dir(file)
	top := string(filepath.Separator) // nothing above it is looked at
	if s.o.Confine != nil {
		top = cmp.Or(s.o.Confine(dir), top)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if real, err := s.Dir(at); err == nil && s.known(real) {
			return real
		}
		if at == top || at == filepath.Dir(at) {
			break
		}
	}
	for at := dir; at != filepath.Dir(at) && within(at, top) && !within(s.o.Home, at); at = filepath.Dir(at) {
		for _, m := range markers {
			if _, err := os.Lstat(filepath.Join(at, m)); err == nil {
				return at
			}
		}
	}
	return dir
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && (len(rel) < 3 || rel[:3] != "../")
}

// locked runs fn with the store to itself: it waits at most wait for other processes. The context of fn also ends when
// the store is closed.
func (s *Store) locked(ctx context.Context, wait time.Duration, fn func(ctx context.Context) error) error {
	if !s.On() {
		return ErrOff
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s.mu.Lock()
	defer s.mu.Unlock()
	release, err := s.lock(ctx, wait)
	if err != nil {
		return err
	}
	defer release()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return fn(ctx)
}
