package access

import (
	"time"

	"herald/platforms"
	"herald/sessions"
)

// LoopLimits are the numbers of the bot-loop guard.
type LoopLimits struct {
	// Off lets all bots through.
	Off bool
	// MaxEvents of bots in one chat within Window are let through; the next one begins a Cooldown.
	MaxEvents int
	Window    time.Duration
	Cooldown  time.Duration
}

// DefaultLoopLimits returns 20 events in 300 s and a cooldown of 600 s.
func DefaultLoopLimits() LoopLimits {
	return LoopLimits{MaxEvents: 20, Window: 300 * time.Second, Cooldown: 600 * time.Second}
}

// loop is what a chat's guard remembers.
type loop struct {
	Events []time.Time `json:"events,omitempty"`
	Until  time.Time   `json:"until,omitzero"`
}

// AdmitBot says whether an event of a bot goes through, and remembers it, within the caller's transaction (the one that
// accepts the event), so that a restart forgets nothing and a redelivery counts once. Threads of a chat count
// together. began is true for the event that began a cooldown, for one notice. Events of people pass and are not counted.
func AdmitBot(tx sessions.Tx, limits LoopLimits, e platforms.Event, now time.Time) (ok, began bool, err error) {
	if limits.Off || !e.Sender.IsBot {
		return true, false, nil
	}
	at := e.Address
	at.Thread = ""
	var l loop
	if _, err := readValue(tx, sessions.SpaceBotLoop, at.String(), &l); err != nil {
		return false, false, err
	}
	if now.Before(l.Until) {
		return false, false, nil
	}
	kept := l.Events[:0]
	for _, t := range l.Events {
		if now.Sub(t) < limits.Window {
			kept = append(kept, t)
		}
	}
	if len(kept) >= limits.MaxEvents {
		return false, true, writeValue(tx, sessions.SpaceBotLoop, at.String(), loop{Until: now.Add(limits.Cooldown)}, now)
	}
	return true, false, writeValue(tx, sessions.SpaceBotLoop, at.String(), loop{Events: append(kept, now)}, now)
}

// SweepBots forgets chats whose window and cooldown are over. Call it with other housekeeping.
func SweepBots(tx sessions.Tx, limits LoopLimits, now time.Time) error {
	values, err := tx.Values(sessions.SpaceBotLoop)
	if err != nil {
		return err
	}
	for _, v := range values {
		if now.Sub(v.At) > max(limits.Window, limits.Cooldown) {
			if err := tx.SetValue(sessions.SpaceBotLoop, v.Name, nil, now); err != nil {
				return err
			}
		}
	}
	return nil
}
