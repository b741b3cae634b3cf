package turn

import (
	"container/list"
	"sync"

	"herald/sessions"
)

// The cache of transcripts holds the conversations that are being had, so that a turn need not read them
// again (spec 1.22: 128 sessions).
const (
	cacheSessions = 128
	cacheBytes    = 8 << 20
)

type cached struct {
	id    sessions.ID
	rows  []sessions.Message
	total int // transcript rows of the session, marked ones included, when rows was complete
	// lastPrompt is the provider's input count for rows[:lastRows].
	lastPrompt int64
	lastRows   int
	bytes      int
}

// cache is a small LRU. An entry is taken out by a turn and put back when it ends, so no two turns share
// a slice.
type cache struct {
	mu       sync.Mutex
	max      int
	maxBytes int
	bytes    int
	order    *list.List // front is newest
	entries  map[sessions.ID]*list.Element
}

func newCache(sessionsMax, bytesMax int) *cache {
	return &cache{max: sessionsMax, maxBytes: bytesMax, order: list.New(), entries: map[sessions.ID]*list.Element{}}
}

// take removes and returns a session's entry when it is still complete: total rows on disk.
func (c *cache) take(id sessions.ID, total int) (*cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.entries[id]
	if !ok {
		return nil, false
	}
	c.removeLocked(el)
	entry := el.Value.(*cached)
	return entry, entry.total == total
}

func (c *cache) put(entry *cached) {
	entry.bytes = 0
	for _, row := range entry.rows {
		entry.bytes += 300 + len(row.Content) + len(row.Reasoning) + len(row.Replay)
		for _, call := range row.ToolCalls {
			entry.bytes += 64 + len(call.Arguments)
		}
	}
	if entry.bytes > c.maxBytes/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[entry.id]; ok {
		c.removeLocked(el)
	}
	c.entries[entry.id] = c.order.PushFront(entry)
	c.bytes += entry.bytes
	for c.order.Len() > c.max || c.bytes > c.maxBytes {
		c.removeLocked(c.order.Back())
	}
}

func (c *cache) drop(id sessions.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[id]; ok {
		c.removeLocked(el)
	}
}

func (c *cache) removeLocked(el *list.Element) {
	entry := el.Value.(*cached)
	c.order.Remove(el)
	delete(c.entries, entry.id)
	c.bytes -= entry.bytes
}
