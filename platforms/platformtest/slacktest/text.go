package slacktest

import (
	"encoding/json"
	"regexp"
	"strings"
)

var (
	escaper   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
	angled    = regexp.MustCompile(`<[^<>]+>`)
)

// Escape returns text as Slack carries it: & < > escaped. Mentions are written after it.
func Escape(text string) string { return escaper.Replace(text) }

// Unescape returns what people read of mrkdwn text: <@U1> becomes @name, <#C1|x> #x, <url|label> label, and
// &amp; &lt; &gt; their characters. Marks such as *bold* stay.
func (s *Server) Unescape(team, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.team(team).read(text)
}

func (t *team) read(text string) string {
	return unescaper.Replace(angled.ReplaceAllStringFunc(text, func(tag string) string {
		body, label, _ := strings.Cut(tag[1:len(tag)-1], "|")
		switch {
		case strings.HasPrefix(body, "@"):
			return "@" + t.nameOf(body[1:])
		case strings.HasPrefix(body, "#"):
			if c := t.find(body[1:]); label == "" && c != nil {
				label = c.Name
			}
			return "#" + label
		case strings.HasPrefix(body, "!"):
			if label != "" {
				return label
			}
			return "@" + body[1:]
		case label != "":
			return label
		}
		return strings.TrimPrefix(body, "mailto:")
	}))
}

func (t *team) nameOf(user string) string {
	u := t.user(user)
	switch {
	case u == nil:
		return user
	case u.DisplayName != "":
		return u.DisplayName
	}
	return u.Name
}

// compose makes the rich_text block that Slack's composer makes of text.
func (s *Server) compose(text string) json.RawMessage {
	var elements []object
	add := func(plain string) {
		if plain != "" {
			elements = append(elements, object{"type": "text", "text": unescaper.Replace(plain)})
		}
	}
	rest := text
	for {
		at := angled.FindStringIndex(rest)
		if at == nil {
			break
		}
		add(rest[:at[0]])
		elements = append(elements, element(rest[at[0]+1:at[1]-1]))
		rest = rest[at[1]:]
	}
	add(rest)
	return encode([]object{{
		"type": "rich_text", "block_id": s.id("b"),
		"elements": []object{{"type": "rich_text_section", "elements": elements}},
	}})
}

// element is the rich_text element of what stood in angle brackets.
func element(tag string) object {
	body, label, _ := strings.Cut(tag, "|")
	switch {
	case strings.HasPrefix(body, "@"):
		return object{"type": "user", "user_id": body[1:]}
	case strings.HasPrefix(body, "#"):
		return object{"type": "channel", "channel_id": body[1:]}
	case strings.HasPrefix(body, "!subteam^"):
		return object{"type": "usergroup", "usergroup_id": strings.TrimPrefix(body, "!subteam^")}
	case strings.HasPrefix(body, "!"):
		return object{"type": "broadcast", "range": body[1:]}
	case label != "":
		return object{"type": "link", "url": unescaper.Replace(body), "text": unescaper.Replace(label)}
	}
	return object{"type": "link", "url": unescaper.Replace(body)}
}
