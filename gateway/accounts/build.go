package accounts

import (
	"errors"
	"net"
	"path/filepath"
	"strings"

	"herald/gateway/config"
	"herald/platforms"
	"herald/platforms/fetch"
	"herald/sessions"
)

// build makes the adapters of a platform that is on; "" means all. A platform that can't be made is noted, but for a door's
// error, which is returned.
func (a *Accounts) build(only platforms.Name) error {
	for _, b := range a.o.Config().Platforms.Blocks() {
		name := b.Name()
		if !b.On() || only != "" && only != name {
			continue
		}
		logins, err := b.Kind.New(a.host(b.Kind), b.Settings)
		if err != nil && b.Kind.About().Door {
			return err
		}
		if err != nil {
			a.fail(name, err)
		}
		for _, login := range logins {
			a.add(login)
		}
	}
	return nil
}

// fail notes a platform that can't be made: it is named in the log and in health.
func (a *Accounts) fail(name platforms.Name, err error) {
	var se *platforms.StartError
	if !errors.As(err, &se) {
		se = &platforms.StartError{Err: err}
	}
	se.Account.Platform = name
	a.mu.Lock()
	a.failed[se.Account.Platform] = se
	a.mu.Unlock()
	a.o.Log.Error().Str("account", se.Account.String()).Err(err).Msg("a platform can't start; the others go on")
}

// host is what a platform gets to work with, by the configuration in force.
func (a *Accounts) host(kind platforms.Kind) platforms.Host {
	cfg, name := a.o.Config(), kind.Name()
	return platforms.Host{
		Log: a.o.Log, Metrics: a.o.Metrics(name), Entries: a.o.Store.ChatLog(),
		Memory: func(account platforms.Account) platforms.Memory {
			return sessions.MemoryOf(a.o.Store, account, a.o.Now)
		},
		Downloads: func(proxy string, own ...string) fetch.Options {
			return Downloads(a.o.Config(), proxy, own...)
		},
		Home: a.o.Paths.Home, Media: filepath.Join(a.o.Paths.Media, string(name)),
		ConnectTimeout: cfg.Gateway.ConnectTimeout, TrustEnv: cfg.Gateway.TrustEnv, Reactions: cfg.Platforms.Reacts(name),
		MaxMedia: int64(cfg.Gateway.MaxInboundMedia), MaxText: int64(cfg.Gateway.MaxMessage),
		Live: func() platforms.Settings {
			b, _ := a.o.Config().Platforms.Block(name)
			return b.Settings
		},
		Commands: a.o.Commands,
		HTTP: platforms.Listener{Address: a.o.Address, Password: cfg.HTTP.Password.Reveal(),
			Token: cfg.HTTP.Token.Reveal(), Hosts: publicHosts(cfg.HTTP.PublicURL)},
		Version: a.o.Version, Now: a.o.Now,
	}
}

// Downloads returns how files that messages and jobs name are fetched. own are servers of a platform's own configuration (a
// base URL that may be a private one); proxy is the platform's own proxy, empty for none.
func Downloads(cfg *config.Config, proxy string, own ...string) fetch.Options {
	o := fetch.Options{TrustEnv: cfg.Gateway.TrustEnv, Proxy: proxy, Connect: cfg.Gateway.ConnectTimeout}
	for _, entry := range append(own, cfg.Gateway.DownloadHosts...) {
		if entry != "" {
			o.Allow = append(o.Allow, entry)
		}
	}
	return o
}

// publicHosts is the host name of http.public_url.
func publicHosts(public string) []string {
	rest := strings.TrimPrefix(strings.TrimPrefix(public, "https://"), "http://")
	host, _, _ := strings.Cut(rest, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "" {
		return nil
	}
	return []string{host}
}
