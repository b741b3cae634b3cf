package signal

import (
	"context"
	"sync"
	"time"

	"herald/platforms/wire"
)

// Bounds of what is remembered of our own messages.
const (
	echoKept = 512
	echoTTL  = 5 * time.Minute
)

// echoes knows what the account itself has sent, so that the copy that a linked device gets is not taken for something
// a person wrote. It is free of the race between a send's answer, which brings the timestamp, and the copy, which may
// come first: while sends to a chat are under way, a copy from that chat waits for them.
type echoes struct {
	mu      sync.Mutex
	stamps  *wire.Recent[int64, time.Time] // timestamps of ours
	flights map[*flight]bool
	lost    []*flight     // sends whose outcome is unknown: no timestamp came
	landed  chan struct{} // closed when a flight ends
}

// flight is one send under way.
type flight struct {
	chat, text string
	at         time.Time
}

func newEchoes() *echoes {
	return &echoes{stamps: wire.NewRecent[int64, time.Time](echoKept), flights: map[*flight]bool{}, landed: make(chan struct{})}
}

// begin notes a send. Exactly one of done and gone follows.
func (e *echoes) begin(chat, text string) *flight {
	f := &flight{chat: chat, text: text, at: time.Now()}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flights[f] = true
	return f
}

// done ends a send with its timestamp; 0 is one that was certainly not sent.
func (e *echoes) done(f *flight, timestamp int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.land(f)
	if timestamp != 0 {
		e.stamps.Put(timestamp, time.Now())
	}
}

// gone ends a send of which nobody knows whether it arrived: its copy is known by its text.
func (e *echoes) gone(f *flight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.land(f)
	e.lost = append(e.lost, f)
	for len(e.lost) > echoKept || len(e.lost) > 0 && time.Since(e.lost[0].at) > echoTTL {
		e.lost = e.lost[1:]
	}
}

func (e *echoes) land(f *flight) {
	delete(e.flights, f)
	close(e.landed)
	e.landed = make(chan struct{})
}

// own reports whether a timestamp is one of ours that is remembered.
func (e *echoes) own(timestamp int64) bool {
	at, ok := e.stamps.Get(timestamp)
	return ok && time.Since(at) <= echoTTL
}

// is reports whether a copy in a chat is one of our own messages. It waits for sends to that chat that were under way
// when it was asked, until ctx ends; then a send with the same text counts as ours.
func (e *echoes) is(ctx context.Context, chat string, timestamp int64, text string) bool {
	e.mu.Lock()
	var pending []*flight
	for f := range e.flights {
		if f.chat == chat {
			pending = append(pending, f)
		}
	}
	for {
		if e.own(timestamp) {
			e.mu.Unlock()
			return true
		}
		if e.takeLost(chat, text) {
			e.mu.Unlock()
			return true
		}
		open := pending[:0]
		for _, f := range pending {
			if e.flights[f] {
				open = append(open, f)
			}
		}
		pending = open
		landed := e.landed
		e.mu.Unlock()
		if len(pending) == 0 {
			return false
		}
		select {
		case <-landed:
		case <-ctx.Done():
			for _, f := range pending {
				if f.text == text {
					return true
				}
			}
			return false
		}
		e.mu.Lock()
	}
}

// takeLost finds a send of unknown outcome with this text, and forgets it: one send makes one copy.
func (e *echoes) takeLost(chat, text string) bool {
	for i, f := range e.lost {
		if f.chat == chat && f.text == text && time.Since(f.at) <= echoTTL {
			e.lost = append(e.lost[:i:i], e.lost[i+1:]...)
			return true
		}
	}
	return false
}
