package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"herald/tools"
)

// Name is the tool's name.
const Name = "memory"

// New returns the tool over a store. With one of the files switched off it offers the other alone; with
// both off it reports itself as unavailable.
func New(s *Store) tools.Tool {
	return NewFor(s.Targets(), func(tools.Caller) *Store { return s })
}

// NewFor is New where each caller has its own store: of returns the caller's, never nil, with these targets switched on.
func NewFor(targets []Target, of func(tools.Caller) *Store) tools.Tool {
	return tools.Tool{
		Spec: tools.Spec{
			Name: Name, Toolset: "memory", Description: describe(targets), Parameters: parameters(targets),
			Check: func(context.Context) bool { return len(targets) > 0 },
			Core:  true, Emoji: "🧠", Preview: "content",
		},
		Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
			return run(ctx, of(call.Caller), call)
		},
	}
}

func describe(targets []Target) string {
	var b strings.Builder
	b.WriteString("Keep short facts that every later session should start with. They are shown in your prompt from the next session on. ")
	for _, t := range targets {
		switch t {
		case Memory:
			b.WriteString("Target memory is for your own notes: the environment, conventions, lessons. ")
		case User:
			b.WriteString("Target user is for the person: name, preferences, how they like to work. ")
		}
	}
	b.WriteString("Write what stays true for long, in few words, one fact an entry; not the progress of a task, nor what is easy to look up. ")
	b.WriteString("Room is small: when it is full, merge or remove entries in one batch of operations that ends within the limit; all of a batch is applied or none.")
	return b.String()
}

func parameters(targets []Target) json.RawMessage {
	if len(targets) == 0 {
		targets = []Target{Memory}
	}
	quoted := make([]string, len(targets))
	for i, t := range targets {
		quoted[i] = fmt.Sprintf("%q", t)
	}
	const fields = `"action":{"type":"string","enum":["add","replace","remove"],"description":"add needs content; replace needs old_text and content; remove needs old_text."},` +
		`"content":{"type":"string","description":"The entry to add, or what replaces the old one."},` +
		`"old_text":{"type":"string","description":"A part of the one entry that is meant."}`
	return json.RawMessage(`{"type":"object","properties":{` +
		`"target":{"type":"string","enum":[` + strings.Join(quoted, ",") + `],"default":` + quoted[0] + `},` + fields +
		`,"operations":{"type":"array","description":"Several changes of one target at once, instead of action.","maxItems":50,"items":{"type":"object","properties":{` +
		fields + `},"required":["action"],"additionalProperties":false}}},"additionalProperties":false}`)
}

// reply is what the model gets when a change was made. The entries are not repeated.
type reply struct {
	Success bool   `json:"success"`
	Done    bool   `json:"done"`
	Target  Target `json:"target"`
	Usage   string `json:"usage"`
	Entries int    `json:"entry_count"`
	Message string `json:"message"`
	Note    string `json:"note"`
}

// refused is what the model gets when a change was refused.
type refused struct {
	Success bool     `json:"success"`
	Error   string   `json:"error"`
	Matches []string `json:"matches,omitempty"`
	Entries []string `json:"current_entries,omitempty"`
	Usage   string   `json:"usage,omitempty"`
}

func run(ctx context.Context, s *Store, call tools.Call) (tools.Result, error) {
	var args struct {
		Operation
		Target     Target      `json:"target"`
		Operations []Operation `json:"operations"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tools.Result{}, fmt.Errorf("read arguments: %w", err)
	}
	if args.Target == "" {
		args.Target = append(s.Targets(), Memory)[0]
	}
	ops := args.Operations
	if len(ops) == 0 && args.Action != "" {
		ops = []Operation{args.Operation}
	} else if len(ops) > 0 && args.Action != "" {
		return tools.Failure("give either action or operations, not both"), nil
	}
	state, err := s.Apply(ctx, args.Target, ops)
	var r *Refusal
	switch {
	case errors.As(err, &r):
		out := tools.JSON(refused{Error: r.Reason, Matches: r.Matches, Entries: r.Entries, Usage: r.Usage})
		out.IsError = true
		return out, nil
	case err != nil:
		return tools.Result{}, err
	}
	message := "nothing changed: it is there already"
	if state.Changed {
		message = fmt.Sprintf("%d operations applied", len(ops))
		if len(ops) == 1 {
			message = map[string]string{Add: "entry added", Replace: "entry replaced", Remove: "entry removed"}[ops[0].Action]
		}
	}
	out := tools.JSON(reply{Success: true, Done: true, Target: args.Target, Usage: state.Usage, Entries: state.Entries, Message: message,
		Note: "It is kept. Your prompt shows it from the next session on; there is no need to write it again."})
	out.Summary = message
	return out, nil
}
