package files

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"herald/tools"
)

// What may not be written, relative to a home directory. A directory covers everything below it.
var homeWriteDenied = []string{
	".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".config/gh", ".config/gcloud",
	".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials",
}

// What may not be written anywhere.
var systemWriteDenied = []string{"/etc/sudoers", "/etc/sudoers.d", "/etc/passwd", "/etc/shadow", "/etc/gshadow", "/etc/systemd"}

// What of a profile's home may not be written, and what may not be read. The database is more than one file.
var (
	profileWriteDenied = []string{
		".env", ".anthropic_oauth.json", "auth.json", "auth.lock", "cache/bws_cache.enc.json", "cache/bws_cache.json",
		"herald.db", "herald.db-wal", "herald.db-shm", "herald.db-journal", "herald.lock", "state.db", "sessions", "mcp-tokens", "pairing",
		"webhook_subscriptions.json", "auth/google_oauth.json",
	}
	profileReadDenied = []string{
		".env", ".anthropic_oauth.json", "auth.json", "auth.lock", "cache/bws_cache.enc.json", "cache/bws_cache.json",
		"herald.db", "herald.db-wal", "herald.db-shm", "herald.db-journal", "state.db", "mcp-tokens", "pairing",
		"webhook_subscriptions.json", "auth/google_oauth.json", "skills/.hub",
	}
)

// profileOwned are the directories that belong to one profile even where they lie beside the profiles.
var profileOwned = []string{"skills", "plugins", "cron", "memories"}

// secretEnv finds the environment files of projects; the examples beside them hold no secrets.
var secretEnv = regexp.MustCompile(`^\.env(rc|(\.(development|production|test|staging))?(\.local)?)?$`)

// processFiles are views of running processes, the daemon's environment among them.
var processFiles = regexp.MustCompile(`^/proc/(\d+|self|thread-self)(/|$)`)

// guard decides which paths a call may touch. It is made for one call, with every rule resolved through
// links, and asked with resolved paths alone.
type guard struct {
	deps      Deps
	home      string   // of the profile
	roots     []string // homes of profiles: this one's and the common one
	homes     []string // home directories of users
	denied    []string // for writing, resolved
	sshConfig []string
	safe      []string
}

func (f *Family) guard(ctx context.Context, p place) *guard {
	g := &guard{deps: f.deps}
	resolve := func(path string) []string {
		if path == "" {
			return nil
		}
		path = filepath.Clean(path)
		if real, err := p.env.RealPath(ctx, path); err == nil && real != path {
			return []string{path, real}
		}
		return []string{path}
	}
	if h := resolve(f.deps.Home); len(h) > 0 {
		g.home = h[len(h)-1]
	}
	g.roots = slices.Concat(resolve(f.deps.Home), resolve(f.deps.Root))
	g.homes = slices.Concat(resolve(p.env.Home()), resolve(f.deps.UserHome))
	for _, home := range g.homes {
		for _, rel := range homeWriteDenied {
			g.denied = append(g.denied, resolve(filepath.Join(home, rel))...)
		}
		g.sshConfig = append(g.sshConfig, resolve(filepath.Join(home, ".ssh", "config"))...)
	}
	for _, path := range systemWriteDenied {
		g.denied = append(g.denied, resolve(path)...)
	}
	for _, root := range f.deps.SafeRoots {
		g.safe = append(g.safe, resolve(root)...)
	}
	return g
}

// fold makes paths comparable where file systems usually ignore case.
func fold(path string) string {
	if runtime.GOOS == "darwin" {
		return strings.ToLower(path)
	}
	return path
}

// within reports whether path is one of dirs or inside one.
func within(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { _, ok := below(fold(d), fold(path)); return ok })
}

// device reports whether a path is one that must not be opened: reading it may block, never end, or show
// the memory and environment of a process.
func device(path string) bool {
	if rest, ok := strings.CutPrefix(path, "/dev/"); ok {
		return !strings.HasPrefix(rest, "shm/")
	}
	return path == "/dev" || path == "/proc/kcore" || path == "/proc/kmsg" || processFiles.MatchString(path)
}

// read returns why a resolved path may not be read, or "".
func (g *guard) read(real string, cross bool) string {
	if secretEnv.MatchString(fold(filepath.Base(real))) {
		return "it may hold secrets (environment file)"
	}
	for _, root := range g.roots {
		if rel, ok := g.profileRel(root, real); ok && within(rel, profileReadDenied) {
			return "it holds credentials or private data of the gateway"
		}
	}
	if g.foreign(real) && !(cross && g.deps.CrossProfile) {
		return "it belongs to another profile"
	}
	return ""
}

// write returns why a resolved path may not be written, or "". ask is true when a person may allow it.
func (g *guard) write(real string, cross bool) (why string, ask bool) {
	for _, root := range g.roots {
		if rel, ok := g.profileRel(root, real); ok && within(rel, profileWriteDenied) {
			return "it is private data of the gateway", false
		}
	}
	if (g.foreign(real) || g.shared(real)) && !(cross && g.deps.CrossProfile) {
		return "it belongs to another profile", false
	}
	if len(g.safe) > 0 && !within(real, g.safe) {
		return "it is outside of the directories that may be written (HERALD_WRITE_SAFE_ROOT)", false
	}
	for _, root := range g.roots {
		if rel, ok := g.profileRel(root, real); ok && fold(rel) == "config.yaml" {
			return "it is Herald's own configuration", true
		}
	}
	if slices.ContainsFunc(g.sshConfig, func(c string) bool { return fold(c) == fold(real) }) {
		return "it is the SSH configuration", true
	}
	if within(real, g.denied) {
		return "it is a protected system or credential file", false
	}
	return "", false
}

// profileRel returns a path relative to the profile's home that it lies in: the root itself, or a profile
// below it.
func (g *guard) profileRel(root, real string) (string, bool) {
	rel, ok := below(fold(root), fold(real))
	if !ok {
		return "", false
	}
	if rest, ok := strings.CutPrefix(rel, "profiles/"); ok {
		if _, inside, ok := strings.Cut(rest, "/"); ok {
			return inside, true
		}
	}
	return rel, true
}

// foreign reports whether a path is in the home of another profile.
func (g *guard) foreign(real string) bool {
	for _, root := range g.roots {
		rel, ok := below(fold(root), fold(real))
		if !ok {
			continue
		}
		rest, ok := strings.CutPrefix(rel, "profiles/")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		if filepath.Join(fold(root), "profiles", name) != fold(g.home) {
			return true
		}
	}
	return false
}

// shared reports whether a path is in the parts that the default profile has directly in the root, seen
// from another profile.
func (g *guard) shared(real string) bool {
	for _, root := range g.roots {
		if fold(root) == fold(g.home) || within(g.home, []string{real}) {
			continue
		}
		if _, inside := below(fold(g.home), fold(real)); inside {
			continue
		}
		if rel, ok := below(fold(root), fold(real)); ok && within(rel, profileOwned) {
			return true
		}
	}
	return false
}

// mayWrite applies the write rules, asking a person where that is foreseen.
func (f *Family) mayWrite(ctx context.Context, g *guard, call tools.Call, t target, cross bool) error {
	if device(t.abs) || device(t.real) {
		return errors.New(t.name + " is a device or a process file; it can't be written")
	}
	why, ask := g.write(t.real, cross)
	if why == "" {
		return nil
	}
	if ask && f.deps.Approve != nil && !call.Caller.Unattended {
		ok, err := f.deps.Approve(ctx, call, t.real, why)
		if err == nil && ok {
			return nil
		}
	}
	return errors.New("writing " + t.name + " is denied: " + why)
}

// mayRead applies the read rules.
func mayRead(g *guard, t target, cross bool) error {
	if device(t.abs) || device(t.real) {
		return errors.New(t.name + " is a device or a process file; it can't be read")
	}
	if why := g.read(t.real, cross); why != "" {
		return errors.New("reading " + t.name + " is denied: " + why)
	}
	return nil
}

func isNotExist(err error) bool   { return errors.Is(err, fs.ErrNotExist) }
func isPermission(err error) bool { return errors.Is(err, fs.ErrPermission) }
