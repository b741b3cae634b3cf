package files

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"herald/tools"
	"herald/tools/sandbox"
)

// Deps is what the tools need.
type Deps struct {
	// Environment returns where the caller's files are. It is asked for each call and must be cheap.
	Environment func(caller tools.Caller) (sandbox.Environment, error)
	// Home is the profile's home and Root the home of all profiles, both absolute; they are the same for
	// the default profile. Empty ones protect nothing.
	Home, Root string
	// UserHome is the home directory of the user the daemon runs as, when it is not that of commands.
	UserHome string
	// SafeRoots, when there are any, are the only places that may be written (see SplitSafeRoots).
	SafeRoots []string
	// CrossProfile lets the argument cross_profile open the files of other profiles. It is the operator's
	// choice and off by default: profiles are walls.
	CrossProfile bool
	// Approve asks a person for one write that is neither allowed nor forbidden (~/.ssh/config). nil, or
	// a caller that nobody attends, means no.
	Approve func(ctx context.Context, call tools.Call, path, reason string) (bool, error)
	// Now is the clock; nil takes time.Now.
	Now func() time.Time
}

// SplitSafeRoots reads HERALD_WRITE_SAFE_ROOT: directories joined as in PATH. Empty means no restriction; a
// relative one is an error, because it would mean another place for each session.
func SplitSafeRoots(value string) ([]string, error) {
	var roots []string
	for _, r := range filepath.SplitList(value) {
		if r == "" {
			continue
		}
		if !filepath.IsAbs(r) {
			return nil, fmt.Errorf("HERALD_WRITE_SAFE_ROOT: %q is not an absolute path; give absolute directories joined by %q", r, string(filepath.ListSeparator))
		}
		roots = append(roots, filepath.Clean(r))
	}
	return roots, nil
}

// Family is the four file tools and what they remember about each session. It is safe for concurrent use.
type Family struct {
	deps    Deps
	tracker *tracker
	writing sync.Mutex // one change at a time: a patch reads, computes and writes
}

// New makes the family.
func New(d Deps) *Family {
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Family{deps: d, tracker: newTracker()}
}

// Tools returns the tools of a new family, for callers that need nothing else of it.
func Tools(d Deps) []tools.Tool { return New(d).Tools() }

// Tools returns read_file, write_file, patch and search_files.
func (f *Family) Tools() []tools.Tool {
	return []tools.Tool{f.readTool(), f.writeTool(), f.patchTool(), f.searchTool()}
}

// Forget drops what is remembered about a session: after a compaction the model no longer has what it was
// shown, so that reading it again must answer with the content.
func (f *Family) Forget(session string) { f.tracker.forget(session) }

// Observe is for Bus.Subscribe: a call of another tool ends a run of repeated reads and searches.
func (f *Family) Observe(e tools.Event) {
	if e.Phase == tools.PhaseStarted && e.Call.Name != "read_file" && e.Call.Name != "search_files" {
		f.tracker.interrupt(e.Call.Caller.Session)
	}
}

// place is where one call looks for its files.
type place struct {
	env sandbox.Environment
	dir string // relative paths resolve against it
}

func (f *Family) place(caller tools.Caller) (place, error) {
	env, err := f.deps.Environment(caller)
	if err != nil {
		return place{}, fmt.Errorf("the place where files live can't be reached: %w", err)
	}
	dir, known := env.Dir(caller.Session)
	if !known && caller.Dir != "" {
		dir = caller.Dir
	}
	return place{env: env, dir: dir}, nil
}

// abs returns the clean absolute form of a path that the model wrote: ~ is home, relative ones start at
// the working directory.
func (p place) abs(path string) (string, error) {
	switch {
	case strings.TrimSpace(path) == "":
		return "", fmt.Errorf("path is empty; give the path of a file")
	case strings.ContainsRune(path, 0):
		return "", fmt.Errorf("path %q contains a NUL character", path)
	case path == "~" || strings.HasPrefix(path, "~/"):
		return filepath.Join(p.env.Home(), path[1:]), nil
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	}
	return filepath.Join(p.dir, path), nil
}

// target is a path as the model wrote it and where it leads.
type target struct {
	name string // as written
	abs  string // clean and absolute
	real string // with every link resolved; all access uses it
}

func (p place) target(ctx context.Context, path string) (target, error) {
	abs, err := p.abs(path)
	if err != nil {
		return target{}, err
	}
	real, err := p.env.RealPath(ctx, abs)
	if err != nil {
		return target{}, describe(path, err)
	}
	return target{name: path, abs: abs, real: real}, nil
}

// display is a path for results: relative to the working directory when it is below it.
func (p place) display(path string) string {
	if rel, ok := below(p.dir, path); ok && rel != "." {
		return rel
	}
	return path
}

// below returns path relative to dir when it is dir or inside it.
func below(dir, path string) (string, bool) {
	if dir == "" {
		return "", false
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return rel, true
}

// describe turns an error of the environment into a sentence about the path that was asked for.
func describe(path string, err error) error {
	switch {
	case isNotExist(err):
		return fmt.Errorf("%s does not exist", path)
	case isPermission(err):
		return fmt.Errorf("%s: permission denied", path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// decode reads the arguments of a call.
func decode(call tools.Call, into any) error {
	if err := json.Unmarshal(call.Args, into); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}

// fail is an error result that is not a breakdown of the tool.
func fail(err error) (tools.Result, error) { return tools.Failure("%s", err.Error()), nil }

// scopes is the Paths of a tool that touches one path.
func (f *Family) scopes(write bool, or string) func(tools.Call) ([]string, bool, bool) {
	return func(call tools.Call) ([]string, bool, bool) {
		var a struct {
			Path string `json:"path"`
		}
		if decode(call, &a) != nil {
			return nil, false, false
		}
		if a.Path == "" {
			a.Path = or
		}
		return f.absolute(call.Caller, []string{a.Path}, write)
	}
}

// absolute resolves paths for the planner; ok is false when one can't be told.
func (f *Family) absolute(caller tools.Caller, paths []string, write bool) ([]string, bool, bool) {
	p, err := f.place(caller)
	if err != nil || len(paths) == 0 {
		return nil, false, false
	}
	out := make([]string, 0, len(paths))
	for _, path := range paths {
		abs, err := p.abs(path)
		if err != nil {
			return nil, false, false
		}
		if real, err := p.env.RealPath(context.Background(), abs); err == nil {
			abs = real
		}
		out = append(out, abs)
	}
	return out, write, true
}

const newFileMode fs.FileMode = 0o666 // narrowed by the umask
