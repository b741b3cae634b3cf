package signal

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// mostHeld is how many events are held while the core takes none; then the stream is not read.
	mostHeld = 256
	// acceptBatch is how many events are offered at once.
	acceptBatch = 32
	heldSpace   = "held/"
	// heldPart is how many bytes of an event one fact takes: a memory may take no more than 16 KiB at once.
	heldPart = 9000
)

// entry is an event on its way into the core, with the stream's own id of it. One without an event only moves the
// mark.
type entry struct {
	event  platforms.Event
	stream string // empty when the daemon gives none
	held   string // the key under which it is held durably, empty while it is not
	parts  int
}

// intake brings events into the core in order. What the core refuses is held in the adapter's memory, so that a
// restart loses nothing, and offered again. One goroutine runs it.
type intake struct {
	a    *Adapter
	sink platforms.Sink
	in   chan entry

	queue []entry
	next  int // number of the next held event

	mu   sync.Mutex
	late []entry // came when the run had ended
	full bool
}

func newIntake(a *Adapter, sink platforms.Sink) *intake {
	return &intake{a: a, sink: sink, in: make(chan entry, acceptBatch)}
}

// put hands an event over. It blocks while too much is held; when ctx has ended the event is kept for finish.
func (q *intake) put(ctx context.Context, e entry) {
	select {
	case q.in <- e:
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.late) < mostHeld {
			q.late = append(q.late, e)
		}
	}
}

// stuck reports whether the stream is not read because too much is held.
func (q *intake) stuck() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.full || len(q.in) == cap(q.in)
}

// run offers what comes until ctx ends.
func (q *intake) run(ctx context.Context) {
	wait := wire.NewBackoff(q.a.s.BackoffMin/10, 5*time.Second)
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		in := q.in
		q.mu.Lock()
		if q.full = len(q.queue) >= mostHeld; q.full {
			in = nil
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case e := <-in:
			q.queue = append(q.queue, e)
			q.gather()
			if q.a.health.isRefused() {
				q.hold(ctx)
				continue // the timer tries again
			}
		case <-retry.C:
		}
		if q.offer(ctx) {
			wait.Reset()
			continue
		}
		q.hold(ctx)
		retry.Reset(wait.Next())
	}
}

// gather takes what else is there.
func (q *intake) gather() {
	for len(q.queue) < mostHeld {
		select {
		case e := <-q.in:
			q.queue = append(q.queue, e)
		default:
			return
		}
	}
}

// offer brings the queue into the core. false: the core refused.
func (q *intake) offer(ctx context.Context) bool {
	for len(q.queue) > 0 {
		n := min(len(q.queue), acceptBatch)
		events := make([]platforms.Event, 0, n)
		for _, e := range q.queue[:n] {
			if e.event.ID != "" {
				events = append(events, e.event)
			}
		}
		if err := q.accept(ctx, events); err != nil {
			if ctx.Err() == nil {
				q.a.s.Metrics.Polled("refused")
				q.a.s.Log.Warn().Err(err).Int("held", len(q.queue)).Msg("the store takes no events now; they are held and offered again")
				q.a.health.refuse(true)
			}
			return false
		}
		q.a.health.refuse(false)
		q.accepted(ctx, q.queue[:n])
		q.queue = q.queue[n:]
	}
	q.queue = nil
	return true
}

func (q *intake) accept(ctx context.Context, events []platforms.Event) error {
	if len(events) == 0 {
		return nil
	}
	return q.sink.Accept(ctx, events...)
}

// accepted forgets what was held and notes how far the stream is.
func (q *intake) accepted(ctx context.Context, done []entry) {
	var forget []platforms.Fact
	for _, e := range done {
		for i := range e.parts {
			forget = append(forget, platforms.Fact{Key: partKey(e.held, i)})
		}
		if e.stream != "" {
			q.a.mark.set(e.stream)
		}
	}
	if len(forget) == 0 {
		return
	}
	if err := q.a.s.Memory.Keep(ctx, forget...); err != nil {
		q.a.s.Log.Debug().Err(err).Msg("events that were taken stay noted as held; the core knows them by their ids")
	}
}

// hold writes what is not held durably yet.
func (q *intake) hold(ctx context.Context) {
	for i := range q.queue {
		e := &q.queue[i]
		if e.held != "" || e.event.ID == "" {
			continue
		}
		facts, key, err := q.facts(e.event)
		if err == nil {
			err = q.a.s.Memory.Keep(ctx, facts...)
		}
		if err != nil {
			q.a.s.Log.Error().Err(err).Msg("an event that the store refused can't be kept over a restart; it is held in memory")
			return
		}
		e.held, e.parts = key, len(facts)
	}
}

// facts cuts an event into facts that a memory takes.
func (q *intake) facts(e platforms.Event) (facts []platforms.Fact, key string, err error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, "", err
	}
	q.next++
	key = fmt.Sprintf("%s%020d-%06d", heldSpace, time.Now().UnixMilli(), q.next)
	for i := 0; i*heldPart < len(data); i++ {
		part := data[i*heldPart : min((i+1)*heldPart, len(data))]
		text, err := json.Marshal(base64.StdEncoding.EncodeToString(part))
		if err != nil {
			return nil, "", err
		}
		facts = append(facts, platforms.Fact{Key: partKey(key, i), Data: text})
	}
	return facts, key, nil
}

func partKey(key string, i int) string { return fmt.Sprintf("%s/%04d", key, i) }

// load reads what an earlier run has held, oldest first.
func (q *intake) load(ctx context.Context) error {
	facts, err := q.a.s.Memory.Recall(ctx, heldSpace)
	if err != nil {
		return err
	}
	parts := map[string][]string{}
	var order []string
	for _, f := range facts {
		i := strings.LastIndexByte(f.Key, '/')
		key := f.Key[:i]
		var text string
		if json.Unmarshal(f.Data, &text) != nil {
			continue
		}
		if parts[key] == nil {
			order = append(order, key)
		}
		parts[key] = append(parts[key], text)
	}
	for _, key := range order {
		e := entry{held: key, parts: len(parts[key])}
		var data []byte
		for _, text := range parts[key] {
			part, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				break
			}
			data = append(data, part...)
		}
		if err := json.Unmarshal(data, &e.event); err != nil {
			q.a.s.Log.Error().Err(err).Msg("an event that was held can't be read; it is dropped")
			q.a.s.Metrics.Dropped(dropUndecodable)
			q.accepted(ctx, []entry{{held: key, parts: e.parts}})
			continue
		}
		q.queue = append(q.queue, e)
	}
	return nil
}

// finish holds what was not accepted when the run ended. Call it when nobody calls put any more.
func (q *intake) finish() {
	for {
		select {
		case e := <-q.in:
			q.queue = append(q.queue, e)
			continue
		default:
		}
		break
	}
	q.mu.Lock()
	q.queue = append(q.queue, q.late...)
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	q.hold(ctx)
	q.a.mark.save(ctx)
}
