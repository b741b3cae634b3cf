package teamstest

import (
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"time"
)

// Say makes the first member of a room write to the bot: elsewhere than in a personal chat the bot is mentioned. It
// returns the message's id; in a channel the message begins a thread.
func (s *Server) Say(room, text string) string {
	id, thread := splitID(room)
	s.mu.Lock()
	kind := s.rooms[id].Type
	s.mu.Unlock()
	return s.Write(Post{Room: id, Thread: thread, Text: text, Mention: kind != Personal})
}

// Write makes a person write, and returns the message's id. The bot is told in a personal chat and when it is
// mentioned; elsewhere only if Overhear is on.
func (s *Server) Write(p Post) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[p.Room]
	a, m := s.compose(r, p)
	m.Raw = mustJSON(a)
	s.put(r, m)
	s.act(Act{Verb: "say", Room: r.ID, Thread: m.Thread, Message: m.ID, Text: p.Text})
	if r.installed && (r.Type == Personal || p.Mention || s.overhear) {
		s.queue(r.ID, m.Raw)
	}
	return m.ID
}

// Overhear gives the bot every message of groups and channels, as an app with the resource-specific consents
// ChannelMessage.Read.Group and ChatMessage.Read.Chat has them.
func (s *Server) Overhear(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overhear = on
}

// compose makes a message and its activity. The caller holds mu.
func (s *Server) compose(r *room, p Post) (activity, *Message) {
	id := s.messageID()
	from := s.author(r, p.From)
	thread := p.Thread
	if r.Type == Channel && thread == "" {
		thread = id
	}
	a := s.activity(r, thread, "message", id, from)
	text, mirror := p.Text, html.EscapeString(p.Text)
	if p.HTML {
		mirror = "<strong>" + mirror + "</strong>"
	}
	if q := r.messages[p.Quote]; q != nil {
		text = q.Text + "\r\n" + text
		mirror = fmt.Sprintf(`<blockquote itemscope="" itemtype="http://schema.skype.com/Reply" itemid="%s"><strong itemprop="mri" itemid="%s">%s</strong><span itemprop="time" itemid="%s"></span><p itemprop="preview">%s</p></blockquote>`,
			q.ID, q.From, html.EscapeString(s.name(q.From)), q.ID, html.EscapeString(q.Text)) + mirror
	}
	var mentioned []account
	if p.Mention {
		mentioned = append(mentioned, account{ID: s.BotID(), Name: s.o.BotName})
	}
	for _, u := range p.Mentions {
		mentioned = append(mentioned, account{ID: u.ID, Name: u.Name})
	}
	before, after, spans, trail := "", "", "", ""
	for i, who := range mentioned {
		tag, span := "<at>"+who.Name+"</at>", fmt.Sprintf(`<span itemtype="http://schema.skype.com/Mention" itemscope="" itemid="%d">%s</span>`, i, html.EscapeString(who.Name))
		a.Entities = append(a.Entities, mustJSON(struct {
			Mentioned account `json:"mentioned"`
			Text      string  `json:"text"`
			Type      string  `json:"type"`
		}{who, tag, "mention"}))
		if i == 0 && p.Mention {
			before, spans = tag+" ", span+"&nbsp;"
		} else {
			after, trail = after+" "+tag, trail+"&nbsp;"+span
		}
	}
	text = before + text + after
	mirror = spans + mirror + trail
	files, images := s.attach(r, id, p.Files)
	a.Attachments = append(a.Attachments, files...)
	a.Attachments = append(a.Attachments, attachment{ContentType: "text/html", Content: mustJSON("<p>" + mirror + "</p>" + images)})
	a.Entities = append(a.Entities, json.RawMessage(`{"locale":"en-US","country":"US","platform":"Web","timezone":"America/Los_Angeles","type":"clientInfo"}`))
	a.TextFormat, a.Text = "plain", &text
	m := &Message{ID: id, Room: r.ID, Thread: thread, From: from.ID, Text: p.Text, Format: "plain", Files: slices.Clone(p.Files),
		ReplyTo: p.Quote, At: time.Now()}
	for _, who := range mentioned {
		m.Mentioned = append(m.Mentioned, who.ID)
	}
	return a, m
}

// author is who acts in a room: the first member when nobody is named.
func (s *Server) author(r *room, u User) User {
	if u.ID == "" && len(r.Members) > 0 {
		return r.Members[0]
	}
	return u
}

func (s *Server) name(id string) string {
	if id == s.BotID() {
		return s.o.BotName
	}
	return s.users[id].Name
}

// activity is the frame of everything that happens in a room. The caller holds mu.
func (s *Server) activity(r *room, thread, kind, id string, from User) activity {
	now := time.Now().UTC()
	a := activity{
		Type: kind, ID: id, Timestamp: now.Format("2006-01-02T15:04:05.0000000Z"), LocalTimestamp: now.Add(-8*time.Hour).Format("2006-01-02T15:04:05.0000000") + "-08:00",
		LocalTimezone: "America/Los_Angeles", ServiceURL: s.URLs().Service, ChannelID: "msteams", Locale: "en-US",
		From:         account{ID: from.ID, Name: from.Name, AAD: from.AAD},
		Recipient:    account{ID: s.BotID(), Name: s.o.BotName},
		Conversation: conversation{ID: r.ID, Type: string(r.Type), TenantID: r.Tenant, IsGroup: r.Type != Personal},
		ChannelData:  s.channelData(r, ""),
	}
	if r.Type == Channel && thread != "" {
		a.Conversation.ID += ";messageid=" + thread
	}
	if r.Type == Group {
		a.Conversation.Name = r.Name
	}
	return a
}

// channelData is what Teams says of a room beside the activity.
func (s *Server) channelData(r *room, event string) json.RawMessage {
	type named struct {
		ID    string `json:"id"`
		Name  string `json:"name,omitempty"`
		Group string `json:"aadGroupId,omitempty"`
	}
	data := struct {
		Event     string `json:"eventType,omitempty"`
		ChannelID string `json:"teamsChannelId,omitempty"`
		TeamID    string `json:"teamsTeamId,omitempty"`
		Channel   *named `json:"channel,omitempty"`
		Team      *named `json:"team,omitempty"`
		Tenant    named  `json:"tenant"`
	}{Event: event, Tenant: named{ID: r.Tenant}}
	if r.Type == Channel {
		data.ChannelID, data.TeamID = r.ID, r.Team.ID
		data.Channel = &named{ID: r.ID}
		data.Team = &named{ID: r.Team.ID}
		if event != "" {
			data.Channel.Name, data.Team.Name, data.Team.Group = r.Name, r.Team.Name, r.Team.Group
		}
	}
	return mustJSON(data)
}

// Rewrite makes the author of a message edit it. The bot is told as of the message.
func (s *Server) Rewrite(room, message, text string) {
	s.change(room, message, "messageUpdate", "editMessage", func(m *Message) { m.Text = text })
}

// Remove makes the author of a message delete it, and Restore take that back.
func (s *Server) Remove(room, message string) {
	s.change(room, message, "messageDelete", "softDeleteMessage", func(m *Message) { m.Deleted = true })
}

// Restore undoes Remove.
func (s *Server) Restore(room, message string) {
	s.change(room, message, "messageUpdate", "undeleteMessage", func(m *Message) { m.Deleted = false })
}

// change alters a person's message and tells the bot.
func (s *Server) change(room, message, kind, event string, alter func(*Message)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	m := r.messages[message]
	if m == nil || m.Bot {
		return
	}
	alter(m)
	m.Edited = time.Now()
	a := s.activity(r, m.Thread, kind, m.ID, s.users[m.From])
	a.ChannelData = s.channelData(r, event)
	if kind == "messageUpdate" {
		text := m.Text
		if slices.Contains(m.Mentioned, s.BotID()) {
			text = "<at>" + s.o.BotName + "</at> " + text
			a.Entities = append(a.Entities, mustJSON(struct {
				Mentioned account `json:"mentioned"`
				Text      string  `json:"text"`
				Type      string  `json:"type"`
			}{account{ID: s.BotID(), Name: s.o.BotName}, "<at>" + s.o.BotName + "</at>", "mention"}))
		}
		a.TextFormat, a.Text = "plain", &text
	}
	if r.installed && (r.Type == Personal || s.overhear || slices.Contains(m.Mentioned, s.BotID())) {
		s.queue(r.ID, mustJSON(a))
	}
}

// React makes a person put a reaction on a message: "like", "heart", "laugh", "surprised", "sad", "angry" or a newer
// one such as "1f440_eyes". The bot hears about those on its own messages. The zero User is the room's first member.
func (s *Server) React(room, message, kind string, who User) {
	s.reactBy(room, message, kind, who, false)
}

// Unreact takes a reaction off.
func (s *Server) Unreact(room, message, kind string, who User) {
	s.reactBy(room, message, kind, who, true)
}

func (s *Server) reactBy(room, message, kind string, who User, off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	m := r.messages[message]
	if m == nil {
		return
	}
	who = s.author(r, who)
	m.react(who.ID, kind, off)
	verb := "react"
	a := s.activity(r, m.Thread, "messageReaction", "f:"+uuid(), who)
	a.ReplyToID, a.From.Name = m.ID, "" // Teams gives no name here
	if off {
		verb, a.ReactionsRemoved = "unreact", []reaction{{kind}}
	} else {
		a.ReactionsAdded = []reaction{{kind}}
	}
	s.act(Act{Verb: verb, Room: r.ID, Thread: m.Thread, Message: m.ID, Text: kind})
	if r.installed && (m.Bot || s.overhear) {
		s.queue(r.ID, mustJSON(a))
	}
}

func (m *Message) react(who, kind string, off bool) {
	if m.Reactions == nil {
		m.Reactions = map[string][]string{}
	}
	list := slices.DeleteFunc(slices.Clone(m.Reactions[who]), func(k string) bool { return k == kind })
	if !off {
		list = append(list, kind)
	}
	m.Reactions[who] = list
}

// Install puts the bot into a room and tells it: conversationUpdate and installationUpdate "add".
func (s *Server) Install(room string, by User) { s.install(room, by, true) }

// Uninstall takes the bot out of a room. In a personal chat it is told by installationUpdate only, as Teams does.
// Sends are refused with BotNotInConversationRoster, or ForbiddenOperationException in a personal chat.
func (s *Server) Uninstall(room string, by User) { s.install(room, by, false) }

func (s *Server) install(room string, by User, add bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	r.installed = add
	by = s.author(r, by)
	bot := account{ID: s.BotID(), Name: s.o.BotName}
	update := s.activity(r, "", "conversationUpdate", "f:"+uuid(), by)
	event := map[bool]string{true: "teamMemberAdded", false: "teamMemberRemoved"}[add]
	if r.Type == Channel {
		update.ChannelData = s.channelData(r, event)
	}
	if add {
		update.MembersAdded = []account{bot}
	} else {
		update.MembersRemoved = []account{bot}
	}
	if add || r.Type != Personal {
		s.queue(r.ID, mustJSON(update))
	}
	installation := s.activity(r, "", "installationUpdate", "f:"+uuid(), by)
	installation.Action = map[bool]string{true: "add", false: "remove"}[add]
	s.queue(r.ID, mustJSON(installation))
}
