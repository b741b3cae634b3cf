package terminal

import (
	"encoding/json"

	"herald/tools"
)

// Check is what is to be known about a call before it may run.
type Check struct {
	// Line is the shell text.
	Line string
	// Refusal is why it is never run, "" for none.
	Refusal string
	// Dangers are why it wants a person's word.
	Dangers []Danger
	// Candidates are what rules about commands are compared with.
	Candidates []string
	// Typed says that the text is written to the input of a running process, which need not be a shell.
	Typed bool
	// Contained says that it runs in a container, which it can't harm more than it may.
	Contained bool
}

// Check reads what a call of the terminal would run, and what is written to a process that it has started; ok is false
// for calls that run no command. typed is what was written before without an end of its line: it is judged together with
// what is written now. Where commands can't be reached, the text is judged without its surroundings.
func (d Deps) Check(call tools.Call, typed string) (c Check, ok bool) {
	var a struct {
		Command string `json:"command"`
		Workdir string `json:"workdir"`
		Action  string `json:"action"`
		Data    string `json:"data"`
	}
	if json.Unmarshal(call.Args, &a) != nil {
		return Check{}, false
	}
	switch {
	case call.Name == "terminal":
		c.Line = a.Command
	case call.Name == "process" && (a.Action == "write" || a.Action == "submit"):
		c.Line, c.Typed = typed+a.Data, true
		if a.Action == "submit" {
			c.Line += "\n"
		}
	default:
		return Check{}, false
	}
	place := Place{Protected: d.Protected, DaemonPID: d.DaemonPID}
	if env, err := d.Environment(call.Caller); err == nil {
		place, _ = d.place(env, call.Caller, a.Workdir)
		c.Contained = env.Backend() == "docker"
	}
	why, unreadable := refusal(c.Line, place)
	if c.Refusal = why; why == "" && !c.Typed {
		c.Refusal = unreadable
	}
	c.Dangers, c.Candidates = Dangers(c.Line, place), Candidates(c.Line)
	return c, true
}
