package brief

import (
	"herald/platforms"
	"herald/sessions"
)

// What differs by platform about the threads of briefs.
const (
	discord  platforms.Name = "discord"
	slack    platforms.Name = "slack"
	teams    platforms.Name = "teams"
	telegram platforms.Name = "telegram"
)

// alwaysThreads reports whether every message at a place begins a thread, so that nothing is said outside of one.
func alwaysThreads(place sessions.Origin) bool {
	return place.Address.Platform == teams && place.ChatType == platforms.Channel
}

// threadOf returns the thread that a reply to a message begins, where the platform names it after the message; else "".
func threadOf(place sessions.Origin, sent platforms.MessageID) platforms.ThreadID {
	switch at := place.Address; {
	case at.Platform == slack,
		at.Platform == discord && place.ChatType != platforms.DM,
		at.Platform == teams && place.ChatType == platforms.Channel:
		return platforms.ThreadID(sent)
	}
	return ""
}

// threadsAreChats reports whether events from a thread of the place name the thread as their chat.
func threadsAreChats(place sessions.Origin) bool {
	return place.Address.Platform == discord && place.ChatType != platforms.DM
}

// hasScopes reports whether the ids of a platform are unique within a workspace only.
func hasScopes(name platforms.Name) bool { return name == slack }

// hasTopics reports whether a thread is one of few that people have named, unlike the thread of a message: each job has one
// in a chat, and continues in it.
func hasTopics(name platforms.Name) bool { return name == telegram }
