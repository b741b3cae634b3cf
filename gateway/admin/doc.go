// Package admin is how operators look at a running daemon: health and metrics over HTTP, and the control
// socket that the command line talks to. It promises that ready means "inbound can be admitted now", per
// account, and that nothing here waits for a turn.
//
// It sees read-only views and a few named actions; it must not know how they work.
package admin
