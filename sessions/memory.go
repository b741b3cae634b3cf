package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"herald/platforms"
)

// Bounds of an adapter's memory.
const (
	MaxFactKey  = 512      // bytes
	MaxFactData = 16 << 10 // bytes
	MaxFacts    = 1000     // of one Keep
)

// MemoryOf returns the memory of one account's adapter on the store: a space of values of its own, which no other
// account sees. Facts within the bounds above are kept, others are an error and nothing of that Keep is.
func MemoryOf(store Store, account platforms.Account, now func() time.Time) platforms.Memory {
	if now == nil {
		now = time.Now
	}
	return memory{store: store, space: SpacesOfAdapters + Space(account.String()), now: now}
}

type memory struct {
	store Store
	space Space
	now   func() time.Time
}

// Recall implements platforms.Memory.
func (m memory) Recall(ctx context.Context, prefix string) ([]platforms.Fact, error) {
	var out []platforms.Fact
	err := m.store.View(ctx, func(v View) error {
		values, err := v.Values(m.space)
		for _, val := range values {
			if strings.HasPrefix(val.Name, prefix) {
				out = append(out, platforms.Fact{Key: val.Name, Data: val.Data, At: val.At})
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b platforms.Fact) int { return a.At.Compare(b.At) }) // equal ones stay by key
	return out, nil
}

// Keep implements platforms.Memory.
func (m memory) Keep(ctx context.Context, facts ...platforms.Fact) error {
	if len(facts) > MaxFacts {
		return fmt.Errorf("%d facts at once, the limit is %d", len(facts), MaxFacts)
	}
	for _, f := range facts {
		switch {
		case f.Key == "" || len(f.Key) > MaxFactKey:
			return fmt.Errorf("a fact's key has %d bytes, want 1 to %d", len(f.Key), MaxFactKey)
		case len(f.Data) > MaxFactData:
			return fmt.Errorf("fact %q has %d bytes, the limit is %d", f.Key, len(f.Data), MaxFactData)
		}
	}
	if len(facts) == 0 {
		return nil
	}
	return m.store.Update(ctx, EdgeState, func(tx Tx) error {
		for i, f := range facts {
			at := f.At
			if at.IsZero() {
				at = m.now().Add(time.Duration(i)) // the order within one Keep is kept
			}
			var data json.RawMessage
			if len(f.Data) > 0 {
				data = f.Data
			}
			if err := tx.SetValue(m.space, f.Key, data, at); err != nil {
				return err
			}
		}
		return nil
	})
}
