// Package telegram carries one Telegram bot: long polling or webhook in, the Bot API out.
//
// It promises that an update is confirmed to Telegram only after the core has committed it: the offset of
// getUpdates moves, and a webhook call is answered with 200, after Sink.Accept returned nil. Pending
// updates are never thrown away. A send reports what is known of its outcome, never more: what may have
// reached Telegram is Unknown, what certainly did not is NotSent. The token, which the Bot API carries in
// every URL, leaves the package in no error and no log line.
//
// It decides where the bot answers (groups, topics, mentions) and never who may talk: that is the core's.
//
// The requests are made by github.com/go-telegram/bot. Its own polling loop is not used, because it
// confirms updates before their handler has run.
//
// Albums: Telegram delivers each picture of an album as an update of its own. Those that arrive in one
// batch are merged into one Message under the id of the first update. A batch that ends inside an album
// is not accepted at once: what came before the album is, and the rest is asked for again after
// Options.AlbumWait, until the album has stopped growing. Over a webhook every picture is its own event.
package telegram
