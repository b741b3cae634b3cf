package format

import (
	"strings"

	"herald/platforms"
)

// atoms cuts the mentions of the platform out of text spans and lets go of atoms that are too long.
func (b *builder) atoms(spans []span) []span {
	for i := range spans {
		s := &spans[i]
		if s.kind == atomSpan && b.budget > 0 && Length(s.text, b.unit) > b.budget/4 {
			s.kind = textSpan
			if b.chunky {
				s.marks = s.marks.without(linked)
			}
		}
	}
	if b.dialect != platforms.SlackMrkdwn && b.dialect != platforms.DiscordMD {
		return spans
	}
	var out []span
	for i, s := range spans {
		if s.kind != textSpan || s.marks.has(mono) || !strings.Contains(s.text, "<") {
			if out != nil {
				out = append(out, s)
			}
			continue
		}
		rest, from := s.text, 0
		for {
			at := strings.IndexByte(rest[from:], '<')
			if at < 0 {
				break
			}
			at += from
			size := mention(rest[at:], b.dialect)
			if size == 0 || b.budget > 0 && size > b.budget/4 {
				from = at + 1
				continue
			}
			if out == nil {
				out = append(make([]span, 0, len(spans)+2), spans[:i]...)
			}
			if at > 0 {
				part := s
				part.text = rest[:at]
				out = append(out, part)
			}
			part := s
			part.text, part.kind = rest[at:at+size], atomSpan
			out = append(out, part)
			rest, from = rest[at+size:], 0
		}
		if out != nil && rest != "" {
			s.text = rest
			out = append(out, s)
		}
	}
	if out == nil {
		return spans
	}
	return out
}

// mention returns the length of the platform's own token at the start of s, which begins with "<", or 0.
func mention(s string, dialect platforms.Dialect) int {
	end := strings.IndexByte(s[:min(len(s), 128)], '>')
	if end < 3 {
		return 0
	}
	body := s[1:end]
	if strings.ContainsAny(body, "<\n`") {
		return 0
	}
	ok := false
	if dialect == platforms.SlackMrkdwn {
		id, _, _ := strings.Cut(body[1:], "|")
		switch body[0] {
		case '@', '#':
			ok = only(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
		case '!':
			name, _, _ := strings.Cut(id, "^")
			ok = name == "here" || name == "channel" || name == "everyone" || name == "subteam" || name == "date"
		}
	} else {
		const digits = "0123456789"
		switch {
		case body[0] == '@' || body[0] == '#':
			ok = only(strings.TrimLeft(body[1:], "!&"), digits)
		case strings.HasPrefix(body, "t:"):
			ok = only(body[2:], digits+":tTdDfFR")
		case strings.HasPrefix(body, "id:"):
			ok = only(body[3:], "abcdefghijklmnopqrstuvwxyz")
		case body[0] == '/', body[0] == ':', strings.HasPrefix(body, "a:"):
			i := strings.LastIndexByte(body, ':')
			ok = i > 1 && only(body[i+1:], digits)
		}
	}
	if !ok {
		return 0
	}
	return end + 1
}

func only(s, set string) bool {
	return s != "" && strings.Trim(s, set) == ""
}
