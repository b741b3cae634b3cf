package slack

import (
	"context"
	"strings"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/format"
	"herald/platforms/wire"
)

// Send delivers one message or one edit. Errors are *platforms.SendError.
//
// The nonce goes into the message's metadata, where Find looks for it. Files follow the text as messages of their
// own; when one of them fails after the text is visible, the receipt's notes say so. An interim message in a thread
// is a native stream where Slack has them.
func (a *Adapter) Send(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	o := &outbound{a: a, out: out, thread: string(out.Address.Thread), Parts: wire.Parts{Platform: "Slack", Log: &a.s.Log,
		Chat: string(out.Address.Chat)}}
	var err error
	if o.channel, err = a.channelOf(ctx, out.Address); err != nil {
		return platforms.Receipt{}, err
	}
	if err := o.check(); err != nil {
		return platforms.Receipt{}, err
	}
	switch {
	case out.Private != "":
		err = o.private(ctx)
	case out.Edit != "":
		err = o.edit(ctx)
	default:
		err = o.fresh(ctx)
	}
	if err != nil {
		return platforms.Receipt{}, err
	}
	if out.Private == "" && out.Edit == "" {
		o.Receipt.Thread = a.OpenThread(ctx, out, o.Receipt.Message)
	}
	return o.Receipt, nil
}

// OpenThread returns the thread of a message that is in none: Slack has nothing to open, the message is its root. We take
// part in it from now on.
func (a *Adapter) OpenThread(ctx context.Context, out platforms.Outgoing, id platforms.MessageID) platforms.ThreadID {
	if out.Thread == "" || out.Address.Thread != "" || id == "" {
		return ""
	}
	channel, err := a.channelOf(ctx, out.Address)
	if err != nil {
		return ""
	}
	o := outbound{a: a, channel: channel, thread: string(id)}
	o.takePart(ctx)
	return platforms.ThreadID(id)
}

// outbound is one Outgoing on its way.
type outbound struct {
	a       *Adapter
	out     platforms.Outgoing
	channel string
	thread  string
	wire.Parts
}

// channelOf returns the channel of an address. A person's id stands for the direct chat with them.
func (a *Adapter) channelOf(ctx context.Context, at platforms.Address) (string, error) {
	if at.AccountOf() != a.account {
		return "", platforms.Failure(platforms.BadRequest, "address %s is not of account %s", at, a.account)
	}
	id := string(at.Chat)
	switch {
	case id == "":
		return "", platforms.Failure(platforms.BadRequest, "the address names no channel")
	case id[0] == 'U' || id[0] == 'W':
		dm, err := a.Open(ctx, platforms.UserID(id))
		return string(dm.Chat), err
	}
	return id, nil
}

// check refuses what Slack would refuse or cut, before anything is visible.
func (o *outbound) check() error {
	if n := format.Length(o.body(), platforms.UTF16); n > textLimit+len(o.a.s.ReplyPrefix) {
		return platforms.Failure(platforms.TooLong, "the text has %d units, Slack takes %d", n, textLimit)
	}
	return checkButtons(o.out.Buttons)
}

// body is the text in mrkdwn.
func (o *outbound) body() string {
	text := o.out.Text.Body
	if text == "" {
		text = escape(o.out.Text.Plain)
	}
	return o.prefixed(text)
}

// markdown is the text as Markdown, for streams and Markdown blocks.
func (o *outbound) markdown() string {
	text := o.out.Text.Markdown
	if text == "" {
		text = format.EscapeMarkdown(firstOf(o.out.Text.Plain, o.out.Text.Body))
	}
	return o.prefixed(text)
}

func (o *outbound) prefixed(text string) string {
	if text == "" || o.a.s.ReplyPrefix == "" || o.out.Progress || o.out.Private != "" || len(o.out.Buttons) > 0 {
		return text
	}
	return o.a.s.ReplyPrefix + text
}

// fresh sends a message that is not there yet.
func (o *outbound) fresh(ctx context.Context) error {
	if o.body() == "" && len(o.out.Attachments) == 0 {
		return platforms.Failure(platforms.BadRequest, "the message has neither text nor attachments")
	}
	if o.body() != "" {
		done, err := o.startStream(ctx)
		if !done && err == nil {
			err = o.post(ctx)
		}
		if err != nil {
			return err
		}
	}
	err := o.sendFiles(ctx)
	if err == nil && o.Some {
		o.takePart(ctx)
	}
	return err
}

// takePart notes the thread: people need not mention us there any more.
func (o *outbound) takePart(ctx context.Context) {
	if o.thread == "" || o.out.Progress {
		return
	}
	name := threadName(platforms.Address{Chat: platforms.ChatID(o.channel), Thread: platforms.ThreadID(o.thread)})
	if err := o.a.threads.Add(context.WithoutCancel(ctx), name); err != nil {
		o.a.s.Log.Error().Err(err).Msg("the threads that the bot takes part in can't be written down")
	}
}

// post sends the text by chat.postMessage, with the buttons.
func (o *outbound) post(ctx context.Context) error {
	blocks, apart := o.blocks(), false
	if len(o.out.Buttons) > 0 && len(o.body()) > maxBlockText {
		apart, blocks = true, nil // too much text for blocks: the buttons follow as a message of their own
	}
	if err := o.postMessage(ctx, o.body(), blocks); err != nil {
		return err
	}
	if !apart {
		return nil
	}
	text := o.Receipt.Message
	o.Receipt = platforms.Receipt{More: []platforms.MessageID{text}}
	o.Some = false
	err := o.postMessage(ctx, "⬆", buttonBlocks("⬆", "", o.out.Buttons))
	if err != nil {
		o.Receipt = platforms.Receipt{Message: text, Notes: []string{"the buttons of this message could not be sent: " + err.Error()}}
	}
	o.Some = true
	return nil
}

func (o *outbound) postMessage(ctx context.Context, text string, blocks []api.Block) error {
	a := o.a
	if err := a.gate.pass(ctx, "chat.postMessage", o.channel, o.out.Interim && o.out.Progress); err != nil {
		return err
	}
	options := []api.MsgOption{api.MsgOptionText(text, false)}
	if len(blocks) > 0 {
		options = append(options, api.MsgOptionBlocks(blocks...))
	}
	if o.thread != "" {
		options = append(options, api.MsgOptionTS(o.thread))
	}
	if o.out.Nonce != "" {
		options = append(options, api.MsgOptionMetadata(o.metadata()))
	}
	broadcast := o.broadcasts(ctx)
	if broadcast {
		options = append(options, api.MsgOptionBroadcast())
	}
	options = append(options, a.unfurls()...)
	ts := ""
	err := a.do(ctx, "chat.postMessage", o.channel, func(ctx context.Context) (err error) {
		_, ts, err = a.api.PostMessageContext(ctx, o.channel, options...)
		return err
	})
	if err != nil {
		return err
	}
	if broadcast {
		o.broadcasted(ctx)
	}
	a.streams.plain(o.channel, ts)
	o.Sent(platforms.MessageID(ts))
	return nil
}

func (o *outbound) metadata() api.SlackMetadata {
	return api.SlackMetadata{EventType: metadataEvent, EventPayload: map[string]any{"nonce": o.out.Nonce}}
}

// broadcasts reports whether this is the first answer of its thread and is to be shown in the channel too.
func (o *outbound) broadcasts(ctx context.Context) bool {
	if !o.a.s.ReplyBroadcast || o.thread == "" || o.out.Progress || o.out.Interim || o.channel[0] == 'D' {
		return false
	}
	has, err := o.a.shown.Has(ctx, o.channel+"/"+o.thread)
	return err == nil && !has
}

func (o *outbound) broadcasted(ctx context.Context) {
	if err := o.a.shown.Add(context.WithoutCancel(ctx), o.channel+"/"+o.thread); err != nil {
		o.a.s.Log.Error().Err(err).Msg("it can't be written down that a reply was shown in its channel")
	}
}

// unfurls are Slack's previews as they are set.
func (a *Adapter) unfurls() []api.MsgOption {
	var options []api.MsgOption
	if u := a.s.UnfurlLinks; u != nil {
		if *u {
			options = append(options, api.MsgOptionEnableLinkUnfurl())
		} else {
			options = append(options, api.MsgOptionDisableLinkUnfurl())
		}
	}
	if u := a.s.UnfurlMedia; u != nil && !*u {
		options = append(options, api.MsgOptionDisableMediaUnfurl())
	}
	return options
}

// Delete removes a message of ours. One that is gone already is success.
func (a *Adapter) Delete(ctx context.Context, at platforms.Address, id platforms.MessageID) error {
	channel, err := a.channelOf(ctx, at)
	if err != nil {
		return err
	}
	err = a.do(ctx, "chat.delete", channel, func(ctx context.Context) error {
		_, _, err := a.api.DeleteMessageContext(ctx, channel, string(id))
		return err
	})
	if code(err) == "message_not_found" {
		err = nil
	}
	if err == nil {
		a.streams.forget(channel, string(id))
	}
	return err
}

// shorten cuts mrkdwn for a notification, outside of escapes and references.
func shorten(mrkdwn string, n int) string {
	if len(mrkdwn) <= n {
		return mrkdwn
	}
	s := cut(mrkdwn, n)
	if i := strings.LastIndexAny(s, "&<"); i >= 0 && !strings.ContainsAny(s[i:], ";>") {
		s = s[:i]
	}
	return s + "…"
}
