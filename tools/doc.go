// Package tools is the dispatch bus: the only way to run a capability of the agent. It holds the registry
// of tools, their availability, the coercion and validation of arguments, the planner that decides what
// may run side by side, the storage of oversized results, and the writer that is safe in shared places.
//
// It promises that every call, whoever makes it (the model, a command, a kernel's RPC, a subagent, cron),
// passes the same middlewares in the same order, and that Dispatch never panics and always returns a
// Result. A tool family is a package below this one (tools/files, tools/terminal, ...).
//
// It must not know sessions, platforms, models or the gateway: who calls travels as plain ids in Caller, and what a tool
// needs from outside it declares as a small interface of its own.
package tools
