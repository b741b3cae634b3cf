package demo

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"herald/gateway/model"
)

// env is one request, read once: what is offered, what was said, what was done since.
type env struct {
	rules  func() []rule
	now    time.Time
	system string
	tools  map[string]model.ToolDef
	order  []string // names in the order they are offered
	closed bool     // no more tool calls are allowed
	// before are the messages up to the request, request is its text, done the calls made for it.
	before  []model.Message
	request string
	images  int
	done    []outcome
	calls   int // tool calls in the whole conversation
	// file, job and process are what "it" may mean.
	file, job, process string
	// brief is the newest output of a job that is part of the conversation.
	brief string
}

// outcome is a call with its result.
type outcome struct {
	call    model.ToolCall
	text    string
	isError bool
	// note is what the user said while the call ran.
	note string
}

func newEnv(now time.Time, req model.Request) *env {
	e := &env{now: now, system: req.System, tools: make(map[string]model.ToolDef, len(req.Tools)), closed: forbidsTools(req)}
	for _, t := range req.Tools {
		e.tools[t.Name] = t
		e.order = append(e.order, t.Name)
	}
	at := len(req.Messages) - 1
	for at >= 0 && req.Messages[at].Role != "user" {
		at--
	}
	if at >= 0 {
		e.before = req.Messages[:at]
		e.request = req.Messages[at].Text
		e.images = len(req.Messages[at].Images)
		if _, own, ok := strings.Cut(e.request, briefEnd); ok {
			e.request = strings.TrimSpace(own)
		}
	}
	for i, m := range req.Messages {
		if brief := briefIn(m); brief != "" {
			e.brief = brief
		}
		if m.Role == "user" && strings.Contains(m.Text, sentMark) {
			if _, files := takeAttached(m.Text); len(files) > 0 {
				e.file = files[len(files)-1].path
			}
		}
		e.calls += len(m.ToolCalls)
		for _, c := range m.ToolCalls {
			o := outcome{call: unwrapped(c), text: model.NoResult, isError: true}
			for _, r := range req.Messages[i+1:] {
				if r.Role == "tool" && r.ToolCallID == c.ID {
					o.text, o.isError = r.Text, r.IsError
					break
				}
			}
			o.text, o.note = splitNote(o.text)
			if i > at && at >= 0 {
				e.done = append(e.done, o)
			} else {
				e.noticed(o)
			}
		}
	}
	return e
}

// The lines above and below the output of a job.
const (
	briefMark = "[Cron delivery: "
	briefEnd  = "[End of the delivery]"
)

// briefIn returns the last output of a job that a message holds.
func briefIn(m model.Message) string {
	i := strings.LastIndex(m.Text, briefMark)
	if m.Role != "user" || i < 0 {
		return ""
	}
	text, _, _ := strings.Cut(m.Text[i:], briefEnd)
	_, text, _ = strings.Cut(text, "\n")
	return strings.TrimSpace(text)
}

// unwrapped returns the call inside a tool_call.
func unwrapped(c model.ToolCall) model.ToolCall {
	if c.Name != "tool_call" {
		return c
	}
	var inner struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal([]byte(c.Arguments), &inner) != nil || inner.Name == "" {
		return c
	}
	return model.ToolCall{ID: c.ID, Name: inner.Name, Arguments: string(inner.Arguments)}
}

// noticed keeps what a call of an earlier request was about, for "it" in this one.
func (e *env) noticed(o outcome) {
	var args struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(o.call.Arguments), &args) == nil && args.Path != "" && args.Path != "." {
		e.file = args.Path
	}
	var result struct {
		JobID     flexible `json:"job_id"`
		SessionID flexible `json:"session_id"`
	}
	if json.Unmarshal([]byte(o.text), &result) != nil {
		return
	}
	switch {
	case o.call.Name == "cronjob" && result.JobID != "":
		e.job = string(result.JobID)
	case o.call.Name == "terminal" && result.SessionID != "":
		e.process = string(result.SessionID)
	}
}

// flexible is a string that may be written as a number.
type flexible string

// UnmarshalJSON takes a string or any other scalar as it is written.
func (f *flexible) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(f))
	}
	if b[0] != '{' && b[0] != '[' && b[0] != 'n' {
		*f = flexible(b)
	}
	return nil
}

const noteMark = "[Note from the user while you were working:"

// splitNote takes what the user said in the middle of the work off a result.
func splitNote(s string) (text, note string) {
	i := strings.LastIndex(s, noteMark)
	if i < 0 || !strings.HasSuffix(strings.TrimSpace(s), "]") {
		return s, ""
	}
	note = strings.TrimSpace(s[i+len(noteMark):])
	return strings.TrimSpace(s[:i]), strings.TrimSpace(strings.TrimSuffix(note, "]"))
}

// unknown reports whether nobody knows what became of the call, and skipped whether it never ran.
func (o outcome) unknown() bool {
	low := strings.ToLower(o.text)
	return strings.HasPrefix(low, "[outcome unknown") || strings.HasPrefix(low, "outcome unknown") || o.text == model.NoResult
}

func (o outcome) skipped() bool { return strings.HasPrefix(strings.ToLower(o.text), "[not run") }

// failure returns why the call failed, empty when it did not.
func (o outcome) failure() string {
	t := strings.TrimSpace(o.text)
	if rest, ok := strings.CutPrefix(t, "[TOOL_ERROR]"); ok {
		return strings.TrimSpace(rest)
	}
	var r struct {
		Error   json.RawMessage `json:"error"`
		Success *bool           `json:"success"`
		Message string          `json:"message"`
	}
	if strings.HasPrefix(t, "{") && json.Unmarshal([]byte(t), &r) == nil {
		if s := scalar(r.Error); s != "" {
			return s
		}
		if r.Success != nil && !*r.Success {
			return r.Message
		}
	}
	if o.isError {
		if t == "" {
			return "it gave no reason"
		}
		return t
	}
	return ""
}

// scalar returns a JSON value as text, empty for null, false and "".
func scalar(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0, string(raw) == "null", string(raw) == "false":
		return ""
	case raw[0] == '"' && json.Unmarshal(raw, &s) == nil:
		return s
	}
	return string(raw)
}

// first reports whether nothing was answered yet in this conversation.
func (e *env) first() bool {
	for _, m := range e.before {
		if m.Role == "assistant" && len(m.ToolCalls) == 0 && m.Text != "" {
			return false
		}
	}
	return true
}

func (e *env) offered(name string) bool {
	_, ok := e.tools[name]
	return ok && !e.closed
}

// answer returns the calls to make next, or else the final text, and whether to speak it slowly.
func (e *env) answer() (calls []model.ToolCall, text string, slow bool) {
	steps := e.plan(e.request)
	queue := e.done
	var parts []string
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		var mine []outcome
		problem := ""
		for s.calls != nil {
			planned := s.calls(mine)
			if len(planned) == 0 {
				break
			}
			if problem = e.missing(planned); problem != "" {
				break
			}
			if len(queue) < len(planned) {
				return e.toolCalls(planned), "", false
			}
			got := queue[:len(planned)]
			queue = queue[len(planned):]
			mine = append(mine, got...)
			for _, o := range got {
				if o.note != "" {
					steps = e.correct(steps[:i+1], steps[i+1:], o.note)
					parts = append(parts, "You said meanwhile: “"+clip(o.note, 200)+"”.")
				}
			}
			if problem = trouble(got); problem != "" {
				break
			}
		}
		switch {
		case problem != "":
			parts = append(parts, problem)
		case s.report != nil:
			parts = append(parts, s.report(mine))
		default:
			for _, o := range mine {
				parts = append(parts, describe(o))
			}
		}
		slow = slow || s.slow
		if rest := len(steps) - i - 1; problem != "" && rest > 0 {
			parts = append(parts, "I stopped there; "+plural(rest, "step", "steps")+" left undone.")
			break
		}
	}
	text = strings.Join(parts, "\n\n")
	if e.first() {
		text = Intro + "\n\n" + text
	}
	return nil, text, slow
}

// correct works a note of the user into what remains to be done: a stop ends it, "instead" replaces it, anything
// else comes behind it.
func (e *env) correct(done, rest []step, note string) []step {
	low := strings.ToLower(note)
	steps := append([]step(nil), done...)
	for _, stop := range []string{"stop", "cancel", "never mind", "nevermind", "abort", "enough"} {
		if low == stop || strings.HasPrefix(low, stop+" ") || strings.HasPrefix(low, stop+",") || strings.HasPrefix(low, stop+".") {
			return steps
		}
	}
	replaced := false
	for _, start := range []string{"no, ", "no ", "actually, ", "actually ", "instead, ", "instead "} {
		if strings.HasPrefix(low, start) {
			note, replaced = note[len(start):], true
			break
		}
	}
	if trimmed, ok := strings.CutSuffix(strings.TrimRight(note, ".! "), " instead"); ok {
		note, replaced = trimmed, true
	}
	if !replaced {
		steps = append(steps, rest...)
	}
	return append(steps, e.plan(note)...)
}

// missing says plainly what is not there, empty when all is.
func (e *env) missing(planned []planned) string {
	for _, p := range planned {
		if e.offered(p.tool) || e.offered("tool_call") {
			continue
		}
		if e.closed {
			return "I may call no more tools in this turn, so `" + p.tool + "` was not called."
		}
		return "That needs the tool `" + p.tool + "`, and it is not offered in this conversation. I did nothing."
	}
	return ""
}

// toolCalls makes calls. A tool that is not offered goes through tool_call.
func (e *env) toolCalls(planned []planned) []model.ToolCall {
	out := make([]model.ToolCall, 0, len(planned))
	for i, p := range planned {
		name, args := p.tool, e.fit(p)
		if !e.offered(name) {
			name, args = "tool_call", fields{{"name", p.tool}, {"arguments", args}}
		}
		out = append(out, model.ToolCall{ID: "call_demo_" + strconv.Itoa(e.calls+i+1), Name: name, Arguments: args.String()})
	}
	return out
}

// fit leaves out what an offered tool's schema does not know, so that a plain request also fits a tool
// with fewer options.
func (e *env) fit(p planned) fields {
	def, ok := e.tools[p.tool]
	if !ok || p.exact {
		return p.args
	}
	properties := schemaOf(def.Parameters).Properties
	if len(properties) == 0 {
		return p.args
	}
	var out fields
	for _, f := range p.args {
		if _, known := properties[f.key]; known {
			out = append(out, f)
		}
	}
	return out
}

// trouble explains results that end a sequence, empty when there are none.
func trouble(results []outcome) string {
	var parts []string
	for _, o := range results {
		switch {
		case o.unknown():
			parts = append(parts, "The outcome of `"+o.call.Name+"` is unknown: Herald was interrupted while it ran. It may or may not have "+
				"taken effect, and I did not repeat it. Please check, and ask again if it is needed.")
		case o.skipped():
			parts = append(parts, "`"+o.call.Name+"` was not run: the turn was interrupted before it began.")
		case o.failure() != "":
			parts = append(parts, "`"+o.call.Name+"` failed: "+clip(o.failure(), 1500))
		}
	}
	return strings.Join(parts, "\n\n")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
