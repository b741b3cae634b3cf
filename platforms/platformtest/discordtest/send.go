package discordtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a message.
const (
	maxContent     = 2000
	maxFiles       = 10
	maxEmbeds      = 10
	maxEmbedText   = 6000
	maxNonce       = 25
	nonceRemembers = 5 * time.Minute
)

type allowed struct {
	Parse   *[]string `json:"parse"`
	Users   []ID      `json:"users"`
	Roles   []ID      `json:"roles"`
	Replied bool      `json:"replied_user"`
}

// may reports whether a kind of mention is parsed, or the one with id.
func (a *allowed) may(kind string, list []ID, id ID) bool {
	return a == nil || a.Parse != nil && slices.Contains(*a.Parse, kind) || slices.Contains(list, id)
}

type draftReference struct {
	Type    int   `json:"type"`
	Message ID    `json:"message_id"`
	Channel ID    `json:"channel_id"`
	Fail    *bool `json:"fail_if_not_exists"`
}

type draftFile struct {
	ID          json.RawMessage `json:"id"`
	Name        string          `json:"filename"`
	Description *string         `json:"description"`
}

// draft is the body of a message that is made or edited. Fields that are nil were not in it.
type draft struct {
	Content     json.RawMessage `json:"content"`
	Embeds      json.RawMessage `json:"embeds"`
	Components  json.RawMessage `json:"components"`
	Attachments json.RawMessage `json:"attachments"`
	Flags       *int            `json:"flags"`
	Allowed     *allowed        `json:"allowed_mentions"`
	Nonce       json.RawMessage `json:"nonce"`
	Enforce     bool            `json:"enforce_nonce"`
	Reference   *draftReference `json:"message_reference"`
	Poll        json.RawMessage `json:"poll"`
	Stickers    []ID            `json:"sticker_ids"`

	files []upload
}

func readDraft(c *call) (*draft, error) {
	var out draft
	if err := c.decode(&out); err != nil {
		return nil, err
	}
	out.files = c.files
	return &out, nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// text reads the content.
func (dr *draft) text(f *form) string {
	if isNull(dr.Content) {
		return ""
	}
	var s string
	if json.Unmarshal(dr.Content, &s) != nil {
		s = string(dr.Content) // numbers are taken as text
	}
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) > maxContent {
		f.add("content", "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", maxContent))
	}
	return s
}

// nonceText reads the nonce.
func (dr *draft) nonceText(f *form) string {
	if isNull(dr.Nonce) {
		return ""
	}
	s := string(dr.Nonce)
	if quoted, err := strconv.Unquote(s); err == nil {
		s = quoted
	}
	if utf8.RuneCountInString(s) > maxNonce {
		f.add("nonce", "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", maxNonce))
	}
	return s
}

// apply puts what the draft has into a message, or says what is wrong and leaves it alone.
func (d *Discord) apply(m *message, dr *draft) error {
	f := &form{}
	next := *m
	if dr.Content != nil {
		next.content = dr.text(f)
	}
	if dr.Embeds != nil {
		next.embeds = checkEmbeds(f, dr.Embeds)
	}
	if dr.Components != nil {
		next.components, next.buttons = checkComponents(f, dr.Components)
	}
	if dr.Flags != nil {
		const settable = flagNoEmbeds | flagSilent | flagVoice | flagComponents2
		next.flags = next.flags&^settable | *dr.Flags&settable
	}
	if a := dr.Allowed; a != nil && a.Parse != nil {
		for kind, list := range map[string][]ID{"users": a.Users, "roles": a.Roles} {
			if len(list) > 0 && slices.Contains(*a.Parse, kind) {
				f.add("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
					fmt.Sprintf(`parse:["%s"] and %s: [ids...] are mutually exclusive.`, kind, kind))
			}
		}
	}
	if err := f.err(); err != nil {
		return err
	}
	if err := d.applyFiles(&next, dr); err != nil {
		return err
	}
	if next.content == "" && next.embeds == nil && len(next.files) == 0 && next.components == nil && isNull(dr.Poll) &&
		len(dr.Stickers) == 0 && next.snapshot == nil {
		return errEmpty
	}
	*m = next
	d.applyMentions(m, dr.Allowed)
	return nil
}

// uploadLimit is the most bytes of a file in a guild.
func uploadLimit(g *guild) int {
	switch {
	case g != nil && g.tier == 2:
		return 50 << 20
	case g != nil && g.tier >= 3:
		return 100 << 20
	}
	return 10 << 20
}

// applyFiles keeps, drops and adds attachments.
func (d *Discord) applyFiles(m *message, dr *draft) error {
	var listed []draftFile
	if !isNull(dr.Attachments) && json.Unmarshal(dr.Attachments, &listed) != nil {
		f := &form{}
		f.add("attachments", "BASE_TYPE_BAD_TYPE", "Only iterables may be used in a ListType.")
		return f.err()
	}
	if dr.Attachments != nil {
		m.files = slices.DeleteFunc(slices.Clone(m.files), func(old *File) bool {
			return !slices.ContainsFunc(listed, func(l draftFile) bool { return strings.Trim(string(l.ID), `"`) == string(old.ID) })
		})
	}
	for _, up := range dr.files {
		if len(up.body) > uploadLimit(m.channel.guild) {
			return errTooLarge
		}
	}
	if len(m.files)+len(dr.files) > maxFiles {
		return refuse(400, 30015, fmt.Sprintf("Maximum number of attachments in a message reached (%d)", maxFiles))
	}
	m.files = slices.Clone(m.files)
	for _, up := range dr.files {
		file := File{Name: up.name, Type: up.kind, Body: up.body}
		number := strings.TrimSuffix(strings.TrimPrefix(up.field, "files["), "]")
		for _, l := range listed {
			if strings.Trim(string(l.ID), `"`) == number {
				if l.Name != "" {
					file.Name = l.Name
				}
				if l.Description != nil {
					file.Description = *l.Description
				}
			}
		}
		file.Name = fileName(file.Name)
		m.files = append(m.files, d.keepFile(m.channel, file, m.flags&flagEphemeral != 0))
	}
	return nil
}

// fileName is what the service makes of a name: no folders, no spaces.
func fileName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r == ' ' {
			return '_'
		}
		if strings.ContainsRune(`"'<>|*?:`, r) || r < ' ' {
			return -1
		}
		return r
	}, name)
	if name == "" {
		return "unknown"
	}
	return name
}

// applyMentions finds who is mentioned, as far as allowed.
func (d *Discord) applyMentions(m *message, a *allowed) {
	var users, roles []ID
	if a != nil {
		users, roles = a.Users, a.Roles
	}
	m.users, m.roles, m.everyone = nil, nil, false
	for _, id := range mentions(m.content, "") {
		if d.users[id] != nil && a.may("users", users, id) {
			m.users = append(m.users, id)
		}
	}
	g := m.channel.guild
	if g != nil {
		for _, id := range mentions(m.content, "&") {
			if g.role(id) != nil && a.may("roles", roles, id) {
				m.roles = append(m.roles, id)
			}
		}
		loud := strings.Contains(m.content, "@everyone") || strings.Contains(m.content, "@here")
		m.everyone = loud && a.may("everyone", nil, "") && d.permissions(m.author.ID, m.channel)&MentionEveryone != 0
	}
	m.pingReplied = m.ref != nil && (a == nil || a.Replied)
}

// sentNonce is a message that was made with a nonce.
type sentNonce struct {
	at      time.Time
	message *message
}

// send makes a message of the bot in a channel it may write to.
func (d *Discord) send(ch *channel, dr *draft) (*message, error) {
	f := &form{}
	nonce := dr.nonceText(f)
	if err := f.err(); err != nil {
		return nil, err
	}
	if nonce != "" && dr.Enforce {
		if old := d.earlier(nonce); old != nil {
			return old, nil
		}
	}
	m := &message{id: d.newID(), channel: ch, author: d.bot, nonce: dr.Nonce}
	if isNull(m.nonce) {
		m.nonce = nil
	}
	if err := d.refer(m, dr.Reference); err != nil {
		return nil, err
	}
	if err := d.apply(m, dr); err != nil {
		return nil, err
	}
	if err := d.wake(ch, d.bot); err != nil {
		return nil, err
	}
	d.keepMessage(m)
	if nonce != "" {
		if len(d.nonces) > 1000 {
			maps.DeleteFunc(d.nonces, func(_ string, s sentNonce) bool { return time.Since(s.at) > nonceRemembers })
		}
		d.nonces[nonce] = sentNonce{time.Now(), m}
	}
	d.act("send", ch.ID, m.id, d.bot.ID, m.content)
	d.tell("MESSAGE_CREATE", m, d.bot)
	return m, nil
}

// earlier is the bot's message with a nonce of the past minutes that still stands.
func (d *Discord) earlier(nonce string) *message {
	if s, ok := d.nonces[nonce]; ok && time.Since(s.at) < nonceRemembers && s.message.channel.messages[s.message.id] == s.message {
		return s.message
	}
	return nil
}

// refer makes a message an answer to another one, or its forward.
func (d *Discord) refer(m *message, r *draftReference) error {
	if r == nil || r.Message == "" {
		return nil
	}
	from := m.channel
	if r.Channel != "" && r.Channel != from.ID {
		if from = d.channels[r.Channel]; from == nil || !d.sees(d.bot.ID, from) {
			return errUnknownChannel
		}
	}
	f := &form{}
	if r.Type == 0 && from != m.channel {
		f.add("message_reference", "MESSAGE_REFERENCE_CHANNEL_MISMATCH", "Cannot reply to a message in a different channel")
		return f.err()
	}
	if d.permissions(d.bot.ID, from)&ReadMessageHistory == 0 {
		return errNoHistory
	}
	to := from.messages[r.Message]
	switch {
	case to == nil || to.seenBy != "":
		if r.Fail == nil || *r.Fail {
			f.add("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
			return f.err()
		}
		return nil // it becomes an ordinary message
	case !to.ordinary():
		f.add("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message")
		return f.err()
	}
	m.ref = &wireReference{Type: r.Type, Message: to.id, Channel: from.ID, Guild: from.Guild}
	if r.Type == 1 {
		m.snapshot, m.flags = to, m.flags|flagSnapshot
		return nil
	}
	m.typ = 19
	return nil
}

// ordinary reports whether somebody wrote it.
func (m *message) ordinary() bool { return m.typ == 0 || m.typ == 19 || m.typ == 20 || m.typ == 23 }

// wake opens an archived thread for somebody who writes, and makes them a member.
func (d *Discord) wake(ch *channel, who *user) error {
	if !ch.isThread() {
		return nil
	}
	if ch.Locked && d.permissions(who.ID, ch)&ManageThreads == 0 {
		if ch.Archived {
			return errArchived
		}
		return errLocked
	}
	if ch.Archived {
		d.setThread(ch, false, ch.Locked)
	}
	d.join(ch, who)
	return nil
}

// reach finds a channel that the bot sees and has permissions in.
func (d *Discord) reach(id ID, need Permissions) (*channel, error) {
	c := d.channels[id]
	switch {
	case c == nil:
		return nil, errUnknownChannel
	case !d.sees(d.bot.ID, c):
		return nil, errAccess
	case d.permissions(d.bot.ID, c)&need != need:
		return nil, errPermissions
	}
	return c, nil
}

// writable finds a channel that the bot may write a draft to.
func (d *Discord) writable(id ID, dr *draft) (*channel, error) {
	var need Permissions
	if !isNull(dr.Embeds) && string(dr.Embeds) != "[]" {
		need |= EmbedLinks
	}
	if len(dr.files) > 0 {
		need |= AttachFiles
	}
	if c := d.channels[id]; c != nil && c.guild != nil {
		if c.isThread() {
			need |= SendInThreads
		} else {
			need |= SendMessages
		}
	}
	c, err := d.reach(id, need)
	switch {
	case err != nil:
		return nil, err
	case c.Type == ForumChannel || c.Type == Category:
		return nil, errNotText
	case c.Type == DirectChannel && d.users[c.Members[0]].closedDMs:
		return nil, errNoDM
	}
	return c, nil
}

func (d *Discord) createMessage(c *call) (int, any, error) {
	dr, err := readDraft(c)
	if err != nil {
		return 0, nil, err
	}
	ch, err := d.writable(c.id("channel"), dr)
	if err != nil {
		return 0, nil, err
	}
	m, err := d.send(ch, dr)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, d.wireMessage(m, view{nonce: true}), nil
}
