package view

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"herald/cron"
	"herald/sessions"
)

// mostFailures bounds how many failed runs are looked at for incidents.
const mostFailures = 5000

// Incident is the failures of a job that have the same cause, recognised by what their errors have in common.
type Incident struct {
	// ID is 8 hex digits, made from the job and the signature.
	ID        string     `json:"id"`
	Job       cron.JobID `json:"job"`
	Name      string     `json:"name"`
	Signature string     `json:"signature"`
	// Line says in one line why the newest of them failed.
	Line  string    `json:"line"`
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Acked is when a person has acknowledged it: then no more notices of its failures are sent. Zero: nobody has.
	Acked time.Time `json:"acked,omitzero"`
	// Resolved says that the job has gone well since.
	Resolved bool `json:"resolved,omitempty"`
}

// Open reports whether somebody should look at it.
func (i Incident) Open() bool { return !i.Resolved && i.Acked.IsZero() }

// incidentID names an incident.
func incidentID(job cron.JobID, signature string) string {
	sum := sha256.Sum256([]byte(string(job) + "\x00" + signature))
	return hex.EncodeToString(sum[:4])
}

// ack is what is kept of an acknowledged incident.
type ack struct {
	At time.Time `json:"at"`
}

func ackName(job cron.JobID, id string) string { return string(job) + ":" + id }

// Incidents returns what has failed, the open ones first and then the newest. A job that has gone well since a failure
// has resolved it; resolved says whether those are among them.
func (v Reader) Incidents(ctx context.Context, resolved bool) (list []Incident, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		list, err = incidents(s, resolved)
		return err
	})
	return list, err
}

func incidents(s sessions.View, resolved bool) ([]Incident, error) {
	failed, err := s.Runs(sessions.RunQuery{State: sessions.RunFailed, Limit: mostFailures})
	if err != nil {
		return nil, err
	}
	jobs := map[cron.JobID]since{}
	type key struct {
		id   string
		over bool
	}
	found := map[key]*Incident{}
	for _, run := range failed { // the newest first
		job, known := jobs[run.Job]
		if !known {
			if job, err = sinceOf(s, run.Job); err != nil {
				return nil, err
			}
			jobs[run.Job] = job
		}
		over := run.ID < job.success
		if over && !resolved {
			continue
		}
		signature := cron.Signature(run.Reason)
		id := incidentID(run.Job, signature)
		k := key{id, over}
		i := found[k]
		if i == nil {
			i = &Incident{ID: id, Job: run.Job, Name: job.name, Signature: signature, Line: cron.FailureLine(run.Reason),
				Last: run.Began, Resolved: over}
			if i.Acked, err = ackedAt(s, run.Job, id); err != nil {
				return nil, err
			}
			found[k] = i
		}
		i.Count++
		i.First = run.Began
	}
	out := make([]Incident, 0, len(found))
	for _, i := range found {
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b Incident) int {
		if a.Open() != b.Open() {
			if a.Open() {
				return -1
			}
			return 1
		}
		if c := b.Last.Compare(a.Last); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// since is a job's name and its newest run that went well.
type since struct {
	name    string
	success sessions.RunID
}

func sinceOf(s sessions.View, id cron.JobID) (since, error) {
	row, err := s.Job(id)
	if err != nil {
		return since{}, err
	}
	out := since{name: row.Name}
	well, err := s.Runs(sessions.RunQuery{Job: id, State: sessions.RunRan, Limit: 1})
	if len(well) > 0 {
		out.success = well[0].ID
	}
	return out, err
}

func ackedAt(v sessions.View, job cron.JobID, id string) (time.Time, error) {
	val, err := v.Value(sessions.SpaceIncident, ackName(job, id))
	if errors.Is(err, sessions.ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	var a ack
	if json.Unmarshal(val.Data, &a) != nil {
		return time.Time{}, nil
	}
	return a.At, nil
}

// ErrNoIncident says that there is no incident of an id.
var ErrNoIncident = errors.New("there is no such incident; list them to see their ids")

// Ack acknowledges an incident: no more notices are sent of failures of that job with that signature, not even after a success.
// Others are. back takes it back. It returns the incident.
func (v Reader) Ack(ctx context.Context, id string, back bool) (found Incident, err error) {
	err = v.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		list, err := incidents(tx, true)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(i Incident) bool { return i.ID == strings.ToLower(strings.TrimSpace(id)) })
		if i < 0 {
			return ErrNoIncident
		}
		found = list[i]
		found.Acked = time.Time{}
		var data json.RawMessage
		if !back {
			found.Acked = v.Now().UTC()
			if data, err = json.Marshal(ack{At: found.Acked}); err != nil {
				return err
			}
		}
		return tx.SetValue(sessions.SpaceIncident, ackName(found.Job, found.ID), data, v.Now())
	})
	return found, err
}

// Acknowledged reports whether a person has said to want no more notices of such a failure of a job.
func Acknowledged(v sessions.View, job cron.JobID, reason string) (bool, error) {
	at, err := ackedAt(v, job, incidentID(job, cron.Signature(reason)))
	return !at.IsZero(), err
}
