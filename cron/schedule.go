package cron

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	robfig "github.com/robfig/cron/v3"
)

// Kind is how a schedule finds its instants.
type Kind string

// The kinds.
const (
	Once     Kind = "once"     // one instant
	Interval Kind = "interval" // every so many minutes of elapsed time
	Clock    Kind = "cron"     // five fields on the wall clock of a zone
)

// OnceGrace is how long after its instant a one-shot still runs.
const OnceGrace = 120 * time.Second

// MaxInterval is the longest interval (inclusive), about ten years.
const MaxInterval = 3650 * 24 * time.Hour

// Schedule is a parsed schedule. Make one with Parse or, from the stored fields, with Restore.
type Schedule struct {
	Kind Kind `json:"kind"`
	// At is the instant of a one-shot, UTC.
	At time.Time `json:"run_at,omitzero"`
	// Every is the length of an interval, whole minutes, 1 minute to MaxInterval.
	Every time.Duration `json:"every,omitzero"`
	// Expr is the expression of the wall clock: minute, hour, day of month, month, day of week.
	Expr string `json:"expr,omitempty"`
	// Display is what people are shown: what they wrote, or the plain form of it.
	Display string `json:"display"`

	fields robfig.Schedule
	hourly bool // the hour field takes every hour
}

// Error is a schedule that can't be used.
type Error struct {
	Text   string // as it was written
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("schedule %q: %s", e.Text, e.Reason) }

// forms is what a schedule may look like.
const forms = `write "every 30m" (or 30m), "in 2h", "every weekday at 9am", a cron expression such as "0 9 * * 1-5", or a time such as 2027-01-31T09:00`

// Parse reads a schedule as a person writes it, in this order: a day and a time ("every weekday at 9am", "mon and thu
// 14:00"), an interval ("every 30m", "every hour"), a cron expression of five fields, a time ("2027-01-31T09:00", taken
// in zone when it names none), "in 2h", "tomorrow at 8am", and a bare duration, which repeats. now is when it was written. The error is an
// *Error that says what is allowed.
func Parse(text string, now time.Time, zone *time.Location) (Schedule, error) {
	shown := strings.Join(strings.Fields(text), " ")
	lower := strings.ToLower(shown)
	bad := func(format string, args ...any) (Schedule, error) {
		return Schedule{}, &Error{Text: text, Reason: fmt.Sprintf(format, args...)}
	}
	if lower == "" {
		return bad("it is empty; %s", forms)
	}
	rest, every := strings.CutPrefix(lower, "every ")
	if expr, ok := dayAndTime(rest); ok {
		return clock(text, expr, shown)
	}
	if every {
		d, err := duration(rest)
		if err != nil {
			return bad("%v; %s", err, forms)
		}
		return interval(text, d)
	}
	if looksLikeFields(lower) {
		return clock(text, lower, lower)
	}
	if looksLikeTime(shown) {
		at, err := instant(shown, zone)
		if err != nil {
			return bad("%v; write 2027-01-31T09:00, with an offset such as +01:00 for another zone than %s", err, zone)
		}
		return once(text, at, now, shown)
	}
	if rest, ok := strings.CutPrefix(lower, "in "); ok {
		d, err := duration(rest)
		if err != nil {
			return bad("%v; %s", err, forms)
		}
		return once(text, now.Add(d), now, shown)
	}
	if at, ok := dayAhead(lower, now, zone); ok {
		return once(text, at, now, shown)
	}
	d, err := duration(lower)
	if err != nil {
		return bad("it is none of the forms that are known; %s", forms)
	}
	return interval(text, d)
}

// Restore makes a stored schedule ready for Next. Its fields are checked as those of a new one, but that a one-shot may
// lie in the past.
func (s Schedule) Restore() (Schedule, error) {
	switch s.Kind {
	case Once:
		if s.At.IsZero() {
			return Schedule{}, &Error{Text: s.Display, Reason: "it has no time"}
		}
		return s, nil
	case Interval:
		back, err := interval(s.Display, s.Every)
		back.Display = s.Display
		return back, err
	case Clock:
		return clock(s.Display, s.Expr, s.Display)
	}
	return Schedule{}, &Error{Text: s.Display, Reason: fmt.Sprintf("kind %q is none of once, interval, cron", s.Kind)}
}

func once(text string, at, now time.Time, shown string) (Schedule, error) {
	at = at.UTC().Truncate(time.Second)
	if now.Sub(at) > OnceGrace {
		return Schedule{}, &Error{Text: text, Reason: fmt.Sprintf("%s has passed; name a time that is to come", at.Format(time.RFC3339))}
	}
	return Schedule{Kind: Once, At: at, Display: shown}, nil
}

func interval(text string, d time.Duration) (Schedule, error) {
	if d < time.Minute || d > MaxInterval || d%time.Minute != 0 {
		return Schedule{}, &Error{Text: text, Reason: fmt.Sprintf("an interval of %s is not allowed; it has whole minutes, at least 1 and at most %d (ten years)", d, MaxInterval/time.Minute)}
	}
	return Schedule{Kind: Interval, Every: d, Display: fmt.Sprintf("every %dm", d/time.Minute)}, nil
}

// fieldParser takes five fields, with names for months and days of the week.
var fieldParser = robfig.NewParser(robfig.Minute | robfig.Hour | robfig.Dom | robfig.Month | robfig.Dow)

func clock(text, expr, shown string) (Schedule, error) {
	parts := strings.Fields(expr)
	if len(parts) != 5 {
		return Schedule{}, &Error{Text: text, Reason: fmt.Sprintf("a cron expression has 5 fields (minute hour day month weekday), not %d", len(parts))}
	}
	parts[4] = sundays(parts[4])
	fields, err := fieldParser.Parse(strings.Join(parts, " "))
	if err != nil {
		return Schedule{}, &Error{Text: text, Reason: strings.TrimSuffix(err.Error(),
			".") + "; a cron expression is: minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-7"}
	}
	s := Schedule{Kind: Clock, Expr: expr, Display: shown, fields: fields, hourly: parts[1] == "*" || parts[1] == "*/1"}
	if fields.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, &Error{Text: text, Reason: "there is no such day in any year"}
	}
	return s, nil
}

// sundays writes 7, which many use for Sunday, as 0.
func sundays(dow string) string {
	list := strings.Split(dow, ",")
	for i, item := range list {
		switch body, step, stepped := strings.Cut(item, "/"); {
		case body == "7":
			list[i] = strings.TrimSuffix("0/"+step, "/")
		case strings.HasSuffix(body, "-7"):
			from := strings.TrimSuffix(body, "-7")
			if !stepped {
				list[i] = from + "-6,0"
			} else if first, err := strconv.Atoi(from); err == nil {
				list[i] = steppedTo7(first, step, item)
			}
		}
	}
	return strings.Join(list, ",")
}

// steppedTo7 lists the days of from-7/step.
func steppedTo7(first int, step, item string) string {
	by, err := strconv.Atoi(step)
	if err != nil || by < 1 || first < 0 || first > 7 {
		return item // the parser says what is wrong
	}
	var days []string
	for d := first; d <= 7; d += by {
		days = append(days, strconv.Itoa(d%7))
	}
	return strings.Join(days, ",")
}

var fieldShape = regexp.MustCompile(`^[a-z0-9*,/?-]+$`)

// looksLikeFields reports whether the text can only be meant as a cron expression.
func looksLikeFields(lower string) bool {
	parts := strings.Fields(lower)
	if len(parts) < 5 {
		return false
	}
	return !slices.ContainsFunc(parts[:5], func(p string) bool { return !fieldShape.MatchString(p) })
}

var dateShape = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)

func looksLikeTime(text string) bool { return dateShape.MatchString(text) }

// instant reads a time, in zone when it names none.
func instant(text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if naive, err := time.Parse(layout, text); err == nil {
			return onClock(naive, zone), nil
		}
	}
	return time.Time{}, fmt.Errorf("this is no date and time that exists")
}

var durationShape = regexp.MustCompile(`^(\d+)? ?(m|min|mins|minutes?|h|hrs?|hours?|d|days?)$`)

// duration reads a number and a unit; without a number it is one.
func duration(text string) (time.Duration, error) {
	m := durationShape.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, fmt.Errorf("%q is no duration such as 30m, 2h or 1d", text)
	}
	n, err := int64(1), error(nil)
	if m[1] != "" {
		n, err = strconv.ParseInt(m[1], 10, 64)
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[m[2][0]]
	if err != nil || n < 1 || n > int64(MaxInterval/unit) {
		return 0, fmt.Errorf("%q is not allowed: at least 1 minute and at most 3650 days", text)
	}
	return time.Duration(n) * unit, nil
}
