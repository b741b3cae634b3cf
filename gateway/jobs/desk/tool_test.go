package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs/view"
	"herald/locales"
	"herald/sessions"
	"herald/tools"
	"herald/tools/cronjob"
)

// toolRig is the tool, as it is registered, on a real book and behind a real bus.
type toolRig struct {
	t    *testing.T
	book *cron.Book
	bus  *tools.Bus
	at   *sessions.Origin // of the conversation; nil: a run of a job that no chat has made
	run  runner
}

func newToolRig(t *testing.T) *toolRig {
	catalogs, err := locales.New(locales.Options{})
	require.NoError(t, err)
	anna := from("slack", "D1", "anna")
	book, store := openBook(t)
	r := &toolRig{t: t, book: book, at: &anna}
	views := view.Reader{Store: store, Zone: func() *time.Location { return time.UTC }, Now: time.Now}
	registry := tools.NewRegistry(tools.RegistryOptions{})
	require.NoError(t, registry.Register(cronjob.New[cron.Change](client{func(context.Context, tools.Caller) (*Jobs, error) {
		mine := &Jobs{book: r.book, zone: views.Zone, by: cron.By{Source: cron.FromChat, Origin: r.at}, runner: r.run}
		if r.at != nil {
			mine.who.at = *r.at
		}
		return mine, nil
	}, views, catalogs.Printer("en")})))
	r.bus = tools.NewBus(tools.Options{Registry: registry})
	t.Cleanup(func() { require.NoError(t, r.bus.Close(context.Background())) })
	return r
}

func (r *toolRig) call(args string) map[string]any {
	r.t.Helper()
	res := r.bus.Dispatch(r.t.Context(), tools.Call{ID: "1", Name: cronjob.Name, Args: json.RawMessage(args)})
	var out map[string]any
	require.NoError(r.t, json.Unmarshal([]byte(res.Content), &out), res.Content)
	return out
}

// task is what the job of a reply does.
func (r *toolRig) task(out map[string]any) cron.Task {
	r.t.Helper()
	j, err := r.book.Find(r.t.Context(), fmt.Sprint(out["job_id"]))
	require.NoError(r.t, err, out)
	t, err := j.Plan.ReadTask()
	require.NoError(r.t, err)
	return t
}

// Every parameter of the tool that says what a job is reaches the book under its own name: none is dropped on the way.
// Nothing else does.
func TestTool_ChangeIsWhole(t *testing.T) {
	var spy change
	catcher := catch{got: &spy}
	registry := tools.NewRegistry(tools.RegistryOptions{})
	tool := cronjob.New(catcher)
	require.NoError(t, registry.Register(tool))
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(tool.Spec.Parameters, &schema))
	values := map[reflect.Type]any{reflect.TypeFor[*string](): "x", reflect.TypeFor[*int](): 3, reflect.TypeFor[*bool](): true,
		reflect.TypeFor[*[]string](): []string{"x"}}
	args := map[string]any{"action": "create", "model": "x", "reasoning_effort": "x"}
	v := reflect.TypeFor[cron.Change]()
	fields := 0
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Field(i).Tag.Get("json"), ",")
		if _, ok := schema.Properties[name]; ok {
			args[name], fields = values[v.Field(i).Type], fields+1
		}
	}
	require.Len(t, schema.Properties, fields+len([]string{"action", "job_id", "all", "skill", "reason"}), "every other parameter is a field of a change")
	raw, err := json.Marshal(args)
	require.NoError(t, err)
	_, err = tool.Run(t.Context(), tools.Call{Args: raw})
	require.NoError(t, err)
	got := reflect.ValueOf(cron.Change(spy))
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Field(i).Tag.Get("json"), ",")
		_, asked := schema.Properties[name]
		require.Equal(t, asked, !got.Field(i).IsZero(), name)
	}
	require.Nil(t, spy.Model, "only the operator pins")
	require.Nil(t, spy.Reasoning)
}

type change cron.Change

// catch notes the change that reaches it.
type catch struct {
	cronjob.Jobs[cron.Change]
	got *change
}

func (c catch) Create(_ context.Context, _ tools.Caller, asked cron.Change) (cronjob.Job, error) {
	*c.got = change(asked)
	return cronjob.Job{}, nil
}

// The charter: attach_to_session arrives in the stored job, by create and by update.
func TestTool_KeepsAttachToSession(t *testing.T) {
	r := newToolRig(t)
	out := r.call(`{"action":"create","schedule":"30m","prompt":"p","attach_to_session":true}`)
	require.Equal(t, true, *r.task(out).Attach)
	require.Equal(t, true, out["job"].(map[string]any)["attach_to_session"])
	out = r.call(`{"action":"update","job_id":"` + fmt.Sprint(out["job_id"]) + `","attach_to_session":false}`)
	require.Equal(t, true, out["success"], out)
	require.Equal(t, false, *r.task(out).Attach)
	require.Nil(t, r.task(r.call(`{"action":"create","schedule":"30m","prompt":"q"}`)).Attach, "not given, it follows the configuration")
}

func TestTool_CreateTellsWhenAndWhere(t *testing.T) {
	r := newToolRig(t)
	out := r.call(`{"action":"create","schedule":"every weekday at 9","prompt":"send me the news","repeat":3}`)
	require.Equal(t, "on weekdays at 9:00", out["schedule_in_words"])
	require.Equal(t, "every weekday at 9", out["schedule"])
	require.Equal(t, "3 times, 0 done", out["repeat"])
	require.Equal(t, "origin", out["deliver"])
	require.Len(t, out["next_runs"], 3)
	require.Equal(t, out["next_run_at"], out["next_runs"].([]any)[0])
	require.Contains(t, out["message"], "is made: on weekdays at 9:00. Next times (UTC): ")
	require.Equal(t, "scheduled", out["job"].(map[string]any)["state"])
	require.Equal(t, r.at, r.task(out).Origin)
	out = r.call(`{"action":"pause","job_id":"send me the news","reason":"holiday"}`)
	require.Equal(t, "holiday", out["job"].(map[string]any)["paused_reason"])
	require.NotContains(t, out, "next_run_at")
	require.Contains(t, r.call(`{"action":"create","schedule":"whenever","prompt":"p"}`)["error"], `schedule "whenever"`)
	require.Contains(t, r.call(`{"action":"create","schedule":"30m"}`)["error"], "nothing to do")
	require.Equal(t, "nothing is to be changed: name at least one field", r.call(`{"action":"update","job_id":"send me the news","name":"  "}`)["error"], "a blank name asks nothing")
	require.Contains(t, r.call(`{"action":"update","job_id":"send me the news","schedule":"whenever","monitor":"ftp://x"}`)["error"], "schedule", "the first field that can't be used wins")
}

// In a run, "origin" is the chat of the job that runs, and without one nothing.
func TestTool_OriginInARun(t *testing.T) {
	r := newToolRig(t)
	r.at = nil
	for _, c := range []struct{ deliver, want string }{{"", "local"}, {`,"deliver":"origin"`, "local"}, {`,"deliver":"Origin, slack"`, "slack"}, {`,"deliver":"all"`, "all"}} {
		out := r.call(`{"action":"create","schedule":"30m","prompt":"p"` + c.deliver + `}`)
		require.Equal(t, c.want, out["deliver"], c.deliver)
	}
	require.Equal(t, "There are no jobs.", r.call(`{"action":"list"}`)["message"], "what no chat has made is nobody's")
}

func TestTool_AmbiguousShowsOwnAlone(t *testing.T) {
	r := newToolRig(t)
	bob := from("slack", "D2", "bob")
	newJob(t, r.book, "news", &bob)
	newJob(t, r.book, "news", r.at)
	require.Equal(t, true, r.call(`{"action":"pause","job_id":"news"}`)["success"])
	newJob(t, r.book, "News", r.at)
	out := r.call(`{"action":"remove","job_id":"news"}`)
	require.Equal(t, false, out["success"])
	require.Len(t, out["matches"], 2)
}

func TestTool_Run(t *testing.T) {
	r := newToolRig(t)
	var ran []string
	r.run = func(id cron.JobID, note string) error {
		ran = append(ran, note)
		if len(ran) > 1 {
			return cron.ErrRunning
		}
		return nil
	}
	newJob(t, r.book, "news", r.at)
	require.Equal(t, true, r.call(`{"action":"run","job_id":"news","prompt":"short"}`)["executed"])
	require.Equal(t, "already running", r.call(`{"action":"run","job_id":"news"}`)["execution_skipped"])
	require.Equal(t, []string{"short", ""}, ran)
}
