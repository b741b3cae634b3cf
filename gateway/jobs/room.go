package jobs

import "sync"

// room counts the runs that go on in this process, so that no more begin than may.
type room struct {
	// most is how many there may be at once; 0 is no limit. freed is called when there is room again.
	most  func() int
	freed func()

	mu     sync.Mutex
	runs   int
	closed bool
}

// enter takes room for a run; ok is false when there is none. leave gives it back, once.
func (r *room) enter() (leave func(), ok bool) {
	most := r.most()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || most > 0 && r.runs >= most {
		return nil, false
	}
	r.runs++
	return sync.OnceFunc(r.leave), true
}

// leave makes room for the next run.
func (r *room) leave() {
	r.mu.Lock()
	r.runs = max(0, r.runs-1) // a turn that an earlier process has begun was never counted
	r.mu.Unlock()
	if r.most() > 0 {
		r.freed()
	}
}

// close lets no more runs begin.
func (r *room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}
