package demo

import "strings"

func memoryShapes() []shape {
	search := func(what string) *step {
		return once("session_search", field{"query", unquote(strings.TrimRight(what, "?! "))})
	}
	remember := func(what string) *step {
		what = strings.TrimSpace(unquote(what))
		target, content := about(what)
		s := once("memory", field{"action", "add"}, field{"target", target}, field{"content", content})
		return s
	}
	const chats = `(?:our|my|the|past|old|previous|earlier|all)?\s*(?:past |old |previous |earlier )?(?:chats?|conversations?|history|sessions?|messages?|transcripts?)`
	return []shape{
		{`(?:search|look)\s+(?:in |through )?` + chats + `\s+for\s+(.+)`, func(e *env, m []string) *step { return search(m[1]) }},
		{`(?:search|look)\s+for\s+(.+?)\s+in\s+` + chats, func(e *env, m []string) *step { return search(m[1]) }},
		{`find\s+(.+?)\s+in\s+` + chats, func(e *env, m []string) *step { return search(m[1]) }},
		{`(?:what did (?:we|you and i) (?:say|talk|discuss|write)\s*(?:about)?|did we (?:ever )?(?:talk|speak) about|when did we (?:talk|speak) about)\s+(.+)`, func(e *env, m []string) *step { return search(m[1]) }},
		{`(?:show|list)\s+(?:me )?(?:my |our |the )?(?:recent|last|past|latest)\s+(?:chats|conversations|sessions)`, func(e *env, m []string) *step { return once("session_search") }},
		{`(?:remember|memorize|memorise|keep in mind|note)\s*(?:that\s+|:\s*|this\s*:\s*)?(.+)`, func(e *env, m []string) *step { return remember(m[1]) }},
		{`forget\s+(?:that\s+|about\s+|what i said about\s+)?(.+)`, func(e *env, m []string) *step {
			what := unquote(m[1])
			if strings.EqualFold(what, "it") || strings.EqualFold(what, "everything") {
				return say("Tell me what to forget, as in “forget that I like tea”.")
			}
			target, _ := about(what)
			return once("memory", field{"action", "remove"}, field{"target", target}, field{"old_text", what})
		}},
		{`what\s+do\s+you\s+(?:remember|know)(?:\s+about\s+me)?|(?:show|list)\s+(?:me )?(?:your|my|the)\s+(?:memory|memories)`, func(e *env, m []string) *step {
			return say(e.remembered())
		}},
	}
}

// about tells the store of a memory: what is about the user goes to the user's.
func about(what string) (target, content string) {
	for _, w := range strings.Fields(strings.ToLower(what)) {
		switch strings.Trim(w, ".,!?'") {
		case "i", "i'm", "im", "my", "me", "mine", "i've", "i'd":
			return "user", "The user says: " + what
		}
	}
	return "memory", what
}

// remembered reads the memory out of the prompt: that is all a model sees of it.
func (e *env) remembered() string {
	var out []string
	in := false
	for _, line := range strings.Split(e.system, "\n") {
		t := strings.TrimSpace(line)
		switch {
		case strings.Contains(t, "══"):
			continue
		case strings.HasPrefix(t, "MEMORY") || strings.HasPrefix(t, "USER PROFILE"):
			in = true
			continue
		case strings.HasPrefix(t, "#"):
			in = false
		}
		if in && t != "" && t != "§" {
			out = append(out, "- "+t)
		}
	}
	if len(out) == 0 {
		return "My prompt holds no memories. What is remembered in this session reaches the prompt of the next one."
	}
	return "This is what my prompt says:\n\n" + clip(strings.Join(out, "\n"), 4000)
}
