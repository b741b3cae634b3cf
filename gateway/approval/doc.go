// Package approval decides whether a call of the agent may run: what is asked about, what is allowed already, and what the
// judge says. The questions themselves are put by the turn. It knows no platform and no way to run a command.
package approval
