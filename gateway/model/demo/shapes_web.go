package demo

import (
	"regexp"
	"strings"
	"sync"
)

const (
	reURL = `(https?://\S+)`
	reRef = `@?(e\d+)`
)

// addresses finds all web addresses in a text.
var addresses = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`https?://[^\s"'<>]+`) })

// whenOnly matches a text that is a time from its start to its end.
var whenOnly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)^` + reWhen + `$`) })

func imageName(s string) bool {
	s = strings.ToLower(strings.Trim(unquote(s), ".!?"))
	for _, ext := range []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"} {
		if strings.HasSuffix(s, ext) {
			return true
		}
	}
	return false
}

func webShapes() []shape {
	search := func(e *env, m []string) *step {
		return once("web_search", field{"query", unquote(strings.TrimRight(m[1], "?! "))})
	}
	extract := func(e *env, m []string) *step {
		var urls []string
		for _, u := range addresses().FindAllString(m[0], 16) {
			urls = append(urls, strings.TrimRight(u, ".,;:!?)"))
		}
		if !e.offered("web_extract") && e.offered("browser_navigate") {
			return once("browser_navigate", field{"url", urls[0]})
		}
		return once("web_extract", field{"urls", urls})
	}
	browse := func(e *env, m []string) *step {
		url := strings.TrimRight(m[1], ".,;:!?)")
		if !e.offered("browser_navigate") && e.offered("web_extract") {
			return once("web_extract", field{"urls", []string{url}})
		}
		return once("browser_navigate", field{"url", url})
	}
	look := func(e *env, m []string) *step {
		if !imageName(m[1]) && !strings.Contains(m[1], "://") {
			return nil
		}
		return once("vision_analyze", field{"image_url", e.path(m[1])}, field{"question", "What is in this picture?"})
	}
	const page = `(?:the |this |current )?(?:web ?)?page`
	return []shape{
		// web
		{`(?:search|look)\s+(?:on |in )?(?:the )?(?:web|internet|online)\s+for\s+(.+)`, search},
		{`(?:web search|search online|google|look up)\s*(?:for\s+)?:?\s*(.+?)(?:\s+(?:online|on the web|on the internet))?`, search},
		{`search\s+for\s+(.+?)\s+(?:online|on the web|on the internet)`, search},
		{`(?:fetch|extract|summari[sz]e|download|read|get|show)\s+(?:me )?(?:the )?(?:text |contents? |page |article )*(?:of |from |at )?` + reURL + `(?:.*)`, extract},
		// browser
		{`(?:open|browse|go|navigate|visit|surf)\s+(?:to\s+)?(?:the )?(?:page |site |website )*` + reURL + `(?:\s+in (?:the|a) browser)?`, browse},
		{`(?:take\s+)?(?:a )?(full )?snapshot\s*(?:of\s+` + page + `)?`, func(e *env, m []string) *step {
			if m[1] != "" {
				return once("browser_snapshot", field{"full", true})
			}
			return once("browser_snapshot")
		}},
		{`click\s+(?:on\s+)?(?:the )?(?:element |button |link )?` + reRef, func(e *env, m []string) *step { return once("browser_click", field{"ref", "@" + m[1]}) }},
		{`(?:type|enter|fill)\s+(.+?)\s+(?:in)?to\s+(?:the )?(?:element |field |box )?` + reRef, func(e *env, m []string) *step {
			return once("browser_type", field{"ref", "@" + m[2]}, field{"text", unquote(m[1])})
		}},
		{`scroll\s+(?:` + page + `\s+)?(up|down)(?:\s+` + page + `)?`, func(e *env, m []string) *step {
			return once("browser_scroll", field{"direction", strings.ToLower(m[1])})
		}},
		{`go\s+back(?:\s+(?:to|in).*)?`, func(e *env, m []string) *step { return once("browser_back") }},
		{`(?:press|hit)\s+(?:the )?(?:key )?(\S+)(?:\s+key)?`, func(e *env, m []string) *step { return once("browser_press", field{"key", unquote(m[1])}) }},
		{`(?:list|show|get)\s+(?:me )?(?:the )?(?:images|pictures)\s+(?:on|of|from)\s+` + page, func(e *env, m []string) *step { return once("browser_get_images") }},
		{`(?:show|read|get|open)\s+(?:me )?(?:the )?(?:browser|page)(?:'s)?\s+console`, func(e *env, m []string) *step { return once("browser_console") }},
		{`(?:evaluate|run in the page)\s*:?\s+(.+?)(?:\s+in\s+` + page + `)?`, func(e *env, m []string) *step {
			return once("browser_console", field{"expression", unquote(m[1])})
		}},
		{`(accept|dismiss)\s+(?:the )?dialog`, func(e *env, m []string) *step { return once("browser_dialog", field{"action", strings.ToLower(m[1])}) }},
		{`(what (?:do you see|is visible|does it look like).*?)(?:\s+on\s+` + page + `)`, func(e *env, m []string) *step {
			return once("browser_vision", field{"question", m[1] + "?"})
		}},
		{`call\s+the\s+browser\s+protocol\s+(\S+)`, func(e *env, m []string) *step { return once("browser_cdp", field{"method", m[1]}) }},
		// pictures
		{`(?:look\s+at|describe|analy[sz]e|what(?:'s| is)\s+(?:in|on))\s+(?:the )?(?:image |picture |photo |file )?(\S+)`, look},
		{`(?:draw|paint|generate|create|make)\s+(?:me )?(?:an? )?(?:image|picture|drawing)\s+of\s+(.+)`, func(e *env, m []string) *step {
			return once("image_generate", field{"prompt", unquote(m[1])})
		}},
		{`(?:take|make)\s+a\s+screen ?shot`, func(e *env, m []string) *step { return once("computer_use", field{"action", "capture"}) }},
	}
}
