package cron

import "time"

// Next returns the first instant strictly after base, UTC, and false when there is none. A schedule on the wall clock
// is read in zone: an hour that comes twice has its instants once, the first time it comes; an instant in an hour that is
// left out comes at the end of the gap. A schedule of every hour continues through both. A one-shot has its instant as
// long as base is before it.
func (s Schedule) Next(base time.Time, zone *time.Location) (time.Time, bool) {
	switch s.Kind {
	case Once:
		return s.At, s.At.After(base)
	case Interval:
		return base.UTC().Add(s.Every), true
	case Clock:
		if at, ok := s.nextCalm(base, zone); ok {
			return at, true
		}
		if s.hourly {
			return s.nextElapsed(base, zone)
		}
		return s.nextClock(base, zone)
	}
	return time.Time{}, false
}

// maxChange is more than a clock is ever moved at once.
const maxChange = 25 * time.Hour

// nextCalm is the plain case: the zone's clock is not changed anywhere near. ok is false where it may be.
func (s Schedule) nextCalm(base time.Time, zone *time.Location) (time.Time, bool) {
	local := base.In(zone)
	naive := wall(local).Truncate(time.Minute)
	next := s.fields.Next(naive)
	if next.IsZero() {
		return time.Time{}, false
	}
	start, end := local.ZoneBounds()
	at := base.UTC().Truncate(time.Minute).Add(next.Sub(naive))
	calm := (start.IsZero() || base.Sub(start) > maxChange) && (end.IsZero() || end.Sub(at) > maxChange)
	return at, calm && offset(local)%60 == 0
}

// nextClock walks the wall clock as if it had no changes, and asks of each of its instants when it really is.
func (s Schedule) nextClock(base time.Time, zone *time.Location) (time.Time, bool) {
	naive := naiveOf(base, zone).Add(-maxChange) // what the clock shows before that can't be after base
	for range 100_000 {                          // a schedule of every minute has fewer instants in the time that a change can move
		if naive = s.fields.Next(naive); naive.IsZero() {
			return time.Time{}, false
		}
		if at := onClock(naive, zone); at.After(base) {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// nextElapsed is for a schedule that takes every hour: minutes go by as they do, so that "every 15 minutes" has no
// silent hour. This also holds for zones that change by less than an hour.
func (s Schedule) nextElapsed(base time.Time, zone *time.Location) (time.Time, bool) {
	at := base.UTC().Truncate(time.Minute).Add(time.Minute)
	for range 60 * 26 {
		if s.matches(at, zone) {
			return at, true
		}
		at = at.Add(time.Minute)
	}
	// Days without an instant: the wall clock finds the day, and the first minute that fits on it.
	return s.nextClock(base, zone)
}

// matches reports whether the clock of the zone shows an instant of the schedule.
func (s Schedule) matches(at time.Time, zone *time.Location) bool {
	naive := naiveOf(at, zone)
	return s.fields.Next(naive.Add(-time.Minute)).Equal(naive)
}

// naiveOf returns what the clock of a zone shows, as if it were UTC, without seconds.
func naiveOf(at time.Time, zone *time.Location) time.Time {
	return wall(at.In(zone)).Truncate(time.Minute)
}

// onClock returns the instant at which the clock of a zone shows a time: the first one when the hour comes twice, the
// end of the gap when the time is left out.
func onClock(naive time.Time, zone *time.Location) time.Time {
	guess := time.Date(naive.Year(), naive.Month(), naive.Day(), naive.Hour(), naive.Minute(), naive.Second(), 0, zone)
	start, end := guess.ZoneBounds()
	offsets := []int{offset(guess)}
	if !start.IsZero() {
		offsets = append(offsets, offset(start.Add(-time.Second)))
	}
	if !end.IsZero() {
		offsets = append(offsets, offset(end))
	}
	var first time.Time
	for _, o := range offsets {
		at := naive.Add(-time.Duration(o) * time.Second)
		if offset(at.In(zone)) == o && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() {
		return first
	}
	// The time is left out. Of the two changes beside the guess it is the one that jumps over it.
	for _, change := range []time.Time{start, end} {
		if !change.IsZero() && naive.Before(wall(change)) && !naive.Before(wall(change.Add(-time.Second))) {
			return change.UTC()
		}
	}
	return guess.UTC()
}

func offset(at time.Time) int {
	_, o := at.Zone()
	return o
}

// wall is what the clock shows, with seconds, as if it were UTC.
func wall(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}
