//go:build failpoint

package crash

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"herald/gateway/admin"
	"herald/gateway/config"
	"herald/platforms/platformtest/telegramtest"
)

const botToken = "4242:a-token-of-the-crash-tests-00000"

// The limits of a run. A machine that is busy is slow, so they are generous; nothing waits for them when
// all is well.
const (
	replyLimit = 60 * time.Second
	quietLimit = 60 * time.Second
	stopLimit  = 40 * time.Second
)

// place is where people and the bot talk.
type place struct {
	chat   int64
	thread int
}

// asked is something that a person wrote and that has to have an end people can see (P1).
type asked struct {
	token string
	kind  kind
	place place
	text  string
	// wants is a part of a command's answer, several with | between them.
	wants string
	// message is the id of the person's message; 0 for the browser chat.
	message int
}

// world is a daemon between its fakes, with people who talk to it. The daemon dies and comes back as the
// plan says; the fakes and the people live on.
type world struct {
	t     testing.TB
	home  string
	paths config.Paths
	tg    *telegramtest.Server
	brain *brain
	web   string // base URL of the browser chat
	env   []string
	flags []string

	// keeper is the one who starts the daemon again.
	keeper sync.WaitGroup
	stop   chan struct{}

	mu       sync.Mutex
	plan     []string // failpoints of the next starts
	proc     *process
	starts   int
	expected bool // the next SIGKILL is ours
	held     bool // do not start it again
	deaths   []string
	asks     []*asked
	byToken  map[string]*asked
	events   []string
	failures []string
	began    time.Time
}

// settings of the daemon that make a run short.
var quick = map[string]string{
	"agent.restart_drain_timeout": "1s",
	"streaming.edit_interval":     "60ms",
	"compression.protect_last_n":  "2",
	"compression.protect_first_n": "0",
}

// newWorld makes a world whose daemon is not started yet. plan are the failpoints of its starts; further
// starts have none.
func newWorld(t testing.TB, set map[string]string, plan ...string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "crash-*")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: dir, plan: plan, stop: make(chan struct{}), byToken: map[string]*asked{}, began: time.Now()}
	w.paths = config.PathsFor(w.home)
	w.tg = telegramtest.New(telegramtest.Options{Token: botToken})
	base, err := w.tg.Start()
	if err != nil {
		t.Fatal(err)
	}
	w.brain = newBrain(filepath.Join(w.home, "effects.log"))
	w.brain.known, w.brain.log = w.ask, w.note
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	w.web = "http://" + listen
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "HERALD_HOME=" + w.home, "HERALD_TERMINAL_BACKEND=local", "HERALD_GATEWAY_LOCK_DIR=" + filepath.Join(w.home, "locks"),
		"TELEGRAM_BOT_TOKEN=" + botToken, "HERALD_TELEGRAM_BASE_URL=" + base, "HERALD_TELEGRAM_ALLOW_FROM=*", "HERALD_TELEGRAM_RATE_LIMIT=off",
		"OPENAI_API_KEY=sk-crash-tests-0123456789", "OPENAI_BASE_URL=" + w.brain.server.URL + "/v1", "HERALD_MODEL=crash-model",
		"GORACE=halt_on_error=0", "GOMAXPROCS=2"}
	w.flags = []string{"--set", "http.listen=" + listen}
	for _, all := range []map[string]string{quick, set} {
		for k, v := range all {
			w.flags = append(w.flags, "--set", k+"="+v)
		}
	}
	w.tg.Watch(func(a telegramtest.Act) {
		if a.Verb != "typing" && a.Verb != "edit" {
			w.note("telegram: %s chat %d/%d message %d %.90q", a.Verb, a.Chat, a.Thread, a.Message, a.Text)
		}
	})
	t.Cleanup(w.close)
	return w
}

// ports counts the ports given out, from a start of this process's own.
var ports atomic.Int64

// freePort returns a port that no other life of this process gets and that lies below the range from which
// the system takes ports for connections: it must stay free while the daemon is down between two starts.
func freePort() (int, error) {
	const low, many = 12000, 20000
	for range 1000 {
		port := low + (os.Getpid()*997+int(ports.Add(1)))%many
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port for the browser chat")
}

// close ends everything and, when something failed, tells the whole story.
func (w *world) close() {
	w.halt(syscall.SIGKILL)
	w.tg.Close()
	w.brain.close()
	if !w.t.Failed() {
		_ = os.RemoveAll(w.home)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t.Logf("events:\n%s", strings.Join(w.events, "\n"))
	logs, _ := filepath.Glob(filepath.Join(w.home, "start-*.log"))
	w.t.Logf("the home is kept: %s (logs: %v)", w.home, logs)
}

// note adds to the story.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, time.Now().Format(clock)+" "+fmt.Sprintf(format, args...))
}

// fail notes a broken promise.
func (w *world) fail(format string, args ...any) {
	w.note("BROKEN: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

// start starts the daemon and the one who starts it again.
func (w *world) start() {
	w.t.Helper()
	if err := w.launch(); err != nil {
		w.t.Fatal(err)
	}
	w.keeper.Go(w.keep)
}

func (w *world) launch() error {
	w.mu.Lock()
	failpoint := ""
	if len(w.plan) > 0 {
		failpoint, w.plan = w.plan[0], w.plan[1:]
	}
	w.starts++
	log := filepath.Join(w.home, fmt.Sprintf("start-%d.log", w.starts))
	w.mu.Unlock()
	p, err := launch(w.env, w.flags, failpoint, log)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.proc = p
	w.mu.Unlock()
	w.note("daemon: started, failpoint %q", failpoint)
	return nil
}

// keep starts the daemon again when it has been killed.
func (w *world) keep() {
	for {
		w.mu.Lock()
		p := w.proc
		w.mu.Unlock()
		select {
		case <-w.stop:
			return
		case <-p.ended:
		}
		w.mu.Lock()
		held, ours := w.held, w.expected
		w.expected = false
		w.mu.Unlock()
		text, race := p.tail(3000)
		if race {
			w.fail("the race detector found something:\n%s", text)
		}
		switch {
		case p.killed() && (ours || p.failpoint != ""):
			where := p.failpoint
			if ours {
				where = "random"
			}
			w.note("daemon: killed at %s", where)
			w.mu.Lock()
			w.deaths = append(w.deaths, where)
			w.mu.Unlock()
		case held && p.err == nil:
			w.note("daemon: stopped")
		case !held:
			w.fail("the daemon ended by itself: %v\n%s", p.err, text)
		}
		if held {
			return
		}
		if err := w.launch(); err != nil {
			w.fail("the daemon can't be started again: %v", err)
			return
		}
	}
}

// kill kills the daemon now; it is started again.
func (w *world) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.proc != nil && w.proc.alive() {
		w.expected = true
		w.proc.signal(syscall.SIGKILL)
	}
}

// restart stops the daemon as a supervisor does and starts it again.
func (w *world) restart() {
	w.mu.Lock()
	p := w.proc
	w.held = true
	w.mu.Unlock()
	p.signal(syscall.SIGTERM)
	if !p.wait(stopLimit) {
		w.fail("the daemon does not stop")
	}
	w.keeper.Wait()
	w.mu.Lock()
	w.held = false
	w.mu.Unlock()
	if err := w.launch(); err != nil {
		w.fail("the daemon can't be started again: %v", err)
		return
	}
	w.keeper.Go(w.keep)
}

// halt ends the daemon for good.
func (w *world) halt(s syscall.Signal) {
	w.mu.Lock()
	p := w.proc
	w.held = true
	w.expected = s == syscall.SIGKILL
	w.mu.Unlock()
	if p == nil {
		return
	}
	p.signal(s)
	if !p.wait(stopLimit) {
		w.fail("the daemon does not stop")
		p.signal(syscall.SIGKILL)
		p.wait(stopLimit)
	}
	w.keeper.Wait()
	if s == syscall.SIGTERM && p.err != nil && !p.killed() {
		text, _ := p.tail(3000)
		w.fail("the daemon did not end well: %v\n%s", p.err, text)
	}
}

// Deaths returns where the daemon was killed.
func (w *world) Deaths() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.deaths)
}

// ask returns what a token was asked as.
func (w *world) ask(token string) (*asked, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, ok := w.byToken[token]
	return a, ok
}

// Asks returns all that was asked, in order.
func (w *world) Asks() []*asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asks)
}

// newAsk registers a message before it is written. %s in text stands for its token.
func (w *world) newAsk(at place, k kind, text, wants string) *asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	token := fmt.Sprintf("%04d", len(w.asks)+1)
	a := &asked{token: token, kind: k, place: at, text: strings.ReplaceAll(text, "%s", "q"+token), wants: strings.ReplaceAll(wants, "%s", "q"+token)}
	w.asks = append(w.asks, a)
	w.byToken[token] = a
	return a
}

// say writes a question into a Telegram chat.
func (w *world) say(at place, k kind) *asked {
	return w.write(w.newAsk(at, k, "%s "+string(k), ""))
}

// order writes a command; wants is a part of its answer.
func (w *world) order(at place, text, wants string) *asked {
	return w.write(w.newAsk(at, command, text, wants))
}

// sayAs writes a question in other words, such as behind a command that hands it to the model.
func (w *world) sayAs(at place, k kind, text string) *asked {
	return w.write(w.newAsk(at, k, text, ""))
}

func (w *world) write(a *asked) *asked {
	a.message = w.tg.Write(telegramtest.Post{Chat: a.place.chat, Thread: a.place.thread, Text: a.text})[0]
	return a
}

// reason matches what Herald says when there is no answer, or not yet the whole one.
var reason = regexp.MustCompile(`I can't tell whether|⚠️|Stopped|New session|set it aside|could not deliver|is dropped|are dropped`)

// shown returns the bot's messages in a place, as they read now.
func (w *world) shown(at place) []telegramtest.Message {
	var out []telegramtest.Message
	for _, m := range w.tg.Visible(at.chat) {
		if m.Thread == at.thread {
			out = append(out, m)
		}
	}
	return out
}

// growing marks a preview whose answer is not complete.
const growing = "▉"

// repeated marks a copy that a person has asked for.
const repeated = "may be a duplicate"

func shows(m telegramtest.Message, token string) bool {
	return !strings.Contains(m.Text, growing) && !strings.Contains(m.Text, repeated) && slices.Contains(tokens(marker, m.Text), token)
}

// settled reports whether people see the end of what was asked: its answer, or a reason behind it.
func (w *world) settled(a *asked) (answered, excused bool) {
	for _, m := range w.shown(a.place) {
		switch {
		case a.kind == command && m.ID > a.message && a.obeyed(m.Text):
			return true, false
		case a.kind != command && shows(m, a.token):
			return true, false
		case m.ID > a.message && reason.MatchString(m.Text):
			excused = true
		}
	}
	return false, excused
}

// obeyed reports whether a text is the answer that a command wants.
func (a *asked) obeyed(text string) bool {
	return slices.ContainsFunc(strings.Split(a.wants, "|"), func(part string) bool { return strings.Contains(text, part) })
}

// await waits until people see the end of what was asked.
func (w *world) await(a *asked) {
	w.until(fmt.Sprintf("%v sees the end of %s (%s)", a.place, a.token, a.text), replyLimit, func() bool {
		answered, excused := w.settled(a)
		return answered || excused
	})
}

// talk says and waits.
func (w *world) talk(at place, k kind) { w.await(w.say(at, k)) }

// until polls a condition. It reports whether it came true.
func (w *world) until(what string, limit time.Duration, cond func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if cond() {
			return true
		}
		select {
		case <-tick.C:
		case <-w.stop:
			return false
		case <-deadline.C:
			w.fail("gave up waiting until %s", what)
			return false
		}
	}
}

// wait pauses a person: what they do next is bound to time and not to what they see.
func (w *world) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.stop:
	}
}

// quiet waits until nothing is left to do anywhere: no update that was not taken, no model call, nothing in
// the inbox, the journal and the outbox.
func (w *world) quiet() {
	last := ""
	calm := 0
	ok := w.until("all is quiet", quietLimit, func() bool {
		w.pause(60 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var s admin.Status
		if err := admin.Call(ctx, w.paths.Socket, "status", nil, &s); err != nil {
			last, calm = err.Error(), 0
			return false
		}
		last = fmt.Sprintf("updates %d, model calls %d, running %d, queued %d, waiting %d, counts %+v", w.tg.Pending(), w.brain.running(), s.Running, s.Queued, s.Waiting, s.Counts)
		if w.tg.Pending() > 0 || w.brain.running() > 0 || s.Running > 0 || s.Queued > 0 || s.Waiting > 0 ||
			s.Counts.InboxNew > 0 || s.Counts.TurnsRunning > 0 || s.Counts.OutboxPending > 0 {
			calm = 0
			return false
		}
		calm++
		return calm >= 2
	})
	if !ok {
		w.fail("it is not quiet: %s", last)
	}
}

// finish waits for quiet, stops the daemon and looks at everything. Then the test fails with all that was
// found.
func (w *world) finish() {
	w.t.Helper()
	w.quiet()
	w.halt(syscall.SIGTERM)
	w.promises()
	close(w.stop)
	w.mu.Lock()
	failures := slices.Clone(w.failures)
	w.mu.Unlock()
	for _, f := range failures {
		w.t.Error(f)
	}
}

// lines returns the lines of the file of side effects, with how often each is there.
func (w *world) lines() map[string]int {
	out := map[string]int{}
	data, err := os.ReadFile(w.brain.effects)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.fail("%v", err)
	}
	for line := range strings.FieldsSeq(string(data)) {
		out[line]++
	}
	return out
}
