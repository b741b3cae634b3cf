package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Say makes the usual person of a channel write text, and returns the message's id.
func (d *Discord) Say(channel ID, text string) ID { return d.Write(Post{Channel: channel, Text: text}) }

// Write makes somebody write, and returns the message's id, empty when there is no such channel. People have no
// limits but what the channel is.
func (d *Discord) Write(p Post) ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.channels[p.Channel]
	if c == nil {
		return ""
	}
	return d.write(c, "", p).id
}

// write makes a message of a person. An empty id is made.
func (d *Discord) write(c *channel, id ID, p Post) *message {
	who := d.usual(c, p.From)
	if id == "" {
		id = d.newID()
	}
	if p.MentionBot {
		p.Text = "<@" + string(d.bot.ID) + "> " + p.Text
	}
	m := &message{id: id, channel: c, author: who, typ: p.Type, content: p.Text, embeds: p.Embeds}
	m.nonce = json.RawMessage(`"` + string(id) + `"`) // as the official client does
	if p.Webhook != "" {
		m.webhook, m.name = d.newID(), p.Webhook
	}
	if p.Voice {
		m.flags |= flagVoice
	}
	for _, f := range p.Files {
		m.files = append(m.files, d.keepFile(c, f, false))
	}
	if p.ReplyTo != "" {
		m.ref = &wireReference{Message: p.ReplyTo, Channel: c.ID, Guild: c.Guild}
		if m.typ == 0 {
			m.typ = 19
		}
	}
	var a *allowed
	if p.Quiet {
		everything := []string{"users", "roles", "everyone"}
		a = &allowed{Parse: &everything}
	}
	d.applyMentions(m, a)
	if p.Forward {
		m.snapshot = &message{id: m.id, channel: c, author: who, content: m.content, files: m.files}
		m.content, m.files, m.users, m.embeds = "", nil, nil, nil
		m.ref, m.flags = &wireReference{Type: 1, Message: d.newID(), Channel: c.ID, Guild: c.Guild}, m.flags|flagSnapshot
	}
	if c.isThread() {
		if c.Archived {
			d.setThread(c, false, c.Locked)
		}
		d.join(c, who)
		for _, id := range m.users { // a mention brings people in
			if c.guild.member(id) != nil {
				d.join(c, d.users[id])
			}
		}
	}
	d.keepMessage(m)
	d.act("write", c.ID, m.id, who.ID, p.Text)
	d.tell("MESSAGE_CREATE", m, who)
	return m
}

// OpenPost makes somebody open a forum post, and returns the thread's id, which is its first message's too.
func (d *Discord) OpenPost(title string, p Post) ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	forum := d.channels[p.Channel]
	if forum == nil || forum.Type != ForumChannel {
		return ""
	}
	t := d.openThread(forum, "", PublicThread, title, d.usual(forum, p.From), nil)
	forum.last = t.ID
	d.tellThread(t)
	d.write(t, t.ID, p)
	return t.ID
}

// StartThread makes somebody start a thread from a message (the ids are the same), or without one when message is
// empty. private asks for a private one, which has no message.
func (d *Discord) StartThread(channel, message ID, name string, who ID, private bool) ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.channels[channel]
	if c == nil || c.guild == nil {
		return ""
	}
	owner := d.usual(c, who)
	if m := c.messages[message]; m != nil && !private {
		return d.threadOf(m, name, owner, nil).ID
	}
	kind := PublicThread
	if private {
		kind = PrivateThread
	}
	return d.threadWithout(c, kind, name, owner, nil).ID
}

// JoinThread puts somebody into a thread. Adding the bot shows it a private one.
func (d *Discord) JoinThread(thread, user ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, u := d.channels[thread], d.users[user]; c != nil && u != nil && c.isThread() {
		d.join(c, u)
	}
}

// LeaveThread takes somebody out of a thread.
func (d *Discord) LeaveThread(thread, user ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, u := d.channels[thread], d.users[user]; c != nil && u != nil && c.isThread() {
		d.leave(c, u)
	}
}

// with calls f for a message that stands, while the fake is locked.
func (d *Discord) with(channel, id ID, f func(*message)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.channels[channel]; c != nil && c.messages[id] != nil {
		f(c.messages[id])
	}
}

// Rewrite makes a message's author edit its text.
func (d *Discord) Rewrite(channel, id ID, text string) {
	d.with(channel, id, func(m *message) {
		m.content, m.edited = text, time.Now()
		d.applyMentions(m, nil)
		d.act("edit", channel, m.id, m.author.ID, text)
		d.tell("MESSAGE_UPDATE", m, m.author)
	})
}

// Unfurl adds an embed to a message as the service does for links some time after it came: an update without an
// edit time.
func (d *Discord) Unfurl(channel, id ID, url string) {
	d.with(channel, id, func(m *message) {
		m.embeds, _ = json.Marshal([]map[string]string{{"type": "link", "url": url, "title": "A page", "description": "What it says."}})
		d.tell("MESSAGE_UPDATE", m, nil)
	})
}

// Pin pins a message: an update of it that is no edit.
func (d *Discord) Pin(channel, id ID) {
	d.with(channel, id, func(m *message) {
		m.pinned = true
		d.tell("MESSAGE_UPDATE", m, nil)
		intent := IntentGuilds
		if m.channel.guild == nil {
			intent = IntentDirectMessages
		}
		d.dispatch(event{name: "CHANNEL_PINS_UPDATE", intent: intent, data: map[string]any{
			"channel_id": m.channel.ID, "guild_id": m.channel.Guild, "last_pin_timestamp": stamp(time.Now()),
		}})
	})
}

// Erase deletes a message, in its author's name.
func (d *Discord) Erase(channel, id ID) {
	d.with(channel, id, func(m *message) { d.remove(m, d.usual(m.channel, "")) })
}

// React puts an emoji on a message. Empty who is as in Post.From.
func (d *Discord) React(channel, id ID, emoji string, who ID) {
	d.with(channel, id, func(m *message) { d.react(m, emoji, d.usual(m.channel, who)) })
}

// Unreact takes it off again.
func (d *Discord) Unreact(channel, id ID, emoji string, who ID) {
	d.with(channel, id, func(m *message) { d.unreact(m, emoji, d.usual(m.channel, who)) })
}

// Typing shows that somebody types.
func (d *Discord) Typing(channel, who ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.channels[channel]; c != nil {
		d.showTyping(c, d.usual(c, who))
	}
}

// Press presses the button with that custom id under a message; ephemeral ones can be pressed too. false: there is
// no such button that can be pressed. Empty who is the one an ephemeral message is for, else as in Post.From.
func (d *Discord) Press(channel, id ID, data string, who ID) (ID, bool) {
	return d.use(channel, id, data, nil, who)
}

// Pick chooses in a select menu.
func (d *Discord) Pick(channel, id ID, data string, values []string, who ID) (ID, bool) {
	return d.use(channel, id, data, append([]string{}, values...), who)
}

// use uses a component: a select when values is not nil.
func (d *Discord) use(channel, id ID, data string, values []string, who ID) (made ID, ok bool) {
	d.with(channel, id, func(m *message) {
		var rows []component
		_ = json.Unmarshal(m.components, &rows)
		for _, row := range rows {
			for _, c := range row.Components {
				if c.CustomID == nil || *c.CustomID != data || c.Disabled || c.isSelect() != (values != nil) {
					continue
				}
				if who == "" {
					who = m.seenBy
				}
				i := &interaction{user: d.usual(m.channel, who), channel: m.channel, source: m}
				i.Kind = ComponentUsed
				about := map[string]any{"custom_id": data, "component_type": c.Type, "id": 1}
				if values != nil {
					about["values"] = values
				}
				made, ok = d.interact(i, about), true
				return
			}
		}
	})
	return made, ok
}

// Run runs a command. false: no such command is registered for that place.
func (d *Discord) Run(c Command) (ID, bool) { return d.runCommand(c, CommandRun) }

// Complete types in an option of a command.
func (d *Discord) Complete(c Command) (ID, bool) { return d.runCommand(c, Completion) }

func (d *Discord) runCommand(c Command, kind InteractionKind) (ID, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ch := d.channels[c.Channel]
	if ch == nil {
		return "", false
	}
	cmd := d.registered(ch, c.Name)
	if cmd == nil {
		return "", false
	}
	i := &interaction{user: d.usual(ch, c.From), channel: ch, command: cmd}
	i.Kind = kind
	resolved := map[string]map[string]any{}
	data := map[string]any{"id": cmd.ID, "name": cmd.Name, "type": cmd.Type}
	if cmd.Guild != "" {
		data["guild_id"] = cmd.Guild
	}
	if options := d.wireOptions(ch, cmd.Options, c.Options, c.Focused, resolved); len(options) > 0 {
		data["options"] = options
	}
	if c.Target != "" {
		data["target_id"] = c.Target
		if m := ch.messages[c.Target]; m != nil {
			resolved["messages"] = map[string]any{string(m.id): d.wireMessage(m, view{})}
		} else {
			d.resolve(ch, optUser, c.Target, resolved)
		}
	}
	if len(resolved) > 0 {
		data["resolved"] = resolved
	}
	return d.interact(i, data), true
}

// registered finds a command of the channel's guild, else a global one.
func (d *Discord) registered(ch *channel, name string) *command {
	var global *command
	for _, cmd := range d.commands {
		if cmd.Name != name {
			continue
		}
		if cmd.Guild == "" && (ch.guild != nil || cmd.DM == nil || *cmd.DM) && cmd.contextAllows(ch) {
			global = cmd
		}
		if cmd.Guild != "" && cmd.Guild == ch.Guild {
			return cmd
		}
	}
	return global
}

func (c *command) contextAllows(ch *channel) bool {
	if c.Contexts == nil {
		return true
	}
	if ch.guild != nil {
		return slices.Contains(c.Contexts, 0)
	}
	return slices.Contains(c.Contexts, 1)
}

type wireOption struct {
	Name    string       `json:"name"`
	Type    int          `json:"type"`
	Value   any          `json:"value,omitempty"`
	Options []wireOption `json:"options,omitempty"`
	Focused bool         `json:"focused,omitempty"`
}

// wireOptions writes options by the command's definition.
func (d *Discord) wireOptions(ch *channel, known []commandOption, given []Option, focused string,
	resolved map[string]map[string]any) []wireOption {
	var out []wireOption
	for _, o := range given {
		at := slices.IndexFunc(known, func(k commandOption) bool { return k.Name == o.Name })
		if at < 0 {
			continue
		}
		k := known[at]
		w := wireOption{Name: o.Name, Type: k.Type, Focused: o.Name == focused && k.Complete}
		switch value := o.Value.(type) {
		case []Option:
			w.Options = d.wireOptions(ch, k.Options, value, focused, resolved)
		case nil:
		default:
			w.Value = value
			if k.Type >= optUser && k.Type <= optMention {
				d.resolve(ch, k.Type, ID(fmt.Sprint(value)), resolved)
			}
		}
		out = append(out, w)
	}
	return out
}

// resolve adds what an id stands for.
func (d *Discord) resolve(ch *channel, kind int, id ID, resolved map[string]map[string]any) {
	put := func(what string, value any) {
		if resolved[what] == nil {
			resolved[what] = map[string]any{}
		}
		resolved[what][string(id)] = value
	}
	if u := d.users[id]; u != nil && kind != optChannel && kind != optRole {
		put("users", wireUserOf(u))
		if ch.guild != nil && ch.guild.member(id) != nil {
			member := d.wireMember(ch.guild.member(id))
			member.User, member.Permissions = nil, d.permissions(id, ch).String()
			put("members", member)
		}
	}
	if c := d.channels[id]; c != nil && kind == optChannel {
		put("channels", d.wireChannel(c, true))
	}
	if ch.guild != nil && ch.guild.role(id) != nil && (kind == optRole || kind == optMention) {
		put("roles", wireRoleOf(ch.guild, ch.guild.role(id)))
	}
}

// Submit sends the modal that an interaction was answered with; values are by custom id.
func (d *Discord) Submit(interaction ID, values map[string]string) (ID, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := d.interactions[interaction]
	if from == nil || from.Modal == nil {
		return "", false
	}
	var modal struct {
		CustomID   string      `json:"custom_id"`
		Components []component `json:"components"`
	}
	if json.Unmarshal(from.Modal, &modal) != nil {
		return "", false
	}
	rows := []any{}
	for _, row := range modal.Components {
		inputs := []any{}
		for _, c := range append(slices.Clone(row.Components), optional(row.Component)...) {
			if c.CustomID != nil {
				inputs = append(inputs, map[string]any{"type": c.Type, "custom_id": *c.CustomID, "value": values[*c.CustomID], "id": 2})
			}
		}
		if row.Component != nil && len(inputs) == 1 {
			rows = append(rows, map[string]any{"type": row.Type, "id": 1, "component": inputs[0]})
			continue
		}
		rows = append(rows, map[string]any{"type": row.Type, "id": 1, "components": inputs})
	}
	i := newModal(from)
	return d.interact(i, map[string]any{"custom_id": modal.CustomID, "components": rows}), true
}

func optional(c *component) []component {
	if c == nil {
		return nil
	}
	return []component{*c}
}

// newModal is the interaction of a modal that from opened.
func newModal(from *interaction) *interaction {
	i := &interaction{user: from.user, channel: from.channel, source: from.source}
	i.Kind = ModalSent
	return i
}
