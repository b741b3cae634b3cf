package accounts

import (
	"context"
	"fmt"
	"time"

	"herald/platforms"
)

// find returns the entry of an account, nil when there is none.
func (a *Accounts) find(name platforms.Account) *account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, acc := range a.list {
		if acc.Adapter.Account() == name {
			return acc
		}
	}
	return nil
}

// Adapter returns the adapter that has an account now.
func (a *Accounts) Adapter(name platforms.Account) (platforms.Adapter, bool) {
	acc := a.find(name)
	if acc == nil {
		return nil, false
	}
	return acc.Adapter, true
}

// Names returns the accounts that exist, in the order in which they were made.
func (a *Accounts) Names() []platforms.Account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	out := make([]platforms.Account, len(a.list))
	for i, acc := range a.list {
		out[i] = acc.Adapter.Account()
	}
	return out
}

// Trusted returns the platforms whose adapters decide themselves who may come in.
func (a *Accounts) Trusted() []platforms.Name {
	var out []platforms.Name
	for _, name := range a.Names() {
		if a.IsTrusted(name) {
			out = append(out, name.Platform)
		}
	}
	return out
}

// IsTrusted reports whether an account's adapter decides itself who may come in.
func (a *Accounts) IsTrusted(name platforms.Account) bool {
	acc := a.find(name)
	return acc != nil && acc.Adapter.Traits().Trusted
}

// Doors returns the adapters that let people in through the HTTP listener.
func (a *Accounts) Doors() []platforms.Door {
	var out []platforms.Door
	for _, name := range a.Names() {
		adapter, _ := a.Adapter(name)
		if door, ok := adapter.(platforms.Door); ok {
			out = append(out, door)
		}
	}
	return out
}

// Traits are those of the adapter that serves an address; plain text where there is none.
func (a *Accounts) Traits(at platforms.Address) platforms.Traits {
	if adapter, ok := a.Adapter(at.AccountOf()); ok {
		return adapter.Traits()
	}
	return platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}}
}

// Describe asks a platform what events from an address carry.
func (a *Accounts) Describe(ctx context.Context, at platforms.Address) (platforms.Room, error) {
	adapter, ok := a.Adapter(at.AccountOf())
	if !ok {
		return platforms.Room{}, fmt.Errorf("no adapter serves %s", at.AccountOf())
	}
	describer, ok := adapter.(platforms.Describer)
	if !ok {
		return platforms.Room{}, fmt.Errorf("%s describes no places", at.Platform)
	}
	return describer.Describe(ctx, at)
}

// AnswerClick tells the presser of a button what came of it, beside the caller; an error is only logged.
func (a *Accounts) AnswerClick(at platforms.Address, click platforms.Click, text string) {
	adapter, ok := a.Adapter(at.AccountOf())
	if !ok {
		return
	}
	clicker, can := adapter.(platforms.Clicker)
	if !can {
		return
	}
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := clicker.AnswerClick(ctx, at, click, text); err != nil {
			a.o.Log.Debug().Str("account", at.AccountOf().String()).Err(err).Msg("a button press could not be answered")
		}
	}()
}

// setCommands gives the command menu to every platform that has one, beside the caller and bounded in time; an error is only
// logged.
func (a *Accounts) setCommands() {
	a.mu.RLock()
	ctx := a.ctx
	a.mu.RUnlock()
	if ctx == nil {
		return
	}
	for _, name := range a.Names() {
		adapter, _ := a.Adapter(name)
		lister, can := adapter.(platforms.CommandLister)
		if !can {
			continue
		}
		a.wg.Add(1)
		go func() {
			defer a.wg.Done()
			call, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if err := lister.SetCommands(call, a.o.Commands); err != nil && ctx.Err() == nil {
				a.o.Log.Warn().Str("account", name.String()).Err(err).Msg("the command menu could not be set")
			}
		}()
	}
}
