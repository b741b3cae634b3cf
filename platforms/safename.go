package platforms

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest file name kept, in bytes: 255 is the limit of common file systems, and the media
// cache puts an id before the name.
const maxName = 180

// SafeName turns a file name from outside into one that can't leave a folder or confuse a shell: the last
// path element only, no control or format characters, no leading dots, at most 180 bytes with the
// extension kept. An empty result becomes "file".
func SafeName(name string) string {
	name = strings.ReplaceAll(strings.ToValidUTF8(name, ""), "\\", "/")
	name = path.Base(name)
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		case strings.ContainsRune(`/:*?"<>|`, r):
			return '_'
		}
		return r
	}, name)
	name = strings.TrimSpace(strings.TrimLeft(name, ". "))
	if len(name) > maxName {
		ext := path.Ext(name)
		if len(ext) > 20 {
			ext = ""
		}
		stem := name[:maxName-len(ext)]
		for !utf8.ValidString(stem) {
			stem = stem[:len(stem)-1]
		}
		name = stem + ext
	}
	if name == "" || name == "." {
		return "file"
	}
	return name
}
