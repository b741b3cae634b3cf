package slack

import (
	"context"
	"encoding/json"
	"strings"

	"herald/platforms"
)

// placeholder is what a person sees until a command is answered.
const placeholder = "…"

// readCommand makes an event of a slash command: a Command, or a Message when free text stands after /herald.
func (a *Adapter) readCommand(ctx context.Context, d delivery, t *taken) (*platforms.Event, string) {
	var c command
	if err := json.Unmarshal(d.Payload, &c); err != nil {
		return a.undecodable(err)
	}
	name, args := strings.TrimPrefix(c.Command, "/"), strings.TrimSpace(c.Text)
	if name == "" || c.Channel == "" || c.User == "" || c.Trigger == "" {
		return nil, "undecodable"
	}
	e, drop := a.acted(ctx, c.Channel, c.ChannelName, c.User, c.UserName)
	if drop != "" {
		return nil, drop
	}
	e.ID = platforms.EventID("s:" + c.Trigger)
	a.spoke.Put(e.Address, e.Sender.ID)
	if name == commandName {
		first, rest, _ := strings.Cut(args, " ")
		first = strings.TrimLeft(first, "/!")
		switch {
		case args == "":
			name = "help"
		case a.knows(first):
			name, args = foldName(first), strings.TrimSpace(rest)
		default:
			e.Message = &platforms.Message{Text: a.typed(ctx, args)}
			return e, ""
		}
	}
	reply := privateToken{URL: c.ResponseURL, Channel: c.Channel, User: c.User, Trigger: c.Trigger, Command: true}
	e.Command = &platforms.Command{Name: foldName(name), Args: a.typed(ctx, args), Reply: reply.String()}
	a.answers.of(reply).fresh = true
	t.after = func() { a.aside(func(ctx context.Context) { a.holdPlace(ctx, reply) }) }
	return e, ""
}

// typed reads what stands behind a command.
func (a *Adapter) typed(ctx context.Context, text string) string {
	ctx, cancel := a.lookup(ctx)
	defer cancel()
	return a.unmention(mrkdwn(text, a.names.in(ctx)))
}

// acted begins the event of something that a person did in a channel without writing: no thread, addressed. drop is
// why it must not be handed on.
func (a *Adapter) acted(ctx context.Context, channel, channelName, user, handle string) (e *platforms.Event, drop string) {
	if a.s.ignored[channel] {
		return nil, "ignored"
	}
	ctx, cancel := a.lookup(ctx)
	defer cancel()
	kind := ""
	if channelName == "directmessage" {
		kind = "im"
	}
	room := a.room(ctx, channel, kind)
	if !a.allows(channel, room) {
		return nil, "chat"
	}
	who := a.names.user(ctx, user)
	e = &platforms.Event{
		Address: a.address(channel, ""), ChatType: room.kind, Scope: platforms.ScopeID(a.self().team), ChatName: room.name, Topic: room.topic,
		Sender: platforms.User{ID: platforms.UserID(user), Name: who.name, Username: firstOf(who.handle, handle), IsBot: who.bot},
		At:     a.s.Clock.Now().UTC(), Addressed: true,
	}
	if room.kind == platforms.DM {
		e.ChatName = e.Sender.Name
	}
	return e, ""
}

// readInteraction makes a Click of a press on a button or a choice in a select.
func (a *Adapter) readInteraction(ctx context.Context, d delivery, t *taken) (*platforms.Event, string) {
	var p interaction
	if err := json.Unmarshal(d.Payload, &p); err != nil && p.Type == "" {
		return a.undecodable(err)
	}
	if p.Type != "block_actions" || len(p.Actions) == 0 {
		return nil, "unsupported"
	}
	action := p.Actions[0]
	channel, message := firstOf(p.Container.Channel, p.Channel.ID), firstOf(p.Container.Message, p.Message.TS)
	if channel == "" || message == "" || p.User.ID == "" {
		return nil, "unsupported" // a press in a view
	}
	reply := privateToken{URL: p.ResponseURL, Channel: channel, User: p.User.ID, Trigger: p.Trigger}
	thread := firstOf(p.Container.Thread, p.Message.Thread)
	if thread == message {
		thread = ""
	}
	reply.Thread = thread
	if action.ID == feedbackID || strings.HasPrefix(action.Block, feedbackID) {
		a.s.Log.Info().Str("account", string(a.account.ID)).Str("user", p.User.ID).Str("message", message).Str("feedback", cut(action.Value, 20)).Msg("feedback on an answer")
		t.after = func() { a.aside(func(ctx context.Context) { a.thank(ctx, reply) }) }
		return nil, "service"
	}
	data := action.Value
	if action.Selected != nil {
		data = action.Selected.Value
	}
	if data == "" || !strings.HasPrefix(action.ID, actionPrefix) {
		return nil, "unsupported"
	}
	e, drop := a.acted(ctx, channel, p.Channel.Name, p.User.ID, firstOf(p.User.Username, p.User.Name))
	if drop != "" {
		return nil, drop
	}
	e.Address.Thread = platforms.ThreadID(thread)
	e.ID = platforms.EventID("c:" + channel + ":" + message + ":" + p.User.ID + ":" + action.ID + ":" + firstOf(action.TS, p.Trigger))
	if at := when(action.TS); !at.IsZero() {
		e.At = at
	}
	a.spoke.Put(e.Address, e.Sender.ID)
	e.Click = &platforms.Click{MessageID: platforms.MessageID(message), Data: data, Reply: reply.String()}
	if p.Container.Ephemeral {
		a.answers.ephemeral(channel, message, reply)
	}
	return e, ""
}

// thank answers a press on a thumb.
func (a *Adapter) thank(ctx context.Context, reply privateToken) {
	if err := a.whisper(ctx, reply, "Thank you for the feedback."); err != nil {
		a.s.Log.Debug().Err(err).Msg("a feedback could not be answered")
	}
}
