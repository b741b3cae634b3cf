package faults

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Routes are the routes of a fake with the number of requests that each has answered, over all servers of that fake in
// this process. A route that no adapter calls is code that nothing proves true: Called finds it.
type Routes struct {
	fake string
	mu   sync.Mutex
	hits map[string]int
}

// NewRoutes returns the routes of a fake that has none yet.
func NewRoutes(fake string) *Routes { return &Routes{fake: fake, hits: map[string]int{}} }

// Add makes routes known; each server of the fake adds its own when it is made. What was called stays so.
func (r *Routes) Add(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		r.hits[name] += 0
	}
}

// Hit notes a request. A name that is no route of the fake is not noted.
func (r *Routes) Hit(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.hits[name]; ok {
		r.hits[name]++
	}
}

// Unused returns the routes that were never called, sorted.
func (r *Routes) Unused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for name, n := range r.hits {
		if n == 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Called ends a test binary with its exit code, or with 1 when the whole package was run, all its tests have passed and a
// route was never called. It is for goleak.Cleanup in the TestMain of an adapter's package. except are routes
// that other programs need: the clients that replace the platform's own in the tests of the fake.
func Called(r *Routes, except ...string) func(code int) {
	return func(code int) {
		r.end(code, "the adapter never calls (remove them, or test what calls them)", func(name string) bool { return !slices.Contains(except, name) })
	}
}

// Needed ends a test binary like Called, but looks only at the named routes: it is for the fake's own tests, and fails when
// what is kept for other clients than our adapter is called by none of them. Those clients may be missing on a developer's
// machine; where the variable CI is set they are not, and only there it is checked.
func Needed(r *Routes, names ...string) func(code int) {
	return func(code int) {
		r.end(code, "nobody calls (remove them)", func(name string) bool { return os.Getenv("CI") != "" && slices.Contains(names, name) })
	}
}

// end ends the test binary, with 1 in place of 0 when the whole package was run and a route that counts was never called.
func (r *Routes) end(code int, complaint string, counts func(name string) bool) {
	if code == 0 && wholePackage() {
		unused := slices.DeleteFunc(r.Unused(), func(name string) bool { return !counts(name) })
		if len(unused) > 0 {
			fmt.Fprintf(os.Stderr, "routes of %s that %s:\n  %s\n", r.fake, complaint, strings.Join(unused, "\n  "))
			code = 1
		}
	}
	os.Exit(code)
}

// wholePackage reports whether every test of the binary was run.
func wholePackage() bool {
	for _, name := range []string{"test.run", "test.skip", "test.fuzz", "test.list", "test.bench"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}
