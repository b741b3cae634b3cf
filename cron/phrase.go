package cron

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dayWords are the words that mean several days.
var dayWords = map[string]string{
	"day": "*", "daily": "*", "everyday": "*", "weekday": "1-5", "weekdays": "1-5", "weekend": "0,6", "weekends": "0,6",
}

var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// weekday returns the number of a day by its name, its plural, or a beginning of at least three letters.
func weekday(word string) (int, bool) {
	if len(word) < 3 {
		return 0, false
	}
	for i, day := range weekdays {
		if strings.HasPrefix(day, word) || word == day+"s" {
			return i, true
		}
	}
	return 0, false
}

var clockShape = regexp.MustCompile(`^(\d{1,2})(?::(\d{2}))? ?(am|pm)?$`)

// dayAndTime reads "weekday at 9am", "mon, wed and fri 14:00", "day at noon" as a cron expression.
func dayAndTime(text string) (expr string, ok bool) {
	words := strings.Fields(strings.ReplaceAll(text, ",", " , "))
	days, rest := daySpec(words)
	if days == "" || len(rest) == 0 {
		return "", false
	}
	if rest[0] == "at" {
		rest = rest[1:]
	}
	hour, minute, ok := timeOfDay(strings.Join(rest, " "))
	if !ok {
		return "", false
	}
	return fmt.Sprintf("%d %d * * %s", minute, hour, days), true
}

// daySpec reads the days at the beginning and returns the other words.
func daySpec(words []string) (days string, rest []string) {
	if len(words) == 0 {
		return "", nil
	}
	if days := dayWords[words[0]]; days != "" {
		return days, words[1:]
	}
	var list []string
	for i, w := range words {
		if w == "," || w == "and" {
			if i == 0 {
				return "", nil
			}
			continue
		}
		n, ok := weekday(w)
		if !ok {
			words = words[i:]
			break
		}
		if day := strconv.Itoa(n); !slices.Contains(list, day) {
			list = append(list, day)
		}
		if i == len(words)-1 {
			words = nil
		}
	}
	return strings.Join(list, ","), words
}

// timeOfDay reads 9am, 9:30 pm, 14:00, 7, noon and midnight.
func timeOfDay(text string) (hour, minute int, ok bool) {
	switch text {
	case "noon", "midday":
		return 12, 0, true
	case "midnight":
		return 0, 0, true
	}
	m := clockShape.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	hour, _ = strconv.Atoi(m[1])
	minute, _ = strconv.Atoi(m[2])
	if m[3] != "" {
		if hour < 1 || hour > 12 {
			return 0, 0, false
		}
		hour %= 12
		if m[3] == "pm" {
			hour += 12
		}
	}
	return hour, minute, hour <= 23 && minute <= 59
}

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
