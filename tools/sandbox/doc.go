// Package sandbox is the contract of where the agent's commands run and where its files live. Each environment has a package
// of its own below it: local, docker, ssh, and auto, which decides between them.
//
// It promises that a command gets a fresh shell in the directory where its session left off, an environment
// without secrets, bounded memory for its output, and an end: after a timeout or an interrupt nothing that
// the command started is left alive, also when a part of it moved into a session of its own.
//
// It must not know the model, chats, approvals or tool schemas: tools/terminal and tools/files bring those.
package sandbox
