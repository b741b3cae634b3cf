package platforms

import "strings"

// FoldJIDs is a Rules.FoldIDs for platforms that name people by JIDs, as WhatsApp does: the forms of one person (phone JID,
// device JID, LID with a known phone) become one.
func FoldJIDs(t ChatType, chat ChatID, user, alt UserID) (ChatID, UserID, UserID) {
	person, phone := bareJID(string(user))
	if other, otherPhone := bareJID(string(alt)); other != "" && (otherPhone || !phone) {
		person, phone = other, otherPhone
	}
	if t != DM {
		return chat, UserID(person), ""
	}
	bare, barePhone := bareJID(string(chat))
	if bare != "" && !barePhone && phone {
		bare = person // a DM is with this person: the number, where it is known, names the chat
	}
	return ChatID(bare), UserID(person), ""
}

// bareJID returns the bare number of a person's JID ("49170@s.whatsapp.net", "49170:12@c.us", "+49170"),
// and whether it is a phone number. A LID is returned with its server, since it is no number; so is
// everything else.
func bareJID(id string) (bare string, phone bool) {
	name, server, _ := strings.Cut(id, "@")
	name, _, _ = strings.Cut(name, ":") // the device
	switch server {
	case "", "s.whatsapp.net", "c.us":
		name = strings.TrimPrefix(name, "+")
		return name, name != ""
	case "lid", "hosted.lid":
		return name + "@lid", false
	}
	return id, false
}
