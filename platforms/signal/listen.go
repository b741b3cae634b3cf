package signal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// trouble is why there is no stream, in words for people.
type trouble struct {
	state  string
	detail string
	count  string // for Metrics.Polled
}

func (t *trouble) Error() string { return t.detail }

// What the log and health say. docs/platforms/signal.md explains each.
const (
	sayUnreachable = "signal-cli does not answer at %s: %v"
	sayNoDaemon    = "the server at %s is no signal-cli daemon: GET /api/v1/check answered HTTP %d"
	sayWrapper     = "the server at %s is signal-cli-rest-api, another program with another interface (it answers /v1/about)"
	sayUnlinked    = "signal-cli has no account %s: link or register it (herald signal link)"
	sayShort       = "signal-cli closes the event stream at once (%d times in a row)"
	saySilent      = "the event stream is silent though signal-cli answers"
	sayMultiSilent = "signal-cli serves several accounts and sends nothing on the stream of %s: start it for this account alone, signal-cli -a ACCOUNT daemon --http"
	sayRevoked     = "Signal does not take this account any more: link or register it again (herald signal link). %v"
	sayCut         = "the event stream has ended: %v"
	sayOther       = "signal-cli serves %s and not SIGNAL_ACCOUNT: start it with -a and our number"
)

// listener is the receiving side of one Run.
type listener struct {
	a     *Adapter
	queue *intake
	multi bool // the daemon serves several accounts
	short int  // streams in a row that ended at once
	mute  bool // the last stream was silent
	ended bool // by us, because Signal refused the account
}

// run keeps a stream until ctx ends. The error is a *platforms.StartError.
func (l *listener) run(ctx context.Context) error {
	wait := wire.NewBackoff(l.a.s.BackoffMin, l.a.s.BackoffMax)
	told := ""
	for ctx.Err() == nil {
		begun := time.Now()
		err := l.session(ctx)
		var start *platforms.StartError
		if errors.As(err, &start) {
			return start
		}
		if ctx.Err() != nil {
			return nil
		}
		t := l.judge(err)
		l.a.s.Metrics.Polled(t.count)
		l.a.health.set(t.state, t.detail)
		if t.detail != told {
			l.a.s.Log.Warn().Str("account", Mask(l.a.s.Account)).Msg(Mask(t.detail))
			told = t.detail
		}
		if time.Since(begun) >= l.a.s.ShortStream {
			wait.Reset()
		}
		if l.a.again.wait(ctx, wait.Next()) {
			wait.Reset()
		}
	}
	return nil
}

// judge puts into words why a session has ended.
func (l *listener) judge(err error) *trouble {
	var t *trouble
	if errors.As(err, &t) {
		return t
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("signal-cli closed it")
	}
	return &trouble{state: "reconnecting", detail: fmt.Sprintf(sayCut, err), count: "network"}
}

// session makes one connection and reads it to its end.
func (l *listener) session(ctx context.Context) error {
	if err := l.probe(ctx); err != nil {
		l.ended = false
		return err
	}
	if !l.ended {
		l.a.health.revoke("")
	}
	l.ended = false
	l.a.learnContacts(ctx)
	stream, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.a.streaming(func() { cancel(errRevoked) })
	defer l.a.streaming(nil)
	resp, err := l.open(stream, cancel)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return l.follow(ctx, stream, cancel, resp.Body)
}

// probe finds out what server this is and whether it has our account.
func (l *listener) probe(ctx context.Context) error {
	a := l.a
	check, cancel := context.WithTimeout(ctx, a.s.CheckTimeout)
	defer cancel()
	status, _, err := a.rpc.get(check, "/api/v1/check", 1<<10)
	if err != nil {
		return &trouble{state: "reconnecting", detail: fmt.Sprintf(sayUnreachable, a.s.URL, err), count: "network"}
	}
	if status != http.StatusOK {
		return l.foreign(check, status)
	}
	var accounts []struct {
		Number string `json:"number"`
	}
	err = a.rpc.call(check, "listAccounts", nil, &accounts)
	if err != nil {
		l.multi = false // a daemon for one account does not have the method
		return nil
	}
	l.multi = true
	for _, acc := range accounts {
		if tidyNumber(acc.Number) == a.s.Account {
			return nil
		}
	}
	return &trouble{state: "unlinked", detail: fmt.Sprintf(sayUnlinked, Mask(a.s.Account)), count: "http"}
}

// foreign names a server that is no daemon. Waiting can't turn it into one when it is the other known program.
func (l *listener) foreign(ctx context.Context, status int) error {
	a := l.a
	if status == http.StatusNotFound && a.rpc.isWrapper(ctx) {
		e := a.s.setting("http_url", fmt.Errorf(sayWrapper, a.s.URL))
		e.Hint = "run signal-cli itself: signal-cli -a ACCOUNT daemon --http 127.0.0.1:8080, and point SIGNAL_HTTP_URL at it"
		return e
	}
	return &trouble{state: "reconnecting", detail: fmt.Sprintf(sayNoDaemon, a.s.URL, status), count: "http"}
}

// isWrapper reports whether the server is the other known program.
func (c *Client) isWrapper(ctx context.Context) bool {
	status, body, err := c.get(ctx, "/v1/about", 64<<10)
	var shown struct {
		Versions []string `json:"versions"`
	}
	return err == nil && status == http.StatusOK && json.Unmarshal(body, &shown) == nil && len(shown.Versions) > 0
}

// open asks for the stream.
func (l *listener) open(ctx context.Context, cancel context.CancelCauseFunc) (*http.Response, error) {
	a := l.a
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.rpc.root+"/api/v1/events?account="+url.QueryEscape(a.s.Account), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Cache-Control", "no-cache")
	if id := a.mark.get(); id != "" {
		req.Header.Set("Last-Event-ID", id)
	}
	// The daemon may send its headers only with the first byte of the body, which is a comment after 15 s.
	timer := time.AfterFunc(a.s.Silence, func() { cancel(errSilent) })
	resp, err := a.streams.Do(req)
	timer.Stop()
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errSilent):
		l.mute = true
		return nil, &trouble{state: "deaf", detail: saySilent, count: "silent"}
	case err != nil:
		return nil, &trouble{state: "reconnecting", detail: fmt.Sprintf(sayUnreachable, a.s.URL, wire.Bare(err)), count: "network"}
	case resp.StatusCode == http.StatusBadRequest:
		drop(resp.Body)
		return nil, &trouble{state: "unlinked", detail: fmt.Sprintf(sayUnlinked, Mask(a.s.Account)), count: "http"}
	case resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		drop(resp.Body)
		return nil, &trouble{state: "reconnecting", detail: fmt.Sprintf("GET /api/v1/events answered HTTP %d and no event stream", resp.StatusCode), count: "http"}
	}
	return resp, nil
}

// errRevoked ends a stream whose account Signal has refused.
var errRevoked = errors.New("the account was refused")

// errSilent ends a stream that gives no sign of life.
var errSilent = errors.New("no sign of life")

// follow reads a stream to its end.
func (l *listener) follow(ctx, stream context.Context, cancel context.CancelCauseFunc, body io.Reader) error {
	a := l.a
	begun, got := time.Now(), 0
	var heard atomic.Bool
	src := newEvents(body, func() {
		heard.Store(true)
		a.health.Fine()
	})
	if l.short == 0 && !l.mute {
		a.health.Fine()
	} else {
		a.health.Heard() // what the last one did not do, this one has to show
	}
	var watch sync.WaitGroup
	watch.Go(func() { l.watch(stream, cancel, &heard, src) })
	defer watch.Wait()
	defer cancel(nil)
	for {
		e, err := src.next()
		if errors.Is(err, errEventTooLong) {
			a.drop(dropUndecodable, err)
			continue
		}
		if err != nil {
			return l.over(stream, err, time.Since(begun), got, heard.Load())
		}
		got++
		event, reason := a.convert(ctx, e.data)
		if event == nil {
			a.drop(reason, nil)
			if e.id != "" {
				l.queue.put(ctx, entry{stream: e.id}) // the mark moves past it, in order
			}
			continue
		}
		l.queue.put(ctx, entry{event: *event, stream: e.id})
		if a.mark.due() {
			a.mark.save(ctx)
		}
	}
}

// over says why a stream has ended.
func (l *listener) over(stream context.Context, err error, age time.Duration, got int, heard bool) error {
	a := l.a
	if cause := context.Cause(stream); errors.Is(cause, errSilent) {
		l.mute, l.short = true, 0
		if l.multi && !heard {
			return &trouble{state: "deaf", detail: fmt.Sprintf(sayMultiSilent, Mask(a.s.Account)), count: "silent"}
		}
		return &trouble{state: "deaf", detail: saySilent, count: "silent"}
	}
	l.mute = false
	if errors.Is(context.Cause(stream), errRevoked) {
		l.ended = true
		return &trouble{state: "unlinked", detail: fmt.Sprintf(sayUnlinked, Mask(a.s.Account)), count: "http"}
	}
	if age < a.s.ShortStream && got == 0 {
		if l.short++; l.short >= 3 {
			return &trouble{state: "deaf", detail: fmt.Sprintf(sayShort, l.short), count: "short"}
		}
	} else {
		l.short = 0
	}
	return wire.Bare(err)
}

// watch ends a stream that gives no sign of life.
func (l *listener) watch(stream context.Context, cancel context.CancelCauseFunc, heard *atomic.Bool, src *events) {
	a := l.a
	tick := time.NewTicker(a.s.CheckEvery)
	defer tick.Stop()
	doubt := false // the daemon answers: the stream gets one more tick to do so too
	for {
		select {
		case <-stream.Done():
			return
		case <-tick.C:
		}
		if l.queue.stuck() { // we are the ones who don't read
			a.health.Heard()
			continue
		}
		if a.health.Silent() < a.s.Silence {
			doubt = false
			continue
		}
		check, done := context.WithTimeout(stream, a.s.CheckTimeout)
		status, _, err := a.rpc.get(check, "/api/v1/check", 1<<10)
		done()
		if stream.Err() != nil {
			return
		}
		if err == nil && status == http.StatusOK && heard.Load() && !src.comments.Load() && !l.multi {
			a.health.Heard() // a daemon that sends no comments: quiet is normal
			continue
		}
		if err == nil && status == http.StatusOK && !doubt {
			doubt = true
			continue
		}
		cancel(errSilent)
		return
	}
}
