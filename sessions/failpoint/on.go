//go:build failpoint

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Enabled tells whether this build has failpoints.
const Enabled = true

var (
	once  sync.Once
	mu    sync.Mutex
	name  string
	count int
)

// Hit kills the process with SIGKILL when this is the place and the pass that HERALD_FAILPOINT names.
func Hit(place string) {
	once.Do(func() {
		spec := os.Getenv("HERALD_FAILPOINT")
		name, count = spec, 1
		if i := strings.LastIndexByte(spec, ':'); i >= 0 {
			if n, err := strconv.Atoi(spec[i+1:]); err == nil {
				name, count = spec[:i], n
			}
		}
	})
	if name == "" || place != name {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	count--
	if count == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
