// Package telegramtest is a fake Bot API server with the chats, people and messages behind it. It is a plain
// http.Handler, so that benchmarks and end-to-end tests of the real binary can use it too. It answers as the real
// service does, its error texts included, and can be told to misbehave. It knows nothing of Herald's adapter.
package telegramtest
