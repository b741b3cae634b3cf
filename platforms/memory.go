package platforms

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory keeps small facts of one adapter over restarts: the service URL of a conversation, the threads that
// the bot takes part in, the mark up to which missed messages were caught up. It is no place for secrets nor
// for what people wrote. The store implements it, one space per account; NewMemory is one that forgets.
type Memory interface {
	// Recall returns every fact whose key begins with prefix, oldest first.
	Recall(ctx context.Context, prefix string) ([]Fact, error)
	// Keep stores facts, all or none, durably when it returns nil. A fact without Data is forgotten. A zero At
	// is set to now.
	Keep(ctx context.Context, facts ...Fact) error
}

// Fact is one entry of a Memory.
type Fact struct {
	Key  string
	Data []byte // JSON
	At   time.Time
}

// NewMemory returns a Memory that lasts as long as the process, for tests and for adapters that are given none.
func NewMemory() Memory { return &shortMemory{facts: map[string]Fact{}} }

type shortMemory struct {
	mu    sync.Mutex
	facts map[string]Fact
}

func (m *shortMemory) Recall(_ context.Context, prefix string) ([]Fact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Fact
	for key, f := range m.facts {
		if strings.HasPrefix(key, prefix) {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Fact) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.Key, b.Key)
	})
	return out, nil
}

func (m *shortMemory) Keep(_ context.Context, facts ...Fact) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range facts {
		if len(f.Data) == 0 {
			delete(m.facts, f.Key)
			continue
		}
		if f.At.IsZero() {
			f.At = time.Now()
		}
		m.facts[f.Key] = f
	}
	return nil
}

// Marks is a bounded set of names that lasts over restarts: the threads a bot is active in, its own messages,
// the messages that were handled. The oldest names give way. Make one with NewMarks. It is safe for concurrent
// use.
type Marks struct {
	memory Memory
	space  string
	most   int

	mu    sync.Mutex
	read  bool
	at    map[string]uint64
	order []mark // by age; entries whose number is not the one in at are void
	next  uint64
}

type mark struct {
	name   string
	number uint64
}

// NewMarks returns the set called space in memory, of at most most names.
func NewMarks(memory Memory, space string, most int) *Marks {
	return &Marks{memory: memory, space: space + "/", most: max(most, 1), at: map[string]uint64{}}
}

// Has reports whether the set holds name.
func (m *Marks) Has(ctx context.Context, name string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.load(ctx); err != nil {
		return false, err
	}
	_, ok := m.at[name]
	return ok, nil
}

// Add puts names in and makes them the newest. It is durable when it returns nil. A name that is there already
// costs no write.
func (m *Marks) Add(ctx context.Context, names ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.load(ctx); err != nil {
		return err
	}
	var facts []Fact
	for _, name := range names {
		if _, ok := m.at[name]; !ok {
			facts = append(facts, Fact{Key: m.space + name, Data: []byte("1")})
		}
		m.note(name)
	}
	var gone []string
	for len(m.at) > m.most {
		oldest := m.order[0]
		m.order = m.order[1:]
		if m.at[oldest.name] == oldest.number {
			delete(m.at, oldest.name)
			gone = append(gone, oldest.name)
		}
	}
	for _, name := range gone {
		facts = slices.DeleteFunc(facts, func(f Fact) bool { return f.Key == m.space+name })
		facts = append(facts, Fact{Key: m.space + name})
	}
	if len(facts) == 0 {
		return nil
	}
	if err := m.memory.Keep(ctx, facts...); err != nil {
		m.read = false // what is stored decides
		return err
	}
	return nil
}

func (m *Marks) note(name string) {
	m.next++
	m.at[name] = m.next
	m.order = append(m.order, mark{name, m.next})
	if len(m.order) > 2*len(m.at)+16 { // mostly void entries
		m.order = slices.DeleteFunc(m.order, func(o mark) bool { return m.at[o.name] != o.number })
	}
}

func (m *Marks) load(ctx context.Context) error {
	if m.read {
		return nil
	}
	facts, err := m.memory.Recall(ctx, m.space)
	if err != nil {
		return err
	}
	m.at, m.order = map[string]uint64{}, nil
	for _, f := range facts {
		m.note(strings.TrimPrefix(f.Key, m.space))
	}
	m.read = true
	return nil
}
