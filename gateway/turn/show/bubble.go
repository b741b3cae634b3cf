package show

import (
	"context"
	"fmt"
	"strings"
	"time"

	"herald/gateway/delivery"
	"herald/platforms"
	"herald/platforms/format"
	"herald/tools"
	"herald/tools/memory"
)

// bubbleLines bounds a progress bubble.
const bubbleLines = 12

// bubble is the progress message of a batch of tool calls. Guarded by View.mu.
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

// Observe shows an event of a tool call: as progress, in the sign of life, and in the line about what was remembered.
func (v *View) Observe(e tools.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	mode := v.t.Display.Progress
	if e.Phase == tools.PhaseFinished && e.Result != nil {
		if mode == "log" && v.s.o.ToolLog != nil {
			v.s.o.ToolLog(v.t.Session, e)
		}
		if e.Call.Name == memory.Name && v.t.Display.Memory {
			v.remember(e)
		}
	}
	v.note(e)
	if v.closed || e.Spec.Hidden || mode == "off" || mode == "log" || mode == "" {
		return
	}
	b := &v.bubble
	switch e.Phase {
	case tools.PhaseStarted:
		if mode == "new" && b.last == e.Call.Name {
			return
		}
		if v.t.Display.Separate {
			v.endBubbleLocked()
			b = &v.bubble
		}
		b.last, b.tail = e.Call.Name, ""
		v.bubbleAdd(bubbleText(e, mode, v.t.Display.PreviewLength, v.s.o.Redact))
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
	v.bubbleShow()
}

// Heartbeat shows that long work goes on, in one message that is edited.
func (v *View) Heartbeat(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	adapter, ok := v.s.o.Adapters.Adapter(v.at.AccountOf())
	if v.closed || !ok || !adapter.Traits().Edit {
		return
	}
	if v.bubble.live == nil {
		v.bubble.live = v.s.o.Outbox.Live(delivery.LiveOptions{At: v.at, Turn: v.t.ID, Session: v.t.Session, Progress: true})
	}
	v.bubble.tail = text
	if len(v.bubble.lines) > 0 {
		v.bubbleShow()
		return
	}
	v.bubble.live.Set(format.Preview(text, adapter.Traits().Text))
}

func (v *View) bubbleAdd(text string) {
	b := &v.bubble
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

func (v *View) bubbleShow() {
	adapter, ok := v.s.o.Adapters.Adapter(v.at.AccountOf())
	if !ok || !adapter.Traits().Edit {
		return
	}
	b := &v.bubble
	if b.live == nil {
		b.live = v.s.o.Outbox.Live(delivery.LiveOptions{At: v.at, Turn: v.t.ID, Session: v.t.Session, Progress: true,
			Interval: v.t.Display.EditInterval, First: v.t.Display.EditInterval / 4})
	}
	b.live.Set(format.Preview(v.s.o.Redact(b.markdown()), adapter.Traits().Text))
}

// EndBubble lets the progress message rest as it is: what is visible is completed once, and nothing appears
// below what comes next. The next tool call starts a new one.
func (v *View) EndBubble() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.endBubbleLocked()
}

func (v *View) endBubbleLocked() {
	b := v.bubble
	v.bubble = bubble{}
	if b.live == nil {
		return
	}
	b.tail = ""
	last := platforms.Text{}
	if adapter, ok := v.s.o.Adapters.Adapter(v.at.AccountOf()); ok {
		last = format.Preview(v.s.o.Redact(b.markdown()), adapter.Traits().Text)
	}
	b.live.Finish(last)
	v.rested = append(v.rested, b.live)
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

// Clean deletes the progress messages of the turn. It waits for the platform, 10 seconds at most.
func (v *View) Clean(ctx context.Context) {
	v.mu.Lock()
	rested := v.rested
	v.rested = nil
	v.mu.Unlock()
	if len(rested) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for _, live := range rested {
		if err := live.Delete(ctx); err != nil {
			v.s.o.Log.Debug().Err(err).Msg("a progress bubble could not be removed")
		}
	}
}
