package signal

import (
	"herald/platforms"
	"herald/platforms/format"
	"herald/platforms/wire"
)

// textsKept is how many messages are remembered for quotes, textsLong how long each may be, in bytes.
const (
	textsKept = 512
	textsLong = 2000
)

// texts remembers what the newest messages say: a quote of Signal carries the text along. It is not kept over restarts,
// because it is what people wrote; a quote without its text is shown by clients that have the message.
type texts struct{ said *wire.Recent[string, string] }

func newTexts() *texts { return &texts{said: wire.NewRecent[string, string](textsKept)} }

func (t *texts) keep(chat, id, text string) {
	if text != "" {
		t.said.Put(chat+" "+id, format.Cut(text, textsLong, platforms.Bytes))
	}
}

func (t *texts) find(chat, id string) string {
	text, _ := t.said.Get(chat + " " + id)
	return text
}

// unreadKept is how many messages wait for their read receipt, in how many chats.
const unreadKept = 64

// unread are messages whose read receipt waits until the core has begun to answer: a receipt to somebody who may not
// talk would tell them that somebody is there.
type unread struct {
	chats *wire.Recent[string, map[string][]int64] // chat, author: timestamps
}

func newUnread() *unread {
	return &unread{chats: wire.NewRecent[string, map[string][]int64](unreadKept)}
}

func (u *unread) note(chat, author string, at int64) {
	u.chats.Change(chat, func(by *map[string][]int64) {
		if *by == nil {
			*by = map[string][]int64{}
		}
		list := append((*by)[author], at)
		(*by)[author] = list[max(0, len(list)-unreadKept):]
	})
}

// take returns what waits in a chat, and forgets it.
func (u *unread) take(chat string) map[string][]int64 {
	waiting, _ := u.chats.Take(chat)
	return waiting
}
