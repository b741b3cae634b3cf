package accounts

import (
	"slices"
	"strings"

	"herald/platforms"
)

// State is how an account is.
type State struct {
	Account platforms.Account
	Health  platforms.Health
}

// States returns every account, those that could not be made included, in a stable order.
func (a *Accounts) States() []State {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var out []State
	for _, acc := range a.list {
		h := acc.Adapter.Health()
		if err := acc.failure.Load(); err != nil {
			h.Inbound, h.State, h.Detail = false, "waiting", (*err).Error()
			if acc.ended.Load() {
				h.State = "stopped"
			}
		}
		if a.paused.Load() {
			h.Inbound, h.State = false, "stopping"
		}
		out = append(out, State{acc.Adapter.Account(), h})
	}
	for name, se := range a.failed {
		out = append(out, State{platforms.Account{Platform: name, ID: se.Account.ID}, platforms.Health{State: "stopped", Detail: se.Error()}})
	}
	slices.SortFunc(out, func(x, y State) int { return strings.Compare(x.Account.String(), y.Account.String()) })
	return out
}

// Ready returns how many accounts take messages now.
func (a *Accounts) Ready() int {
	n := 0
	for _, s := range a.States() {
		if s.Health.Inbound {
			n++
		}
	}
	return n
}
