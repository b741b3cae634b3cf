package cron

import (
	"fmt"
	"strings"
	"unicode"
)

// Frame is what is written around a brief, so that its reader knows which job sent it and how to stop it.
type Frame struct {
	Name string
	ID   JobID
	// Title comes before the name, and Footer after the brief, in the reader's language; empty ones are English.
	Title  string
	Footer string
}

// rule separates the brief from its frame. Between blank lines, no Markdown reads it as a heading.
const rule = "-------------"

// Wrap puts a frame around the output of a run. MEDIA tags in it stay whole, and the name of the job can't bring in any.
// An empty body stays empty: there is nothing to send.
func Wrap(f Frame, body string) string {
	if body = strings.TrimSpace(body); body == "" {
		return ""
	}
	title, footer := f.Title, f.Footer
	if title == "" {
		title = "Scheduled job"
	}
	if footer == "" {
		footer = fmt.Sprintf("To change or stop this job, say so in a chat, or run: herald cron pause %s", f.ID)
	}
	return fmt.Sprintf("%s: %s\n(job %s)\n\n%s\n\n%s\n\n%s\n\n%s", title, Plain(f.Name, maxFrameName), f.ID, rule, closeFence(body),
		rule, footer)
}

// maxFrameName is how many characters of a job's name a brief shows.
const maxFrameName = 80

// Plain makes one line of at most limit characters of a text that people chose, with nothing in it that has a meaning to
// who sends it: no tags of files, no control or invisible characters.
func Plain(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar, !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	text = strings.ReplaceAll(text, "MEDIA:", "MEDIA :")
	for strings.Contains(text, "[[") {
		text = strings.ReplaceAll(text, "[[", "[")
	}
	if runes := []rune(text); len(runes) > limit {
		text = strings.TrimSpace(string(runes[:limit-1])) + "…"
	}
	return text
}

// closeFence ends a code block that a body leaves open, or the text after it would be code.
func closeFence(body string) string {
	open := ""
	for line := range strings.SplitSeq(body, "\n") {
		line = strings.TrimLeft(line, " ")
		run := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case open == "" && len(run) >= 3:
			open = run
		case open != "" && len(run) >= len(open) && strings.TrimSpace(line[len(run):]) == "":
			open = ""
		}
	}
	if open == "" {
		return body
	}
	return body + "\n" + open
}
