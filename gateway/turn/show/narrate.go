package show

import (
	"context"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"herald/locales"
	"herald/platforms"
	"herald/tools"
)

// typingDelay is how long an answer is made before the person is told that it is: a quick answer needs no
// sign, and the call would only be in its way.
const typingDelay = 300 * time.Millisecond

// narrationLength bounds what the sign of life says, in characters: platforms show one short line.
const narrationLength = 50

// StartTyping shows that an answer is being made, after a short delay, until StopTyping or the end of ctx.
func (v *View) StartTyping(ctx context.Context) {
	if !v.t.Display.Typing {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	v.s.wg.Add(1)
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.at
	timer := time.AfterFunc(typingDelay, func() {
		defer v.s.wg.Done()
		if ctx.Err() == nil {
			v.s.o.Outbox.KeepTyping(ctx, at, func() string { return v.narration(at) })
		}
	})
	v.typing = func() {
		if timer.Stop() {
			v.s.wg.Done()
		}
		cancel()
	}
}

// StopTyping ends the sign: the turn is over, or it waits for a person.
func (v *View) StopTyping() {
	v.mu.Lock()
	stop := v.typing
	v.typing = nil
	v.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// running is the newest tool call that runs.
type running struct {
	call tools.CallID
	tool string
	what string // its argument, for people
}

// note keeps what the sign of life says from its next refresh on. v.mu is held.
func (v *View) note(e tools.Event) {
	switch {
	case e.Spec.Hidden:
	case e.Phase == tools.PhaseStarted:
		v.running = running{call: e.Call.ID, tool: e.Call.Name, what: whatOf(e)}
	case e.Phase == tools.PhaseFinished && e.Call.ID == v.running.call:
		v.running = running{}
	}
}

// whatOf is the argument that says best what a call is about; of a path its last part.
func whatOf(e tools.Event) string {
	if e.Spec.Preview == "" {
		return ""
	}
	what := strings.Join(strings.Fields(argument(e.Call.Args, e.Spec.Preview)), " ")
	if what != "" && e.Spec.Preview == "path" {
		what = filepath.Base(what)
	}
	return what
}

// narration is what the sign of life says now; "" is the platform's own sign.
func (v *View) narration(at platforms.Address) string {
	v.mu.Lock()
	now := v.running
	v.mu.Unlock()
	if v.t.Display.Live == "off" || now.tool == "" {
		return v.t.Display.LiveText
	}
	if v.t.Display.Live == "verb" {
		now.what = ""
	}
	return clip(v.s.o.Redact(doing(v.s.o.Printer(at), now.tool, v.s.o.Redact(now.what))), narrationLength)
}

// doing says what the well-known tools do, as the end of a sentence that begins with the bot's name; other tools are
// named themselves. what is the argument, or "".
func doing(p *locales.Printer, tool, what string) string {
	key, args := "doing."+tool, []locales.Arg{locales.Str("what", what), locales.Str("tool", tool)}
	if !p.Has(key) {
		key = "doing.any"
	}
	if what != "" && p.Has(key+".with") {
		key += ".with"
	}
	return p.T(key, args...)
}

// clip cuts s to n characters, the mark at its end included.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-1])) + "…"
}
