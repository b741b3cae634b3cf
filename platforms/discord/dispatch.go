package discord

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"herald/platforms"
)

// Reasons for which a happening makes no event; Metrics.Dropped gets them.
const (
	dropUnmentioned = "unmentioned"
	dropOthers      = "other_mention"
	dropBot         = "bot"
	dropOwn         = "own"
	dropChannel     = "channel"
	dropService     = "service"
	dropEmpty       = "empty"
	dropUndecodable = "undecodable"
	dropCommands    = "commands_off"
	dropLate        = "late_interaction"
)

// dispatch handles one event of the gateway. nil means that it is done with: the core has it, or it makes no
// event. An error means that nothing is known to be kept.
func (a *Adapter) dispatch(ctx context.Context, l *link, f frame) error {
	var err error
	switch f.T {
	case "READY":
		err = a.onReady(ctx, l, f)
	case "RESUMED":
		a.opened(l)
	case "GUILD_CREATE", "GUILD_UPDATE", "GUILD_DELETE", "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE",
		"CHANNEL_CREATE", "CHANNEL_UPDATE", "CHANNEL_DELETE", "THREAD_CREATE", "THREAD_UPDATE", "THREAD_DELETE", "THREAD_LIST_SYNC":
		err = a.onRoom(f)
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		err = a.onMessage(ctx, l, f)
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		err = a.onReaction(ctx, l, f)
	case "INTERACTION_CREATE":
		err = a.onInteraction(ctx, l, f)
	}
	var bad *decodeError
	if errors.As(err, &bad) {
		a.s.Metrics.Dropped(dropUndecodable)
		a.s.Log.Error().Str("event", f.T).Str("cause", a.scrub(err.Error())).Msg("an event could not be read and is skipped")
		return nil
	}
	return err
}

// onReady takes in a new session.
func (a *Adapter) onReady(ctx context.Context, l *link, f frame) error {
	r, err := decode[ready](f.D)
	if err != nil {
		return &decodeError{err}
	}
	again := a.begin(r, f.S)
	a.rooms.begin(r.Guilds)
	a.keep(ctx)
	if l.missed != nil {
		l.missed.begin(ctx)
	} else if again {
		a.s.Log.Warn().Msg("a new session has begun; what was written since the old one is not told (missed_message_backfill reads it)")
	}
	a.opened(l)
	return nil
}

// opened notes that events flow.
func (a *Adapter) opened(l *link) {
	l.failures, l.replay = 0, false
	l.wait.Reset()
	a.health.Set("connected", "")
	a.s.Log.Info().Str("bot", a.me().name).Msg("connected to Discord")
}

// onRoom keeps the channels and guilds up to date.
func (a *Adapter) onRoom(f frame) error {
	switch f.T {
	case "GUILD_CREATE":
		g, err := decode[guild](f.D)
		if err != nil {
			return &decodeError{err}
		}
		if !g.Unavailable {
			a.rooms.learn(g, a.me().id)
		}
	case "GUILD_UPDATE", "GUILD_DELETE":
		g, err := decode[guild](f.D)
		if err != nil {
			return &decodeError{err}
		}
		a.rooms.forget(g.ID)
		if f.T == "GUILD_DELETE" && !g.Unavailable { // an outage is no farewell
			a.rooms.left(g.ID)
		}
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE":
		d, err := decode[struct {
			GuildID string `json:"guild_id"`
		}](f.D)
		if err != nil {
			return &decodeError{err}
		}
		a.rooms.forget(d.GuildID)
	case "THREAD_LIST_SYNC":
		d, err := decode[guild](f.D)
		if err != nil {
			return &decodeError{err}
		}
		for _, c := range d.Threads {
			a.rooms.put(placeOf(c))
		}
	default:
		c, err := decode[channel](f.D)
		if err != nil {
			return &decodeError{err}
		}
		switch {
		case c.ID == "":
		case f.T == "CHANNEL_DELETE", f.T == "THREAD_DELETE":
			a.rooms.drop(c.ID)
			a.threads.gone(c.ID)
		default:
			a.rooms.put(placeOf(*c))
		}
	}
	return nil
}

// onMessage hands a new or changed message on.
func (a *Adapter) onMessage(ctx context.Context, l *link, f frame) error {
	m, err := decode[message](f.D)
	if err != nil {
		return &decodeError{err}
	}
	if err := checkIDs(m.ID, m.ChannelID, m.GuildID); err != nil {
		return err
	}
	edit := f.T == "MESSAGE_UPDATE"
	if m.Author != nil && m.Author.ID == a.me().id && m.Author.ID != "" {
		if !edit {
			a.sent.echo(m)
		}
		a.s.Metrics.Dropped(dropOwn)
		return nil
	}
	if edit && (m.Edited == "" || m.Author == nil) {
		a.s.Metrics.Dropped(dropService) // a preview of a link was added, a pin set
		return nil
	}
	p, err := a.placeFor(ctx, m.ChannelID, m.GuildID)
	if err != nil {
		return &lookupError{err}
	}
	return a.offer(ctx, l.sink, l.missed, m, p, edit)
}

// offer hands one message to the core and notes what follows from that.
func (a *Adapter) offer(ctx context.Context, sink platforms.Sink, missed *catchUp, m *message, p place, edit bool) error {
	v, err := a.judge(ctx, m, p)
	if err != nil {
		return err
	}
	if v.drop == "" && !edit && !v.wanted(m) {
		v.drop = dropEmpty
	}
	if v.drop != "" {
		a.s.Metrics.Dropped(v.drop)
		return nil
	}
	e, err := a.convert(ctx, m, p, v, edit)
	if err != nil {
		return err
	}
	if v.opens && !edit {
		a.threads.expect(m.ID, p.channel, titleOf(v.text, m))
	}
	if err := sink.Accept(ctx, e); err != nil {
		return err
	}
	if e.Address.Thread != "" && v.addressed && p.thread() {
		a.threads.join(ctx, p.channel)
	}
	if missed != nil && !edit {
		missed.handled(ctx, p, m.ID)
	}
	return nil
}

// onReaction hands on an emoji that came or went on one of our messages.
func (a *Adapter) onReaction(ctx context.Context, l *link, f frame) error {
	r, err := decode[reactionEvent](f.D)
	if err != nil {
		return &decodeError{err}
	}
	if err := checkIDs(r.MessageID, r.ChannelID, r.GuildID); err != nil {
		return err
	}
	me := a.me().id
	at, ours := a.own.Get(r.MessageID)
	if r.UserID == me {
		a.s.Metrics.Dropped(dropOwn)
		return nil
	}
	if !ours && r.AuthorID != me {
		a.s.Metrics.Dropped(dropUnmentioned)
		return nil
	}
	p, err := a.placeFor(ctx, r.ChannelID, r.GuildID)
	if err != nil {
		return &lookupError{err}
	}
	if !p.dm() && !a.answersIn(p) {
		a.s.Metrics.Dropped(dropChannel)
		return nil
	}
	// Discord gives a reaction no id: the session and the number are the same each time it is told.
	e := a.envelope(platforms.EventID("r"+a.current().ID+"."+strconv.FormatInt(f.S, 10)), p)
	if ours && at.Thread != e.Address.Thread {
		e = a.moved(e, at)
	}
	e.Addressed = true
	e.Sender = platforms.User{ID: platforms.UserID(r.UserID)}
	if r.Member != nil && r.Member.User != nil {
		e.Sender = userOf(r.Member.User, r.Member)
	} else if p.dm() {
		e.Sender.Name = p.name
	}
	emoji := r.Emoji.Name
	if r.Emoji.ID != "" {
		emoji += ":" + r.Emoji.ID
	}
	e.Reaction = &platforms.Reaction{MessageID: platforms.MessageID(r.MessageID), Emoji: emoji, Removed: f.T == "MESSAGE_REACTION_REMOVE", OnOwn: true}
	return l.sink.Accept(ctx, e)
}

// moved gives an event the address that our message was meant for: an answer whose thread could not be opened
// is in the channel and still belongs to the thread's conversation.
func (a *Adapter) moved(e platforms.Event, at platforms.Address) platforms.Event {
	e.Address = at
	if at.Thread != "" {
		e.ChatType, e.ParentChat = platforms.Thread, at.Chat
	}
	return e
}

// checkIDs refuses what is named by no id: addresses and paths are made of them. The last may be missing.
func checkIDs(id, channel, guild string) error {
	if snowflake(id) == 0 || snowflake(channel) == 0 || guild != "" && snowflake(guild) == 0 {
		return &decodeError{errors.New("an id is missing or is no number")}
	}
	return nil
}

// decodeError says that a payload could not be read, and never will be.
type decodeError struct{ err error }

func (e *decodeError) Error() string { return fmt.Sprintf("undecodable: %v", e.err) }
func (e *decodeError) Unwrap() error { return e.err }
