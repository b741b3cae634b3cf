package turn

import (
	"context"
	"fmt"
	"strings"
	"time"

	"herald/gateway/delivery"
	"herald/gateway/model"
	"herald/platforms"
	"herald/platforms/format"
	"herald/tools"
	"herald/tools/memory"
)

// typingDelay is how long an answer is made before the person is told that it is: a quick answer needs no
// sign, and the call would only be in its way.
const typingDelay = 300 * time.Millisecond

// previewFull is how many times the platform's limit a text has, in bytes, when its first message is surely
// full: no unit has more than four bytes.
const previewFull = 4

// bubbleLines bounds a progress bubble.
const bubbleLines = 12

// stream is the growing answer of the current model call. Guarded by Run.mu.
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

// shown returns the text of the answer so far when some of it is visible.
func (s *stream) shown() string {
	if s.live == nil || !s.live.Visible() {
		return ""
	}
	return finishedWords(s.text.String())
}

// Delta implements agent.Turn: the growing text is shown where the platform can edit.
func (run *Run) Delta(d model.Delta) {
	now := run.r.s.Now()
	run.mu.Lock()
	defer run.mu.Unlock()
	run.alive = now
	if d.Restart {
		run.restartLocked()
	}
	if d.Text == "" {
		return
	}
	s := &run.stream
	s.text.WriteString(s.think.Write(d.Text))
	if !run.display.Streaming {
		return
	}
	if s.began.IsZero() {
		s.began, s.next = now, now.Add(run.display.FirstDelay)
	}
	if s.full || now.Before(s.next) || s.text.Len()-s.length < run.display.EditThreshold {
		return
	}
	adapter, ok := run.r.s.Adapters.Adapter(run.turn.Address.AccountOf())
	if !ok || !adapter.Traits().Edit {
		return
	}
	text := run.r.s.Redact(finishedWords(s.text.String()))
	if strings.TrimSpace(text) == "" || mayBeDirective(text) {
		return
	}
	s.next, s.length = now.Add(run.display.EditInterval), s.text.Len()
	if s.live == nil {
		s.live = run.r.s.Outbox.Live(delivery.LiveOptions{At: run.turn.Address, ReplyTo: run.replyToLocked(0), Turn: run.turn.ID,
			Session: run.session.ID, Preview: true, Interval: run.display.EditInterval, Adopt: run.resumed && !s.adopt})
		s.adopt = true
	}
	limit := adapter.Traits().Text.Limit
	s.full = limit > 0 && len(text) > previewFull*limit
	shown := stripMedia(format.Prefix(text)) + run.display.Cursor
	if adapter.Traits().AppendOnly {
		shown = format.Settled(stripMedia(text))
	}
	s.live.Set(format.Preview(shown, adapter.Traits().Text))
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

// Restart implements agent.Turn: the pieces of the current answer are void.
func (run *Run) Restart() {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.restartLocked()
}

func (run *Run) restartLocked() {
	run.stream.text.Reset()
	run.stream.think = Thinking{}
	run.stream.length, run.stream.began, run.stream.full = 0, time.Time{}, false
}

// endStream stops showing the current answer and reports whether something of it is visible. The next
// pieces start a new message.
func (run *Run) endStream() (visible bool) {
	run.mu.Lock()
	defer run.mu.Unlock()
	s := &run.stream
	if s.live != nil {
		visible = s.live.End()
	}
	run.stream = stream{adopt: true}
	return visible
}

// startTyping shows that an answer is being made, after a short delay.
func (run *Run) startTyping() {
	if !run.display.Typing {
		return
	}
	ctx, cancel := context.WithCancel(run.ctx)
	at := run.address()
	run.r.wg.Add(1)
	timer := time.AfterFunc(typingDelay, func() {
		defer run.r.wg.Done()
		if ctx.Err() == nil {
			run.r.s.Outbox.KeepTyping(ctx, at, func() string { return run.narration(at) })
		}
	})
	run.mu.Lock()
	defer run.mu.Unlock()
	run.typing = func() {
		if timer.Stop() {
			run.r.wg.Done()
		}
		cancel()
	}
}

// stopTyping ends the sign: the turn is over, or it waits for a person.
func (run *Run) stopTyping() {
	run.mu.Lock()
	stop := run.typing
	run.typing = nil
	run.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// bubble is the progress message of a batch of tool calls. Guarded by Run.mu.
type bubble struct {
	live  *delivery.Live
	lines []bubbleLine
	more  int
	last  string // tool of the newest line
	tail  string // newest output line of a running tool
}

type bubbleLine struct {
	text  string
	count int
}

// observe shows tool calls as progress (spec 1.11).
func (run *Run) observe(e tools.Event) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.alive = e.At
	mode := run.display.Progress
	if e.Phase == tools.PhaseFinished && e.Result != nil {
		if mode == "log" && run.r.s.ToolLog != nil {
			run.r.s.ToolLog(run.session.ID, e)
		}
		if e.Call.Name == memory.Name && run.display.Memory {
			run.remember(e)
		}
	}
	run.tell(e)
	if run.closed || e.Spec.Hidden || mode == "off" || mode == "log" || mode == "" {
		return
	}
	b := &run.bubble
	switch e.Phase {
	case tools.PhaseStarted:
		run.doing = e.Call.Name
		if mode == "new" && b.last == e.Call.Name {
			return
		}
		if run.display.Separate {
			run.endBubbleLocked()
			b = &run.bubble
		}
		b.last, b.tail = e.Call.Name, ""
		run.bubbleAdd(bubbleText(e, mode, run.display.PreviewLength, run.r.s.Redact))
	case tools.PhaseProgress:
		if mode != "all" && mode != "verbose" {
			return
		}
		b.tail = e.Text
	case tools.PhaseFinished:
		b.tail = ""
		if e.Result == nil || !e.Result.IsError || len(b.lines) == 0 {
			return
		}
		line := &b.lines[len(b.lines)-1]
		if !strings.HasSuffix(line.text, " ✗") {
			line.text += " ✗"
		}
	}
	run.bubbleShow()
}

func (run *Run) bubbleAdd(text string) {
	b := &run.bubble
	if n := len(b.lines); n > 0 && b.lines[n-1].text == text {
		b.lines[n-1].count++
		return
	}
	b.lines = append(b.lines, bubbleLine{text: text, count: 1})
	if len(b.lines) > bubbleLines {
		b.lines = b.lines[1:]
		b.more++
	}
}

func (run *Run) bubbleShow() {
	adapter, ok := run.r.s.Adapters.Adapter(run.turn.Address.AccountOf())
	if !ok || !adapter.Traits().Edit {
		return
	}
	b := &run.bubble
	if b.live == nil {
		b.live = run.r.s.Outbox.Live(delivery.LiveOptions{At: run.turn.Address, Turn: run.turn.ID, Session: run.session.ID, Progress: true,
			Interval: run.display.EditInterval, First: run.display.EditInterval / 4})
	}
	b.live.Set(format.Preview(run.r.s.Redact(b.markdown()), adapter.Traits().Text))
}

// endBubble lets the progress message rest as it is: what is visible is completed once, and nothing appears
// below what comes next. The next tool call starts a new one.
func (run *Run) endBubble() {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.endBubbleLocked()
}

func (run *Run) endBubbleLocked() {
	b := run.bubble
	run.bubble = bubble{}
	if b.live == nil {
		return
	}
	b.tail = ""
	last := platforms.Text{}
	if adapter, ok := run.r.s.Adapters.Adapter(run.turn.Address.AccountOf()); ok {
		last = format.Preview(run.r.s.Redact(b.markdown()), adapter.Traits().Text)
	}
	b.live.Finish(last)
	run.rested = append(run.rested, b.live)
}

// markdown is what the bubble shows.
func (b *bubble) markdown() string {
	var md strings.Builder
	if b.more > 0 {
		fmt.Fprintf(&md, "… +%d\n", b.more)
	}
	for i, line := range b.lines {
		if i > 0 {
			md.WriteString("  \n")
		}
		md.WriteString(line.text)
		if line.count > 1 {
			fmt.Fprintf(&md, " ×%d", line.count)
		}
	}
	if b.tail != "" {
		fmt.Fprintf(&md, "  \n%s", format.Code(shorten(b.tail, 120)))
	}
	return md.String()
}

func bubbleText(e tools.Event, mode string, preview int, redact func(string) string) string {
	emoji := e.Spec.Emoji
	if emoji == "" {
		emoji = "⚡"
	}
	text := emoji + " " + e.Call.Name
	arg := ""
	switch {
	case mode == "verbose":
		arg = string(e.Call.Args)
	case e.Spec.Preview != "":
		arg = argument(e.Call.Args, e.Spec.Preview)
	}
	if arg == "" {
		return text
	}
	arg = redact(arg) // before it is cut: the beginning of a secret does not look like one
	if mode != "verbose" {
		arg = shorten(strings.Join(strings.Fields(arg), " "), max(preview, 40))
	}
	return text + " " + format.Code(shorten(arg, 1000))
}

// replyTo says what the n-th chunk of the answer quotes.
func (run *Run) replyTo(n int) platforms.MessageID {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.replyToLocked(n)
}

func (run *Run) replyToLocked(n int) platforms.MessageID {
	switch run.display.ReplyTo {
	case "all":
		return run.turn.ReplyTo
	case "first":
		if n == 0 {
			return run.turn.ReplyTo
		}
	}
	return ""
}
