package signal

import "sync"

// textsKept is how many messages are remembered for quotes, textsLong how long each may be, in bytes.
const (
	textsKept = 512
	textsLong = 2000
)

// texts remembers what the newest messages say: a quote of Signal carries the text along. It is not kept over restarts,
// because it is what people wrote; a quote without its text is shown by clients that have the message.
type texts struct {
	mu    sync.Mutex
	said  map[string]string
	order []string
}

func newTexts() *texts { return &texts{said: map[string]string{}} }

func (t *texts) keep(chat, id, text string) {
	if text == "" {
		return
	}
	if len(text) > textsLong {
		text = text[:textsLong]
		for len(text) > 0 && text[len(text)-1]&0xc0 == 0x80 { // not in the middle of a character
			text = text[:len(text)-1]
		}
		if len(text) > 0 && text[len(text)-1] >= 0xc0 {
			text = text[:len(text)-1]
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := chat + " " + id
	if _, known := t.said[key]; !known {
		t.order = append(t.order, key)
	}
	t.said[key] = text
	for len(t.order) > textsKept {
		delete(t.said, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *texts) find(chat, id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said[chat+" "+id]
}

// unreadKept is how many messages wait for their read receipt, in how many chats.
const unreadKept = 64

// unread are messages whose read receipt waits until the core has begun to answer: a receipt to somebody who may not
// talk would tell them that somebody is there.
type unread struct {
	mu    sync.Mutex
	chats map[string]map[string][]int64 // chat, author: timestamps
}

func newUnread() *unread { return &unread{chats: map[string]map[string][]int64{}} }

func (u *unread) note(chat, author string, at int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.chats[chat] == nil {
		if len(u.chats) >= unreadKept {
			clear(u.chats)
		}
		u.chats[chat] = map[string][]int64{}
	}
	list := append(u.chats[chat][author], at)
	u.chats[chat][author] = list[max(0, len(list)-unreadKept):]
}

// take returns what waits in a chat, and forgets it.
func (u *unread) take(chat string) map[string][]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.chats[chat]
	delete(u.chats, chat)
	return out
}
