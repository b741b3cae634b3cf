package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

const (
	botToken = "4242:a-token-of-the-benchmark-0000000000"
	// kept bounds what the fake Telegram remembers of a chat, and of all acts: a soak run must not grow.
	kept = 64
	// pollLimit is how long a start may take until the first poll.
	pollLimit = 2 * time.Minute
)

// stage is a daemon between its fakes, with people who talk to it. One daemon goes through all phases, as it
// would in life.
type stage struct {
	people *people
	brain  *brain
	daemon *child
	home   string
	listen string // the daemon's own HTTP address
	limit  time.Duration

	tg     *telegramtest.Server
	server *http.Server
	api    *modeltest.Server
	client *http.Client
}

// newStage sets the stage; the daemon is not started. logPath is where its output goes, "" for a file in
// its home.
func newStage(line, logPath string, limit time.Duration) (*stage, error) {
	home, err := os.MkdirTemp("", "heraldbench-*")
	if err != nil {
		return nil, err
	}
	if logPath == "" {
		logPath = filepath.Join(home, "output.log")
	}
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	s := &stage{home: home, limit: limit, brain: &brain{}, client: &http.Client{Timeout: 10 * time.Second}}
	s.tg = telegramtest.New(telegramtest.Options{Token: botToken, Keep: kept})
	s.people = newPeople(s.tg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.server = &http.Server{Handler: s.people, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(l) }()
	s.api = modeltest.Serve(s.brain.script())
	if s.listen, err = freeAddress(); err != nil {
		return nil, err
	}
	s.daemon = &child{line: line, log: log, env: append(ownEnv(os.Environ()),
		"HERALD_HOME="+filepath.Join(home, "herald"), "HERALD_TERMINAL_BACKEND=local", "HERALD_GATEWAY_LOCK_DIR="+filepath.Join(home, "locks"), "HERALD_HTTP_LISTEN="+s.listen,
		"TELEGRAM_BOT_TOKEN="+botToken, "HERALD_TELEGRAM_BASE_URL=http://"+l.Addr().String(), "HERALD_TELEGRAM_ALLOW_FROM=*", "HERALD_TELEGRAM_RATE_LIMIT=off",
		"OPENAI_API_KEY=sk-benchmark-0123456789", "OPENAI_BASE_URL="+s.api.OpenAI(), "HERALD_MODEL=bench-model")}
	return s, nil
}

// ownEnv is the environment without what would turn the daemon to the user's own accounts.
func ownEnv(environ []string) []string {
	var out []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		foreign := strings.HasPrefix(name, "HERALD_")
		for _, mark := range []string{"TOKEN", "API_KEY", "SECRET", "BASE_URL"} {
			foreign = foreign || strings.Contains(name, mark)
		}
		if !foreign {
			out = append(out, v)
		}
	}
	return out
}

// freeAddress is a loopback address that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start starts the daemon and returns the time until its first poll.
func (s *stage) start() (time.Duration, error) {
	polled := s.people.awaitPoll()
	began := time.Now()
	if err := s.daemon.start(); err != nil {
		return 0, err
	}
	select {
	case <-polled:
		return time.Since(began), nil
	case <-s.daemon.ended:
		return 0, fmt.Errorf("the daemon ended before it asked for updates; its output:\n%s", s.output())
	case <-time.After(pollLimit):
		return 0, fmt.Errorf("the daemon asked for no updates within %s; its output:\n%s", pollLimit, s.output())
	}
}

// output is the end of what the daemon said.
func (s *stage) output() string {
	const tail = 4000
	b, err := os.ReadFile(s.daemon.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-tail):])
}

// warm asks until the daemon has answered once: what comes after is measured warm.
func (s *stage) warm() error {
	if q := s.people.ask(1); !wait(q.done, s.limit) {
		return fmt.Errorf("no reply to the first message within %s; the daemon's output:\n%s", s.limit, s.output())
	}
	return nil
}

// goroutines reads go_goroutines of the daemon's metrics.
func (s *stage) goroutines() (int, error) {
	resp, err := s.client.Get("http://" + s.listen + "/metrics")
	if err != nil {
		return 0, fmt.Errorf("metrics: %w (-cmd must leave http.listen to HERALD_HTTP_LISTEN)", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return metric(string(b), "go_goroutines")
}

// metric reads a metric without labels of Prometheus's text format.
func metric(text, name string) (int, error) {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			return int(f), err
		}
	}
	return 0, fmt.Errorf("metrics: there is no %s", name)
}

// close ends everything and removes the home.
func (s *stage) close() error {
	s.daemon.kill()
	s.api.Close()
	s.tg.Close()
	return errors.Join(s.server.Close(), s.daemon.log.Close(), os.RemoveAll(s.home))
}

// wait reports whether done closes within limit.
func wait(done <-chan struct{}, limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
