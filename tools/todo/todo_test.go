package todo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"herald/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lists is a Store in memory.
type lists struct {
	m             map[string]List
	saves         int
	loadErr, fail error
}

func (l *lists) Load(_ context.Context, session string) (List, error) { return l.m[session], l.loadErr }

func (l *lists) Save(_ context.Context, session string, list List) error {
	if l.fail != nil {
		return l.fail
	}
	l.saves++
	l.m[session] = list
	return nil
}

func newBus(t *testing.T, s Store) *tools.Bus {
	t.Helper()
	r := tools.NewRegistry(tools.RegistryOptions{})
	require.NoError(t, r.Register(New(s)))
	return tools.NewBus(tools.Options{Registry: r})
}

func call(t *testing.T, b *tools.Bus, session, args string) reply {
	t.Helper()
	res := b.Dispatch(t.Context(), tools.Call{ID: "1", Name: Name, Args: json.RawMessage(args), Caller: tools.Caller{Session: session}})
	require.Equal(t, tools.ExitOK, res.Exit, res.Content)
	var r reply
	require.NoError(t, json.Unmarshal([]byte(res.Content), &r))
	return r
}

// render writes items as "id:status:content<parent".
func render(items []Item) string {
	var out []string
	for _, it := range items {
		s := fmt.Sprintf("%s:%s:%s", it.ID, it.Status, it.Content)
		if it.Parent != "" {
			s += "<" + it.Parent
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestTodo(t *testing.T) {
	const start = `{"todos":[{"id":"1","content":"a","status":"completed"},{"id":"2","content":"b","status":"pending"}]}`
	for _, tt := range []struct{ name, args, want string }{
		{"read", `{}`, "1:completed:a 2:pending:b"},
		{"replace", `{"todos":[{"id":"9","content":"z"}]}`, "9:pending:z"},
		{"clear", `{"todos":[]}`, ""},
		{"merge changes only what is given", `{"todos":[{"id":"2","status":"completed"}],"merge":true}`, "1:completed:a 2:completed:b"},
		{"merge appends", `{"todos":[{"id":"3","content":"c"}],"merge":true}`, "1:completed:a 2:pending:b 3:pending:c"},
		{"as text", `{"todos":"[{\"id\":\"9\",\"content\":\"z\"}]","merge":"false"}`, "9:pending:z"},
		{"numbers as ids", `{"todos":[{"id":7,"content":"x"},{"id":8,"content":"y","parent":7}]}`, "7:pending:x 8:pending:y<7"},
		{"unknown status", `{"todos":[{"id":"1","content":"x","status":"doing"}]}`, "1:pending:x"},
		{"status in other clothes", `{"todos":[{"id":"1","content":"x","status":" Completed "}]}`, "1:completed:x"},
		{"no content, no id", `{"todos":[{"id":" "},{"id":""}]}`, "?:pending:(no description) ?:pending:(no description)"},
		{"repeated id: the last, where it stands", `{"todos":[{"id":"1","content":"old"},{"id":"2","content":"m"},{"id":"1","content":"new"}]}`, "2:pending:m 1:pending:new"},
		{"work in progress first", `{"todos":[{"id":"0","content":"d","status":"completed"},{"id":"1","content":"a"},{"id":"2","content":"b"},{"id":"3","content":"c","status":"in_progress"}]}`, "0:completed:d 3:in_progress:c 1:pending:a 2:pending:b"},
		{"a tree keeps its order", `{"todos":[{"id":"1","content":"a"},{"id":"2","content":"b","parent":"1","status":"in_progress"}]}`, "1:pending:a 2:in_progress:b<1"},
		{"parents that are not there", `{"todos":[{"id":"1","content":"a","parent":"x"}]}`, "1:pending:a"},
		{"own parent", `{"todos":[{"id":"1","content":"a","parent":"1"}]}`, "1:pending:a"},
		{"a ring of parents", `{"todos":[{"id":"1","content":"a","parent":"2"},{"id":"2","content":"b","parent":"1"}]}`, "1:pending:a 2:pending:b<1"},
		{"parent null", `{"todos":[{"id":"1","content":"a","parent":null}]}`, "1:pending:a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &lists{m: map[string]List{}}
			b := newBus(t, s)
			call(t, b, "s1", start)
			got := call(t, b, "s1", tt.args)
			require.Equal(t, tt.want, render(got.Todos))
			require.Equal(t, len(got.Todos), got.Summary.Total)
			require.Equal(t, got.Summary.Total, got.Summary.Pending+got.Summary.InProgress+got.Summary.Completed+got.Summary.Cancelled)
			require.Empty(t, call(t, b, "s2", `{}`).Todos, "another session has another list (P6)")
		})
	}
}

func TestTodo_RevisionRisesOnlyWithChanges(t *testing.T) {
	s := &lists{m: map[string]List{}}
	b := newBus(t, s)
	set := `{"todos":[{"id":"1","content":"a"}]}`
	require.Zero(t, call(t, b, "s", `{}`).Revision)
	require.Equal(t, 1, call(t, b, "s", set).Revision)
	require.Equal(t, 1, call(t, b, "s", set).Revision)
	require.Equal(t, 1, call(t, b, "s", `{"todos":[],"merge":true}`).Revision)
	require.Equal(t, 2, call(t, b, "s", `{"todos":[{"id":"1","status":"cancelled"}],"merge":true}`).Revision)
	require.Equal(t, 2, s.saves)
}

func TestTodo_Bounds(t *testing.T) {
	b := newBus(t, &lists{m: map[string]List{}})
	var items []string
	for i := range MaxItems + 5 {
		items = append(items, fmt.Sprintf(`{"id":"%d","content":"x"}`, i))
	}
	got := call(t, b, "s", `{"todos":[`+strings.Join(items, ",")+`]}`)
	require.Len(t, got.Todos, MaxItems)
	require.Contains(t, got.Note, "last 5")
	got = call(t, b, "s", `{"todos":[{"id":"1","content":"`+strings.Repeat("ü", MaxContent+1)+`"}]}`)
	require.Equal(t, MaxContent, len([]rune(got.Todos[0].Content)))
}

func TestTodo_StoreErrors(t *testing.T) {
	for _, s := range []*lists{{m: map[string]List{}, fail: errors.New("disk full")}, {loadErr: errors.New("disk full")}} {
		res := newBus(t, s).Dispatch(t.Context(), tools.Call{Name: Name, Args: json.RawMessage(`{"todos":[{"id":"1","content":"a"}]}`)})
		require.Equal(t, tools.ExitError, res.Exit)
		require.Contains(t, res.Content, "disk full")
	}
}

func TestReminder(t *testing.T) {
	require.Empty(t, Reminder(nil))
	require.Empty(t, Reminder([]Item{{"1", "a", Completed, ""}, {"2", "b", Cancelled, ""}}))
	require.Equal(t, ReminderHeader+`
- [x] 1. whole (completed)
  - [>] 2. part (in_progress)
- [ ] 4. later (pending)`, Reminder([]Item{{"1", "whole", Completed, ""}, {"2", "part", InProgress, "1"}, {"3", "gone", Cancelled, "1"}, {"4", "later", Pending, ""}, {"5", "done", Completed, ""}}))
}

// Whatever a model sends, the list stays sound: ids once, parents that exist and lead to a root, bounds kept.
func TestTodo_Sound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []Item
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			var changes []change
			for range rapid.IntRange(0, 6).Draw(t, "items") {
				id := rapid.SampledFrom([]string{"a", "b", "c", "d", ""}).Draw(t, "id")
				status := rapid.SampledFrom([]string{"pending", "in_progress", "completed", "odd"}).Draw(t, "status")
				parent := flexible(rapid.SampledFrom([]string{"", "a", "b", "c", "x", "?"}).Draw(t, "parent"))
				changes = append(changes, change{ID: flexible(id), Status: &status, Parent: &parent})
			}
			items, _ = apply(items, changes, rapid.Bool().Draw(t, "merge"))
		}
		parents := map[string]string{}
		for _, it := range items {
			if it.ID != "?" {
				_, twice := parents[it.ID]
				require.False(t, twice)
			}
			parents[it.ID] = it.Parent
		}
		for _, it := range items {
			n := 0
			for at := it.Parent; at != ""; at = parents[at] {
				_, known := parents[at]
				require.True(t, known)
				n++
				require.LessOrEqual(t, n, len(items), "a ring")
			}
		}
		Reminder(items)
	})
}
