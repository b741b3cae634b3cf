package docker

import (
	"os"
	"path/filepath"
	"strings"

	"herald/tools/sandbox/mounts"
)

// Layouts returns the mounts of every container whose files a conversation may have: what it made earlier is found also
// when the container is not running, was made under another key, or by an earlier configuration. In this order: that of
// the shared key, that of the profile, the default one, and the one of the conversation, as they were made once; session
// is the key of that conversation, empty for none. Only those whose directory is there are returned, and none where
// nothing persists.
//
// The default one is left out for a named profile that has its sandbox directory in common with others: it is theirs.
// alone says that the directory is the profile's alone.
func Layouts(o Options, session string, alone bool) []mounts.Table {
	if !o.Request.Persistent {
		return nil
	}
	var keys []string
	if o.Request.Shared != "" {
		keys = append(keys, "shared:"+o.Request.Shared)
	}
	named := o.Request.Profile != "" && o.Request.Profile != "default"
	if named {
		keys = append(keys, "profile:"+o.Request.Profile)
	}
	if !named || alone {
		keys = append(keys, "default")
	}
	if session != "" {
		keys = append(keys, "session:"+session)
	}
	var found []mounts.Table
	for _, key := range keys {
		dir := filepath.Join(o.Dir, "docker", KeyDir(key))
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		if m, err := o.laidOut(dir); err == nil {
			found = append(found, m)
		}
	}
	return found
}

// Confine returns the directory that containers write in and that holds a path of this machine, empty for none: the
// container's own below the sandbox directory, or a volume. The mounted working directory is one as well. The path may be
// written with or without the links that lead to these directories.
func Confine(o Options, p string) string {
	for _, own := range names(filepath.Join(o.Dir, "docker")) {
		rel, inside := mounts.Below(p, own)
		if !inside {
			continue
		}
		// <key>/home and <key>/workspace; what is above them belongs to nobody.
		parts := strings.FieldsFunc(filepath.ToSlash(rel), func(r rune) bool { return r == '/' })
		return filepath.Join(own, filepath.Join(parts[:min(2, len(parts))]...))
	}
	longest := ""
	shared := []string{o.HostCwd}
	for _, v := range o.Volumes {
		if m, bind, err := mounts.ParseVolume(v); err == nil && bind && !m.ReadOnly {
			shared = append(shared, m.Host)
		}
	}
	for _, dir := range shared {
		if dir == "" {
			continue
		}
		for _, name := range names(dir) {
			if _, inside := mounts.Below(p, name); inside && len(name) > len(longest) {
				longest = name
			}
		}
	}
	return longest
}

// names are a directory's own name and the one without links.
func names(dir string) []string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real == dir {
		return []string{dir}
	}
	return []string{dir, real}
}
