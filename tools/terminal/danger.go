package terminal

import (
	"slices"
	"strings"
)

// Danger is one reason why a command wants a person's word before it is run.
type Danger struct {
	// Key names the kind of danger. It does not change between versions: people's lasting permissions are kept by it.
	Key string
	// Reason says in plain words what the command does, as the end of a sentence that begins with "it".
	Reason string
}

// Kind describes a kind of danger.
type Kind struct {
	Danger
	// Destructive kinds take something away that can't be had again; a lasting permission for one is never proposed.
	Destructive bool
}

// kinds are all kinds of danger, in the order in which they are named.
var kinds = []Kind{
	{Danger{"recursive-delete", "it removes directories with everything in them"}, true},
	{Danger{"find-delete", "it removes everything that a search finds"}, true},
	{Danger{"xargs-delete", "it removes everything that another command lists"}, true},
	{Danger{"make-filesystem", "it makes a new file system or changes partitions"}, true},
	{Danger{"disk-copy", "it copies raw data with dd"}, true},
	{Danger{"sql-drop", "it drops tables or databases"}, true},
	{Danger{"sql-delete", "it deletes rows of a table without a condition"}, true},
	{Danger{"sql-truncate", "it empties tables"}, true},
	{Danger{"git-discard", "it throws away work that is not committed"}, true},
	{Danger{"git-rewrite", "it overwrites or removes history of a git repository"}, true},
	{Danger{"world-writable", "it lets every user of the machine change files"}, false},
	{Danger{"chown-root", "it gives files to root, with everything below them"}, false},
	{Danger{"system-files", "it changes files of the system"}, false},
	{Danger{"ssh-files", "it changes SSH keys or settings"}, false},
	{Danger{"herald-files", "it changes Herald's own settings, secrets or data"}, true},
	{Danger{"service-control", "it stops, restarts or disables services"}, false},
	{Danger{"kill-many", "it kills programs by name without letting them end"}, false},
	{Danger{"second-gateway", "it starts another gateway"}, false},
	{Danger{"container-control", "it stops, removes or restarts containers"}, true},
	{Danger{"container-engine", "it uses another container engine, or gives a container the rights of this machine"}, false},
	{Danger{"remote-script", "it runs a script that it gets from the network"}, false},
	{Danger{"hidden-script", "it runs a script that is encoded"}, false},
	{Danger{"process-substitution", "it runs as a script what another command prints"}, false},
	{Danger{"computed-command", "it runs a program whose name is known only when it runs"}, false},
	{Danger{"interpreter-code", "it runs program code from the command line, which can't be looked into"}, false},
}

// Kinds returns all kinds of danger.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindOf returns the kind of a key.
func KindOf(key string) (Kind, bool) {
	for _, k := range kinds {
		if k.Key == key {
			return k, true
		}
	}
	return Kind{}, false
}

// Dangers returns why a command wants a person's word, each kind once in the order of Kinds; none for a command that
// may run. It reads the text as Refusal does and does not repeat what that refuses.
func Dangers(line string, in Place) []Danger {
	d := dangers{in: in, keys: map[string]bool{}}
	w := walk{visit: func(s step) bool { d.step(s); return false }}
	w.read(line, in, false, 0, nil)
	var out []Danger
	for _, k := range kinds {
		if d.keys[k.Key] {
			out = append(out, k.Danger)
		}
	}
	return out
}

// Candidates returns the texts of a command that a rule about commands is compared with: the whole line, and each
// program that it would run with its arguments, through sudo, env, sh -c and the like, by its path and by its name.
func Candidates(line string) []string {
	out := []string{line}
	add := func(words []string) {
		text := plain(strings.Join(words, " "))
		if text != "" && !slices.Contains(out, text) && len(out) < maxCandidates {
			out = append(out, text)
		}
	}
	add(strings.Fields(line))
	w := walk{visit: func(s step) bool {
		add(s.words)
		if len(s.argv) > 0 {
			add(s.argv)
			add(append([]string{s.name}, s.argv[1:]...))
		}
		return len(out) >= maxCandidates
	}}
	w.read(line, Place{}, false, 0, nil)
	return out
}

// maxCandidates bounds the texts of one line; nobody writes such a line by hand.
const maxCandidates = 2000

type dangers struct {
	in   Place
	keys map[string]bool
}

func (d *dangers) add(key string) { d.keys[key] = true }

// step applies all rules to one command.
func (d *dangers) step(s step) {
	d.files(s)
	d.containerHost(s)
	if len(s.argv) == 0 {
		return
	}
	d.removals(s)
	d.rights(s)
	d.disks(s)
	d.sql(s)
	d.git(s)
	d.services(s)
	d.processes(s)
	d.containers(s)
	d.scripts(s)
}

// is reports whether a name is one of names, with or without a version behind it (python3.12).
func is(name string, names ...string) bool {
	base := strings.TrimRight(name, "0123456789.")
	return slices.Contains(names, name) || base != "" && slices.Contains(names, base)
}

// removals are recursive deletes, and deletes of what other commands find.
func (d *dangers) removals(s step) {
	args := s.argv[1:]
	removes := is(s.name, "rm", "shred", "unlink", "srm", "trash", "rmdir")
	switch {
	case removes && s.piped:
		d.add("xargs-delete")
	case s.name == "rm" && (hasFlag(args, 'r', "recursive") || hasFlag(args, 'R', "no-preserve-root")), s.name == "srm" && hasFlag(args, 'r', "recursive"):
		d.add("recursive-delete")
	case s.name == "rsync" && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(plain(a), "--del") }):
		d.add("recursive-delete")
	case is(s.name, "del", "erase") && hasSlash(args, "/s"), s.name == "rd" && hasSlash(args, "/s"), is(strings.ToLower(s.name), "remove-item") && hasSlash(args, "-recurse"):
		d.add("recursive-delete")
	case s.name == "find":
		for i, a := range args {
			runs := slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a) && i+1 < len(args)
			if a == "-delete" || runs && is(unwrap(args[i+1:]).name, "rm", "shred", "unlink") {
				d.add("find-delete")
			}
		}
	case is(s.name, "fd", "fdfind"):
		for i, a := range args {
			if slices.Contains([]string{"-x", "-X", "--exec", "--exec-batch"}, a) && i+1 < len(args) && is(unwrap(args[i+1:]).name, "rm", "shred", "unlink") {
				d.add("find-delete")
			}
		}
	}
}

// hasSlash looks for a word without regard to case.
func hasSlash(args []string, word string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(plain(a), word) })
}

// rights are modes and owners.
func (d *dangers) rights(s step) {
	args := s.argv[1:]
	switch s.name {
	case "chmod":
		for _, a := range args {
			if worldWritable(plain(a)) {
				d.add("world-writable")
			}
		}
	case "chown", "chgrp":
		if !hasFlag(args, 'R', "recursive") {
			return
		}
		if ops := operands(args); len(ops) > 0 {
			owner, group, _ := strings.Cut(plain(ops[0]), ":")
			if owner == "root" || owner == "0" || group == "root" || group == "0" {
				d.add("chown-root")
			}
		}
	case "install", "mkdir":
		for i, a := range args {
			mode, ok := strings.CutPrefix(plain(a), "--mode=")
			if plain(a) == "-m" && i+1 < len(args) {
				mode, ok = plain(args[i+1]), true
			} else if strings.HasPrefix(plain(a), "-m") && !ok {
				mode, ok = plain(a)[2:], true
			}
			if ok && worldWritable(mode) && !strings.HasPrefix(mode, "1") {
				d.add("world-writable")
			}
		}
	}
}

// worldWritable reports whether a mode lets everybody write.
func worldWritable(mode string) bool {
	if mode == "" || strings.HasPrefix(mode, "-") {
		return false
	}
	if strings.Trim(mode, "01234567") == "" {
		return len(mode) >= 3 && len(mode) <= 5 && strings.ContainsRune("2367", rune(mode[len(mode)-1]))
	}
	for part := range strings.SplitSeq(mode, ",") {
		who, what, ok := cutAny(part, "+=")
		if ok && strings.Trim(who, "ugoa") == "" && strings.ContainsAny(who, "oa") && strings.Contains(what, "w") {
			return true
		}
	}
	return false
}

// cutAny cuts at the first of some characters.
func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// disks are file systems, partitions and raw copies.
func (d *dangers) disks(s step) {
	args := s.argv[1:]
	switch {
	case strings.HasPrefix(s.name, "mkfs"), is(s.name, "mke2fs", "mkswap", "wipefs", "blkdiscard", "sgdisk", "cfdisk", "parted", "diskutil", "zpool", "cryptsetup"):
		d.add("make-filesystem")
	case is(s.name, "fdisk", "sfdisk") && !hasFlag(args, 'l', "list"):
		d.add("make-filesystem")
	case s.name == "dd":
		for _, a := range args {
			if of, ok := strings.CutPrefix(plain(a), "of="); ok && of != "/dev/null" && of != "/dev/stdout" {
				d.add("disk-copy")
			}
		}
	}
}
