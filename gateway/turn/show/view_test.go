package show

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/gateway/delivery"
	"herald/gateway/model"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
	"herald/tools"
	"herald/tools/memory"
)

// screen is a platform that can edit and delete: what it shows, message by message.
type screen struct {
	traits platforms.Traits

	mu       sync.Mutex
	messages []string
	edits    int
	quoted   []platforms.MessageID
	marks    []string
	typed    []string // what the typing sign said, and "end"
}

func (s *screen) Account() platforms.Account                          { return platforms.Account{} }
func (s *screen) Traits() platforms.Traits                            { return s.traits }
func (s *screen) Health() platforms.Health                            { return platforms.Health{Inbound: true} }
func (s *screen) Run(context.Context, platforms.Sink) error           { return nil }
func (s *screen) Adapter(platforms.Account) (platforms.Adapter, bool) { return s, true }

func (s *screen) Send(_ context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if out.Edit != "" {
		var n int
		_, _ = fmt.Sscanf(string(out.Edit), "s%d", &n)
		s.messages[n] = out.Text.Body
		s.edits++
		return platforms.Receipt{Message: out.Edit}, nil
	}
	s.messages, s.quoted = append(s.messages, out.Text.Body), append(s.quoted, out.ReplyTo)
	return platforms.Receipt{Message: platforms.MessageID(fmt.Sprint("s", len(s.messages)-1))}, nil
}

func (s *screen) visible() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// outbox is a worker whose emoji and typing sign the screen keeps.
type outbox struct {
	*delivery.Worker
	s *screen
}

func (o outbox) React(_ context.Context, _ platforms.Address, id platforms.MessageID, emoji string, _ time.Duration) error {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.marks = append(o.s.marks, string(id)+emoji)
	return nil
}

func (o outbox) KeepTyping(ctx context.Context, _ platforms.Address, doing func() string) {
	for {
		o.s.mu.Lock()
		o.s.typed = append(o.s.typed, doing())
		o.s.mu.Unlock()
		select {
		case <-ctx.Done():
			o.s.mu.Lock()
			o.s.typed = append(o.s.typed, "end")
			o.s.mu.Unlock()
			return
		case <-time.After(time.Second):
		}
	}
}

// watch shows a turn on a screen, with a clock of its own.
func watch(t *testing.T, d Display, fn func(t *testing.T, s *screen, stage *Stage, v *View)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "herald.db")
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(context.Background(), sqlite.Options{Path: path})
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close()) }()
		s := &screen{traits: platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}, Edit: true}}
		catalogs, err := locales.New(locales.Options{})
		require.NoError(t, err)
		english := func(platforms.Address) *locales.Printer { return catalogs.Choose("en") }
		redact := func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
		worker := delivery.New(delivery.Options{Store: store, Adapters: s, Printer: english, Redact: redact, Log: zerolog.Nop()})
		defer worker.Close()
		stage := NewStage(Options{Outbox: outbox{worker, s}, Adapters: s, Log: zerolog.Nop(), Now: time.Now, Printer: english, Redact: redact})
		defer stage.Wait()
		defer stage.Stop()
		var turn sessions.Turn
		err = store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
			at := platforms.Address{Platform: "test", Account: "bot", Chat: "a"}
			session, err := tx.OpenSession("key", sessions.Origin{Address: at}, time.Now())
			if err != nil {
				return err
			}
			turn = sessions.Turn{Key: "key", Session: session.ID, State: sessions.TurnRunning, Attempts: 1, Address: at, ReplyTo: "m1", Began: time.Now()}
			return tx.BeginTurn(&turn)
		})
		require.NoError(t, err)
		fn(t, s, stage, stage.View(Turn{ID: turn.ID, Session: turn.Session, At: turn.Address, ReplyTo: turn.ReplyTo, Display: d}))
	})
}

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d) // of the test's own clock
	synctest.Wait()
}

var streaming = Display{Streaming: true, FirstDelay: time.Second, EditInterval: time.Second, EditThreshold: 4, Cursor: " ▌", ReplyTo: "first"}

func TestStream_GrowsInOneMessage(t *testing.T) {
	watch(t, streaming, func(t *testing.T, s *screen, _ *Stage, v *View) {
		v.Delta(model.Delta{Text: "one two "})
		pass(500 * time.Millisecond)
		require.Empty(t, s.visible(), "nothing before the first delay")
		require.Empty(t, v.Partial())
		pass(time.Second)
		v.Delta(model.Delta{Text: "three "})
		pass(2 * time.Second)
		require.Len(t, s.visible(), 1)
		require.Equal(t, "one two three ▌", s.visible()[0])
		require.Equal(t, []platforms.MessageID{"m1"}, s.quoted)
		require.Equal(t, "one two three ", v.Partial())
		v.Delta(model.Delta{Text: "four "})
		pass(2 * time.Second)
		require.Equal(t, []string{"one two three four ▌"}, s.visible())
		require.True(t, v.EndStream())
		require.Empty(t, v.Partial())
		require.False(t, v.EndStream())
	})
}

func TestStream_NothingSecretNorHalf(t *testing.T) {
	watch(t, streaming, func(t *testing.T, s *screen, _ *Stage, v *View) {
		for _, piece := range []string{"<think>the plan is hun", "ter2</think>", "the key is ", "hunter2 and the file MED", "IA:/home/x/report.pdf ", "token ghp_0123456789"} {
			v.Delta(model.Delta{Text: piece})
			pass(2 * time.Second)
			for _, m := range s.visible() {
				for _, bad := range []string{"plan", "hunter2", "/home", "ghp_", "MEDIA:"} {
					require.NotContains(t, m, bad)
				}
			}
		}
		require.Len(t, s.visible(), 1)
		require.Contains(t, s.visible()[0], "the key is ***")
		v.EndStream()
	})
}

func TestStream_SilenceIsNeverShown(t *testing.T) {
	watch(t, streaming, func(t *testing.T, s *screen, _ *Stage, v *View) {
		for _, piece := range []string{"[SIL", "ENT", "]"} {
			v.Delta(model.Delta{Text: piece})
			pass(2 * time.Second)
		}
		require.Empty(t, s.visible())
		require.False(t, v.EndStream())
	})
}

func TestStream_RestartBeginsAgainInTheSameMessage(t *testing.T) {
	watch(t, streaming, func(t *testing.T, s *screen, _ *Stage, v *View) {
		v.Delta(model.Delta{Text: "wrong words "})
		pass(2 * time.Second)
		v.Delta(model.Delta{Text: "more "})
		pass(2 * time.Second)
		require.Equal(t, []string{"wrong words more ▌"}, s.visible())
		v.Restart()
		v.Delta(model.Delta{Text: "right words "})
		pass(2 * time.Second)
		v.Delta(model.Delta{Text: "here "})
		pass(2 * time.Second)
		require.Equal(t, []string{"right words here ▌"}, s.visible())
		v.EndStream()
	})
}

func TestStream_OffOrNotEditable(t *testing.T) {
	off := streaming
	off.Streaming = false
	for name, c := range map[string]struct {
		d    Display
		edit bool
	}{"off": {off, true}, "no edits": {streaming, false}} {
		t.Run(name, func(t *testing.T) {
			watch(t, c.d, func(t *testing.T, s *screen, _ *Stage, v *View) {
				s.traits.Edit = c.edit
				for range 3 {
					v.Delta(model.Delta{Text: "some words "})
					pass(2 * time.Second)
				}
				require.Empty(t, s.visible())
				require.False(t, v.EndStream())
			})
		})
	}
}

// event is one of a call of a tool, whose preview is its argument "what".
func event(phase tools.Phase, tool, what string, result *tools.Result) tools.Event {
	args, _ := json.Marshal(map[string]string{"what": what})
	return tools.Event{Phase: phase, Call: tools.Call{ID: tools.CallID(tool + what), Name: tool, Args: args},
		Spec: tools.Spec{Name: tool, Emoji: "🔧", Preview: "what"}, Result: result, At: time.Now()}
}

func TestBubble_OneForABatch(t *testing.T) {
	watch(t, Display{Progress: "all", EditInterval: time.Second, PreviewLength: 40}, func(t *testing.T, s *screen, _ *Stage, v *View) {
		v.Observe(event(tools.PhaseStarted, "look", "hunter2", nil))
		v.Observe(event(tools.PhaseStarted, "look", "hunter2", nil))
		pass(2 * time.Second)
		require.Len(t, s.visible(), 1)
		require.Contains(t, s.visible()[0], "🔧 look ***")
		require.Contains(t, s.visible()[0], "×2", "the same line is counted")
		v.Observe(event(tools.PhaseFinished, "look", "hunter2", &tools.Result{IsError: true}))
		pass(2 * time.Second)
		require.Contains(t, s.visible()[0], "✗")
		for i := range bubbleLines + 2 {
			v.Observe(event(tools.PhaseStarted, "step", fmt.Sprint(i), nil))
		}
		pass(2 * time.Second)
		require.Contains(t, s.visible()[0], "… +3", "older lines are counted alone")
		v.EndBubble()
		v.Observe(event(tools.PhaseStarted, "after", "", nil))
		pass(2 * time.Second)
		require.Len(t, s.visible(), 2, "the next batch has its own")
		v.EndBubble()
	})
}

func TestBubble_Modes(t *testing.T) {
	for mode, want := range map[string]string{"off": "", "log": "", "": "", "new": "🔧 look a", "all": "🔧 look a|🔧 look b", "verbose": `🔧 look {"what":"a"}|🔧 look {"what":"b"}`} {
		t.Run(mode, func(t *testing.T) {
			watch(t, Display{Progress: mode, EditInterval: time.Second}, func(t *testing.T, s *screen, _ *Stage, v *View) {
				hidden := event(tools.PhaseStarted, "hidden", "x", nil)
				hidden.Spec.Hidden = true
				v.Observe(hidden)
				v.Observe(event(tools.PhaseStarted, "look", "a", nil))
				v.Observe(event(tools.PhaseStarted, "look", "b", nil))
				pass(2 * time.Second)
				got := strings.ReplaceAll(strings.Join(s.visible(), "\n\n"), "\n", "|")
				require.Equal(t, want, got)
				v.EndBubble()
			})
		})
	}
}

func TestBubble_NothingAfterClose(t *testing.T) {
	watch(t, Display{Progress: "all", EditInterval: time.Second}, func(t *testing.T, s *screen, _ *Stage, v *View) {
		v.Close()
		v.Observe(event(tools.PhaseStarted, "look", "a", nil))
		v.Heartbeat("still at it")
		pass(2 * time.Second)
		require.Empty(t, s.visible())
		v.Open()
		v.Heartbeat("still at it")
		pass(2 * time.Second)
		require.Equal(t, []string{"still at it"}, s.visible())
		v.EndBubble()
	})
}

func TestMarks(t *testing.T) {
	spoken := platforms.Event{ChatType: platforms.DM, Message: &platforms.Message{ID: "m1"}}
	for _, c := range []struct {
		name  string
		d     Display
		event platforms.Event
		end   sessions.TurnState
		want  []string
	}{
		{"done", Display{Reactions: true}, spoken, sessions.TurnDone, []string{"m1👀", "m1✅"}},
		{"failed", Display{Reactions: true}, spoken, sessions.TurnFailed, []string{"m1👀", "m1❌"}},
		{"parked", Display{Reactions: true}, spoken, sessions.TurnParked, []string{"m1👀", "m1❌"}},
		{"stopped keeps the first", Display{Reactions: true}, spoken, sessions.TurnStopped, []string{"m1👀"}},
		{"goes on later", Display{Reactions: true}, spoken, sessions.TurnRunning, []string{"m1👀"}},
		{"off", Display{}, spoken, sessions.TurnDone, nil},
		{"not spoken to", Display{Reactions: true}, platforms.Event{ChatType: platforms.Group, Message: &platforms.Message{ID: "m1"}}, sessions.TurnDone, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			watch(t, c.d, func(t *testing.T, s *screen, _ *Stage, v *View) {
				v.Mark(c.event, "m1")
				v.MarkEnd(c.end)
				synctest.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				require.Equal(t, c.want, s.marks)
			})
		})
	}
}

// signs returns the signs of life that were shown.
func (s *screen) signs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.typed)
}

func TestTyping_SaysWhatIsDone(t *testing.T) {
	for _, c := range []struct{ live, want string }{{"full", "runs ls ***"}, {"verb", "runs a command"}, {"off", "busy"}} {
		t.Run(c.live, func(t *testing.T) {
			watch(t, Display{Typing: true, Live: c.live, LiveText: "busy"}, func(t *testing.T, s *screen, _ *Stage, v *View) {
				v.StartTyping(t.Context())
				pass(typingDelay / 2)
				require.Empty(t, s.signs(), "a quick answer needs no sign")
				pass(time.Second)
				v.Observe(event(tools.PhaseStarted, "terminal", "ls hunter2", nil))
				pass(time.Second)
				v.Observe(event(tools.PhaseFinished, "terminal", "ls hunter2", &tools.Result{}))
				pass(time.Second)
				v.StopTyping()
				synctest.Wait()
				signs := s.signs()
				require.Equal(t, "busy", signs[0])
				require.Contains(t, signs, c.want)
				require.Equal(t, []string{"busy", "end"}, signs[len(signs)-2:])
			})
		})
	}
}

func TestTyping_StoppedBeforeItBegan(t *testing.T) {
	watch(t, Display{Typing: true}, func(t *testing.T, s *screen, _ *Stage, v *View) {
		v.StartTyping(t.Context())
		v.StopTyping()
		v.StopTyping()
		pass(time.Second)
		require.Empty(t, s.signs())
	})
}

func TestView_ReplyTo(t *testing.T) {
	for mode, want := range map[string][2]platforms.MessageID{"off": {"", ""}, "first": {"m1", ""}, "all": {"m1", "m1"}} {
		watch(t, Display{ReplyTo: mode}, func(t *testing.T, _ *screen, _ *Stage, v *View) {
			require.Equal(t, want, [2]platforms.MessageID{v.ReplyTo(0), v.ReplyTo(1)}, mode)
			v.Route(platforms.Address{Platform: "test", Chat: "a"}, "m2")
			require.NotEqual(t, platforms.MessageID("m1"), v.ReplyTo(0), "the newest message is quoted")
		})
	}
}

func TestView_Answer(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Display
		a    Answer
		want string
	}{
		{"plain", Display{}, Answer{Text: "hello"}, "hello"},
		{"silent", Display{}, Answer{Text: "(silent)"}, "I have nothing to say to this."},
		{"silence kept", Display{}, Answer{Text: "(silent)", Narrated: true}, "(silent)"},
		{"a footer", Display{}, Answer{Text: "hello", Footer: "_x_"}, "hello\n\n_x_"},
		{"reasoning is off", Display{}, Answer{Text: "hello", Reasoning: "hm"}, "hello"},
		{"reasoning as code", Display{Reasoning: true}, Answer{Text: "hello", Reasoning: "a ``` b"}, "````\na ``` b\n````\n\nhello"},
		{"reasoning as a quote", Display{Reasoning: true, ReasoningForm: "blockquote"}, Answer{Text: "hello", Reasoning: "a\nb"}, "> a\n> b\n\nhello"},
		{"steps are used up", Display{}, Answer{Text: "half", Exhausted: true, Steps: 7}, "7"},
		{"a loop", Display{}, Answer{Text: "half", Looped: "look"}, "`look`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			watch(t, c.d, func(t *testing.T, _ *screen, _ *Stage, v *View) {
				got := v.Answer(c.a)
				if c.name == "silent" {
					require.NotContains(t, got, "silent)")
					require.NotEmpty(t, got)
					return
				}
				require.Contains(t, got, c.want)
				if !c.d.Reasoning {
					require.NotContains(t, got, "hm")
				}
			})
		})
	}
}

func TestView_RemembersForTheAnswer(t *testing.T) {
	kept := func(action, content, summary string, failed bool) tools.Event {
		args, _ := json.Marshal(map[string]string{"action": action, "content": content})
		return tools.Event{Phase: tools.PhaseFinished, Call: tools.Call{ID: "c", Name: memory.Name, Args: args},
			Spec:   tools.Spec{Name: memory.Name},
			Result: &tools.Result{Summary: summary, IsError: failed}}
	}
	watch(t, Display{Memory: true}, func(t *testing.T, _ *screen, _ *Stage, v *View) {
		v.Observe(kept("add", "likes\n  *tea*", "saved", false))
		v.Observe(kept(memory.Remove, "old", "removed", false))
		v.Observe(kept("add", "broken", "", true))
		v.Observe(kept("add", "same", "nothing changed", false))
		got := v.Answer(Answer{Text: "ok"})
		require.Equal(t, 1, strings.Count(got, "💾"), got)
		require.Contains(t, got, `likes \*tea\*`)
	})
	watch(t, Display{}, func(t *testing.T, _ *screen, _ *Stage, v *View) {
		v.Observe(kept("add", "tea", "saved", false))
		require.Equal(t, "ok", v.Answer(Answer{Text: "ok"}))
	})
}

func TestStage_ToolLog(t *testing.T) {
	watch(t, Display{Progress: "log"}, func(t *testing.T, _ *screen, stage *Stage, v *View) {
		var logged []string
		stage.o.ToolLog = func(_ sessions.ID, e tools.Event) { logged = append(logged, e.Call.Name) }
		v.Observe(event(tools.PhaseStarted, "look", "a", nil))
		v.Observe(event(tools.PhaseFinished, "look", "a", &tools.Result{}))
		require.Equal(t, []string{"look"}, logged)
	})
}
