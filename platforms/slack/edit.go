package slack

import (
	"context"
	"strconv"

	api "github.com/slack-go/slack"

	"herald/platforms"
)

// editText is the most bytes of an edit's text field, escapes counted: chat.update takes 4,000, far fewer than
// chat.postMessage. Longer texts go into a Markdown block.
const editText = 3900

// edit replaces a message's text and buttons. A message that is a native stream grows, or ends.
func (o *outbound) edit(ctx context.Context) error {
	a := o.a
	o.Receipt.Message, o.Some = o.out.Edit, true
	for _, f := range o.out.Attachments {
		o.Note(f, "an edit can't add files")
	}
	if t, ok := a.answers.ofMessage(o.channel, string(o.out.Edit)); ok {
		return o.editPrivate(ctx, t)
	}
	done, err := o.growStream(ctx)
	if done || err != nil {
		return err
	}
	return o.update(ctx)
}

// editPrivate replaces a message that one person alone sees, whose button was pressed.
func (o *outbound) editPrivate(ctx context.Context, t privateToken) error {
	if t.URL == "" {
		return platforms.Failure(platforms.MessageGone, "a private message can't be changed any more")
	}
	p := privatePost{Type: "ephemeral", Text: o.body(), Blocks: o.blocks(), Thread: t.Thread, Replace: true}
	return o.a.do(ctx, "response_url", o.channel, func(ctx context.Context) error { return o.a.postResponse(ctx, t.URL, p) })
}

// update changes the message by chat.update. What does not fit into an edited message follows as further ones.
func (o *outbound) update(ctx context.Context) error {
	body := o.body()
	switch {
	case body == "" && len(o.out.Buttons) == 0:
		return o.rewrite(ctx, "", nil) // takes the buttons away, keeps the text
	case len(body) <= editText:
		return o.rewrite(ctx, body, o.blocks())
	case len(body) <= maxBlockText && len(o.out.Buttons) > 0:
		return o.rewrite(ctx, shorten(body, editText), o.blocks())
	case len(o.markdown()) <= maxBlockText:
		return o.rewrite(ctx, shorten(body, editText), markdownBlocks(o.markdown()))
	}
	parts := splitMarkdown(o.markdown())
	first := 0
	err := o.rewrite(ctx, shorten(parts[first].Body, editText), sections(parts[first].Body, parts[first].Markdown))
	if err != nil || o.out.Interim {
		return err
	}
	for i, part := range parts[1:] {
		rest := *o
		rest.out.Edit, rest.out.Text, rest.out.Buttons = "", part, nil
		if rest.out.Nonce != "" { // an earlier try may have sent it
			rest.out.Nonce += "/" + strconv.Itoa(i+2)
			if id, found, err := o.a.Find(ctx, rest.out); err == nil && found {
				o.Receipt.More = append(o.Receipt.More, id)
				continue
			}
		}
		rest.Receipt = o.Receipt
		if err := rest.postMessage(ctx, part.Body, nil); err != nil {
			o.Receipt = rest.Receipt
			o.Receipt.Notes = append(o.Receipt.Notes, "the rest of this long answer could not be sent: "+err.Error())
			return nil
		}
		o.Receipt = rest.Receipt
	}
	return nil
}

// rewrite makes one chat.update. Without blocks those that were there go away.
func (o *outbound) rewrite(ctx context.Context, text string, blocks []api.Block) error {
	a := o.a
	if err := a.gate.pass(ctx, "chat.update", o.channel, o.out.Interim); err != nil {
		return err
	}
	options := []api.MsgOption{api.MsgOptionBlocks(blocks...)}
	if text == "" {
		old, err := a.messageText(ctx, o.channel, o.thread, string(o.out.Edit))
		if err != nil {
			return err
		}
		text = old
	}
	options = append(options, api.MsgOptionText(text, false))
	if o.out.Nonce != "" {
		options = append(options, api.MsgOptionMetadata(o.metadata()))
	}
	broadcast := o.broadcasts(ctx)
	if broadcast {
		options = append(options, api.MsgOptionBroadcast())
	}
	err := a.do(ctx, "chat.update", o.channel, func(ctx context.Context) error {
		_, _, _, err := a.api.UpdateMessageContext(ctx, o.channel, string(o.out.Edit), options...)
		return err
	})
	if err == nil && broadcast {
		o.broadcasted(ctx)
	}
	return err
}
