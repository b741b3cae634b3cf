package demo

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func messageShapes() []shape {
	const place = `((?:telegram|slack|signal|discord|teams|web|sms|email|whatsapp|matrix)(?::\S+)?)`
	send := func(target, text string) *step {
		return once("send_message", field{"action", "send"}, field{"target", strings.ToLower(target[:firstColon(target)]) +
			target[firstColon(target):]}, field{"message", unquote(text)})
	}
	return []shape{
		{`(?:send|post|write)\s+(?:the message\s+)?(.+?)\s+(?:to|on|in)\s+` + place, func(e *env, m []string) *step { return send(m[2], m[1]) }},
		{`(?:send|post)\s+(?:a message\s+)?to\s+` + place + `\s*:?\s+(.+)`, func(e *env, m []string) *step { return send(m[1], m[2]) }},
		{`message\s+` + place + `\s*:?\s+(.+)`, func(e *env, m []string) *step { return send(m[1], m[2]) }},
		{`where can (?:you|i) send(?: messages)?(?: to)?|(?:list|show)\s+(?:me )?(?:the )?(?:message |delivery )?targets`, func(e *env, m []string) *step {
			return once("send_message", field{"action", "list"})
		}},
	}
}

func firstColon(s string) int {
	if i := strings.IndexByte(s, ':'); i >= 0 {
		return i
	}
	return len(s)
}

func otherShapes() []shape {
	delegate := func(e *env, m []string) *step {
		s := once("delegate_task", field{"goal", strings.TrimSpace(unquote(m[1]))})
		s.whole = true
		return s
	}
	skill := func(action string, args ...field) *step {
		return once("skill_manage", append([]field{{"action", action}}, args...)...)
	}
	return []shape{
		// questions
		{`ask\s+me\s+(?:a question\s*:\s*)?(.+?)\s*:\s*(.+)`, func(e *env, m []string) *step {
			choices := enumerate(strings.TrimRight(m[2], " .!?"), "or", "and")
			return once("clarify", field{"question", question(m[1])}, field{"choices", choices[:min(len(choices), 4)]})
		}},
		{`ask\s+me\s+(.+)`, func(e *env, m []string) *step { return once("clarify", field{"question", question(m[1])}) }},
		// delegation
		{`delegate\s*:?\s*(.+?)(?:\s+to\s+(?:a\s+)?(?:sub-?agent|helper|child))?`, delegate},
		{`(?:ask|have|let|tell|get)\s+(?:a|the|another)\s+(?:sub-?agent|helper|child)\s+(?:to\s+)?(.+)`, delegate},
		// skills
		{`(?:list|show)\s+(?:me )?(?:all )?(?:your |the |my )?skills|what skills (?:do you have|are there)`, func(e *env, m []string) *step { return once("skills_list") }},
		{`(?:show|view|read|open|load)\s+(?:me )?(?:the )?skill\s+` + reWord, func(e *env, m []string) *step { return once("skill_view", field{"name", e.path(m[1])}) }},
		{`(?:create|make|save|write)\s+(?:a |the )?(?:new )?skill\s+(?:called |named )?` + reWord + `\s*(?::|with|that says)\s*(.+)`, func(e *env, m []string) *step {
			s := skill("create", field{"name", strings.TrimRight(e.path(m[1]), ":")}, field{"content", unquote(m[2])})
			s.whole = true
			return s
		}},
		{`(?:delete|remove)\s+(?:the )?skill\s+` + reWord, func(e *env, m []string) *step { return skill("delete", field{"name", e.path(m[1])}) }},
		// the catalogue of tools
		{`(?:find|search for|is there)\s+(?:me )?(?:a |some )?tools?\s+(?:for|to|that can|about)\s+(.+)`, func(e *env, m []string) *step {
			return once("tool_search", field{"queries", []string{unquote(m[1])}})
		}},
		{`search\s+(?:your |the |my |all )?tools\s+for\s+(.+)`, func(e *env, m []string) *step {
			return once("tool_search", field{"queries", []string{unquote(m[1])}})
		}},
		{`describe\s+(?:the )?tool\s+` + reWord, func(e *env, m []string) *step {
			return once("tool_describe", field{"names", []string{e.path(m[1])}})
		}},
		// sound
		{`(?:say|read|speak)\s+(.+?)\s+(?:aloud|out loud)`, func(e *env, m []string) *step { return once("text_to_speech", field{"text", unquote(m[1])}) }},
		// a home
		{`(?:list|show)\s+(?:me )?(?:the )?(?:home assistant\s+)?entities(?:\s+in\s+(.+))?`, func(e *env, m []string) *step {
			if m[1] != "" {
				return once("ha_list_entities", field{"area", unquote(m[1])})
			}
			return once("ha_list_entities")
		}},
	}
}

// question turns "which colour I like" into "Which colour do you like?".
func question(s string) string {
	s = strings.TrimRight(strings.TrimSpace(unquote(s)), " .!?")
	for _, p := range []string{"about ", "for "} {
		if rest, ok := strings.CutPrefix(s, p); ok {
			s = "What about " + rest
		}
	}
	words := strings.Fields(s)
	for i, w := range words {
		switch strings.ToLower(w) {
		case "i":
			words[i] = "you"
			if i > 0 && i+1 < len(words) && !verbs[strings.ToLower(words[i-1])] {
				words[i] = "do you"
				if verbs[strings.ToLower(words[i+1])] {
					words[i], words[i+1] = words[i+1], "you"
				}
			}
		case "my":
			words[i] = "your"
		case "me":
			words[i] = "you"
		case "am":
			words[i] = "are"
		}
	}
	s = strings.Join(words, " ")
	if s == "" {
		return "What do you mean?"
	}
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:] + "?"
}

// verbs change places with the person in a question.
var verbs = map[string]bool{
	"am": true, "do": true, "did": true, "can": true, "should": true, "will": true, "would": true, "have": true, "must": true,
}
