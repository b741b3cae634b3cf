package toolbox

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/approval"
	"herald/gateway/config"
	"herald/gateway/model"
	"herald/gateway/turn/ask"
	"herald/gateway/workspace"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
	"herald/tools"
	"herald/tools/cronjob"
	"herald/tools/redact"
	"herald/tools/todo"
)

// rig is a toolbox over a real store and this machine, in a home of its own.
type rig struct {
	*Toolbox
	t     *testing.T
	home  string
	cfg   *config.Config
	store *sqlite.Store
	todos Todos
	news  []News
	log   strings.Builder

	origins map[sessions.TurnID]sessions.Origin
	tasks   map[platforms.ChatID]cron.Task
}

// nobody is who is asked: nobody is there.
type nobody struct{}

func (nobody) FindApproval(context.Context, tools.Call, string) (a ask.Approval, ok bool, err error) {
	return a, false, nil
}
func (nobody) Approve(context.Context, tools.Call, ask.Request) (ask.Approval, error) {
	return ask.Approval{}, ask.ErrNobody
}
func (nobody) Ask(context.Context, tools.Call, string, []string) (string, error) {
	return "", ask.ErrNobody
}

// Current and Edit are the configuration, which no tool changes.
func (r *rig) Current() *config.Config                                       { return r.cfg }
func (r *rig) Edit(func([]byte) ([]byte, error), func(*config.Config)) error { return os.ErrPermission }

// counts counts nothing.
type counts struct{}

func (counts) Approval(string)                   {}
func (counts) ModelUsed(model.Info, model.Usage) {}

func newRig(t *testing.T, tune ...func(*config.Config)) *rig {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r := &rig{t: t, home: home, cfg: config.Default(), origins: map[sessions.TurnID]sessions.Origin{}, tasks: map[platforms.ChatID]cron.Task{}}
	r.cfg.Terminal.Backend = "local"
	for _, f := range tune {
		f(r.cfg)
	}
	paths, log := config.PathsFor(home), zerolog.New(&r.log)
	r.store, err = sqlite.Open(t.Context(), sqlite.Options{Path: paths.DB})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.store.Close()) })
	catalogs, err := locales.New(locales.Options{})
	require.NoError(t, err)
	printer := func(platforms.Address) *locales.Printer { return catalogs.Printer("en") }
	row := func(at platforms.Address, text string) *sessions.OutboxRow {
		return &sessions.OutboxRow{Message: platforms.Outgoing{Address: at, Text: platforms.Text{Body: text}}}
	}
	space, err := workspace.Open(workspace.Settings{Config: r.cfg, Paths: paths, Profile: config.DefaultProfile, Log: log, Now: time.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, space.Close()) })
	pictures := workspace.NewCheckpoints(space)
	t.Cleanup(func() { require.NoError(t, pictures.Close(context.Background())) })
	current := func() *config.Config { return r.cfg }
	processes := NewProcesses(ProcessOptions{Config: current, Store: r.store, Workspace: space, Printer: printer, Row: row,
		Redact: func(s string) string { return s }, Log: log, Now: time.Now})
	commands := Terminal(r.cfg, home, space, processes, time.Now)
	approver := approval.New(approval.Options{Store: r.store, Settings: r, Checker: commands, Decide: space.Decide,
		Asker: nobody{}, Printer: printer, Notice: row, Redact: func(s string) string { return s }, Metrics: counts{}, Log: log, Now: time.Now})
	r.todos = NewTodos(r.store, log, time.Now)
	r.Toolbox, err = New(Options{Config: current, Paths: paths, Store: r.store, Workspace: space, Checkpoints: pictures, Processes: processes,
		Terminal: commands, Todos: r.todos, Approver: approver, Asker: nobody{},
		Origin: func(id sessions.TurnID) (sessions.Origin, bool) { o, ok := r.origins[id]; return o, ok },
		Task: func(at platforms.Address) (cron.Task, bool) {
			task, ok := r.tasks[at.Chat]
			return task, ok
		},
		Trusted:  func(a platforms.Account) bool { return a.Platform == "web" },
		More:     []tools.Tool{{Spec: tools.Spec{Name: cronjob.Name, Toolset: cronjob.Name, Core: true}, Run: run}},
		Redactor: redact.New("hunter2"), Log: log, Now: time.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

func run(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Content: "{}"}, nil }

func in(platform, chat, user string) sessions.Origin {
	return sessions.Origin{Address: platforms.Address{Platform: platforms.Name(platform), Account: "main", Chat: platforms.ChatID(chat)},
		ChatType: platforms.DM, User: platforms.UserID(user)}
}

// everything is what a chat gets when nothing is set.
var everything = []string{"clarify", "cronjob", "memory", "patch", "process", "read_file", "search_files", "session_search", "terminal", "todo", "write_file"}

// Which tools a conversation gets: by the settings, by its platform, and in a run of a job by the job.
func TestToolbox_Names(t *testing.T) {
	files := []string{"patch", "read_file", "search_files", "write_file"}
	unattended := []string{"memory", "patch", "process", "read_file", "search_files", "session_search", "terminal", "todo", "write_file"}
	chat, job := in("slack", "C1", "U1"), in("slack", "job", "U1")
	for name, c := range map[string]struct {
		tune func(*config.Config)
		task cron.Task
		from sessions.Origin
		want []string
	}{
		"nothing is set": {from: chat, want: everything},
		"toolsets":       {tune: func(c *config.Config) { c.Tools.Toolsets = []string{"file", "todo"} }, from: chat, want: append(files[:4:4], "todo")},
		"toolsets of the platform": {tune: func(c *config.Config) {
			c.Tools.Toolsets, c.Tools.PerPlatf = []string{"todo"}, map[string][]string{"slack": {"file"}}
		}, from: chat, want: files},
		"an empty list is no list": {tune: func(c *config.Config) { c.Tools.PerPlatf = map[string][]string{"slack": {}} }, from: chat, want: everything},
		"a tool beside them": {tune: func(c *config.Config) {
			c.Tools.Toolsets, c.Tools.Enabled = []string{"todo"}, []string{"clarify", "no_such_tool"}
		}, from: chat, want: []string{"clarify", "todo"}},
		"a tool is switched off": {tune: func(c *config.Config) { c.Tools.Toolsets, c.Tools.Disabled = []string{"file"}, []string{"patch"} }, from: chat, want: []string{"read_file", "search_files", "write_file"}},
		"off wins over on": {tune: func(c *config.Config) {
			c.Tools.Toolsets, c.Tools.Enabled, c.Tools.Disabled = []string{"todo"}, []string{"clarify"}, []string{"clarify"}
		}, from: chat, want: []string{"todo"}},
		"a toolset is switched off": {tune: func(c *config.Config) {
			c.Tools.Toolsets, c.Tools.Disabled = []string{"file", "todo"}, []string{"file"}
		}, from: chat, want: []string{"todo"}},
		"coding":                          {tune: func(c *config.Config) { c.Tools.Toolsets = []string{"coding"} }, from: chat, want: slicesWithout(everything, "cronjob")},
		"core":                            {tune: func(c *config.Config) { c.Tools.Toolsets = []string{"core"} }, from: chat, want: everything},
		"a run of a job":                  {from: job, want: unattended},
		"a run that may schedule":         {tune: func(c *config.Config) { c.Cron.AllowScheduling = true }, from: job, want: append([]string{"cronjob"}, unattended...)},
		"a run with toolsets of its own":  {tune: func(c *config.Config) { c.Cron.Toolsets = []string{"todo"} }, task: cron.Task{Toolsets: []string{"file", "clarify"}}, from: job, want: files},
		"a run with the toolsets of jobs": {tune: func(c *config.Config) { c.Cron.Toolsets = []string{"file"} }, from: job, want: files},
		"no memory of anything":           {tune: func(c *config.Config) { c.Memory.Enabled, c.Memory.UserProfileEnabled = false, false }, from: chat, want: slicesWithout(everything, "memory")},
		"a toolset that there is not":     {tune: func(c *config.Config) { c.Tools.Toolsets = []string{"browser", "todo"} }, from: chat, want: []string{"todo"}},
	} {
		t.Run(name, func(t *testing.T) {
			var tune []func(*config.Config)
			if c.tune != nil {
				tune = append(tune, c.tune)
			}
			r := newRig(t, tune...)
			r.tasks["job"] = c.task
			require.ElementsMatch(t, c.want, r.Names(t.Context(), c.from))
			if strings.HasPrefix(name, "a toolset that") {
				require.Contains(t, r.log.String(), `"toolset":"browser"`)
				require.Contains(t, r.log.String(), `"known":[`)
			}
		})
	}
}

func slicesWithout(list []string, name string) (out []string) {
	for _, s := range list {
		if s != name {
			out = append(out, s)
		}
	}
	return out
}

// Every tool says which toolset it is in, and each of them can be named.
func TestToolbox_EachToolHasAToolset(t *testing.T) {
	r := newRig(t)
	for _, name := range r.Names(t.Context(), in("web", "c", "u")) {
		spec, ok := r.Spec(name)
		require.True(t, ok)
		require.Contains(t, r.Toolsets(), spec.Toolset)
		require.True(t, spec.Core, name)
	}
	defs := r.Definitions(t.Context(), []string{"todo", "clarify"})
	require.Len(t, defs, 2)
	require.Same(t, &defs[0], &r.Definitions(t.Context(), []string{"todo", "clarify"})[0], "the same names are not described again")
	require.Empty(t, r.Definitions(t.Context(), nil))
}

// dispatch runs a tool for a conversation.
func (r *rig) dispatch(caller tools.Caller, tool, args string) tools.Result {
	r.t.Helper()
	return r.Bus().Dispatch(r.t.Context(), tools.Call{ID: "c", Name: tool, Args: json.RawMessage(args), Caller: caller})
}

// Results have no secret, files that a session has read are forgotten with it, and dangerous commands are asked about.
func TestToolbox_BusIsWired(t *testing.T) {
	r := newRig(t)
	caller := tools.Caller{Session: "s1", Key: "k", Platform: "web", Account: "main", Chat: "c", User: "u"}
	got := r.dispatch(caller, "terminal", `{"command":"echo pass=hunter2; pwd"}`)
	require.Equal(t, tools.ExitOK, got.Exit, got.Content)
	require.NotContains(t, got.Content, "hunter2")
	require.Contains(t, got.Content, filepath.Join(r.home, "workspace"))
	got = r.dispatch(caller, "terminal", `{"command":"rm -rf build"}`)
	require.Equal(t, tools.ExitDenied, got.Exit, "nobody is there to approve it")
	got = r.dispatch(caller, "write_file", `{"path":"`+r.home+`/config.yaml","content":"x"}`)
	require.NotEqual(t, tools.ExitOK, got.Exit)
	require.NoFileExists(t, filepath.Join(r.home, "config.yaml"))
}

// P6: what one person has the agent remember is in no other one's prompt.
func TestToolbox_MemoriesAreApart(t *testing.T) {
	r := newRig(t)
	caller := func(platform, chat, user string) tools.Caller {
		return tools.Caller{Session: "s-" + user, Key: "k-" + user, Platform: platform, Account: "main", Chat: chat, User: user}
	}
	keep := func(c tools.Caller, text string) {
		got := r.dispatch(c, "memory", `{"action":"add","target":"memory","content":"`+text+`"}`)
		require.Equal(t, tools.ExitOK, got.Exit, got.Content)
	}
	remembered := func(o sessions.Origin) string { notes, person := r.Remembered(o); return notes + person }
	keep(caller("slack", "D1", "anna"), "anna likes tea")
	keep(caller("slack", "D2", "bob"), "bob likes coffee")
	keep(caller("web", "c", "owner"), "the owner is at home")
	room := in("slack", "C1", "anna")
	room.ChatType, room.Shared = platforms.Group, true
	r.origins[7] = room
	keep(tools.Caller{Session: "s", Key: "k", Turn: 7, Platform: "slack", Account: "main", Chat: "C1", User: "anna"}, "the room plans a trip")
	r.tasks["job"] = cron.Task{Origin: &sessions.Origin{Address: in("slack", "D2", "bob").Address, ChatType: platforms.DM, User: "bob"}}
	for _, c := range []struct {
		from sessions.Origin
		want string
	}{{in("slack", "D9", "anna"), "anna likes tea"}, {in("slack", "D2", "bob"), "bob likes coffee"}, {in("web", "x", "someone"), "the owner is at home"},
		{room, "the room plans a trip"}, {in("herald", "job", ""), "bob likes coffee"}, {in("telegram", "1", "anna"), ""}} {
		got := remembered(c.from)
		for _, text := range []string{"anna likes tea", "bob likes coffee", "the owner is at home", "the room plans a trip"} {
			require.Equal(t, text == c.want, strings.Contains(got, text), "%v: %q", c.from, got)
		}
	}
	require.DirExists(t, filepath.Join(r.home, "memories", "people"))
}

// A file name says which id it is of, whatever is in it.
func TestFileName(t *testing.T) {
	require.Equal(t, "slack-u1", fileName("slack-u1"))
	seen := map[string]string{}
	for _, id := range []string{"a/b", "a_b", "a.b", "A_b", "../x", "ä", strings.Repeat("x", 200), strings.Repeat("x", 201), ""} {
		name := fileName(id)
		require.NotContains(t, name, "/")
		require.LessOrEqual(t, len(name), 100)
		require.Empty(t, seen[name], "%q and %q", seen[name], id)
		seen[name] = id + " "
	}
}

// A task list is one session's, and what is open of it is kept across a summary.
func TestTodos(t *testing.T) {
	r := newRig(t)
	list, err := r.todos.Load(t.Context(), "s1")
	require.NoError(t, err)
	require.Empty(t, list.Items)
	require.Empty(t, r.todos.Reminder(t.Context(), "s1"))
	items := []todo.Item{{ID: "1", Content: "buy milk", Status: "completed"}, {ID: "2", Content: "bake bread", Status: "pending"}}
	require.NoError(t, r.todos.Save(t.Context(), "s1", todo.List{Items: items}))
	list, err = r.todos.Load(t.Context(), "s1")
	require.NoError(t, err)
	require.Equal(t, items, list.Items)
	require.Contains(t, r.todos.Reminder(t.Context(), "s1"), "bake bread")
	require.NotContains(t, r.todos.Reminder(t.Context(), "s1"), "buy milk")
	require.Empty(t, r.todos.Reminder(t.Context(), "s2"))
}

// A line for each call, without secrets and bounded; a file that can't be written stops nothing and is reported once.
func TestCallLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logs", "tool_calls.log")
	var out strings.Builder
	l := NewCallLog(file, redact.New("hunter2").String, zerolog.New(&out))
	require.NoFileExists(t, file)
	args := json.RawMessage(`{"command":"echo hunter2 ` + strings.Repeat("ä", 3000) + `"}`)
	event := tools.Event{At: time.Unix(0, 0), Call: tools.Call{Name: "terminal", Args: args,
		Caller: tools.Caller{Platform: "slack", Chat: "C1"}}, Result: &tools.Result{Exit: tools.ExitOK, Took: 1500 * time.Millisecond}}
	l.Write("s1", event)
	l.Close()
	l.Write("s2", event)
	l.Close()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	require.Len(t, lines, 2, "a closed log is opened again")
	var got callLine
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &got))
	require.Equal(t, callLine{Time: event.At.UTC(), Session: "s1", Chat: "slack:C1", Tool: "terminal", Args: got.Args, Exit: "ok", TookMS: 1500},
		callLine{Time: got.Time.UTC(), Session: got.Session, Chat: got.Chat, Tool: got.Tool, Args: got.Args, Exit: got.Exit, TookMS: got.TookMS})
	require.NotContains(t, got.Args, "hunter2")
	require.LessOrEqual(t, len([]rune(got.Args)), callLogArgs+20)

	l = NewCallLog(filepath.Join(file, "below-a-file"), redact.New().String, zerolog.New(&out))
	l.Write("s1", event)
	l.Write("s1", event)
	require.Equal(t, 1, strings.Count(out.String(), "tool calls can't be logged"))
}

// News of a process come only when the daemon has started, and go to its conversation with what is kept.
func TestProcesses_News(t *testing.T) {
	r := newRig(t)
	p := r.o.Processes
	require.ErrorContains(t, p.records.Tell(t.Context(), newsOf("k")), "has not started")
	p.Start(func(ctx context.Context, n News, keep func(sessions.Tx) error) error {
		r.news = append(r.news, n)
		if keep == nil {
			return nil
		}
		return r.store.Update(ctx, sessions.EdgeState, keep)
	})
	require.NoError(t, p.records.Tell(t.Context(), newsOf("")), "there is nobody to tell")
	require.Empty(t, r.news)
	require.NoError(t, p.records.Tell(t.Context(), newsOf("k")))
	at := platforms.Address{Platform: "web", Account: "a", Chat: "c"}
	require.Equal(t, []News{{ID: "n1", Key: "k", Session: "s1", Address: at, User: "u", Text: "it has ended"}}, r.news)
}
