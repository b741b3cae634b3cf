// Package web is the browser chat: one embedded page and the HTTP interface behind it. It is a platform
// like any other, with Herald itself on the server side: what a chat service would keep, a platforms.Log
// keeps.
//
// It promises:
//
//   - A message that the browser was told is sent is accepted (P1), and one that is posted again under
//     the same id is the same message (P2). The order is: save the files, append the entry to the log
//     marked pending, Sink.Accept, take the mark away, answer 200. A crash before Accept leaves an entry
//     that the page shows as not delivered, with a button to try again; a crash after it leaves the same,
//     and trying again is a duplicate that Accept answers with nil. So nothing is lost and nothing runs
//     twice. The entry comes before Accept so that a question stands above its answer.
//   - A message of ours appears once however often Send is called with its nonce (P4).
//   - A chat's messages, buttons and typing go to that chat alone (P5); the chat is part of every event id.
//   - It denies by default (P13): bound to anything but loopback it refuses to be made without a password
//     or a token, and every request is checked for host, origin and session.
//   - The page asks no other server for anything.
//
// It must not know: sessions, turns, models, commands. "/stop" is a text like any other.
package web
