package wire

import "sync"

// Recent remembers values by key, at most a number of them: the one that was put longest ago is forgotten for a new one. It is
// safe for concurrent use, and it takes memory only for what it holds.
type Recent[K comparable, V any] struct {
	most int

	mu    sync.Mutex
	items map[K]*recentItem[K, V]
	ends  recentItem[K, V] // of a ring: ends.next is the oldest, ends.prev the newest
}

type recentItem[K comparable, V any] struct {
	key        K
	value      V
	prev, next *recentItem[K, V]
}

// NewRecent returns a memory of at most most values.
func NewRecent[K comparable, V any](most int) *Recent[K, V] {
	r := &Recent[K, V]{most: most, items: map[K]*recentItem[K, V]{}}
	r.ends.prev, r.ends.next = &r.ends, &r.ends
	return r
}

// Put remembers a value in place of an earlier one, as the newest.
func (r *Recent[K, V]) Put(key K, value V) {
	r.Change(key, func(v *V) { *v = value })
}

// Change lets f change the value of key, which is the zero value where there is none, and remembers it as the newest. f runs
// under the lock and must not call the memory.
func (r *Recent[K, V]) Change(key K, f func(*V)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	item := r.items[key]
	if item == nil {
		item = &recentItem[K, V]{key: key}
		r.items[key] = item
	} else {
		item.unlink()
	}
	item.prev, item.next = r.ends.prev, &r.ends
	item.prev.next, item.next.prev = item, item
	f(&item.value)
	if len(r.items) > r.most {
		oldest := r.ends.next
		oldest.unlink()
		delete(r.items, oldest.key)
	}
}

// Get returns the value of key, and whether there is one.
func (r *Recent[K, V]) Get(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	item, ok := r.items[key]
	if ok {
		value = item.value
	}
	return value, ok
}

// Has reports whether there is a value of key.
func (r *Recent[K, V]) Has(key K) bool {
	_, ok := r.Get(key)
	return ok
}

// Take returns the value of key, and whether there is one, and forgets it.
func (r *Recent[K, V]) Take(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	item, ok := r.items[key]
	if ok {
		value = item.value
		item.unlink()
		delete(r.items, key)
	}
	return value, ok
}

// Delete forgets the value of key, if there is one.
func (r *Recent[K, V]) Delete(key K) { _, _ = r.Take(key) }

// Len returns how many values there are.
func (r *Recent[K, V]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.items)
}

func (i *recentItem[K, V]) unlink() { i.prev.next, i.next.prev = i.next, i.prev }
