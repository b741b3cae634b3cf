package terminal

import (
	"regexp"
	"slices"
	"strings"
)

// maxNesting bounds how deep scripts inside scripts are read; what is deeper counts as unreadable.
const maxNesting = 8

// What bounds the work of reading one line: commands, bytes of all scripts in it together, commands of one pipeline, and
// variables whose text is kept. A line with more counts as unreadable.
const (
	maxSteps     = 20_000
	maxRead      = 4 << 20
	maxPipeline  = 200
	maxVariables = 500
)

// step is one command that a line runs, wherever in it it stands.
type step struct {
	simple
	command
	up   []simple // the commands whose output it reads
	in   Place    // where it runs
	away bool     // on another machine or in a container: Place says nothing about it
	bare string   // of the script it is part of
	fed  []string // shell texts that reach its input
}

// walk reads a shell text and shows every command that it would run: through wrappers, nested shells, substitutions,
// here documents, searches that run commands, and variables that were set to plain text before.
type walk struct {
	visit func(step) (stop bool)
	steps int
	bytes int
	// unreadable is why the text can't be read to its end, or "".
	unreadable string
}

const tooMuch = "it has more commands than can be read"

// read walks a text; it returns true when visit asked to stop.
func (w *walk) read(text string, in Place, away bool, depth int, vars map[string]string) bool {
	if depth > maxNesting {
		w.unreadable = "it nests scripts more deeply than can be read"
		return false
	}
	if w.bytes += len(text); w.bytes > maxRead {
		w.unreadable = tooMuch
		return false
	}
	s := split(text)
	if s.unclosed {
		w.unreadable = "its quoting can't be read: a quote or substitution is never closed"
	}
	vars = clone(vars)
	for i, c := range s.commands {
		if w.steps++; w.steps > maxSteps || w.bytes > maxRead {
			w.unreadable = tooMuch
			return false
		}
		up := upstream(s.commands, i)
		if len(up) > maxPipeline {
			w.unreadable = tooMuch
			return false
		}
		c.words, c.writes, c.reads = expand(c.words, vars), expand(c.writes, vars), expand(c.reads, vars)
		for _, word := range c.words {
			w.bytes += len(word)
		}
		for _, inner := range c.nested {
			if w.read(inner, in, away, depth+1, vars) {
				return true
			}
		}
		st := step{simple: c, command: unwrap(c.words), up: up, in: in, away: away, bare: s.bare}
		if st.dir != "" {
			st.in.Dir = floor{Place: in}.abs(st.dir)
		}
		scripts, remote := st.scriptsInside()
		st.fed = scripts
		if w.visit(st) {
			return true
		}
		for _, inner := range scripts {
			if w.read(inner, st.in, away || remote, depth+1, vars) {
				return true
			}
		}
		assign(vars, st)
		if len(st.argv) > 1 && (st.name == "cd" || st.name == "pushd") {
			in.Dir = floor{Place: in}.abs(st.argv[len(st.argv)-1])
		}
	}
	return false
}

func clone(vars map[string]string) map[string]string {
	out := make(map[string]string, len(vars))
	for k, v := range vars {
		out[k] = v
	}
	return out
}

// upstream returns the commands whose output commands[i] reads.
func upstream(commands []simple, i int) []simple {
	first := i
	for first > 0 && i-first <= maxPipeline && commands[first-1].pipeline == commands[i].pipeline {
		first--
	}
	return commands[first:i]
}

// assign keeps what variables are set to, as far as it is plain text. HOME stays what the floor knows.
func assign(vars map[string]string, s step) {
	sets := s.sets
	switch s.name {
	case "":
	case "export", "declare", "local", "readonly", "typeset":
		sets = s.argv[1:]
	case "for":
		if len(s.argv) > 3 && s.argv[2] == "in" {
			vars[s.argv[1]] = strings.Join(s.argv[3:], " ")
		}
		return
	default:
		return // they hold for this command alone
	}
	for _, w := range sets {
		name, value, ok := strings.Cut(w, "=")
		if !ok || !assignment.MatchString(w) || name == "HOME" {
			continue
		}
		if strings.HasSuffix(name, "+") {
			name = strings.TrimSuffix(name, "+")
			value = vars[name] + value
		}
		if strings.ContainsAny(strings.ReplaceAll(value, string(literal)+"$", ""), "$\x00") || len(value) > 4096 || len(vars) >= maxVariables {
			delete(vars, name)
			continue
		}
		vars[name] = value
	}
}

var variable = regexp.MustCompile(`\x00?\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// maxExpanded bounds the words of a command after its variables are replaced, in bytes.
const maxExpanded = 1 << 16

// expand replaces variables whose text is known. The text of a word that is nothing but a variable is cut into words.
func expand(words []string, vars map[string]string) []string {
	if len(vars) == 0 {
		return words
	}
	out, size := make([]string, 0, len(words)), 0
	for _, w := range words {
		if !strings.Contains(w, "$") || size > maxExpanded {
			out = append(out, w)
			continue
		}
		whole := false
		text := variable.ReplaceAllStringFunc(w, func(m string) string {
			if m[0] == literal {
				return m
			}
			name := strings.Trim(m, "${}")
			value, ok := vars[name]
			if !ok {
				return m
			}
			whole = whole || m == w
			return value
		})
		size += len(text)
		if whole {
			out = append(out, strings.Fields(text)...)
			continue
		}
		out = append(out, text)
	}
	return out
}

var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"}

// prints returns what echo and printf among commands write.
func prints(commands []simple) []string {
	var out []string
	for _, u := range commands {
		e := unwrap(u.words)
		if e.name == "echo" || e.name == "printf" {
			out = append(out, plain(strings.Join(e.argv[1:], " ")))
		}
	}
	return out
}

// scriptsInside returns the shell texts that a command runs, and whether it runs them elsewhere.
func (s step) scriptsInside() (scripts []string, remote bool) {
	scripts = slices.Clone(s.scripts)
	if len(s.argv) == 0 {
		return scripts, false
	}
	args := s.argv[1:]
	switch s.name {
	case "eval":
		scripts = append(scripts, plain(strings.Join(args, " ")))
	case "trap", "alias":
		for _, a := range args {
			if _, value, ok := strings.Cut(a, "="); ok && s.name == "alias" {
				a = value
			}
			scripts = append(scripts, plain(a))
			if s.name == "trap" {
				break
			}
		}
	case "su", "runuser":
		scripts = append(scripts, optionC(args)...)
	case "find", "fd", "fdfind":
		scripts = append(scripts, found(args)...)
	case "ssh", "docker", "podman", "kubectl", "nerdctl":
		if text := elsewhere(s.name, args); text != "" {
			return append(scripts, text), true
		}
	}
	if slices.Contains(shells, s.name) {
		scripts = append(scripts, optionC(args)...)
		scripts = append(scripts, s.input...)
		scripts = append(scripts, prints(s.up)...)
	}
	return scripts, false
}

// optionC returns the script behind -c.
func optionC(args []string) []string {
	for i, a := range args {
		a = plain(a)
		short := strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "c")
		if (short || a == "--command") && i+1 < len(args) {
			return []string{plain(args[i+1])}
		}
		if text, ok := strings.CutPrefix(a, "--command="); ok {
			return []string{text}
		}
	}
	return nil
}

// found returns the commands that a search runs.
func found(args []string) []string {
	var out []string
	for i, a := range args {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}, a) {
			continue
		}
		var words []string
		for _, w := range args[i+1:] {
			if plain(w) == ";" || w == "+" {
				break
			}
			words = append(words, quoteWord(plain(w)))
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// elsewhere returns what is run on another machine or in a container.
func elsewhere(name string, args []string) string {
	takes := "BbcDEeFIiJLlmOoPpQRSWw" // of ssh
	if name != "ssh" {
		for len(args) > 0 && plain(args[0]) != "exec" && plain(args[0]) != "run" {
			args = args[1:]
		}
		if len(args) == 0 {
			return ""
		}
		args, takes = args[1:], "euwnvpclmh"
	}
	var c command
	rest := slices.Clone(c.afterOptions(args, wrapper{takes: takes, skip: 1}))
	if name != "ssh" {
		for i, w := range rest {
			rest[i] = quoteWord(plain(w))
		}
		if len(rest) > 0 && rest[0] == "--" {
			rest = rest[1:]
		}
	}
	return plain(strings.Join(rest, " "))
}

// quoteWord writes a word so that a shell reads it as one.
func quoteWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\n'\"\\$`;&|<>(){}[]*?#~!") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
