package tools

import (
	"context"
	"sync"
	"time"
	"unsafe"

	"github.com/rs/zerolog"
)

// The times of the availability cache.
const (
	// CheckTTL is how long a verdict holds.
	CheckTTL = 30 * time.Second
	// CheckFlap is how long after its last success a failing check still counts as good: a Docker daemon
	// or a proxy that hiccups must not change the tools that a model sees.
	CheckFlap = 60 * time.Second
	// checkLimit bounds one probe.
	checkLimit = 10 * time.Second
	// checkEntries is how many verdicts are kept; the oldest goes first.
	checkEntries = 512
)

// checkID tells check functions apart: it is the address of the closure, so that two closures over
// different values differ and one function shared by many tools is one.
type checkID unsafe.Pointer

type checkFunc = func(context.Context) bool

func idOf(fn checkFunc) checkID { return *(*checkID)(unsafe.Pointer(&fn)) }

// availability remembers verdicts.
type availability struct {
	clock func() time.Time
	log   zerolog.Logger

	mu       sync.Mutex
	verdicts map[checkID]verdict
	order    []checkID // by age of insertion
	epoch    int       // rises with invalidate, so that a probe that ran across it is not kept
}

type verdict struct {
	// fn keeps the closure alive, so that its address can't be reused for another one.
	fn     checkFunc
	known  bool // ok and at hold
	ok     bool
	at     time.Time
	lastOK time.Time
}

func newAvailability(clock func() time.Time, log zerolog.Logger) *availability {
	return &availability{clock: clock, log: log, verdicts: map[checkID]verdict{}}
}

// ok reports whether a check passes, from the cache while that is fresh. name is for the log.
func (a *availability) ok(ctx context.Context, name string, fn checkFunc) bool {
	if fn == nil {
		return true
	}
	if ok, known := a.peek(fn); known {
		return ok
	}
	a.mu.Lock()
	epoch := a.epoch
	a.mu.Unlock()

	good := a.probe(ctx, name, fn)
	if !good && ctx.Err() != nil {
		return false // says nothing about the tool
	}
	now := a.clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.epoch != epoch {
		return good
	}
	v := a.verdicts[idOf(fn)]
	v.fn = fn
	switch {
	case good:
		v.known, v.ok, v.at, v.lastOK = true, true, now, now
	case !v.lastOK.IsZero() && now.Sub(v.lastOK) < CheckFlap:
		a.log.Debug().Str("tool", name).Msg("availability check failed soon after a success, tool kept")
		return true
	default:
		a.log.Warn().Str("tool", name).Msg("availability check failed, tool left out")
		v.known, v.ok, v.at = true, false, now
	}
	a.put(v)
	return good
}

// peek returns the cached verdict; known is false when there is none or when it is stale. It never probes.
func (a *availability) peek(fn checkFunc) (ok, known bool) {
	if fn == nil {
		return true, true
	}
	now := a.clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.verdicts[idOf(fn)]
	if !v.known || now.Sub(v.at) >= CheckTTL {
		return false, false
	}
	return v.ok, true
}

// probe runs the check; a panic is a no.
func (a *availability) probe(ctx context.Context, name string, fn checkFunc) (ok bool) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			a.log.Warn().Str("tool", name).Interface("panic", p).Msg("availability check panicked, tool left out")
			ok = false
		}
	}()
	return fn(ctx)
}

// put needs the lock.
func (a *availability) put(v verdict) {
	id := idOf(v.fn)
	if _, known := a.verdicts[id]; !known {
		if len(a.order) >= checkEntries {
			delete(a.verdicts, a.order[0])
			a.order = append(a.order[:0], a.order[1:]...)
		}
		a.order = append(a.order, id)
	}
	a.verdicts[id] = v
}

func (a *availability) invalidate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch++
	a.verdicts = map[checkID]verdict{}
	a.order = nil
}

// InvalidateChecks forgets all availability verdicts, those of the base included. Call it after a change of configuration.
func (r *Registry) InvalidateChecks() {
	r.checks.invalidate()
	if r.base != nil {
		r.base.InvalidateChecks()
	}
}

// Available reports whether a tool can be offered now. An unknown one can't. Verdicts are kept for
// CheckTTL; a failure within CheckFlap of the last success still counts as available.
func (r *Registry) Available(ctx context.Context, name string) bool {
	e := r.lookup(name)
	return e != nil && r.checks.ok(ctx, name, e.tool.Check)
}

// PeekAvailable returns the cached verdict without running a check; known is false when
// there is none.
func (r *Registry) PeekAvailable(name string) (ok, known bool) {
	e := r.lookup(name)
	if e == nil {
		return false, true
	}
	return r.checks.peek(e.tool.Check)
}

// ToolsetAvailable reports whether at least one of the toolset's tools can be offered now.
func (r *Registry) ToolsetAvailable(ctx context.Context, toolset string) bool {
	names, _ := r.Resolve(toolset)
	pass := r.newPass()
	for _, name := range names {
		if e := r.lookup(name); e != nil && pass.ok(ctx, e) {
			return true
		}
	}
	return false
}

// pass makes sure that one listing asks each distinct check once, also where its verdict is not cached.
type pass struct {
	checks *availability
	seen   map[checkID]bool
}

func (r *Registry) newPass() *pass { return &pass{checks: r.checks, seen: map[checkID]bool{}} }

func (p *pass) ok(ctx context.Context, e *entry) bool {
	fn := e.tool.Check
	if fn == nil {
		return true
	}
	id := idOf(fn)
	verdict, seen := p.seen[id]
	if !seen {
		verdict = p.checks.ok(ctx, e.tool.Name, fn)
		p.seen[id] = verdict
	}
	return verdict
}
