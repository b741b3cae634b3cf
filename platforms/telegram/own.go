package telegram

import "sync"

// ownKept is how many of our messages are remembered, with their threads. Telegram does not say whose
// message a reaction is on, nor in which topic it or an old message with buttons is.
const ownKept = 4096

type ownMessage struct {
	chat int64
	id   int
}

// ownMessages remembers the newest messages of ours.
type ownMessages struct {
	mu   sync.Mutex
	has  map[ownMessage]int // the thread it is in
	ring []ownMessage
	next int
}

func newOwnMessages() *ownMessages { return &ownMessages{has: map[ownMessage]int{}} }

func (o *ownMessages) add(chat int64, thread, id int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := ownMessage{chat, id}
	if _, ok := o.has[m]; ok {
		return
	}
	if len(o.ring) < ownKept {
		o.ring = append(o.ring, m)
	} else {
		delete(o.has, o.ring[o.next])
		o.ring[o.next] = m
		o.next = (o.next + 1) % ownKept
	}
	o.has[m] = thread
}

// find returns the thread of a message of ours, and whether it is one of those remembered.
func (o *ownMessages) find(chat int64, id int) (thread int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	thread, ok = o.has[ownMessage{chat, id}]
	return thread, ok
}
