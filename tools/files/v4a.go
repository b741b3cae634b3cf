package files

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// opKind is what a part of a patch does to its file.
type opKind string

const (
	opUpdate opKind = "update"
	opAdd    opKind = "add"
	opDelete opKind = "delete"
	opMove   opKind = "move"
)

// fileOp is one part of a V4A patch.
type fileOp struct {
	kind    opKind
	path    string
	to      string // new path of a move, or of an update that also moves; empty otherwise
	hunks   []hunk
	content string // of an added file
	line    int    // of the header in the patch, for messages
}

// hunk is one change of an update.
type hunk struct {
	hint  string // the line that @@ names; the change comes after it
	lines []hunkLine
	eof   bool // the change is at the end of the file
	line  int
}

// hunkLine is a line that is kept (' '), removed ('-') or added ('+').
type hunkLine struct {
	kind byte
	text string
}

var (
	fileHeader = regexp.MustCompile(`^\*\*\*\s*(Update|Add|Delete) File:\s*(.*?)\s*$`)
	moveHeader = regexp.MustCompile(`^\*\*\*\s*Move File:\s*(.*?)\s*->\s*(.*?)\s*$`)
	moveTo     = regexp.MustCompile(`^\*\*\*\s*Move to:\s*(.*?)\s*$`)
	beginPatch = regexp.MustCompile(`^\*\*\*\s*Begin Patch\s*$`)
	endPatch   = regexp.MustCompile(`^\*\*\*\s*End Patch\s*$`)
	endOfFile  = regexp.MustCompile(`^\*\*\*\s*End of File\s*$`)
)

// headerPaths returns all paths that a patch names, also of one that does not parse: the planner reserves
// them before anybody looks closer.
func headerPaths(text string) []string {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		l = strings.TrimRight(l, "\r")
		if m := fileHeader.FindStringSubmatch(l); m != nil {
			out = append(out, m[2])
		} else if m := moveHeader.FindStringSubmatch(l); m != nil {
			out = append(out, m[1], m[2])
		} else if m := moveTo.FindStringSubmatch(l); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}

// parseV4A reads a patch. The lines that begin and end it may be missing. Errors name the line.
func parseV4A(text string) ([]fileOp, error) {
	p := v4a{}
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for i, l := range lines {
		p.number = i + 1
		if p.done {
			if strings.TrimSpace(l) != "" {
				return nil, p.errorf("there is text after *** End Patch: %q", clip(l))
			}
			continue
		}
		if err := p.line(strings.TrimSuffix(l, "\r")); err != nil {
			return nil, err
		}
	}
	if err := p.endOp(); err != nil {
		return nil, err
	}
	if len(p.ops) == 0 {
		return nil, errors.New("the patch changes nothing; it needs lines such as *** Update File: <path>, *** Add File: <path>, *** Delete File: <path> or *** Move File: <old> -> <new>")
	}
	return p.ops, nil
}

type v4a struct {
	ops    []fileOp
	cur    *fileOp
	number int
	done   bool
}

func (p *v4a) errorf(format string, args ...any) error {
	return fmt.Errorf("patch line %d: %s", p.number, fmt.Sprintf(format, args...))
}

func (p *v4a) line(l string) error {
	if strings.HasPrefix(l, "***") {
		return p.header(l)
	}
	if p.cur == nil {
		if strings.TrimSpace(l) == "" {
			return nil
		}
		return p.errorf("%q comes before the first *** Update, Add, Delete or Move File line", clip(l))
	}
	switch p.cur.kind {
	case opAdd:
		text, ok := strings.CutPrefix(l, "+")
		if !ok && l != "" {
			return p.errorf("a line of an added file must begin with +, this one is %q", clip(l))
		}
		p.cur.content += text + "\n"
		return nil
	case opUpdate:
		return p.change(l)
	}
	if strings.TrimSpace(l) == "" {
		return nil
	}
	return p.errorf("%q has no meaning in the %s of %s", clip(l), p.cur.kind, p.cur.path)
}

func (p *v4a) header(l string) error {
	if m := fileHeader.FindStringSubmatch(l); m != nil {
		return p.beginOp(fileOp{kind: opKind(strings.ToLower(m[1])), path: m[2]})
	}
	if m := moveHeader.FindStringSubmatch(l); m != nil {
		if m[2] == "" {
			return p.errorf("a move needs two paths: *** Move File: <old> -> <new>")
		}
		return p.beginOp(fileOp{kind: opMove, path: m[1], to: m[2]})
	}
	switch m := moveTo.FindStringSubmatch(l); {
	case m != nil && p.cur != nil && p.cur.kind == opUpdate && len(p.cur.hunks) == 0 && m[1] != "":
		p.cur.to = m[1]
		return nil
	case beginPatch.MatchString(l) && p.cur == nil:
		return nil
	case endPatch.MatchString(l):
		p.done = true
		return p.endOp()
	case endOfFile.MatchString(l) && p.cur != nil && p.cur.kind == opUpdate && len(p.cur.hunks) > 0:
		p.cur.hunks[len(p.cur.hunks)-1].eof = true
		return nil
	}
	return p.errorf("unknown header %q; known are *** Begin Patch, Update File:, Add File:, Delete File:, Move File: a -> b, Move to:, End of File, End Patch", clip(l))
}

func (p *v4a) beginOp(op fileOp) error {
	if op.path == "" {
		return p.errorf("the header names no file")
	}
	if err := p.endOp(); err != nil {
		return err
	}
	op.line = p.number
	p.cur = &op
	return nil
}

// endOp closes the current part.
func (p *v4a) endOp() error {
	if p.cur == nil {
		return nil
	}
	op := *p.cur
	p.cur = nil
	if op.kind == opUpdate {
		kept := op.hunks[:0]
		for _, h := range op.hunks {
			// Blank lines between a hunk and the next header belong to nobody.
			for n := len(h.lines); n > 0 && h.lines[n-1] == (hunkLine{0, ""}); n-- {
				h.lines = h.lines[:n-1]
			}
			for i := range h.lines {
				if h.lines[i].kind == 0 {
					h.lines[i].kind = ' '
				}
			}
			if len(h.lines) > 0 {
				kept = append(kept, h)
			}
		}
		op.hunks = kept
		if len(op.hunks) == 0 && op.to == "" {
			return fmt.Errorf("patch line %d: the update of %s has no changes", op.line, op.path)
		}
	}
	p.ops = append(p.ops, op)
	return nil
}

// change reads a line of an update. A line without any mark is an empty line that is kept, as far as more
// of the hunk follows (kind 0 until that is known).
func (p *v4a) change(l string) error {
	if rest, ok := strings.CutPrefix(l, "@@"); ok {
		hint := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "@@"))
		p.cur.hunks = append(p.cur.hunks, hunk{hint: hint, line: p.number})
		return nil
	}
	if len(p.cur.hunks) == 0 {
		if l == "" {
			return nil
		}
		p.cur.hunks = append(p.cur.hunks, hunk{line: p.number})
	}
	h := &p.cur.hunks[len(p.cur.hunks)-1]
	if l == "" {
		h.lines = append(h.lines, hunkLine{0, ""})
		return nil
	}
	switch l[0] {
	case ' ', '+', '-':
		h.lines = append(h.lines, hunkLine{l[0], l[1:]})
		return nil
	}
	return p.errorf("a line of an update must begin with a space (kept), - (removed), + (added) or @@, this one is %q", clip(l))
}

func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

// applyHunks makes the changes of an update, in order, each after the one before.
func applyHunks(content string, hunks []hunk) (string, error) {
	var lines []string
	body, ended := strings.CutSuffix(content, "\n")
	if content != "" {
		lines = strings.Split(body, "\n")
	}
	var out []string
	at := 0
	for _, h := range hunks {
		i, n, err := locate(lines, at, h)
		if err != nil {
			return "", err
		}
		out = append(out, lines[at:i]...)
		out = append(out, rewriteHunk(lines[i:i+n], h)...)
		at = i + n
	}
	out = append(out, lines[at:]...)
	if len(out) == 0 {
		return "", nil
	}
	text := strings.Join(out, "\n")
	if ended || content == "" || out[len(out)-1] == "" {
		text += "\n" // an empty last line exists only by its line break
	}
	return text, nil
}

// locate finds the lines that a hunk keeps or removes, at or after from.
func locate(lines []string, from int, h hunk) (at, n int, err error) {
	var want []string
	for _, l := range h.lines {
		if l.kind != '+' {
			want = append(want, l.text)
		}
	}
	start, hinted := from, false
	if h.hint != "" {
		i := findHint(lines, from, h.hint)
		if i < 0 {
			return 0, 0, fmt.Errorf("%w: no line %q after line %d (patch line %d)", ErrNoMatch, clip(h.hint), from, h.line)
		}
		start, hinted = i, true
	}
	if len(want) == 0 {
		if hinted && !h.eof {
			return start + 1, 0, nil
		}
		return len(lines), 0, nil
	}
	for _, norm := range []func(string) string{func(s string) string { return s }, trimRight, strings.TrimSpace,
		func(s string) string { return strings.TrimSpace(ascii.Replace(s)) }} {
		found := matches(lines, want, start, norm)
		switch {
		case len(found) == 0:
			continue
		case h.eof && found[len(found)-1]+len(want) == len(lines):
			return found[len(found)-1], len(want), nil
		case len(found) > 1 && !hinted:
			return 0, 0, fmt.Errorf("%w: the lines of the change at patch line %d occur in %d places (lines %d and %d among them); add lines of context or an @@ line before them", ErrAmbiguous, h.line, len(found), found[0]+1, found[1]+1)
		}
		return found[0], len(want), nil
	}
	return 0, 0, fmt.Errorf("%w: the change at patch line %d expects %q", ErrNoMatch, h.line, clip(want[firstText(want)]))
}

func firstText(lines []string) int {
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			return i
		}
	}
	return 0
}

func findHint(lines []string, from int, hint string) int {
	hint = strings.TrimSpace(hint)
	for i := from; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == hint {
			return i
		}
	}
	for i := from; i < len(lines); i++ {
		if strings.Contains(lines[i], hint) {
			return i
		}
	}
	return -1
}

func matches(lines, want []string, from int, norm func(string) string) []int {
	want = normalized(want, norm)
	var out []int
	for i := from; i+len(want) <= len(lines); i++ {
		ok := true
		for j, w := range want {
			if norm(lines[i+j]) != w {
				ok = false
				break
			}
		}
		if ok {
			out = append(out, i)
		}
	}
	return out
}

// rewriteHunk gives the new lines. What is kept stays as the file has it, and what is added moves with the
// indentation of the lines around it when the patch has another one.
func rewriteHunk(have []string, h hunk) []string {
	var out []string
	i := 0
	shift := func(s string) string { return s }
	for _, l := range h.lines {
		if l.kind == '+' {
			continue
		}
		if was, is := indent(l.text), indent(have[i]); strings.TrimSpace(l.text) != "" {
			if was != is {
				shift = func(s string) string { return reindent(is+"x", was+"x", s) }
			}
			break
		}
		i++
	}
	i = 0
	for _, l := range h.lines {
		switch l.kind {
		case ' ':
			out = append(out, have[i])
			i++
		case '-':
			i++
		case '+':
			out = append(out, shift(l.text))
		}
	}
	return out
}
