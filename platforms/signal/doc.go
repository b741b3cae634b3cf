// Package signal carries one Signal account through a signal-cli daemon in HTTP mode: JSON-RPC out, server-sent events
// in.
//
// It promises that an event that was read is never dropped because the core could not take it: it is held, durably in
// platforms.Memory, and offered again, also after a restart; when too much is held nothing more is read. The stream has
// no acknowledgement, so what the daemon wrote to a connection that then broke may be lost; daemons that number their
// events are asked for what came after the last accepted one. A send reports what is known of its outcome, never more.
//
// A person is known by number and by UUID: User.ID is the number where it is known and else the UUID, User.Alt the UUID.
// A message's id is its timestamp and its author, "1760000000000:<uuid or number>", because Signal names messages by
// both. Our own messages get no id: they can't be edited here.
//
// It decides where the account answers (groups, mentions) and never who may talk: that is the core's.
package signal
