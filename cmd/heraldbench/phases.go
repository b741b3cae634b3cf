package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// Where each phase's chats begin: no chat is in two phases.
const (
	latencyChat   = 1
	loadChats     = 1_000
	crashChats    = 5_000
	soakChats     = 50_000
	sessionChats  = 100_000
	crashDelay    = 200 * time.Millisecond
	crashMessages = 200
	crashSpread   = 40
	// recoverLimit is how long the last reply may take after a restart before the rest counts as lost.
	recoverLimit = 90 * time.Second
	// settle is how long the daemon gets to become idle, idleSpan how long it is watched then.
	settle   = 5 * time.Second
	idleSpan = 10 * time.Second
)

// sizes are the bounds of the phases.
type sizes struct {
	Starts   int // warm starts
	Single   int // messages in one chat
	Chats    int // chats under load
	PerChat  int // messages in each of them
	Sessions int // chats that speak once
	Soak     int // turns
	Renew    int // turns after which a soaked chat begins a new session
	Crashes  int // kills
}

// started is what the start phase found.
type started struct {
	Cold float64 `json:"cold_ms"` // on an empty home, with the database to make
	Warm spread  `json:"warm"`
}

// startPhase stops and starts the daemon n times and times each first poll.
func (s *stage) startPhase(ctx context.Context, n int) (spread, error) {
	var times []time.Duration
	for range n {
		if ctx.Err() != nil {
			return spread{}, ctx.Err()
		}
		if err := s.daemon.stop(); err != nil {
			return spread{}, err
		}
		d, err := s.start()
		if err != nil {
			return spread{}, err
		}
		times = append(times, d)
	}
	return spreadOf(times), s.warm()
}

// idled is what an idle daemon costs.
type idled struct {
	PSS  float64 `json:"pss_mib"`
	Anon float64 `json:"anon_mib"`
	CPU  float64 `json:"cpu_percent"` // of one core
}

func (s *stage) idlePhase(ctx context.Context) (idled, error) {
	if err := pause(ctx, settle); err != nil {
		return idled{}, err
	}
	before, err := s.daemon.usage()
	if err != nil {
		return idled{}, err
	}
	if err := pause(ctx, idleSpan); err != nil {
		return idled{}, err
	}
	after, err := s.daemon.usage()
	if err != nil {
		return idled{}, err
	}
	return idled{PSS: after.PSS, Anon: after.Anon, CPU: 100 * float64(after.CPU-before.CPU) / float64(idleSpan)}, nil
}

// talked is what a number of turns cost.
type talked struct {
	Latency    spread  `json:"latency"`
	Missing    int     `json:"missing"`
	Duplicated int     `json:"duplicated"`
	PerSecond  float64 `json:"turns_per_s"`
	CPU        float64 `json:"cpu_ms_per_turn"`       // the daemon's
	BenchCPU   float64 `json:"bench_cpu_ms_per_turn"` // of the fakes, which share the cores with it
	PSS        float64 `json:"pss_mib"`
}

// measured runs talk, which returns the questions it asked, and accounts for it.
func (s *stage) measured(talk func() ([]*question, error)) (talked, error) {
	before, err := s.daemon.usage()
	if err != nil {
		return talked{}, err
	}
	own, err := cpuOf(syscall.RUSAGE_SELF)
	if err != nil {
		return talked{}, err
	}
	began := time.Now()
	questions, err := talk()
	if err != nil {
		return talked{}, err
	}
	took := time.Since(began)
	after, err := s.daemon.usage()
	if err != nil {
		return talked{}, err
	}
	ownAfter, err := cpuOf(syscall.RUSAGE_SELF)
	if err != nil {
		return talked{}, err
	}
	var t talked
	t.Missing, t.Duplicated = s.people.outcome(questions)
	n := float64(len(questions) - t.Missing)
	var times []time.Duration
	for _, q := range questions {
		if isClosed(q.done) {
			times = append(times, s.people.latency(q))
		}
	}
	t.Latency, t.PSS = spreadOf(times), after.PSS
	t.PerSecond = ratio(n, took.Seconds())
	t.CPU, t.BenchCPU = ratio(millis(after.CPU-before.CPU), n), ratio(millis(ownAfter-own), n)
	s.people.forget(questions...)
	return t, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// latencyPhase asks n questions in one chat, one after the other.
func (s *stage) latencyPhase(ctx context.Context, n int) (talked, error) {
	return s.measured(func() ([]*question, error) {
		var all []*question
		for range n {
			q := s.people.ask(latencyChat)
			all = append(all, q)
			if !wait(q.done, s.limit) {
				return all, nil // one that is missing says it all
			}
			if err := pause(ctx, 5*time.Millisecond); err != nil { // so that the turn ends, as a person would let it
				return nil, err
			}
		}
		return all, nil
	})
}

// loadPhase talks in many chats at once; in each the next question follows the reply at once.
func (s *stage) loadPhase(ctx context.Context, chats, perChat int) (talked, error) {
	return s.measured(func() ([]*question, error) {
		all := make([][]*question, chats)
		var wg sync.WaitGroup
		for c := range chats {
			wg.Go(func() {
				for range perChat {
					if ctx.Err() != nil {
						return
					}
					q := s.people.ask(loadChats + int64(c))
					all[c] = append(all[c], q)
					wait(q.done, s.limit)
				}
			})
		}
		wg.Wait()
		var flat []*question
		for _, some := range all {
			flat = append(flat, some...)
		}
		return flat, ctx.Err()
	})
}

// opened is what sessions that speak once leave behind.
type opened struct {
	N         int     `json:"n"`
	Missing   int     `json:"missing"`
	PerSecond float64 `json:"per_s"`
	KiB       float64 `json:"kib_each"`
	PSS       float64 `json:"pss_mib"`
}

func (s *stage) sessionsPhase(ctx context.Context, n int) (opened, error) {
	const atOnce = 50
	before, err := s.daemon.usage()
	if err != nil {
		return opened{}, err
	}
	began := time.Now()
	questions := make([]*question, n)
	turns := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range n {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			questions[i] = s.people.ask(sessionChats + int64(i))
			wait(questions[i].done, s.limit)
		})
	}
	wg.Wait()
	took := time.Since(began)
	if err := pause(ctx, 3*time.Second); err != nil {
		return opened{}, err
	}
	after, err := s.daemon.usage()
	if err != nil {
		return opened{}, err
	}
	o := opened{N: n, PSS: after.PSS, KiB: ratio((after.PSS-before.PSS)*1024, float64(n))}
	o.Missing, _ = s.people.outcome(questions)
	o.PerSecond = ratio(float64(n-o.Missing), took.Seconds())
	s.people.forget(questions...)
	return o, nil
}

// sample is the daemon's size at one moment of a soak.
type sample struct {
	Turns      int     `json:"turns"`
	Goroutines int     `json:"goroutines"`
	PSS        float64 `json:"pss_mib"`
}

// soaked is how the daemon's size went over a long run. Samples are taken while nobody talks, so that they
// compare; the first is taken after a tenth of the turns, when all pools and caches are filled.
type soaked struct {
	Turns   int      `json:"turns"`
	Missing int      `json:"missing"`
	Samples []sample `json:"samples"`
}

// first, last and most are of the samples; no samples give zeros.
func (s soaked) first() sample { return s.Samples[0] }
func (s soaked) last() sample  { return s.Samples[len(s.Samples)-1] }
func (s soaked) most() sample {
	var m sample
	for _, x := range s.Samples {
		m.Goroutines, m.PSS = max(m.Goroutines, x.Goroutines), max(m.PSS, x.PSS)
	}
	return m
}

// growth compares the means of the second half of the samples with those of the first; 1 is flat, and 0 says
// that there are too few samples.
func (s soaked) growth() (goroutines, pss float64) {
	half := len(s.Samples) / 2
	mean := func(samples []sample) (g, p float64) {
		for _, x := range samples {
			g, p = g+float64(x.Goroutines), p+x.PSS
		}
		n := float64(len(samples))
		return ratio(g, n), ratio(p, n)
	}
	g1, p1 := mean(s.Samples[:half])
	g2, p2 := mean(s.Samples[len(s.Samples)-half:])
	return ratio(g2, g1), ratio(p2, p1)
}

// soakPhase talks in chats until turns are done, in ten rounds with a sample after each. A chat begins a new
// session after renew turns, so that the length of the prompts does not grow over the run.
func (s *stage) soakPhase(ctx context.Context, turns, chats, renew int) (soaked, error) {
	const rounds = 10
	var out soaked
	done := make([]int, chats)
	for round := range rounds {
		goal := turns * (round + 1) / rounds / chats
		missing := make([]int, chats)
		var wg sync.WaitGroup
		for c := range chats {
			wg.Go(func() { missing[c] = s.soakChat(ctx, soakChats+int64(c), &done[c], goal, renew) })
		}
		wg.Wait()
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out.Turns = 0
		for c := range chats {
			out.Turns, out.Missing = out.Turns+done[c], out.Missing+missing[c]
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return out, err
		}
		u, err := s.daemon.usage()
		if err != nil {
			return out, err
		}
		g, err := s.goroutines()
		if err != nil {
			return out, err
		}
		out.Samples = append(out.Samples, sample{Turns: out.Turns, Goroutines: g, PSS: u.PSS})
	}
	return out, nil
}

// soakChat talks in one chat until *done is goal, and returns how many replies are missing.
func (s *stage) soakChat(ctx context.Context, chat int64, done *int, goal, renew int) (missing int) {
	for *done < goal && ctx.Err() == nil {
		if *done > 0 && *done%renew == 0 && !wait(s.people.tell(chat, "/new now"), s.limit) {
			missing++
		}
		q := s.people.ask(chat)
		if !wait(q.done, s.limit) {
			missing++
		}
		s.people.forget(q)
		*done++
	}
	return missing
}

// crashed is what became of accepted messages around kill -9.
type crashed struct {
	Rounds []crash `json:"rounds"`
}

// crash is one kill.
type crash struct {
	After      float64 `json:"killed_after_s"`
	Sent       int     `json:"sent"`
	Before     int     `json:"replied_before"`
	Lost       int     `json:"lost"`
	Duplicated int     `json:"duplicated"`
	Recovery   float64 `json:"recovery_s"` // from the restart to the last reply
}

// total sums the rounds; After is 0 and Recovery the longest.
func (c crashed) total() crash {
	var t crash
	for _, r := range c.Rounds {
		t.Sent, t.Before, t.Lost, t.Duplicated = t.Sent+r.Sent, t.Before+r.Before, t.Lost+r.Lost, t.Duplicated+r.Duplicated
		t.Recovery = max(t.Recovery, r.Recovery)
	}
	return t
}

// killMoments returns when the kills of n rounds come: the first after 1.2 s, when some messages are
// answered, some are at the model and some wait; the others spread from before the first answer to after
// most of them.
func killMoments(n int) []time.Duration {
	out := []time.Duration{1200 * time.Millisecond}
	for i := 1; i < n; i++ {
		out = append(out, 50*time.Millisecond+time.Duration(i-1)*1950*time.Millisecond/time.Duration(max(1, n-2)))
	}
	return out[:min(n, len(out))]
}

// crashPhase kills the daemon under load and starts it again, n times.
func (s *stage) crashPhase(ctx context.Context, n int) (crashed, error) {
	s.brain.delay.Store(int64(crashDelay))
	defer s.brain.delay.Store(0)
	var out crashed
	for i, moment := range killMoments(n) {
		c, err := s.crash(ctx, crashChats+int64(i*crashSpread), moment)
		if err != nil {
			return out, fmt.Errorf("crash %d of %d: %w", i+1, n, err)
		}
		out.Rounds = append(out.Rounds, c)
	}
	return out, nil
}

func (s *stage) crash(ctx context.Context, firstChat int64, moment time.Duration) (crash, error) {
	var questions []*question
	for i := range crashMessages {
		questions = append(questions, s.people.ask(firstChat+int64(i%crashSpread)))
	}
	if err := pause(ctx, moment); err != nil {
		return crash{}, err
	}
	s.daemon.kill()
	unanswered, _ := s.people.outcome(questions)
	c := crash{After: moment.Seconds(), Sent: len(questions), Before: len(questions) - unanswered}
	began := time.Now()
	if _, err := s.start(); err != nil {
		return crash{}, err
	}
	limit := time.After(recoverLimit)
	for _, q := range questions {
		select {
		case <-q.done:
			continue
		case <-limit:
		case <-ctx.Done():
			return crash{}, ctx.Err()
		}
		break
	}
	c.Recovery = time.Since(began).Seconds()
	if err := pause(ctx, time.Second); err != nil { // a second copy would come about now
		return crash{}, err
	}
	c.Lost, c.Duplicated = s.people.outcome(questions)
	s.people.forget(questions...)
	return c, nil
}

// pause waits d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("interrupted"), ctx.Err())
	}
}
