// Package command holds the slash commands: one registry, and one file per family. A command is parsed from
// text or comes natively from the platform; it acts through the narrow services in Services and commits
// its effect, its answer and its inbox row in one transaction, so that a crash can neither lose nor
// repeat it.
//
// It must not know platforms beyond their ids, nor how turns run.
package command
