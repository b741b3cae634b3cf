package platforms

import "strings"

// Rules answer what the core must not know of a platform by name. The zero value is right for a platform whose chats have
// ids without colons, whose threads are begun by people alone, and which can do what its Traits say.
type Rules struct {
	// ScopedChats: a chat's id is unique within its scope (a workspace) only.
	ScopedChats bool
	// FoldIDs, where set, brings the ids of an event's chat and person into one form each, where the platform has several
	// for the same person. The person comes back as user; alt is empty then.
	FoldIDs func(t ChatType, chat ChatID, user, alt UserID) (ChatID, UserID, UserID)

	// NormalID, where set, brings an id that an operator has written, of a person or a chat, into the form of events.
	NormalID func(id string) string
	// GroupOf, where set, reports whether an entry of group_allowed_users names a group and not a person, and returns the
	// group's chat. The entry has its normal form.
	GroupOf func(entry string) (ChatID, bool)
	// DirectChat, where set, reports whether a chat's id alone shows that it is one with a single person.
	DirectChat func(ChatID) bool
	// IDPrefixes are beginnings of chat ids that hold a colon themselves. In a target of the form chat:thread the colon is
	// looked for behind them.
	IDPrefixes []string

	// ReplyThread, where set, reports whether a reply to a message in a chat of this type goes to a thread that is named by
	// the message.
	ReplyThread func(ChatType) bool
	// AlwaysThread, where set, reports whether every message in a chat of this type belongs to a thread.
	AlwaysThread func(ChatType) bool
	// ThreadRooms: a thread of a group or channel is a room of its own, of type Thread.
	ThreadRooms bool
	// StrayThreads: every message of a channel begins a thread, so the thread in which somebody asked for something shows
	// only where they happened to ask.
	StrayThreads bool
	// Topics: threads are topics of a forum, which are few. A scheduled job has one in each chat and goes on in it.
	Topics bool

	// NoReactions: emoji on messages are off where the operator does not ask for them.
	NoReactions bool
	// NoMemoryNotices: notices that something was remembered are off where the operator does not ask for them.
	NoMemoryNotices bool
	// HomeRank orders home channels: that of the platform with the lowest rank above 0 is taken first. Platforms without a
	// rank follow by name.
	HomeRank int
}

// Rulebook holds the rules of platforms by name. nil is a rulebook in which no platform has any.
type Rulebook map[Name]Rules

// RulesOf collects the rules of kinds.
func RulesOf(kinds []Kind) Rulebook {
	book := make(Rulebook, len(kinds))
	for _, k := range kinds {
		book[k.Name()] = k.Rules()
	}
	return book
}

// Of returns a platform's rules, the zero Rules for one that is not in the book. The name may have upper-case letters.
func (b Rulebook) Of(name Name) Rules {
	if r, ok := b[name]; ok {
		return r
	}
	return b[Name(strings.ToLower(string(name)))]
}
