package slacktest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"herald/platforms/platformtest/faults"
)

// Trouble is a way in which something goes wrong.
type Trouble string

// The troubles. All but the last two go wrong on HTTP calls, as package faults words them.
const (
	// AnswerStatus answers Status without acting, as a proxy does. 429 answers as Slack does, with
	// Retry-After, and opens a window in which calls of that method, workspace and channel are violations.
	AnswerStatus Trouble = "status"
	// AnswerError answers {"ok":false,"error":Code} without acting.
	AnswerError Trouble = "error"
	ResetBefore Trouble = "reset before"
	ResetAfter  Trouble = "reset after"
	HangBefore  Trouble = "hang before"
	HangAfter   Trouble = "hang after"
	SlowBody    Trouble = "slow body"
	HalfBody    Trouble = "half body"
	Garbage     Trouble = "garbage"
	// Late waits Delay before it acts.
	Late Trouble = "late"
	// Twice delivers the next event twice: two envelopes with the same event.
	Twice Trouble = "twice"
	// Backwards holds the next event back until another one has gone before it.
	Backwards Trouble = "backwards"
)

// Pseudo-methods for Fault.Method.
const (
	MethodUpload   = "upload"   // the POST of a file's bytes
	MethodDownload = "download" // url_private
	MethodRespond  = "respond"  // response URLs
	MethodSocket   = "socket"   // the WebSocket handshake: troubles that don't act first
)

// Fault scripts a trouble.
type Fault struct {
	Trouble Trouble
	// Method is the Web API or pseudo-method that goes wrong. Empty is every one that writes: chat.*,
	// files.*, uploads, reactions.*, assistant.*, response URLs.
	Method string
	// Team and Channel are where. Empty is everywhere.
	Team, Channel string
	// Times is how often. 0 is once, negative is until Heal.
	Times int
	// Status is what AnswerStatus answers, 0 is 503. RetryAfter is in whole seconds, rounded up.
	Status     int
	RetryAfter time.Duration
	// Code is the error of AnswerError.
	Code string
	// Delay is how long SlowBody and Late take.
	Delay time.Duration
}

// window is what a 429 is about.
type window struct{ team, method, channel string }

func (c *call) window() window { return window{c.Team, c.Method, c.channel()} }

// Break adds a fault. Faults are used up in order.
func (s *Server) Break(f Fault) {
	if f.Trouble == Twice || f.Trouble == Backwards {
		s.mu.Lock()
		defer s.mu.Unlock()
		fill(&f.Times, 1)
		if f.Trouble == Twice {
			s.post.twice += f.Times
		} else {
			s.post.backwards += f.Times
		}
		return
	}
	made := faults.Fault{Kind: faults.Kind(f.Trouble), Times: f.Times, Status: f.Status, Delay: f.Delay,
		On: func(r *http.Request) bool { return f.on(callOf(r)) }}
	switch {
	case f.Trouble == AnswerError:
		made.Kind, made.Status, made.Header = faults.Status, http.StatusOK, http.Header{"Content-Type": {"application/json; charset=utf-8"}}
		_, made.Body = wireAnswer(nil, refuse(f.Code))
	case f.Trouble == AnswerStatus && f.Status == http.StatusTooManyRequests:
		made.Header, made.Body = tooMany(f.RetryAfter)
		made.Then = func(r *http.Request) { s.windows.Open(callOf(r).window(), f.RetryAfter) }
	case f.Trouble == AnswerStatus:
		made.Header, made.Body = http.Header{"Content-Type": {"text/html"}}, []byte("<html>the service is tired</html>")
	}
	s.script.Break(made)
}

func (f Fault) on(c *call) bool {
	if f.Team != "" && f.Team != c.Team || f.Channel != "" && f.Channel != c.channel() {
		return false
	}
	if f.Method != "" {
		return f.Method == c.Method
	}
	switch c.Method {
	case "files.info", "reactions.get":
		return false
	case MethodUpload, MethodRespond:
		return true
	}
	for _, family := range []string{"chat.", "files.", "reactions.", "assistant."} {
		if strings.HasPrefix(c.Method, family) {
			return true
		}
	}
	return false
}

// tooMany is the answer to a call that came too soon.
func tooMany(wait time.Duration) (http.Header, []byte) {
	seconds := int((wait + time.Second - 1) / time.Second)
	_, body := wireAnswer(nil, refuse("ratelimited"))
	return http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Retry-After": {strconv.Itoa(seconds)}}, body
}

// polite records and refuses a call inside a window that the app was asked to wait for.
func (s *Server) polite(w http.ResponseWriter, c *call) bool {
	left := s.windows.Enter(c.window(), fmt.Sprintf("%s for channel %q", c.Method, c.channel()))
	if left <= 0 {
		return true
	}
	s.limit(w, left)
	return false
}

// limit answers 429.
func (s *Server) limit(w http.ResponseWriter, wait time.Duration) {
	header, body := tooMany(wait)
	for k, v := range header {
		w.Header()[k] = v
	}
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write(body)
}

// Heal takes all faults and windows off, and ends requests that hang. Deafen, WithholdHello and revocations
// stay.
func (s *Server) Heal() {
	s.script.Heal()
	s.windows.Clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post.twice, s.post.backwards = 0, 0
	s.releaseHeld()
}
