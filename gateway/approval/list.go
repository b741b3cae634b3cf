package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"herald/gateway/turn/ask"
	"herald/sessions"
	"herald/tools/terminal"
)

// What is looked at for suggestions, and how often a kind of danger must have been run before it is suggested.
const (
	suggestSessions = 200
	suggestAfter    = 3
)

// Reply is what the command line shows of approvals.
type Reply struct {
	Waiting     []Waiting    `json:"waiting"`
	Suggestions []Suggestion `json:"suggestions"`
}

// Waiting is a question that waits for a person.
type Waiting struct {
	Preview  string    `json:"preview"`
	Kinds    []string  `json:"kinds"`
	Platform string    `json:"platform"`
	Chat     string    `json:"chat"`
	Asked    time.Time `json:"asked"`
	Until    time.Time `json:"until"`
}

// Suggestion is a kind of danger that was allowed again and again.
type Suggestion struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	Times  int    `json:"times"`
}

// List reads what waits, and what of the newest sessions' commands could be allowed for good: kinds of danger
// that ran at least three times, the most frequent first. Destructive kinds are never among them, and a command with
// one counts for nothing.
func List(ctx context.Context, store sessions.Store) (Reply, error) {
	r := Reply{Waiting: []Waiting{}, Suggestions: []Suggestion{}}
	times := map[string]int{}
	err := store.View(ctx, func(v sessions.View) error {
		waiting, err := ask.PendingApprovals(v)
		if err != nil {
			return err
		}
		for _, a := range waiting {
			r.Waiting = append(r.Waiting, Waiting{Preview: a.Preview, Kinds: a.Kinds,
				Platform: string(a.Address.Platform), Chat: string(a.Address.Chat), Asked: a.Asked, Until: a.Until})
		}
		list, err := v.Sessions(sessions.SessionQuery{Limit: suggestSessions})
		if err != nil {
			return err
		}
		for _, s := range list {
			rows, err := v.Transcript(s.ID, true, 0, 0)
			if err != nil {
				return err
			}
			countKinds(rows, times)
		}
		return nil
	})
	for _, k := range terminal.Kinds() {
		if n := times[k.Key]; n >= suggestAfter && !k.Destructive {
			r.Suggestions = append(r.Suggestions, Suggestion{Kind: k.Key, Reason: k.Reason, Times: n})
		}
	}
	slices.SortStableFunc(r.Suggestions, func(a, b Suggestion) int { return cmp.Compare(b.Times, a.Times) })
	return r, err
}

// countKinds counts the kinds of danger of the commands that were run.
func countKinds(rows []sessions.Message, times map[string]int) {
	ran := map[string]bool{}
	for _, row := range rows {
		if row.Role == sessions.Tool && row.ToolName == "terminal" && strings.Contains(row.Content, `"exit_code":`) {
			ran[row.ToolCallID] = true
		}
	}
	for _, row := range rows {
		for _, c := range row.ToolCalls {
			var args struct {
				Command string `json:"command"`
			}
			if c.Name != "terminal" || !ran[c.ID] || json.Unmarshal([]byte(c.Arguments), &args) != nil {
				continue
			}
			dangers := terminal.Dangers(args.Command, terminal.Place{})
			if slices.ContainsFunc(dangers, func(d terminal.Danger) bool { k, _ := terminal.KindOf(d.Key); return k.Destructive }) {
				continue
			}
			for _, d := range dangers {
				times[d.Key]++
			}
		}
	}
}
