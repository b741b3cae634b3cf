package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"herald/platforms"
)

const (
	// lastSpace holds the last accepted message of each channel, trySpace how often a message was handed on.
	lastSpace, trySpace = "last/", "try/"
	// lastKept is how many channels are remembered.
	lastKept = 500
)

// catchUp hands on what was written while the bot was away for longer than Discord keeps a session. What was handled
// is known by marks of our own and by the core, which keeps every event id for days: no answer has to be looked for.
type catchUp struct {
	a    *Adapter
	sink platforms.Sink

	mu      sync.Mutex
	last    map[string]string // by channel: up to where all is handled
	later   map[string]string // by channel that is being caught up: what came live meanwhile
	running bool
}

func newCatchUp(a *Adapter, sink platforms.Sink) *catchUp {
	return &catchUp{a: a, sink: sink, last: map[string]string{}, later: map[string]string{}}
}

// lastMark is what is kept of a channel.
type lastMark struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"` // of a thread
}

// begin starts to catch up. It is called when a new session has begun, before the first event of it.
func (c *catchUp) begin(ctx context.Context) {
	marks, err := c.marks(ctx)
	if err != nil {
		c.a.s.Log.Warn().Err(err).Msg("missed messages can't be looked for: the marks can't be read")
		return
	}
	c.mu.Lock()
	if c.running {
		c.mu.Unlock()
		return
	}
	channels := c.wanted(marks)
	from := map[string]string{}
	for _, id := range channels {
		from[id] = c.last[id]
		c.later[id] = ""
	}
	c.running = true
	c.mu.Unlock()
	if len(channels) == 0 || !c.a.beside(func(ctx context.Context) { c.run(ctx, channels, from) }) {
		c.finish(channels)
	}
}

// marks reads up to where each channel is handled, and forgets attempts at messages that are too old by now.
func (c *catchUp) marks(ctx context.Context) (map[string]lastMark, error) {
	facts, err := c.a.s.Memory.Recall(ctx, lastSpace)
	if err != nil {
		return nil, err
	}
	marks := map[string]lastMark{}
	for _, f := range facts {
		var m lastMark
		if json.Unmarshal(f.Data, &m) == nil && m.ID != "" {
			marks[strings.TrimPrefix(f.Key, lastSpace)] = m
		}
	}
	tries, err := c.a.s.Memory.Recall(ctx, trySpace)
	if err != nil {
		return nil, err
	}
	var old []platforms.Fact
	for _, f := range tries {
		if when(strings.TrimPrefix(f.Key, trySpace)).Before(time.Now().Add(-c.a.s.Missed.Window)) {
			old = append(old, platforms.Fact{Key: f.Key})
		}
	}
	if len(old) == 0 {
		return marks, nil
	}
	return marks, c.a.s.Memory.Keep(ctx, old...)
}

// wanted returns the channels to look at: those that are named, with the threads in them that were handled before, or
// else all that were. The caller holds mu.
func (c *catchUp) wanted(marks map[string]lastMark) []string {
	var channels []string
	for id := range c.a.s.missed {
		if id != anyone {
			channels = append(channels, id)
		}
	}
	for id, m := range marks {
		if less(c.last[id], m.ID) {
			c.last[id] = m.ID
		}
		named := len(c.a.s.missed) == 0 || c.a.s.missed[anyone] || c.a.s.missed[m.Parent]
		if named && !slices.Contains(channels, id) {
			channels = append(channels, id)
		}
	}
	slices.SortFunc(channels, compare)
	return channels
}

// run looks at the channels, oldest message first, until a cap is reached.
func (c *catchUp) run(ctx context.Context, channels []string, from map[string]string) {
	defer c.finish(channels)
	left := c.a.s.Missed.Dispatches
	for _, id := range channels {
		handed, err := c.channel(ctx, id, from[id], &left)
		c.settle(ctx, handed)
		if err != nil && ctx.Err() == nil {
			c.a.s.Log.Warn().Err(err).Str("channel", id).Msg("missed messages of a channel can't be read")
		}
		if len(handed) > 0 {
			c.a.s.Log.Info().Str("channel", id).Int("messages", len(handed)).Msg("missed messages were caught up")
		}
		if ctx.Err() != nil {
			return
		}
		if left <= 0 {
			c.a.s.Log.Warn().Int("max_dispatches", c.a.s.Missed.Dispatches).Msg("more messages were missed than are caught up at one time; the rest is left unread")
			return
		}
		c.release(ctx, id)
	}
}

// settle forgets the attempts at messages that the core has.
func (c *catchUp) settle(ctx context.Context, ids []string) {
	facts := make([]platforms.Fact, len(ids))
	for i, id := range ids {
		facts[i].Key = trySpace + id
	}
	if len(facts) == 0 {
		return
	}
	if err := c.a.s.Memory.Keep(ctx, facts...); err != nil && ctx.Err() == nil {
		c.a.s.Log.Warn().Err(err).Msg("attempts at missed messages can't be forgotten")
	}
}

// channel catches one channel up and returns the messages that were handed on.
func (c *catchUp) channel(ctx context.Context, id, after string, left *int) ([]string, error) {
	oldest := idAt(time.Now().Add(-c.a.s.Missed.Window))
	if less(after, oldest) {
		after = oldest
	}
	page, err := c.since(ctx, id, after)
	if err != nil {
		return nil, err
	}
	var handed []string
	for i := range page {
		m := &page[i]
		if *left <= 0 {
			break
		}
		ok, err := c.one(ctx, m)
		if err != nil {
			return handed, err
		}
		if ok {
			handed = append(handed, m.ID)
			*left--
		}
	}
	return handed, nil
}

// since returns the messages of a channel after an id, oldest first, at most Missed.Limit of them.
func (c *catchUp) since(ctx context.Context, id, after string) ([]message, error) {
	var all []message
	for len(all) < c.a.s.Missed.Limit {
		size := min(pageLimit, c.a.s.Missed.Limit-len(all))
		var page []message
		err := c.a.do(ctx, call{
			method: http.MethodGet, route: "/channels/{channel}/messages", major: id,
			path: "/channels/" + id + "/messages?limit=" + strconv.Itoa(size) + "&after=" + after,
		}, &page)
		if err != nil {
			return all, err
		}
		slices.SortFunc(page, func(x, y message) int { return compare(x.ID, y.ID) })
		all = append(all, page...)
		if len(page) < size {
			break
		}
		after = page[len(page)-1].ID
	}
	return all, nil
}

// one hands a missed message on, unless it is not for us or was tried too often.
func (c *catchUp) one(ctx context.Context, m *message) (bool, error) {
	a := c.a
	if m.Author == nil || m.Author.ID == a.me().id {
		return false, nil
	}
	p, err := a.channelOf(ctx, m.ChannelID)
	if err != nil {
		return false, err
	}
	m.GuildID = p.guild // history leaves it out
	v, err := a.judge(ctx, m, p)
	if err != nil {
		return false, err
	}
	if v.drop != "" || !v.wanted(m) {
		return false, nil
	}
	tries, err := c.tried(ctx, m.ID)
	if err != nil {
		return false, err
	}
	if tries > a.s.Missed.Attempts {
		a.s.Log.Warn().Str("message", m.ID).Int("attempts", tries-1).Msg("a missed message was handed on too often; it is given up")
		return false, nil
	}
	if err := a.offer(ctx, c.sink, nil, m, p, false); err != nil {
		return true, err
	}
	c.advance(ctx, p, m.ID)
	return true, nil
}

// advance moves a channel's mark behind a missed message that the core has: they come oldest first.
func (c *catchUp) advance(ctx context.Context, p place, id string) {
	c.mu.Lock()
	if !less(c.last[p.channel], id) {
		c.mu.Unlock()
		return
	}
	c.last[p.channel] = id
	c.mu.Unlock()
	c.keep(ctx, p, id)
}

// tried counts an attempt at a message, durably, and returns how many there were with it.
func (c *catchUp) tried(ctx context.Context, id string) (int, error) {
	key := trySpace + id
	facts, err := c.a.s.Memory.Recall(ctx, key)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, f := range facts {
		if f.Key == key {
			_ = json.Unmarshal(f.Data, &n)
		}
	}
	n++
	raw, _ := json.Marshal(n)
	return n, c.a.s.Memory.Keep(ctx, platforms.Fact{Key: key, Data: raw})
}

// handled notes that the core has a message that came live. While its channel is caught up it must not hide those that
// are still to be read.
func (c *catchUp) handled(ctx context.Context, p place, id string) {
	c.mu.Lock()
	later, busy := c.later[p.channel]
	if busy && less(later, id) {
		c.later[p.channel] = id
	}
	c.mu.Unlock()
	if !busy {
		c.advance(ctx, p, id)
	}
}

// release ends the catching up of one channel: all in it is handled.
func (c *catchUp) release(ctx context.Context, channel string) {
	c.mu.Lock()
	id := c.later[channel]
	delete(c.later, channel)
	c.mu.Unlock()
	p, ok := c.a.rooms.get(channel)
	if !ok {
		p = place{channel: channel, parent: channel}
	}
	c.advance(ctx, p, id)
}

// keep stores the mark of a channel, and forgets the oldest ones over the bound.
func (c *catchUp) keep(ctx context.Context, p place, id string) {
	m := lastMark{ID: id}
	if p.parent != p.channel {
		m.Parent = p.parent
	}
	raw, _ := json.Marshal(m)
	facts := []platforms.Fact{{Key: lastSpace + p.channel, Data: raw}}
	c.mu.Lock()
	for len(c.last) > lastKept {
		oldest := ""
		for ch, m := range c.last {
			if oldest == "" || less(m, c.last[oldest]) {
				oldest = ch
			}
		}
		delete(c.last, oldest)
		facts = append(facts, platforms.Fact{Key: lastSpace + oldest})
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout) // what the core has must not be taken up again
	defer cancel()
	if err := c.a.s.Memory.Keep(ctx, facts...); err != nil {
		c.a.s.Log.Warn().Err(err).Msg("the mark of handled messages can't be kept")
	}
}

// finish lets messages that come live count again, of channels that were not caught up to the end too: their older
// messages stay unread until the next new session.
func (c *catchUp) finish(channels []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range channels {
		delete(c.later, id)
	}
	c.running = false
}

// less compares ids by their number; "" is the smallest.
func less(x, y string) bool { return snowflake(x) < snowflake(y) }

func compare(x, y string) int {
	switch {
	case less(x, y):
		return -1
	case less(y, x):
		return 1
	}
	return 0
}
