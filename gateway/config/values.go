package config

import (
	"herald/gateway/config/tree"
	"herald/platforms"
)

// The types of values, and what the engine tells about them.
type (
	Secret  = platforms.Secret
	Rate    = platforms.Rate
	Bytes   = tree.Bytes
	Report  = tree.Report
	Origin  = tree.Origin
	Problem = tree.Problem
	Change  = tree.Change
	Reload  = tree.Reload
	// WatchOptions are the times of Watch.
	WatchOptions = tree.WatchOptions
)

// The kinds of reload, from the lightest.
const (
	ReloadLive    = tree.ReloadLive
	ReloadSession = tree.ReloadSession
	ReloadAdapter = tree.ReloadAdapter
	ReloadRestart = tree.ReloadRestart
)

// MaxFileBytes is the most that config.yaml or .env may have.
const MaxFileBytes = tree.MaxFileBytes

// NewSecret wraps a value.
func NewSecret(value string) Secret { return platforms.NewSecret(value) }

// Nearest returns the candidate closest to a mistyped name, or "" when none is close enough to be meant.
func Nearest(name string, candidates []string) string { return tree.Nearest(name, candidates) }

// YAMLError takes the line out of an error of the YAML library; 1 where it names none.
func YAMLError(err error) (line int, text string) { return tree.YAMLError(err) }

// Variable is one line of a .env file.
type Variable = tree.Variable

// ParseDotEnv reads the KEY=value lines of a .env file; see tree.ParseDotEnv.
func ParseDotEnv(data []byte) (vars []Variable, problems []string) { return tree.ParseDotEnv(data) }

// Edit changes a file as tree.Edit does.
func Edit(name string, change func(text []byte) ([]byte, error)) error {
	return tree.Edit(name, change)
}

// SetText returns the text of a config.yaml with a value at a dotted key of one or two parts.
func SetText(text []byte, key, value string) ([]byte, error) { return tree.SetText(text, key, value) }

// SetList returns the text of a config.yaml with a list of texts at a dotted key of one or two parts.
func SetList(text []byte, key string, values []string) ([]byte, error) {
	return tree.SetList(text, key, values)
}
