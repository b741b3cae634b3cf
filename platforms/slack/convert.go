package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"herald/platforms"
)

// read makes an event of an envelope, or counts why not.
func (a *Adapter) read(ctx context.Context, d delivery) taken {
	t := taken{delivery: d}
	var event *platforms.Event
	var reason string
	switch d.Type {
	case "events_api":
		event, reason = a.readEvent(ctx, d, &t)
	case "slash_commands":
		event, reason = a.readCommand(ctx, d, &t)
	case "interactive":
		event, reason = a.readInteraction(ctx, d, &t)
	default:
		reason = "unsupported"
	}
	if event == nil {
		a.drop(reason)
		return t
	}
	t.event = event
	return t
}

func (a *Adapter) undecodable(err error) (*platforms.Event, string) {
	a.s.Log.Error().Str("account", string(a.account.ID)).Str("cause", cut(err.Error(), 200)).Msg("an event could not be read and is skipped")
	return nil, "undecodable"
}

func (a *Adapter) readEvent(ctx context.Context, d delivery, t *taken) (*platforms.Event, string) {
	var p eventPayload
	if err := json.Unmarshal(d.Payload, &p); err != nil {
		return a.undecodable(err)
	}
	if p.Type == "app_rate_limited" { // more than 30,000 events an hour
		a.s.Log.Error().Str("account", string(a.account.ID)).Msg("Slack holds events of this workspace back: there were too many within the hour, and some are lost")
		return nil, "rate_limited"
	}
	var e innerEvent
	if err := json.Unmarshal(p.Event, &e); err != nil && e.Type == "" {
		return a.undecodable(err)
	}
	switch e.Type {
	case "message", "app_mention":
		return a.readMessage(ctx, e, t)
	case "reaction_added", "reaction_removed":
		return a.readReaction(ctx, e)
	case "assistant_thread_started":
		if th := e.Assistant; th != nil && len(a.s.Prompts) > 0 {
			t.after = func() { a.aside(func(ctx context.Context) { a.suggest(ctx, th.Channel, th.Thread) }) }
		}
		return nil, "service"
	case "tokens_revoked", "app_uninstalled":
		t.after = a.doubtToken
		return nil, "service"
	}
	return nil, "service"
}

// takenSubtypes are the messages that somebody wrote; all others report something that happened in a channel.
var takenSubtypes = map[string]bool{"": true, "file_share": true, "me_message": true, "thread_broadcast": true, "bot_message": true, "document_mention": true}

func (a *Adapter) readMessage(ctx context.Context, e innerEvent, t *taken) (*platforms.Event, string) {
	m := e.wireMessage
	edited := false
	switch m.Subtype {
	case "message_deleted":
		return nil, "deleted"
	case "message_changed":
		if e.Message == nil {
			return nil, "undecodable"
		}
		edited = true
		m = *e.Message
		m.Channel, m.ChannelType, m.EventTS = e.Channel, e.ChannelType, e.EventTS
		if m.Edited == nil || e.Previous != nil && e.Previous.Text == m.Text {
			return nil, "unchanged" // a preview was added, or a reply counted
		}
	}
	switch {
	case m.Channel == "" || m.TS == "":
		return nil, "undecodable"
	case a.isOwn(m):
		return nil, "own"
	case !takenSubtypes[m.Subtype]:
		return nil, "service"
	case m.User == "" && m.BotID == "" || m.User == "USLACKBOT":
		return nil, "service"
	}
	ctx, cancel := a.lookup(ctx)
	defer cancel()
	room := a.room(ctx, m.Channel, m.ChannelType)
	at := a.place(m, room)
	v := a.judge(ctx, m, room, at)
	if v.drop != "" {
		return nil, v.drop
	}
	event := &platforms.Event{
		Address: at, ChatType: room.kind, Scope: platforms.ScopeID(a.self().team), ChatName: room.name, Topic: room.topic,
		Sender: a.author(ctx, m), At: when(m.TS), Addressed: v.addressed,
	}
	if room.kind == platforms.DM && event.ChatName == "" {
		event.ChatName = event.Sender.Name
	}
	body := a.body(ctx, m)
	text := a.commandOf(a.unmention(body.text))
	if edited {
		event.ID = platforms.EventID("e:" + m.Channel + ":" + m.TS + ":" + m.Edited.TS)
		event.Edited = &platforms.Edited{MessageID: platforms.MessageID(m.TS), Text: text}
		return event, ""
	}
	if text == "" && len(body.files) == 0 {
		if !v.named {
			return nil, "empty"
		}
		text = body.text // a bare mention still is a call
	}
	event.ID = platforms.EventID("m:" + m.Channel + ":" + m.TS)
	event.Message = &platforms.Message{ID: platforms.MessageID(m.TS), Text: text, Attachments: body.files}
	a.enterThread(ctx, m, event, room, t)
	return event, ""
}

// enterThread notes that the bot takes part in the message's thread, and whether it missed what was said before.
func (a *Adapter) enterThread(ctx context.Context, m wireMessage, e *platforms.Event, room room, t *taken) {
	if e.Address.Thread == "" {
		a.spoke.Put(e.Address, e.Sender.ID)
		return
	}
	if e.Addressed {
		active := a.takesPart(ctx, e.Address)
		e.Message.Earlier = !active && m.Thread != "" && m.Thread != m.TS
		a.fresh[threadName(e.Address)] = true
		if title := e.Message.Text; !active && room.kind == platforms.DM && a.s.titles && title != "" {
			at := e.Address
			t.after = func() { a.aside(func(ctx context.Context) { a.title(ctx, at, title) }) }
		}
	}
	a.spoke.Put(e.Address, e.Sender.ID)
}

func threadName(at platforms.Address) string { return string(at.Chat) + "/" + string(at.Thread) }

// takesPart reports whether the bot is active in a thread.
func (a *Adapter) takesPart(ctx context.Context, at platforms.Address) bool {
	if a.fresh[threadName(at)] {
		return true
	}
	has, err := a.threads.Has(ctx, threadName(at))
	if err != nil && ctx.Err() == nil {
		a.s.Log.Error().Err(err).Msg("the threads that the bot takes part in can't be read")
	}
	return has
}

// isOwn reports whether we wrote m.
func (a *Adapter) isOwn(m wireMessage) bool {
	me := a.self()
	return m.User != "" && m.User == me.user || m.BotID != "" && m.BotID == me.bot
}

// isBot reports whether a bot wrote m. People who post with their own token can be taken for people.
func (a *Adapter) isBot(m wireMessage) bool {
	return (m.BotID != "" || m.Subtype == "bot_message") && !a.s.humans[m.User]
}

// author returns who wrote m.
func (a *Adapter) author(ctx context.Context, m wireMessage) platforms.User {
	u := platforms.User{ID: platforms.UserID(m.User), IsBot: a.isBot(m)}
	if u.ID == "" {
		u.ID = platforms.UserID(m.BotID)
		u.Name = m.Username
		if u.Name == "" && m.BotProfile != nil {
			u.Name = m.BotProfile.Name
		}
		if u.Name == "" {
			u.Name = m.BotID
		}
		return u
	}
	if p := m.UserProfile; p != nil {
		u.Name, u.Username = firstOf(p.DisplayName, p.RealName), p.Name
	}
	if u.Name == "" {
		known := a.names.user(ctx, m.User)
		u.Name, u.Username, u.IsBot = known.name, known.handle, u.IsBot || known.bot && !a.s.humans[m.User]
	}
	return u
}

// place returns where an answer to m goes.
func (a *Adapter) place(m wireMessage, r room) platforms.Address {
	at := a.address(m.Channel, "")
	switch {
	case m.Thread != "" && m.Thread != m.TS:
		at.Thread = platforms.ThreadID(m.Thread)
	case r.kind != platforms.DM && a.s.inThread:
		at.Thread = platforms.ThreadID(m.TS)
	}
	return at
}

func (a *Adapter) address(channel, thread string) platforms.Address {
	return platforms.Address{Platform: Platform, Account: a.account.ID, Chat: platforms.ChatID(channel), Thread: platforms.ThreadID(thread)}
}

func (a *Adapter) readReaction(ctx context.Context, e innerEvent) (*platforms.Event, string) {
	me := a.self()
	name := slackName(e.Reaction)
	switch {
	case e.Item.Type != "message" || e.Item.Channel == "" || e.Item.TS == "" || e.User == "":
		return nil, "service"
	case e.User == me.user:
		return nil, "own"
	case !a.s.onReactions, a.s.emoji == nil && e.ItemUser != me.user, a.s.emoji != nil && !a.s.emoji[name]:
		return nil, "reaction"
	case a.s.ignored[e.Item.Channel]:
		return nil, "ignored"
	}
	ctx, cancel := a.lookup(ctx)
	defer cancel()
	room := a.room(ctx, e.Item.Channel, "")
	if !a.allows(e.Item.Channel, room) {
		return nil, "chat"
	}
	who := a.names.user(ctx, e.User)
	if who.bot && !a.s.admits(false) {
		return nil, "bot"
	}
	at := a.s.target
	if at.Chat == "" {
		at = a.address(e.Item.Channel, a.threadOf(ctx, e.Item.Channel, e.Item.TS, room))
	} else {
		at.Account = a.account.ID
	}
	return &platforms.Event{
		ID:      platforms.EventID(fmt.Sprintf("r:%s:%s:%s:%s:%s", e.Item.Channel, e.Item.TS, e.User, e.Reaction, e.EventTS)),
		Address: at, ChatType: room.kind, Scope: platforms.ScopeID(me.team), ChatName: room.name,
		Sender: platforms.User{ID: platforms.UserID(e.User), Name: who.name, Username: who.handle, IsBot: who.bot},
		At:     when(e.EventTS), Addressed: true,
		Reaction: &platforms.Reaction{MessageID: platforms.MessageID(e.Item.TS), Emoji: unicodeOf(e.Reaction),
			Removed: e.Type == "reaction_removed", OnOwn: e.ItemUser == me.user, Trigger: true},
	}, ""
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" {
			return v
		}
	}
	return ""
}
