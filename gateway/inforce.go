package gateway

import (
	"sync/atomic"

	"herald/gateway/config"
)

// inForce is the configuration that holds now, with the file that changes of it go to.
type inForce struct {
	atomic.Pointer[config.Config]
	file string
}

func newInForce(cfg *config.Config, file string) *inForce {
	f := &inForce{file: file}
	f.Store(cfg)
	return f
}

// Current returns the configuration; it is never changed in place.
func (f *inForce) Current() *config.Config { return f.Load() }

// Edit changes the text of the file, and by adopt what is in force, before the file is read again.
func (f *inForce) Edit(text func([]byte) ([]byte, error), adopt func(*config.Config)) error {
	if err := EditConfig(f.file, text); err != nil {
		return err
	}
	for {
		old := f.Load()
		next := *old
		adopt(&next)
		if f.CompareAndSwap(old, &next) {
			return nil
		}
	}
}
