package config

import (
	"reflect"
	"slices"
	"strings"

	"herald/gateway/config/tree"
	"herald/platforms"
)

// Platforms holds one block for each kind of platform that Load was given.
type Platforms struct {
	// Parts are the platforms' own settings, in the order of kinds.
	tree.Parts
	kinds []platforms.Kind
}

// Names of types that are described in package platforms, where the platforms themselves can use them.
type (
	Platform = platforms.Common
	Home     = platforms.HomeChannel
)

// Block is the configuration of one platform.
type Block struct {
	Kind platforms.Kind
	platforms.Settings
}

// Name returns the platform's name.
func (b Block) Name() platforms.Name { return b.Kind.Name() }

// Blocks returns the blocks of all platforms, each name once, in the order of the kinds.
func (p Platforms) Blocks() []Block {
	out := make([]Block, len(p.kinds))
	for i, k := range p.kinds {
		out[i] = Block{k, p.Parts[i].(platforms.Settings)}
	}
	return out
}

// Block returns the block of one platform; ok is false when there is no such kind.
func (p Platforms) Block(name platforms.Name) (b Block, ok bool) {
	i := slices.IndexFunc(p.kinds, func(k platforms.Kind) bool { return k.Name() == name })
	if i < 0 {
		return Block{}, false
	}
	return Block{p.kinds[i], p.Parts[i].(platforms.Settings)}, true
}

// Kinds returns the kinds that Load was given.
func (p Platforms) Kinds() []platforms.Kind { return p.kinds }

// Rules returns the rules of all platforms.
func (p Platforms) Rules() platforms.Rulebook { return platforms.RulesOf(p.kinds) }

// Shared returns what all platforms have, of one of them; the defaults for a platform that is not among the kinds.
func (p Platforms) Shared(name platforms.Name) Platform {
	if b, ok := p.Block(name); ok {
		return b.Shared()
	}
	var c struct{ Platform }
	tree.New(tree.Spec{Root: reflect.TypeOf(c)}).Default(&c)
	return c.Platform
}

// Reacts reports whether messages of a platform get emoji.
func (p Platforms) Reacts(name platforms.Name) bool {
	b, ok := p.Block(name)
	if !ok {
		return true
	}
	if on := b.Shared().Reactions; on != nil {
		return *on
	}
	return !b.Kind.Rules().NoReactions
}

// EnvPrefixes returns what the names of all platforms' environment variables begin with.
func (p Platforms) EnvPrefixes() []string {
	var out []string
	for _, name := range platformNames(p.kinds) {
		out = append(out, strings.ToUpper(name)+"_")
	}
	return out
}

func platformNames(kinds []platforms.Kind) []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = string(k.Name())
	}
	return out
}

// parts describes the platforms' blocks to the engine.
func parts(kinds []platforms.Kind) []tree.Part {
	out := make([]tree.Part, len(kinds))
	for i, k := range kinds {
		about := k.About()
		out[i] = tree.Part{Name: string(k.Name()), Label: about.Variables, Doc: about.Block, Type: reflect.TypeOf(k.Settings()).Elem()}
		if about.Door {
			out[i].Reload = ReloadRestart
		}
	}
	return out
}

// findings are what a platform says of its own settings.
type findings struct {
	report *Report
	block  string // the path of the platform's block, with a dot at its end
}

func (f findings) Errorf(key, blame, format string, args ...any) {
	f.report.Errorf(f.block+key, f.report.Origin(f.block+blame), format, args...)
}

func (f findings) Warnf(key, blame, format string, args ...any) {
	f.report.Warnf(f.block+key, f.report.Origin(f.block+blame), format, args...)
}

// validatePlatforms checks what no single value of a platform can show.
func (c *Config) validatePlatforms(r *Report) {
	for _, b := range c.Platforms.Blocks() {
		block := "platforms." + string(b.Name()) + "."
		if own, ok := b.Settings.(platforms.Checked); ok {
			own.Check(findings{r, block})
		}
		for id, o := range b.Shared().ChannelOverrides {
			if key := block + "channel_overrides." + id; o.Provider != "" && o.Model == "" {
				r.Errorf(key+".model", r.Origin(key+".provider"), "is missing: provider %q needs the model's name there", o.Provider)
			}
		}
	}
}

// DoorOpen reports whether a platform lets people in through the HTTP listener.
func (p Platforms) DoorOpen() bool {
	return slices.ContainsFunc(p.Blocks(), func(b Block) bool { return b.Kind.About().Door && b.On() })
}
