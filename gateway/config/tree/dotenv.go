package tree

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Variable is one line of a .env file.
type Variable struct {
	Name, Value string
	Line        int
}

// ParseDotEnv reads the KEY=value lines of a .env file. It knows comments, blank lines, a leading "export", single
// quotes (taken as they are) and double quotes (with \n \t \r \" \\ \$). Without quotes a value ends before " #" and
// white space around it is dropped. Nothing is expanded and a value is one line. A line that is none of these
// is left out and named by number in the problems, which never repeat its content. A later line of the same name wins.
func ParseDotEnv(data []byte) (vars []Variable, problems []string) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		v, why := parseDotEnvLine(line)
		if why != "" {
			problems = append(problems, fmt.Sprintf("line %d: %s", number, why))
			continue
		}
		v.Line = number
		vars = append(vars, v)
	}
	return vars, problems
}

func parseDotEnvLine(line string) (v Variable, why string) {
	if rest, ok := strings.CutPrefix(line, "export"); ok && rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
		line = strings.TrimSpace(rest)
	}
	name, value, ok := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	switch {
	case !ok:
		return v, "want NAME=value"
	case !envVarName.MatchString(name) || strings.HasSuffix(name, "*"):
		return v, "the name before = may have letters, digits and _ only"
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return v, "the value of " + name + " is not text in UTF-8"
	}
	value, why = unquote(strings.TrimSpace(value))
	if why != "" {
		return v, "the value of " + name + " " + why
	}
	return Variable{Name: name, Value: value}, ""
}

// unquote takes the quotes and a trailing comment off a value.
func unquote(s string) (value, why string) {
	if s == "" || s[0] == '#' {
		return "", ""
	}
	quote := s[0]
	if quote != '"' && quote != '\'' {
		for i := 1; i < len(s); i++ {
			if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
				s = s[:i]
				break
			}
		}
		return strings.TrimSpace(s), ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			if rest := strings.TrimSpace(s[i+1:]); rest != "" && rest[0] != '#' {
				return "", "goes on after its closing quote"
			}
			return b.String(), ""
		case c == '\\' && quote == '"' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case '"', '\\', '$':
				b.WriteByte(s[i])
			default:
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "has no closing quote"
}
