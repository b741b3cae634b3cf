package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/config"
	"herald/platforms/all"
	"herald/sessions/sqlite"
)

// globals are the flags that every verb has.
type globals struct {
	home    string
	profile string
	set     []string
}

// buildVersion is set by the linker (-X main.buildVersion=...).
var buildVersion = ""

// version returns the version of this build: the linker's, else what the module's build information says.
func version() string {
	if buildVersion != "" {
		return buildVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// profileName is the profile that is meant.
func (g *globals) profileName() string {
	switch {
	case g.profile != "":
		return g.profile
	case os.Getenv("HERALD_PROFILE") != "":
		return os.Getenv("HERALD_PROFILE")
	}
	return config.DefaultProfile
}

// paths finds the home and makes it.
func (g *globals) paths() (config.Paths, error) {
	home, err := config.ResolveHome(g.home, g.profileName(), os.Environ())
	if err != nil {
		return config.Paths{}, coded{err, exitConfig}
	}
	paths, err := config.OpenHome(home)
	if err != nil {
		return config.Paths{}, coded{err, exitConfig}
	}
	return paths, nil
}

// source says where the configuration is.
func (g *globals) source(p config.Paths) (config.Source, error) {
	flags := map[string]string{}
	for _, s := range g.set {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return config.Source{}, coded{fmt.Errorf("--set %q: want key=value, such as http.listen=127.0.0.1:0", s), exitConfig}
		}
		flags[strings.TrimSpace(key)] = value
	}
	return config.Source{Kinds: all.Kinds(), Home: p.Home, File: os.Getenv("HERALD_CONFIG"), Environ: os.Environ(), Flags: flags}, nil
}

// withStore runs fn on the database of a home that no daemon serves.
func (g *globals) withStore(ctx context.Context, fn func(*sqlite.Store) error) error {
	paths, err := g.paths()
	if err != nil {
		return err
	}
	store, err := g.openStore(ctx, paths)
	if err != nil {
		return err
	}
	defer store.Close()
	return fn(store)
}

// openStore opens the database of a home that no daemon serves.
func (g *globals) openStore(ctx context.Context, p config.Paths) (*sqlite.Store, error) {
	return sqlite.Open(ctx, sqlite.Options{Path: p.DB, Home: p.Home, Profile: g.profileName(), Log: zerolog.Nop(), Clock: time.Now})
}
