package main

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"herald/platforms/platformtest/telegramtest"
)

// tokenPattern finds the marks that tie a reply to its question. All have the same number of digits, so they
// sort in the order of asking.
var tokenPattern = regexp.MustCompile(`tok-\d{8}`)

// tokensOf returns the tokens of a text, sorted, each once.
func tokensOf(text string) []string {
	tokens := tokenPattern.FindAllString(text, -1)
	slices.Sort(tokens)
	return slices.Compact(tokens)
}

// question is one message of a person and what became of it. People guards its fields.
type question struct {
	token   string
	handed  time.Time     // first left the server in a getUpdates answer
	replied time.Time     // first visible in a message of the bot
	sends   int           // separate messages of the bot that carry the token
	done    chan struct{} // closed when replied
}

// people write to the bot through a fake Telegram and time the replies.
type people struct {
	tg *telegramtest.Server

	mu     sync.Mutex
	asked  map[string]*question
	next   int
	polled chan struct{} // closed at the first poll since awaitPoll
	other  map[int64]chan struct{}
}

func newPeople(tg *telegramtest.Server) *people {
	p := &people{tg: tg, asked: map[string]*question{}, next: 10_000_000, other: map[int64]chan struct{}{}}
	tg.Watch(p.saw)
	return p
}

// ask makes the person of a chat write a message that wants an answer.
func (p *people) ask(chat int64) *question {
	p.mu.Lock()
	p.next++
	q := &question{token: "tok-" + strconv.Itoa(p.next), done: make(chan struct{})}
	p.asked[q.token] = q
	p.mu.Unlock()
	p.tg.Say(chat, "please answer "+q.token)
	return q
}

// tell makes the person of a chat write a command. The channel closes at the bot's next message there.
func (p *people) tell(chat int64, command string) <-chan struct{} {
	done := make(chan struct{})
	p.mu.Lock()
	p.other[chat] = done
	p.mu.Unlock()
	p.tg.Say(chat, command)
	return done
}

// forget drops questions whose story is over, so that a long run does not grow.
func (p *people) forget(questions ...*question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range questions {
		delete(p.asked, q.token)
	}
}

// saw notes what the bot did. It runs with the fake locked.
func (p *people) saw(a telegramtest.Act) {
	if a.Verb != "send" && a.Verb != "edit" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if done := p.other[a.Chat]; done != nil && a.Verb == "send" {
		close(done)
		delete(p.other, a.Chat)
	}
	for _, token := range tokensOf(a.Text) {
		q := p.asked[token]
		if q == nil {
			continue
		}
		if a.Verb == "send" {
			q.sends++
		}
		if q.replied.IsZero() {
			q.replied = a.At
			close(q.done)
		}
	}
}

// latency is the time between the question's leaving the server and its first visible reply.
func (p *people) latency(q *question) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return q.replied.Sub(q.handed)
}

// outcome counts questions without a reply, and with more than one.
func (p *people) outcome(questions []*question) (unanswered, duplicated int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range questions {
		if q.replied.IsZero() {
			unanswered++
		}
		if q.sends > 1 {
			duplicated++
		}
	}
	return unanswered, duplicated
}

// awaitPoll returns a channel that closes when the bot asks for updates the next time.
func (p *people) awaitPoll() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.polled = make(chan struct{})
	return p.polled
}

// ServeHTTP is the fake Telegram, seen from outside: polls are noted, and when their questions leave.
func (p *people) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(strings.ToLower(r.URL.Path), "/getupdates") {
		p.tg.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	if p.polled != nil {
		close(p.polled)
		p.polled = nil
	}
	p.mu.Unlock()
	p.tg.ServeHTTP(handing{w, p}, r)
}

// handing notes the questions in a getUpdates answer, just before it goes out.
type handing struct {
	http.ResponseWriter
	people *people
}

func (h handing) Write(b []byte) (int, error) {
	now := time.Now()
	h.people.mu.Lock()
	for _, token := range tokensOf(string(b)) {
		if q := h.people.asked[token]; q != nil && q.handed.IsZero() {
			q.handed = now
		}
	}
	h.people.mu.Unlock()
	return h.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the connection.
func (h handing) Unwrap() http.ResponseWriter { return h.ResponseWriter }
