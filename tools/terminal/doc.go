// Package terminal is the agent's shell: the terminal tool over a sandbox.Environment.
//
// It promises that a command ends within its limit with what it printed so far, that it runs where the
// session left off, and that a small set of commands nobody can want from an agent (wiping the machine,
// stopping the daemon that runs it) is refused whatever the mode of approvals is.
//
// It must not know how a command is run, which is the environment's business, nor what becomes of one in the background,
// which is that of package process.
package terminal
