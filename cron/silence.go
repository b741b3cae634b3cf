package cron

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarker is how many characters a line may have and still be taken for a marker of silence.
const maxMarker = 64

// silentMarkers are what an agent answers when there is nothing to say.
var silentMarkers = map[string]bool{"[SILENT]": true, "SILENT": true, "NO_REPLY": true, "NO REPLY": true}

// Silent reports whether the output of a run asks not to be delivered: it is a marker, its first or last line that is not
// blank is one, or it begins with one in brackets, with a note behind it. A marker in the middle of a sentence is content,
// and so is no text at all.
func Silent(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" {
		return false
	}
	const bracketed = "[SILENT]"
	if len(text) >= len(bracketed) && strings.EqualFold(text[:len(bracketed)], bracketed) {
		return true
	}
	first, _, _ := strings.Cut(text, "\n")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return marker(first) || marker(last) || marker(text)
}

// marker reports whether a text is a marker of silence and nothing else, whatever its case, space and the punctuation
// around it.
func marker(text string) bool {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > maxMarker {
		return false
	}
	text = strings.Join(strings.Fields(strings.ToUpper(text)), " ")
	return silentMarkers[text] || silentMarkers[strings.TrimFunc(text, aroundMarker)]
}

func aroundMarker(r rune) bool {
	return r != '[' && r != ']' && (unicode.IsPunct(r) || unicode.IsSymbol(r) || unicode.IsSpace(r))
}

// finalMarker begins the line after which an agent writes what is to be delivered.
const finalMarker = "FINAL_CRON_OUTPUT:"

// Deliverable returns the part of an answer that is to be delivered: the text after the last line that begins with
// FINAL_CRON_OUTPUT:, trimmed. Without such a line, or with nothing after it, it is the whole answer as it is.
func Deliverable(answer string) string {
	at := strings.LastIndex(answer, "\n"+finalMarker)
	switch {
	case at >= 0:
		at++
	case strings.HasPrefix(answer, finalMarker):
		at = 0
	default:
		return answer
	}
	if tail := strings.TrimSpace(answer[at+len(finalMarker):]); tail != "" {
		return tail
	}
	return answer
}
