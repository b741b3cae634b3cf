package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/model"
	rt "herald/gateway/router/routertest"
	turnask "herald/gateway/turn/ask"
	"herald/sessions"
	"herald/tools"
)

// guarded is a tool whose calls run side by side and each want an approval. After a restart a call asks again.
type guarded struct {
	rig  *rt.Rig
	mu   sync.Mutex
	ran  []string
	came []string // what became of the others
}

func (g *guarded) tool() tools.Tool {
	return tools.Tool{Spec: tools.Spec{Name: "guarded", Toolset: "test", Description: "test", Parallel: tools.Safe, Resumable: true, Timeout: -1,
		Parameters: json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"}}}`)},
		Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
			var args struct{ What string }
			_ = json.Unmarshal(call.Args, &args)
			a, err := g.rig.Asker.Approve(ctx, call, turnask.Request{Command: args.What, Preview: args.What, Kinds: []string{"kind"},
				Choices: []turnask.Choice{turnask.ChoiceOnce, turnask.ChoiceSession, turnask.ChoiceDeny}, Timeout: 5 * time.Minute})
			if err != nil {
				return tools.Result{}, err
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if a.Choice.Allows() {
				g.ran = append(g.ran, args.What)
			} else {
				g.came = append(g.came, args.What+": "+string(a.Choice)+" "+a.Reason)
			}
			return tools.Result{Content: string(a.Choice)}, nil
		}}
}

func (g *guarded) done() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.ran)
}

func (g *guarded) others() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.came)
}

// inRoom runs a test in which "do n" makes the model call the tool n times at once.
func inRoom(t *testing.T, fn func(t *testing.T, r *rt.Rig, d *desk, g *guarded)) {
	t.Helper()
	d, g := &desk{}, &guarded{}
	rt.Within(t, rt.Options{Commands: d.commands(t), Tools: []tools.Tool{g.tool()}}, func(t *testing.T, r *rt.Rig) {
		g.rig = r
		r.Model.Answer = func(_ context.Context, req model.Request) (model.Response, error) {
			n := 0
			if last := req.Messages[len(req.Messages)-1]; last.Role == "user" {
				_, _ = fmt.Sscanf(last.Text, "do %d", &n)
			}
			resp := model.Response{Text: "done"}
			for i := range n {
				resp.ToolCalls = append(resp.ToolCalls, model.ToolCall{ID: fmt.Sprint("c", i), Name: "guarded", Arguments: fmt.Sprintf(`{"what":"w%d"}`, i)})
			}
			return resp, nil
		}
		fn(t, r, d, g)
	})
}

func TestApprove_SeveralWait(t *testing.T) {
	inRoom(t, func(t *testing.T, r *rt.Rig, d *desk, g *guarded) {
		require.Equal(t, "Nothing waits for an approval.", ask(r, "a", "/approve"))
		r.Say("a", "do 3")
		require.Len(t, r.Chat.Shown("a"), 4, "three prompts")
		require.Contains(t, strings.Join(r.Chat.Shown("a"), "\n"), "\n3 commands wait for you; this is the newest.", "calls run side by side: any of them may be the third")
		require.Empty(t, g.done())
		require.Equal(t, "Allowed, this once. 2 more wait.", ask(r, "a", "/approve"))
		require.Len(t, g.done(), 1)
		require.Equal(t, "This choice is not offered here. Possible are: ✅ Once, This session, ❌ Refuse.", ask(r, "a", "/approve always"))
		require.Contains(t, ask(r, "a", "/approve nonsense"), "\"nonsense\"?")
		d.bystander = true
		require.Contains(t, ask(r, "a", "/approve"), "Only the person whose message started this")
		require.Contains(t, ask(r, "a", "/deny all"), "Only the person whose message started this")
		d.bystander = false
		require.Len(t, g.done(), 1)
		r.Say("a", "/deny all not today")
		require.Contains(t, r.Chat.Shown("a"), "Refused: 2 commands.")
		require.Len(t, g.others(), 2)
		require.Contains(t, g.others()[0], "deny not today")
		require.Equal(t, "done", r.Chat.Last("a"))
		require.Equal(t, "This was decided already.", ask(r, "a", "/approve"))
		require.Equal(t, "Nothing waits for an approval.", ask(r, "b", "/approve"))
	})
}

// Five minutes are five minutes, also when a restart lies between: then the rest of them.
func TestApprove_TimeOutDenies(t *testing.T) {
	inRoom(t, func(t *testing.T, r *rt.Rig, _ *desk, g *guarded) {
		r.Say("a", "do 1")
		r.Wait(200)
		r.Restart()
		require.Len(t, r.Chat.Shown("a"), 1, "it is not shown again")
		r.Wait(95)
		require.Empty(t, g.others())
		r.Wait(5)
		require.Equal(t, []string{"w0: timeout "}, g.others())
		require.Empty(t, g.done())
		require.Contains(t, r.Chat.Shown("a"), "w0\n\n⌛ Nobody answered in time, so it was refused.", "a platform that can't edit is told in a message")
		require.Equal(t, "The time to answer is over; it was refused.", ask(r, "a", "/approve"))
	})
}

// An approval that was decided while no process ran its turn holds for the call of the next one, once.
func TestApprove_IsDecidedOnce(t *testing.T) {
	inRoom(t, func(t *testing.T, r *rt.Rig, _ *desk, g *guarded) {
		r.Say("a", "do 1")
		var waits []turnask.Approval
		r.View(func(v sessions.View) (err error) { waits, err = turnask.PendingApprovals(v); return err })
		require.Len(t, waits, 1)
		id := waits[0].ID
		decide := func(choice turnask.Choice) (err error) {
			_ = r.Store.Store.Update(t.Context(), sessions.EdgeCommand, func(tx sessions.Tx) error {
				_, _, err = r.Asker.Decide(tx, id, choice, "", "")
				return err
			})
			return err
		}
		require.ErrorIs(t, decide(turnask.ChoiceAlways), turnask.ErrNotOffered)
		require.ErrorIs(t, decide("void"), turnask.ErrNotOffered)
		require.NoError(t, decide(turnask.ChoiceOnce)) // and the process dies before the call hears of it
		require.ErrorIs(t, decide(turnask.ChoiceDeny), turnask.ErrStale)
		require.Empty(t, g.done())
		r.Restart()
		require.Equal(t, []string{"w0"}, g.done())
		require.ErrorIs(t, decide(turnask.ChoiceOnce), turnask.ErrStale)
		r.Say("a", "do 1")
		require.Len(t, g.done(), 1, "the same words in another turn are another question")
		r.Say("a", "/stop")
		r.View(func(v sessions.View) (err error) { waits, err = turnask.PendingApprovals(v); return err })
		require.Empty(t, waits)
		require.Contains(t, r.Chat.Shown("a"), "Stopped.")
	})
}

// A command of a turn that has gone is not approved by anybody.
func TestApprove_IsVoidWithItsTurn(t *testing.T) {
	inRoom(t, func(t *testing.T, r *rt.Rig, _ *desk, g *guarded) {
		r.Say("a", "do 1")
		var waits []turnask.Approval
		r.View(func(v sessions.View) (err error) { waits, err = turnask.PendingApprovals(v); return err })
		r.Say("a", "/new")
		err := r.Store.Store.Update(t.Context(), sessions.EdgeCommand, func(tx sessions.Tx) error {
			_, _, err := r.Asker.Decide(tx, waits[0].ID, turnask.ChoiceOnce, "", "")
			return err
		})
		require.ErrorIs(t, err, turnask.ErrStale)
		r.Settle()
		require.Empty(t, g.done())
		require.Equal(t, "Nothing waits for an approval.", ask(r, "a", "/approve"))
	})
}
