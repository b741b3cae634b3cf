package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
	"herald/sessions"
	"herald/tools/sandbox"
	"herald/tools/sandbox/mounts"
	"herald/tools/spill"
)

// CourierOptions configure a Courier. All functions are needed.
type CourierOptions struct {
	// Place returns where the commands of a conversation run.
	Place func(of sessions.Key) (sandbox.Environment, error)
	// Layouts are the mounts of all containers that may have the conversation's files (see docker.Layouts).
	Layouts func(of sessions.Key) []mounts.Table
	// Denied reports files of this machine that never leave, also when a container sees them.
	Denied func(host string) bool
	// Allowed reports files of this machine that may leave though the agent works elsewhere: Herald's own cache, and what
	// the operator trusts.
	Allowed func(host string) bool
	// Dir is the directory of the copies. It is made, for this user alone.
	Dir string
	// MaxFile and MaxTotal are the most bytes of one copy and of all of them; 0 takes the defaults. Copies that may still
	// wait to be sent stay over MaxTotal too.
	MaxFile, MaxTotal int64
	Now               func() time.Time
	Log               zerolog.Logger
}

// Courier brings files that were made in a sandbox to where the platforms can read them: a private directory of the
// cache. The copy is what is checked and what is sent; a container may change its own file at any moment. Credentials
// stay where they are, and nothing outside of the mounts is read by a link that a container made. It knows nothing of
// messages and platforms: it takes a path and returns one. It is safe for concurrent use.
type Courier struct {
	o CourierOptions

	mu   sync.Mutex
	told map[string]bool // paths whose failure was logged
}

// NewCourier returns a courier. Nothing is made on disk.
func NewCourier(o CourierOptions) *Courier {
	o.MaxFile, o.MaxTotal = cmp.Or(o.MaxFile, DefaultMaxFile), cmp.Or(o.MaxTotal, DefaultMaxTotal)
	return &Courier{o: o}
}

// Courier makes the courier of the profile; allowed are further directories of this machine whose files may leave.
func (w *Workspace) Courier(allowed func() []string) *Courier {
	s := w.set
	sandboxes := s.sandboxDir()
	return NewCourier(CourierOptions{
		Place:   func(of sessions.Key) (sandbox.Environment, error) { return w.Present(string(of)), nil },
		Layouts: s.Layouts,
		Denied: func(host string) bool {
			if _, own := inside(host, sandboxes); own {
				return false // the mounts refuse the credentials there
			}
			return s.Protected(host)
		},
		Allowed: func(host string) bool {
			for _, dir := range append([]string{s.Paths.Media}, allowed()...) {
				if _, ok := inside(host, dir); ok {
					return true
				}
			}
			return false
		},
		Dir: filepath.Join(s.Paths.Media, "out"), Now: s.Now, Log: s.Log,
	})
}

// Defaults of CourierOptions.
const (
	DefaultMaxFile  = 256 << 20
	DefaultMaxTotal = 1 << 30
)

// How old copies are when they may go for the room of a new one, and when they go in any case: the outbox has given up long
// before.
const (
	keepFor = 24 * time.Hour
	dropAt  = 7 * 24 * time.Hour
)

// maxTold is how many paths are remembered.
const maxTold = 1000

// errNotFound is for people.
var errNotFound = errors.New("there is no such file")

// Resolve returns where a file that the conversation's tools named is on this machine: a private copy of what is in the
// sandbox, or the name itself where the tools run on this machine. The mounts of the running environment are asked first,
// then every layout, then the environment itself. An error tells people why there is none; the reasons are logged once for
// a path.
func (c *Courier) Resolve(ctx context.Context, of sessions.Key, name string) (string, error) {
	env, err := c.o.Place(of)
	if err != nil {
		return "", errors.New("the place where it was made can't be reached")
	}
	backend := env.Backend()
	if backend == "local" {
		return name, nil
	}
	layouts := c.tables(env, of)
	if backend == "auto" && len(layouts) == 0 {
		return name, nil // nothing was ever run elsewhere
	}
	if !path.IsAbs(name) {
		return "", errors.New("the path is not absolute")
	}
	var reasons []string
	for _, m := range layouts {
		host, err := c.take(m, name)
		switch {
		case err == nil:
			return host, nil
		case errors.Is(err, mounts.ErrCredentials), errors.Is(err, errRefused):
			return "", errors.New("this file is protected")
		case errors.Is(err, errTooBig), errors.Is(err, sandbox.ErrNotRegular):
			return "", c.forPeople(err)
		}
		reasons = append(reasons, err.Error())
	}
	if backend != "auto" { // with auto it is decided already
		host, err := c.fetch(ctx, env, name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, sandbox.ErrUnavailable) {
			return host, c.forPeople(err)
		}
		reasons = append(reasons, err.Error())
	}
	if c.o.Allowed(name) {
		return name, nil
	}
	c.tell(name, reasons)
	return "", errNotFound
}

// tables are the mounts to look through: those of the running environment, then every layout.
func (c *Courier) tables(env sandbox.Environment, of sessions.Key) []mounts.Table {
	var tables []mounts.Table
	if m, ok := env.(interface{ Mounts() mounts.Table }); ok {
		tables = append(tables, m.Mounts())
	}
	return append(tables, c.o.Layouts(of)...)
}

var (
	errRefused = errors.New("the file is protected on this machine")
	errTooBig  = errors.New("the file is too large")
)

func (c *Courier) forPeople(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTooBig):
		return fmt.Errorf("it has more than %d bytes", c.o.MaxFile)
	case errors.Is(err, sandbox.ErrNotRegular):
		return errors.New("it is not a regular file")
	case errors.Is(err, mounts.ErrCredentials), errors.Is(err, errRefused):
		return errors.New("this file is protected")
	case errors.Is(err, fs.ErrNotExist):
		return errNotFound
	}
	return errors.New("the file can't be read")
}

// take copies a file that is on this machine by a mount.
func (c *Courier) take(m mounts.Table, name string) (string, error) {
	host, err := m.Resolve(name)
	if err != nil {
		return "", err
	}
	if c.o.Denied(host) {
		return "", errRefused
	}
	f, err := m.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > c.o.MaxFile {
		return "", errTooBig
	}
	return c.keep(f, name)
}

// fetch copies a file through the environment that has it.
func (c *Courier) fetch(ctx context.Context, env sandbox.Environment, name string) (string, error) {
	real, err := env.RealPath(ctx, path.Clean(name))
	if err != nil {
		return "", err
	}
	if mounts.HoldsCredentials(env.Home(), path.Clean(name)) || mounts.HoldsCredentials(env.Home(), real) || system(real) {
		return "", mounts.ErrCredentials
	}
	f, err := env.Open(ctx, real)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return c.keep(f, name)
}

// system reports the places of another machine that hold its secrets and its devices.
func system(p string) bool {
	for _, dir := range []string{"/etc", "/proc", "/sys", "/dev"} {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// keep writes a copy, in its own directory so that the file has the name that people see.
func (c *Courier) keep(r io.Reader, name string) (string, error) {
	if err := spill.EnsureDir(c.o.Dir, true); err != nil {
		return "", err
	}
	c.makeRoom()
	var word [8]byte
	_, _ = rand.Read(word[:]) // never fails
	dir := filepath.Join(c.o.Dir, hex.EncodeToString(word[:]))
	if err := spill.EnsureDir(dir, true); err != nil {
		return "", err
	}
	to := filepath.Join(dir, platforms.SafeName(path.Base(name)))
	f, err := spill.OpenExclusive(to, true, false)
	if err == nil {
		var n int64
		n, err = io.Copy(f, io.LimitReader(r, c.o.MaxFile+1))
		if err == nil && n > c.o.MaxFile {
			err = errTooBig
		}
		if err == nil {
			err = f.Sync() // a row of the outbox names it
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	return to, nil
}

// copied is one copy.
type copied struct {
	dir  string
	size int64
	at   time.Time
}

func (c *Courier) copies() (all []copied, total int64) {
	entries, err := os.ReadDir(c.o.Dir)
	if err != nil {
		return nil, 0
	}
	for _, e := range entries {
		dir := filepath.Join(c.o.Dir, e.Name())
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 {
			continue
		}
		if info, err := files[0].Info(); err == nil {
			all, total = append(all, copied{dir, info.Size(), info.ModTime()}), total+info.Size()
		}
	}
	slices.SortFunc(all, func(a, b copied) int { return a.at.Compare(b.at) })
	return all, total
}

// makeRoom drops the oldest copies while all together are too large, but none that may still be sent.
func (c *Courier) makeRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, total := c.copies()
	for _, one := range all {
		age := c.o.Now().Sub(one.at)
		if age < keepFor || total <= c.o.MaxTotal && age < dropAt {
			continue
		}
		if os.RemoveAll(one.dir) == nil {
			total -= one.size
		}
	}
}

// tell logs once for each path why it was not found.
func (c *Courier) tell(name string, reasons []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil || len(c.told) >= maxTold {
		c.told = map[string]bool{}
	}
	if c.told[name] {
		return
	}
	c.told[name] = true
	if len(reasons) == 0 {
		reasons = []string{"there are no mounts"}
	}
	c.o.Log.Warn().Str("path", name).Strs("because", slices.Compact(reasons)).Msg("a file that the agent named is not in its sandbox")
}
