package cronjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/tools"
	"herald/tools/cronjob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// change is a change of a job as the owner of the jobs reads it.
type change struct {
	Name           *string   `json:"name"`
	Schedule       *string   `json:"schedule"`
	Repeat         *int      `json:"repeat"`
	Prompt         *string   `json:"prompt"`
	Skills         *[]string `json:"skills"`
	Script         *string   `json:"script"`
	NoAgent        *bool     `json:"no_agent"`
	Monitor        *string   `json:"monitor"`
	ContextFrom    *[]string `json:"context_from"`
	Continuity     *bool     `json:"continuity"`
	Deliver        *string   `json:"deliver"`
	FailureDeliver *string   `json:"failure_deliver"`
	Attach         *bool     `json:"attach_to_session"`
	Toolsets       *[]string `json:"enabled_toolsets"`
	Workdir        *string   `json:"workdir"`
	Paused         *bool     `json:"paused"`
	PausedReason   *string   `json:"paused_reason"`
}

// book keeps jobs as the gateway does, as far as the tool can tell.
type book struct {
	jobs    []cronjob.Job
	changes []change
	log     []string
	busy    bool // a run goes on
	runErr  error
}

func (b *book) note(format string, args ...any) { b.log = append(b.log, fmt.Sprintf(format, args...)) }

func (b *book) Find(_ context.Context, by tools.Caller, ref string) (cronjob.Job, error) {
	b.note("find %s for %s", ref, by.User)
	var named []cronjob.Job
	for _, j := range b.jobs {
		if j.ID == ref {
			return j, nil
		}
		if strings.EqualFold(j.Name, ref) {
			named = append(named, j)
		}
	}
	switch len(named) {
	case 0:
		return cronjob.Job{}, fmt.Errorf("there is no job %q", ref)
	case 1:
		return named[0], nil
	}
	return cronjob.Job{}, &cronjob.AmbiguousError{Ref: ref, Matches: named}
}

func (b *book) List(context.Context, tools.Caller) ([]cronjob.Job, error) { return b.jobs, nil }

func (b *book) Create(_ context.Context, _ tools.Caller, c change) (cronjob.Job, error) {
	b.changes = append(b.changes, c)
	if c.Schedule == nil {
		return cronjob.Job{}, errors.New("schedule: a job needs one")
	}
	j := cronjob.Job{ID: fmt.Sprintf("%012x", len(b.jobs)+1), Name: "a job", Schedule: *c.Schedule, InWords: "every 30 minutes", Repeat: "forever", Deliver: "origin", State: "scheduled",
		NextRunAt: "2026-11-30T09:00:00+01:00", NextRuns: []string{"2026-11-30T09:00:00+01:00", "2026-11-30T09:30:00+01:00", "2026-11-30T10:00:00+01:00"},
		NextInWords: "Next times (Europe/Berlin): Mon 2026-11-30 09:00", Attach: c.Attach}
	if c.Prompt != nil {
		j.Prompt = *c.Prompt
	}
	if c.Deliver != nil {
		j.Deliver, j.LocalOnly = *c.Deliver, *c.Deliver == "local"
	}
	b.jobs = append(b.jobs, j)
	return j, nil
}

func (b *book) one(id string) (cronjob.Job, error) {
	return b.Find(context.Background(), tools.Caller{}, id)
}

func (b *book) Update(_ context.Context, _ tools.Caller, id string, c change) (cronjob.Job, error) {
	b.changes = append(b.changes, c)
	if c == (change{}) {
		return cronjob.Job{}, errors.New("nothing is to be changed: name at least one field")
	}
	return b.one(id)
}

func (b *book) Pause(_ context.Context, _ tools.Caller, id, why string) (cronjob.Job, error) {
	b.note("pause %s %s", id, why)
	j, err := b.one(id)
	j.State = "paused"
	return j, err
}

func (b *book) Resume(_ context.Context, _ tools.Caller, id string) (cronjob.Job, error) {
	b.note("resume %s", id)
	return b.one(id)
}

func (b *book) Remove(_ context.Context, _ tools.Caller, id string) (cronjob.Job, error) {
	b.note("remove %s", id)
	return b.one(id)
}

func (b *book) Run(_ context.Context, _ tools.Caller, id, note string) (bool, error) {
	b.note("run %s %q", id, note)
	return !b.busy && b.runErr == nil, b.runErr
}

// desk is the tool as it is registered, behind a real bus.
type desk struct {
	t    *testing.T
	book *book
	bus  *tools.Bus
}

func newDesk(t *testing.T, jobs ...cronjob.Job) *desk {
	b := &book{jobs: jobs}
	r := tools.NewRegistry(tools.RegistryOptions{})
	require.NoError(t, r.Register(cronjob.New(b)))
	bus := tools.NewBus(tools.Options{Registry: r})
	t.Cleanup(func() { require.NoError(t, bus.Close(context.Background())) })
	return &desk{t: t, book: b, bus: bus}
}

// call runs the tool with arguments as a model writes them.
func (d *desk) call(args string) (out map[string]any, res tools.Result) {
	d.t.Helper()
	res = d.bus.Dispatch(d.t.Context(), tools.Call{ID: "1", Name: cronjob.Name, Args: json.RawMessage(args), Caller: tools.Caller{User: "anna"}})
	require.NoError(d.t, json.Unmarshal([]byte(res.Content), &out), res.Content)
	return out, res
}

func two() []cronjob.Job {
	return []cronjob.Job{{ID: "0123456789ab", Name: "news", Deliver: "origin", State: "scheduled", InWords: "every hour", Prompt: strings.Repeat("x", 300)},
		{ID: "ba9876543210", Name: "old", Ended: true, State: "completed"}}
}

// The charter: the registered entry forwards attach_to_session on create and on update; it used to be dropped, and an
// update of it alone was answered that nothing was to be changed.
func TestCronjob_ForwardsAttachToSession(t *testing.T) {
	d := newDesk(t, two()...)
	for _, c := range []struct {
		args string
		want *bool
	}{
		{`{"action":"create","schedule":"30m","prompt":"p","attach_to_session":true}`, ptr(true)},
		{`{"action":"create","schedule":"30m","prompt":"p","attach_to_session":false}`, ptr(false)},
		{`{"action":"create","schedule":"30m","prompt":"p"}`, nil},
		{`{"action":"update","job_id":"news","attach_to_session":true}`, ptr(true)},
		{`{"action":"update","job_id":"0123456789ab","attach_to_session":"false"}`, ptr(false)},
	} {
		out, res := d.call(c.args)
		require.Equal(t, true, out["success"], res.Content)
		require.Equal(t, c.want, d.book.changes[len(d.book.changes)-1].Attach, c.args)
	}
}

func ptr[T any](v T) *T { return &v }

// Every field of the schema reaches the book, on create and on update.
func TestCronjob_ForwardsEveryField(t *testing.T) {
	const fields = `"name":"n","schedule":"30m","repeat":"3","prompt":"p","skills":["a","b"],"script":"s.sh","no_agent":true,"monitor":"https://example.org/x",` +
		`"context_from":"0123456789ab","continuity":true,"deliver":"all","failure_deliver":"","attach_to_session":true,"enabled_toolsets":[],"workdir":"","paused":true,"paused_reason":"why"`
	want := change{Name: ptr("n"), Schedule: ptr("30m"), Repeat: ptr(3), Prompt: ptr("p"), Skills: ptr([]string{"a", "b"}),
		Script: ptr("s.sh"), NoAgent: ptr(true),
		Monitor: ptr("https://example.org/x"), ContextFrom: ptr([]string{"0123456789ab"}), Continuity: ptr(true), Deliver: ptr("all"), FailureDeliver: ptr(""), Attach: ptr(true),
		Toolsets: ptr([]string{}), Workdir: ptr(""), Paused: ptr(true), PausedReason: ptr("why")}
	d := newDesk(t, two()...)
	for _, action := range []string{`"create"`, `"update","job_id":"news"`} {
		_, res := d.call(`{"action":` + action + `,` + fields + `}`)
		require.False(t, res.IsError, res.Content)
		require.Equal(t, want, d.book.changes[len(d.book.changes)-1], action)
	}
	for _, c := range []struct {
		args string
		want change
	}{
		{`"skill":"a"`, change{Skills: ptr([]string{"a"})}},
		{`"skill":"a","skills":["b"]`, change{Skills: ptr([]string{"b"})}},
		{`"skills":[]`, change{Skills: ptr([]string{})}},
		{`"deliver":["origin"," ","slack:C1"],"failure_deliver":[]`, change{Deliver: ptr("origin,slack:C1"), FailureDeliver: ptr("")}},
		{`"repeat":-1`, change{Repeat: ptr(0)}},
		{`"name":null,"prompt":"x"`, change{Prompt: ptr("x")}},
	} {
		d.call(`{"action":"update","job_id":"news",` + c.args + `}`)
		require.Equal(t, c.want, d.book.changes[len(d.book.changes)-1], c.args)
	}
}

// What the operator pins, the model can't.
func TestCronjob_HidesWhatTheOperatorPins(t *testing.T) {
	d := newDesk(t)
	for _, field := range []string{"model", "provider", "base_url", "reasoning_effort"} {
		out, res := d.call(`{"action":"create","schedule":"30m","prompt":"p","` + field + `":"x"}`)
		require.True(t, res.IsError, field)
		require.Contains(t, fmt.Sprint(out), field)
	}
	require.Empty(t, d.book.changes)
}

// What a list shows, and what the demo model reads of it.
func TestCronjob_CreateReplies(t *testing.T) {
	d := newDesk(t)
	out, res := d.call(`{"action":"create","schedule":"every 30m","prompt":"p"}`)
	require.False(t, res.IsError)
	job := out["job"].(map[string]any)
	for _, key := range []string{"job_id", "name", "schedule", "schedule_in_words", "repeat", "deliver", "next_run_at", "next_runs"} {
		require.NotEmpty(t, out[key], key)
		require.Equal(t, job[key], out[key], key)
	}
	require.Len(t, out["next_runs"], 3)
	require.Equal(t, `Job "a job" (000000000001) is made: every 30 minutes. Next times (Europe/Berlin): Mon 2026-11-30 09:00`, out["message"])
	require.NotContains(t, out, "notice")
	out, _ = d.call(`{"action":"create","schedule":"every 30m","prompt":"p","deliver":"local"}`)
	require.Contains(t, out["notice"], "sent to nobody")
	out, res = d.call(`{"action":"create","prompt":"p"}`)
	require.True(t, res.IsError)
	require.Equal(t, map[string]any{"success": false, "error": "schedule: a job needs one"}, out)
}

func TestCronjob_List(t *testing.T) {
	d := newDesk(t, two()...)
	out, _ := d.call(`{"action":"list"}`)
	require.Equal(t, true, out["success"])
	require.EqualValues(t, 1, out["count"])
	require.Equal(t, "There is one job. 1 more have ended; all: true shows them.", out["message"])
	first := out["jobs"].([]any)[0].(map[string]any)
	require.Equal(t, "0123456789ab", first["job_id"])
	require.Len(t, []rune(first["prompt"].(string)), 200)
	out, _ = d.call(`{"action":"list","all":true}`)
	require.EqualValues(t, 2, out["count"])
	out, _ = newDesk(t).call(`{"action":"list"}`)
	require.Equal(t, []any{}, out["jobs"])
}

// The job is looked for before the action is looked at.
func TestCronjob_Order(t *testing.T) {
	twin := two()
	twin[1].Name = "News"
	d := newDesk(t, twin...)
	for _, c := range []struct{ args, want string }{
		{`{"action":"explode","job_id":"ghost"}`, `there is no job "ghost"`},
		{`{"action":"explode","job_id":"0123456789ab"}`, `there is no action "explode"`},
		{`{"action":"explode"}`, `action "explode" needs job_id`},
		{`{"action":"update","name":"x"}`, `action "update" needs job_id`},
		{`{"action":"update","job_id":"0123456789ab"}`, "nothing is to be changed"},
		{`{"action":"update","job_id":"news","prompt":"x"}`, `2 jobs are called "news"`},
	} {
		out, res := d.call(c.args)
		require.True(t, res.IsError, c.args)
		require.Equal(t, false, out["success"], c.args)
		require.Contains(t, out["error"], c.want, c.args)
	}
	out, _ := d.call(`{"action":"remove","job_id":"news"}`)
	require.Len(t, out["matches"], 2)
	require.NotContains(t, strings.Join(d.book.log, "\n"), "remove", "an ambiguous name removes nothing")
	out, _ = d.call(`{"action":"resnap"}`)
	require.Equal(t, true, out["success"])
}

func TestCronjob_PauseResumeRemove(t *testing.T) {
	d := newDesk(t, two()...)
	out, _ := d.call(`{"action":"pause","job_id":"news","reason":" on holiday "}`)
	require.Contains(t, out["message"], "It is paused")
	d.call(`{"action":"Resume","job_id":"news"}`)
	out, _ = d.call(`{"action":"remove","job_id":"news"}`)
	require.Equal(t, `Job "news" (0123456789ab) is removed and will not run any more.`, out["message"])
	log := strings.Join(d.book.log, "\n")
	require.Contains(t, log, "find news for anna")
	require.Contains(t, log, "pause 0123456789ab on holiday")
	require.Contains(t, log, "resume 0123456789ab")
	require.Contains(t, log, "remove 0123456789ab")
}

// A run begins in the background; one that goes on is not begun twice.
func TestCronjob_Run(t *testing.T) {
	for _, action := range []string{"run", "run_now", "trigger"} {
		d := newDesk(t, two()...)
		out, res := d.call(`{"action":"` + action + `","job_id":"news","prompt":"only today's"}`)
		require.False(t, res.IsError)
		require.Equal(t, true, out["executed"])
		require.Equal(t, "background", out["execution_mode"])
		require.Equal(t, `run 0123456789ab "only today's"`, d.book.log[len(d.book.log)-1])
		require.Empty(t, d.book.changes, "a note is for one run")
		d.book.busy = true
		out, res = d.call(`{"action":"` + action + `","job_id":"news"}`)
		require.True(t, res.IsError)
		require.Equal(t, false, out["executed"])
		require.Equal(t, "already running", out["execution_skipped"])
		d.book.runErr = errors.New("the scheduler is stopping")
		out, _ = d.call(`{"action":"` + action + `","job_id":"news"}`)
		require.Equal(t, "the scheduler is stopping", out["execution_error"])
	}
}
