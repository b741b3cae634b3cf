package discordtest

import (
	"cmp"
	"encoding/json"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Message flags.
const (
	flagNoEmbeds    = 1 << 2
	flagHasThread   = 1 << 5
	flagEphemeral   = 1 << 6
	flagLoading     = 1 << 7
	flagSilent      = 1 << 12
	flagVoice       = 1 << 13
	flagSnapshot    = 1 << 14
	flagComponents2 = 1 << 15
)

// message is a message of a channel.
type message struct {
	id          ID
	channel     *channel
	author      *user
	webhook     ID
	name        string // of a webhook
	typ         int
	content     string
	files       []*File
	embeds      json.RawMessage
	components  json.RawMessage
	buttons     [][]Button
	ref         *wireReference
	snapshot    *message
	reactions   []*Reaction
	users       []ID // mentioned
	roles       []ID
	everyone    bool
	pingReplied bool
	nonce       json.RawMessage
	flags       int
	pinned      bool
	edited      time.Time
	interaction *interaction
	seenBy      ID // the one who sees an ephemeral message
}

// keepMessage puts a message into its channel. The caller holds mu.
func (d *Discord) keepMessage(m *message) {
	c := m.channel
	c.messages[m.id] = m
	c.order = append(c.order, m.id)
	if m.seenBy == "" {
		c.last = m.id
	}
	if over := len(c.order) - d.o.Keep; d.o.Keep > 0 && over > d.o.Keep {
		for _, id := range c.order[:over] {
			d.dropFiles(c.messages[id])
			delete(c.messages, id)
		}
		c.order = slices.Clone(c.order[over:])
	}
}

// keepFile makes a file that the content network serves.
func (d *Discord) keepFile(c *channel, f File, ephemeral bool) *File {
	f.ID = d.newID()
	f.Type = cmp.Or(f.Type, mime.TypeByExtension(path.Ext(f.Name)))
	folder := "/attachments/"
	if ephemeral {
		folder = "/ephemeral-attachments/"
	}
	place := folder + string(c.ID) + "/" + string(f.ID) + "/" + f.Name
	f.URL = d.server.URL() + (&url.URL{Path: place}).EscapedPath() + "?ex=7fffffff&is=68000000&hm=" + strings.Repeat("ab", 32) + "&"
	kept := &f
	d.files[kept.ID] = kept
	return kept
}

func (d *Discord) dropFiles(m *message) {
	if m == nil {
		return
	}
	for _, f := range m.files {
		delete(d.files, f.ID)
	}
}

func wireFiles(files []*File, flags int) []wireFile {
	out := []wireFile{}
	for _, f := range files {
		w := wireFile{ID: f.ID, Name: f.Name, Size: len(f.Body), URL: f.URL, Proxy: f.URL, Type: f.Type, Description: f.Description,
			Ephemeral: flags&flagEphemeral != 0}
		if flags&flagVoice != 0 {
			w.Duration, w.Waveform = 1.5, "AAAA"
		}
		out = append(out, w)
	}
	return out
}

// view says for whom a message is written down.
type view struct {
	blank   bool // without the message content intent
	event   bool // in a gateway event: with guild and member
	nonce   bool
	shallow bool // without the referenced message
}

var emptyList = json.RawMessage("[]")

// wireMessage writes a message down. The caller holds mu.
func (d *Discord) wireMessage(m *message, v view) *wireMessage {
	c := m.channel
	w := &wireMessage{
		Type: m.typ, Content: m.content, Mentions: []wireMention{}, Roles: append([]ID{}, m.roles...), Attachments: wireFiles(m.files, m.flags),
		Embeds: m.embeds, Timestamp: stamp(m.id.Time()), Edited: stampOrNil(m.edited), Flags: m.flags, Components: m.components, ID: m.id,
		Channel: c.ID, Author: wireUserOf(m.author), Pinned: m.pinned, Everyone: m.everyone, Reference: m.ref, Webhook: m.webhook,
	}
	if m.webhook != "" && m.name != "" {
		w.Author = wireUser{ID: m.webhook, Username: m.name, Discriminator: "0000", Bot: true}
	}
	if m.author == d.bot {
		w.Application = d.bot.ID
	}
	if w.Embeds == nil {
		w.Embeds = emptyList
	}
	if w.Components == nil {
		w.Components = emptyList
	}
	if v.nonce {
		w.Nonce = m.nonce
	}
	d.wireMentions(w, m, v)
	d.wireContext(w, m, v)
	if v.blank && d.hides(m) {
		w.Content, w.Embeds, w.Components, w.Attachments, w.Snapshots = "", emptyList, emptyList, []wireFile{}, nil
	}
	return w
}

func (d *Discord) wireMentions(w *wireMessage, m *message, v view) {
	ids := m.users
	if m.pingReplied && m.ref != nil {
		if to := d.referenced(m); to != nil && to.webhook == "" && !slices.Contains(ids, to.author.ID) {
			ids = append(slices.Clone(ids), to.author.ID)
		}
	}
	for _, id := range ids {
		u := d.users[id]
		if u == nil {
			continue
		}
		mention := wireMention{wireUser: wireUserOf(u)}
		if g := m.channel.guild; g != nil && v.event {
			if in := g.member(id); in != nil {
				member := d.wireMember(in)
				member.User = nil
				mention.Member = &member
			}
		}
		w.Mentions = append(w.Mentions, mention)
	}
}

// wireContext adds what stands around a message: reference, reactions, thread, interaction, guild.
func (d *Discord) wireContext(w *wireMessage, m *message, v view) {
	c := m.channel
	if m.typ == 19 && !v.shallow {
		w.Referenced = json.RawMessage("null")
		if to := d.referenced(m); to != nil {
			w.Referenced, _ = json.Marshal(d.wireMessage(to, view{blank: v.blank, shallow: true}))
		}
	}
	if m.snapshot != nil {
		var s wireSnapshot
		s.Message.Content, s.Message.Attachments, s.Message.Embeds = m.snapshot.content, wireFiles(m.snapshot.files, 0), emptyList
		s.Message.Timestamp, s.Message.Components = stamp(m.id.Time()), emptyList
		s.Message.Mentions, s.Message.Roles = []wireUser{}, []ID{}
		w.Snapshots = []wireSnapshot{s}
	}
	for _, r := range m.reactions {
		w.Reactions = append(w.Reactions, wireReaction{
			Emoji: emojiOf(r.Emoji), Count: len(r.By), Me: slices.Contains(r.By, d.bot.ID), Colors: []string{},
			Detail: map[string]int{"burst": 0, "normal": len(r.By)},
		})
	}
	if t := d.channels[m.id]; t != nil && t.started && !v.shallow {
		w.Thread = d.wireChannel(t, true)
	}
	if i := m.interaction; i != nil {
		w.Interaction = i.meta(m)
		if i.Kind == CommandRun {
			w.Legacy = &wireInteractionMeta{ID: i.ID, Type: int(i.Kind), Name: i.command.Name, User: wireUserOf(i.user)}
		}
		w.Application, w.Webhook = d.bot.ID, d.bot.ID
	}
	if c.isThread() {
		position := slices.Index(c.order, m.id)
		w.Position = &position
	}
	if !v.event {
		return
	}
	if w.ChannelType = &c.Type; m.seenBy != "" {
		return // events of ephemeral messages name no guild and no member
	}
	w.Guild = c.Guild
	if c.guild != nil && m.webhook == "" {
		if in := c.guild.member(m.author.ID); in != nil {
			member := d.wireMember(in)
			member.User = nil
			w.Member = &member
		}
	}
}

// hides reports whether a message's content needs the message content intent.
func (d *Discord) hides(m *message) bool {
	if m.channel.guild == nil || m.author == d.bot || slices.Contains(m.users, d.bot.ID) {
		return false
	}
	if to := d.referenced(m); to != nil && m.pingReplied && to.author == d.bot {
		return false
	}
	return true
}

// referenced is the message that m answers, nil when it is gone.
func (d *Discord) referenced(m *message) *message {
	if m.ref == nil || m.ref.Type != 0 {
		return nil
	}
	if c := d.channels[m.ref.Channel]; c != nil {
		return c.messages[m.ref.Message]
	}
	return nil
}

// emojiOf reads an emoji, or name:id of a custom one.
func emojiOf(s string) wireEmoji {
	if name, id, ok := strings.Cut(s, ":"); ok {
		at := ID(id)
		return wireEmoji{&at, name}
	}
	return wireEmoji{Name: s}
}

// heard reports whether the bot gets events of a message.
func (d *Discord) heard(m *message) bool {
	g := m.channel.guild
	return g == nil || m.seenBy != "" || !g.out && d.sees(d.bot.ID, m.channel)
}

// intent is what a session must have asked for to get a message's events. The service takes an ephemeral message for a
// direct one (discord-api-docs issue 4557).
func (m *message) intent() Intents {
	if m.channel.guild == nil || m.seenBy != "" {
		return IntentDirectMessages
	}
	return IntentGuildMessages
}

// tell sends the event of a message to the sessions that see it. by is who caused it.
func (d *Discord) tell(name string, m *message, by *user) {
	if !d.heard(m) {
		return
	}
	d.dispatch(event{name: name, intent: m.intent(), person: by != nil && !by.Bot, per: func(s *session) any {
		return d.wireMessage(m, view{blank: s.intents&IntentMessageContent == 0, event: true, nonce: name == "MESSAGE_CREATE"})
	}})
}

// shown is a message as people see it.
func (d *Discord) shown(m *message) Message {
	out := Message{
		ID: m.id, Channel: m.channel.ID, From: m.author.ID, Bot: m.author == d.bot, Type: m.typ, Text: m.content, Embeds: m.embeds,
		Buttons: m.buttons, Nonce: strings.Trim(string(m.nonce), `"`), Ephemeral: m.seenBy != "", For: m.seenBy,
		Thinking: m.flags&flagLoading != 0, Silent: m.flags&flagSilent != 0, NoPreviews: m.flags&flagNoEmbeds != 0,
		At: m.id.Time(), Edited: m.edited,
	}
	for _, f := range m.files {
		out.Files = append(out.Files, *f)
	}
	for _, r := range m.reactions {
		out.Reactions = append(out.Reactions, Reaction{r.Emoji, slices.Clone(r.By)})
	}
	if m.ref != nil && m.ref.Type == 0 {
		out.ReplyTo = m.ref.Message
	}
	if t := d.channels[m.id]; t != nil && t.started {
		out.Thread = t.ID
	}
	for _, mention := range d.wireMessage(m, view{}).Mentions {
		out.Pinged = append(out.Pinged, string(mention.ID))
	}
	for _, r := range m.roles {
		out.Pinged = append(out.Pinged, string(r))
	}
	if m.everyone {
		out.Pinged = append(out.Pinged, "everyone")
	}
	return out
}

// Visible returns the bot's messages in a channel or thread as people see them now, oldest first, ephemeral ones too
// and system messages not.
func (d *Discord) Visible(channel ID) []Message {
	var out []Message
	for _, m := range d.Messages(channel) {
		if m.Bot && (m.Type == 0 || m.Type == 19 || m.Type == 20 || m.Type == 23) {
			out = append(out, m)
		}
	}
	return out
}

// Messages returns all messages of a channel, oldest first.
func (d *Discord) Messages(channel ID) []Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.channels[channel]
	if c == nil {
		return nil
	}
	var out []Message
	for _, id := range c.order {
		if m := c.messages[id]; m != nil {
			out = append(out, d.shown(m))
		}
	}
	return out
}

// Message returns one message, ephemeral ones too.
func (d *Discord) Message(channel, id ID) (Message, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.channels[channel]; c != nil && c.messages[id] != nil {
		return d.shown(c.messages[id]), true
	}
	return Message{}, false
}

// remove takes a message out of its channel and tells.
func (d *Discord) remove(m *message, by *user) {
	c := m.channel
	d.dropFiles(m)
	delete(c.messages, m.id)
	c.order = slices.DeleteFunc(c.order, func(id ID) bool { return id == m.id })
	d.act("delete", c.ID, m.id, by.ID, "")
	if !d.heard(m) {
		return
	}
	guild := c.Guild
	if m.seenBy != "" {
		guild = ""
	}
	d.dispatch(event{name: "MESSAGE_DELETE", intent: m.intent(), person: !by.Bot, data: struct {
		ID      ID `json:"id"`
		Channel ID `json:"channel_id"`
		Guild   ID `json:"guild_id,omitempty"`
	}{m.id, c.ID, guild}})
}
