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
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	f.Method = strings.ToLower(f.Method)
	t.faults = append(t.faults, &f)
}

// Heal takes all faults and windows off.
func (t *Server) Heal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults, t.windows = nil, map[int64]time.Time{}
	close(t.done) // hung requests end now
	t.done = make(chan struct{})
}

func (t *Server) faultFor(r *request) *Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, f := range t.faults {
		if f.Trouble == Twice || f.Trouble == Backwards {
			continue
		}
		if f.Method == "" && (r.method == "getupdates" || r.method == "getme") || f.Method != "" && f.Method != r.method {
			continue
		}
		if f.Chat != 0 && f.Chat != r.int("chat_id") {
			continue
		}
		if t.windows[r.int("chat_id")].After(time.Now()) {
			continue // already inside a window
		}
		t.spend(i)
		if f.Trouble == AnswerStatus && f.Status == http.StatusTooManyRequests && r.int("chat_id") != 0 {
			t.windows[r.int("chat_id")] = time.Now().Add(f.RetryAfter)
		}
		return f
	}
	return nil
}

// deliveryFault returns and spends a fault of the given kind.
func (t *Server) deliveryFault(trouble Trouble) bool {
	for i, f := range t.faults {
		if f.Trouble == trouble {
			t.spend(i)
			return true
		}
	}
	return false
}

func (t *Server) spend(i int) {
	f := t.faults[i]
	if f.Times < 0 {
		return
	}
	if f.Times--; f.Times == 0 {
		t.faults = append(t.faults[:i:i], t.faults[i+1:]...)
	}
}

func (t *Server) misbehaveBefore(w http.ResponseWriter, r *http.Request, f *Fault) bool {
	switch f.Trouble {
	case AnswerStatus:
		t.answerStatus(w, f)
	case ResetBefore:
		faults.Reset(w)
	case HangBefore:
		t.hang(r)
		faults.Reset(w)
	case Garbage:
		_, _ = w.Write([]byte("<html>upstream says hello</html>"))
	default:
		return false
	}
	return true
}

func (t *Server) misbehaveAfter(w http.ResponseWriter, r *http.Request, f *Fault, result any, err error) bool {
	status, body := answerOf(result, err)
	switch f.Trouble {
	case ResetAfter:
		faults.Reset(w)
	case HangAfter:
		t.hang(r)
		faults.Reset(w)
	case SlowBody, HalfBody:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		if f.Trouble == HalfBody {
			faults.Reset(w)
			return true
		}
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
		_, _ = w.Write(body[len(body)/2:])
	default:
		return false
	}
	return true
}

func (t *Server) answerStatus(w http.ResponseWriter, f *Fault) {
	seconds := int((f.RetryAfter + time.Second - 1) / time.Second)
	if f.Header {
		if seconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
		}
		http.Error(w, "<html>the proxy is tired</html>", f.Status)
		return
	}
	e := &apiError{code: f.Status, description: f.Description, retryAfter: seconds}
	if f.Status == http.StatusTooManyRequests && e.description == "" {
		e.description = tooMany(seconds).Error()
	}
	if e.description == "" {
		e.description = http.StatusText(f.Status)
	}
	write(w, nil, e)
}

// hang holds the request until the client goes or the fake is healed or closed.
func (t *Server) hang(r *http.Request) {
	t.mu.Lock()
	done := t.done
	t.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-done:
	}
}
