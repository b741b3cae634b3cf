package discord

import (
	"context"
	"net/http"

	"herald/platforms/wire"
)

// postBody opens a post in a forum.
type postBody struct {
	Name    string   `json:"name"`
	Archive int      `json:"auto_archive_duration"`
	Tags    []string `json:"applied_tags,omitempty"`
	Message payload  `json:"message"`
}

// post sends a message to a forum: it opens a post of its own, whose name is the first line. Files that don't fit the
// first message follow in the post. Discord knows no nonces there, so that a lost answer stays unknown.
func (o *outbound) post(ctx context.Context, forum place) error {
	o.to = target{channel: forum.channel}
	send := func(ctx context.Context, text string, files []wire.File) error {
		if o.Some {
			return o.one(ctx, call{
				method: http.MethodPost, route: "/channels/{channel}/messages", major: o.to.channel, path: "/channels/" + o.to.channel + "/messages",
			}, o.message(text), files)
		}
		return o.openPost(ctx, forum, text, files)
	}
	if len(o.out.Attachments) == 0 {
		return send(ctx, o.text, nil)
	}
	return o.withFiles(ctx, forum.channel, send)
}

// openPost makes the post with its first message, and once more with a tag where the forum wants one.
func (o *outbound) openPost(ctx context.Context, forum place, text string, files []wire.File) error {
	body := postBody{Name: o.postTitle(files), Archive: archiveAfter, Message: o.message(text)}
	body.Message.Nonce, body.Message.EnforceNonce, body.Message.Reference = "", false, nil
	made, err := o.tryPost(ctx, forum, body, files)
	if codeOf(err) == codeTagRequired {
		p, lookErr := o.a.look(ctx, forum.channel)
		if lookErr != nil || len(p.tags) == 0 {
			return err
		}
		body.Tags = p.tags[:1]
		made, err = o.tryPost(ctx, forum, body, files)
	}
	if err != nil {
		return err
	}
	o.a.rooms.put(placeOf(made))
	o.a.threads.join(ctx, made.ID)
	o.to.channel = made.ID
	o.delivered(made.ID) // the first message of a post has its id
	return nil
}

func (o *outbound) tryPost(ctx context.Context, forum place, body postBody, files []wire.File) (channel, error) {
	c := call{method: http.MethodPost, route: "/channels/{channel}/threads", major: forum.channel, path: "/channels/" + forum.channel + "/threads", body: body}
	if len(files) > 0 {
		files = withNames(&body.Message, files)
		form, err := newForm(body, files)
		if err != nil {
			return channel{}, notSent(err)
		}
		defer form.close()
		c.form = form
	}
	var made channel
	err := o.a.do(ctx, c, &made)
	return made, err
}

// postTitle returns a post's name: the one that was asked for, the first line, or a file's name.
func (o *outbound) postTitle(files []wire.File) string {
	if title := firstLine(o.out.Thread); title != "" {
		return title
	}
	text := o.out.Text.AsPlain()
	if title := firstLine(text); title != "" {
		return title
	}
	if len(files) > 0 {
		return cut(files[0].Name, titleLimit)
	}
	return "New post"
}
