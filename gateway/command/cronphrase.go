package command

import (
	"strings"
	"time"
	"unicode"

	"herald/cron"
)

// maxScheduleWords bounds how many words of a phrase are tried as its schedule: "every monday, tuesday, …, and sunday at
// 9:30 pm" has fewer.
const maxScheduleWords = 20

// phrase is what a person asks for in one line: when, and what.
type phrase struct {
	schedule string // as cron.Parse takes it
	prompt   string
}

// ParsePhrase parts a phrase such as "every weekday at 9 send me the news" into its schedule and its prompt, which may be
// empty. The error is a *cron.Error when there is no schedule in it.
func ParsePhrase(text string, now time.Time, zone *time.Location) (schedule, prompt string, err error) {
	p, ok, err := splitPhrase(text, now, zone)
	if err == nil && !ok {
		_, err = cron.Parse(text, now, zone)
	}
	return p.schedule, p.prompt, err
}

// splitPhrase finds the schedule in a phrase and leaves the rest as the prompt. A "|" parts the two; else the schedule is
// the longest beginning that is one ("every weekday at 9 send me the news"), or the longest later part that begins with a
// word that only a schedule has ("remind me to stretch every hour", "tell me in 5 minutes to leave"). ok is false when
// there is none; err is why what stands before a "|" is none.
func splitPhrase(text string, now time.Time, zone *time.Location) (p phrase, ok bool, err error) {
	text = strings.TrimSpace(text)
	if before, after, cut := strings.Cut(text, "|"); cut {
		schedule := plainSchedule(before)
		if _, err := cron.Parse(schedule, now, zone); err != nil {
			return phrase{}, false, err
		}
		return phrase{schedule, strings.TrimSpace(after)}, true, nil
	}
	words := wordsOf(text)
	for i := range words {
		if i > 0 && !startsSchedule(words[i].text) {
			continue
		}
		for j := min(len(words), i+maxScheduleWords); j > i; j-- {
			schedule := plainSchedule(text[words[i].from:words[j-1].to])
			if _, err := cron.Parse(schedule, now, zone); err == nil {
				return phrase{schedule, joinRest(text[:words[i].from], text[words[j-1].to:])}, true, nil
			}
		}
	}
	return phrase{}, false, nil
}

// word is a piece of a text without white space, and where it stands.
type word struct {
	text     string
	from, to int
}

func wordsOf(text string) []word {
	var out []word
	from := -1
	for i, r := range text + " " {
		switch space := unicode.IsSpace(r); {
		case !space && from < 0:
			from = i
		case space && from >= 0:
			out = append(out, word{text[from:i], from, i})
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

// joinRest puts together what stands around the schedule.
func joinRest(before, after string) string {
	before = strings.TrimRight(strings.TrimSpace(before), ",;:–- ")
	after = strings.TrimLeft(strings.TrimSpace(after), ",;:–- ")
	return strings.TrimSpace(before + " " + after)
}
