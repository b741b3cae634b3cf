package web

import (
	"bytes"
	"container/list"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
)

// The bounds of what a hub keeps for tabs that come back.
const (
	hubEntries = 1024
	hubBytes   = 4 << 20
)

// hub is the feed of changes that the open tabs follow. A change with a key takes the place of an earlier
// one with the same key: a slow tab, or one that comes back, gets the newest state of a message once and
// not each step that led to it. So a tab can never hold up a send, and memory is bounded.
type hub struct {
	epoch string // of this hub; a cursor of another one can't be resumed

	mu    sync.Mutex
	n     int64 // number of the newest change
	floor int64 // changes up to this number may be missing
	order *list.List
	byKey map[string]*list.Element
	bytes int
	wake  chan struct{} // closed and replaced at each change
}

// change is one numbered event of the feed. It is encoded when the first tab asks for it, once.
type change struct {
	n     int64
	event string
	key   string
	size  int // bytes that count against the hub's bound, set once encoded
	data  func() []byte
}

func newHub() *hub {
	return &hub{
		epoch: strings.ToLower(rand.Text()[:10]), order: list.New(),
		byKey: make(map[string]*list.Element), wake: make(chan struct{}),
	}
}

// publish adds a change. view is called at most once, when a tab needs it, and must return a value that
// no longer changes. key "" never takes another change's place.
func (h *hub) publish(event, key string, view func() any) {
	h.publishSized(event, key, 256, view)
}

func (h *hub) publishSized(event, key string, size int, view func() any) {
	data := sync.OnceValue(func() []byte {
		b, err := json.Marshal(view())
		if err != nil { // a view is made of plain fields: it can't happen, and an empty event is harmless
			return []byte("null")
		}
		return b
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.byKey[key]; ok && key != "" {
		h.drop(old)
	}
	h.n++
	el := h.order.PushBack(&change{n: h.n, event: event, key: key, size: size, data: data})
	h.bytes += size
	if key != "" {
		h.byKey[key] = el
	}
	for h.order.Len() > hubEntries || (h.bytes > hubBytes && h.order.Len() > 1) {
		oldest := h.order.Front()
		h.floor = oldest.Value.(*change).n
		h.drop(oldest)
	}
	close(h.wake)
	h.wake = make(chan struct{})
}

func (h *hub) drop(el *list.Element) {
	c := h.order.Remove(el).(*change)
	h.bytes -= c.size
	if c.key != "" && h.byKey[c.key] == el {
		delete(h.byKey, c.key)
	}
}

// since returns the changes after number n, oldest first, and a channel that is closed at the next one.
// ok is false when some of them are gone: the tab must load again, and goes on from now.
func (h *hub) since(n int64) (changes []*change, now int64, wake <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n < h.floor || n > h.n {
		return nil, h.n, h.wake, false
	}
	for el := h.order.Back(); el != nil; el = el.Prev() {
		c := el.Value.(*change)
		if c.n <= n {
			break
		}
		changes = append(changes, c)
	}
	for i, j := 0, len(changes)-1; i < j; i, j = i+1, j-1 {
		changes[i], changes[j] = changes[j], changes[i]
	}
	return changes, h.n, h.wake, true
}

// cursor names the newest change; a tab that has loaded everything up to it follows from there.
func (h *hub) cursor() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.name(h.n)
}

func (h *hub) name(n int64) string { return h.epoch + "-" + strconv.FormatInt(n, 10) }

// parse reads a cursor. ok is false when it is not of this hub.
func (h *hub) parse(cursor string) (n int64, ok bool) {
	epoch, num, found := strings.Cut(cursor, "-")
	if !found || epoch != h.epoch {
		return 0, false
	}
	n, err := strconv.ParseInt(num, 10, 64)
	return n, err == nil && n >= 0
}

// frame appends one server-sent event to buf.
func (h *hub) frame(buf *bytes.Buffer, n int64, event string, data []byte) {
	buf.WriteString("id: ")
	buf.WriteString(h.name(n))
	buf.WriteString("\nevent: ")
	buf.WriteString(event)
	buf.WriteString("\ndata: ")
	buf.Write(data)
	buf.WriteString("\n\n")
}
