// Package access decides who may talk to the agent, and with which commands.
//
// It promises that without a grant nobody is let in (P13), that messages, commands, clicks, reactions and edits pass
// the same gate, that it goes by the platform's own ids (by @names only where the operator says so), and that a decision
// does no I/O. A policy can be replaced while the gate is in use. Pairing codes are stored hashed, run out, and
// are never part of a log line or an error.
//
// It must not know configuration files, adapters or turns.
package access
