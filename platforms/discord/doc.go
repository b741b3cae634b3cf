// Package discord carries one Discord bot: the gateway WebSocket in, REST v10 out.
//
// It promises that an event is confirmed to the gateway only after the core has committed it: the sequence number
// of heartbeats and resumes is that of the last event for which Sink.Accept returned nil (or that makes no
// event), so that a lost connection and a restart replay everything else. The session is kept in
// Options.Memory for that. Who was disconnected for longer than Discord keeps a session can have missed
// messages fetched (Options.Missed).
//
// A send reports what is known of its outcome, never more. Messages carry a nonce that Discord enforces for
// some minutes: a send whose answer was lost is repeated once with the same nonce, which makes no second
// message and tells what became of the first.
//
// It decides where the bot answers (channels, threads, mentions) and never who may talk: that is the core's.
//
// Types, numbers and codes are those of github.com/bwmarrin/discordgo. Its session is not used: it counts an
// event as seen before its handler has run, opens connections without a bound, waits for rate limits without
// a context, and knows neither nonces nor the address for resuming.
//
// Threads: a mention in a text channel is answered in a thread that hangs on it. Discord gives such a thread
// the message's own id, so that the event's address is known at once; Send opens the thread when the first
// message goes there. Where that is refused for good the answer goes to the channel, as a reply and with a
// note that says why.
//
// Discord's clients never cut one message into several, so that none are joined here.
package discord
