// Package platformtest holds what platforms are tested with: the conformance suite that every adapter passes (Run)
// and the recording sink it feeds (Sink). Each platform's fake server has a package of its own below this one
// (telegramtest, slacktest, ...); what they share of a network that goes wrong is in faults, and oracle runs clients
// that others wrote against them.
//
// A fake is a plain http.Handler that answers as the real service does, its error texts included, and can be told to
// misbehave as networks and services do. It knows the protocol and nothing of Herald's adapters.
package platformtest
