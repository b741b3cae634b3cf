package telegram

import "sync"

// ownKept is how many of our messages are remembered to recognise reactions on them. Telegram does not
// say whose message a reaction is on.
const ownKept = 4096

type ownMessage struct {
	chat int64
	id   int
}

// ownMessages remembers the newest messages of ours.
type ownMessages struct {
	mu   sync.Mutex
	has  map[ownMessage]struct{}
	ring []ownMessage
	next int
}

func newOwnMessages() *ownMessages { return &ownMessages{has: map[ownMessage]struct{}{}} }

func (o *ownMessages) add(chat int64, id int) {
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
	o.has[m] = struct{}{}
}

func (o *ownMessages) contains(chat int64, id int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.has[ownMessage{chat, id}]
	return ok
}
