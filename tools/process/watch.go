package process

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// The limits of watching output, so that a chatty process can't wake the agent without end.
const (
	// WatchCooldown is the least time between two news of one process. Matches within it are a strike, one for each
	// such time; MaxStrikes in a row end the watch.
	WatchCooldown = 15 * time.Second
	MaxStrikes    = 3
	// MaxMatches is how many news of matches one process may give in its life.
	MaxMatches = 8
	// More than BreakerEvents news of matches within BreakerWindow, of all processes together, hold them all back for
	// BreakerPause.
	BreakerEvents = 15
	BreakerWindow = 10 * time.Second
	BreakerPause  = 30 * time.Second
	// MaxPatterns and MaxPattern bound what is watched for: how many, and bytes of each.
	MaxPatterns = 20
	MaxPattern  = 200

	maxMatchLines = 20
	maxMatchChars = 2000
	maxLine       = 4096 // bytes of a line that are looked at
)

// Watch is what is watched for in a process's output.
type Watch struct {
	Patterns []string `json:"patterns"` // a line matches that contains one of them
	// Given counts the news, Strikes the windows in a row with too many matches. Off ends the watch.
	Given   int       `json:"given,omitempty"`
	Strikes int       `json:"strikes,omitempty"`
	Struck  bool      `json:"struck,omitempty"` // the window since Last has its strike
	Last    time.Time `json:"last,omitzero"`    // of the news
	Missed  int       `json:"missed,omitempty"` // matches since then that were not told
	Off     bool      `json:"off,omitempty"`
}

// verdict is what becomes of matches.
type verdict int

const (
	keepQuiet verdict = iota
	tell
	switchOff
)

// judge decides on matches at a time. It changes the record and nothing else.
func (w *Watch) judge(now time.Time, matches int) verdict {
	switch {
	case w.Off:
		return keepQuiet
	case !w.Last.IsZero() && now.Sub(w.Last) < WatchCooldown:
		w.Missed += matches
		if w.Struck {
			return keepQuiet
		}
		w.Struck = true
		if w.Strikes++; w.Strikes < MaxStrikes {
			return keepQuiet
		}
	case w.Given < MaxMatches:
		if !w.Struck {
			w.Strikes = 0 // the last window was quiet
		}
		w.Given, w.Struck, w.Last = w.Given+1, false, now
		return tell
	}
	w.Off = true
	return switchOff
}

// matcher finds the lines of a stream that contain a pattern.
type matcher struct {
	patterns [][]byte
	line     []byte // the unfinished one, its beginning
}

func newMatcher(patterns []string) *matcher {
	m := &matcher{}
	for _, p := range patterns {
		m.patterns = append(m.patterns, []byte(p))
	}
	return m
}

// find takes the next text and returns the lines that match, at most maxMatchLines of them, and how many there are.
func (m *matcher) find(p []byte) (lines []string, count int) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		end := i
		if i < 0 {
			end = len(p)
		}
		if room := maxLine - len(m.line); room > 0 {
			m.line = append(m.line, p[:min(room, end)]...)
		}
		if i < 0 {
			return lines, count
		}
		p = p[i+1:]
		if m.matches(m.line) {
			if count++; count <= maxMatchLines {
				lines = append(lines, strings.ToValidUTF8(string(m.line), ""))
			}
		}
		m.line = m.line[:0]
	}
	return lines, count
}

// end looks at a last line that no line break ended.
func (m *matcher) end() (lines []string, count int) {
	if len(m.line) == 0 {
		return nil, 0
	}
	return m.find([]byte("\n"))
}

func (m *matcher) matches(line []byte) bool {
	return slices.ContainsFunc(m.patterns, func(p []byte) bool { return bytes.Contains(line, p) })
}

// breaker holds back the news of matches of all processes when they are too many.
type breaker struct {
	mu     sync.Mutex
	recent []time.Time
	until  time.Time
	held   map[string]*heldBack // by session
}

// heldBack is what one session was not told.
type heldBack struct {
	owner Owner
	count int
}

// allow reports whether news may be given now; tripped is true when these are the ones that were too many.
func (b *breaker) allow(now time.Time, o Owner) (ok, tripped bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Before(b.until) {
		b.hold(o)
		return false, false
	}
	b.recent = slices.DeleteFunc(b.recent, func(t time.Time) bool { return now.Sub(t) >= BreakerWindow })
	if len(b.recent) < BreakerEvents {
		b.recent = append(b.recent, now)
		return true, false
	}
	b.until, b.recent = now.Add(BreakerPause), nil
	b.hold(o)
	return false, true
}

func (b *breaker) hold(o Owner) {
	if b.held == nil {
		b.held = map[string]*heldBack{}
	}
	if b.held[o.Session] == nil {
		b.held[o.Session] = &heldBack{owner: o}
	}
	b.held[o.Session].count++
}

// release returns what was held back.
func (b *breaker) release() []*heldBack {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*heldBack
	for _, h := range b.held {
		out = append(out, h)
	}
	b.held = nil
	return out
}

// matchText shows matching lines.
func matchText(lines []string, count, missed int) string {
	text := tail(strings.Join(lines, "\n"), maxMatchChars)
	if more := count - len(lines); more > 0 {
		text += fmt.Sprintf("\n[%d more lines matched]", more)
	}
	if missed > 0 {
		text += fmt.Sprintf("\n[%d lines that matched since the last news were not told]", missed)
	}
	return text
}
