package router

import (
	"fmt"

	"herald/gateway/turn"
	"herald/locales"
	"herald/platforms"
)

// Acks says which acknowledgements a chat gets for messages that come while a turn runs.
type Acks struct {
	// Show: any at all. Steer: also of a message that was added to the running turn. Detail: with how long the turn runs
	// and what it does.
	Show, Steer, Detail bool
}

// ackText says what became of a message that came while a turn runs; "" for nothing.
func (r *Router) ackText(at platforms.Address, taken turn.Taken, s turn.Snapshot) string {
	acks := r.opt.Acks(at)
	key := ""
	switch taken {
	case turn.TakenRedirect:
		key = "busy.interrupted"
	case turn.TakenAfter:
		key = "busy.redirected"
	case turn.TakenSteer:
		if !acks.Steer {
			return ""
		}
		key = "busy.steered"
	case turn.NotTaken:
		key = "busy.queued"
	}
	if key == "" || !acks.Show {
		return ""
	}
	p := r.opt.Printer(at)
	text := "↪ " + p.T(key)
	if !acks.Detail {
		return text
	}
	since, step := locales.Dur("time", r.opt.Now().Sub(s.Began)), locales.Int("step", s.Used.Calls+1)
	if s.Doing != "" {
		return text + " " + p.T("busy.detail_tool", since, step, locales.Str("tool", s.Doing))
	}
	return text + " " + p.T("busy.detail", since, step)
}

// tooLong refuses a text of size bytes where most are allowed.
func tooLong(p *locales.Printer, size, most int64) string {
	return "⚠️ " + p.T("inbound.too_long", locales.Str("size", bytesText(size)), locales.Str("max", bytesText(most)))
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	const k = 1024
	switch {
	case n < k:
		return fmt.Sprintf("%d bytes", n)
	case n < k*k:
		return fmt.Sprintf("%.1f KiB", float64(n)/k)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/k/k)
}
