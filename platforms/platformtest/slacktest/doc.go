// Package slacktest is a fake Slack: the Web API, Socket Mode, uploads, response URLs, and the workspaces,
// channels and people behind them. It is a plain http.Handler, so that benchmarks and end-to-end tests of the
// real binary can use it too.
//
// The fake answers as Slack does, its error codes included, and can be told to misbehave as networks and
// services do. It knows the protocol and nothing of Herald's adapter. One app is installed in every workspace
// of a Server: it has one app token, and a bot user with its own bot token in each workspace. All methods of
// Server are safe for concurrent use, and people's acts return at once: events are delivered when a Socket
// Mode connection takes them.
//
// What surprises in Slack, and so here:
//
//   - A mention in a shared channel comes as two events with two event ids and one ts: message and app_mention.
//     A direct chat has no app_mention.
//   - The app hears its own messages, edits, deletions and reactions.
//   - An event without its scope, or from a channel that the bot is not in, doesn't come; nobody says so.
//   - Events are sent again until they are acknowledged, with the same event_id. Commands and presses are not:
//     the person is told that it failed (Interaction.Failed).
//   - chat.postMessage cuts a text at 40,000 characters; chat.update refuses one of more than 4,000 bytes. An
//     update with text and without blocks takes the blocks off.
//   - A stream refuses chat.update and chat.delete while it is open, and chat.appendStream afterwards.
//   - A download without a good token gets a sign-in page with status 200.
//   - Methods that read take no JSON body, and don't say so.
//
// Package oracle's slack.mjs, Slack's own Bolt framework, holds a conversation with the fake in this package's
// tests.
package slacktest
