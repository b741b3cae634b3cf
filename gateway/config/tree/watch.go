package tree

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchOptions are the times of Watch. Zero fields take the default.
type WatchOptions struct {
	// Settle is how long the files must be quiet before they are read (default 200 ms): editors write in steps.
	Settle time.Duration
	// Poll is how often the files are looked at all the same (default 2 s): for a file that is new, and for file
	// systems that report no changes, such as NFS.
	Poll time.Duration
}

// Watch calls read whenever the content of files has changed, and once at the beginning, until ctx ends. It calls it from
// one goroutine, its caller's. read returns what is to be done with what was read; that is called when the files are the
// same after the reading as before, so that a change that is undone at once does not go unnoticed. Files need not exist.
// Watch returns ctx's error.
func Watch(ctx context.Context, files []string, opts WatchOptions, read func() (use func())) error {
	if opts.Settle <= 0 {
		opts.Settle = 200 * time.Millisecond
	}
	if opts.Poll <= 0 {
		opts.Poll = 2 * time.Second
	}
	w := &watch{files: files, read: read}
	events, stop := w.notify()
	defer stop()
	w.arm()
	w.load(w.content()) // what changed since the caller has read the files

	poll := time.NewTicker(opts.Poll)
	defer poll.Stop()
	settle := time.NewTimer(opts.Settle)
	settle.Stop()
	defer settle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, ok := <-events:
			if !ok {
				events = nil // polling goes on
				continue
			}
			settle.Reset(opts.Settle)
		case <-settle.C:
			w.look()
		case <-poll.C:
			w.look()
		}
	}
}

// watch is the state of one Watch.
type watch struct {
	files []string
	read  func() (use func())
	seen  [sha256.Size]byte
	// notifier is nil without the system's help.
	notifier *fsnotify.Watcher
}

// notify asks the system for changes. Without its help the channel is nil and polling is all there is.
func (w *watch) notify() (<-chan fsnotify.Event, func()) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, func() {}
	}
	w.notifier = n
	done := make(chan struct{})
	go func() { // errors (a full queue) are made good by polling
		defer close(done)
		for range n.Errors {
		}
	}()
	return n.Events, func() {
		_ = n.Close()
		<-done
	}
}

// arm watches the files that are there; doing it again takes up those that are new or were replaced. It is the files
// and not their directory: the database lives beside them, and each of its writes would wake us.
func (w *watch) arm() {
	if w.notifier == nil {
		return
	}
	for _, f := range w.files {
		_ = w.notifier.Add(f) // one that can't be watched is polled
	}
}

// content is a hash over the files and their modes.
func (w *watch) content() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, name := range w.files {
		f, err := os.Open(name)
		if err != nil {
			_, _ = io.WriteString(h, "\x00"+err.Error())
			continue
		}
		if info, err := f.Stat(); err == nil {
			_, _ = io.WriteString(h, "\x01"+info.Mode().String())
		}
		_, _ = io.Copy(h, io.LimitReader(f, MaxFileBytes+1))
		_ = f.Close()
	}
	h.Sum(sum[:0])
	return sum
}

// look loads when the content is another than before. What changes after arm is notified again, what changed before it
// is in the content.
func (w *watch) look() {
	w.arm()
	if sum := w.content(); sum != w.seen {
		w.load(sum)
	}
}

func (w *watch) load(sum [sha256.Size]byte) {
	var use func()
	for range maxReads {
		w.seen = sum
		use = w.read()
		if sum = w.content(); sum == w.seen {
			break
		}
	}
	use()
}

// maxReads bounds how often files that change all the time are read for one load; the next look goes on.
const maxReads = 10
