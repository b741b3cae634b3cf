package sessions

import (
	"strings"

	"herald/platforms"
)

// KeySource is what a key is made from: where an event came from and who sent it.
type KeySource struct {
	// Profile is the profile's name; "", "default" and "main" are the default profile.
	Profile  string
	Platform platforms.Name
	// ChatType of a room the platform did not name counts as Group, which is the stricter one.
	ChatType platforms.ChatType
	// Scope is the tenant above the chat. It enters the key where chat ids are unique within it only.
	Scope  platforms.ScopeID
	Chat   platforms.ChatID
	Thread platforms.ThreadID
	User   platforms.UserID
	// UserAlt, where set, is the id that stands for the person.
	UserAlt platforms.UserID
}

// KeyOptions say how rooms with several people are split.
type KeyOptions struct {
	// GroupPerUser gives each person of a group or channel a session of their own
	// (group_sessions_per_user).
	GroupPerUser bool
	// ThreadPerUser does the same inside threads, which are one shared session otherwise
	// (thread_sessions_per_user). It has an effect only together with GroupPerUser.
	ThreadPerUser bool
	// Rules say which platforms' ids need care in a key.
	Rules platforms.Rulebook
}

// DefaultKeyOptions returns the options in force when the configuration names none: a session for each
// person of a room, one for all in a thread.
func DefaultKeyOptions() KeyOptions { return KeyOptions{GroupPerUser: true} }

// KeyFor returns the key of the conversation that src belongs to. It is pure, and the only maker of keys.
//
// The form is agent:main:{platform}:{chat type}[:{chat}][:{thread}][:{participant}], with the profile's name
// in place of "main" for a named profile, and the scope before the chat where the platform's rules say so.
//
//   - A DM takes the chat and, where there is one, the thread. Without a chat it takes the participant, then
//     the thread; with nothing at all the platform has one shared key.
//   - Any other room takes the chat, the thread, and the participant when the options split it by person. A
//     thread is shared unless ThreadPerUser is set. An unknown participant falls back to the room's key.
//   - The participant is UserAlt, else User.
//   - The forms of one person's ids give one key, where the platform's rules fold them.
//
// "%" and ":" inside a part are written as %25 and %3A, so that a part never looks like two; ids without
// them are unchanged. The form gives threads and participants no mark of their own: platforms whose thread
// ids and user ids could be equal within one chat must tell them apart in the ids they make.
func KeyFor(src KeySource, opts KeyOptions) Key {
	src = canonical(src, opts)
	parts := append(make([]string, 0, 8), "agent", profilePart(src.Profile), string(src.Platform), string(src.ChatType))
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if opts.Rules.Of(src.Platform).ScopedChats {
		add(string(src.Scope))
	}
	switch {
	case src.ChatType != platforms.DM:
		add(string(src.Chat))
		add(string(src.Thread))
		if splitByPerson(src, opts) {
			add(string(src.participant()))
		}
	case src.Chat != "":
		add(string(src.Chat))
		add(string(src.Thread))
	case src.participant() != "":
		add(string(src.participant()))
	default:
		add(string(src.Thread))
	}
	for i, part := range parts {
		if strings.ContainsAny(part, ":%") {
			parts[i] = keyEscape.Replace(part)
		}
	}
	return Key(strings.Join(parts, ":"))
}

var keyEscape = strings.NewReplacer("%", "%25", ":", "%3A")

// SourceOf returns what an event's key is made from.
func SourceOf(profile string, e platforms.Event) KeySource {
	return KeySource{
		Profile:  profile,
		Platform: e.Address.Platform,
		ChatType: e.ChatType,
		Scope:    e.Scope,
		Chat:     e.Address.Chat,
		Thread:   e.Address.Thread,
		User:     e.Sender.ID,
		UserAlt:  e.Sender.Alt,
	}
}

// OriginOf returns where an event's session comes from. Shared is true when the event's key holds no
// person although several may talk in the room.
func OriginOf(e platforms.Event, opts KeyOptions) Origin {
	src := canonical(SourceOf("", e), opts)
	shared := !splitByPerson(src, opts) || src.participant() == ""
	if src.ChatType == platforms.DM {
		shared = src.Chat == "" && src.participant() == ""
	}
	return Origin{
		Address:    e.Address,
		ChatType:   src.ChatType,
		Scope:      e.Scope,
		ParentChat: e.ParentChat,
		ChatName:   e.ChatName,
		Topic:      e.Topic,
		User:       e.Sender.ID,
		UserAlt:    e.Sender.Alt,
		UserName:   e.Sender.Name,
		Shared:     shared,
	}
}

// participant returns the id that stands for the person, "" when the platform does not say.
func (s KeySource) participant() platforms.UserID {
	if s.UserAlt != "" {
		return s.UserAlt
	}
	return s.User
}

// splitByPerson tells whether a room that is no DM has a session for each person.
func splitByPerson(src KeySource, opts KeyOptions) bool {
	inThread := src.Thread != "" || src.ChatType == platforms.Thread
	return opts.GroupPerUser && (!inThread || opts.ThreadPerUser)
}

func profilePart(profile string) string {
	switch profile {
	case "", "default", "main":
		return "main"
	}
	return profile
}

// canonical fills in the chat type and folds the forms of one id into one.
func canonical(src KeySource, opts KeyOptions) KeySource {
	if src.ChatType == "" {
		src.ChatType = platforms.Group
	}
	if fold := opts.Rules.Of(src.Platform).FoldIDs; fold != nil {
		src.Chat, src.User, src.UserAlt = fold(src.ChatType, src.Chat, src.User, src.UserAlt)
	}
	return src
}
