package view

import (
	"strconv"
	"strings"
	"time"

	"herald/cron"
	"herald/locales"
)

// ScheduleWords says a schedule in the printer's language, such as "on weekdays at 9:00". zone is that of the jobs'
// clocks. An expression that has no short words is shown as it is.
func ScheduleWords(p *locales.Printer, s cron.Schedule, zone *time.Location) string {
	switch s.Kind {
	case cron.Once:
		return p.T("job.words.once", locales.Str("time", When(p, s.At, zone)))
	case cron.Interval:
		return everyWords(p, s.Every)
	}
	if words, ok := clockWords(p, strings.Fields(s.Expr)); ok {
		return words
	}
	return p.T("job.words.expression", locales.Str("expression", s.Expr))
}

// everyWords says an interval. One of a unit has a text of its own, because languages say it without the number.
func everyWords(p *locales.Printer, d time.Duration) string {
	switch d {
	case time.Minute:
		return p.T("job.words.every_minute")
	case time.Hour:
		return p.T("job.words.every_hour")
	case 24 * time.Hour:
		return p.T("job.words.every_day")
	}
	return p.T("job.words.every", locales.Dur("time", d))
}

// clockWords says the plain ones among expressions of five fields.
func clockWords(p *locales.Printer, f []string) (string, bool) {
	if len(f) != 5 || f[3] != "*" {
		return "", false
	}
	minute, isMinute := fieldNumber(f[0])
	hour, isHour := fieldNumber(f[1])
	if f[1] == "*" && f[2] == "*" && f[4] == "*" {
		return hourlyWords(p, f[0], minute, isMinute)
	}
	if !isMinute || !isHour {
		return "", false
	}
	at := locales.Str("time", clockTime(hour, minute))
	if f[2] != "*" {
		day, ok := fieldNumber(f[2])
		if !ok || f[4] != "*" {
			return "", false
		}
		return p.T("job.words.monthly", locales.Int("day", day), at), true
	}
	switch strings.ToLower(f[4]) {
	case "*":
		return p.T("job.words.daily", at), true
	case "1-5", "mon-fri":
		return p.T("job.words.weekdays", at), true
	case "0,6", "6,0", "sat,sun":
		return p.T("job.words.weekends", at), true
	}
	days, ok := dayNames(p, f[4])
	return p.T("job.words.days", locales.Str("days", days), at), ok
}

// hourlyWords says an expression that takes every hour.
func hourlyWords(p *locales.Printer, field string, minute int, isMinute bool) (string, bool) {
	step, stepped := strings.CutPrefix(field, "*/")
	n, isNumber := fieldNumber(step)
	switch {
	case field == "*" || stepped && isNumber && n == 1:
		return p.T("job.words.every_minute"), true
	case stepped && isNumber && n > 0 && 60%n == 0:
		return everyWords(p, time.Duration(n)*time.Minute), true
	case isMinute && minute == 0:
		return p.T("job.words.every_hour"), true
	case isMinute:
		return p.T("job.words.hourly", locales.Int("minute", minute)), true
	}
	return "", false
}

// clockTime writes a time of day: 9:05.
func clockTime(hour, minute int) string {
	return strconv.Itoa(hour) + ":" + strconv.Itoa(minute/10) + strconv.Itoa(minute%10)
}

func fieldNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0
}

// dayNames says the days of a field that lists some, such as "1,4".
func dayNames(p *locales.Printer, field string) (string, bool) {
	var names []string
	for _, d := range strings.Split(field, ",") {
		n, ok := fieldNumber(d)
		if !ok || n > 7 {
			return "", false
		}
		names = append(names, p.T("job.day."+dayKeys[n%7]))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0], true
	}
	return p.T("job.words.and", locales.Str("list", strings.Join(names[:last], ", ")), locales.Str("last", names[last])), true
}

// dayKeys end the keys of the days' names, Sunday first.
var dayKeys = [...]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// When writes an instant as it is read in a zone: "Mon 2026-11-30 09:00".
func When(p *locales.Printer, t time.Time, zone *time.Location) string {
	t = t.In(zone)
	return p.T("job.time", locales.Str("weekday", p.T("job.day_short."+dayKeys[t.Weekday()])), locales.Str("year", t.Format("2006")),
		locales.Str("month", t.Format("01")), locales.Str("day", t.Format("02")), locales.Str("time", t.Format("15:04")))
}

// ZoneName is what people call a zone: its name, or for the machine's own the abbreviation that holds at t.
func ZoneName(zone *time.Location, t time.Time) string {
	if name := zone.String(); name != "Local" {
		return name
	}
	return t.In(zone).Format("MST")
}

// NextWords says the next times of a job, in the zone of its clock, in one line; "" when there are none.
func NextWords(p *locales.Printer, times []time.Time, zone *time.Location) string {
	if len(times) == 0 {
		return ""
	}
	said := make([]string, len(times))
	for i, t := range times {
		said[i] = When(p, t, zone)
	}
	return p.N("job.next", len(times), locales.Str("times", strings.Join(said, ", ")), locales.Str("zone", ZoneName(zone, times[0])))
}
