// Package slacktest is a fake Slack: the Web API, Socket Mode, uploads, response URLs, and the workspaces,
// channels and people behind them. It is a plain http.Handler, so that benchmarks and end-to-end tests of the
// real binary can use it too.
//
// The fake answers as Slack does, its error codes included, and can be told to misbehave as networks and
// services do. It knows the protocol and nothing of Herald's adapter. One app is installed in every workspace
// of a Server: it has one app token, and a bot user with its own bot token in each workspace. All methods of
// Server are safe for concurrent use, and people's acts return at once: events are delivered when a Socket
// Mode connection takes them.
package slacktest
