package tools

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The bounds of error texts that go to a model, in characters.
const (
	maxErrorText = 2000 // of a handler's error, before the prefix
	maxErrorBody = 2048 // of any error that a result carries
)

// errorPrefix starts the text of a handler's error, and truncatedMark ends one that was cut.
const (
	errorPrefix   = "[TOOL_ERROR] "
	truncatedMark = "… [truncated]"
)

// What an error text must not carry into a prompt: tags that look like a change of speaker, code fences
// around the whole, CDATA.
var (
	roleTags = regexp.MustCompile(`(?i)</?\s*(?:tool_call|function_call|result|response|output|input|system|assistant|user)\b[^>]*>`)
	cdata    = regexp.MustCompile(`(?s)<!\[CDATA\[.*?\]\]>`)
	openTick = regexp.MustCompile("(?m)^\\s*```[A-Za-z0-9_-]*\\s*$")
)

// SanitizeError makes an error text safe to show to a model: without role-like tags, fences and CDATA
// blocks, at most 2,000 characters, behind the prefix "[TOOL_ERROR] ".
func SanitizeError(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = cdata.ReplaceAllString(text, "")
	text = roleTags.ReplaceAllString(text, "")
	text = openTick.ReplaceAllString(text, "")
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > maxErrorText {
		text = firstRunes(text, maxErrorText-3) + "..."
	}
	return errorPrefix + text
}

// toolError is the result of a handler that returned an error or panicked.
func toolError(err error) Result {
	return failure{Error: SanitizeError("Tool execution failed: " + err.Error())}.result(ExitError)
}

// boundError cuts the error of a result. Content that is JSON with a long "error" text keeps its other
// fields; any other content is left to the size limit of results.
func boundError(content string) string {
	if len(content) <= maxErrorBody || !strings.HasPrefix(strings.TrimSpace(content), "{") {
		return content
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(content), &fields) != nil {
		return content
	}
	var text string
	if json.Unmarshal(fields["error"], &text) != nil || utf8.RuneCountInString(text) <= maxErrorBody {
		return content
	}
	cutText, err := encode(firstRunes(text, maxErrorBody) + truncatedMark)
	if err != nil {
		return content
	}
	fields["error"] = cutText
	out, err := encode(fields)
	if err != nil {
		return content
	}
	return string(out)
}
