package turn

import (
	"container/list"
	"sync"
	"time"

	"herald/sessions"
)

// The cache of transcripts holds the conversations that are being had, so that a turn need not read them
// again.
const (
	DefaultCacheSize = 128
	DefaultCacheIdle = time.Hour
	cacheBytes       = 8 << 20
)

type cached struct {
	id    sessions.ID
	rows  []sessions.Message
	total int // transcript rows of the session, marked ones included, when rows was complete
	// lastPrompt is the provider's input count for rows[:lastRows].
	lastPrompt int64
	lastRows   int
	bytes      int
	put        time.Time
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
	// idle is how long an entry that nobody takes is kept; 0 forever. timer runs while there are entries.
	idle   time.Duration
	now    func() time.Time
	timer  *time.Timer
	closed bool
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
	if c.closed {
		return
	}
	if c.idle > 0 {
		entry.put = c.now()
		if c.timer == nil {
			c.timer = time.AfterFunc(c.idle, c.expire)
		}
	}
	c.entries[entry.id] = c.order.PushFront(entry)
	c.bytes += entry.bytes
	for c.order.Len() > c.max || c.bytes > c.maxBytes {
		c.removeLocked(c.order.Back())
	}
}

// expire drops what has been idle for too long, and comes back when the next entry will have been.
func (c *cache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = nil
	for el := c.order.Back(); el != nil && !c.closed; el = c.order.Back() {
		if left := c.idle - c.now().Sub(el.Value.(*cached).put); left > 0 {
			c.timer = time.AfterFunc(left, c.expire)
			return
		}
		c.removeLocked(el)
	}
}

// close lets go of everything and keeps nothing from now on.
func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.order.Init()
	clear(c.entries)
	c.bytes = 0
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
