package discordtest

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
)

// messageRoutes are those about messages and what is under them.
func (d *Discord) messageRoutes() map[string]handler {
	return map[string]handler{
		SendMessage:                                     d.createMessage,
		"GET /channels/{channel}/messages":              d.getMessages,
		"GET /channels/{channel}/messages/{message}":    d.getMessage,
		"PATCH /channels/{channel}/messages/{message}":  d.editMessage,
		"DELETE /channels/{channel}/messages/{message}": d.deleteMessage,
		"POST /channels/{channel}/messages/bulk-delete": d.bulkDelete,
		"POST /channels/{channel}/typing":               d.typing,

		"PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me":    d.putReaction,
		"DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me": d.deleteReaction,
		"GET /channels/{channel}/messages/{message}/reactions/{emoji}":        d.getReactions,
	}
}

// messageOf finds a message of a channel that the bot sees. Ephemeral ones are none.
func (d *Discord) messageOf(c *call, need Permissions) (*channel, *message, error) {
	ch, err := d.reach(c.id("channel"), need)
	if err != nil {
		return nil, nil, err
	}
	m := ch.messages[c.id("message")]
	if m == nil || m.seenBy != "" {
		return nil, nil, errUnknownMessage
	}
	return ch, m, nil
}

// readView is how REST shows a message: the content is blank when the portal does not grant it.
func (d *Discord) readView() view { return view{blank: d.o.WithoutIntents&IntentMessageContent != 0} }

func (d *Discord) getMessage(c *call) (int, any, error) {
	_, m, err := d.messageOf(c, ReadMessageHistory)
	if err != nil {
		return 0, nil, err
	}
	return 200, d.wireMessage(m, d.readView()), nil
}

// getMessages lists messages, newest first.
func (d *Discord) getMessages(c *call) (int, any, error) {
	ch, err := d.reach(c.id("channel"), 0)
	if err != nil {
		return 0, nil, err
	}
	most := queryInt(c, "limit", 50)
	if most < 1 || most > 100 {
		f := &form{}
		f.add("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.")
		return 0, nil, f.err()
	}
	out := []*wireMessage{}
	if d.permissions(d.bot.ID, ch)&ReadMessageHistory == 0 {
		return 200, out, nil // the service answers with an empty list
	}
	var ids []ID
	for _, id := range ch.order {
		if m := ch.messages[id]; m != nil && m.seenBy == "" {
			ids = append(ids, id)
		}
	}
	q := c.r.URL.Query()
	split := func(name string) (at int, ok bool) {
		if q.Get(name) == "" {
			return 0, false
		}
		at, _ = slices.BinarySearchFunc(ids, ID(q.Get(name)), compareIDs)
		return at, true
	}
	if at, ok := split("around"); ok {
		ids = ids[max(0, at-most/2):min(len(ids), at-most/2+most)]
	} else if at, ok := split("before"); ok {
		ids = ids[max(0, at-most):at]
	} else if at, ok := split("after"); ok {
		if at < len(ids) && ids[at] == ID(q.Get("after")) {
			at++
		}
		ids = ids[at:min(len(ids), at+most)]
	} else {
		ids = ids[max(0, len(ids)-most):]
	}
	for _, id := range slices.Backward(ids) {
		out = append(out, d.wireMessage(ch.messages[id], d.readView()))
	}
	return 200, out, nil
}

func (d *Discord) editMessage(c *call) (int, any, error) {
	dr, err := readDraft(c)
	if err != nil {
		return 0, nil, err
	}
	ch, m, err := d.messageOf(c, 0)
	switch {
	case err != nil:
		return 0, nil, err
	case m.author != d.bot || m.webhook != "":
		onlyFlags := dr.Flags != nil && dr.Content == nil && dr.Embeds == nil && dr.Components == nil && dr.Attachments == nil
		if !onlyFlags {
			return 0, nil, errNotAuthor
		}
		if d.permissions(d.bot.ID, ch)&ManageMessages == 0 {
			return 0, nil, errPermissions
		}
	case !m.ordinary():
		return 0, nil, refuse(403, 50021, "Cannot execute action on a system message")
	case ch.Archived:
		return 0, nil, errArchived
	case len(dr.files) > 0 && d.permissions(d.bot.ID, ch)&AttachFiles == 0:
		return 0, nil, errPermissions
	}
	if err := d.edit(m, dr); err != nil {
		return 0, nil, err
	}
	return 200, d.wireMessage(m, view{}), nil
}

// edit changes a message of the bot.
func (d *Discord) edit(m *message, dr *draft) error {
	if err := d.apply(m, dr); err != nil {
		return err
	}
	m.flags &^= flagLoading
	m.edited = time.Now()
	d.act("edit", m.channel.ID, m.id, d.bot.ID, m.content)
	d.tell("MESSAGE_UPDATE", m, d.bot)
	return nil
}

func (d *Discord) deleteMessage(c *call) (int, any, error) {
	ch, m, err := d.messageOf(c, 0)
	switch {
	case err != nil:
		return 0, nil, err
	case m.author != d.bot && ch.guild == nil:
		return 0, nil, refuse(403, 50003, "Cannot execute action on a DM channel")
	case m.author != d.bot && d.permissions(d.bot.ID, ch)&ManageMessages == 0:
		return 0, nil, errPermissions
	case ch.Archived:
		return 0, nil, errArchived
	}
	d.remove(m, d.bot)
	return http.StatusNoContent, nil, nil
}

func (d *Discord) bulkDelete(c *call) (int, any, error) {
	ch, err := d.reach(c.id("channel"), ManageMessages)
	if err != nil {
		return 0, nil, err
	}
	var body struct {
		Messages []ID `json:"messages"`
	}
	if err := c.decode(&body); err != nil {
		return 0, nil, err
	}
	if len(body.Messages) < 2 || len(body.Messages) > 100 {
		return 0, nil, refuse(400, 50016, "You can only bulk delete between 2 and 100 messages")
	}
	var gone []ID
	for _, id := range body.Messages {
		if time.Since(id.Time()) > 14*24*time.Hour {
			return 0, nil, refuse(400, 50034, "You can only bulk delete messages that are under 14 days old.")
		}
		if m := ch.messages[id]; m != nil && m.seenBy == "" {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		d.dropFiles(ch.messages[id])
		delete(ch.messages, id)
		d.act("delete", ch.ID, id, d.bot.ID, "")
	}
	ch.order = slices.DeleteFunc(ch.order, func(id ID) bool { return slices.Contains(gone, id) })
	d.dispatch(event{name: "MESSAGE_DELETE_BULK", intent: IntentGuildMessages, data: map[string]any{
		"ids": gone, "channel_id": ch.ID, "guild_id": ch.Guild,
	}})
	return http.StatusNoContent, nil, nil
}

func (d *Discord) typing(c *call) (int, any, error) {
	ch, err := d.writable(c.id("channel"), &draft{})
	if err != nil {
		return 0, nil, err
	}
	d.showTyping(ch, d.bot)
	return http.StatusNoContent, nil, nil
}

func (d *Discord) showTyping(ch *channel, u *user) {
	d.act("typing", ch.ID, "", u.ID, "")
	intent := IntentGuildTyping
	data := map[string]any{"channel_id": ch.ID, "user_id": u.ID, "timestamp": time.Now().Unix()}
	if ch.guild == nil {
		intent = IntentDirectTyping
	} else {
		data["guild_id"] = ch.Guild
		if m := ch.guild.member(u.ID); m != nil {
			data["member"] = d.wireMember(m)
		}
	}
	if ch.guild == nil || d.sees(d.bot.ID, ch) {
		d.dispatch(event{name: "TYPING_START", intent: intent, data: data, person: false})
	}
}

// isEmoji reports whether s can be a reaction: name:id, or something beyond ASCII.
func isEmoji(s string) bool {
	if name, id, ok := strings.Cut(s, ":"); ok {
		return name != "" && ID(id).number() != 0
	}
	symbols := strings.IndexFunc(s, func(r rune) bool {
		return unicode.Is(unicode.So, r) || r >= 0x1F000 || r == 0x20E3 || unicode.Is(unicode.Sm, r) || r == 0x203C || r == 0x2049
	})
	return symbols >= 0 && len(s) <= 40 && !strings.ContainsFunc(s, unicode.IsSpace)
}

func (d *Discord) putReaction(c *call) (int, any, error) {
	ch, m, err := d.messageOf(c, ReadMessageHistory)
	if err != nil {
		return 0, nil, err
	}
	emoji := c.r.PathValue("emoji")
	known := slices.ContainsFunc(m.reactions, func(r *Reaction) bool { return r.Emoji == emoji })
	switch {
	case !isEmoji(emoji):
		return 0, nil, errUnknownEmoji
	case !known && d.permissions(d.bot.ID, ch)&AddReactions == 0:
		return 0, nil, errPermissions
	case !known && len(m.reactions) == 20:
		return 0, nil, refuse(400, 30010, "Maximum number of reactions reached (20)")
	case ch.Archived:
		return 0, nil, errArchived
	}
	d.react(m, emoji, d.bot)
	return http.StatusNoContent, nil, nil
}

// react puts an emoji of somebody on a message. One that is there already changes nothing.
func (d *Discord) react(m *message, emoji string, who *user) {
	var r *Reaction
	for _, have := range m.reactions {
		if have.Emoji == emoji {
			r = have
		}
	}
	if r == nil {
		r = &Reaction{Emoji: emoji}
		m.reactions = append(m.reactions, r)
	}
	if slices.Contains(r.By, who.ID) {
		return
	}
	r.By = append(r.By, who.ID)
	d.act("react", m.channel.ID, m.id, who.ID, emoji)
	d.tellReaction("MESSAGE_REACTION_ADD", m, emoji, who)
}

func (d *Discord) unreact(m *message, emoji string, who *user) {
	for _, r := range m.reactions {
		if r.Emoji == emoji && slices.Contains(r.By, who.ID) {
			r.By = slices.DeleteFunc(r.By, func(id ID) bool { return id == who.ID })
			d.act("unreact", m.channel.ID, m.id, who.ID, emoji)
			d.tellReaction("MESSAGE_REACTION_REMOVE", m, emoji, who)
		}
	}
	m.reactions = slices.DeleteFunc(m.reactions, func(r *Reaction) bool { return len(r.By) == 0 })
}

func (d *Discord) tellReaction(name string, m *message, emoji string, who *user) {
	ch, intent := m.channel, IntentGuildReactions
	data := map[string]any{
		"user_id": who.ID, "channel_id": ch.ID, "message_id": m.id, "emoji": emojiOf(emoji), "burst": false, "type": 0,
	}
	if name == "MESSAGE_REACTION_ADD" {
		data["message_author_id"] = m.author.ID
	}
	if ch.guild == nil {
		intent = IntentDirectReactions
	} else {
		data["guild_id"] = ch.Guild
		if in := ch.guild.member(who.ID); in != nil && name == "MESSAGE_REACTION_ADD" {
			data["member"] = d.wireMember(in)
		}
		if !d.sees(d.bot.ID, ch) {
			return
		}
	}
	d.dispatch(event{name: name, intent: intent, data: data, person: !who.Bot})
}

func (d *Discord) deleteReaction(c *call) (int, any, error) {
	ch, m, err := d.messageOf(c, 0)
	if err != nil {
		return 0, nil, err
	}
	who := d.bot
	if id := c.r.PathValue("user"); id != "" && id != "@me" {
		if who = d.users[ID(id)]; who == nil {
			return 0, nil, errUnknownUser
		}
		if who != d.bot && d.permissions(d.bot.ID, ch)&ManageMessages == 0 {
			return 0, nil, errPermissions
		}
	}
	emoji := c.r.PathValue("emoji")
	if !isEmoji(emoji) {
		return 0, nil, errUnknownEmoji
	}
	d.unreact(m, emoji, who)
	return http.StatusNoContent, nil, nil
}

func (d *Discord) getReactions(c *call) (int, any, error) {
	_, m, err := d.messageOf(c, ReadMessageHistory)
	if err != nil {
		return 0, nil, err
	}
	out := []wireUser{}
	for _, r := range m.reactions {
		if r.Emoji == c.r.PathValue("emoji") {
			for _, id := range r.By {
				out = append(out, wireUserOf(d.users[id]))
			}
		}
	}
	return 200, out, nil
}
