package cron

import (
	"time"

	"herald/sessions"
)

// lot is the slots of a job that are due: the newest is run, those before it are missed.
type lot struct {
	first, last time.Time
	// before is the slot before last and missed how many there are from first to before, at most maxCounted; both are zero
	// when last is the only one.
	before time.Time
	missed int
	// grace is how late last may begin and still count as this slot.
	grace time.Duration
}

// lot returns the slots that are due at now. The job's Next is not after now.
func (j *Job) lot(now time.Time, zone *time.Location) lot {
	s := j.Plan.Schedule
	l := lot{first: j.Next, last: j.Next, grace: minGrace}
	if j.retrying() {
		l.grace = maxGrace
		return l
	}
	switch s.Kind {
	case Once:
		l.grace = OnceGrace
		return l
	case Interval:
		n := int(now.Sub(l.first) / s.Every)
		l.missed, l.last = min(n, maxCounted), l.first.Add(time.Duration(n)*s.Every)
		if n > 0 {
			l.before = l.last.Add(-s.Every)
		}
		l.grace = graceOf(s.Every)
		return l
	}
	at, counted := l.first, 0
	for {
		next, ok := s.Next(at, zone)
		if !ok {
			return l
		}
		if next.After(now) {
			l.grace = graceOf(next.Sub(at))
			break
		}
		l.before, at = at, next
		if counted++; counted == maxCounted { // the rest is not counted: look from the other end
			l.before, at = j.lastBefore(now, zone, at)
		}
	}
	l.last, l.missed = at, min(counted, maxCounted)
	return l
}

// lastBefore returns the two newest slots that are not after now, in a long row of slots that begins with from.
func (j *Job) lastBefore(now time.Time, zone *time.Location, from time.Time) (before, last time.Time) {
	for back := time.Hour; ; back *= 2 {
		start := now.Add(-back)
		if start.Before(from) {
			start = from
		}
		before, last = time.Time{}, time.Time{}
		for at := start; ; {
			next, ok := j.Plan.Schedule.Next(at, zone)
			if !ok || next.After(now) {
				break
			}
			before, last, at = last, next, next
		}
		if !before.IsZero() || !start.After(from) {
			return before, last
		}
	}
}

// graceOf is half a period, bounded.
func graceOf(period time.Duration) time.Duration { return min(max(period/2, minGrace), maxGrace) }

// kindOf says why a slot runs when it does.
func kindOf(late, grace time.Duration) sessions.RunKind {
	switch {
	case late > grace:
		return sessions.RunCatchUp
	case late > onTime:
		return sessions.RunLate
	}
	return sessions.RunOnTime
}

// after returns the slot that comes after last, which is the first one after now; or why no more comes.
func (j *Job) after(last, now time.Time, zone *time.Location) (next time.Time, done string) {
	if j.Plan.Times > 0 && j.Started >= j.Plan.Times {
		return time.Time{}, doneTimes
	}
	next, ok := j.Plan.Schedule.Next(last, zone)
	for ok && !next.After(now) { // the clock of the machine was changed
		next, ok = j.Plan.Schedule.Next(next, zone)
	}
	if !ok {
		return time.Time{}, doneOver
	}
	return next, ""
}
