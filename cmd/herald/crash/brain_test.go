//go:build failpoint

package crash

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"herald/gateway/model"
	"herald/gateway/model/modeltest"
)

// Every message of a person carries a token such as q0042 and every answer of the model carries the token of
// each question it answers as A0042, so that questions and answers can be matched wherever they turn up.
var (
	question = regexp.MustCompile(`\bq(\d{4})\b`)
	marker   = regexp.MustCompile(`\bA(\d{4})\b`)
)

func tokens(re *regexp.Regexp, text string) []string {
	var out []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// kind is what a question makes the model do.
type kind string

const (
	plain    kind = "plain"    // answers at once
	tool     kind = "tool"     // says something, runs a command with a side effect, answers
	batch    kind = "batch"    // several calls in one answer
	twoStep  kind = "two-step" // two commands one after the other
	long     kind = "long"     // streams a long answer
	slow     kind = "slow"     // thinks for a while
	slowTool kind = "slowtool" // a command that takes a while
	todo     kind = "todo"     // writes the list of tasks
	ask      kind = "ask"      // asks the person back
	big      kind = "big"      // makes the conversation look long, so that it is compacted
	command  kind = "command"  // never reaches the model
)

// modelCall is one request and the time it took.
type modelCall struct {
	from, to time.Time // to is zero while it runs
}

// brain is the scripted model. It is deterministic in what it answers to a conversation, so that a call
// repeated after a crash says the same.
type brain struct {
	script  *modeltest.Script
	server  *httptest.Server
	effects string // file of side effects
	// trouble, when set, may replace a reply: errors, garbage, cut streams.
	trouble func() *modeltest.Reply
	// known returns what a token was asked as.
	known func(token string) (*asked, bool)
	log   func(format string, args ...any)

	mu       sync.Mutex
	calls    map[place][]*modelCall
	problems []string
}

func newBrain(effects string) *brain {
	b := &brain{effects: effects, calls: map[place][]*modelCall{}}
	b.script = modeltest.Answering(b.answer).Quiet()
	b.server = httptest.NewServer(b)
	return b
}

func (b *brain) close() {
	b.script.Release()
	b.server.CloseClientConnections()
	b.server.Close()
}

func (b *brain) problem(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

// Problems returns what was wrong with the requests.
func (b *brain) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// running counts the calls that run now.
func (b *brain) running() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, calls := range b.calls {
		for _, c := range calls {
			if c.to.IsZero() {
				n++
			}
		}
	}
	return n
}

// overlapTolerance is how far two calls of one conversation may seem to overlap on the model's side. A server
// learns late that its client has hung up on a call (after a redirect, a stop or a kill), so this side can't
// see a short overlap for certain. That a session runs one turn at a time is asserted without a tolerance,
// inside the process, by the tests of gateway/router; this check catches turns that run side by side for long.
const overlapTolerance = 2 * time.Second

// overlaps returns where two calls of one conversation ran at the same time (P3).
func (b *brain) overlaps() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for at, calls := range b.calls {
		for i, c := range calls {
			for _, later := range calls[i+1:] {
				end := c.to
				if end.IsZero() {
					end = time.Now()
				}
				if later.from.Before(end.Add(-overlapTolerance)) {
					out = append(out, fmt.Sprintf("in %v a call that began at %s ran until %s, and the next one began at %s", at,
						c.from.Format(clock), end.Format(clock), later.from.Format(clock)))
				}
			}
		}
	}
	return out
}

const clock = "15:04:05.000"

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == http.StatusBadRequest {
		w.body.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

func (w *statusWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// ServeHTTP notes when a call begins and ends.
func (b *brain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	at := place{}
	if found := tokens(question, string(body)); len(found) > 0 {
		if a, ok := b.known(found[len(found)-1]); ok {
			at = a.place
		}
	}
	call := &modelCall{from: time.Now()}
	b.mu.Lock()
	b.calls[at] = append(b.calls[at], call)
	b.mu.Unlock()
	sw := &statusWriter{ResponseWriter: w}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		call.to = time.Now()
		if sw.status == http.StatusBadRequest {
			b.problems = append(b.problems, "the conversation was not valid: "+sw.body.String())
		}
	}()
	b.script.ServeHTTP(sw, r)
}

// answer is the model.
func (b *brain) answer(q modeltest.Request) modeltest.Reply {
	if strings.HasPrefix(q.System+q.LastUser(), "Summarise the conversation") {
		return modeltest.Text("They talked, and all was answered.")
	}
	pending := b.pending(q)
	if len(pending) == 0 {
		return modeltest.Text("There is nothing to answer.")
	}
	if b.trouble != nil {
		if reply := b.trouble(); reply != nil {
			return *reply
		}
	}
	newest := pending[len(pending)-1]
	a, ok := b.known(newest)
	if !ok {
		b.problem("the model saw the unknown token %s", newest)
		return modeltest.Text("What is that?")
	}
	reply := b.reply(q, a, "Here is your answer: A"+strings.Join(pending, " A")+".")
	b.log("model: %s %s of %v: %d calls, %.40q", a.kind, newest, pending, len(reply.ToolCalls), reply.Text)
	return reply
}

// pending returns the questions of a conversation that no answer has named yet, and notes those that stand
// in it twice (P2).
func (b *brain) pending(q modeltest.Request) []string {
	var open []string
	seen, answered := map[string]int{}, map[string]bool{}
	for _, m := range q.Messages {
		switch m.Role {
		case "user", "tool":
			for _, t := range tokens(question, m.Text) {
				seen[t]++
				open = append(open, t)
			}
		case "assistant":
			for _, t := range tokens(marker, m.Text) {
				answered[t] = true
			}
		}
	}
	for t, n := range seen {
		if n > 1 {
			b.problem("P2: question %s stands %d times in one conversation", t, n)
		}
	}
	return slices.DeleteFunc(open, func(t string) bool { return answered[t] })
}

// done counts the tool results behind the message that holds a token.
func done(q modeltest.Request, token string) int {
	n := 0
	for i := len(q.Messages) - 1; i >= 0; i-- {
		m := q.Messages[i]
		if slices.Contains(tokens(question, m.Text), token) {
			break
		}
		if m.Role == "tool" {
			n++
		}
	}
	return n
}

// effect is a command that leaves one line for each time it runs.
func (b *brain) effect(name, before string) string {
	return fmt.Sprintf(`{"command":%q}`, before+"echo "+name+" >> "+b.effects)
}

func (b *brain) reply(q modeltest.Request, a *asked, final string) modeltest.Reply {
	steps := done(q, a.token)
	id := func(n int) string { return fmt.Sprintf("call-%s-%d", a.token, n) }
	switch {
	case a.kind == tool && steps == 0:
		return modeltest.Reply{Text: "One moment, I look.", ToolCalls: []model.ToolCall{{ID: id(1), Name: "terminal", Arguments: b.effect("x"+a.token, "")}}}
	case a.kind == twoStep && steps < 2:
		return modeltest.Calls(id(steps+1), "terminal", b.effect(fmt.Sprintf("x%s-%d", a.token, steps+1), ""))
	case a.kind == slowTool && steps == 0:
		return modeltest.Calls(id(1), "terminal", b.effect("x"+a.token, "sleep 0.7; "))
	case a.kind == batch && steps == 0:
		return modeltest.Reply{ToolCalls: []model.ToolCall{
			{ID: id(1), Name: "terminal", Arguments: b.effect("x"+a.token+"-1", "")},
			{ID: id(2), Name: "todo", Arguments: `{}`},
			{ID: id(3), Name: "terminal", Arguments: b.effect("x"+a.token+"-3", "")},
			{ID: id(4), Name: "no_such_tool", Arguments: `{`},
		}}
	case a.kind == todo && steps == 0:
		return modeltest.Calls(id(1), "todo", `{"todos":[{"id":"1","content":"buy milk","status":"in_progress"}]}`)
	case a.kind == ask && steps == 0:
		return modeltest.Calls(id(1), "clarify", fmt.Sprintf(`{"question":"Which colour for %s?","choices":["red","blue"]}`, a.token))
	case a.kind == long:
		return modeltest.Reply{Text: strings.Repeat("and so on ", 40) + "\n\n" + final, Pace: 8 * time.Millisecond}
	case a.kind == slow:
		return modeltest.Reply{Text: final, Delay: 500 * time.Millisecond}
	case a.kind == big:
		return modeltest.Reply{Text: final, Usage: &model.Usage{Input: 50_000_000, Output: 10}}
	}
	return modeltest.Text(final)
}
