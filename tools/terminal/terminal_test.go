package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/tools"
	"herald/tools/sandbox"
	"herald/tools/sandbox/local"
)

func TestMain(m *testing.M) {
	if local.IsSupervisor(os.Args) {
		os.Exit(local.Supervise())
	}
	goleak.VerifyTestMain(m)
}

type fixture struct {
	env  *local.Environment
	tool tools.Tool
	dir  string
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	dir := t.TempDir()
	env, err := local.New(local.Options{
		Dir: dir, Home: t.TempDir(), SpillDir: filepath.Join(t.TempDir(), "spill"),
		Environ: func() []string { return []string{"PATH=" + os.Getenv("PATH")} },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, env.Close()) })
	return fixture{env: env, dir: dir, tool: New(Deps{Environment: func(tools.Caller) (sandbox.Environment, error) { return env, nil }})}
}

func (f fixture) call(t *testing.T, ctx context.Context, session, args string) (result, tools.Result) {
	t.Helper()
	r, err := f.tool.Run(ctx, tools.Call{Name: "terminal", Args: json.RawMessage(args), Caller: tools.Caller{Session: session, Dir: f.dir}})
	require.NoError(t, err)
	var out result
	require.NoError(t, json.Unmarshal([]byte(r.Content), &out), r.Content)
	return out, r
}

func TestTerminal_RunsWhereTheSessionLeftOff(t *testing.T) {
	f := newFixture(t)
	out, r := f.call(t, t.Context(), "s", `{"command":"mkdir sub; cd sub; echo hi; exit 2"}`)
	require.Equal(t, "hi\n", out.Output)
	require.Equal(t, 2, out.ExitCode)
	require.Equal(t, filepath.Join(f.dir, "sub"), out.Cwd)
	require.False(t, r.IsError, "a failed command is a result, not a failed tool")
	require.NotContains(t, r.Content, "truncated")
	out, _ = f.call(t, t.Context(), "s", `{"command":"pwd"}`)
	require.Equal(t, filepath.Join(f.dir, "sub")+"\n", out.Output)
	out, _ = f.call(t, t.Context(), "other", `{"command":"pwd"}`)
	require.Equal(t, f.dir+"\n", out.Output)
	out, _ = f.call(t, t.Context(), "s", `{"command":"pwd","workdir":".."}`)
	require.Equal(t, f.dir+"\n", out.Output)
	require.Equal(t, filepath.Join(f.dir, "sub"), out.Cwd)
}

func TestTerminal_TimeLimit(t *testing.T) {
	f := newFixture(t)
	out, r := f.call(t, t.Context(), "s", `{"command":"echo part; sleep 60","timeout":0.3}`)
	require.Equal(t, 124, out.ExitCode)
	require.True(t, out.TimedOut)
	require.Equal(t, tools.ExitTimeout, r.Exit)
	require.True(t, strings.HasPrefix(out.Output, "part\n"))
	for _, bad := range []string{"0", "-1", "601"} {
		_, r := f.call(t, t.Context(), "s", `{"command":"echo x","timeout":`+bad+`}`)
		require.True(t, r.IsError)
		require.Contains(t, r.Content, "at most 600")
	}
}

func TestTerminal_Interrupt(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, r := f.call(t, ctx, "s", `{"command":"sleep 60"}`)
	require.Equal(t, 130, out.ExitCode)
	require.True(t, out.Interrupted)
	require.Equal(t, tools.ExitCancelled, r.Exit)
}

func TestTerminal_LongOutput(t *testing.T) {
	f := newFixture(t)
	out, _ := f.call(t, t.Context(), "s", `{"command":"seq 1 30000"}`)
	require.True(t, out.Truncated)
	require.EqualValues(t, 168894, out.OutputTotalChars)
	all, err := os.ReadFile(out.FullOutputPath)
	require.NoError(t, err)
	require.Len(t, all, 168894)
}

func TestTerminal_FloorRefuses(t *testing.T) {
	f := newFixture(t)
	victim := filepath.Join(f.dir, "victim")
	require.NoError(t, os.WriteFile(victim, nil, 0o644))
	for _, line := range []string{
		fmt.Sprintf("rm %s; kill -9 %d", victim, os.Getpid()), "kill $PPID", "cd / && rm -rf *",
	} {
		args, _ := json.Marshal(map[string]string{"command": line})
		_, r := f.call(t, t.Context(), "s", string(args))
		require.True(t, r.IsError)
		require.Equal(t, tools.ExitDenied, r.Exit)
		require.Contains(t, r.Content, "was not run")
	}
	require.FileExists(t, victim, "nothing of a refused command is run")
}

func TestTerminal_WithoutEnvironment(t *testing.T) {
	tool := New(Deps{Environment: func(tools.Caller) (sandbox.Environment, error) { return nil, errors.New("engine does not answer") }})
	r, err := tool.Run(t.Context(), tools.Call{Args: json.RawMessage(`{"command":"ls"}`)})
	require.NoError(t, err)
	require.True(t, r.IsError)
	require.JSONEq(t, `{"error":"engine does not answer","status":"degraded","exit_code":-1,"retry_hint":"The place where commands run can't be reached. Nothing was run. Try once more; if it stays so, tell the user."}`, r.Content)
}

func TestProgress_ShowsTheLastLineNowAndThen(t *testing.T) {
	now := time.Unix(1000, 0)
	var shown []string
	p := &progress{now: func() time.Time { return now }, show: func(s string) { shown = append(shown, s) }}
	write := func(s string) { _, _ = p.Write([]byte(s)) }
	write("one\ntwo\n\npart")
	write("ial\nthree\n")
	require.Equal(t, []string{"two"}, shown)
	now = now.Add(progressEvery)
	write("10%\r20%\r")
	require.Equal(t, []string{"two", "20%"}, shown)
	now = now.Add(progressEvery)
	write(strings.Repeat("x", 5000) + "\n")
	require.Len(t, shown[2], maxProgress)
}

func TestProgress_BeatsWhenNothingIsPrinted(t *testing.T) {
	now := time.Unix(1000, 0)
	var shown []string
	p := &progress{now: func() time.Time { return now }, began: now, show: func(s string) { shown = append(shown, s) }}
	_, _ = p.Write([]byte("start\n"))
	_, _ = p.Write([]byte("held back\n"))
	now = now.Add(5 * time.Second)
	p.beat()
	now = now.Add(5 * time.Second)
	p.beat()
	now = now.Add(beatEvery)
	p.beat()
	require.Equal(t, []string{"start", "held back", "running for 20s"}, shown)
	p.keepBeating()()
}

// The tool passes the bus: its schema holds, and its lines reach subscribers.
func TestTerminal_ThroughTheBus(t *testing.T) {
	f := newFixture(t)
	reg := tools.NewRegistry(tools.RegistryOptions{})
	require.NoError(t, reg.Register(f.tool))
	bus := tools.NewBus(tools.Options{Registry: reg})
	var lines []string
	defer bus.Subscribe(func(e tools.Event) {
		if e.Phase == tools.PhaseProgress {
			lines = append(lines, e.Text)
		}
	})()
	r := bus.Dispatch(t.Context(), tools.Call{ID: "1", Name: "terminal", Args: json.RawMessage(`{"command":"echo seen","timeout":"20"}`)})
	require.Equal(t, tools.ExitOK, r.Exit, r.Content)
	require.Equal(t, []string{"seen"}, lines)
	r = bus.Dispatch(t.Context(), tools.Call{ID: "2", Name: "terminal", Args: json.RawMessage(`{"command":"echo x","background":true}`)})
	require.Equal(t, tools.ExitInvalid, r.Exit)
}

func TestTerminal_ConfiguredTimeLimits(t *testing.T) {
	f := newFixture(t)
	tool := New(Deps{Environment: func(tools.Caller) (sandbox.Environment, error) { return f.env, nil }, Timeout: 300 * time.Millisecond,
		MaxTimeout: 2 * time.Second})
	require.Contains(t, string(tool.Spec.Parameters), `"maximum": 2, "default": 0.3`)
	res, err := tool.Run(t.Context(), tools.Call{Args: []byte(`{"command":"sleep 20"}`)})
	require.NoError(t, err)
	require.Equal(t, tools.ExitTimeout, res.Exit)
	res, err = tool.Run(t.Context(), tools.Call{Args: []byte(`{"command":"echo hi","timeout":3}`)})
	require.NoError(t, err)
	require.Contains(t, res.Content, "at most 2 seconds")
	long := New(Deps{Timeout: time.Hour})
	require.Contains(t, string(long.Spec.Parameters), `"maximum": 3600, "default": 3600`)
}
