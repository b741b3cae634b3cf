package delivery

import (
	"encoding/json"
	"time"

	"herald/platforms"
	"herald/sessions"
)

// gateKey names what a refusal closes: the address, or the account when the platform said so.
func gateKey(at platforms.Address, accountWide bool) string {
	if accountWide {
		return at.AccountOf().String() + "/"
	}
	return at.String()
}

// gateLocked returns until when nothing may be sent to the address; zero for an open gate.
func (w *Worker) gateLocked(at platforms.Address) time.Time {
	until := w.gates[gateKey(at, false)]
	if account := w.gates[gateKey(at, true)]; account.After(until) {
		until = account
	}
	return until
}

// readyAtLocked returns when a row may be sent.
func (w *Worker) readyAtLocked(l *lane, row *sessions.OutboxRow) time.Time {
	at := w.gateLocked(l.at)
	if row.NotBefore.After(at) {
		at = row.NotBefore
	}
	return at
}

// closeGate remembers a retry-after window, in memory at once and on disk with tx.
func (w *Worker) closeGate(tx sessions.Tx, at platforms.Address, accountWide bool, until time.Time) error {
	w.shutGate(at, accountWide, until)
	data, err := json.Marshal(until)
	if err != nil {
		return err
	}
	return tx.SetValue(sessions.SpaceGate, gateKey(at, accountWide), data, w.opt.Now())
}

// shutGate closes a gate in memory only: for refusals of calls that are not journalled.
func (w *Worker) shutGate(at platforms.Address, accountWide bool, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shutGateLocked(at, accountWide, until)
}

func (w *Worker) shutGateLocked(at platforms.Address, accountWide bool, until time.Time) {
	if key := gateKey(at, accountWide); w.gates[key].Before(until) {
		w.gates[key] = until
	}
}

func (w *Worker) loadGates(values []sessions.Value) {
	now := w.opt.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range values {
		var until time.Time
		if json.Unmarshal(v.Data, &until) == nil && until.After(now) {
			w.gates[v.Name] = until
		}
	}
}

func (w *Worker) loadDead(values []sessions.Value) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range values {
		var reason string
		_ = json.Unmarshal(v.Data, &reason)
		w.dead[v.Name] = reason
	}
}

// chatKey names a whole chat: dead targets are chats, never threads.
func chatKey(at platforms.Address) string {
	at.Thread = ""
	return at.String()
}

// DeadTarget returns why a chat can't be reached, and whether it is known to be dead.
func (w *Worker) DeadTarget(at platforms.Address) (reason string, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reason, dead = w.dead[chatKey(at)]
	return reason, dead
}

// markDead remembers that a chat refuses us for good; revive forgets it.
func (w *Worker) markDead(tx sessions.Tx, at platforms.Address, reason string) error {
	w.mu.Lock()
	w.dead[chatKey(at)] = reason
	w.mu.Unlock()
	data, err := json.Marshal(reason)
	if err != nil {
		return err
	}
	return tx.SetValue(sessions.SpaceDead, chatKey(at), data, w.opt.Now())
}

func (w *Worker) revive(tx sessions.Tx, at platforms.Address) error {
	w.mu.Lock()
	_, was := w.dead[chatKey(at)]
	delete(w.dead, chatKey(at))
	w.mu.Unlock()
	if !was {
		return nil
	}
	return tx.SetValue(sessions.SpaceDead, chatKey(at), nil, w.opt.Now())
}

// Revive forgets that a chat is dead because it has just written to us. It runs inside the transaction
// that accepts the event and costs nothing for a chat that is alive.
func (w *Worker) Revive(tx sessions.Tx, at platforms.Address) error { return w.revive(tx, at) }
