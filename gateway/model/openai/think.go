package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkSplitter takes the reasoning out of a text that begins with a <think> block: local servers pass it on
// as the model wrote it. Only the very beginning of an answer is looked at, so that a model may write about
// such tags.
type thinkSplitter struct {
	state int // 0 at the beginning, 1 inside, 2 behind, 3 plain text
	held  string
}

// split returns what of the added text is reasoning and what is text. Some of it may be held back until
// more is known.
func (t *thinkSplitter) split(add string) (thought, said string) {
	if t.state == 3 {
		return "", add
	}
	t.held += add
	if t.state == 0 {
		s := strings.TrimLeft(t.held, " \t\r\n")
		switch {
		case strings.HasPrefix(s, thinkOpen):
			t.held, t.state = s[len(thinkOpen):], 1
		case strings.HasPrefix(thinkOpen, s):
			return "", ""
		default:
			t.state, said = 3, t.held
			t.held = ""
			return "", said
		}
	}
	if t.state == 1 {
		if i := strings.Index(t.held, thinkClose); i >= 0 {
			thought = t.held[:i]
			t.held, t.state = t.held[i+len(thinkClose):], 2
		} else {
			keep := partial(t.held, thinkClose)
			thought = t.held[:len(t.held)-keep]
			t.held = t.held[len(t.held)-keep:]
			return thought, ""
		}
	}
	said = strings.TrimLeft(t.held, " \t\r\n")
	t.held = ""
	if said != "" {
		t.state = 3
	}
	return thought, said
}

// rest returns what is held back when the answer ends.
func (t *thinkSplitter) rest() (thought, said string) {
	held := t.held
	t.held = ""
	switch t.state {
	case 0:
		return "", held
	case 1:
		return held, ""
	}
	return "", ""
}

// partial returns how many bytes at the end of s may be the beginning of mark.
func partial(s, mark string) int {
	for n := min(len(s), len(mark)-1); n > 0; n-- {
		if strings.HasSuffix(s, mark[:n]) {
			return n
		}
	}
	return 0
}
