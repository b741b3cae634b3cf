package signal

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"path"
	"strconv"
	"strings"
	"time"

	"herald/platforms"
)

// The reasons why something makes no event.
const (
	dropGroup         = "group"
	dropChat          = "chat"
	dropUnmentioned   = "unmentioned"
	dropOwn           = "own"
	dropEcho          = "echo"
	dropStory         = "story"
	dropEmpty         = "empty"
	dropReceipt       = "receipt"
	dropTyping        = "typing"
	dropUndecodable   = "undecodable"
	dropUndecryptable = "undecryptable"
	dropNoSender      = "no_sender"
	dropAccount       = "account"
	dropUnsupported   = "unsupported"
)

// Bounds of what one message may hold; the rest is left out.
const (
	mostFiles    = 64
	mostMentions = 200
)

// said is one thing that somebody has done, on its way to an event.
type said struct {
	by     person
	at     int64
	data   *dataMessage
	edits  int64 // the timestamp of the message that this replaces, 0 for none
	sync   bool  // from another device of ours
	toSelf bool
}

// convert turns the data of one event of the stream into an event. Without one the reason is returned. It waits for
// sends under way where it has to know whether a message is our own.
func (a *Adapter) convert(ctx context.Context, data []byte) (*platforms.Event, string) {
	n, err := decode(data)
	switch {
	case err != nil && errors.Is(err, errNoEnvelope):
		return nil, dropUnsupported
	case err != nil:
		return nil, dropUndecodable
	case n.Account != "" && !a.serves(n.Account):
		a.wrongAccount(n.Account)
		return nil, dropAccount
	case n.Envelope == nil:
		return nil, dropUndecryptable
	}
	s, reason := a.read(ctx, n)
	if reason != "" {
		return nil, reason
	}
	return a.event(ctx, s)
}

// read finds who has done something and what.
func (a *Adapter) read(ctx context.Context, n notice) (said, string) {
	e := n.Envelope
	number, uuid := ids(e.Source, e.SourceNumber, e.SourceUUID)
	if number == "" && uuid == "" {
		return said{}, dropNoSender
	}
	own := a.isOwn(number, uuid)
	if own && uuid != "" {
		a.learnSelf(ctx, uuid)
	}
	s := said{at: e.Timestamp}
	switch {
	case len(e.Story) > 0 && string(e.Story) != "null":
		return said{}, dropStory
	case e.Sync != nil:
		if !own || e.Sync.Sent == nil {
			return said{}, dropUnsupported
		}
		sent := e.Sync.Sent
		s.sync, s.data = true, &sent.dataMessage
		if sent.Edit != nil {
			s.data, s.edits = sent.Edit.Data, sent.Edit.Target
		}
		s.toSelf = a.isOwn(ids(sent.Destination, sent.DestinationNumber, sent.DestinationUUID))
	case own:
		return said{}, dropOwn
	case e.Data != nil:
		s.data = e.Data
	case e.Edit != nil:
		s.data, s.edits = e.Edit.Data, e.Edit.Target
	case len(e.Typing) > 0:
		return said{}, dropTyping
	case len(e.Receipt) > 0:
		return said{}, dropReceipt
	case n.Exception != nil:
		a.s.Log.Warn().Str("cause", Mask(n.Exception.Type)).Msg("signal-cli could not decrypt a message; the sender's client sends it again as a rule")
		return said{}, dropUndecryptable
	default:
		return said{}, dropUnsupported
	}
	if s.data == nil {
		return said{}, dropEmpty
	}
	if s.data.Timestamp > 0 {
		s.at = s.data.Timestamp
	}
	var known bool
	if s.by, known = a.people.sender(ctx, number, uuid, e.SourceName); !known {
		return said{}, dropNoSender
	}
	return s, ""
}

// event makes the event of what was said, unless a rule of where we answer drops it.
func (a *Adapter) event(ctx context.Context, s said) (*platforms.Event, string) {
	e := &platforms.Event{
		ChatType: platforms.DM,
		Address:  platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: s.by.chat},
		Sender:   platforms.User{ID: platforms.UserID(s.by.id()), Name: s.by.name},
		At:       platforms.Instant(time.UnixMilli(s.at)),
	}
	if s.by.uuid != "" {
		e.Sender.Alt = platforms.UserID(s.by.uuid)
	}
	if e.Sender.Name == "" {
		e.Sender.Name = s.by.id()
	}
	group := ""
	switch {
	case s.data.Group != nil && s.data.Group.ID != "":
		group = s.data.Group.ID
		e.ChatType, e.ChatName = platforms.Group, s.data.Group.Name
		e.Address.Chat = platforms.ChatID(groupPrefix + group)
		if reason := a.admits(group); reason != "" {
			return nil, reason
		}
	case s.sync && !s.toSelf:
		return nil, dropOwn // what the person writes to others is not for us
	}
	if s.sync && a.echo.is(ctx, string(e.Address.Chat), s.at, s.data.Message) {
		return nil, dropEcho
	}
	author := s.by.stable()
	switch {
	case s.data.Reaction != nil:
		return a.reacted(e, s, author)
	case len(s.data.Delete) > 0 && string(s.data.Delete) != "null":
		return nil, dropUnsupported
	}
	return a.message(e, s, author, group)
}

// admits says whether the account answers in a group.
func (a *Adapter) admits(group string) string {
	var groups map[string]bool
	if a.s.Groups != nil {
		groups = groupSet(a.s.Groups())
	}
	switch {
	case !groups["*"] && !groups[group]:
		return dropGroup
	case len(a.s.chats) > 0 && !a.s.chats["*"] && !a.s.chats[group]:
		return dropChat
	}
	return ""
}

// reacted makes the event of an emoji on a message.
func (a *Adapter) reacted(e *platforms.Event, s said, author string) (*platforms.Event, string) {
	r := s.data.Reaction
	number, uuid := ids(r.Author, r.AuthorNumber, r.AuthorUUID)
	if r.Target == 0 || number == "" && uuid == "" {
		return nil, dropEmpty
	}
	own := a.isOwn(number, uuid)
	e.ID = platforms.EventID(fmt.Sprintf("r:%s:%d", author, s.at))
	e.Addressed = e.ChatType == platforms.DM || own
	e.Reaction = &platforms.Reaction{MessageID: a.messageID(r.Target, number, uuid), Emoji: r.Emoji, Removed: r.Remove, OnOwn: own ||
		a.echo.own(r.Target)}
	return e, ""
}

// message makes the event of a message or of its new version.
func (a *Adapter) message(e *platforms.Event, s said, author, group string) (*platforms.Event, string) {
	d := s.data
	text, named := spoken(d.Message, d.Mentions[:min(len(d.Mentions), mostMentions)], a.isOwn)
	m := &platforms.Message{ID: platforms.MessageID(fmt.Sprintf("%d:%s", s.at, author)), Attachments: a.filesOf(d)}
	m.Text = strings.TrimSpace(strings.Join(append([]string{text}, extras(d)...), "\n"))
	if q := d.Quote; q != nil && q.ID != 0 {
		m.ReplyTo = a.quoted(q)
	}
	if m.Text == "" && len(m.Attachments) == 0 {
		if !named {
			return nil, dropEmpty // a profile key, a timer, a group update
		}
		m.Text = "@" + a.s.Account // a bare mention still is a call
	}
	e.Addressed = e.ChatType == platforms.DM || named || m.ReplyTo != nil && m.ReplyTo.Own || a.s.patterns.In(m.Text)
	if group != "" && !e.Addressed && a.s.RequireMention && !a.s.free[group] && !a.s.free["*"] {
		return nil, dropUnmentioned
	}
	a.texts.keep(string(e.Address.Chat), string(m.ID), d.Message)
	if s.edits != 0 {
		e.ID = platforms.EventID(fmt.Sprintf("e:%s:%d", author, s.at))
		e.Edited = &platforms.Edited{MessageID: platforms.MessageID(fmt.Sprintf("%d:%s", s.edits, author)), Text: m.Text}
		return e, ""
	}
	e.ID = platforms.EventID(fmt.Sprintf("m:%s:%d", author, s.at))
	e.Message = m
	a.unread.note(string(e.Address.Chat), author, s.at)
	return e, ""
}

// quoted is the message that another one answers.
func (a *Adapter) quoted(q *quote) *platforms.Quote {
	number, uuid := ids(q.Author, q.AuthorNumber, q.AuthorUUID)
	text, _ := spoken(q.Text, q.Mentions[:min(len(q.Mentions), mostMentions)], func(string, string) bool { return false })
	out := &platforms.Quote{ID: a.messageID(q.ID, number, uuid), Text: text, Own: a.isOwn(number, uuid) || a.echo.own(q.ID)}
	who := person{number: number, uuid: uuid}
	if number != "" || uuid != "" {
		who = a.people.find(who.stable())
		out.AuthorID, out.AuthorName = platforms.UserID(who.id()), who.name
	}
	return out
}

// messageID names a message by its timestamp and its author.
func (a *Adapter) messageID(at int64, number, uuid string) platforms.MessageID {
	who := person{number: number, uuid: strings.ToLower(uuid)}
	if who.uuid == "" && number != "" {
		who = a.people.find(number)
	}
	if a.isOwn(number, uuid) {
		who = person{number: a.s.Account, uuid: a.self()}
	}
	return platforms.MessageID(strconv.FormatInt(at, 10) + ":" + who.stable())
}

// extras are parts of a message that become text.
func extras(d *dataMessage) []string {
	var out []string
	for _, c := range d.Contacts[:min(len(d.Contacts), 10)] {
		name := c.Name.Display
		if name == "" {
			name = strings.TrimSpace(c.Name.Given + " " + c.Name.Family)
		}
		for _, p := range c.Phones[:min(len(c.Phones), 5)] {
			name += " " + p.Value
		}
		out = append(out, "Contact: "+strings.TrimSpace(name))
	}
	if p := d.Poll; p != nil {
		out = append(out, "Poll: "+p.Question)
		for i, o := range p.Options[:min(len(p.Options), 20)] {
			out = append(out, fmt.Sprintf("%d. %s", i+1, o))
		}
	}
	return out
}

// filesOf are the attachments of a message; they are fetched in the turn.
func (a *Adapter) filesOf(d *dataMessage) []platforms.Attachment {
	if a.s.IgnoreAttachments {
		return nil
	}
	var out []platforms.Attachment
	for _, f := range d.Attachments[:min(len(d.Attachments), mostFiles)] {
		if f.ID == "" {
			continue
		}
		kind, name, contentType := a.describe(f)
		out = append(out, platforms.Attachment{Kind: kind, Name: name, MIME: contentType, Size: max(f.Size, 0), Ref: f.ID, Caption: f.Caption})
	}
	if s := d.Sticker; s != nil && s.Pack != "" {
		out = append(out, platforms.Attachment{Kind: platforms.Sticker, Name: "sticker.webp", MIME: "image/webp", Ref: fmt.Sprintf("%s%s:%d", stickerRef, s.Pack, s.ID)})
	}
	return out
}

// stickerRef begins the Ref of a sticker.
const stickerRef = "sticker:"

// describe says what an attachment is, by its type and else by its name. A voice note is audio without a name.
func (a *Adapter) describe(f attachment) (kind platforms.AttachmentKind, name, contentType string) {
	contentType, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(f.ContentType)), ";")
	if contentType == "" || contentType == "application/octet-stream" {
		if byName := mime.TypeByExtension(path.Ext(f.Filename)); byName != "" {
			contentType, _, _ = strings.Cut(byName, ";")
		}
	}
	if kind = platforms.KindOf(contentType); kind == platforms.Audio && f.Filename == "" {
		kind = platforms.Voice
	}
	if f.Filename != "" {
		return kind, platforms.SafeName(f.Filename), contentType
	}
	ext := path.Ext(f.ID)
	if kind == platforms.Voice && contentType == "audio/aac" && a.ffmpeg != "" {
		return kind, "voice.m4a", "audio/mp4" // Fetch brings it into this form
	}
	if ext == "" {
		if known, _ := mime.ExtensionsByType(contentType); len(known) > 0 {
			ext = known[0]
		}
	}
	return kind, platforms.SafeName(string(kind) + ext), contentType
}
