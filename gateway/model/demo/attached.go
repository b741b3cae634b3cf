package demo

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// sentFile is how the gateway announces a file that came with a message.
var sentFile = regexp.MustCompile(`(?m)^\[The user sent ([a-z]+) ("(?:[^"\\\n]|\\.)*"), saved as ([^\n]+)\][^\n]*\n?`)

const sentMark = "[The user sent "

// attached is a file that came with the request.
type attached struct{ kind, name, path string }

// takeAttached takes the notes about files off a request, together with the contents that follow them.
func takeAttached(text string) (rest string, files []attached) {
	for len(files) < maxSteps {
		at := sentFile.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		name, err := strconv.Unquote(text[at[4]:at[5]])
		if err != nil {
			name = text[at[4]:at[5]]
		}
		files = append(files, attached{kind: text[at[2]:at[3]], name: name, path: text[at[6]:at[7]]})
		behind := text[at[1]:]
		if inner, ok := strings.CutPrefix(behind, "```\n"); ok {
			// A fence in the file itself ends it too early: the next note, or the end, ends it for sure.
			end := len(inner)
			if next := sentFile.FindStringIndex(inner); next != nil {
				end = next[0]
			}
			behind = inner[end:]
		}
		text = text[:at[0]] + behind
	}
	return strings.TrimSpace(text), files
}

// received says which files came.
func received(files []attached) string {
	lines := make([]string, len(files))
	for i, f := range files {
		lines[i] = "- `" + strings.ReplaceAll(f.name, "`", "'") + "`, saved as `" + strings.ReplaceAll(f.path, "`", "'") + "`"
	}
	return "I got " + plural(len(files), "file", "files") + ":\n\n" + strings.Join(lines, "\n") + "\n\nTry “show it”, or “send it back”."
}

// dirMark is how the system prompt names the directory of relative paths.
const dirMark = "Relative paths are below "

// sendFile asks the gateway to send a file into the chat.
func (e *env) sendFile(name string) *step {
	file := e.path(name)
	if file == "" {
		return say("Which file? Tell me its name, as in “send me notes.txt”.")
	}
	if !path.IsAbs(file) {
		_, rest, ok := strings.Cut(e.system, dirMark)
		dir, _, _ := strings.Cut(rest, "\n")
		if dir = strings.TrimSuffix(strings.TrimSpace(dir), "."); !ok || !path.IsAbs(dir) {
			s := say("I can't tell where `" + file + "` is. Give me its full path, as in “send me /tmp/notes.txt”.")
			s.joins = true
			return s
		}
		file = path.Join(dir, file)
	}
	s := say("Here is `" + path.Base(file) + "`.\n\nMEDIA:" + mediaPath(file))
	s.file, s.joins = name, true
	return s
}

// mediaPath quotes a path that has spaces, as the gateway expects it.
func mediaPath(file string) string {
	if strings.ContainsAny(file, " \t") {
		return "`" + file + "`"
	}
	return file
}
