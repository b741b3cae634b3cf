package cron

import (
	"herald/platforms"
	"herald/sessions"
)

// A brief that is mirrored is written into the conversation of the chat it went to, so that a reply to it meets an agent
// that has read it. That is right where the chat is the job's own, and wrong where it is one of many.

// MirrorEnabled reports whether a job's briefs are mirrored at all: attach is what the job says, nil when it says nothing,
// and global the configuration.
func MirrorEnabled(attach *bool, global bool) bool {
	if attach != nil {
		return *attach
	}
	return global
}

// MirrorEligible reports whether a brief is written into the conversation of the chat that it goes to. The job's own chat
// and the home channel used instead of it are mirrored when it is enabled; a chat that the author wrote only when the job
// itself says so, never by the configuration alone; bare platforms and the targets of DeliverAll never, unless they are the
// job's own chat.
func MirrorEligible(t Target, origin *sessions.Origin, attach *bool, global bool) bool {
	switch {
	case !MirrorEnabled(attach, global):
		return false
	case isOrigin(t, origin), t.From == FromFallback:
		return true
	case t.From == FromExplicit:
		return attach != nil && *attach
	}
	return false
}

// MatchesOrigin reports whether a place is the chat that the job was made in, and its thread where the job was made in one.
func MatchesOrigin(at platforms.Address, origin *sessions.Origin) bool {
	origin = madeIn(origin)
	return origin != nil && at.SameChat(origin.Address) && (origin.Address.Thread == "" || origin.Address.Thread == at.Thread)
}

// isOrigin also knows the target that has lost the stale thread of its origin.
func isOrigin(t Target, origin *sessions.Origin) bool {
	return t.From == FromOrigin && madeIn(origin) != nil || MatchesOrigin(t.Address, origin)
}

// IsDM reports whether a place is a chat with one person. What the origin says counts for its own chat; of another one
// the id tells it on the platforms whose ids do.
func IsDM(rules platforms.Rulebook, origin *sessions.Origin, at platforms.Address) bool {
	if origin = madeIn(origin); origin != nil && origin.ChatType != "" && at.SameChat(origin.Address) {
		return origin.ChatType == platforms.DM
	}
	direct := rules.Of(at.Platform).DirectChat
	return direct != nil && direct(at.Chat)
}

// SeedUser is the person whose conversation a brief to this place belongs to: the origin's, on the origin's platform and
// account. Empty is nobody that we know.
func SeedUser(origin *sessions.Origin, at platforms.Address) platforms.UserID {
	origin = madeIn(origin)
	if origin == nil || !sameName(origin.Address.Platform, at.Platform) || origin.Address.Account != at.Account {
		return ""
	}
	return origin.User
}

// InChannelSeedAllowed reports whether the conversation that a flat reply continues can be made beforehand. Rooms of
// several people have one for each, so without a person it would be one that no reply ever comes to.
func InChannelSeedAllowed(isDM bool, user platforms.UserID) bool { return isDM || user != "" }

// InChannelContinuable reports whether a brief goes flat into its chat and its conversation is made there, on a platform
// whose briefs are continued in the channel. The job's own chat always is: it is what that surface is for.
func InChannelContinuable(rules platforms.Rulebook, t Target, origin *sessions.Origin, attach *bool, global bool) bool {
	return isOrigin(t, origin) ||
		MirrorEligible(t, origin, attach, global) && InChannelSeedAllowed(IsDM(rules, origin, t.Address), SeedUser(origin, t.Address))
}
