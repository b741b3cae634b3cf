package brief

import (
	"herald/platforms"
	"herald/sessions"
)

// rules are those of a platform.
func (w *Writer) rules(name platforms.Name) platforms.Rules { return w.o.Rules.Of(name) }

// alwaysThreads reports whether every message at a place belongs to a thread, so that nothing is said outside of one.
func (w *Writer) alwaysThreads(place sessions.Origin) bool {
	always := w.rules(place.Address.Platform).AlwaysThread
	return always != nil && always(place.ChatType)
}

// threadOf returns the thread that a reply to a message begins, where the platform names it after the message; else "".
func (w *Writer) threadOf(place sessions.Origin, sent platforms.MessageID) platforms.ThreadID {
	named := w.rules(place.Address.Platform).ReplyThread
	if named == nil || !named(place.ChatType) {
		return ""
	}
	return platforms.ThreadID(sent)
}

// threadsAreRooms reports whether events from a thread of the place come from a room of its own.
func (w *Writer) threadsAreRooms(place sessions.Origin) bool {
	return w.rules(place.Address.Platform).ThreadRooms && place.ChatType != platforms.DM
}
