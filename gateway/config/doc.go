// Package config owns what an operator can set: the typed Config, its defaults, where each value came from,
// and what a changed value needs to take effect.
//
// A value is taken from the first place that has it: a flag, the environment, the home's .env file,
// config.yaml, the default. An unknown key is a warning that names the nearest known one; a bad value is an
// error that names key, place, value and what is allowed, and all of them are reported at once. Secrets come from the
// environment or .env alone, print as "***", and are never repeated in a message.
//
// Each field's tag is the one source of its documentation: yaml (its key), default, doc (meaning and unit), min and
// max (inclusive), oneof, check, reload (what a change needs), env (names beside the mechanical HERALD_ one), words
// that stand for 0, short (the field that a bare value sets). Load, Show, Schema and Diff all read the same tags.
//
// The package must not know what the settings do, and touches no network. It never writes to the process environment.
package config
