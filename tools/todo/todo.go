// Package todo is the agent's task list: one list per session, kept by a Store that the gateway provides. It
// promises that a list survives restarts and compaction and that its revision rises only when it changes.
package todo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"herald/tools"
)

// Name is the tool's name.
const Name = "todo"

const (
	// MaxItems is how many items a list keeps.
	MaxItems = 256
	// MaxContent bounds an item's text, in characters; the rest is cut off.
	MaxContent = 4000
	// maxResult is how much of a list goes back to the model, in characters.
	maxResult = 512_000
)

// Status is the state of an item.
type Status string

// The states of an item. Any other is taken as Pending.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Cancelled  Status = "cancelled"
)

// Item is one task. ID is made by the model and unique in its list; Parent is the ID of another item or empty.
type Item struct {
	ID      string `json:"id"`
	Content string `json:"content"`
	Status  Status `json:"status"`
	Parent  string `json:"parent,omitempty"`
}

// List is the tasks of one session, in the order of work.
type List struct {
	Items    []Item `json:"items"`
	Revision int    `json:"revision"`
}

// Store keeps lists by session id.
type Store interface {
	// Load returns the session's list, the zero List when there is none.
	Load(ctx context.Context, session string) (List, error)
	Save(ctx context.Context, session string, l List) error
}

const parameters = `{"type":"object","properties":{` +
	`"todos":{"type":"array","description":"The tasks in the order of work. Leave out to read the list.","items":{"type":"object","properties":{` +
	`"id":{"type":["string","integer"],"description":"Short id of your own, unique in the list."},` +
	`"content":{"type":"string","description":"What is to be done."},` +
	`"status":{"type":"string","description":"pending, in_progress, completed or cancelled. At most one task should be in_progress."},` +
	`"parent":{"type":["string","integer","null"],"description":"The id of the task that this one is a part of."}},` +
	`"required":["id"],"additionalProperties":false}},` +
	`"merge":{"type":"boolean","description":"false replaces the whole list; true changes the given tasks by id, only the given fields, and adds new ones.","default":false}},` +
	`"additionalProperties":false}`

const description = "Keep the list of tasks of this session. Use it for work of three steps or more, or when the person gives several tasks: " +
	"write the list first, set one task to in_progress before you work on it and to completed as soon as it is done, cancel what is no longer needed. " +
	"Without arguments it returns the list. It always returns the whole list."

// New returns the tool.
func New(store Store) tools.Tool {
	t := &tool{store: store}
	return tools.Tool{
		Spec: tools.Spec{
			Name: Name, Toolset: "todo", Description: description, Parameters: json.RawMessage(parameters),
			Core: true, MaxResult: maxResult, Emoji: "📋", Preview: "todos",
		},
		Run: t.run,
	}
}

// tool serialises changes; a list is small and its store quick.
type tool struct {
	mu    sync.Mutex
	store Store
}

// change is one item as the model writes it; nil fields were not given.
type change struct {
	ID      flexible  `json:"id"`
	Content *string   `json:"content"`
	Status  *string   `json:"status"`
	Parent  *flexible `json:"parent"`
}

// flexible is a text that may be written as a number.
type flexible string

// UnmarshalJSON takes a string, a number or null.
func (f *flexible) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*f = flexible(strings.TrimSpace(s))
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("%s is neither a string nor a number", data)
	}
	*f = flexible(n.String())
	return nil
}

// reply is what the model gets.
type reply struct {
	Todos    []Item  `json:"todos"`
	Revision int     `json:"revision"`
	Summary  summary `json:"summary"`
	Note     string  `json:"note,omitempty"`
}

type summary struct {
	Total      int `json:"total"`
	Pending    int `json:"pending"`
	InProgress int `json:"in_progress"`
	Completed  int `json:"completed"`
	Cancelled  int `json:"cancelled"`
}

func (t *tool) run(ctx context.Context, call tools.Call) (tools.Result, error) {
	var args struct {
		Todos *[]change `json:"todos"`
		Merge bool      `json:"merge"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tools.Result{}, fmt.Errorf("read arguments: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	list, err := t.store.Load(ctx, call.Caller.Session)
	if err != nil {
		return tools.Result{}, fmt.Errorf("load the task list: %w", err)
	}
	note := ""
	if args.Todos != nil {
		var items []Item
		items, note = apply(list.Items, *args.Todos, args.Merge)
		if !slices.Equal(items, list.Items) {
			list = List{Items: items, Revision: list.Revision + 1}
			if err := t.store.Save(ctx, call.Caller.Session, list); err != nil {
				return tools.Result{}, fmt.Errorf("save the task list: %w", err)
			}
		}
	}
	sum := count(list.Items)
	todos := list.Items
	if todos == nil {
		todos = []Item{}
	}
	r := tools.JSON(reply{Todos: todos, Revision: list.Revision, Summary: sum, Note: note})
	r.Summary = fmt.Sprintf("%d of %d done", sum.Completed, sum.Total)
	return r, nil
}

// apply returns the list after a change. note tells what was left out.
func apply(old []Item, changes []change, merge bool) (items []Item, note string) {
	if merge {
		items = slices.Clone(old)
	}
	for _, c := range changes {
		if merge && c.ID != "" {
			if i := slices.IndexFunc(items, func(it Item) bool { return it.ID == string(c.ID) }); i >= 0 {
				items[i] = c.onto(items[i])
				continue
			}
		}
		items = append(items, c.onto(Item{}))
	}
	items = lastOfEach(items)
	if extra := len(items) - MaxItems; extra > 0 {
		items = items[:MaxItems]
		note = fmt.Sprintf("The list keeps %d tasks; the last %d were left out.", MaxItems, extra)
	}
	dropBadParents(items)
	return raiseActive(items), note
}

// onto writes the given fields over an item and completes it.
func (c change) onto(it Item) Item {
	it.ID = string(c.ID)
	if it.ID == "" {
		it.ID = "?"
	}
	if c.Content != nil {
		it.Content = clip(strings.TrimSpace(*c.Content))
	}
	if it.Content == "" {
		it.Content = "(no description)"
	}
	if c.Status != nil {
		it.Status = Status(strings.ToLower(strings.TrimSpace(*c.Status)))
	}
	switch it.Status {
	case Pending, InProgress, Completed, Cancelled:
	default:
		it.Status = Pending
	}
	if c.Parent != nil {
		it.Parent = string(*c.Parent)
	}
	return it
}

func clip(s string) string {
	if utf8.RuneCountInString(s) <= MaxContent {
		return s
	}
	return string([]rune(s)[:MaxContent-1]) + "…"
}

// lastOfEach keeps the last item of each id, where it stands. Items without an id of their own all stay.
func lastOfEach(items []Item) []Item {
	last := map[string]int{}
	for i, it := range items {
		last[it.ID] = i
	}
	var out []Item
	for i, it := range items {
		if it.ID == "?" || last[it.ID] == i {
			out = append(out, it)
		}
	}
	return out
}

// dropBadParents clears parents that are not in the list or lead back to the item.
func dropBadParents(items []Item) {
	parent := map[string]string{}
	for _, it := range items {
		parent[it.ID] = it.Parent
	}
	for i := range items {
		it := &items[i]
		if it.Parent == "" {
			continue
		}
		_, known := parent[it.Parent]
		at := it.Parent
		for n := 0; known && at != "" && n <= len(items); n++ {
			if at == it.ID || n == len(items) {
				known = false
			}
			at = parent[at]
		}
		if !known {
			it.Parent = ""
			parent[it.ID] = ""
		}
	}
}

// raiseActive moves, in a list without parents, an item in progress before the first pending one that stands before it.
func raiseActive(items []Item) []Item {
	if slices.ContainsFunc(items, func(it Item) bool { return it.Parent != "" }) {
		return items
	}
	first := slices.IndexFunc(items, func(it Item) bool { return it.Status == Pending })
	if first < 0 {
		return items
	}
	for i := first + 1; i < len(items); i++ {
		if items[i].Status == InProgress {
			it := items[i]
			items = slices.Insert(slices.Delete(items, i, i+1), first, it)
			first++
		}
	}
	return items
}

func count(items []Item) summary {
	s := summary{Total: len(items)}
	for _, it := range items {
		switch it.Status {
		case Pending:
			s.Pending++
		case InProgress:
			s.InProgress++
		case Completed:
			s.Completed++
		case Cancelled:
			s.Cancelled++
		}
	}
	return s
}

// ReminderHeader begins what Reminder returns.
const ReminderHeader = "[The task list of this session, kept across the summary above]"

// Reminder renders what is still to do, for the prompt after older messages were summarised: items that
// are pending or in progress, and the items they are parts of. Empty when nothing is left.
func Reminder(items []Item) string {
	parent := map[string]string{}
	for _, it := range items {
		parent[it.ID] = it.Parent
	}
	wanted := map[string]bool{}
	for _, it := range items {
		if it.Status != Pending && it.Status != InProgress {
			continue
		}
		for at := it.ID; at != "" && !wanted[at]; at = parent[at] {
			wanted[at] = true
		}
	}
	if len(wanted) == 0 {
		return ""
	}
	marks := map[Status]string{Completed: "[x]", InProgress: "[>]", Pending: "[ ]", Cancelled: "[~]"}
	var b strings.Builder
	b.WriteString(ReminderHeader)
	for _, it := range items {
		if !wanted[it.ID] {
			continue
		}
		depth := 0
		for at := it.Parent; at != "" && depth < 8; at = parent[at] {
			depth++
		}
		fmt.Fprintf(&b, "\n%s- %s %s. %s (%s)", strings.Repeat("  ", depth), marks[it.Status], it.ID, it.Content, it.Status)
	}
	return b.String()
}
