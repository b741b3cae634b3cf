package brief

import (
	"cmp"
	"errors"
	"strings"

	"herald/cron"
	"herald/platforms"
	"herald/sessions"
)

// The ways in which a brief becomes part of conversations, as Delivery.Mirrored names them.
const (
	inThread  = "thread"  // of the thread that was opened for it, or that a reply to it opens
	inChannel = "channel" // of the channel, on the platforms that are set to be continued there
	inDM      = "dm"      // of a direct chat
	inPlace   = "mirror"  // of the open ones at the place
)

// seed is a conversation that a brief becomes part of. It is named by the event that a reply would bring, so that the reply
// finds it.
type seed struct {
	how   string
	event platforms.Event
}

// mirror makes a brief that has arrived part of the conversations in which a reply to it can come. thread is the one that
// was opened for it. It returns how, one word for each conversation.
//
// The brief is put into the user's role: two answers in a row are no conversation.
func (w *Writer) mirror(tx sessions.Tx, row sessions.OutboxRow, b Brief, thread platforms.ThreadID) ([]string, error) {
	text := strings.TrimSpace(b.Text)
	if text == "" || !b.Mirror && !b.InChannel {
		return nil, nil
	}
	text = "[Cron delivery: " + cron.Plain(b.Name, maxThreadName) + "]\n" + text
	m := mirroring{w: w, tx: tx, b: b, place: w.known(tx, row, b), sent: row.Sent, thread: thread, opts: w.o.KeyOptions()}
	var how []string
	add := func(kind string, id sessions.ID) error {
		how = append(how, kind)
		return tx.Append(&sessions.Message{Session: id, Role: sessions.User, Kind: sessions.KindMirror, Content: text, Active: true,
			At: w.o.Now()})
	}
	seeds, live := m.conversations()
	for _, s := range seeds {
		key := sessions.KeyFor(sessions.SourceOf(string(w.o.Account), s.event), m.opts)
		session, err := tx.OpenSession(key, sessions.OriginOf(s.event, m.opts), w.o.Now())
		if err == nil {
			err = add(s.how, session.ID)
		}
		if err != nil {
			return nil, err
		}
	}
	if live {
		list, err := m.live()
		for _, session := range list {
			err = errors.Join(err, add(inPlace, session.ID))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(how) == 0 {
		w.o.Log.Debug().Str("job", string(b.Job)).Int64("outbox", int64(row.ID)).
			Msg("cron: nobody talks where a brief went; it is part of no conversation")
	}
	return how, nil
}

// mirroring is one brief on its way into conversations.
type mirroring struct {
	w      *Writer
	tx     sessions.Tx
	b      Brief
	place  sessions.Origin // as events from there name it
	sent   platforms.MessageID
	thread platforms.ThreadID
	opts   sessions.KeyOptions
}

// conversations returns those that replies come to, each once. live says that instead all conversations at the place get
// the brief.
func (m mirroring) conversations() (seeds []seed, live bool) {
	dm := m.place.ChatType == platforms.DM
	user := m.user()
	switch {
	case m.b.InChannel && (cron.InChannelSeedAllowed(dm, user.ID) || !m.opts.GroupPerUser):
		if !m.w.alwaysThreads(m.place) {
			seeds = append(seeds, seed{inChannel, m.event("", user)})
		}
		return m.threaded(seeds, m.w.threadOf(m.place, m.sent)), false
	case !m.b.Mirror:
		return nil, false
	case m.thread != "":
		if seeds = m.threaded(nil, m.thread); dm {
			seeds = append(seeds, seed{inDM, m.event("", user)})
		}
		return seeds, false
	case dm:
		return []seed{{inDM, m.event(m.place.Address.Thread, user)}}, false
	case m.place.Address.Thread != "" && (!m.perPersonInThreads() || user.ID != ""):
		return []seed{{inPlace, m.event(m.place.Address.Thread, user)}}, false
	case m.place.Address.Thread == "" && user.ID != "":
		return []seed{{inPlace, m.event("", user)}}, false
	}
	return nil, true
}

// threaded adds the conversation of a thread, unless threads are split by person and the person is not known: then no
// conversation is certain to get the reply.
func (m mirroring) threaded(seeds []seed, thread platforms.ThreadID) []seed {
	user := m.user()
	if thread == "" || m.place.ChatType != platforms.DM && m.perPersonInThreads() && user.ID == "" {
		return seeds
	}
	return append(seeds, seed{inThread, m.event(thread, user)})
}

func (m mirroring) perPersonInThreads() bool { return m.opts.GroupPerUser && m.opts.ThreadPerUser }

// user is the person whose conversation the brief belongs to, where rooms are split by person.
func (m mirroring) user() platforms.User {
	if m.place.ChatType == platforms.DM {
		return platforms.User{ID: m.place.User, Alt: m.place.UserAlt, Name: m.place.UserName}
	}
	id := cron.SeedUser(m.b.Origin, m.place.Address)
	if id == "" {
		return platforms.User{}
	}
	return platforms.User{ID: id, Alt: m.b.Origin.UserAlt, Name: m.b.Origin.UserName}
}

// event is what a reply brings. A conversation that several people share names nobody before one of them has spoken.
func (m mirroring) event(thread platforms.ThreadID, user platforms.User) platforms.Event {
	p := m.place
	e := platforms.Event{Address: p.Address, ChatType: p.ChatType, Scope: p.Scope, ParentChat: p.ParentChat, ChatName: p.ChatName,
		Topic: p.Topic, Sender: user}
	e.Address.Thread = thread
	switch {
	case thread == "" && p.ChatType == platforms.Thread:
		e.ChatType = platforms.Channel
	case thread != "" && m.w.threadsAreRooms(p):
		e.ChatType, e.ParentChat = platforms.Thread, p.Address.Chat
	}
	if e.ChatType != platforms.DM && (thread != "" && !m.perPersonInThreads() || !m.opts.GroupPerUser) {
		e.Sender = platforms.User{}
	}
	return e
}

// live returns the open conversations at the place, of everybody.
func (m mirroring) live() ([]sessions.Session, error) {
	at := m.place.Address
	var out []sessions.Session
	const page = 100
	for offset := 0; ; offset += page {
		list, err := m.tx.Sessions(sessions.SessionQuery{Platform: at.Platform, Account: at.Account, Chat: at.Chat, Live: true,
			Limit: page, Offset: offset})
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			if s.Origin.Address.Thread == at.Thread {
				out = append(out, s)
			}
		}
		if len(list) < page {
			return out, nil
		}
	}
}

// known is the place of a brief as far as it was known when its run ended, and what conversations there say of it.
func (w *Writer) known(tx sessions.Tx, row sessions.OutboxRow, b Brief) sessions.Origin {
	p := b.Place
	if p.Address.IsZero() {
		p.Address = row.Message.Address
	}
	at := &p.Address
	if b.InChannel {
		at.Thread = ""
	}
	if p.ChatType != "" && (p.Scope != "" || !w.rules(at.Platform).ScopedChats) {
		return p
	}
	there, _ := tx.Sessions(sessions.SessionQuery{Platform: at.Platform, Account: at.Account, Chat: at.Chat, Limit: 1})
	for _, s := range there {
		p.ChatType, p.Scope = cmp.Or(p.ChatType, s.Origin.ChatType), cmp.Or(p.Scope, s.Origin.Scope)
	}
	if p.Scope == "" { // of the account: a bot is in one workspace
		there, _ = tx.Sessions(sessions.SessionQuery{Platform: at.Platform, Account: at.Account, Limit: 1})
		for _, s := range there {
			p.Scope = s.Origin.Scope
		}
	}
	if p.ChatType == "" {
		p.ChatType = platforms.Group
	}
	return p
}
