package cron

import (
	"strings"
	"time"
)

// dayAhead reads a time of today or tomorrow, such as "tomorrow at 8am" or "at 18:30 today", as the one instant that it
// means on the wall clock of zone. "at 18:30" alone is the next time that a clock shows it.
func dayAhead(lower string, now time.Time, zone *time.Location) (at time.Time, ok bool) {
	words := strings.Fields(lower)
	day := ""
	switch n := len(words); {
	case n > 1 && isDayAhead(words[0]):
		day, words = words[0], words[1:]
	case n > 2 && words[0] == "at" && isDayAhead(words[n-1]):
		day, words = words[n-1], words[:n-1]
	}
	switch {
	case len(words) > 0 && words[0] == "at":
		words = words[1:]
	case day == "":
		return time.Time{}, false
	}
	hour, minute, ok := timeOfDay(strings.Join(words, " "))
	if !ok {
		return time.Time{}, false
	}
	year, month, date := now.In(zone).Date()
	on := func(days int) time.Time {
		return onClock(time.Date(year, month, date+days, hour, minute, 0, 0, time.UTC), zone)
	}
	if at = on(0); day == "tomorrow" || day == "" && !at.After(now) {
		at = on(1)
	}
	return at, true
}

func isDayAhead(word string) bool { return word == "today" || word == "tomorrow" }
