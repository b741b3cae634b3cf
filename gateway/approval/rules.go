package approval

import (
	"slices"

	"herald/gateway/config"
)

// Allow writes kinds of danger into command_allowlist and obeys it at once.
func (a *Approver) Allow(kinds ...string) error {
	return a.change(func(list []string) []string {
		for _, k := range kinds {
			if !slices.Contains(list, k) {
				list = append(list, k)
			}
		}
		return list
	})
}

// Revoke takes entries out of command_allowlist.
func (a *Approver) Revoke(entries ...string) error {
	return a.change(func(list []string) []string {
		return slices.DeleteFunc(list, func(e string) bool { return slices.Contains(entries, e) })
	})
}

func (a *Approver) change(change func([]string) []string) error {
	a.edit.Lock()
	defer a.edit.Unlock()
	old := a.o.Settings.Current()
	list := change(slices.Clone(old.CommandAllowlist))
	if slices.Equal(list, old.CommandAllowlist) {
		return nil
	}
	return a.o.Settings.Edit(func(text []byte) ([]byte, error) { return config.SetList(text, "command_allowlist", list) },
		func(c *config.Config) { c.CommandAllowlist = list })
}

// SetMode writes approvals.mode and obeys it at once.
func (a *Approver) SetMode(mode string) error {
	a.edit.Lock()
	defer a.edit.Unlock()
	return a.o.Settings.Edit(func(text []byte) ([]byte, error) { return config.SetText(text, "approvals.mode", mode) },
		func(c *config.Config) { c.Approvals.Mode = mode })
}

// Mode is approvals.mode, and Allowlist what never needs an approval.
func (a *Approver) Mode() string        { return a.o.Settings.Current().Approvals.Mode }
func (a *Approver) Allowlist() []string { return slices.Clone(a.o.Settings.Current().CommandAllowlist) }

// Yolo reports whether the environment has switched approvals off.
func (a *Approver) Yolo() bool { return a.yolo }
