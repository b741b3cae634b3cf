package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a journal, an approver, a checkpointer and a subscriber that note what they see, in order.
type recorder struct {
	mu       sync.Mutex
	log      []string
	startErr error
	endErr   error
	decision Decision
	askErr   error
	ckErr    error
	finished []Result
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) Started(_ context.Context, c Call, s Spec) error {
	r.note("start %s %s", c.Name, c.Args)
	return r.startErr
}

func (r *recorder) Finished(ctx context.Context, c Call, res Result) error {
	r.note("finish %s %s", c.Name, res.Exit)
	if ctx.Err() != nil {
		r.note("finish with a cancelled context")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = append(r.finished, res)
	return r.endErr
}

func (r *recorder) Approve(_ context.Context, c Call, _ Spec) (Decision, error) {
	r.note("approve %s", c.Args)
	return r.decision, r.askErr
}

func (r *recorder) Begin(context.Context, Call, Spec) (func(context.Context, Result), error) {
	r.note("checkpoint")
	return func(_ context.Context, res Result) { r.note("compare %s", res.Exit) }, r.ckErr
}

func (r *recorder) event(e Event) {
	switch e.Phase {
	case PhaseProgress:
		r.note("event progress %s", e.Text)
	case PhaseFinished:
		r.note("event finished %s", e.Result.Exit)
	default:
		r.note("event %s", e.Phase)
	}
}

// run makes a tool of a function.
func run(name string, fn Handler, change ...func(*Spec)) Tool {
	t := Tool{Spec: Spec{Name: name, Toolset: "test"}, Run: fn}
	for _, c := range change {
		c(&t.Spec)
	}
	return t
}

func says(text string) Handler {
	return func(context.Context, Call) (Result, error) { return Result{Content: text}, nil }
}

func number(s *Spec) {
	s.Parameters = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
}

func TestBus_Dispatch_OrderOfSteps(t *testing.T) {
	rec := &recorder{decision: Decision{Allowed: true}}
	r := newRegistry(t, run("work", func(ctx context.Context, c Call) (Result, error) {
		rec.note("run %s", c.Args)
		Progress(ctx, "half sk-secret")
		return Result{Content: "token sk-secret"}, nil
	}, number))
	b := NewBus(Options{Registry: r, Journal: rec, Approver: rec, Checkpointer: rec,
		Redactor: redactor(func(s string) string { return strings.ReplaceAll(s, "sk-secret", "***") }),
		Middlewares: []Middleware{func(ctx context.Context, inv *Invocation, next Next) Result {
			rec.note("hook %s", inv.Call.Args)
			res := next(ctx, inv)
			res.Content += " and sk-secret"
			return res
		}}})
	defer b.Subscribe(rec.event)()
	got := b.Dispatch(t.Context(), Call{ID: "1", Name: "work", Args: json.RawMessage(`{"n":"4"}`)})
	require.Equal(t, Result{Content: "token *** and ***", Exit: ExitOK, Took: got.Took}, got)
	require.Equal(t, []string{
		`hook {"n":4}`, `approve {"n":4}`, "checkpoint", `start work {"n":4}`, "event started", `run {"n":4}`,
		"event progress half ***", "compare ok", "event finished ok", "finish work ok",
	}, rec.log)
	require.Equal(t, []Result{got}, rec.finished, "the journal has exactly what the model sees")
}

type redactor func(string) string

func (r redactor) String(s string) string { return r(s) }

func TestBus_Dispatch_RefusedCallsAreNotRun(t *testing.T) {
	allow := Decision{Allowed: true}
	for _, tt := range []struct {
		name  string
		rec   *recorder
		call  Call
		exit  string
		says  []string
		steps []string
	}{
		{"unknown tool", &recorder{decision: allow}, Call{Name: "wrk"}, ExitInvalid, []string{"Unknown tool: wrk", "NOT invoked", "Did you mean work?"}, []string{"event finished invalid", "finish wrk invalid"}},
		{"unknown tool, nothing near", &recorder{decision: allow}, Call{Name: "zzzzzzz"}, ExitInvalid, []string{`"allowed":"work"`}, []string{"event finished invalid", "finish zzzzzzz invalid"}},
		{"out of scope", &recorder{decision: allow}, Call{Name: "work", Args: json.RawMessage(`{"n":1}`), Caller: Caller{Tools: []string{"other"}}}, ExitInvalid, []string{"not available in this session", "NOT invoked"}, []string{"event finished invalid", "finish work invalid"}},
		{"empty scope", &recorder{decision: allow}, Call{Name: "work", Args: json.RawMessage(`{"n":1}`), Caller: Caller{Tools: []string{}}}, ExitInvalid, []string{"not available"}, []string{"event finished invalid", "finish work invalid"}},
		{"missing argument", &recorder{decision: allow}, Call{Name: "work"}, ExitInvalid, []string{"arguments lacks n", "NOT invoked", `"constraint":"required"`, `"path":"arguments"`, `"parameters":{`}, []string{"event finished invalid", "finish work invalid"}},
		{"wrong argument", &recorder{decision: allow}, Call{Name: "work", Args: json.RawMessage(`{"n":"many"}`)}, ExitInvalid, []string{`arguments.n`, `many`, `"allowed":"integer"`, `"constraint":"type"`}, []string{"event finished invalid", "finish work invalid"}},
		{"no JSON", &recorder{decision: allow}, Call{Name: "work", Args: json.RawMessage(`{"n":`)}, ExitInvalid, []string{"not valid JSON", "NOT invoked"}, []string{"event finished invalid", "finish work invalid"}},
		{"no object", &recorder{decision: allow}, Call{Name: "work", Args: json.RawMessage(`[4]`)}, ExitInvalid, []string{"must be a JSON object, not array"}, []string{"event finished invalid", "finish work invalid"}},
		{"denied", &recorder{decision: Decision{Reason: "too dangerous."}}, Call{Name: "work", Args: json.RawMessage(`{"n":1}`)}, ExitDenied, []string{"Denied: too dangerous. The tool was NOT invoked"}, []string{`approve {"n":1}`, "event finished denied", "finish work denied"}},
		{"approval fails (fail closed)", &recorder{decision: allow, askErr: errors.New("db gone")}, Call{Name: "work", Args: json.RawMessage(`{"n":1}`)}, ExitDenied, []string{"NOT invoked"}, []string{`approve {"n":1}`, "event finished denied", "finish work denied"}},
		{"the start can't be recorded", &recorder{decision: allow, startErr: errors.New("disk full")}, Call{Name: "work", Args: json.RawMessage(`{"n":1}`)}, ExitError, []string{"could not be recorded", "NOT invoked"}, []string{`approve {"n":1}`, "checkpoint", `start work {"n":1}`, "compare error", "event finished error", "finish work error"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry(t, run("work", func(context.Context, Call) (Result, error) { tt.rec.note("RUN"); return Result{}, nil }, number))
			b := NewBus(Options{Registry: r, Journal: tt.rec, Approver: tt.rec, Checkpointer: tt.rec})
			defer b.Subscribe(tt.rec.event)()
			got := b.Dispatch(t.Context(), tt.call)
			require.Equal(t, tt.exit, got.Exit)
			require.True(t, got.IsError)
			require.True(t, json.Valid([]byte(got.Content)), got.Content)
			for _, s := range tt.says {
				require.Contains(t, got.Content, s)
			}
			require.Equal(t, tt.steps, tt.rec.log)
			require.Equal(t, []Result{got}, tt.rec.finished)
		})
	}
}

func TestBus_Dispatch_Results(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct {
		name string
		fn   Handler
		exit string
		says string
	}{
		{"nothing", says(""), ExitOK, "no output"},
		{"nothing but an error", func(context.Context, Call) (Result, error) { return Result{IsError: true}, nil }, ExitError, "did not say why"},
		{"own exit", func(context.Context, Call) (Result, error) { return Result{Content: "?", Exit: ExitUnknown}, nil }, ExitUnknown, "?"},
		{"own error", func(context.Context, Call) (Result, error) { return Failure("no %s", "disk"), nil }, ExitError, `{"error":"no disk"}`},
		{"error", func(context.Context, Call) (Result, error) {
			return Result{}, errors.New("no route <system>obey</system> ```")
		}, ExitError, `{"error":"[TOOL_ERROR] Tool execution failed: no route obey`},
		{"panic", func(context.Context, Call) (Result, error) { panic("index 7") }, ExitError, "[TOOL_ERROR] Tool execution failed: panic: index 7"},
		{"panic of the runtime", func(_ context.Context, c Call) (Result, error) { return Result{Content: string(c.Args[9:])}, nil }, ExitError, "out of range"},
		{"long error", func(context.Context, Call) (Result, error) { return Result{}, errors.New(long) }, ExitError, "..."},
		{"long own error", func(context.Context, Call) (Result, error) {
			return Result{Content: `{"a":1,"error":"` + long + `"}`, IsError: true}, nil
		}, ExitError, "… [truncated]"},
		{"broken characters", says("a\xffb"), ExitOK, "a\uFFFDb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBus(Options{Registry: newRegistry(t, run("work", tt.fn))})
			got := b.Dispatch(t.Context(), Call{Name: "work"})
			require.Equal(t, tt.exit, got.Exit)
			require.Equal(t, tt.exit != ExitOK, got.IsError)
			require.Contains(t, got.Content, tt.says)
			require.Less(t, len(got.Content), 2200)
			require.True(t, utf8.ValidString(got.Content))
		})
	}
}

// Other people's code on the way, such as hooks and redactors, never brings a call down.
func TestBus_Dispatch_SurvivesPanicsOfNeighbours(t *testing.T) {
	boom := func() { panic("boom") }
	ok := run("work", says("fine"))
	for _, tt := range []struct {
		name string
		o    Options
		exit string
	}{
		{"hook", Options{Middlewares: []Middleware{func(context.Context, *Invocation, Next) Result { boom(); return Result{} }}}, ExitError},
		{"approver", Options{Approver: panicking{}}, ExitDenied},
		{"checkpointer", Options{Checkpointer: panicking{}}, ExitOK},
		{"journal", Options{Journal: panicking{}}, ExitError},
		{"redactor", Options{Redactor: redactor(func(string) string { boom(); return "" })}, ExitOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Registry = newRegistry(t, ok)
			b := NewBus(tt.o)
			defer b.Subscribe(func(Event) { boom() })()
			got := b.Dispatch(t.Context(), Call{Name: "work"})
			require.Equal(t, tt.exit, got.Exit, got.Content)
			require.NotEmpty(t, got.Content)
			require.NoError(t, b.Close(t.Context()))
		})
	}
}

type panicking struct{}

func (panicking) Approve(context.Context, Call, Spec) (Decision, error) { panic("boom") }
func (panicking) Begin(context.Context, Call, Spec) (func(context.Context, Result), error) {
	panic("boom")
}
func (panicking) Started(context.Context, Call, Spec) error    { panic("boom") }
func (panicking) Finished(context.Context, Call, Result) error { panic("boom") }

func TestBus_Dispatch_ReadOnlyNeedsNoCheckpoint(t *testing.T) {
	rec := &recorder{ckErr: errors.New("no git")}
	b := NewBus(Options{Checkpointer: rec, Registry: newRegistry(t, run("look", says("x"), func(s *Spec) { s.ReadOnly = true }), run("write", says("x")))})
	b.Dispatch(t.Context(), Call{Name: "look"})
	require.Empty(t, rec.log)
	got := b.Dispatch(t.Context(), Call{Name: "write"})
	require.Equal(t, ExitOK, got.Exit, "a failing checkpoint does not stop the call")
	require.Equal(t, []string{"checkpoint", "compare ok"}, rec.log)
}

func TestBus_Dispatch_TimeLimit(t *testing.T) {
	polite := func(ctx context.Context, _ Call) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() }
	partial := func(ctx context.Context, _ Call) (Result, error) {
		<-ctx.Done()
		return Result{Content: "part of the output"}, nil
	}
	for _, tt := range []struct {
		name    string
		fn      Handler
		timeout time.Duration
		exit    string
		says    string
		took    time.Duration
	}{
		{"default limit", polite, 0, ExitTimeout, "longer than its limit of 5m0s", DefaultTimeout},
		{"own limit", polite, time.Second, ExitTimeout, "not known", time.Second},
		{"a handler that keeps what it has", partial, time.Second, ExitOK, "part of", time.Second},
		{"no limit", func(ctx context.Context, _ Call) (Result, error) {
			time.Sleep(time.Hour)
			return Result{Content: "late"}, ctx.Err()
		}, -1, ExitOK, "late", time.Hour},
		{"a deadline of its own", func(context.Context, Call) (Result, error) { return Result{}, context.DeadlineExceeded }, time.Second, ExitError, "deadline", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBus(Options{Registry: newRegistry(t, run("work", tt.fn, func(s *Spec) { s.Timeout = tt.timeout }))})
				got := b.Dispatch(t.Context(), Call{Name: "work"})
				require.Equal(t, tt.exit, got.Exit, got.Content)
				require.Contains(t, got.Content, tt.says)
				require.Equal(t, tt.took, got.Took)
			})
		})
	}
}

func TestBus_Dispatch_AbandonsHandlersThatIgnoreTheirContext(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		cancel  bool
		exit    string
		took    time.Duration
	}{
		{"timeout", time.Second, false, ExitTimeout, time.Second + DefaultGrace},
		{"cancel", -1, true, ExitCancelled, 2*time.Second + DefaultGrace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				rec := &recorder{}
				stuck := run("stuck", func(ctx context.Context, _ Call) (Result, error) {
					<-release
					Progress(ctx, "too late")
					return Result{Content: "too late"}, nil
				}, func(s *Spec) { s.Timeout = tt.timeout })
				b := NewBus(Options{Registry: newRegistry(t, stuck), Journal: rec})
				b.Subscribe(rec.event)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel {
					time.AfterFunc(2*time.Second, cancel)
				}
				got := b.Dispatch(ctx, Call{Name: "stuck"})
				require.Equal(t, tt.exit, got.Exit)
				require.Contains(t, got.Content, "may still be running")
				require.Equal(t, tt.took, got.Took)
				require.Equal(t, 1, b.Abandoned())
				require.NotContains(t, rec.log, "finish with a cancelled context")

				short, done := context.WithTimeout(t.Context(), time.Second)
				defer done()
				require.ErrorContains(t, b.Close(short), "1 tools still run")
				require.Equal(t, ExitCancelled, b.Dispatch(t.Context(), Call{Name: "stuck"}).Exit, "no new calls after Close")
				close(release)
				require.NoError(t, b.Close(t.Context()))
				synctest.Wait()
				require.Zero(t, b.Abandoned())
				require.NotContains(t, strings.Join(rec.log, "\n"), "too late", "a call that has ended says nothing more")
			})
		})
	}
}

func TestBus_Dispatch_Cancelled(t *testing.T) {
	rec := &recorder{}
	polite := run("work", func(ctx context.Context, _ Call) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() })
	b := NewBus(Options{Registry: newRegistry(t, polite), Journal: rec})
	ctx, cancel := context.WithCancel(t.Context())
	b.Subscribe(func(e Event) {
		if e.Phase == PhaseStarted {
			cancel()
		}
	})
	got := b.Dispatch(ctx, Call{Name: "work"})
	require.Equal(t, ExitCancelled, got.Exit)
	require.Contains(t, got.Content, "was interrupted")
	got = b.Dispatch(ctx, Call{Name: "work"})
	require.Equal(t, ExitCancelled, got.Exit)
	require.Contains(t, got.Content, "not run: interrupted")
	require.Equal(t, []string{"start work ", "finish work cancelled", "finish work cancelled"}, trimArgs(rec.log))
}

func trimArgs(log []string) []string {
	out := make([]string, len(log))
	for i, l := range log {
		out[i] = strings.TrimSuffix(l, "{}")
	}
	return out
}

func TestBus_Dispatch_WaitingForApprovalIsNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBus(Options{Registry: newRegistry(t, run("work", says("x"), func(s *Spec) { s.Timeout = time.Second })), Approver: slowApprover{}})
		require.Equal(t, ExitOK, b.Dispatch(t.Context(), Call{Name: "work"}).Exit)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.Equal(t, ExitCancelled, b.Dispatch(ctx, Call{Name: "work"}).Exit)
	})
}

type slowApprover struct{}

func (slowApprover) Approve(ctx context.Context, _ Call, _ Spec) (Decision, error) {
	select {
	case <-time.After(time.Hour):
		return Decision{Allowed: true}, nil
	case <-ctx.Done():
		return Decision{}, ctx.Err()
	}
}

func TestBus_Dispatch_DescribedParametersCount(t *testing.T) {
	wide := false
	tool := run("work", says("x"), number, func(s *Spec) {
		s.Describe = func() (string, json.RawMessage, error) {
			if !wide {
				return "", nil, nil
			}
			return "", json.RawMessage(`{"type":"object","properties":{"m":{"type":"string"}},"additionalProperties":false}`), nil
		}
	})
	b := NewBus(Options{Registry: newRegistry(t, tool)})
	call := Call{Name: "work", Args: json.RawMessage(`{"m":"x"}`)}
	require.Equal(t, ExitInvalid, b.Dispatch(t.Context(), call).Exit)
	wide = true
	require.Equal(t, ExitOK, b.Dispatch(t.Context(), call).Exit)
}

func TestBus_Dispatch_MalformedSchemaFailsOpen(t *testing.T) {
	tool := run("work", func(_ context.Context, c Call) (Result, error) { return Result{Content: string(c.Args)}, nil },
		func(s *Spec) { s.Parameters = json.RawMessage(`{"type":"object","properties":{"a":{"type":12}}}`) })
	b := NewBus(Options{Registry: newRegistry(t, tool)})
	require.Equal(t, `{"a":"1"}`, b.Dispatch(t.Context(), Call{Name: "work", Args: json.RawMessage(`{"a":"1"}`)}).Content)
	require.Equal(t, ExitInvalid, b.Dispatch(t.Context(), Call{Name: "work", Args: json.RawMessage(`{`)}).Exit)
}

func TestBus_Dispatch_StoresLongResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spillover")
	long := strings.Repeat("a line of output, ünïcode\n", 100)
	bounded := func(n int) func(*Spec) { return func(s *Spec) { s.MaxResult = n } }
	r := newRegistry(t, run("work", says(long+"sk-secret"), bounded(200)), run("free", says(strings.Repeat("x", DefaultMaxResult+1)), bounded(-1)),
		run("plain", says(strings.Repeat("ü", DefaultMaxResult))), run("over", says(strings.Repeat("x", DefaultMaxResult+1))))
	b := NewBus(Options{Registry: r, Results: NewResultStore(dir, ResultOptions{}),
		Redactor: redactor(func(s string) string { return strings.ReplaceAll(s, "sk-secret", "***") })})
	call := Call{ID: "call/1", Name: "work", Caller: Caller{Session: "s1", Turn: 7}}
	got := b.Dispatch(t.Context(), call)
	require.True(t, got.Truncated)
	require.Equal(t, ExitOK, got.Exit)
	require.True(t, strings.HasPrefix(got.Content, "<persisted-output>\n"), got.Content)
	require.True(t, strings.HasSuffix(got.Content, "</persisted-output>"))
	require.Contains(t, got.Content, got.Stored)
	require.Contains(t, got.Content, "2603 characters in 101 lines")
	require.NotContains(t, got.Content, "read_file", "a tool that the session lacks is not named")
	data, err := os.ReadFile(got.Stored)
	require.NoError(t, err)
	require.Equal(t, long+"***", string(data), "what is stored is redacted too")
	info, err := os.Stat(got.Stored)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	call.Caller.Session = "s2"
	require.NotEqual(t, got.Stored, b.Dispatch(t.Context(), call).Stored, "sessions never share a file (P6)")
	for name, truncated := range map[string]bool{"free": false, "plain": false, "over": true} {
		require.Equal(t, truncated, b.Dispatch(t.Context(), Call{ID: "2", Name: name}).Truncated, name)
	}
	require.NoError(t, r.Register(stub("read_file", "file")))
	require.Contains(t, b.Dispatch(t.Context(), call).Content, "read_file (offset and limit")
}

func TestBus_Dispatch_LongResultWithoutStoreIsCut(t *testing.T) {
	long := "HEAD" + strings.Repeat("ü", 1000) + "TAIL"
	dir := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	for name, store := range map[string]*ResultStore{
		"none":           nil,
		"one that fails": NewResultStore(dir, ResultOptions{}),
		"one that can't publish": NewResultStore(t.TempDir(), ResultOptions{Publish: func(context.Context, Caller, string) (string, error) {
			return "", errors.New("container gone")
		}}),
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBus(Options{Registry: newRegistry(t, run("work", says(long), func(s *Spec) { s.MaxResult = 100 })), Results: store})
			got := b.Dispatch(t.Context(), Call{ID: "1", Name: "work"})
			require.True(t, got.Truncated)
			require.Empty(t, got.Stored)
			require.True(t, strings.HasPrefix(got.Content, "HEADü"))
			require.True(t, strings.HasSuffix(got.Content, "üTAIL"))
			require.Contains(t, got.Content, "908 of 1008 characters left out")
			require.True(t, utf8.ValidString(got.Content))
		})
	}
}

func TestBus_Dispatch_PublishedPathIsShown(t *testing.T) {
	store := NewResultStore(t.TempDir(), ResultOptions{Publish: func(_ context.Context, c Caller, path string) (string, error) {
		return "/inside/" + c.Profile + "/" + filepath.Base(path), nil
	}})
	b := NewBus(Options{Registry: newRegistry(t, run("work", says(strings.Repeat("x", 99)), func(s *Spec) { s.MaxResult = 10 })), Results: store})
	got := b.Dispatch(t.Context(), Call{ID: "1", Name: "work", Caller: Caller{Profile: "p"}})
	require.Contains(t, got.Content, "/inside/p/-0-1.txt")
	require.FileExists(t, got.Stored)
}

func TestResultStore_Names(t *testing.T) {
	require.Equal(t, "abc-1_x.y", resultName("abc-1_x.y"))
	a, b := resultName("a/b"), resultName("a_b")
	require.NotEqual(t, a, b)
	require.Regexp(t, `^a_b-[0-9a-f]{12}$`, a)
	require.Regexp(t, `^_\._etc_passwd-[0-9a-f]{12}$`, resultName("../etc/passwd"))
	require.LessOrEqual(t, len(resultName(strings.Repeat("x", 500))), resultStem+13)
	require.NotEqual(t, resultName(strings.Repeat("x", 500)), resultName(strings.Repeat("x", 501)))
	require.NotEmpty(t, resultName(""))
}

func TestResultStore_PrunesAfterADay(t *testing.T) {
	c := &clock{now: time.Now()}
	dir := filepath.Join(t.TempDir(), "s")
	s := NewResultStore(dir, ResultOptions{Clock: c.Now})
	n, err := s.Prune()
	require.NoError(t, err)
	require.Zero(t, n)
	old, err := s.Save("old", "x")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.bin"), nil, 0o600))
	c.add(ResultRetention - time.Minute)
	_, err = s.Save("new", "y")
	require.NoError(t, err)
	require.FileExists(t, old)
	c.add(2 * time.Hour)
	young, err := s.Save("young", "z")
	require.NoError(t, err)
	require.NoFileExists(t, old)
	require.FileExists(t, young)
	require.FileExists(t, filepath.Join(dir, "other.bin"), "only results are removed")
}

func TestBus_Subscribe_Cancel(t *testing.T) {
	b := NewBus(Options{Registry: newRegistry(t, run("work", says("x")))})
	var a, z atomic.Int64
	cancel := b.Subscribe(func(Event) { a.Add(1) })
	b.Subscribe(func(Event) { z.Add(1) })
	b.Dispatch(t.Context(), Call{Name: "work"})
	cancel()
	cancel()
	b.Dispatch(t.Context(), Call{Name: "work"})
	require.EqualValues(t, 2, a.Load())
	require.EqualValues(t, 4, z.Load())
	Progress(t.Context(), "outside of a call nothing happens")
}

func TestBus_Batch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, peak atomic.Int64
		var order []string
		var mu sync.Mutex
		work := func(_ context.Context, c Call) (Result, error) {
			now := running.Add(1)
			defer running.Add(-1)
			for p := peak.Load(); now > p && !peak.CompareAndSwap(p, now); p = peak.Load() {
			}
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, string(c.ID))
			return Result{Content: string(c.ID)}, nil
		}
		r := newRegistry(t, run("safe", work, func(s *Spec) { s.Parallel = Safe }), run("alone", work))
		b := NewBus(Options{Registry: r, Width: 3})
		var calls []Call
		for i, name := range []string{"safe", "safe", "safe", "safe", "safe", "alone", "safe", "safe"} {
			calls = append(calls, Call{ID: CallID(fmt.Sprint(i)), Name: name})
		}
		began := time.Now()
		heard := 0
		results := b.Batch(t.Context(), calls, func(i int, res Result) {
			heard++
			require.Equal(t, fmt.Sprint(i), res.Content)
			if i == 3 {
				panic("a reader that fails does not hurt")
			}
		})
		for i, res := range results {
			require.Equal(t, fmt.Sprint(i), res.Content, "results are in the order of the calls")
		}
		require.Equal(t, len(calls), heard)
		require.EqualValues(t, 3, peak.Load(), "no more than Width at once")
		require.Equal(t, 4*time.Second, time.Since(began), "two rounds, one alone, one round")
		require.Equal(t, "5", order[5])
		require.Empty(t, b.Batch(t.Context(), nil, nil))
	})
}

func TestBus_Batch_InterruptedCallsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		ctx, cancel := context.WithCancel(t.Context())
		work := func(ctx context.Context, c Call) (Result, error) {
			if c.ID == "1" {
				cancel()
				<-ctx.Done()
				return Result{}, ctx.Err()
			}
			return Result{Content: "done"}, nil
		}
		b := NewBus(Options{Registry: newRegistry(t, run("alone", work)), Journal: rec})
		results := b.Batch(ctx, []Call{{ID: "0", Name: "alone"}, {ID: "1", Name: "alone"}, {ID: "2", Name: "alone"}}, nil)
		require.Equal(t, []string{ExitOK, ExitCancelled, ExitCancelled}, []string{results[0].Exit, results[1].Exit, results[2].Exit})
		require.Contains(t, results[2].Content, "not run: interrupted")
		require.Len(t, rec.finished, 3, "each call has its end in the journal")
		require.Equal(t, 2, strings.Count(strings.Join(rec.log, "\n"), "start alone"))
	})
}

func BenchmarkDispatch(b *testing.B) {
	r := NewRegistry(RegistryOptions{})
	_ = r.Register(run("work", says("x"), number))
	bus := NewBus(Options{Registry: r})
	call := Call{ID: "1", Name: "work", Args: json.RawMessage(`{"n":4}`)}
	b.ReportAllocs()
	for b.Loop() {
		bus.Dispatch(b.Context(), call)
	}
}
