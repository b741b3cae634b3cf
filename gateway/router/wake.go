package router

import (
	"context"
	"errors"
	"fmt"

	"herald/platforms"
	"herald/sessions"
)

// Wake is news that Herald itself brings to a conversation: a background process has ended, a job is due. It becomes a
// turn there, behind what runs and waits.
type Wake struct {
	// ID is unique within Source: a second Wake with it does nothing.
	ID     string
	Source string
	Key    sessions.Key
	// Session is the stretch of conversation that the news belong to. When another has begun in its place, they are
	// dropped. Empty belongs to whichever is current.
	Session sessions.ID
	// Address is where the answer goes; User is on whose behalf it is made.
	Address platforms.Address
	User    platforms.UserID
	// Origin says where the conversation comes from when it has no session yet.
	Origin sessions.Origin
	Text   string // for the model
	// Notice, if not nil, tells the chat at once, also where nobody else hears of the news.
	Notice *sessions.OutboxRow
}

// endedSession is why news start nothing.
const endedSession = "its session has ended"

// Wake keeps the news as an inbox row and gives them to their conversation. with, if set, runs in the same transaction,
// also when the news are a duplicate or are dropped: what the caller notes there and the news are kept together or not
// at all. An error means that neither was.
func (r *Router) Wake(ctx context.Context, w Wake, with func(tx sessions.Tx) error) error {
	var item sessions.InboxItem
	duplicate := false
	err := r.opt.Store.Update(ctx, sessions.EdgeAccept, func(tx sessions.Tx) (err error) {
		if item, err = r.wakeItem(tx, w); err != nil {
			return err
		}
		if item.ID, duplicate, err = tx.PutInbox(item); err != nil {
			return err
		}
		if !duplicate && item.State == sessions.InboxNew {
			if err := r.opt.Outbox.Revive(tx, w.Address); err != nil {
				return err
			}
		}
		if !duplicate && w.Notice != nil {
			if err := tx.PutOutbox(w.Notice); err != nil {
				return err
			}
		}
		if with != nil {
			return with(tx)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("news of %s for a conversation: %w", w.Source, err)
	}
	if !duplicate && w.Notice != nil {
		r.opt.Outbox.Take(w.Notice)
	}
	switch {
	case duplicate:
		r.count(item.Event, "duplicate")
	case item.State == sessions.InboxDropped:
		r.dropped(item, "dropped", item.Reason)
	default:
		r.count(item.Event, "accepted")
		r.mu.Lock()
		draining := r.draining
		r.mu.Unlock()
		if !draining { // the next process takes it up
			r.dispatch(item)
		}
	}
	return nil
}

// wakeItem makes the inbox row of the news.
func (r *Router) wakeItem(tx sessions.Tx, w Wake) (sessions.InboxItem, error) {
	item := sessions.InboxItem{Key: w.Key, State: sessions.InboxNew, At: r.opt.Now()}
	o := w.Origin
	route, err := tx.Route(w.Key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return item, err
	}
	if w.Session != "" && route.Session != w.Session {
		item.State, item.Reason = sessions.InboxDropped, endedSession
	} else if route.Session != "" {
		s, err := tx.Session(route.Session)
		if err != nil {
			return item, err
		}
		o = s.Origin
	}
	sender := platforms.User{ID: w.User}
	if w.User == o.User || w.User == o.UserAlt {
		sender = platforms.User{ID: o.User, Alt: o.UserAlt, Name: o.UserName}
	}
	item.Event = platforms.Event{ID: platforms.EventID("herald:" + w.Source + ":" + w.ID), Address: w.Address, ChatType: o.ChatType, Scope: o.Scope,
		ParentChat: o.ParentChat, ChatName: o.ChatName, Topic: o.Topic, Sender: sender, At: item.At.UTC(), Addressed: true,
		Internal: &platforms.Internal{Source: w.Source, Session: string(w.Session), Text: w.Text}}
	return item, item.Event.Validate()
}

// dropLate drops waiting news whose session has ended since they were accepted. It runs where no turn of the
// conversation does, so nothing changes the session before the next one begins.
func (a *actor) dropLate() {
	var late []sessions.InboxItem
	keep := a.queue[:0:0]
	session, read := sessions.ID(""), false
	for _, e := range a.queue {
		if e.internal() && e.item.Event.Internal.Session != "" {
			if !read {
				var err error
				if session, err = a.session(); err != nil {
					a.r.opt.Log.Error().Err(err).Str("key", string(a.key)).Msg("the session of waiting news can't be read; they are taken as they are")
					return
				}
				read = true
			}
			if e.item.Event.Internal.Session != string(session) {
				late = append(late, e.item)
				continue
			}
		}
		keep = append(keep, e)
	}
	if len(late) == 0 {
		return
	}
	ids := make([]sessions.InboxID, len(late))
	for i, item := range late {
		ids[i] = item.ID
	}
	err := a.r.opt.Store.Update(context.Background(), sessions.EdgeDrop, func(tx sessions.Tx) error {
		return tx.SetInbox(sessions.InboxDropped, 0, endedSession, ids...)
	})
	if err != nil {
		a.r.opt.Log.Error().Err(err).Msg("the end of late news can't be written down; they are looked at again at the next start")
	}
	for _, item := range late {
		a.r.dropped(item, "dropped", endedSession)
	}
	a.queue = keep
	a.waiting.Store(int64(len(a.queue)))
}

// session returns the current session of the conversation, "" when there is none.
func (a *actor) session() (id sessions.ID, err error) {
	err = a.r.opt.Store.View(context.Background(), func(v sessions.View) error {
		route, err := v.Route(a.key)
		if errors.Is(err, sessions.ErrNotFound) {
			return nil
		}
		id = route.Session
		return err
	})
	return id, err
}
