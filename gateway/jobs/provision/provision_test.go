package provision_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs/provision"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

// shelf is a home with a folder of jobs, a store, and a clock that only the test moves.
type shelf struct {
	t     *testing.T
	home  string
	store *sqlite.Store
	book  *cron.Book
	log   lockedBuffer
	check func(cron.Task) error
	*provision.Folder

	mu  sync.Mutex
	now time.Time
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{t: t, home: t.TempDir(), now: time.Now()}
	store, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(s.home, "herald.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s.store = store
	s.book = cron.NewBook(cron.BookOptions{Store: store, Zone: func() *time.Location { return time.UTC }, Now: s.clock,
		Check: func(_ context.Context, task cron.Task) error {
			if s.check == nil {
				return nil
			}
			return s.check(task)
		}})
	require.NoError(t, os.Mkdir(filepath.Join(s.home, "cron.d"), 0o700))
	s.restart()
	return s
}

// restart begins with what is on the disk, as a new process does.
func (s *shelf) restart() {
	s.Folder = provision.New(provision.Options{Home: s.home, Book: s.book, Now: s.clock, Log: zerolog.New(&s.log),
		Platforms: func() []platforms.Name { return []platforms.Name{"telegram", "slack"} },
		Redact:    func(text string) string { return strings.ReplaceAll(text, "geheim", "***") }})
}

func (s *shelf) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// pass lets time go by and looks.
func (s *shelf) pass(d time.Duration) {
	s.t.Helper()
	s.mu.Lock()
	s.now = s.now.Add(d)
	s.mu.Unlock()
	_, err := s.Look(context.Background())
	require.NoError(s.t, err)
}

// settled looks until what changed before has been read.
func (s *shelf) settled() {
	s.t.Helper()
	s.pass(0)
	s.pass(provision.DefaultSettle)
}

func (s *shelf) path(name string) string { return filepath.Join(s.home, "cron.d", name) }

func (s *shelf) write(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.path(name), []byte(text), 0o600))
}

// jobs are the jobs in the store: source and name.
func (s *shelf) jobs() map[string]cron.Job {
	s.t.Helper()
	list, err := s.book.List(context.Background())
	require.NoError(s.t, err)
	out := map[string]cron.Job{}
	for _, j := range list {
		out[j.Source+"/"+j.Name] = j
	}
	return out
}

// problems are those of all files.
func (s *shelf) problems() string {
	var all []string
	for _, f := range s.Files() {
		all = append(all, f.Problems...)
	}
	return strings.Join(all, "\n")
}

const morning = `
jobs:
  morning:
    schedule: every weekday at 9am
    prompt: What is on today?
    deliver: origin
  tidy:
    schedule: 30m
    script: tidy.sh
    no_agent: true
    repeat: forever
`

func TestProvision_MakesTheJobsOfAFile(t *testing.T) {
	s := newShelf(t)
	s.write("team.yaml", morning)
	s.pass(0)
	got := s.jobs()
	require.Len(t, got, 2)
	j := got["cron.d/team.yaml/morning"]
	require.Equal(t, cron.ProvidedID("cron.d/team.yaml", "morning"), j.ID)
	require.False(t, j.Next.IsZero())
	task, err := j.Plan.ReadTask()
	require.NoError(t, err)
	require.Equal(t, cron.Task{Prompt: "What is on today?", Deliver: "origin"}, task)
	require.Equal(t, []provision.File{{Name: "cron.d/team.yaml", Jobs: 2, Since: s.clock()}}, s.Files())
}

// Every field of a job in a file reaches the job.
func TestProvision_EveryField(t *testing.T) {
	s := newShelf(t)
	s.write("all.yaml", `
jobs:
  first: &base
    schedule: 2099-01-31T09:00
    prompt: |
      One
      two
    skills: [a, b]
  second:
    <<: *base
    name: The second
    repeat: 3
    schedule: 0 9 * * 1-5
    skills: c, d
    monitor: https://example.org/feed
    context_from: [first, self]
    deliver: [telegram:7, all]
    failure_deliver: local
    attach_to_session: false
    enabled_toolsets: web
    workdir: /srv
    model: 4
    reasoning_effort: high
    paused: true
    paused_reason: not yet
  third: {schedule: every hour, script: x.sh, no_agent: true, continuity: false, monitor: "", repeat: once}
`)
	s.pass(0)
	require.Empty(t, s.problems())
	got := s.jobs()
	no := false
	task, err := got["cron.d/all.yaml/The second"].Plan.ReadTask()
	require.NoError(t, err)
	require.Equal(t, cron.Task{Prompt: "One\ntwo", Skills: []string{"c", "d"}, MonitorURL: "https://example.org/feed",
		ContextFrom: []string{string(got["cron.d/all.yaml/first"].ID), cron.Self}, Deliver: "telegram:7,all", FailureDeliver: "local", Attach: &no,
		Toolsets: []string{"web"}, Workdir: "/srv", Model: "4", Reasoning: "high"}, task)
	require.True(t, got["cron.d/all.yaml/The second"].Plan.Paused)
	require.Equal(t, "not yet", got["cron.d/all.yaml/The second"].Plan.PausedWhy)
	require.Equal(t, 3, got["cron.d/all.yaml/The second"].Plan.Times)
	require.Equal(t, 1, got["cron.d/all.yaml/third"].Plan.Times)
	require.Equal(t, cron.ProvidedID("cron.d/all.yaml", "second"), got["cron.d/all.yaml/The second"].ID, "the key and not the name makes the id")
}

// What is wrong is reported with file, line and column, what is allowed, and what was probably meant.
func TestProvision_SaysWhatIsWrongAndWhere(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":         {"jobs:\n  a: [\n", "cron.d/a.yaml:2:1: this is not YAML"},
		"a list":          {"- a\n", "cron.d/a.yaml:1:1: want \"jobs:\""},
		"other key":       {"job:\n  a: {}\n", `cron.d/a.yaml:1:1: "job": no such key, only "jobs"; did you mean jobs?`},
		"field at top":    {"schedule: 30m\n", `it belongs into a job`},
		"no block":        {"jobs: [a]\n", "cron.d/a.yaml:1:7: jobs: want names of jobs"},
		"no fields":       {"jobs:\n  a: 30m\n", `cron.d/a.yaml:2:3: job "a": want its fields below it: name, schedule`},
		"unknown field":   {"jobs:\n  a:\n    schedule: 30m\n    promt: x\n", `cron.d/a.yaml:4:5: job "a": "promt": no such field; did you mean prompt?`},
		"known elsewhere": {"jobs:\n  a:\n    schedule: 30m\n    message: x\n", `did you mean prompt?`},
		"an origin":       {"jobs:\n  a:\n    schedule: 30m\n    prompt: x\n    origin: {}\n", `cron.d/a.yaml:5:5: job "a": "origin": no such field; a job of a file is made in no chat`},
		"wrong type":      {"jobs:\n  a:\n    schedule: 30m\n    prompt: x\n    paused: maybe\n", `cron.d/a.yaml:5:13: job "a": paused: "maybe" is no good: want true or false`},
		"text and list":   {"jobs:\n  a:\n    schedule: [30m]\n    prompt: x\n", `cron.d/a.yaml:3:15: job "a": schedule: a list is no good`},
		"list and block":  {"jobs:\n  a:\n    schedule: 30m\n    skills: {a: b}\n", `cron.d/a.yaml:4:13: job "a": skills: a block of fields is no good: want a list of names`},
		"list in list":    {"jobs:\n  a:\n    schedule: 30m\n    skills: [[a]]\n", `skills: a list is no good`},
		"empty":           {"jobs:\n  a:\n    schedule: 30m\n    prompt:\n", `job "a": prompt: it is empty`},
		"no schedule":     {"jobs:\n  a:\n    prompt: x\n", `cron.d/a.yaml:2:3: job "a": schedule: it is missing`},
		"bad schedule":    {"jobs:\n  a:\n    prompt: x\n    schedule: sometimes\n", `cron.d/a.yaml:4:15: job "a": schedule "sometimes": it is none of the forms`},
		"past":            {"jobs:\n  a:\n    prompt: x\n    schedule: 2020-01-01\n", `cron.d/a.yaml:4:15: job "a": schedule "2020-01-01": 2020-01-01T00:00:00Z has passed`},
		"repeat":          {"jobs:\n  a:\n    prompt: x\n    schedule: 30m\n    repeat: often\n", `cron.d/a.yaml:5:13: job "a": repeat: "often" is no good: want a number of runs, "once" or "forever"`},
		"repeat below 0":  {"jobs:\n  a:\n    prompt: x\n    schedule: 30m\n    repeat: -3\n", `repeat: "-3" is no good`},
		"nothing to do":   {"jobs:\n  a:\n    schedule: 30m\n", `cron.d/a.yaml:2:3: job "a": prompt: the job has nothing to do`},
		"twice":           {"jobs:\n  a: {schedule: 30m, prompt: x}\n  a: {schedule: 30m, prompt: y}\n", `cron.d/a.yaml:3:3: "a" stands twice; the first is in line 2`},
		"no target":       {"jobs:\n  a:\n    schedule: 30m\n    prompt: x\n    deliver: telegarm\n", `cron.d/a.yaml:5:14: job "a": deliver: no platform called "telegarm" runs here; did you mean telegram?`},
		"target not on":   {"jobs:\n  a:\n    schedule: 30m\n    prompt: x\n    failure_deliver: telegram, matrix:7\n", `cron.d/a.yaml:5:22: job "a": failure_deliver: no platform called "matrix" runs here; those that do: telegram, slack`},
		"no skill":        {"jobs:\n  a:\n    schedule: 30m\n    prompt: x\n    skills: none\n", `cron.d/a.yaml:5:13: job "a": skills "none": no such skill`},
		"two documents":   {"jobs: {}\n---\njobs: {}\n", `a second document begins here`},
		"endless alias":   {"jobs:\n  a: &a\n    <<: *a\n    schedule: 30m\n", `<< wants an alias`},
		"several":         {"jobs:\n  a: {schedule: x, prompt: x}\n  b: {schedule: y, prompt: x}\n", "b.yaml:3:17"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			s.check = func(task cron.Task) error {
				if len(task.Skills) > 0 {
					return &cron.TaskError{Field: "skills", Value: task.Skills[0], Reason: "no such skill"}
				}
				return nil
			}
			file := "a.yaml"
			if strings.HasPrefix(c.want, "b.yaml") {
				file = "b.yaml"
			}
			s.write(file, c.text)
			s.pass(0)
			require.Contains(t, s.problems(), c.want)
			require.Empty(t, s.jobs())
			require.Equal(t, 1, strings.Count(s.log.String(), "can't be used"))
		})
	}
	s := newShelf(t)
	s.write("a.yaml", "jobs:\n  a: {schedul: 30m, prompt: x}\n")
	s.pass(0)
	require.Equal(t, `cron.d/a.yaml:2:7: job "a": "schedul": no such field; did you mean schedule?`, s.problems(),
		"one mistake is reported once")
}

// A file that can't be used changes nothing, is reported once, and is used again when it is good.
func TestProvision_ABadFileKeepsItsJobs(t *testing.T) {
	s := newShelf(t)
	s.write("team.yaml", morning)
	s.write("good.yaml", "jobs:\n  other: {schedule: 30m, prompt: x}\n")
	s.pass(0)
	before := s.jobs()
	require.Len(t, before, 3)
	s.write("team.yaml", strings.Replace(morning, "prompt", "promt geheim", 1))
	s.write("good.yaml", "jobs:\n  other: {schedule: 45m, prompt: x}\n")
	s.settled()
	for range 20 {
		s.pass(30 * time.Second) // a restart of the look, and reads of the bad file again
	}
	got := s.jobs()
	require.Equal(t, before["cron.d/team.yaml/morning"], got["cron.d/team.yaml/morning"])
	require.Equal(t, before["cron.d/team.yaml/tidy"], got["cron.d/team.yaml/tidy"])
	require.Equal(t, "every 45m", got["cron.d/good.yaml/other"].Plan.Schedule.Display, "a good file beside it is used")
	require.Equal(t, 1, strings.Count(s.log.String(), "can't be used"))
	require.NotContains(t, s.log.String()+s.problems(), "geheim")

	s.restart() // also for a process that never saw the file good
	s.pass(0)
	s.pass(time.Minute)
	require.Len(t, s.jobs(), 3)
	require.NotEmpty(t, s.problems())

	s.write("team.yaml", strings.Replace(morning, "9am", "10am", 1))
	s.settled()
	require.Empty(t, s.problems())
	require.Equal(t, "every weekday at 10am", s.jobs()["cron.d/team.yaml/morning"].Plan.Schedule.Display)
	require.Contains(t, s.log.String(), "can be used again")
}

// What a file asks for may be there later: it is tried again without being touched.
func TestProvision_TriesAgain(t *testing.T) {
	s := newShelf(t)
	s.check = func(cron.Task) error {
		return &cron.TaskError{Field: "skills", Value: "news", Reason: "no such skill"}
	}
	s.write("team.yaml", morning)
	s.pass(0)
	require.Contains(t, s.problems(), `skills "news"`)
	s.check = nil
	s.pass(time.Second)
	require.Empty(t, s.jobs())
	s.pass(provision.DefaultAgain)
	require.Len(t, s.jobs(), 2)
	require.Empty(t, s.problems())
}

// A job that has left its file, and the jobs of a file that is gone, are removed after a while, with their runs; jobs of
// chats stay.
func TestProvision_RemovesWhatIsGone(t *testing.T) {
	s := newShelf(t)
	ctx := context.Background()
	s.write("team.yaml", morning)
	s.write("more.yaml", "jobs:\n  other: {schedule: 30m, prompt: x}\n")
	s.pass(0)
	prompt, schedule := "mine", "30m"
	chat, err := s.book.Create(ctx, cron.Change{Prompt: &prompt, Schedule: &schedule}, cron.By{Source: cron.FromChat})
	require.NoError(t, err)
	gone := s.jobs()["cron.d/team.yaml/tidy"]
	require.NoError(t, s.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		_, err := tx.ClaimRun(&sessions.Run{Job: gone.ID, Slot: gone.Next, Kind: sessions.RunOnTime, State: sessions.RunClaimed,
			Began: s.clock()}, time.Time{})
		return err
	}))

	s.write("team.yaml", strings.Split(morning, "  tidy:")[0])
	require.NoError(t, os.Remove(s.path("more.yaml")))
	s.settled()
	require.Len(t, s.jobs(), 4, "not yet")
	s.pass(provision.DefaultGrace)
	got := s.jobs()
	require.Len(t, got, 2)
	require.Contains(t, got, "cron.d/team.yaml/morning")
	require.Contains(t, got, "chat/"+chat.Name)
	runs, err := s.book.Runs(ctx, gone.ID, 10)
	require.NoError(t, err)
	require.Empty(t, runs)

	// Also what went while nobody looked.
	require.NoError(t, os.RemoveAll(filepath.Join(s.home, "cron.d")))
	s.restart()
	s.pass(0)
	s.pass(provision.DefaultGrace)
	require.Len(t, s.jobs(), 1)
	require.Empty(t, s.Files())
}

// Editors save in steps: a half-written file, one that is renamed away and written again, one that is gone for a moment.
// What has become of a job outlives each.
func TestProvision_EditorsSaves(t *testing.T) {
	s := newShelf(t)
	s.write("team.yaml", morning)
	s.pass(0)
	before := s.jobs()["cron.d/team.yaml/tidy"]
	require.Len(t, s.jobs(), 2)
	for name, save := range map[string]func(){
		"in steps": func() { // what is there in between is YAML too, with one job
			half, rest, _ := strings.Cut(morning, "  tidy:")
			s.write("team.yaml", half+"  tidy:\n    sched")
			s.pass(provision.DefaultSettle / 2)
			require.Empty(t, s.problems(), "it is not read before it is settled")
			s.write("team.yaml", half)
			s.pass(provision.DefaultSettle / 2)
			f, err := os.OpenFile(s.path("team.yaml"), os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			s.pass(provision.DefaultSettle / 2)
			_, err = f.WriteString("  tidy:" + rest)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
		"slowly in steps": func() { // longer than it takes to settle
			half, rest, _ := strings.Cut(morning, "  tidy:")
			s.write("team.yaml", half)
			s.settled()
			s.pass(provision.DefaultGrace / 2)
			s.write("team.yaml", half+"  tidy:"+rest)
		},
		"renamed over": func() {
			require.NoError(t, os.WriteFile(s.path(".team.yaml.swp"), []byte(morning), 0o600))
			s.settled()
			require.NoError(t, os.Rename(s.path(".team.yaml.swp"), s.path("team.yaml")))
		},
		"renamed away and back": func() {
			require.NoError(t, os.Rename(s.path("team.yaml"), s.path("team.yaml~")))
			s.pass(time.Second)
			s.write("team.yaml", morning)
			s.pass(0)
			require.NoError(t, os.Remove(s.path("team.yaml~")))
		},
		"moved out and in": func() {
			require.NoError(t, os.Rename(s.path("team.yaml"), filepath.Join(s.home, "aside")))
			s.settled()
			require.NoError(t, os.Rename(filepath.Join(s.home, "aside"), s.path("team.yaml")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			save()
			s.settled()
			s.pass(provision.DefaultGrace)
			s.pass(provision.DefaultGrace)
			require.Empty(t, s.problems())
			require.Equal(t, before, s.jobs()["cron.d/team.yaml/tidy"])
			require.Len(t, s.jobs(), 2)
		})
	}
}

// A file that others can write, or that lies outside of the home, says what the agent does, so it is refused (P7).
func TestProvision_RefusesFilesOfOthers(t *testing.T) {
	s := newShelf(t)
	outside := filepath.Join(t.TempDir(), "evil.yaml")
	require.NoError(t, os.WriteFile(outside, []byte(morning), 0o600))
	for name, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"writable by all":   {func(p string) error { return os.Chmod(p, 0o602) }, "others may change it (mode 0602); run: chmod go-w cron.d/team.yaml"},
		"writable by group": {func(p string) error { return os.Chmod(p, 0o620) }, "others may change it (mode 0620)"},
		"link out": {func(p string) error {
			_ = os.Remove(p)
			return os.Symlink(outside, p)
		}, "a link that leads out of the home"},
		"link to nowhere": {func(p string) error {
			_ = os.Remove(p)
			return os.Symlink("nothing", p)
		}, "a link that leads out of the home or nowhere"},
		"pipe": {func(p string) error {
			_ = os.Remove(p)
			return syscall.Mkfifo(p, 0o600)
		}, "it is no file"},
		"folder": {func(p string) error {
			_ = os.Remove(p)
			return os.Mkdir(p, 0o700)
		}, "it is no file"},
		"too large": {func(p string) error { return os.Truncate(p, provision.MaxBytes+1) }, "it is larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s.write("team.yaml", morning)
			require.NoError(t, c.make(s.path("team.yaml")))
			s.settled()
			require.Contains(t, s.problems(), "cron.d/team.yaml: ")
			require.Contains(t, s.problems(), c.want)
			require.Empty(t, s.jobs())
			require.NoError(t, os.RemoveAll(s.path("team.yaml")))
			s.settled()
			require.Empty(t, s.problems())
		})
	}
	if os.Geteuid() == 0 {
		s.write("team.yaml", morning)
		require.NoError(t, os.Chown(s.path("team.yaml"), 4711, -1))
		s.settled()
		require.Contains(t, s.problems(), "it belongs to user 4711, and Herald runs as user 0; run: chown 0")
		require.NoError(t, os.Chown(s.path("team.yaml"), 0, -1))
		s.settled()
		require.Len(t, s.jobs(), 2, "mended without being written")
	}
	require.NoError(t, os.Chmod(filepath.Join(s.home, "cron.d"), 0o777))
	kept := s.jobs()
	require.NoError(t, os.RemoveAll(s.path("team.yaml")))
	s.settled()
	s.pass(provision.DefaultGrace)
	require.Equal(t, "cron.d: others may change it (mode 0777); run: chmod go-w cron.d", s.problems())
	require.Equal(t, kept, s.jobs(), "what others may have done to the folder changes nothing")
}

// A link inside the home is one of its owner's, such as those of a mounted volume.
func TestProvision_LinksInsideTheHome(t *testing.T) {
	s := newShelf(t)
	require.NoError(t, os.Mkdir(s.path("..data"), 0o700))
	require.NoError(t, os.WriteFile(s.path("..data/team.yaml"), []byte(morning), 0o600))
	require.NoError(t, os.Symlink("..data/team.yaml", s.path("team.yaml")))
	s.write("old.yml", morning)
	s.pass(0)
	require.Len(t, s.jobs(), 2)
	require.Equal(t, "cron.d/old.yml: it is not read; let its name end in .yaml", s.problems())
}

// A thousand jobs are one change, and the same file again changes nothing.
func TestProvision_AThousandJobs(t *testing.T) {
	s := newShelf(t)
	var b strings.Builder
	b.WriteString("jobs:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  job %d: {schedule: every %dm, prompt: Do number %d}\n", i, 1+i%50, i)
	}
	s.write("many.yaml", b.String())
	s.pass(0)
	require.Empty(t, s.problems())
	before := s.jobs()
	require.Len(t, before, 1000)
	s.pass(time.Hour)
	s.write("many.yaml", b.String()+"# seen\n")
	s.settled()
	require.Equal(t, before, s.jobs())
	s.write("many.yaml", strings.Replace(b.String(), "Do number 500", "Do it", 1))
	s.settled()
	changed := 0
	for name, j := range s.jobs() {
		if !j.Updated.Equal(before[name].Updated) {
			changed++
			require.Equal(t, "cron.d/many.yaml/job 500", name)
			require.Equal(t, before[name].Next, j.Next)
		}
	}
	require.Equal(t, 1, changed)
}

// The real loop: what is done to the files is taken over without a restart, and the loop ends with its context.
func TestProvision_Run(t *testing.T) {
	s := newShelf(t)
	require.NoError(t, os.Remove(filepath.Join(s.home, "cron.d"))) // it is made while the daemon runs
	p := provision.New(provision.Options{Home: s.home, Book: s.book, Settle: 10 * time.Millisecond, Poll: 50 * time.Millisecond,
		Grace: 50 * time.Millisecond, Log: zerolog.New(&s.log)})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	soon := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return len(s.jobs()) == n }, 20*time.Second, 10*time.Millisecond, s.log.String())
	}
	require.NoError(t, os.Mkdir(filepath.Join(s.home, "cron.d"), 0o700))
	s.write("team.yaml", morning)
	soon(2)
	s.write("team.yaml", strings.Split(morning, "  tidy:")[0])
	soon(1)
	require.NoError(t, os.Remove(s.path("team.yaml")))
	soon(0)
	stop()
	<-done
}

// What the user's page shows works as it stands there: the file of jobs, and every form of a schedule.
func TestDocs_ExamplesWork(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cron.md")
	require.NoError(t, err)
	_, example, ok := strings.Cut(string(page), "```yaml\n")
	require.True(t, ok)
	example, _, _ = strings.Cut(example, "```")
	s := newShelf(t)
	s.write("example.yaml", example)
	s.pass(0)
	require.Empty(t, s.problems())
	require.Len(t, s.jobs(), 3)

	_, table, ok := strings.Cut(string(page), "## When\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\nTimes that")
	forms := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, form := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				forms++
				_, err := cron.Parse(form, s.clock(), time.UTC)
				require.NoError(t, err, form)
			}
		}
	}
	require.GreaterOrEqual(t, forms, 13, "the table is read whole")
}

// FuzzProvision: no bytes in a file make the reader fail or make jobs out of what is wrong.
func FuzzProvision(f *testing.F) {
	f.Add([]byte(morning))
	f.Add([]byte("jobs:\n  a: &a {<<: *a, schedule: 30m}\n"))
	f.Add([]byte("jobs: {a: {schedule: [}, b: }"))
	f.Fuzz(func(t *testing.T, data []byte) {
		problems, n := provision.ReadProvided("cron.d/x.yaml", data)
		for _, p := range problems {
			require.True(t, strings.HasPrefix(p, "cron.d/x.yaml"), p)
		}
		require.LessOrEqual(t, n, provision.MaxJobs)
	})
}
