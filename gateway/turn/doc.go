// Package turn is the life of one turn: it claims inbox rows, appends what the person said, runs the agent
// loop, journals every step before its effect, and ends with the answer in transcript and outbox in one
// transaction. Package ask puts its questions to people, package show is what they see of it.
//
// It promises that a turn goes on after any crash from what is committed (P1), that a tool call with a start
// and no end is never run again unless its tool says it may, that an abandoned turn can't write any more,
// and that where things go is copied from the row that caused them (P5).
//
// It must not know which platform it serves, how events are routed, or what commands exist.
package turn
