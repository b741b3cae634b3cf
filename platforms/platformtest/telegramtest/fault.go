package telegramtest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"herald/platforms/platformtest/faults"
)

// Trouble is a way in which a call goes wrong.
type Trouble string

// The troubles.
const (
	// AnswerStatus answers Status without acting. 429 opens a window of RetryAfter for the chat.
	AnswerStatus Trouble = "status"
	// ResetBefore cuts the connection without acting.
	ResetBefore Trouble = "reset before"
	// ResetAfter acts and cuts the connection instead of answering.
	ResetAfter Trouble = "reset after"
	// HangBefore takes the request and neither acts nor answers.
	HangBefore Trouble = "hang before"
	// HangAfter acts and never answers.
	HangAfter Trouble = "hang after"
	// SlowBody answers half, waits Delay, then the rest.
	SlowBody Trouble = "slow body"
	// HalfBody answers half and cuts the connection.
	HalfBody Trouble = "half body"
	// Garbage answers 200 with something that is no JSON.
	Garbage Trouble = "garbage"
	// Twice puts every update of a getUpdates answer in twice.
	Twice Trouble = "twice"
	// Backwards turns the order of a getUpdates answer round.
	Backwards Trouble = "backwards"
)

// Fault scripts a trouble.
type Fault struct {
	Trouble Trouble
	// Method is the method that goes wrong. Empty is every one but getUpdates and getMe.
	Method string
	// Chat is the chat it goes wrong for. 0 is every one.
	Chat int64
	// Times is how often. 0 is once, negative is until Heal.
	Times int
	// Status is what AnswerStatus answers. RetryAfter is in whole seconds.
	Status     int
	RetryAfter time.Duration
	// Description is the error text of AnswerStatus. Empty is the service's usual one.
	Description string
	// Header asks for a proxy's page with a Retry-After header instead of a Bot API answer.
	Header bool
	// Delay is how long SlowBody takes.
	Delay time.Duration
}

// Break adds a fault. Faults are used up in order.
func (t *Server) Break(f Fault) {
	times := f.Times
	if times == 0 {
		times = 1
	}
	switch f.Trouble {
	case Twice:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.twice = times
		return
	case Backwards:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.backwards = times
		return
	}
	made := faults.Fault{Kind: faults.Kind(f.Trouble), Times: times, Delay: f.Delay,
		On: func(r *http.Request) bool { return t.strikes(f, requestOf(r)) }}
	if f.Trouble == AnswerStatus {
		made.Status, made.Header, made.Body = f.answer()
		made.Then = func(r *http.Request) {
			if chat := requestOf(r).int("chat_id"); f.Status == http.StatusTooManyRequests && chat != 0 {
				t.windows.Open(chat, f.RetryAfter)
			}
		}
	}
	t.script.Break(made)
}

// strikes reports whether a fault is meant for a request. One inside a window is a violation, and the fault waits for the
// next request.
func (t *Server) strikes(f Fault, r *request) bool {
	method := strings.ToLower(f.Method)
	if method == "" && (r.method == "getupdates" || r.method == "getme") || method != "" && method != r.method {
		return false
	}
	chat := r.int("chat_id")
	return (f.Chat == 0 || f.Chat == chat) && t.windows.Left(chat) <= 0
}

// answer is what AnswerStatus answers.
func (f Fault) answer() (int, http.Header, []byte) {
	seconds := int((f.RetryAfter + time.Second - 1) / time.Second)
	if f.Header {
		h := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
		if seconds > 0 {
			h.Set("Retry-After", strconv.Itoa(seconds))
		}
		return f.Status, h, []byte("<html>the proxy is tired</html>\n")
	}
	e := &apiError{code: f.Status, description: f.Description, retryAfter: seconds}
	if f.Status == http.StatusTooManyRequests && e.description == "" {
		e.description = tooMany(seconds).Error()
	}
	if e.description == "" {
		e.description = http.StatusText(f.Status)
	}
	status, body := answerOf(nil, e)
	return status, http.Header{"Content-Type": {"application/json"}}, body
}

// Heal takes all faults and windows off and ends requests that hang.
func (t *Server) Heal() {
	t.script.Heal()
	t.windows.Clear()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.twice, t.backwards = 0, 0
}

// spend uses one of a number of times up; a negative number lasts until Heal. The caller holds mu.
func spend(times *int) bool {
	if *times == 0 {
		return false
	}
	if *times > 0 {
		*times--
	}
	return true
}
