package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"herald/gateway/config/tree"
)

// Paths are the places in a profile's home. They are names only; nothing need exist.
type Paths struct {
	Home       string // the profile's home itself
	Config     string // config.yaml
	EnvFile    string // .env
	DB         string // herald.db
	Socket     string // the control socket
	Logs       string // directory
	Cache      string // directory of what can be made again
	Media      string // directory of files from and for chats, below Cache
	Spill      string // directory of long tool results, below Cache
	Memory     string // directory of the agent's notes
	Workspace  string // directory where the agent works by default
	Locales    string // directory of texts that replace the bundled ones
	Skills     string // directory
	Checkpoint string // directory of the checkpoints
	CronOutput string // directory
}

// PathsFor lays out a home.
func PathsFor(home string) Paths {
	in := func(parts ...string) string { return filepath.Join(append([]string{home}, parts...)...) }
	return Paths{Home: home, Config: in("config.yaml"), EnvFile: in(".env"), DB: in("herald.db"), Socket: in("herald.sock"),
		Logs: in("logs"), Cache: in("cache"), Media: in("cache", "media"), Spill: in("cache", "spillover"), Memory: in("memories"),
		Workspace: in("workspace"), Locales: in("locales"), Skills: in("skills"), Checkpoint: in("checkpoints"), CronOutput: in("cron", "output")}
}

// WorkDir returns the directory that commands start in: terminal.cwd, a relative one below the home.
func (c *Config) WorkDir(p Paths) string {
	cwd := c.Terminal.Cwd
	if filepath.IsAbs(cwd) {
		return cwd
	}
	return filepath.Join(p.Home, cwd)
}

// DefaultProfile is the profile whose home is the main home itself.
const DefaultProfile = "default"

var profileName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// ValidProfile returns nil when name may name a profile: 1 to 64 of a-z, 0-9, "_" and "-", the first a letter or digit.
func ValidProfile(name string) error {
	if !profileName.MatchString(name) {
		return fmt.Errorf("profile %s: want 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit", tree.Quote(name))
	}
	return nil
}

// ResolveHome returns the absolute home of a profile. The main home is the flag's value, else HERALD_HOME in the
// environment, else ~/.herald; a profile other than "" and "default" lives in profiles/<name> below it.
func ResolveHome(flag, profile string, environ []string) (string, error) {
	home := flag
	if home == "" {
		home = lookup(environ, "HERALD_HOME")
	}
	user := lookup(environ, "HOME")
	if home == "" || home == "~" || strings.HasPrefix(home, "~/") {
		if user == "" {
			return "", errors.New("no home: neither HERALD_HOME nor HOME is set; set HERALD_HOME to the directory for Herald's data")
		}
		if home == "" {
			home = "~/.herald"
		}
		home = filepath.Join(user, strings.TrimPrefix(home, "~"))
	}
	if strings.ContainsRune(home, 0) {
		return "", fmt.Errorf("home %s: holds a zero byte", tree.Quote(home))
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return "", fmt.Errorf("home %s: %w", home, err)
	}
	if profile == "" || profile == DefaultProfile {
		return home, nil
	}
	if err := ValidProfile(profile); err != nil {
		return "", err
	}
	return filepath.Join(home, "profiles", profile), nil
}

func lookup(environ []string, name string) string {
	value := ""
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// OpenHome makes the home (mode 0700) where it is missing, and checks that it can be read and written. An error names
// path, mode and owner and says what to do.
func OpenHome(home string) (Paths, error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return Paths{}, fmt.Errorf(
			"home %s cannot be made: %w; %s; make it by hand, or set HERALD_HOME to another place",
			home, tree.BareError(err), tree.Ownership(existingParent(home)))
	}
	info, err := os.Stat(home)
	switch {
	case err != nil:
		return Paths{}, fmt.Errorf("home %s cannot be read: %w; %s", home, tree.BareError(err), tree.Ownership(home))
	case !info.IsDir():
		return Paths{}, fmt.Errorf("home %s is no directory; move it away, or set HERALD_HOME to another place", home)
	}
	if _, err := os.ReadDir(home); err != nil {
		return Paths{}, fmt.Errorf(
			"home %s cannot be read: %w; %s; give yourself access with chmod u+rwx, or set HERALD_HOME to another place",
			home, tree.BareError(err), tree.Ownership(home))
	}
	f, err := os.CreateTemp(home, ".writable-*")
	if err != nil {
		return Paths{}, fmt.Errorf(
			"home %s cannot be written: %w; %s; give yourself access with chmod u+rwx, free some space, or set HERALD_HOME "+
				"to another place", home, tree.BareError(err), tree.Ownership(home))
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	return PathsFor(home), nil
}

// existingParent is the nearest directory above that is there.
func existingParent(path string) string {
	for {
		if _, err := os.Lstat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}
