package cron

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Change is what somebody asks of a job: all of it for a new one, some of it for one that exists. A nil field is left
// as it is; an empty text or list takes the value off. The JSON names are those of the cronjob tool.
type Change struct {
	Name     *string `json:"name,omitempty"`
	Schedule *string `json:"schedule,omitempty"`
	// Repeat is after how many runs the job is done; see ParseRepeat.
	Repeat         *int      `json:"repeat,omitempty"`
	Prompt         *string   `json:"prompt,omitempty"`
	Skills         *[]string `json:"skills,omitempty"`
	Script         *string   `json:"script,omitempty"`
	NoAgent        *bool     `json:"no_agent,omitempty"`
	Monitor        *string   `json:"monitor,omitempty"` // a URL or the path of a script
	ContextFrom    *[]string `json:"context_from,omitempty"`
	Continuity     *bool     `json:"continuity,omitempty"` // Self in ContextFrom
	Deliver        *string   `json:"deliver,omitempty"`
	FailureDeliver *string   `json:"failure_deliver,omitempty"`
	Attach         *bool     `json:"attach_to_session,omitempty"`
	// Unattach makes Attach follow the configuration again.
	Unattach     bool      `json:"-"`
	Toolsets     *[]string `json:"enabled_toolsets,omitempty"`
	Workdir      *string   `json:"workdir,omitempty"`
	Model        *string   `json:"model,omitempty"`
	Reasoning    *string   `json:"reasoning_effort,omitempty"`
	Paused       *bool     `json:"paused,omitempty"`
	PausedReason *string   `json:"paused_reason,omitempty"`
}

// Empty reports whether nothing is asked. A blank name asks nothing.
func (c Change) Empty() bool {
	if c.Name != nil && strings.TrimSpace(*c.Name) == "" {
		c.Name = nil
	}
	return c == Change{}
}

// ParseRepeat reads how often a job runs: a number, "once", or "forever" (also empty, "infinite", "none"), which is 0
// like every number below 1.
func ParseRepeat(text string) (int, error) {
	switch s := strings.ToLower(strings.TrimSpace(text)); s {
	case "", "forever", "infinite", "inf", "none", "null":
		return 0, nil
	case "once", "one", "1x":
		return 1, nil
	default:
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, wrong("repeat", text, `write a number of runs, "once" or "forever"`)
		}
		return max(n, 0), nil
	}
}

// apply writes the change into a job. The order of its steps is fixed, because the first field that can't be used is the one
// that the error names.
func (c Change) apply(j *Job, t *Task, fresh bool, now time.Time, zone *time.Location) error {
	if err := c.core(j, t, fresh, now, zone); err != nil {
		return err
	}
	if c.Script != nil {
		t.Script = strings.TrimSpace(*c.Script)
	}
	if c.NoAgent != nil {
		t.NoAgent = *c.NoAgent
	}
	if c.Monitor != nil {
		if err := t.watch(*c.Monitor); err != nil {
			return err
		}
	}
	c.context(t)
	return c.pause(j)
}

// core takes over the plan and the texts.
func (c Change) core(j *Job, t *Task, fresh bool, now time.Time, zone *time.Location) error {
	if c.Name != nil && strings.TrimSpace(*c.Name) != "" {
		j.Name = strings.Join(strings.Fields(*c.Name), " ")
		if n := utf8.RuneCountInString(j.Name); n > MaxName {
			return wrong("name", j.Name, "it has %d characters; at most %d are allowed", n, MaxName)
		}
	}
	set(&t.Prompt, c.Prompt)
	setList(&t.Skills, c.Skills)
	set(&t.Deliver, c.Deliver)
	set(&t.FailureDeliver, c.FailureDeliver)
	if c.Attach != nil || c.Unattach {
		t.Attach = c.Attach
	}
	set(&t.Workdir, c.Workdir)
	set(&t.Model, c.Model)
	set(&t.Reasoning, c.Reasoning)
	setList(&t.Toolsets, c.Toolsets)
	before := j.Plan.Schedule.Kind
	if c.Schedule != nil {
		s, err := Parse(*c.Schedule, now, zone)
		if err != nil {
			return err
		}
		j.Plan.Schedule = s
	} else if fresh {
		return wrong("schedule", "", "a job needs one; %s", forms)
	}
	after := j.Plan.Schedule.Kind
	switch {
	case c.Repeat != nil && *c.Repeat < 0:
		return wrong("repeat", strconv.Itoa(*c.Repeat), "give 1 or more, or 0 for no end")
	case c.Repeat != nil:
		j.Plan.Times = *c.Repeat
	case !fresh && before == Once && after != Once && j.Plan.Times == 1:
		j.Plan.Times = 0
	case !fresh && before != Once && after == Once && j.Plan.Times == 0:
		j.Plan.Times = 1
	}
	return nil
}

// context takes over what other jobs give to this one.
func (c Change) context(t *Task) {
	own := t.Continues()
	if c.ContextFrom != nil {
		var list []string
		for _, ref := range *c.ContextFrom {
			ref = strings.TrimSpace(ref)
			if strings.EqualFold(ref, Self) {
				ref = Self
			}
			if ref != "" && !slices.Contains(list, ref) {
				list = append(list, ref)
			}
		}
		t.ContextFrom = list
		if c.Continuity == nil && own && len(list) > 0 && !slices.Contains(list, Self) {
			t.ContextFrom = append(t.ContextFrom, Self) // it was asked for on its own and is taken off so
		}
	}
	switch {
	case c.Continuity == nil:
	case *c.Continuity && !t.Continues():
		t.ContextFrom = append(t.ContextFrom, Self)
	case !*c.Continuity:
		t.ContextFrom = slices.DeleteFunc(t.ContextFrom, func(ref string) bool { return ref == Self })
	}
}

func (c Change) pause(j *Job) error {
	switch {
	case c.Paused != nil && *c.Paused:
		j.Plan.Paused, j.Plan.PausedWhy = true, "paused"
		set(&j.Plan.PausedWhy, c.PausedReason)
	case c.PausedReason != nil:
		return wrong("paused_reason", *c.PausedReason, "it is given without pausing the job (paused: true)")
	case c.Paused != nil, c.Schedule != nil:
		j.Plan.Paused, j.Plan.PausedWhy = false, ""
	}
	return nil
}

// watch makes the task depend on a URL or a script; "" on nothing.
func (t *Task) watch(monitor string) error {
	monitor = strings.TrimSpace(monitor)
	t.MonitorScript, t.MonitorURL = "", ""
	if !strings.Contains(monitor, "://") {
		t.MonitorScript = monitor
		return nil
	}
	u, err := url.Parse(monitor)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return wrong("monitor", monitor, "it must be an http or https URL, or the path of a script")
	}
	if u.User != nil {
		return wrong("monitor", u.Redacted(), "a URL that is watched carries no password; let a script fetch it")
	}
	t.MonitorURL = monitor
	return nil
}

func set(to *string, from *string) {
	if from != nil {
		*to = strings.TrimSpace(*from)
	}
}

func setList(to *[]string, from *[]string) {
	if from == nil {
		return
	}
	var list []string
	for _, s := range *from {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	*to = list
}
