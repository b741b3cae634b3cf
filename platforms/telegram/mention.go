package telegram

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"
)

// verdict says what becomes of a message.
type verdict struct {
	drop      string // a reason; empty to hand the message on
	addressed bool
	observed  bool
	text      string // with the bot's own mention taken out
}

// judge applies the rules of where the bot answers. Who may talk is not decided here.
func (a *Adapter) judge(m *models.Message, me profile) verdict {
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	marks := readMarks(text, entities, me)
	v := verdict{text: marks.text}
	if v.text == "" {
		v.text = strings.TrimSpace(text) // a bare mention still is a call
	}
	if m.Chat.Type == models.ChatTypePrivate {
		v.addressed = true
		return v
	}
	if a.ignoresThread(m) {
		v.drop = dropThread
		return v
	}
	home := a.allows(m.Chat.ID)
	if !home && !a.s.GuestMode {
		v.drop = dropChat
		return v
	}
	if a.s.BotsRequireMention && m.From != nil && m.From.IsBot && m.SenderChat == nil && !marks.named {
		v.drop = dropBot
		return v
	}
	replied := m.ReplyToMessage != nil && m.ReplyToMessage.ForumTopicCreated == nil && isOwn(m.ReplyToMessage, me)
	v.addressed = marks.named || replied || a.s.patterns.In(marks.text)
	reason := ""
	switch {
	case marks.otherCommand, a.s.exclusive && marks.otherBot && !marks.named:
		v.addressed, reason = false, dropOtherBot
	case v.addressed:
		return v
	case !home:
		reason = dropChat
	case a.s.RequireMention && !a.s.free[strconv.FormatInt(m.Chat.ID, 10)]:
		reason = dropUnmentioned
	default:
		v.addressed = marks.command // a bare command speaks to every bot that hears it
		return v
	}
	if home && a.s.ObserveUnmentioned {
		v.observed = true
		return v
	}
	v.drop = reason
	return v
}

func (a *Adapter) allows(chat int64) bool {
	return a.s.allowsAll || a.s.chats[strconv.FormatInt(chat, 10)]
}

func (a *Adapter) ignoresThread(m *models.Message) bool {
	if len(a.s.threads) == 0 {
		return false
	}
	thread := "1"
	if m.IsTopicMessage && m.MessageThreadID > generalTopic {
		thread = strconv.Itoa(m.MessageThreadID)
	} else if !m.Chat.IsForum {
		return false
	}
	return a.s.threads[thread] || a.s.threads[strconv.FormatInt(m.Chat.ID, 10)+"/"+thread]
}

// marks is what the entities of a text say.
type marks struct {
	text         string // the bot's own mentions taken out, hidden link targets put in
	named        bool   // the bot is mentioned, by name, by link or in /command@name
	otherBot     bool   // another bot is mentioned
	command      bool   // it begins with a /command without a name
	otherCommand bool   // it begins with a /command@name of another bot
}

// readMarks reads the entities of text. Offsets and lengths are UTF-16 units; those outside the text are
// ignored. me's name may be empty, which no mention matches.
func readMarks(text string, entities []models.MessageEntity, me profile) marks {
	var r marks
	if len(entities) == 0 {
		r.text = strings.TrimSpace(text)
		return r
	}
	units := utf16.Encode([]rune(text))
	var out []uint16
	done := 0 // units of the text that are in out or left out
	for _, e := range entities {
		if e.Offset < done || e.Length <= 0 || e.Offset > len(units) || e.Length > len(units)-e.Offset {
			r.note(e, slice(units, e.Offset, e.Length), me)
			continue
		}
		end := e.Offset + e.Length
		part := string(utf16.Decode(units[e.Offset:end]))
		switch r.note(e, part, me) {
		case markMention:
			out = append(out, units[done:e.Offset]...)
			done = skipAfterMention(units, end, len(out) == 0)
		case markCommand:
			name, _, _ := strings.Cut(part, "@")
			out = append(out, units[done:e.Offset]...)
			out = append(out, utf16.Encode([]rune(name))...)
			done = end
		case markLink:
			out = append(out, units[done:end]...)
			out = append(out, utf16.Encode([]rune(" ("+e.URL+")"))...)
			done = end
		}
	}
	out = append(out, units[done:]...)
	r.text = strings.TrimSpace(string(utf16.Decode(out)))
	return r
}

type markKind int

const (
	markNone markKind = iota
	markMention
	markCommand
	markLink
)

// note records what one entity says and returns what is to be done with its text.
func (r *marks) note(e models.MessageEntity, part string, me profile) markKind {
	switch e.Type {
	case models.MessageEntityTypeMention:
		name := strings.ToLower(strings.TrimPrefix(part, "@"))
		if name != "" && name == me.username {
			r.named = true
			return markMention
		}
		if strings.HasSuffix(name, "bot") {
			r.otherBot = true
		}
	case models.MessageEntityTypeTextMention:
		if e.User == nil {
			return markNone
		}
		if e.User.ID == me.id {
			r.named = true
			return markMention
		}
		r.otherBot = r.otherBot || e.User.IsBot
	case models.MessageEntityTypeBotCommand:
		_, name, at := strings.Cut(part, "@")
		switch {
		case at && me.username != "" && strings.EqualFold(name, me.username):
			r.named = true
			return markCommand
		case at && e.Offset == 0:
			r.otherCommand = true
		case e.Offset == 0:
			r.command = true
		}
	case models.MessageEntityTypeTextLink:
		if e.URL != "" && e.URL != part {
			return markLink
		}
	}
	return markNone
}

// skipAfterMention returns where the text goes on after a mention that ends at end: behind the spaces, and
// at the beginning of a text also behind the comma or colon that people put after a name.
func skipAfterMention(units []uint16, end int, first bool) int {
	for end < len(units) {
		switch c := units[end]; {
		case c == ' ' || c == '\t' || c == 0xA0:
		case first && (c == ',' || c == ':'):
		default:
			return end
		}
		end++
	}
	return end
}

// slice returns the text of a range, cut to what there is.
func slice(units []uint16, offset, length int) string {
	if offset < 0 || length <= 0 || offset >= len(units) {
		return ""
	}
	return string(utf16.Decode(units[offset:min(len(units), offset+min(length, len(units)))]))
}
