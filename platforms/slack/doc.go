// Package slack carries one Slack app in one or more workspaces: Socket Mode in, the Web API out.
//
// Each bot token is one Adapter. All of them share one hub, which holds the app's only Socket Mode connection for
// as long as one of them runs, and hands every envelope to the adapter of its workspace.
//
// It promises that an event is acknowledged to Slack only after the core has committed it: an envelope is acknowledged
// after Sink.Accept returned nil. The adapter counts as connected after Slack's hello, and as deaf when neither
// pings nor envelopes have come for a while; then the old connection is closed before a new one is opened. A send
// reports what is known of its outcome, never more. Inside a window that Slack asked to wait nothing is requested.
// Tokens, response URLs and the URL of the connection leave the package in no error and no log line.
//
// It decides where the bot answers (channels, threads, mentions) and never who may talk: that is the core's.
//
// The requests are made by github.com/slack-go/slack, without its retries. Its Socket Mode client is not used,
// because it queues acknowledgements and says nothing of the hello.
package slack
