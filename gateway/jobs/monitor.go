package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"herald/cron"
	"herald/platforms/fetch"
)

const (
	// maxWatched is how many bytes a page that is watched may have.
	maxWatched = 2 << 20
	// maxRemembered is how many bytes of what was seen are kept with the job, so that the next look can say what changed.
	maxRemembered = 32 << 10
	// maxExcerpt is how many characters of each side of a change the agent is shown, aroundChange how many lines about it.
	maxExcerpt   = 4000
	aroundChange = 3
	// lookTimeout bounds the fetch of a page.
	lookTimeout = time.Minute
)

// Watcher looks at what jobs watch. It is safe for concurrent use.
type Watcher struct {
	// Fetch says how pages are got; it is asked each time. What it may not reach, no job can watch.
	Fetch func() fetch.Options
	// Scripts run the scripts that are watched by what they put out.
	Scripts *Scripts
	// Redact takes secrets out of what was seen, before it is kept; nil changes nothing.
	Redact func(string) string
}

// Sight is one look of a Watcher.
type Sight struct {
	// Changed says that something differs from the last look. The first look has nothing to compare with.
	Changed bool
	// News is what changed, for the agent; nil when nothing did.
	News *cron.Watched
	// State is to be given to the next look. After an error it is nil: the last one stays.
	State json.RawMessage
}

// memory is what a look leaves for the next one.
type memory struct {
	// What is the URL or the script; a job that watches something else has seen nothing yet.
	What string `json:"what"`
	// Digest is of all that was seen, Text a beginning of it.
	Digest string `json:"digest"`
	Text   string `json:"text,omitempty"`
	// ETag and Modified are what the server calls this state of the page.
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// Look looks at what a task watches. was is the State of the last look, nil for none. An error means that nothing could
// be seen, which is no change.
func (w *Watcher) Look(ctx context.Context, t cron.Task, was json.RawMessage) (Sight, error) {
	var old memory
	if len(was) > 0 && json.Unmarshal(was, &old) != nil {
		old = memory{}
	}
	what := t.Monitor()
	if old.What != what {
		old = memory{}
	}
	var now memory
	var err error
	if t.MonitorURL != "" {
		now, err = w.page(ctx, what, old)
	} else {
		now, err = w.script(ctx, what, t.Workdir)
	}
	if err != nil {
		return Sight{}, err
	}
	state, err := json.Marshal(now)
	if err != nil {
		return Sight{}, err
	}
	s := Sight{State: state}
	if old.Digest != "" && old.Digest != now.Digest {
		s.Changed, s.News = true, compare(old, now)
	}
	return s, nil
}

// script is what a script puts out. One that fails has seen nothing.
func (w *Watcher) script(ctx context.Context, name, workdir string) (memory, error) {
	run := w.Scripts.Run(ctx, name, workdir)
	if run.Err != "" {
		return memory{}, errors.New(run.Err)
	}
	return w.remember(memory{What: name}, []byte(run.Stdout)), nil
}

// page is what a URL answers. Its errors name the host, never the whole URL: its query may hold a secret.
func (w *Watcher) page(ctx context.Context, rawURL string, old memory) (memory, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	client, err := fetch.New(w.Fetch())
	if err != nil {
		return memory{}, err
	}
	defer client.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return memory{}, errors.New("what is watched is no URL")
	}
	if old.ETag != "" {
		req.Header.Set("If-None-Match", old.ETag)
	}
	if old.Modified != "" {
		req.Header.Set("If-Modified-Since", old.Modified)
	}
	host := req.URL.Hostname()
	resp, err := client.HTTP().Do(req)
	if err != nil {
		return memory{}, fetch.Clean(ctx, host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotModified && old.Digest != "":
		return old, nil
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return memory{}, &fetch.StatusError{Host: host, Code: resp.StatusCode}
	}
	var body bytes.Buffer
	if _, err := fetch.Copy(&body, resp.Body, maxWatched); err != nil {
		return memory{}, fetch.Clean(ctx, host, err)
	}
	return w.remember(memory{What: rawURL, ETag: short(resp.Header.Get("ETag")), Modified: short(resp.Header.Get("Last-Modified"))},
		body.Bytes()), nil
}

// short leaves out a name of a page's state that is too long to be kept.
func short(s string) string {
	if len(s) > 512 {
		return ""
	}
	return s
}

func (w *Watcher) remember(m memory, seen []byte) memory {
	sum := sha256.Sum256(seen)
	m.Digest = hex.EncodeToString(sum[:])
	if utf8.Valid(seen) && !bytes.ContainsRune(seen, 0) {
		text := string(seen)
		if w.Redact != nil {
			text = w.Redact(text)
		}
		m.Text = strings.ToValidUTF8(text[:min(len(text), maxRemembered)], "")
	}
	return m
}

// compare shows where two looks differ.
func compare(old, now memory) *cron.Watched {
	news := &cron.Watched{What: plainURL(now.What)}
	if old.Text == now.Text {
		news.Before = "(what differs lies behind the part that is kept, or is no text)"
		news.After = window([]rune(now.Text), 0)
		return news
	}
	news.Before, news.After = excerpts(old.Text, now.Text)
	return news
}

// plainURL is a URL without its query, which may hold a secret.
func plainURL(what string) string {
	if u, err := url.Parse(what); err == nil && u.Host != "" && u.RawQuery != "" {
		u.RawQuery, u.Fragment = "", ""
		return u.String()
	}
	return what
}

// excerpts returns the lines of two texts in which they differ, with some about them.
func excerpts(a, b string) (fromA, fromB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	shorter := min(len(as), len(bs))
	head, foot := 0, 0
	for head < shorter && as[head] == bs[head] {
		head++
	}
	for foot < shorter-head && as[len(as)-1-foot] == bs[len(bs)-1-foot] {
		foot++
	}
	part := func(lines []string) []rune {
		from, to := max(0, head-aroundChange), min(len(lines), len(lines)-foot+aroundChange)
		return []rune(strings.Join(lines[from:to], "\n"))
	}
	ra, rb := part(as), part(bs)
	same := 0
	for same < min(len(ra), len(rb)) && ra[same] == rb[same] {
		same++
	}
	return window(ra, same), window(rb, same)
}

// window cuts a text that is too long so that it shows the text at a position.
func window(text []rune, at int) string {
	if len(text) <= maxExcerpt {
		return string(text)
	}
	from := min(max(0, at-maxExcerpt/4), len(text))
	to := min(from+maxExcerpt, len(text))
	cut := string(text[from:to])
	if from > 0 {
		cut = "[...] " + cut
	}
	if to < len(text) {
		cut += " [...]"
	}
	return cut
}
