package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
)

// voiceFlag marks a voice message.
const voiceFlag = discordgo.MessageFlagsIsVoiceMessage

// forward is the type of a message_reference whose message is handed on.
const forward = 1

// convert makes the event of a message, or of its new version.
func (a *Adapter) convert(ctx context.Context, m *message, p place, v verdict, edit bool) (platforms.Event, error) {
	e := a.envelope(platforms.EventID("m"+m.ID), p)
	if v.opens {
		e.Address.Thread = platforms.ThreadID(m.ID)
		e.ChatType, e.ParentChat = platforms.Thread, platforms.ChatID(p.channel)
	}
	e.At = when(m.ID)
	e.Addressed = v.addressed
	e.Sender = userOf(m.Author, m.Member)
	e.Sender.IsBot = e.Sender.IsBot || m.WebhookID != ""
	if p.dm() && a.s.LookupRoles {
		roles, err := a.rolesOf(ctx, m.Author.ID)
		if err != nil {
			return e, &lookupError{err}
		}
		e.Sender.Roles = roles
	}
	if p.dm() && e.ChatName == "" {
		e.ChatName = e.Sender.Name
	}
	if edit {
		e.ID = platforms.EventID("e" + m.ID + "." + m.Edited)
		e.At = editedAt(m)
		e.Edited = &platforms.Edited{MessageID: platforms.MessageID(m.ID), Text: v.text}
		return e, nil
	}
	e.Message = &platforms.Message{
		ID: platforms.MessageID(m.ID), Text: v.text, Attachments: attachmentsOf(m), ReplyTo: a.quoteOf(m),
		Earlier: v.earlier && a.s.HistoryLimit > 0,
	}
	if thing := describe(m); thing != "" {
		e.Message.Text = strings.TrimSpace(e.Message.Text + "\n" + thing)
	}
	if m.Reference != nil && m.Reference.Type == forward {
		e.Message.Text = strings.TrimSpace(e.Message.Text + "\n" + a.forwarded(m))
	}
	return e, nil
}

func editedAt(m *message) time.Time {
	t, err := time.Parse(time.RFC3339, m.Edited)
	if err != nil {
		return when(m.ID)
	}
	return platforms.Instant(t)
}

// forwarded returns the text of messages that were handed on.
func (a *Adapter) forwarded(m *message) string {
	var parts []string
	for i := range m.Snapshots {
		if text := a.textOf(&m.Snapshots[i].Message, a.me()); text != "" {
			parts = append(parts, "[forwarded]\n"+text)
		}
	}
	return strings.Join(parts, "\n")
}

// quoteOf returns what m answers.
func (a *Adapter) quoteOf(m *message) *platforms.Quote {
	if m.Type != discordgo.MessageTypeReply || m.Reference == nil || m.Reference.MessageID == "" {
		return nil
	}
	q := &platforms.Quote{ID: platforms.MessageID(m.Reference.MessageID)}
	r := m.Referenced
	if r == nil {
		return q // it was deleted
	}
	me := a.me()
	q.Text = a.textOf(r, me)
	if q.Text == "" {
		q.Text = describe(r)
	}
	if q.Text == "" && len(r.Files) > 0 {
		q.Text = "[" + platforms.SafeName(r.Files[0].Filename) + "]"
	}
	if r.Author != nil {
		q.AuthorID, q.AuthorName = platforms.UserID(r.Author.ID), nameOf(r.Author, r.Member)
		q.Own = r.Author.ID == me.id
	}
	return q
}

// fileRef is how a file is found again: its link is good for a day, the message longer.
type fileRef struct {
	Channel string `json:"c"`
	Message string `json:"m"`
	File    string `json:"f"`
	URL     string `json:"u"`
}

// attachmentsOf lists the files of m, those of forwarded messages too.
func attachmentsOf(m *message) []platforms.Attachment {
	files := m.Files
	for i := range m.Snapshots {
		files = append(files, m.Snapshots[i].Message.Files...)
	}
	var out []platforms.Attachment
	for _, f := range files {
		if f == nil || f.URL == "" {
			continue
		}
		ref, _ := json.Marshal(fileRef{Channel: m.ChannelID, Message: m.ID, File: f.ID, URL: f.URL})
		mime, _, _ := strings.Cut(f.ContentType, ";")
		out = append(out, platforms.Attachment{
			Kind: kindOf(mime, m.Flags&voiceFlag != 0), Name: platforms.SafeName(f.Filename), MIME: mime, Size: int64(f.Size), Ref: string(ref),
		})
	}
	return out
}

func kindOf(mime string, voice bool) platforms.AttachmentKind {
	if voice {
		return platforms.Voice
	}
	return platforms.KindOf(mime)
}

// describe writes in words what is neither text nor a file, for the model to read.
func describe(m *message) string {
	var parts []string
	for _, s := range m.Stickers {
		parts = append(parts, "[sticker "+s.Name+"]")
	}
	if m.Poll != nil {
		options := make([]string, len(m.Poll.Answers))
		for i, o := range m.Poll.Answers {
			options[i] = o.Media.Text
		}
		parts = append(parts, fmt.Sprintf("[poll: %s (%s)]", m.Poll.Question.Text, strings.Join(options, " / ")))
	}
	return strings.Join(parts, "\n")
}

const (
	// rolesFor is how long a person's roles are trusted in direct chats.
	rolesFor = 5 * time.Minute
	// rolesKept is how many people's roles are remembered, and rolesGuilds in how many servers they are looked up.
	rolesKept, rolesGuilds = 1000, 20
)

type knownRoles struct {
	at    time.Time
	roles []string
}

// rolesOf returns a person's roles in the servers shared with the bot.
func (a *Adapter) rolesOf(ctx context.Context, user string) ([]string, error) {
	a.rolesMu.Lock()
	k, ok := a.roles[user]
	a.rolesMu.Unlock()
	if ok && time.Since(k.at) < rolesFor {
		return k.roles, nil
	}
	ids, known := a.rooms.guildIDs()
	if !known {
		list, err := a.guilds(ctx)
		if err != nil {
			return nil, err
		}
		for _, g := range list {
			ids = append(ids, g.ID)
		}
	}
	var roles []string
	for _, id := range ids[:min(len(ids), rolesGuilds)] {
		var m member
		err := a.do(ctx, call{method: http.MethodGet, route: "/guilds/{guild}/members/{user}", major: id, path: "/guilds/" + id + "/members/" + user}, &m)
		if status := statusOf(err); err != nil && (status == 0 || status >= 500 || status == http.StatusTooManyRequests) {
			return nil, err
		}
		roles = append(roles, m.Roles...)
	}
	a.rolesMu.Lock()
	defer a.rolesMu.Unlock()
	if len(a.roles) >= rolesKept {
		clear(a.roles)
	}
	a.roles[user] = knownRoles{time.Now(), roles}
	return roles, nil
}
