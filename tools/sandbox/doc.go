// Package sandbox is where the agent's commands run and where its files live. Environment is the contract;
// NewLocal is the one that runs on this machine, as the user of the daemon.
//
// It promises that a command gets a fresh shell in the directory where its session left off, an environment
// without secrets, bounded memory for its output, and an end: after a timeout or an interrupt nothing that
// the command started is left alive, also when a part of it moved into a session of its own.
//
// It must not know the model, chats, approvals or tool schemas: tools/terminal and tools/files bring those.
package sandbox
