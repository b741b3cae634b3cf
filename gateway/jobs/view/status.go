package view

import (
	"context"
	"sync"
	"time"

	"herald/gateway/jobs/provision"
	"herald/sessions"
)

// StuckAfter is how long after its last look for due slots the scheduler counts as stuck: it looks every half minute.
const StuckAfter = 2 * time.Minute

// Status is how the scheduler and its jobs are.
type Status struct {
	// Alive says that due slots are looked for; LastLook when they were last, zero before the first time.
	Alive    bool      `json:"alive"`
	LastLook time.Time `json:"last_look,omitzero"`
	// NextDue is the next slot of all jobs; zero when none is planned.
	NextDue time.Time `json:"next_due,omitzero"`
	Counts
	// Running are the jobs that run now.
	Running []Job `json:"running,omitempty"`
	// Ran, Failed, Missed and Skipped count the slots with that end of the last 24 hours.
	Ran     int `json:"ran"`
	Failed  int `json:"failed"`
	Missed  int `json:"missed"`
	Skipped int `json:"skipped"`
	// Files provide jobs; those with problems can't be used.
	Files []provision.File `json:"files,omitempty"`
}

// Counts are how many jobs there are.
type Counts struct {
	// Jobs counts them by their state; Overdue those whose slot should have begun; Undelivered those whose newest output
	// did not arrive.
	Jobs        map[State]int `json:"jobs"`
	Overdue     int           `json:"overdue"`
	Undelivered int           `json:"undelivered"`
}

func count(list []Job) Counts {
	c := Counts{Jobs: map[State]int{}}
	for _, j := range list {
		c.Jobs[j.State]++
		if j.Overdue {
			c.Overdue++
		}
		if j.Undelivered != "" {
			c.Undelivered++
		}
	}
	return c
}

// Counts counts the jobs, for what is read often.
func (v Reader) Counts(ctx context.Context) (c Counts, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		list, err := v.all(s)
		c = count(list)
		return err
	})
	return c, err
}

// countFor is how long Counter uses a count again: a scrape asks for several figures at once.
const countFor = 5 * time.Second

// countTime bounds one count of Counter.
const countTime = 5 * time.Second

// Counter returns a function that counts the jobs for metrics. A count is used again for a few seconds. It is safe for
// concurrent use.
func (v Reader) Counter() func() (Counts, error) {
	var mu sync.Mutex
	var at time.Time
	var counts Counts
	return func() (Counts, error) {
		mu.Lock()
		defer mu.Unlock()
		if !at.IsZero() && time.Since(at) < countFor {
			return counts, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), countTime)
		defer cancel()
		c, err := v.Counts(ctx)
		if err == nil {
			counts, at = c, time.Now()
		}
		return c, err
	}
}

// Status reads what the store knows. Alive and LastLook are a daemon's to say, and Files too.
func (v Reader) Status(ctx context.Context) (st Status, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		list, err := v.all(s)
		if err != nil {
			return err
		}
		st.Counts = count(list)
		for _, j := range list {
			if j.Running != nil {
				st.Running = append(st.Running, j)
			}
		}
		if st.NextDue, err = s.NextJob(); err != nil {
			return err
		}
		return v.lately(s, "", st.count)
	})
	return st, err
}

func (st *Status) count(run sessions.Run) {
	slots := max(1, run.Slots)
	switch run.State {
	case sessions.RunRan:
		st.Ran += slots
	case sessions.RunFailed:
		st.Failed += slots
	case sessions.RunMissed:
		st.Missed += slots
	case sessions.RunSkipped:
		st.Skipped += slots
	}
}
