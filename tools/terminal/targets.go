package terminal

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// hasFlag looks for a short letter in any group of short options, or for a long name.
func hasFlag(args []string, short byte, long string) bool {
	for _, a := range args {
		a = plain(a)
		switch {
		case a == "--":
			return false
		case strings.HasPrefix(a, "--"):
			name, _, _ := strings.Cut(a, "=")
			if len(name) > 2 && strings.HasPrefix("--"+long, name) { // programs take the beginning of a name too
				return true
			}
		case strings.HasPrefix(a, "-") && short != 0 && strings.IndexByte(a, short) > 0:
			return true
		}
	}
	return false
}

// operands returns the arguments that are not options.
func operands(args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(a, "-") {
			out = append(out, a)
		}
	}
	return out
}

// systemDirs are what a machine does not live without.
var systemDirs = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/proc", "/root", "/sbin", "/sys", "/usr", "/var",
	"/usr/bin", "/usr/lib", "/usr/sbin", "/usr/share", "/var/lib", "/System", "/Library", "/Users", "/Applications",
}

// everything matches patterns that take all names of a directory.
var everything = regexp.MustCompile(`^(\.?[*?]+|\.?\[[^\]]*\][*?]*|\{[^}]*\*[^}]*\}|\.\?\?\*)$`)

// vital names what a target is when removing it must not happen, or "".
func (f floor) vital(target string) string {
	p := f.abs(target)
	dir, last := path.Split(p)
	if everything.MatchString(last) {
		p = path.Clean(dir)
	}
	switch {
	case p == "/":
		return "the root directory"
	case slices.Contains(systemDirs, p):
		return "the system directory " + p
	case f.Home != "" && p == path.Clean(f.Home):
		return "the home directory " + p
	}
	for _, d := range f.Protected {
		if d = path.Clean(d); d == p || strings.HasPrefix(d, p+"/") {
			return "the gateway's own data in " + d
		}
	}
	return ""
}

// abs resolves a word as the shell would: home, then the working directory. Quoted characters stay names.
func (f floor) abs(word string) string {
	for _, prefix := range []string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(word, prefix); ok && (rest == "" || rest[0] == '/') {
			return path.Join(f.Home, plain(rest))
		}
	}
	quotedGlob := strings.Contains(word, string(literal))
	p := plain(word)
	if !strings.HasPrefix(p, "/") {
		p = path.Join(f.Dir, p)
	}
	p = path.Clean(p)
	if quotedGlob && everything.MatchString(path.Base(p)) {
		p += "\x00" // a file whose name is a star
	}
	return p
}

var disk = regexp.MustCompile(`^/dev/(r?disk\d|disk/|[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|md\d|dm-\d|mapper/)`)

func isDisk(p string) bool { return disk.MatchString(path.Clean(p)) }

// forkBomb looks for a function that pipes into itself in the background. bare has no quoted text.
func forkBomb(bare string) bool {
	for at := 0; ; {
		i := strings.Index(bare[at:], "(){")
		if i < 0 {
			return false
		}
		i += at
		at = i + 3
		begin := i
		for begin > 0 && !strings.ContainsRune(";&|(){}", rune(bare[begin-1])) {
			begin--
		}
		name := strings.TrimPrefix(bare[begin:i], "function")
		body, _, _ := strings.Cut(bare[at:], "}")
		if name != "" && strings.Contains(body, name+"|"+name+"&") {
			return true
		}
	}
}
