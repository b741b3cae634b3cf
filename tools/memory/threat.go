package memory

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// threats are texts that do not belong in a note of facts: they talk to the model, or tell it to carry
// secrets away. The text is folded to lower case with single spaces before it is matched.
var threats = []struct {
	form *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`\b(?:ignore|disregard|forget|override|bypass)\b(?: \S+){0,3} (?:instructions?|rules?|guidelines?|prompts?|directives?|polic(?:y|ies))\b`), "tells the agent to drop its instructions"},
	{regexp.MustCompile(`\byou are (?:now|no longer)\b|\bpretend (?:to be|that you)\b|\bact as if you (?:have|had) no\b|\bfrom now on,? you\b`), "tries to give the agent another role"},
	{regexp.MustCompile(`\bsystem prompt\b.{0,40}\b(?:is|override|replace|reveal|print)\b|\b(?:reveal|print|repeat|show) (?:\S+ ){0,3}system prompt\b`), "is about the system prompt"},
	{regexp.MustCompile(`\b(?:do not|don't|never) (?:tell|inform|mention (?:it|this) to|let) the (?:user|person|owner)\b`), "tells the agent to hide something from the person"},
	{regexp.MustCompile(`</?\s*(?:system|assistant|user|tool_call|function_call|instructions?)\s*>|\[/?(?:inst|system)\]|<\|[a-z_]+\|>`), "has tags that look like another speaker"},
	{regexp.MustCompile(`\b(?:curl|wget|nc|fetch)\b[^\n]{0,200}\$\{?[a-z_]*(?:key|token|secret|password|credential)`), "would send a secret away"},
	{regexp.MustCompile(`\b(?:cat|less|head|tail|cp|scp|base64)\b[^\n]{0,100}(?:\.env\b|\.netrc|id_rsa|id_ed25519|\.aws/credentials|\.git-credentials)`), "reads a credential file"},
	{regexp.MustCompile(`authorized_keys|\bsudoers\b|\brm -rf? [/~](?:\s|$)`), "touches access to the machine"},
}

// Threat returns what makes a text unfit for memory, worded to follow "it"; empty when there is nothing.
func Threat(text string) string {
	for _, r := range text {
		if unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c' ||
			r >= 0xE0000 && r <= 0xE007F || unicode.IsControl(r) && r != '\n' && r != '\t' {
			return fmt.Sprintf("has the invisible character U+%04X", r)
		}
	}
	folded := strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, t := range threats {
		if t.form.MatchString(folded) {
			return t.what
		}
	}
	return ""
}
