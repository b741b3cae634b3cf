package config

import (
	"context"
	"reflect"

	"herald/gateway/config/tree"
	"herald/platforms"
)

// Source is where Load looks, and for what.
type Source struct {
	// Kinds are the platforms that there are.
	Kinds []platforms.Kind
	// Home is the profile's home directory. Empty: no files are read.
	Home string
	// File is the configuration file in place of config.yaml in Home; it must exist.
	File string
	// Environ is the environment as "NAME=value" texts, such as os.Environ(). nil: none.
	Environ []string
	// Flags are values by dotted key that the command line gave, such as {"http.listen": "127.0.0.1:0"}.
	Flags map[string]string
	// UserHome is what "~/" in paths stands for; empty: the HOME of Environ.
	UserHome string
}

func (s Source) tree() tree.Source {
	return tree.Source{Home: s.Home, File: s.File, Environ: s.Environ, Flags: s.Flags, UserHome: s.UserHome}
}

// spec is how the settings of Herald are named. The names of the ecosystem are those that operators know from elsewhere.
func spec(kinds []platforms.Kind) tree.Spec {
	return tree.Spec{
		Root: reflect.TypeFor[Config](), Title: "Herald configuration", Prefix: "HERALD_",
		// These are read elsewhere.
		Foreign: []string{"HERALD_HOME", "HERALD_PROFILE", "HERALD_CONFIG", "HERALD_FAILPOINT", "HERALD_BENCH", "HERALD_TEST",
			"HERALD_YOLO_MODE"},
		Names: map[string][]string{"platform": platformNames(kinds)},
		Bare:  "platforms", Loose: "extra", Inner: "gateway", Renamed: renamed(kinds), Parts: parts(kinds),
	}
}

// renamed are keys of older and of related configurations.
func renamed(kinds []platforms.Kind) []tree.Renaming {
	list := []tree.Renaming{
		{From: "language", To: "display.language"},
		{From: "platform_toolsets", To: "tools.platform_toolsets"},
		{From: "tool_loop_guardrails", To: "tools.tool_loop_guardrails"},
		{From: "fallback_providers", To: "model.fallbacks"},
		{From: "session_store_max_age_days", To: "sessions.retention_days"},
		{From: "agent.gateway_auto_continue_freshness", To: "agent.auto_continue_freshness"},
		{From: "agent.agent_cache"},
		{From: "agent.gateway_turn_lease_timeout"},
		{From: "compression.in_place"},
		{From: "session_reset"},
		{From: "reset_by_type"},
		{From: "reset_by_platform"},
		{From: "write_sessions_json"},
		{From: "always_log_local"},
		{From: "gateway.delivery_ledger"},
		{From: "streaming.transport"},
	}
	for _, k := range kinds {
		for _, key := range k.About().Obsolete {
			list = append(list, tree.Renaming{From: "platforms." + string(k.Name()) + "." + key})
		}
	}
	return list
}

// keys are those of the settings.
func keys(kinds []platforms.Kind) *tree.Tree { return tree.New(spec(kinds)) }

func (c *Config) keys() *tree.Tree { return keys(c.Platforms.kinds) }

// Load reads the configuration. The Config is complete in any case: a value that is no good is left as it was before.
// err is Report.Err: all errors at once, with which a daemon must not start. It reads config.yaml and .env in the
// home, both of which may be missing, and nothing else.
func Load(src Source) (*Config, *Report, error) {
	c := &Config{Platforms: Platforms{kinds: src.Kinds}}
	r := c.keys().Load(src.tree(), c)
	c.validate(r)
	c.spareOthers(r)
	return c, r, r.Err()
}

// Default returns the configuration that holds when nothing is set.
func Default(kinds ...platforms.Kind) *Config {
	c := &Config{Platforms: Platforms{kinds: kinds}}
	c.keys().Default(c)
	return c
}

// Check loads a configuration and returns what Report.Text says about it, and whether Herald would start with it.
func Check(src Source) (text string, ok bool) {
	_, r, err := Load(src)
	return r.Text(), err == nil
}

// Watch reads the configuration again whenever config.yaml or .env has changed, until ctx ends. It calls on from one
// goroutine, its caller's, with the new Config, its Report, and what differs; for content that changes no value it
// does not call. When the new files have errors the old Config stays: on gets it together with the new Report, whose
// Errors say why, and no changes. It returns ctx's error.
func Watch(ctx context.Context, src Source, current *Config, opts WatchOptions, on func(*Config, *Report, []Change)) error {
	return tree.Watch(ctx, src.tree().Files(), opts, func() (use func()) {
		c, r, err := Load(src)
		return func() {
			if err != nil {
				on(current, r, nil)
			} else if changes := Diff(current, c); len(changes) > 0 {
				current = c
				on(c, r, changes)
			}
		}
	})
}

// Diff lists what differs, in the order of the Config.
func Diff(before, after *Config) []Change { return after.keys().Diff(before, after) }

// InForce returns what a running daemon obeys after a reload: loaded, but with the values of running for all keys that
// need a restart. Neither is changed.
func InForce(running, loaded *Config) *Config {
	out := *loaded
	loaded.keys().KeepRunning(running, &out)
	return &out
}

// Show returns the whole configuration as YAML, with the origin of each value as a comment. Secrets are "***". The text can
// be used as a config.yaml once the secrets are taken out. r may be nil: then there are no comments.
func Show(c *Config, r *Report) []byte { return c.keys().Show(c, r) }

// ShowChanged is Show with only the values that are not the default.
func ShowChanged(c *Config, r *Report) []byte { return c.keys().ShowChanged(c, r) }

// Secrets returns the value of every secret that is set, for a redactor. The result is itself secret.
func (c *Config) Secrets() []string { return c.keys().Secrets(c) }

// Schema returns a JSON Schema (draft 2020-12) of config.yaml, for editors. Secrets are left out, since they have no place
// there.
func Schema(kinds ...platforms.Kind) []byte { return keys(kinds).Schema() }

// Reference returns a page in Markdown with every key: its meaning, what it may be, its default, its variables, and
// what a change of it needs. It is made from the same tags that Load reads.
func Reference(kinds ...platforms.Kind) []byte {
	return append([]byte("# Configuration\n\n"+
		"A value is taken from the first that has it: a flag, the environment, `.env` in the home, `config.yaml`, the default.\n"+
		"Secrets are read from the environment and `.env` (mode 0600) only. After a change a key takes effect at once (live), for new\n"+
		"sessions (session), by restarting the platform's adapter (adapter), or by restarting Herald (restart).\n"),
		keys(kinds).Reference()...)
}
