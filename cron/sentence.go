package cron

import (
	"strings"
	"time"
	"unicode"
)

// maxScheduleWords bounds how many words of a line are tried as its schedule: "every monday, tuesday, …, and sunday at
// 9:30 pm" has fewer.
const maxScheduleWords = 20

// Sentence is what a person asks for in one line: when, and what.
type Sentence struct {
	Schedule string // as Parse takes it
	Prompt   string // may be empty
}

// ParseSentence parts a line such as "every weekday at 9 send me the news" into its schedule and its prompt. The error is an
// *Error when there is no schedule in it.
func ParseSentence(text string, now time.Time, zone *time.Location) (Sentence, error) {
	p, ok, err := FindSentence(text, now, zone)
	if err == nil && !ok {
		_, err = Parse(text, now, zone)
	}
	return p, err
}

// FindSentence finds the schedule in a line and leaves the rest as the prompt. A "|" parts the two; else the schedule is
// the longest beginning that is one ("every weekday at 9 send me the news"), or the longest later part that begins with a
// word that only a schedule has ("remind me to stretch every hour", "tell me in 5 minutes to leave"). ok is false when
// no schedule is found; err is why the text before a "|" is not one.
func FindSentence(text string, now time.Time, zone *time.Location) (p Sentence, ok bool, err error) {
	text = strings.TrimSpace(text)
	if before, after, cut := strings.Cut(text, "|"); cut {
		schedule := plainSchedule(before)
		if _, err := Parse(schedule, now, zone); err != nil {
			return Sentence{}, false, err
		}
		return Sentence{schedule, strings.TrimSpace(after)}, true, nil
	}
	words := Words(text)
	for i := range words {
		if i > 0 && !startsSchedule(words[i].Text) {
			continue
		}
		for j := min(len(words), i+maxScheduleWords); j > i; j-- {
			schedule := plainSchedule(text[words[i].From:words[j-1].To])
			if _, err := Parse(schedule, now, zone); err == nil {
				return Sentence{schedule, joinRest(text[:words[i].From], text[words[j-1].To:])}, true, nil
			}
		}
	}
	return Sentence{}, false, nil
}

// Word is a piece of a text without white space, and where it stands: text[From:To].
type Word struct {
	Text     string
	From, To int
}

// Words parts a text at its white space.
func Words(text string) []Word {
	var out []Word
	from := -1
	for i, r := range text + " " {
		switch space := unicode.IsSpace(r); {
		case !space && from < 0:
			from = i
		case space && from >= 0:
			out = append(out, Word{text[from:i], from, i})
			from = -1
		}
	}
	return out
}

// startsSchedule reports whether a word begins a schedule in the middle of a sentence. A bare duration or a day does not:
// "rest for 5 minutes" asks for no rhythm.
func startsSchedule(word string) bool {
	switch strings.ToLower(word) {
	case "every", "each", "in", "daily", "hourly", "everyday", "today", "tomorrow":
		return true
	}
	return false
}

// plainSchedule writes a few ways of speaking as the grammar has them.
func plainSchedule(text string) string {
	s := strings.Join(strings.Fields(strings.TrimRight(strings.TrimSpace(text), ",;:.-–")), " ")
	lower := strings.ToLower(s)
	switch lower {
	case "hourly":
		return "every hour"
	case "in half an hour", "in a half hour":
		return "in 30m"
	}
	for spoken, plain := range map[string]string{"each ": "every ", "in an ": "in 1 ", "in a ": "in 1 ", "in one ": "in 1 "} {
		if strings.HasPrefix(lower, spoken) {
			return plain + s[len(spoken):]
		}
	}
	return s
}

// joinRest joins the texts before and after the schedule.
func joinRest(before, after string) string {
	before = strings.TrimRight(strings.TrimSpace(before), ",;:–- ")
	after = strings.TrimLeft(strings.TrimSpace(after), ",;:–- ")
	return strings.TrimSpace(before + " " + after)
}
