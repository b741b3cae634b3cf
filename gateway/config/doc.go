// Package config owns what an operator can set: the typed Config, its defaults, and the checks that no single value can
// show. How settings are read, shown, compared and watched is the engine's matter: package tree, which also documents the
// tags of the fields. Home and Paths say where a profile's files are.
//
// The package must not know what the settings do, and touches no network.
package config
