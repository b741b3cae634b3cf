package show

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// silenceTokens are answers that mean "say nothing".
var silenceTokens = []string{"[silent]", "silent", "no_reply", "no reply", "沉默", "静默", "不回复", "无需回复"}

// maxSilence is the longest text that may count as narrated silence, in characters.
const maxSilence = 64

// IsSilent reports whether an answer says nothing: exactly one silence token, or narrated silence such as
// "(silent)", a lone dot or a mute emoji. It looks at the whole text only.
func IsSilent(text string) bool {
	s := strings.ToLower(strings.TrimSpace(text))
	if isSilenceToken(s) {
		return true
	}
	if utf8.RuneCountInString(s) > maxSilence {
		return false
	}
	inner := strings.Trim(s, "()[]*_ .…")
	switch inner {
	case "", "🔇", "🤐", "🤫":
		return true
	case "silent", "silence", "stays silent", "says nothing", "no response":
		return s != inner // only as narration: "(silent)", "*silence*"
	}
	return false
}

// isSilenceToken reports whether an answer is nothing, or exactly one silence token in any case.
func isSilenceToken(text string) bool {
	s := strings.ToLower(strings.TrimSpace(text))
	return s == "" || slices.Contains(silenceTokens, s)
}

// mayBeDirective reports whether a growing text may turn out to be a silence token, so that it is not shown
// yet.
func mayBeDirective(text string) bool {
	s := strings.ToLower(strings.TrimSpace(text))
	for _, token := range silenceTokens {
		if strings.HasPrefix(token, s) {
			return true
		}
	}
	return false
}

// Clean makes the final text safe to show: valid UTF-8 without surrogates, control characters or
// invisible direction overrides.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, text)
}

// argument returns the named argument of a call as text, for progress bubbles.
func argument(args json.RawMessage, name string) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return ""
	}
	raw, ok := all[name]
	if !ok {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// shorten cuts s to about n bytes at a rune border.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
