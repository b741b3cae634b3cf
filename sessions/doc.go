// Package sessions owns what Herald remembers: session keys, transcripts, the inbox of accepted events,
// the outbox of messages to deliver, and the journal of turns. It holds the types and the Store interface;
// sessions/sqlite is the one implementation and the only package that opens a database.
//
// What it promises:
//
//   - A session key is made by KeyFor and nowhere else.
//   - What Update returned nil for is on disk and survives kill -9 and power loss.
//   - Transcripts are append-only. Undo, retry and compaction mark rows; they delete none.
//   - An event is kept once: the same (platform, account, event id) is a duplicate for seven days.
//
// It must not know how a turn runs, how a platform talks, or what a model is.
package sessions
