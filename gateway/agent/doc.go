// Package agent is the loop between a model and the tools: it sends the conversation, runs the calls that
// come back, takes in what people say meanwhile, compacts the history when it grows too long, and ends
// with a final text within a budget.
//
// It promises that the conversation it sends is always valid (roles alternate, every call has a result),
// that the prompt's beginning stays byte-stable within a session, that an interrupt ends a model call at
// once, and that nothing is remembered in memory alone: each answer is handed to the Turn, which commits
// it, before the loop goes on.
//
// It must not know platforms' addresses, delivery or commands.
package agent
