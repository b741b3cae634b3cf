package terminal

import (
	"path"
	"slices"
	"strings"
)

// files are writes to files that the machine, logins or Herald depend on.
func (d *dangers) files(s step) {
	targets := slices.Clone(s.writes)
	if len(s.argv) > 0 {
		targets = append(targets, written(s)...)
	}
	for _, t := range targets {
		d.target(s, t)
	}
}

// written returns the files that a command's arguments tell it to change.
func written(s step) []string {
	args := s.argv[1:]
	ops := operands(args)
	last := func() []string {
		out := valueOf(args, "-t", "--target-directory")
		if len(ops) > 1 {
			out = append(out, ops[len(ops)-1])
		}
		return out
	}
	switch s.name {
	case "tee", "rm", "unlink", "shred", "truncate", "chmod", "chown", "chgrp", "touch", "mkdir", "rmdir", "chattr", "setfacl", "visudo", "ed", "ex", "vi", "vim", "nano", "emacs":
		return ops
	case "mv":
		return append(slices.Clone(ops), valueOf(args, "-t", "--target-directory")...)
	case "cp", "install", "ln", "rsync", "scp", "sftp":
		return last()
	case "dd":
		for _, a := range args {
			if of, ok := strings.CutPrefix(a, "of="); ok {
				return []string{of}
			}
		}
	case "sed", "perl", "gsed", "ruby":
		if slices.ContainsFunc(args, func(a string) bool {
			a = plain(a)
			return a == "-i" || strings.HasPrefix(a, "--in-place") || inPlace(a)
		}) {
			return ops
		}
	case "patch":
		return append(slices.Clone(ops), valueOf(args, "-o", "--output", "-d", "--directory")...)
	case "curl", "wget", "aria2c", "sort", "openssl", "ssh-keygen", "gpg":
		return valueOf(args, "-o", "--output", "-O", "--output-document", "--output-dir", "-out", "-P", "-f", "-d")
	case "tar", "bsdtar":
		return valueOf(args, "-C", "--directory")
	case "unzip":
		return valueOf(args, "-d")
	case "crontab":
		return nil
	case "git":
		return valueOf(args, "-o", "--output")
	}
	return nil
}

// inPlace finds -i among short options of sed and perl (-pi, -i.bak, -ni).
func inPlace(a string) bool {
	if !strings.HasPrefix(a, "-") || strings.HasPrefix(a, "--") {
		return false
	}
	i := strings.IndexByte(a, 'i')
	return i > 0 && strings.Trim(a[1:i], "pnlErsuz0") == ""
}

// valueOf returns the values of options, written "-t value", "--name value" or "--name=value".
func valueOf(args []string, names ...string) []string {
	var out []string
	for i, a := range args {
		for _, name := range names {
			switch {
			case plain(a) == name && i+1 < len(args):
				out = append(out, args[i+1])
			case strings.HasPrefix(name, "--") && strings.HasPrefix(a, name+"="):
				out = append(out, a[len(name)+1:])
			case !strings.HasPrefix(name, "--") && len(name) == 2 && strings.HasPrefix(a, name) && len(a) > 2:
				out = append(out, a[2:])
			}
		}
	}
	return out
}

// systemRoots hold the machine's configuration and programs.
var systemRoots = []string{"/etc", "/private/etc", "/boot", "/usr/bin", "/usr/sbin", "/usr/lib", "/bin", "/sbin", "/lib", "/System", "/Library/LaunchDaemons", "/var/spool/cron"}

// ownFiles are what Herald's home holds beside the agent's workspace.
var ownFiles = []string{".env", "config.yaml", "auth.json", "SOUL.md", "pairing", "mcp-tokens", "locales", "checkpoints", "control.sock"}

// target judges one file that is written.
func (d *dangers) target(s step, word string) {
	p := floor{Place: s.in}.abs(word)
	p = strings.TrimSuffix(p, "\x00")
	if within(p, systemRoots...) {
		d.add("system-files")
	}
	text := plain(word)
	slashed := "/" + strings.TrimPrefix(text, "/")
	if strings.Contains(p+"/", "/.ssh/") || strings.Contains(slashed+"/", "/.ssh/") {
		d.add("ssh-files")
	}
	for _, home := range d.in.Protected {
		rel, ok := strings.CutPrefix(p, path.Clean(home)+"/")
		if ok && !s.away && ownFile(rel) {
			d.add("herald-files")
		}
	}
	if i := strings.LastIndex(slashed, "/.herald/"); i >= 0 && ownFile(slashed[i+len("/.herald/"):]) {
		d.add("herald-files")
	}
	if rest, ok := strings.CutPrefix(text, "$HERALD_HOME/"); ok && ownFile(rest) {
		d.add("herald-files")
	}
	if rest, ok := strings.CutPrefix(text, "${HERALD_HOME}/"); ok && ownFile(rest) {
		d.add("herald-files")
	}
}

// within reports whether a path is one of roots or below one.
func within(p string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return p == root || strings.HasPrefix(p, root+"/") })
}

// ownFile reports whether a path below a home of Herald is one of its own files. A pattern counts as what it may find.
func ownFile(rel string) bool {
	if rest, ok := strings.CutPrefix(rel, "profiles/"); ok {
		_, rel, _ = strings.Cut(rest, "/")
	}
	if strings.HasPrefix(rel, "herald.db") || strings.HasPrefix(rel, "state.db") || rel == "herald.lock" {
		return true
	}
	first, _, _ := strings.Cut(rel, "/")
	for _, own := range ownFiles {
		if within(rel, own) {
			return true
		}
		if ok, err := path.Match(first, own); err == nil && ok && strings.ContainsAny(first, "*?[") {
			return true
		}
	}
	return false
}
