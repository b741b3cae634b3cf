package show

import (
	"strings"
	"time"

	"herald/gateway/delivery"
	"herald/gateway/model"
	"herald/platforms/format"
)

// previewFull is how many times the platform's limit a text has, in bytes, when its first message is surely
// full: no unit has more than four bytes.
const previewFull = 4

// stream is the growing answer of the current model call. Guarded by View.mu.
type stream struct {
	text   strings.Builder
	think  Thinking
	live   *delivery.Live
	began  time.Time
	next   time.Time // no rendering before
	length int       // of the text at the last rendering
	full   bool      // what is shown fills a message and stays as it is
	adopt  bool
}

// visible returns the text of the answer so far when some of it can be seen.
func (s *stream) visible() string {
	if s.live == nil || !s.live.Visible() {
		return ""
	}
	return finishedWords(s.text.String())
}

// Delta shows the growing text where the platform can edit.
func (v *View) Delta(d model.Delta) {
	now := v.s.o.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if d.Restart {
		v.restartLocked()
	}
	if d.Text == "" {
		return
	}
	s := &v.stream
	s.text.WriteString(s.think.Write(d.Text))
	if !v.t.Display.Streaming {
		return
	}
	if s.began.IsZero() {
		s.began, s.next = now, now.Add(v.t.Display.FirstDelay)
	}
	if s.full || now.Before(s.next) || s.text.Len()-s.length < v.t.Display.EditThreshold {
		return
	}
	adapter, ok := v.s.o.Adapters.Adapter(v.at.AccountOf())
	if !ok || !adapter.Traits().Edit {
		return
	}
	text := v.s.o.Redact(finishedWords(s.text.String()))
	if strings.TrimSpace(text) == "" || mayBeDirective(text) {
		return
	}
	s.next, s.length = now.Add(v.t.Display.EditInterval), s.text.Len()
	if s.live == nil {
		s.live = v.s.o.Outbox.Live(delivery.LiveOptions{At: v.at, ReplyTo: v.replyToLocked(0), Turn: v.t.ID,
			Session: v.t.Session, Preview: true, Interval: v.t.Display.EditInterval, Adopt: v.t.Resumed && !s.adopt})
		s.adopt = true
	}
	limit := adapter.Traits().Text.Limit
	s.full = limit > 0 && len(text) > previewFull*limit
	preview := stripMedia(format.Prefix(text)) + v.t.Display.Cursor
	if adapter.Traits().AppendOnly {
		preview = format.Settled(stripMedia(text))
	}
	s.live.Set(format.Preview(preview, adapter.Traits().Text))
}

// Partial returns the text of the current answer when some of it is visible, without a last word that is not complete.
func (v *View) Partial() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stream.visible()
}

// The length of a last word that a preview holds back, in bytes: a shorter one gives nothing away, a longer one is none.
const (
	wordHeld = 8
	wordLong = 4096
)

// finishedWords is a growing text without its last word while that may be the beginning of a secret: only the whole of
// one is known for what it is. Letters beyond ASCII are never part of one.
func finishedWords(text string) string {
	i := len(text)
	for i > 0 && text[i-1] > ' ' && text[i-1] < 0x7f {
		i--
	}
	if n := len(text) - i; n < wordHeld || n > wordLong {
		return text
	}
	return text[:i]
}

// Restart drops the pieces of the current answer.
func (v *View) Restart() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.restartLocked()
}

func (v *View) restartLocked() {
	v.stream.text.Reset()
	v.stream.think = Thinking{}
	v.stream.length, v.stream.began, v.stream.full = 0, time.Time{}, false
}

// EndStream stops showing the current answer and reports whether something of it is visible. The next
// pieces start a new message.
func (v *View) EndStream() (visible bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := &v.stream
	if s.live != nil {
		visible = s.live.End()
	}
	v.stream = stream{adopt: true}
	return visible
}
