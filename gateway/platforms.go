package gateway

import (
	"context"
	"path/filepath"

	"herald/gateway/command"
	"herald/platforms"
)

// hostOf is what a platform gets to work with, by the configuration that is in force.
func (g *Gateway) hostOf(kind platforms.Kind) platforms.Host {
	cfg, name := g.cfg(), kind.Name()
	return platforms.Host{
		Log: g.log, Metrics: g.metrics.Adapter(name), Memory: g.memoryOf, Entries: g.store.ChatLog(), Downloads: g.downloads,
		Home: g.opt.Paths.Home, Media: filepath.Join(g.opt.Paths.Media, string(name)),
		ConnectTimeout: cfg.Gateway.ConnectTimeout, TrustEnv: cfg.Gateway.TrustEnv, Reactions: cfg.Platforms.Reacts(name),
		MaxMedia: int64(cfg.Gateway.MaxInboundMedia), MaxText: int64(cfg.Gateway.MaxMessage),
		Live: func() platforms.Settings {
			b, _ := g.cfg().Platforms.Block(name)
			return b.Settings
		},
		Commands: command.New(command.Services{}).Infos(),
		HTTP: platforms.Listener{Address: g.listener.Addr().String(), Password: cfg.HTTP.Password.Reveal(),
			Token: cfg.HTTP.Token.Reveal(), Hosts: publicHosts(cfg.HTTP.PublicURL)},
		Version: g.opt.Version, Now: g.now,
	}
}

// addAccounts makes the adapters of a platform that is on; "" stands for all. A platform that can't be made is named in the
// log and in health, and the others go on, except for a door: one that is open to everyone is refused (P13).
func (g *Gateway) addAccounts(only platforms.Name) error {
	for _, b := range g.cfg().Platforms.Blocks() {
		name := b.Name()
		if !b.On() || only != "" && only != name {
			continue
		}
		logins, err := b.Kind.New(g.hostOf(b.Kind), b.Settings)
		if err != nil && b.Kind.About().Door {
			return err
		}
		if err != nil {
			g.accounts.fail(name, err)
		}
		for _, login := range logins {
			g.accounts.add(newAccount(login))
		}
	}
	return nil
}

func newAccount(l platforms.Login) *account {
	return &account{adapter: l.Adapter, identity: l.Identity, lockName: l.LockName, port: l.Port, host: l.Host, portKey: l.PortKey}
}

// restartAccounts starts the adapters of these platforms again with the configuration that is in force; "" stands for all
// that can be. A door lives as long as the listener.
func (g *Gateway) restartAccounts(names map[platforms.Name]bool) {
	again := false
	for _, kind := range g.cfg().Platforms.Kinds() {
		if name := kind.Name(); !kind.About().Door && (names[name] || names[""]) {
			g.accounts.remove(name)
			_ = g.addAccounts(name) // only a door's error comes back
			again = true
		}
	}
	if again {
		g.setCommands()
	}
}

// doors returns the adapters that let people in through the listener.
func (g *Gateway) doors() []platforms.Door {
	var out []platforms.Door
	for _, name := range g.accounts.names() {
		adapter, _ := g.accounts.Adapter(name)
		if door, ok := adapter.(platforms.Door); ok {
			out = append(out, door)
		}
	}
	return out
}

// mountPages serves the platforms' own pages behind the door.
func (g *Gateway) mountPages() {
	for _, door := range g.doors() {
		for _, kind := range g.cfg().Platforms.Kinds() {
			pager, ok := kind.(platforms.Pager)
			if !ok {
				continue
			}
			desk := platforms.Desk{Host: func() platforms.Host { return g.hostOf(kind) }, Go: g.beside, Adapter: g.accounts.Adapter}
			for pattern, page := range pager.Pages(desk) {
				g.mux.Handle(pattern, door.Behind(page))
			}
		}
	}
}

// beside runs fn until the daemon ends.
func (g *Gateway) beside(fn func(context.Context)) {
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		fn(g.life)
	}()
}
