package platforms

import "strings"

// Name is the short lower-case name of a platform, such as "telegram" or "web". Only the adapter
// packages make one, each as a constant; it is unique in the process.
type Name string

// AccountID is one account (bot, phone number, workspace installation) of ours on a platform. The adapter
// makes it from its credentials without a network call; it is unique within a platform.
type AccountID string

// ChatID is a conversation on a platform: a DM, a group, a channel. The platform makes it; it is unique
// within (platform, account).
type ChatID string

// ThreadID is a thread or topic inside a chat. The platform makes it; it is unique within its chat.
// Empty means the chat itself.
type ThreadID string

// UserID is a person or bot on a platform, in the platform's own stable form (never a display name).
// It is unique within a platform.
type UserID string

// MessageID is one visible message. The platform makes it; it is unique within its chat.
type MessageID string

// EventID is the platform's id of one inbound event, the same on each redelivery. It is unique within
// (platform, account) and is what deduplication goes by.
type EventID string

// ScopeID is the tenant above a chat: a Slack workspace, a Discord guild, a Teams tenant. Empty where the
// platform has none.
type ScopeID string

// Account names one adapter instance: which platform, and which account of ours on it.
type Account struct {
	Platform Name      `json:"platform"`
	ID       AccountID `json:"account"`
}

// String returns "platform/account", for logs and lock names.
func (a Account) String() string { return string(a.Platform) + "/" + string(a.ID) }

// Address is a place a message can go. It is copied from the event that caused the message and never
// assembled from parts later.
type Address struct {
	Platform Name      `json:"platform"`
	Account  AccountID `json:"account"`
	Chat     ChatID    `json:"chat"`
	Thread   ThreadID  `json:"thread,omitempty"`
}

// AccountOf returns the account that serves the address.
func (a Address) AccountOf() Account { return Account{Platform: a.Platform, ID: a.Account} }

// SameChat reports whether two addresses name the same chat, whatever their threads. The case of the platform's name does not
// matter: people write it.
func (a Address) SameChat(b Address) bool {
	return strings.EqualFold(string(a.Platform), string(b.Platform)) && a.Account == b.Account && a.Chat == b.Chat
}

// String returns the four parts joined by "/", each with "/" and "%" percent-encoded, so that two
// different addresses never share a string. It is the name of the address's delivery lane.
func (a Address) String() string {
	parts := []string{string(a.Platform), string(a.Account), string(a.Chat)}
	if a.Thread != "" {
		parts = append(parts, string(a.Thread))
	}
	for i, p := range parts {
		parts[i] = addressEscape.Replace(p)
	}
	return strings.Join(parts, "/")
}

var addressEscape = strings.NewReplacer("%", "%25", "/", "%2F")

// IsZero reports whether the address names no place.
func (a Address) IsZero() bool { return a == Address{} }
