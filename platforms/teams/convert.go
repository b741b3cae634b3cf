package teams

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"herald/platforms"
)

// Why an activity makes no event.
const (
	dropUnmentioned = "unmentioned"
	dropOwn         = "own"
	dropBot         = "bot"
	dropEmpty       = "empty"
	dropService     = "service" // nothing that a person said
)

// event returns what an activity means, or why it means nothing. body makes an id where the activity has none.
func (a *Adapter) event(ctx context.Context, act *activity, body []byte) (e platforms.Event, drop string, err error) {
	if a.isBot(act.From.ID) {
		return e, dropOwn, nil
	}
	e = a.frame(act, body)
	switch act.Type {
	case "message":
		drop, err = a.message(ctx, act, &e)
	case "messageUpdate":
		drop, err = a.edited(ctx, act, &e)
	case "messageReaction":
		drop, err = a.reaction(ctx, act, &e)
	default:
		drop = dropService
	}
	return e, drop, err
}

// frame fills in where, who and when.
func (a *Adapter) frame(act *activity, body []byte) platforms.Event {
	chat, thread := act.place()
	d := act.data()
	e := platforms.Event{
		ID:       eventID(act, chat, body),
		Address:  platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: platforms.ChatID(chat)},
		Scope:    platforms.ScopeID(act.tenant()),
		ChatName: act.Conversation.Name,
		Sender:   userOf(act.From),
		At:       act.at(),
	}
	e.Sender.Language = act.Locale
	switch act.kind() {
	case personal:
		e.ChatType, e.Addressed = platforms.DM, true
	case channel:
		e.ChatType = platforms.Channel
		if thread == "" && act.Type == "message" { // a message that begins a thread
			thread = act.ID
		}
		e.Address.Thread = platforms.ThreadID(thread)
		if d.Channel.Name != "" {
			e.ChatName = d.Channel.Name
		}
	default:
		e.ChatType = platforms.Group
	}
	return e
}

// eventID is the same on each redelivery. Message ids are unique within their chat; an edit carries the id of its message.
func eventID(act *activity, chat string, body []byte) platforms.EventID {
	id := act.ID
	if id == "" {
		sum := sha256.Sum256(body)
		id = hex.EncodeToString(sum[:16])
	}
	name := act.Type + "/" + chat + "/" + id
	if act.Type == "messageUpdate" {
		name += "/" + act.Timestamp
	}
	return platforms.EventID(name)
}

// userOf returns the person behind a channel account: the directory's id where Teams tells it.
func userOf(p party) platforms.User {
	id := strings.ToLower(p.AAD)
	if id == "" {
		id = p.ID
	}
	return platforms.User{ID: platforms.UserID(id), Name: p.Name, IsBot: isBotParty(p)}
}

// message reads what a person wrote. A press of an old kind of button comes as a message too.
func (a *Adapter) message(ctx context.Context, act *activity, e *platforms.Event) (drop string, err error) {
	if data, ok := buttonData(act.Value); ok {
		e.Addressed = true
		e.Click = &platforms.Click{MessageID: platforms.MessageID(act.ReplyToID), Data: data}
		return "", nil
	}
	v, err := a.judge(ctx, act, string(e.Address.Thread))
	if err != nil || v.drop != "" {
		return v.drop, err
	}
	m := &platforms.Message{ID: platforms.MessageID(act.ID), Text: v.text, ReplyTo: v.quote}
	var lost int
	m.Attachments, lost = a.attachmentsOf(act)
	if a.s.Graph {
		a.nameReferenced(ctx, m.Attachments)
	}
	if lost > 0 { // said aloud, because the person believes that they were sent
		m.Text = strings.TrimSpace(m.Text + "\n\n" + lostNote(lost))
	}
	if m.Text == "" && len(m.Attachments) == 0 {
		if !v.addressed {
			return dropEmpty, nil
		}
		m.Text = strings.TrimSpace(stripTags(act.Text)) // a bare mention still is a call
		if m.Text == "" {
			return dropEmpty, nil
		}
	}
	if v.addressed {
		if m.Earlier, err = a.builds(ctx, act, string(e.Address.Thread)); err != nil {
			return "", err
		}
	}
	e.Addressed, e.Message = v.addressed, m
	return "", nil
}

func lostNote(n int) string {
	if n == 1 {
		return "[a file came with this message; Teams hands out files of groups and channels only through Microsoft Graph, which is not set up]"
	}
	return "[" + strconv.Itoa(n) + " files came with this message; Teams hands out files of groups and channels only through Microsoft Graph, which is not set up]"
}

// edited reads a new version of a message. Undoing a deletion is not an edit.
func (a *Adapter) edited(ctx context.Context, act *activity, e *platforms.Event) (drop string, err error) {
	if event := act.data().EventType; event != "" && event != "editMessage" {
		return dropService, nil
	}
	v, err := a.judge(ctx, act, string(e.Address.Thread))
	if err != nil || v.drop != "" {
		return v.drop, err
	}
	if v.text == "" {
		return dropEmpty, nil
	}
	e.Addressed = v.addressed
	e.Edited = &platforms.Edited{MessageID: platforms.MessageID(act.ID), Text: v.text}
	return "", nil
}

// reaction reads an emoji. Teams reports one at a time; of several the first counts.
func (a *Adapter) reaction(ctx context.Context, act *activity, e *platforms.Event) (drop string, err error) {
	list, removed := act.Added, false
	if len(list) == 0 {
		list, removed = act.Removed, true
	}
	if len(list) == 0 || act.ReplyToID == "" {
		return dropEmpty, nil
	}
	own, err := a.isOwn(ctx, act, act.ReplyToID)
	if err != nil {
		return "", err
	}
	e.Reaction = &platforms.Reaction{MessageID: platforms.MessageID(act.ReplyToID), Emoji: emojiOf(list[0].Type), Removed: removed, OnOwn: own}
	return "", nil
}

// emoji are the reactions that Teams has names for.
var emoji = map[string]string{"like": "👍", "heart": "❤️", "laugh": "😆", "surprised": "😮", "sad": "😢", "angry": "😠"}

// emojiOf returns the emoji of a reaction: by name, or by the code points that newer reactions begin with
// ("1f440_eyes"). Another name is returned as it is.
func emojiOf(name string) string {
	if e, ok := emoji[name]; ok {
		return e
	}
	codes, _, found := strings.Cut(name, "_")
	if !found {
		return cut(name, 64)
	}
	var out strings.Builder
	for code := range strings.SplitSeq(codes, "-") {
		n, err := strconv.ParseUint(code, 16, 32)
		if err != nil || n < 0x20 || n > 0x10FFFF || n >= 0xD800 && n < 0xE000 {
			return cut(name, 64)
		}
		out.WriteRune(rune(n))
	}
	return cut(out.String(), 64)
}

// jsonString returns a JSON string's value, empty for anything else.
func jsonString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
