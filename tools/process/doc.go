// Package process keeps the background processes of conversations: their output, their ends, and what people and the model hear about them.
// It promises:
//
//   - A process belongs to the session that started it; for every other one there is no such process (P6).
//   - What was started is known on disk before it runs, so that a restart takes it up again with its output and its
//     exit code, whatever happened to the daemon.
//   - Its end is told exactly once, or not at all where the agent has seen it already (P1).
//   - A process that prints without end fills neither memory nor the conversation.
//
// It must not know how a process is run (sandbox.Environment), how records are kept or how news reach a conversation
// (Store).
package process
