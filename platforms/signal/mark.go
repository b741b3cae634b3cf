package signal

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"herald/platforms"
)

const (
	markKey   = "stream/last"
	markEvery = 10 * time.Second
)

// mark is the id of the last event of the stream that the core has accepted. A daemon that numbers its events sends
// what came after it. It is written down now and then: one that is too old only makes the daemon repeat events, which
// the core knows by their ids.
type mark struct {
	memory platforms.Memory

	mu    sync.Mutex
	id    string
	saved string
	at    time.Time
}

func (m *mark) load(ctx context.Context) error {
	facts, err := m.memory.Recall(ctx, markKey)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range facts {
		if json.Unmarshal(f.Data, &m.id) == nil {
			m.saved = m.id
		}
	}
	return nil
}

func (m *mark) get() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id
}

// set notes an id.
func (m *mark) set(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.id = id
}

// due reports whether the mark has to be written down.
func (m *mark) due() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id != m.saved && time.Since(m.at) > markEvery
}

// save writes the mark down.
func (m *mark) save(ctx context.Context) {
	m.mu.Lock()
	id, saved := m.id, m.saved
	m.at = time.Now()
	m.mu.Unlock()
	if id == saved {
		return
	}
	data, err := json.Marshal(id)
	if err != nil || m.memory.Keep(ctx, platforms.Fact{Key: markKey, Data: data}) != nil {
		return
	}
	m.mu.Lock()
	m.saved = id
	m.mu.Unlock()
}
