package jobs

import (
	"context"
	"time"

	"herald/gateway/jobs/provision"
	"herald/gateway/jobs/view"
)

// reader reads what the store knows of the jobs.
func (j *Jobs) reader() view.Reader {
	return view.Reader{Store: j.ends.o.Store, Zone: j.o.Zone, Now: j.now}
}

// looked notes that due slots have been looked for.
func (j *Jobs) looked(at time.Time) {
	j.looks.Store(at.UnixMilli())
	j.pulse.Store(at.UnixMilli())
	if j.ends.o.Metrics != nil {
		j.ends.o.Metrics.Looked(at)
	}
}

// Stuck says since when due slots are not looked for any more, and false while they are. Before Run they are not.
func (j *Jobs) Stuck() (since time.Time, stuck bool) {
	pulse := time.UnixMilli(j.pulse.Load())
	return pulse, j.now().Sub(pulse) > view.StuckAfter
}

// Provided are the files of the home that provide jobs.
func (j *Jobs) Provided() []provision.File { return j.o.Folder.Files() }

// Status is how the scheduler and its jobs are.
func (j *Jobs) Status(ctx context.Context) (view.Status, error) {
	st, err := j.reader().Status(ctx)
	_, stuck := j.Stuck()
	st.Alive, st.Files = !stuck, j.Provided()
	if at := j.looks.Load(); at > 0 {
		st.LastLook = time.UnixMilli(at)
	}
	return st, err
}

// Doctor returns what somebody should put right, the worst first.
func (j *Jobs) Doctor(ctx context.Context) ([]view.Issue, error) {
	var issues []view.Issue
	if since, stuck := j.Stuck(); stuck {
		issues = append(issues, view.Issue{Kind: view.IssueScheduler, Text: "due jobs are not looked for since " + since.In(j.o.Zone()).
			Format("2006-01-02 15:04 MST"),
			Do: "read the log for what the scheduler says, and start Herald again"})
	}
	for _, f := range j.Provided() {
		for _, text := range f.Problems {
			issues = append(issues, view.Issue{Kind: view.IssueFile, Text: text, Do: "mend the file; it is read again soon"})
		}
	}
	more, err := j.reader().Doctor(ctx, view.Diagnosis{Places: j.o.Places, Check: j.o.Check, Failing: j.ends.o.Config().Nudge})
	for i := range more {
		more[i].Text = j.ends.o.Redact(more[i].Text)
	}
	return append(issues, more...), err
}
