package provision

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/platforms"
)

// Dir is the folder of a home whose files provide jobs.
const Dir = "cron.d"

// The times of a Folder.
const (
	// DefaultSettle is how long a file must stay unchanged before it is read.
	DefaultSettle = 200 * time.Millisecond
	// DefaultPoll is how often the folder is looked at without a word from the system.
	DefaultPoll = 2 * time.Second
	// DefaultGrace is how long a job must be missing from its file, or the file from the folder, before it is removed with
	// its runs: editors and copies take files away for a moment, or leave them half written.
	DefaultGrace = 10 * time.Second
	// DefaultAgain is how often a file is read again that could not be used: what it asks for may be there by now.
	DefaultAgain = time.Minute
)

// Options are what a Folder works with. Zero times take the default.
type Options struct {
	// Home is the profile's home, in which the folder Dir is; it need not be there.
	Home string
	Book *cron.Book
	// Platforms are those that run, for targets; nil asks nothing of them.
	Platforms func() []platforms.Name
	// Redact cleans what is logged and shown: a file may name a secret in the wrong place.
	Redact                     func(string) string
	Settle, Poll, Grace, Again time.Duration
	Log                        zerolog.Logger
	Now                        func() time.Time
}

// File is what became of a file of jobs.
type File struct {
	Name string `json:"name"` // such as cron.d/team.yaml; the folder itself for what is wrong with it
	// Jobs is how many the file provided when it was last good.
	Jobs int `json:"jobs"`
	// Problems say what keeps it from being used, as file:line:column and what to do; the jobs that it provided before stay.
	Problems []string  `json:"problems,omitempty"`
	Since    time.Time `json:"since"` // when this became so
}

// Folder makes and changes the jobs that the files cron.d/*.yaml of a home provide, and follows their changes.
type Folder struct {
	o Options

	mu    sync.Mutex
	files map[string]*watchedFile // by File.Name
	// gone are jobs that their file no longer provides, since when.
	gone map[cron.JobID]time.Time
	// swept: the store's jobs were compared with the files once.
	swept bool
}

// watchedFile is a file as it was last read.
type watchedFile struct {
	File
	stamp   string    // of the content that was read
	next    string    // a newer stamp, not settled yet
	settles time.Time // since when next is seen
	read    time.Time
	ids     map[cron.JobID]bool // what it provides; nil until it was good once
	lost    bool                // it is not there any more
}

// New returns a Folder that has read nothing yet.
func New(o Options) *Folder {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	for _, d := range []struct {
		of   *time.Duration
		want time.Duration
	}{{&o.Settle, DefaultSettle}, {&o.Poll, DefaultPoll}, {&o.Grace, DefaultGrace}, {&o.Again, DefaultAgain}} {
		if *d.of <= 0 {
			*d.of = d.want
		}
	}
	return &Folder{o: o, files: map[string]*watchedFile{}, gone: map[cron.JobID]time.Time{}}
}

// Files are the files that were found, by name, and what is wrong with them.
func (p *Folder) Files() []File {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []File
	for _, f := range p.files {
		if !f.lost {
			out = append(out, f.File)
		}
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Run looks at the folder until ctx ends: when the system tells of a change, and every DefaultPoll in any case.
func (p *Folder) Run(ctx context.Context) {
	w := newFolderWatch(p.o.Home)
	defer w.stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	soon := false // a look is due within Settle already; more changes do not put it off
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.events:
			if !soon {
				soon = true
				timer.Reset(p.o.Settle)
			}
			continue
		case <-timer.C:
		}
		soon = false
		w.arm() // before the look: changes after it are reported again
		again, err := p.Look(ctx)
		if err != nil && ctx.Err() == nil {
			p.o.Log.Error().Err(err).Msg("the jobs of files can't be taken over now; it is tried again")
		}
		timer.Reset(again)
	}
}

// Look takes over what has changed in the folder. A file that is new, or has another content, is read when it has been so
// for the time of Settle; the first time that it is seen after the start, at once. again is after which time another look
// is due at the latest. The error is one of the store; what is wrong with the files is in Files.
func (p *Folder) Look(ctx context.Context) (again time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Now()
	again = p.o.Poll
	stamps, root, why := listFolder(p.o.Home)
	if root != nil {
		defer root.Close()
	}
	p.judge(Dir, why, now)
	if why != nil {
		return again, nil // nothing is taken away on a folder that can't be read
	}
	changed := len(p.gone) > 0
	for _, name := range slices.Sorted(maps.Keys(stamps)) {
		f := p.files[name]
		if f == nil {
			f = &watchedFile{File: File{Name: name, Since: now}, settles: now.Add(-p.o.Settle), next: stamps[name]}
			p.files[name] = f
		}
		f.lost = false
		if wait := f.due(stamps[name], now, p.o); wait > 0 {
			again = min(again, wait)
			continue
		} else if wait < 0 {
			continue
		}
		if err := p.take(ctx, root, f, now); err != nil {
			return again, err
		}
		changed = true
	}
	for name, f := range p.files {
		if _, there := stamps[name]; !there && name != Dir && !f.lost {
			f.lost, f.stamp, f.next, changed = true, "", "", true // read again when it comes back
			p.o.Log.Info().Str("file", name).Msg("a file of jobs is gone")
		}
	}
	if !changed && p.swept {
		return again, nil
	}
	return again, p.sweep(ctx, now)
}

// due says whether a file is to be read now (0), in how long (more), or not at all (less).
func (f *watchedFile) due(stamp string, now time.Time, o Options) time.Duration {
	if stamp == f.stamp {
		f.next = stamp
		if len(f.Problems) > 0 && now.Sub(f.read) >= o.Again {
			return 0
		}
		return -1
	}
	if stamp != f.next {
		f.next, f.settles = stamp, now
	}
	return max(0, o.Settle-now.Sub(f.settles))
}

// take reads a file and takes its jobs over.
func (p *Folder) take(ctx context.Context, root *os.Root, f *watchedFile, now time.Time) error {
	f.read = now
	data, stamp, why := read(root, f.Name)
	if why != nil {
		f.stamp = f.next
		p.judge(f.Name, why, now)
		return nil
	}
	provided := readProvided(f.Name, data)
	if p.o.Platforms != nil {
		provided.aim(p.o.Platforms())
	}
	changed := 0
	if len(provided.problems) == 0 {
		var bad []*cron.ProvidedError
		var err error
		if changed, bad, err = p.o.Book.Provide(ctx, f.Name, provided.jobs); err != nil {
			return err // it is read again at the next look
		}
		provided.reject(bad)
	}
	f.stamp, f.next = stamp, stamp
	if texts := provided.texts(); len(texts) > 0 {
		p.judge(f.Name, errors.New(strings.Join(texts, "\n")), now)
		return nil
	}
	p.judge(f.Name, nil, now)
	f.Jobs, f.ids = len(provided.jobs), map[cron.JobID]bool{}
	for _, j := range provided.jobs {
		f.ids[j.ID] = true
	}
	if changed > 0 {
		p.o.Log.Info().Str("file", f.Name).Int("jobs", f.Jobs).Int("changed", changed).Msg("a file of jobs was taken over")
	}
	return nil
}

// judge notes what is wrong with a file, and logs it when that is new.
func (p *Folder) judge(name string, why error, now time.Time) {
	f := p.files[name]
	if f == nil {
		if why == nil {
			return
		}
		f = &watchedFile{File: File{Name: name}}
		p.files[name] = f
	}
	var problems []string
	if why != nil {
		problems = strings.Split(p.o.Redact(why.Error()), "\n")
	}
	if slices.Equal(problems, f.Problems) {
		return
	}
	if len(problems) > 0 {
		p.o.Log.Error().Str("file", name).Strs("problems", problems).
			Msg("a file of jobs can't be used; the jobs that it provided before stay")
	} else {
		p.o.Log.Info().Str("file", name).Msg("a file of jobs can be used again")
	}
	f.Problems, f.Since = problems, now
	if name == Dir && why == nil {
		delete(p.files, name)
	}
}

// sweep removes the jobs that no file provides any more and that have been so for the time of Grace.
func (p *Folder) sweep(ctx context.Context, now time.Time) error {
	list, err := p.o.Book.List(ctx)
	if err != nil {
		return err
	}
	gone := map[cron.JobID]time.Time{}
	over := map[string][]cron.JobID{}
	for _, j := range list {
		if !j.Managed() || p.provides(j) {
			continue
		}
		since, known := p.gone[j.ID]
		if !known {
			since = now
		}
		gone[j.ID] = since
		if now.Sub(since) >= p.o.Grace {
			over[j.Source] = append(over[j.Source], j.ID)
		}
	}
	p.gone, p.swept = gone, true
	for source, ids := range over {
		n, err := p.o.Book.Withdraw(ctx, source, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			delete(p.gone, id)
		}
		p.o.Log.Info().Str("file", source).Int("jobs", n).Msg("jobs were removed: their file does not provide them any more")
	}
	return nil
}

// provides reports whether a job stays: its file has it, or can't be read to know.
func (p *Folder) provides(j cron.Job) bool {
	f := p.files[j.Source]
	return f != nil && !f.lost && (f.ids == nil || len(f.Problems) > 0 || f.ids[j.ID])
}
