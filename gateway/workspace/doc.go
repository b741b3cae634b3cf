// Package workspace is where a session works, by both its names: that of the sandbox, which the agent and people use, and
// that of this machine. It makes the environments of a profile, takes checkpoints before calls that change files, brings
// files that were made in a sandbox out, and knows which files never leave. It knows nothing of chats.
package workspace
