package discordtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Types of an interaction's first answer.
const (
	replyPong        = 1
	replyMessage     = 4
	replyDeferred    = 5
	replyDeferUpdate = 6
	replyUpdate      = 7
	replyChoices     = 8
	replyModal       = 9
)

// interaction is one, with what became of it.
type interaction struct {
	Interaction
	user    *user
	channel *channel
	command *command
	source  *message // of a component, and of a modal that a component opened
	made    time.Time
	reply   *message // the first answer's message
}

// meta says on a message which interaction made it.
func (i *interaction) meta(m *message) *wireInteractionMeta {
	w := &wireInteractionMeta{ID: i.ID, Type: int(i.Kind), User: wireUserOf(i.user), Owners: map[string]string{}}
	if i.channel.guild != nil {
		w.Owners["0"] = string(i.channel.Guild)
	} else {
		w.Owners["0"] = "0"
	}
	if i.command != nil {
		w.Name = i.command.Name
	}
	if i.source != nil {
		w.Message = i.source.id
	}
	if i.reply != nil && i.reply != m {
		w.Original = i.reply.id
	}
	return w
}

// Interaction returns what became of an interaction.
func (d *Discord) Interaction(id ID) (Interaction, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.interactions[id]
	if i == nil {
		return Interaction{}, false
	}
	out := i.Interaction
	out.Followups = slices.Clone(i.Followups)
	if m := i.reply; m != nil {
		out.Original, out.Text = m.id, m.content
		out.Thinking = m.flags&flagLoading != 0
		if m.channel.messages[m.id] != m {
			out.Text, out.Original = "", "" // deleted
		}
	}
	return out, true
}

// interact makes an interaction and tells the bot. data is its data field.
func (d *Discord) interact(i *interaction, data any) ID {
	i.ID, i.made = d.newID(), time.Now()
	i.Token = "aW50ZXJhY3Rpb24" + string(i.ID) + strings.Repeat("x", 60)
	d.interactions[i.ID] = i
	if over := len(d.interactions) - d.o.Keep; d.o.Keep > 0 && over > d.o.Keep {
		d.dropInteractions()
	}
	d.act("interaction", i.channel.ID, "", i.user.ID, fmt.Sprint(i.Kind))
	c := i.channel
	w := map[string]any{
		"id": i.ID, "application_id": d.bot.ID, "type": i.Kind, "data": data, "token": i.Token, "version": 1, "channel_id": c.ID,
		"channel": d.interactionChannel(c, i.user), "app_permissions": d.permissions(d.bot.ID, c).String(), "locale": "en-US",
		"entitlements": []any{}, "entitlement_sku_ids": []any{}, "attachment_size_limit": uploadLimit(c.guild),
		"authorizing_integration_owners": map[string]any{"0": "0"}, "context": 1,
	}
	if c.guild == nil {
		w["user"] = wireUserOf(i.user)
	} else {
		member := wireMember{User: nil, Roles: []ID{}, Joined: stamp(i.made)}
		if m := c.guild.member(i.user.ID); m != nil {
			member = d.wireMember(m)
		} else {
			u := wireUserOf(i.user)
			member.User = &u
		}
		member.Permissions = d.permissions(i.user.ID, c).String()
		w["member"], w["guild_id"], w["guild_locale"], w["context"] = member, c.Guild, "en-US", 0
		w["guild"] = map[string]any{"id": c.Guild, "features": []string{}, "locale": "en-US"}
		w["authorizing_integration_owners"] = map[string]any{"0": c.Guild}
	}
	if i.source != nil {
		w["message"] = d.wireMessage(i.source, view{})
	}
	d.dispatch(event{name: "INTERACTION_CREATE", data: w, person: true})
	return i.ID
}

func (d *Discord) interactionChannel(c *channel, u *user) *wireChannel {
	w := d.wireChannel(c, true)
	w.Permissions = d.permissions(u.ID, c).String()
	return w
}

// dropInteractions forgets those whose token is over.
func (d *Discord) dropInteractions() {
	maps.DeleteFunc(d.interactions, func(_ ID, i *interaction) bool { return time.Since(i.made) > d.o.TokenLife })
}

// webhookRoutes are those whose token is in the path.
func (d *Discord) webhookRoutes() map[string]handler {
	return map[string]handler{
		"POST /interactions/{interaction}/{token}/callback":         d.callback,
		"POST /webhooks/{application}/{token}":                      d.followup,
		"PATCH /webhooks/{application}/{token}/messages/{message}":  d.editReply,
		"DELETE /webhooks/{application}/{token}/messages/{message}": d.deleteReply,
	}
}

type callbackData struct {
	draft
	Choices  *[]Choice       `json:"choices"`
	CustomID string          `json:"custom_id"`
	Title    string          `json:"title"`
	raw      json.RawMessage // for a modal
}

// callback is the first answer.
func (d *Discord) callback(c *call) (int, any, error) {
	i := d.interactions[c.id("interaction")]
	switch {
	case i == nil || i.Token != c.r.PathValue("token"):
		return 0, nil, errUnknownAction
	case i.Answered:
		return 0, nil, errAcknowledged
	case time.Since(i.made) > d.o.InteractionWindow:
		return 0, nil, errUnknownAction
	}
	var body struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := c.decode(&body); err != nil {
		return 0, nil, err
	}
	data := callbackData{raw: body.Data}
	if !isNull(body.Data) {
		inner := &call{body: body.Data}
		if err := inner.decode(&data); err != nil {
			return 0, nil, err
		}
	}
	data.files = c.files
	if err := d.first(i, body.Type, &data); err != nil {
		return 0, nil, err
	}
	i.Answered, i.Type, i.Took = true, body.Type, time.Since(i.made)
	if c.r.URL.Query().Get("with_response") != "true" {
		return http.StatusNoContent, nil, nil
	}
	return 200, d.callbackResult(i), nil
}

func (d *Discord) callbackResult(i *interaction) any {
	about := map[string]any{"id": i.ID, "type": i.Kind}
	resource := map[string]any{"type": i.Type}
	if m := i.reply; m != nil {
		about["response_message_id"], about["response_message_loading"] = m.id, m.flags&flagLoading != 0
		about["response_message_ephemeral"] = m.seenBy != ""
		resource["message"] = d.wireMessage(m, view{})
	}
	out := map[string]any{"interaction": about}
	if i.Type != replyDeferUpdate && i.Type != replyChoices {
		out["resource"] = resource
	}
	return out
}

// first carries an answer out.
func (d *Discord) first(i *interaction, kind int, data *callbackData) error {
	wrong := func(path, code, message string) error {
		f := &form{}
		f.add(path, code, message)
		return f.err()
	}
	switch kind {
	case replyMessage:
		return d.replyWith(i, data)
	case replyDeferred:
		m := d.replyMessage(i, &data.draft)
		m.flags |= flagLoading
		d.publish(i, m)
	case replyDeferUpdate, replyUpdate:
		if i.source == nil {
			return wrong("type", "INTERACTION_RESPONSE_TYPE_INVALID", "This interaction cannot be answered so")
		}
		if kind == replyUpdate {
			if err := d.edit(i.source, &data.draft); err != nil {
				return err
			}
		}
		i.reply = i.source
	case replyChoices:
		if i.Kind != Completion || data.Choices == nil {
			return wrong("type", "INTERACTION_RESPONSE_TYPE_INVALID", "Only autocompletions are answered with choices")
		}
		if len(*data.Choices) > 25 {
			return wrong("data.choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
		}
		for n, choice := range *data.Choices {
			f := &form{}
			checkText(f, fmt.Sprintf("data.choices.%d.name", n), choice.Name, 100)
			if err := f.err(); err != nil {
				return err
			}
		}
		i.Choices = *data.Choices
	case replyModal:
		if i.Kind == ModalSent || i.Kind == Completion || data.CustomID == "" || data.Title == "" {
			return wrong("data", "BASE_TYPE_REQUIRED", "This field is required")
		}
		i.Modal = data.raw
	default:
		return wrong("type", "BASE_TYPE_CHOICES", "Value must be one of {4, 5, 6, 7, 8, 9, 10, 12}.")
	}
	return nil
}

// replyMessage makes a message of an interaction, ephemeral when the flags say so.
func (d *Discord) replyMessage(i *interaction, dr *draft) *message {
	m := &message{id: d.newID(), channel: i.channel, author: d.bot, interaction: i}
	if i.Kind == CommandRun {
		m.typ = 20
	}
	if i.source != nil && i.Kind == ComponentUsed {
		m.typ, m.ref = 19, &wireReference{Message: i.source.id, Channel: i.channel.ID, Guild: i.channel.Guild}
	}
	if dr.Flags != nil && *dr.Flags&flagEphemeral != 0 {
		m.flags |= flagEphemeral
		m.seenBy = i.user.ID
	}
	return m
}

// publish puts the first answer into its channel.
func (d *Discord) publish(i *interaction, m *message) {
	i.reply, i.Private = m, m.seenBy != ""
	d.keepMessage(m)
	d.act("answer", m.channel.ID, m.id, d.bot.ID, m.content)
	d.tell("MESSAGE_CREATE", m, d.bot)
}

func (d *Discord) replyWith(i *interaction, data *callbackData) error {
	if i.Kind == Completion {
		f := &form{}
		f.add("type", "INTERACTION_RESPONSE_TYPE_INVALID", "Autocompletions are answered with choices")
		return f.err()
	}
	m := d.replyMessage(i, &data.draft)
	if err := d.apply(m, &data.draft); err != nil {
		return err
	}
	d.publish(i, m)
	return nil
}

// hook finds the interaction of a webhook token.
func (d *Discord) hook(c *call) (*interaction, error) {
	if c.id("application") != d.bot.ID {
		return nil, errUnknownWebhook
	}
	for _, i := range d.interactions {
		if i.Token != c.r.PathValue("token") {
			continue
		}
		if time.Since(i.made) > d.o.TokenLife {
			return nil, errWebhookToken
		}
		return i, nil
	}
	return nil, errUnknownWebhook
}

// followup is a further answer. The first one after a deferred answer takes its place.
func (d *Discord) followup(c *call) (int, any, error) {
	i, err := d.hook(c)
	if err != nil {
		return 0, nil, err
	}
	if !i.Answered {
		return 0, nil, errUnknownWebhook
	}
	dr, err := readDraft(c)
	if err != nil {
		return 0, nil, err
	}
	if m := i.reply; m != nil && m.flags&flagLoading != 0 && m.channel.messages[m.id] == m {
		if err := d.edit(m, dr); err != nil {
			return 0, nil, err
		}
		return 200, d.wireMessage(m, view{}), nil
	}
	m := d.replyMessage(i, dr)
	m.typ = 0
	if at := i.reply; at != nil {
		m.typ, m.ref = 19, &wireReference{Message: at.id, Channel: i.channel.ID, Guild: i.channel.Guild}
	}
	if err := d.apply(m, dr); err != nil {
		return 0, nil, err
	}
	d.keepMessage(m)
	i.Followups = append(i.Followups, m.id)
	d.act("followup", m.channel.ID, m.id, d.bot.ID, m.content)
	d.tell("MESSAGE_CREATE", m, d.bot)
	return 200, d.wireMessage(m, view{}), nil
}

// replyOf finds the message of a webhook route: @original or one of the followups.
func (d *Discord) replyOf(c *call) (*interaction, *message, error) {
	i, err := d.hook(c)
	if err != nil {
		return nil, nil, err
	}
	if !i.Answered {
		return nil, nil, errUnknownWebhook
	}
	m := i.reply
	if id := c.id("message"); id != "@original" && (m == nil || m.id != id) {
		m = nil
		if slices.Contains(i.Followups, id) {
			m = i.channel.messages[id]
		}
	}
	if m == nil || m.channel.messages[m.id] != m {
		return nil, nil, errUnknownMessage
	}
	return i, m, nil
}

func (d *Discord) editReply(c *call) (int, any, error) {
	dr, err := readDraft(c)
	if err != nil {
		return 0, nil, err
	}
	_, m, err := d.replyOf(c)
	if err != nil {
		return 0, nil, err
	}
	if err := d.edit(m, dr); err != nil {
		return 0, nil, err
	}
	return 200, d.wireMessage(m, view{}), nil
}

func (d *Discord) deleteReply(c *call) (int, any, error) {
	_, m, err := d.replyOf(c)
	if err != nil {
		return 0, nil, err
	}
	d.remove(m, d.bot)
	return http.StatusNoContent, nil, nil
}
