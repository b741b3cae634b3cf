package discord

import (
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// answerLimit bounds how long the answer to a message without files is waited for, so that there is time to
	// ask again with the same nonce.
	answerLimit = 12 * time.Second
	// silentFlag sends without a notification.
	silentFlag = discordgo.MessageFlagsSuppressNotifications
)

// Send delivers one message or one edit. Errors are *platforms.SendError. A send whose answer was lost is repeated
// once with the same nonce, which Discord answers with the first message if there is one. When a message needs
// several requests and a later one fails, the receipt's notes say what is missing.
func (a *Adapter) Send(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	if err := a.checkAddress(out.Address); err != nil {
		return platforms.Receipt{}, err
	}
	o := &outbound{a: a, out: out, Parts: wire.Parts{Platform: "Discord", Log: &a.s.Log, Chat: string(out.Address.Chat)}}
	if err := o.prepare(); err != nil {
		return platforms.Receipt{}, err
	}
	var err error
	switch {
	case out.Private != "":
		err = o.sendPrivate(ctx)
	case out.Edit != "":
		err = o.edit(ctx)
	default:
		err = o.send(ctx)
	}
	if err != nil {
		return platforms.Receipt{}, err
	}
	if out.Private == "" && out.Edit == "" {
		o.Receipt.Thread = a.OpenThread(ctx, out, o.Receipt.Message)
	}
	return o.Receipt, nil
}

// outbound is one Outgoing on its way.
type outbound struct {
	a    *Adapter
	out  platforms.Outgoing
	text string
	rows []discordgo.MessageComponent
	to   target
	wire.Parts
	parts int // how many messages are visible, for their nonces
}

func (a *Adapter) checkAddress(at platforms.Address) error {
	switch {
	case at.AccountOf() != a.s.account:
		return &platforms.SendError{Kind: platforms.BadRequest, Err: errors.New("address " + at.String() + " is not of account " + a.s.account.String())}
	case snowflake(string(at.Chat)) == 0:
		return &platforms.SendError{Kind: platforms.BadRequest, Err: errors.New("chat " + at.String() + " is no Discord channel: want its id, a whole number")}
	case at.Thread != "" && snowflake(string(at.Thread)) == 0:
		return &platforms.SendError{Kind: platforms.BadRequest, Err: errors.New("thread " + at.String() + " is no Discord thread: want its id, a whole number")}
	}
	return nil
}

// prepare checks what can be checked without asking Discord.
func (o *outbound) prepare() error {
	o.text = o.out.Text.AsBody()
	if utf8.RuneCountInString(o.text) > textLimit {
		return platforms.Failure(platforms.TooLong, "the text has more than 2000 characters")
	}
	var err error
	if o.rows, err = componentsOf(o.out.Buttons); err != nil {
		return err
	}
	if id := string(o.out.Edit); id != "" && snowflake(id) == 0 {
		return &platforms.SendError{Kind: platforms.BadRequest, Err: errors.New("message " + id + " is no Discord message: want its id, a whole number")}
	}
	if o.text == "" && len(o.out.Attachments) == 0 && o.out.Edit == "" {
		return platforms.Failure(platforms.BadRequest, "the message has neither text nor attachments")
	}
	return nil
}

// payload is the body of a new message or an edit.
type payload struct {
	Content         *string                           `json:"content,omitempty"`
	Nonce           string                            `json:"nonce,omitempty"`
	EnforceNonce    bool                              `json:"enforce_nonce,omitempty"`
	Components      *[]discordgo.MessageComponent     `json:"components,omitempty"`
	AllowedMentions *discordgo.MessageAllowedMentions `json:"allowed_mentions,omitempty"`
	Reference       *discordgo.MessageReference       `json:"message_reference,omitempty"`
	Flags           discordgo.MessageFlags            `json:"flags,omitempty"`
	Attachments     []payloadFile                     `json:"attachments,omitempty"`
}

type payloadFile struct {
	ID          int    `json:"id"`
	Filename    string `json:"filename"`
	Description string `json:"description,omitempty"`
}

// mentions returns whom a message may notify.
func (a *Adapter) mentions() *discordgo.MessageAllowedMentions {
	m := &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}, RepliedUser: a.s.mentionReply}
	if a.s.mentionUsers {
		m.Parse = append(m.Parse, discordgo.AllowedMentionTypeUsers)
	}
	if a.s.MentionRoles {
		m.Parse = append(m.Parse, discordgo.AllowedMentionTypeRoles)
	}
	if a.s.MentionEveryone {
		m.Parse = append(m.Parse, discordgo.AllowedMentionTypeEveryone)
	}
	return m
}

// message returns the payload of a part. Only the first has the text, the buttons and the quote.
func (o *outbound) message(text string) payload {
	p := payload{AllowedMentions: o.a.mentions()}
	if text != "" {
		p.Content = &text
	}
	if o.out.Silent {
		p.Flags |= silentFlag
	}
	if nonce := o.nonce(); nonce != "" {
		p.Nonce, p.EnforceNonce = nonce, true
	}
	if o.Some {
		return p
	}
	if len(o.rows) > 0 {
		p.Components = &o.rows
	}
	p.Reference = o.reference()
	return p
}

// nonce returns the nonce of the part that comes next.
func (o *outbound) nonce() string {
	if o.out.Nonce == "" || o.parts == 0 {
		return nonceOf(o.out.Nonce)
	}
	return nonceOf(o.out.Nonce + "#" + string(rune('0'+o.parts%10)))
}

// reference quotes the message to answer, where it is in the same channel.
func (o *outbound) reference() *discordgo.MessageReference {
	id := string(o.out.ReplyTo)
	switch {
	case o.to.onto != "":
		id = o.to.onto
	case id != "" && id == string(o.out.Address.Thread) && !o.a.inForum(o.out.Address):
		return nil // the thread belongs to that message, which is in the channel
	}
	if snowflake(id) == 0 {
		return nil // none, or one that never was Discord's
	}
	missing := false
	return &discordgo.MessageReference{MessageID: id, ChannelID: o.to.channel, FailIfNotExists: &missing}
}

// inForum reports whether a thread is a post of a forum, as far as is known.
func (a *Adapter) inForum(at platforms.Address) bool {
	p, ok := a.rooms.get(string(at.Chat))
	return ok && p.forum()
}

// askForum is inForum, and asks Discord where nothing is known.
func (a *Adapter) askForum(ctx context.Context, at platforms.Address) bool {
	p, _ := a.channelOf(ctx, string(at.Chat))
	return p.forum()
}

// send delivers a new message.
func (o *outbound) send(ctx context.Context) error {
	a := o.a
	if p, ok := a.rooms.get(string(o.out.Address.Chat)); ok && p.forum() && o.out.Address.Thread == "" {
		return o.post(ctx, p)
	}
	var err error
	if o.to, err = a.threads.where(ctx, o.out.Address); err != nil {
		return err
	}
	o.noteTarget()
	err = o.deliver(ctx)
	switch {
	case err == nil || o.Some:
	case codeOf(err) == discordgo.ErrCodeUnknownChannel && o.out.Address.Thread != "" && o.to.onto == "":
		if o.to, err = a.threads.revive(ctx, o.out.Address); err != nil {
			return err
		}
		o.noteTarget()
		err = o.deliver(ctx)
	case codeOf(err) == codeNonTextChannel && o.out.Address.Thread == "":
		p, lookErr := a.look(ctx, string(o.out.Address.Chat))
		if lookErr == nil && p.forum() {
			return o.post(ctx, p)
		}
	}
	if err == nil && o.out.Address.Thread != "" && o.to.onto == "" {
		a.threads.join(ctx, o.to.channel)
	}
	if err == nil && !o.out.Progress && !o.out.Interim {
		a.interactions.settle(o.out.Address)
	}
	return err
}

func (o *outbound) noteTarget() {
	if o.to.note != "" {
		o.Receipt.Notes = append(o.Receipt.Notes, o.to.note)
	}
}

// deliver sends the text and the files to the target.
func (o *outbound) deliver(ctx context.Context) error {
	path := "/channels/" + o.to.channel + "/messages"
	c := call{method: http.MethodPost, route: "/channels/{channel}/messages", major: o.to.channel, path: path, skip: o.out.Interim && o.out.Progress}
	if len(o.out.Attachments) == 0 {
		return o.one(ctx, c, o.message(o.text), nil)
	}
	return o.withFiles(ctx, o.to.channel, func(ctx context.Context, text string, files []wire.File) error {
		return o.one(ctx, c, o.message(text), files)
	})
}

// one sends one message, and asks once more with the same nonce when its outcome is not known.
func (o *outbound) one(ctx context.Context, c call, p payload, files []wire.File) error {
	var m message
	o.a.sent.begun(p.Nonce, o.to.channel)
	err := o.try(ctx, c, p, files, &m, true)
	if unknown(err) && p.Nonce != "" && ctx.Err() == nil {
		if again := o.try(ctx, c, p, files, &m, false); again == nil {
			err = nil
		} else if e := platforms.AsSendError(again); e.Kind == platforms.Transient || e.Kind == platforms.RateLimited {
			// What became of the first one stays open.
			err = &platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown, Err: platforms.AsSendError(err).Err}
		}
	}
	if err != nil {
		return err
	}
	o.delivered(m.ID)
	return nil
}

// try makes one attempt. The first of two leaves time for the second.
func (o *outbound) try(ctx context.Context, c call, p payload, files []wire.File, m *message, first bool) error {
	if len(files) > 0 {
		files := withNames(&p, files)
		form, err := newForm(p, files)
		if err != nil {
			return notSent(err)
		}
		defer form.close()
		c.form = form
	} else {
		c.body = p
	}
	if deadline, ok := ctx.Deadline(); ok && first && len(files) == 0 {
		left := time.Until(deadline)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(answerLimit, left*6/10))
		defer cancel()
	}
	return o.a.do(ctx, c, m)
}

// delivered notes a message that is visible now.
func (o *outbound) delivered(id string) {
	o.parts++
	o.a.own.Put(id, o.out.Address)
	o.Sent(platforms.MessageID(id))
}

// edit replaces a message's text and buttons.
func (o *outbound) edit(ctx context.Context) error {
	o.Receipt.Message = o.out.Edit
	for _, f := range o.out.Attachments {
		o.Note(f, "an edit can't add files")
	}
	rows := o.rows
	if rows == nil {
		rows = []discordgo.MessageComponent{}
	}
	p := payload{Components: &rows, AllowedMentions: o.a.mentions()}
	if o.text != "" {
		p.Content = &o.text
	}
	return o.a.onMessages(ctx, o.out.Address, o.out.Edit, func(channel string) error {
		return o.a.do(ctx, call{
			method: http.MethodPatch, route: "/channels/{channel}/messages/{message}", major: channel,
			path: "/channels/" + channel + "/messages/" + string(o.out.Edit), body: p, skip: o.out.Interim,
		}, nil)
	})
}

// onMessages calls request for the channel that a message of an address is in: the thread, or, for the message
// that the thread hangs on and for answers that got no thread, the channel.
func (a *Adapter) onMessages(ctx context.Context, at platforms.Address, id platforms.MessageID, request func(channel string) error) error {
	first, second := a.threads.there(ctx, at), string(at.Chat)
	if string(id) == string(at.Thread) && !a.askForum(ctx, at) {
		first, second = string(at.Chat), string(at.Thread)
	}
	if at.Thread == "" {
		if p, ok := a.rooms.get(string(at.Chat)); ok && p.forum() {
			first = string(id) // the post that the message opened
		}
		second = ""
	}
	err := request(first)
	if code := codeOf(err); second != "" && second != first && (code == discordgo.ErrCodeUnknownMessage ||
		code == discordgo.ErrCodeUnknownChannel) {
		if other := request(second); other == nil || codeOf(other) != discordgo.ErrCodeUnknownChannel {
			return other
		}
	}
	if codeOf(err) == discordgo.ErrCodeUnknownChannel && at.Thread != "" {
		return &platforms.SendError{Kind: platforms.ThreadGone, Err: platforms.AsSendError(err).Err}
	}
	return err
}
