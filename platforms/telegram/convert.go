package telegram

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"herald/platforms"
)

// Reasons for which an update makes no event; Metrics.Dropped gets them.
const (
	dropUnmentioned = "unmentioned"
	dropOtherBot    = "other_bot"
	dropBot         = "bot"
	dropChat        = "chat"
	dropThread      = "thread"
	dropService     = "service"
	dropEmpty       = "empty"
	dropUnsupported = "unsupported"
)

// convert turns one update into events, or says why there are none. It makes no request. v is the verdict
// on the update's message.
func (a *Adapter) convert(u *models.Update, v verdict) ([]platforms.Event, string) {
	id := platforms.EventID(strconv.FormatInt(u.ID, 10))
	switch m := messageOf(u); {
	case m != nil:
		return a.convertMessage(id, m, v)
	case u.EditedMessage != nil:
		return a.convertEdit(id, u.EditedMessage)
	case u.CallbackQuery != nil:
		return a.convertClick(id, u.CallbackQuery)
	case u.MessageReaction != nil:
		return a.convertReaction(id, u.MessageReaction)
	case u.MyChatMember != nil:
		a.s.Log.Info().Int64("chat", u.MyChatMember.Chat.ID).Int64("by", u.MyChatMember.From.ID).
			Str("was", string(u.MyChatMember.OldChatMember.Type)).Str("is", string(u.MyChatMember.NewChatMember.Type)).
			Msg("the bot's membership changed")
		return nil, dropService
	}
	return nil, dropUnsupported
}

// envelope fills in what every event about a message has.
func (a *Adapter) envelope(id platforms.EventID, m *models.Message) platforms.Event {
	e := platforms.Event{
		ID: id, Address: a.addressOf(m), ChatType: chatType(m.Chat), ChatName: chatName(m.Chat),
		Sender: senderOf(m), At: when(m.Date),
	}
	if m.ReplyToMessage != nil && m.ReplyToMessage.ForumTopicCreated != nil {
		e.Topic = m.ReplyToMessage.ForumTopicCreated.Name
	}
	return e
}

// messageOf returns the new message of an update, or nil.
func messageOf(u *models.Update) *models.Message {
	if u.Message != nil {
		return u.Message
	}
	return u.ChannelPost
}

func (a *Adapter) convertMessage(id platforms.EventID, m *models.Message, verdict verdict) ([]platforms.Event, string) {
	me := a.me.profile()
	if m.From != nil && m.From.ID == me.id && m.SenderChat == nil {
		return nil, dropBot // our own words come back in channels
	}
	if m.MigrateToChatID != 0 {
		a.follow(m.Chat.ID, m.MigrateToChatID)
	}
	if verdict.drop != "" {
		return nil, verdict.drop
	}
	e := a.envelope(id, m)
	e.Addressed, e.Observed = verdict.addressed, verdict.observed
	e.Message = &platforms.Message{
		ID: platforms.MessageID(strconv.Itoa(m.ID)), Text: verdict.text,
		Attachments: attachmentsOf(m), ReplyTo: a.quoteOf(m, me),
	}
	if thing := describe(m); thing != "" {
		e.Message.Text = strings.TrimSpace(e.Message.Text + "\n" + thing)
	}
	if e.Message.Text == "" && len(e.Message.Attachments) == 0 {
		return nil, dropService
	}
	if from := forwardedFrom(m.ForwardOrigin); from != "" {
		e.Message.Text = strings.TrimSpace("[forwarded from " + from + "]\n" + e.Message.Text)
	}
	return []platforms.Event{e}, ""
}

func (a *Adapter) convertEdit(id platforms.EventID, m *models.Message) ([]platforms.Event, string) {
	me := a.me.profile()
	if m.From != nil && m.From.ID == me.id && m.SenderChat == nil {
		return nil, dropBot
	}
	verdict := a.judge(m, me)
	if verdict.drop != "" {
		return nil, verdict.drop
	}
	if verdict.text == "" {
		return nil, dropEmpty // a live location moves, a picture is replaced
	}
	e := a.envelope(id, m)
	e.At = when(max(m.EditDate, m.Date))
	e.Addressed, e.Observed = verdict.addressed, verdict.observed
	e.Edited = &platforms.Edited{MessageID: platforms.MessageID(strconv.Itoa(m.ID)), Text: verdict.text}
	return []platforms.Event{e}, ""
}

func (a *Adapter) convertClick(id platforms.EventID, q *models.CallbackQuery) ([]platforms.Event, string) {
	e := platforms.Event{ID: id, Sender: userOf(q.From), Addressed: true}
	click := platforms.Click{Data: q.Data, Reply: q.ID}
	switch {
	case q.Data == "":
		return nil, dropUnsupported // a game
	case q.Message.Message != nil:
		m := q.Message.Message
		e.Address, e.ChatType, e.ChatName = a.addressOf(m), chatType(m.Chat), chatName(m.Chat)
		click.MessageID = platforms.MessageID(strconv.Itoa(m.ID))
	case q.Message.InaccessibleMessage != nil && q.Message.InaccessibleMessage.Chat.ID != 0:
		m := q.Message.InaccessibleMessage
		thread, _ := a.own.Get(ownMessage{m.Chat.ID, m.MessageID})
		e.Address, e.ChatType, e.ChatName = a.addressOfThread(m.Chat.ID, thread), chatType(m.Chat), chatName(m.Chat)
		click.MessageID = platforms.MessageID(strconv.Itoa(m.MessageID))
	default:
		return nil, dropUnsupported // an inline message, which we never make
	}
	e.Click = &click
	return []platforms.Event{e}, ""
}

// convertReaction makes one event for each emoji that came or went. The first carries the update's id, the
// others the id with a running number behind it.
func (a *Adapter) convertReaction(id platforms.EventID, r *models.MessageReactionUpdated) ([]platforms.Event, string) {
	thread, own := a.own.Get(ownMessage{r.Chat.ID, r.MessageID})
	if r.Chat.Type != models.ChatTypePrivate && !a.allows(r.Chat.ID) && !own {
		return nil, dropChat
	}
	base := platforms.Event{
		Address: a.addressOfThread(r.Chat.ID, thread), ChatType: chatType(r.Chat), ChatName: chatName(r.Chat), At: when(r.Date),
	}
	if r.User != nil {
		base.Sender = userOf(*r.User)
		if r.User.ID == a.me.profile().id {
			return nil, dropBot
		}
	} else if r.ActorChat != nil {
		base.Sender = platforms.User{Name: chatName(*r.ActorChat), Username: r.ActorChat.Username}
	}
	base.Addressed = own
	before, after := emojis(r.OldReaction), emojis(r.NewReaction)
	var events []platforms.Event
	add := func(emoji string, removed bool) {
		e := base
		e.ID = id
		if len(events) > 0 {
			e.ID += platforms.EventID("." + strconv.Itoa(len(events)))
		}
		e.Reaction = &platforms.Reaction{MessageID: platforms.MessageID(strconv.Itoa(r.MessageID)), Emoji: emoji, Removed: removed, OnOwn: own}
		events = append(events, e)
	}
	for _, emoji := range before {
		if !slices.Contains(after, emoji) {
			add(emoji, true)
		}
	}
	for _, emoji := range after {
		if !slices.Contains(before, emoji) {
			add(emoji, false)
		}
	}
	if len(events) == 0 {
		return nil, dropEmpty
	}
	return events, ""
}

func emojis(reactions []models.ReactionType) []string {
	var out []string
	for _, r := range reactions {
		switch {
		case r.ReactionTypeEmoji != nil:
			out = append(out, r.ReactionTypeEmoji.Emoji)
		case r.ReactionTypeCustomEmoji != nil:
			out = append(out, "custom:"+r.ReactionTypeCustomEmoji.CustomEmojiID)
		case r.ReactionTypePaid != nil:
			out = append(out, "⭐")
		}
	}
	return out
}

// quoteOf returns what m answers. The root of a topic, which Telegram names as the answered message of
// everything in the topic, is no quote.
func (a *Adapter) quoteOf(m *models.Message, me profile) *platforms.Quote {
	r := m.ReplyToMessage
	if r == nil || r.ForumTopicCreated != nil || (m.IsTopicMessage && r.ID == m.MessageThreadID) {
		if m.Quote != nil && m.ExternalReply != nil { // a message of another chat
			return &platforms.Quote{Text: m.Quote.Text}
		}
		return nil
	}
	author := senderOf(r)
	q := &platforms.Quote{
		ID: platforms.MessageID(strconv.Itoa(r.ID)), Text: r.Text, AuthorID: author.ID, AuthorName: author.Name,
		Own: isOwn(r, me),
	}
	if q.Text == "" {
		q.Text = r.Caption
	}
	if q.Text == "" {
		q.Text = describe(r)
	}
	if m.Quote != nil && m.Quote.Text != "" {
		q.Text = m.Quote.Text
	}
	return q
}

func isOwn(m *models.Message, me profile) bool {
	return m.From != nil && m.From.ID == me.id && m.SenderChat == nil
}

func forwardedFrom(o *models.MessageOrigin) string {
	switch {
	case o == nil:
		return ""
	case o.MessageOriginUser != nil:
		return userOf(o.MessageOriginUser.SenderUser).Name
	case o.MessageOriginHiddenUser != nil:
		return o.MessageOriginHiddenUser.SenderUserName
	case o.MessageOriginChat != nil:
		return chatName(o.MessageOriginChat.SenderChat)
	case o.MessageOriginChannel != nil:
		return chatName(o.MessageOriginChannel.Chat)
	}
	return "an unknown sender"
}

// attachmentsOf lists the files of m. Of a photo's sizes it takes the largest.
func attachmentsOf(m *models.Message) []platforms.Attachment {
	var one platforms.Attachment
	switch {
	case len(m.Photo) > 0:
		largest := m.Photo[0]
		for _, p := range m.Photo[1:] {
			if p.Width*p.Height >= largest.Width*largest.Height {
				largest = p
			}
		}
		one = platforms.Attachment{Kind: platforms.Image, MIME: "image/jpeg", Size: int64(largest.FileSize), Ref: largest.FileID, Name: "photo.jpg"}
	case m.Animation != nil: // before Document: Telegram fills in both
		one = platforms.Attachment{Kind: platforms.Video, Name: m.Animation.FileName, MIME: m.Animation.MimeType, Size: m.Animation.FileSize,
			Ref: m.Animation.FileID}
	case m.Voice != nil:
		one = platforms.Attachment{Kind: platforms.Voice, Name: "voice.ogg", MIME: m.Voice.MimeType, Size: m.Voice.FileSize, Ref: m.Voice.FileID}
	case m.Audio != nil:
		one = platforms.Attachment{Kind: platforms.Audio, Name: m.Audio.FileName, MIME: m.Audio.MimeType, Size: m.Audio.FileSize,
			Ref: m.Audio.FileID}
		if one.Name == "" {
			one.Name = m.Audio.Title
		}
	case m.Video != nil:
		one = platforms.Attachment{Kind: platforms.Video, Name: m.Video.FileName, MIME: m.Video.MimeType, Size: m.Video.FileSize,
			Ref: m.Video.FileID}
	case m.VideoNote != nil:
		one = platforms.Attachment{Kind: platforms.Video, Name: "video_note.mp4", MIME: "video/mp4", Size: int64(m.VideoNote.FileSize), Ref: m.VideoNote.FileID}
	case m.Sticker != nil:
		one = platforms.Attachment{Kind: platforms.Sticker, Name: "sticker.webp", MIME: "image/webp", Size: int64(m.Sticker.FileSize),
			Ref: m.Sticker.FileID, Caption: m.Sticker.Emoji}
		if m.Sticker.IsAnimated {
			one.Name, one.MIME = "sticker.tgs", "application/gzip"
		} else if m.Sticker.IsVideo {
			one.Name, one.MIME = "sticker.webm", "video/webm"
		}
	case m.Document != nil:
		one = platforms.Attachment{Kind: platforms.Document, Name: m.Document.FileName, MIME: m.Document.MimeType, Size: m.Document.FileSize,
			Ref: m.Document.FileID}
	default:
		return nil
	}
	if one.Ref == "" {
		return nil
	}
	one.Name = platforms.SafeName(one.Name)
	return []platforms.Attachment{one}
}

// describe writes in words what is neither text nor a file, for the model to read.
func describe(m *models.Message) string {
	switch {
	case m.Venue != nil:
		return fmt.Sprintf("[venue: %s, %s, %g %g]", m.Venue.Title, m.Venue.Address, m.Venue.Location.Latitude, m.Venue.Location.Longitude)
	case m.Location != nil:
		return fmt.Sprintf("[location: %g %g]", m.Location.Latitude, m.Location.Longitude)
	case m.Contact != nil:
		return fmt.Sprintf("[contact: %s %s]", strings.TrimSpace(m.Contact.FirstName+" "+m.Contact.LastName), m.Contact.PhoneNumber)
	case m.Dice != nil:
		return fmt.Sprintf("[dice %s: %d]", m.Dice.Emoji, m.Dice.Value)
	case m.Poll != nil:
		options := make([]string, len(m.Poll.Options))
		for i, o := range m.Poll.Options {
			options[i] = o.Text
		}
		return fmt.Sprintf("[poll: %s (%s)]", m.Poll.Question, strings.Join(options, " / "))
	case m.Sticker != nil && m.Sticker.Emoji != "":
		return "[sticker " + m.Sticker.Emoji + "]"
	}
	return ""
}
