package platformtest

import (
	"testing"

	"herald/platforms"
)

// Harness plugs a platform into the suite.
type Harness struct {
	// New makes a fresh service with nobody on it but the people of its places. It registers its own
	// cleanup with t. Every check gets one.
	New func(t *testing.T) World
	// Skip names checks that the platform can't pass and the reason, which is a property of the platform
	// and not of the adapter. Names are those that the suite reports.
	Skip map[string]string
	// Lacks names what the platform does not have, and why: one of the features below, or a Trouble that can't
	// happen there. A check that needs it is skipped with the reason; a World without something that is not named
	// here fails the check.
	Lacks map[string]string
}

// features are the names that Harness.Lacks may hold beside those of troubles.
var features = []string{"redelivery", "rewriting", "deafness", "connections", "editing", "doubling", "shuffling", "storms", "revocation",
	"files of people", "quotes", "native commands", "private answers", "deleting", "typing", "reactions of people", "buttons", "a text limit",
	"secrets", "threads of messages"}

// World is a platform's service, its network, and the people on it.
type World interface {
	// Adapter makes an adapter of the one account on the service, as each start of the daemon does. It is
	// not running.
	Adapter(t testing.TB) platforms.Adapter
	// Places are the rooms that the bot and a person share, all different. The first is a direct chat.
	Places() []Place
	// Say makes the person write text in a place, so that it speaks to the bot, and returns its id.
	Say(p Place, text string) platforms.MessageID
	// Visible returns the bot's messages in a place as people see them now, oldest first.
	Visible(p Place) []Visible
	// Unacknowledged returns how many events the service holds as not yet delivered.
	Unacknowledged() int
	// Redeliver makes the service offer the newest acknowledged event again. false: this service never does.
	Redeliver() bool
	// Break makes the next send go wrong, once; Unreachable lasts until Heal. false: it can't go wrong so.
	Break(Trouble) bool
	// Heal ends all troubles.
	Heal()
	// Deafen stops the inbound path while connections may stay, until Hear. false: there is none to stop.
	Deafen() bool
	// Hear ends Deafen.
	Hear()
	// Drop cuts the connections at once; new ones work.
	Drop() bool
	// Receivers returns how many inbound connections live on the service's side.
	Receivers() int
	// Impolite returns the requests that came inside a retry-after window, in words.
	Impolite() []string
}

// Place is a room.
type Place struct {
	Name    string // for the test's name: "dm", "group", "topic"
	Type    platforms.ChatType
	Address platforms.Address // what events from there carry
}

// Visible is a message of the bot as people see it.
type Visible struct {
	ID      platforms.MessageID
	Text    string
	Files   []string // file names
	Buttons []string // labels
	ReplyTo platforms.MessageID
	Emoji   string // what the bot put on it
}

// Trouble is a way in which a send goes wrong.
type Trouble string

// The troubles.
const (
	// RateRefused: refused with a wait of one second.
	RateRefused Trouble = "rate refused"
	// ServerError: a 5xx, and nothing was done.
	ServerError Trouble = "server error"
	// CutBefore: the connection breaks and nothing was done.
	CutBefore Trouble = "cut before"
	// CutAfter: it was done, and the connection breaks instead of the answer.
	CutAfter Trouble = "cut after"
	// SilentBefore: nothing is done and no answer comes.
	SilentBefore Trouble = "silent before"
	// SilentAfter: it is done and no answer comes.
	SilentAfter Trouble = "silent after"
	// BrokenAnswer: it is done and half an answer comes.
	BrokenAnswer Trouble = "broken answer"
	// SlowAnswer: it is done, and the answer comes in pieces over some tenths of a second.
	SlowAnswer Trouble = "slow answer"
	// ProxyPage: nothing was done, and a page of some proxy comes with status 200.
	ProxyPage Trouble = "proxy page"
	// Unreachable: no connection can be had, until Heal.
	Unreachable Trouble = "unreachable"
)

// troubles are all of them.
var troubles = []Trouble{RateRefused, ServerError, CutBefore, CutAfter, SilentBefore, SilentAfter, BrokenAnswer, SlowAnswer, ProxyPage,
	Unreachable}

// What a World can do beyond; checks that need it are skipped without it.
type (
	// FileSender is a World whose people can send files.
	FileSender interface {
		SayFile(p Place, name, mime string, body []byte, caption string) platforms.MessageID
	}
	// Presser is a World whose people can press buttons. Answered returns what the presser was told, and
	// whether at all.
	Presser interface {
		Press(p Place, message platforms.MessageID, label string)
		Answered() (text string, ok bool)
	}
	// Rewriter is a World whose people can edit what they wrote.
	Rewriter interface {
		Rewrite(p Place, message platforms.MessageID, text string)
	}
	// ReactionSender is a World whose people can put emoji on messages.
	ReactionSender interface {
		React(p Place, message platforms.MessageID, emoji string)
	}
	// ReactionWatcher is a World that sees what the bot has put on a person's message. It is needed where the
	// receipts of our own messages hold no ids.
	ReactionWatcher interface {
		EmojiOn(p Place, message platforms.MessageID) string
	}
	// Quoter is a World whose people can answer a message so that the answer names it.
	Quoter interface {
		SayReply(p Place, to platforms.MessageID, text string) platforms.MessageID
	}
	// Threader is a World where a message can have a thread of its own (Outgoing.Thread). Roots are the places where it
	// gets one, with the type that replies in it have; a place of Places that is not among them has none.
	Threader interface{ Roots() []Place }
	// Commander is a World whose people have native slash commands. Told returns what only the invoker of the newest
	// command sees, oldest first.
	Commander interface {
		Command(p Place, name, args string)
		Told(p Place) []string
	}
	// Revoker is a World that can take the bot's credentials away.
	Revoker interface{ Revoke() }
	// Stormer is a World where every call, those of the inbound path too, can fail with a 5xx until Heal. Calls
	// returns how many came so far.
	Stormer interface {
		Storm()
		Calls() int
	}
	// Doubler is a World that can deliver one message of a person twice at once.
	Doubler interface {
		SayTwice(p Place, text string) platforms.MessageID
	}
	// Shuffler is a World that can deliver messages out of order.
	Shuffler interface {
		SayShuffled(p Place, texts ...string)
	}
	// Counter is a World that knows how many inbound connections ever lived at the same time.
	Counter interface{ MostReceivers() int }
	// TypingWatcher is a World that sees when the bot types.
	TypingWatcher interface {
		TypingSeen(p Place) bool
	}
)
