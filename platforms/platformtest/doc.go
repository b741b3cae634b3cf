// Package platformtest holds what platforms are tested with: the conformance suite that every adapter
// passes (Run), the recording sink it feeds (Sink), and fake servers that speak a platform's own protocol
// (Telegram). The fakes are plain http.Handlers, so that benchmarks and end-to-end tests of the real
// binary can use them too.
//
// A fake answers as the real service does, its error texts included, and can be told to misbehave as
// networks and services do. It knows the protocol and nothing of Herald's adapters.
package platformtest
