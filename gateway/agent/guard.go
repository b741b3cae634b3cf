package agent

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"herald/sessions"
	"herald/tools"
)

// Guardrails notice that a model goes round in circles. A count of 0 switches its rule off.
type Guardrails struct {
	// Warn tells the model, Stop ends the turn with a closing answer.
	Warn, Stop Repeats
}

// Repeats counts repetitions within one turn.
type Repeats struct {
	// SameCall: the same call with the same arguments failed. SameTool: the same tool failed in a row, whatever its
	// arguments. NoProgress: the same reading call gave the same result, and nothing was changed in between.
	SameCall, SameTool, NoProgress int
}

// DefaultGuardrails returns the documented defaults.
func DefaultGuardrails() Guardrails {
	return Guardrails{Warn: Repeats{SameCall: 2, SameTool: 3, NoProgress: 2}, Stop: Repeats{SameCall: 5, SameTool: 8, NoProgress: 5}}
}

// guard counts the calls of one run.
type guard struct {
	rules    Guardrails
	readOnly func(tool string) bool
	calls    map[string]int // failures in a row, by call
	tools    map[string]int // failures in a row, by tool
	same     map[string]sight
}

// sight is what a reading call has shown so far.
type sight struct {
	sum   [sha256.Size]byte
	times int
}

func newGuard(rules Guardrails, readOnly func(string) bool) *guard {
	if readOnly == nil {
		readOnly = func(string) bool { return false }
	}
	return &guard{rules: rules, readOnly: readOnly, calls: map[string]int{}, tools: map[string]int{}, same: map[string]sight{}}
}

// note takes the results of an answer's calls in. warning is what to tell the model, stop the tool whose repetitions
// end the turn; both are empty while all is well.
func (g *guard) note(calls []sessions.ToolCall, results []tools.Result) (warning, stop string) {
	var warnings []string
	for i, c := range calls {
		if i >= len(results) {
			break
		}
		text, end := g.one(c, results[i])
		if text != "" {
			warnings = append(warnings, text)
		}
		if end {
			stop = c.Name
		}
	}
	return strings.Join(warnings, "\n"), stop
}

func (g *guard) one(c sessions.ToolCall, result tools.Result) (warning string, stop bool) {
	key := c.Name + "\x00" + c.Arguments
	if result.IsError {
		g.calls[key]++
		g.tools[c.Name]++
		n, all := g.calls[key], g.tools[c.Name]
		switch {
		case over(all, g.rules.Warn.SameTool):
			warning = fmt.Sprintf("%s has failed %d times in a row. Find out why before you call it again, or do without it.", c.Name, all)
		case over(n, g.rules.Warn.SameCall):
			warning = fmt.Sprintf("This very call of %s has failed %d times. Don't repeat it: change the arguments or the way.", c.Name, n)
		}
		return warning, over(n, g.rules.Stop.SameCall) || over(all, g.rules.Stop.SameTool)
	}
	delete(g.calls, key)
	delete(g.tools, c.Name)
	if !g.readOnly(c.Name) {
		clear(g.same) // what is read next may be new
		return "", false
	}
	sum := sha256.Sum256([]byte(result.Content))
	s := g.same[key]
	if s.sum != sum {
		s = sight{sum: sum}
	}
	s.times++
	g.same[key] = s
	if over(s.times, g.rules.Warn.NoProgress) {
		warning = fmt.Sprintf("This call of %s has given the same result %d times. You have what it can tell: go on with it.", c.Name, s.times)
	}
	return warning, over(s.times, g.rules.Stop.NoProgress)
}

func over(n, limit int) bool { return limit > 0 && n >= limit }
