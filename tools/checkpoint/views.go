package checkpoint

import (
	"sync"
	"time"
)

// views remembers how directories looked: after the agent's last call, and when the last picture was taken of them.
type views struct {
	mu   sync.Mutex
	seen map[string]*view
	old  []string
}

type view struct {
	after   looks // the agent's last call
	running int   // calls

	picture looks // what the newest checkpoint was taken of
	index   stamp // the index then
	at      time.Time
}

// maxViews is how many directories are remembered; of others only the store tells.
const maxViews = 4

// racy is how much older than a look a change must be for its time to tell it from the next one: clocks of file systems
// move in steps, and so long a second change may look like the first.
const racy = 100 * time.Millisecond

// pictureFor is how long a picture is taken for the tree's without asking git, so that the store hears now and then that
// a directory is in use.
const pictureFor = time.Hour

func (v *views) of(id string) *view {
	at := v.seen[id]
	if at == nil {
		if v.seen == nil {
			v.seen = map[string]*view{}
		}
		if len(v.old) >= maxViews {
			delete(v.seen, v.old[0])
			v.old = v.old[1:]
		}
		at = &view{}
		v.seen[id], v.old = at, append(v.old, id)
	}
	return at
}

// enter begins a call. known is how the directory looked after the last one, nil when that is not remembered; alone is
// false when other calls run there.
func (v *views) enter(id string) (known looks, alone bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.of(id)
	at.running++
	return at.after, at.running == 1
}

// last is how a directory looked after the last call, nil when that is not remembered or a call runs there.
func (v *views) last(id string) looks {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.seen[id]; at != nil && at.running == 0 {
		return at.after
	}
	return nil
}

func (v *views) leave(id string, now looks) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.seen[id]; at != nil {
		at.running = max(0, at.running-1)
		at.after = now
	}
}

// pictured notes what a picture was taken of: how the directory looked just before, and the index after it. The call
// views start from nothing again, because the checkpoint has noted everything. A nil look forgets the picture.
func (v *views) pictured(id string, seen looks, began time.Time, index stamp) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.of(id)
	at.after, at.picture, at.index, at.at = nil, seen, index, began
	fresh := began.Add(-racy).UnixNano()
	for _, files := range seen {
		for _, f := range files {
			if f.at.CTime > fresh || f.at.MTime > fresh {
				at.picture = nil // it may change again and look the same
				return
			}
		}
	}
}

// same reports whether a directory looks as the newest checkpoint has it.
func (v *views) same(id string, now looks, index stamp, at time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.seen[id]
	return was != nil && was.picture != nil && was.index == index && index != (stamp{}) && at.Sub(was.at) < pictureFor &&
		was.picture.equal(now)
}
