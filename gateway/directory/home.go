package directory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"herald/platforms"
	"herald/sessions"
)

// keptHome is a home channel that was chosen in its chat.
type keptHome struct {
	Address platforms.Address `json:"address"`
	Name    string            `json:"name,omitempty"`
}

// home returns a platform's home channel: what /sethome has chosen there, else what the configuration and the
// environment say. Neither switches the platform on.
func (d *Directory) home(ctx context.Context, name platforms.Name) (Home, bool, error) {
	var kept keptHome
	err := d.o.Store.View(ctx, func(v sessions.View) error {
		val, err := v.Value(sessions.SpaceHome, string(name))
		if err != nil {
			return err
		}
		return json.Unmarshal(val.Data, &kept)
	})
	if err == nil && kept.Address.Chat != "" {
		return Home{Account: kept.Address.Account, Chat: kept.Address.Chat, Thread: kept.Address.Thread, Name: kept.Name}, true, nil
	}
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return Home{}, false, fmt.Errorf("home channel of %s: %w", name, err)
	}
	c := d.o.Config().Platforms.Shared(name).HomeChannel
	return Home{Chat: platforms.ChatID(c.Chat), Thread: platforms.ThreadID(c.Thread), Name: c.Name}, c.IsSet(), nil
}

// SetHome makes the place of an event its platform's home channel, inside a command's transaction; off takes back the
// choice, so that the configured one holds again.
func (d *Directory) SetHome(tx sessions.Tx, e platforms.Event, off bool) error {
	name := string(e.Address.Platform)
	if off {
		return tx.SetValue(sessions.SpaceHome, name, nil, d.o.Now())
	}
	data, err := json.Marshal(keptHome{Address: e.Address, Name: cmp.Or(e.ChatName, "Home")})
	if err != nil {
		return err
	}
	return tx.SetValue(sessions.SpaceHome, name, data, d.o.Now())
}

// Homes returns the place of every running platform's home channel. One that is not clear is logged and left out.
func (d *Directory) Homes(ctx context.Context, want func(platforms.Name) bool) []platforms.Address {
	var out []platforms.Address
	seen := map[platforms.Name]bool{}
	for _, account := range d.o.Accounts.Names() {
		name := account.Platform
		if seen[name] || !want(name) {
			continue
		}
		seen[name] = true
		if _, ok, err := d.home(ctx, name); err != nil || !ok {
			continue
		}
		at, err := d.Find(ctx, string(name))
		if err != nil {
			d.o.Log.Warn().Str("platform", string(name)).Err(err).Msg("the home channel can't be found")
			continue
		}
		out = append(out, at)
	}
	return out
}
