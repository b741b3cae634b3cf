// Package clarify is the tool with which the agent asks the person it works for. It knows nothing of how
// a question is shown or where its answer is kept: an Asker does both, durably, so that a question outlives a restart.
package clarify

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"herald/tools"
)

// Name is the tool's name.
const Name = "clarify"

const (
	// MaxChoices is how many answers may be offered; the person can always write another one.
	MaxChoices = 4
	// MaxQuestion and MaxChoice bound the texts, in characters.
	MaxQuestion = 2000
	MaxChoice   = 200
)

// Asker asks a person and waits for the answer.
type Asker interface {
	// Ask shows the question with the choices (none: a free answer) where call came from and returns what
	// the person answered. It waits until ctx ends and may bound the wait itself. Asked again with the same
	// call after a restart, it takes up the question that is already shown, or its answer.
	Ask(ctx context.Context, call tools.Call, question string, choices []string) (answer string, err error)
}

// parameters is the schema of the tool.
const parameters = `{"type":"object","properties":{` +
	`"question":{"type":"string","description":"The question, complete in itself: the person may read nothing else.","minLength":1,"maxLength":2000},` +
	`"choices":{"type":"array","description":"Up to 4 answers to choose from, best first. Leave out for an open question. The person can always answer in their own words, so add no 'other'.",` +
	`"items":{"type":"string","maxLength":200},"maxItems":4}},"required":["question"],"additionalProperties":false}`

const description = "Ask the person a question and wait for the answer. Use it when a decision is theirs and a wrong guess would cost them: " +
	"an ambiguous goal, a choice with lasting effect, a missing fact that only they know. Decide small matters yourself. Ask one thing at a time."

// New returns the tool. The call ends when the person answers; the bus sets it no time limit.
func New(asker Asker) tools.Tool {
	return tools.Tool{
		Spec: tools.Spec{
			Name: Name, Toolset: "clarify", Description: description, Parameters: json.RawMessage(parameters),
			Resumable: true, Parallel: tools.Barrier, Core: true, Attended: true, Timeout: -1, Hidden: true, Emoji: "❓", Preview: "question",
		},
		Run: func(ctx context.Context, call tools.Call) (tools.Result, error) { return ask(ctx, asker, call) },
	}
}

// reply is what the model gets.
type reply struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices_offered,omitempty"`
	Answer   string   `json:"user_response"`
}

func ask(ctx context.Context, asker Asker, call tools.Call) (tools.Result, error) {
	var args struct {
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tools.Result{}, fmt.Errorf("read arguments: %w", err)
	}
	question := strings.TrimSpace(args.Question)
	if question == "" {
		return tools.Failure("question is blank; write what the person is to answer"), nil
	}
	if n := utf8.RuneCountInString(question); n > MaxQuestion {
		return tools.Failure("question has %d characters; allowed are at most %d", n, MaxQuestion), nil
	}
	choices, fail := clean(args.Choices)
	if fail != "" {
		return tools.Failure("%s", fail), nil
	}
	if call.Caller.Unattended {
		return tools.Failure("nobody can answer now: this run has no person waiting. Decide with what you know, and say in the result what you assumed."), nil
	}
	answer, err := asker.Ask(ctx, call, question, choices)
	if err != nil {
		return tools.Result{}, fmt.Errorf("ask the person: %w", err)
	}
	r := tools.JSON(reply{Question: question, Choices: choices, Answer: strings.TrimSpace(answer)})
	r.Summary = "answered"
	return r, nil
}

// clean trims choices and drops blank and repeated ones. fail says what can't be used.
func clean(choices []string) (out []string, fail string) {
	seen := map[string]bool{}
	for _, c := range choices {
		c = strings.TrimSpace(c)
		if c == "" || seen[c] {
			continue
		}
		if n := utf8.RuneCountInString(c); n > MaxChoice {
			return nil, fmt.Sprintf("choice %.40q… has %d characters; allowed are at most %d", c, n, MaxChoice)
		}
		seen[c] = true
		out = append(out, c)
	}
	if len(out) > MaxChoices {
		return nil, fmt.Sprintf("choices has %d answers; allowed are at most %d", len(out), MaxChoices)
	}
	return out, ""
}
