package discord

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
	"herald/platforms/wire"
)

// clockSkew is how far our clock and Discord's may be apart.
const clockSkew = time.Minute

var errUndecided = errors.New("the channel's newest messages do not tell whether it arrived")

// Find looks for a message whose outcome is unknown: first among the gateway's events about our own messages, which
// carry the nonce, then among the newest messages of the place, for one of ours with the same text and files since
// the first attempt. found is false only when everything since that attempt was seen.
func (a *Adapter) Find(ctx context.Context, out platforms.Outgoing) (platforms.MessageID, bool, error) {
	if err := a.checkAddress(out.Address); err != nil {
		return "", false, err
	}
	if out.Private != "" {
		return "", false, errors.New("private answers are listed nowhere")
	}
	nonce := nonceOf(out.Nonce)
	t, known := a.sent.by.Get(nonce)
	if t.message != "" {
		return platforms.MessageID(t.message), true, nil
	}
	channel := t.channel
	if channel == "" {
		channel = a.threads.there(ctx, out.Address)
	}
	if p, ok := a.rooms.get(channel); ok && p.forum() {
		return "", false, errUndecided
	}
	page, err := a.messages(ctx, channel, "", pageLimit)
	if codeOf(err) == discordgo.ErrCodeUnknownChannel && out.Address.Thread != "" {
		return "", false, nil // a thread that does not exist holds nothing
	}
	if err != nil {
		return "", false, err
	}
	since := t.at.Add(-clockSkew)
	for i := range page { // newest first
		m := &page[i]
		if m.Author == nil || m.Author.ID != a.me().id {
			continue
		}
		if nonce != "" && m.nonce() == nonce {
			return platforms.MessageID(m.ID), true, nil
		}
		if !sameContent(m, out) {
			continue
		}
		if known && when(m.ID).After(since) && m.nonce() == "" {
			return platforms.MessageID(m.ID), true, nil
		}
		if !known {
			return "", false, errUndecided // it may be an older one with the same words
		}
	}
	all := len(page) < pageLimit
	if all || known && when(page[len(page)-1].ID).Before(since) {
		return "", false, nil
	}
	return "", false, errUndecided
}

// sameContent reports whether a message looks like what was to be sent.
func sameContent(m *message, out platforms.Outgoing) bool {
	var names, want []string
	for _, f := range m.Files {
		names = append(names, f.Filename)
	}
	for _, f := range out.Attachments {
		want = append(want, wire.FileName(f))
	}
	slices.Sort(names)
	slices.Sort(want)
	text := strings.TrimSpace(m.Content)
	return (text == strings.TrimSpace(out.Text.Body) || text == strings.TrimSpace(out.Text.Plain)) && slices.Equal(names, want)
}

// messages returns at most limit messages of a channel before an id, newest first. "" is from the newest.
func (a *Adapter) messages(ctx context.Context, channel, before string, limit int) ([]message, error) {
	path := "/channels/" + channel + "/messages?limit=" + strconv.Itoa(min(limit, pageLimit))
	if before != "" {
		path += "&before=" + before
	}
	var page []message
	err := a.do(ctx, call{method: http.MethodGet, route: "/channels/{channel}/messages", major: channel, path: path}, &page)
	return page, err
}
