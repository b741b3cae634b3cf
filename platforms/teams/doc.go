// Package teams connects one Microsoft Teams bot: activities come in by the Bot Framework's webhook, answers go out by
// the connector's REST interface.
//
// It promises that nothing is read from a request before its token is proven to come from the Bot Framework, for this
// bot, for the service that the activity names; that 200 is answered only after the core has committed the event; that
// the outcome of each request is reported as it is known; and that no token leaves for a server that is not on the list
// of service hosts. What must outlive a restart (where a conversation is served, which messages are ours, files that
// wait for a person's consent) is in platforms.Memory.
//
// It decides no access and formats no text.
package teams
