// Package router takes events from the adapters, keeps them, and gives each conversation its actor. It
// promises:
//
//   - An event is committed before its adapter hears so; a redelivered one starts nothing (P1, P2).
//   - Who may talk is decided here, from platform ids, before anything else happens (P13).
//   - A conversation has one turn at a time, and its messages are taken in arrival order (P3).
//   - Commands that control are answered beside the turn and never wait for a model, a tool or a network (P14).
//   - Nothing is dropped without a reason in the row, a counter and a line in the log (P7).
//
// It must not know how a turn works inside, how messages are sent, or what a command does.
package router
