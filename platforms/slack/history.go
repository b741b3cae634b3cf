package slack

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"herald/platforms"
)

const (
	// pastFor is how long a thread's messages are remembered.
	pastFor  = time.Minute
	pastKept = 64
	// pageSize is how many messages of a channel one question brings; of a thread, which comes oldest first, threadPage.
	// maxPages bounds the questions.
	pageSize   = 200
	threadPage = 900
	maxPages   = 10
)

// pastThread is a thread that was read a moment ago.
type pastThread struct {
	said  []platforms.Said
	until time.Time
}

// History returns what was said in a thread, or in a channel when the address has none, before a message: the newest
// limit entries, oldest first, with names in place of ids. It is remembered for 60 s.
func (a *Adapter) History(ctx context.Context, at platforms.Address, before platforms.MessageID, limit int) ([]platforms.Said, error) {
	channel, err := a.channelOf(ctx, at)
	if err != nil || limit <= 0 {
		return nil, err
	}
	key := at.String() + "#" + string(before)
	known, ok := a.past.Get(key)
	if !ok || a.s.Clock.Now().After(known.until) {
		messages, err := a.earlier(ctx, channel, string(at.Thread), string(before), limit)
		if err != nil {
			return nil, err
		}
		known = pastThread{until: a.s.Clock.Now().Add(pastFor)}
		for _, m := range messages {
			if said, ok := a.said(ctx, m); ok {
				known.said = append(known.said, said)
			}
		}
		a.past.Put(key, known)
	}
	return slices.Clone(known.said[max(0, len(known.said)-limit):]), nil
}

// earlier returns the messages before one, oldest first.
func (a *Adapter) earlier(ctx context.Context, channel, thread, before string, limit int) ([]wireMessage, error) {
	values := url.Values{}
	if before != "" {
		values.Set("latest", before)
		values.Set("inclusive", "0")
	}
	var all []wireMessage
	for range maxPages {
		p, err := a.page(ctx, channel, thread, sizeOf(thread), values)
		if err != nil {
			return nil, err
		}
		for _, m := range p.Messages {
			if before == "" || earlierTS(m.TS, before) {
				all = append(all, m)
			}
		}
		if p.Meta.Next == "" || thread == "" && len(all) >= limit {
			break
		}
		values.Set("cursor", p.Meta.Next)
	}
	if thread == "" {
		slices.Reverse(all)
	}
	return all, nil
}

func sizeOf(thread string) int {
	if thread != "" {
		return threadPage
	}
	return pageSize
}

// earlierTS compares two ts, which have the same number of digits behind the dot.
func earlierTS(a, b string) bool {
	if len(a) != len(b) {
		return when(a).Before(when(b))
	}
	return a < b
}

// said words a message of the past. ok is false when it says nothing.
func (a *Adapter) said(ctx context.Context, m wireMessage) (s platforms.Said, ok bool) {
	if !takenSubtypes[m.Subtype] {
		return s, false
	}
	b := a.body(ctx, m)
	text := strings.ReplaceAll(b.text, ownMark, "@"+firstOf(a.names.user(ctx, a.self().user).name, "bot"))
	for _, f := range b.files {
		text = strings.TrimSpace(text + "\n[file " + f.Name + "]")
	}
	return platforms.Said{ID: platforms.MessageID(m.TS), Sender: a.author(ctx, m), Text: text, Own: a.isOwn(m), At: when(m.TS)}, text != ""
}

// Find looks for the message with out.Nonce in its metadata. found is false with a nil error only when everything
// where it could be was read; messages that carry no nonce (private ones, files alone, native streams) are an error.
func (a *Adapter) Find(ctx context.Context, out platforms.Outgoing) (id platforms.MessageID, found bool, err error) {
	channel, err := a.channelOf(ctx, out.Address)
	switch {
	case err != nil:
		return "", false, err
	case out.Nonce == "" || out.Private != "" || out.Text.Body == "" && out.Text.Plain == "":
		return "", false, platforms.Failure(platforms.BadRequest, "it can't be told whether this message arrived: it carries no mark")
	case out.Interim && out.Address.Thread != "" && a.s.streaming && !a.off.streams.Load():
		return "", false, platforms.Failure(platforms.BadRequest, "it can't be told whether this message arrived: it may be a native stream")
	}
	values := url.Values{"include_all_metadata": {"1"}}
	for range maxPages {
		p, err := a.page(ctx, channel, string(out.Address.Thread), sizeOf(string(out.Address.Thread)), values)
		if err != nil {
			return "", false, err
		}
		for _, m := range p.Messages {
			if m.Metadata != nil && m.Metadata.EventType == metadataEvent && nonceOf(m) == out.Nonce {
				return platforms.MessageID(m.TS), true, nil
			}
		}
		if p.Meta.Next == "" {
			return "", false, nil
		}
		values.Set("cursor", p.Meta.Next)
	}
	return "", false, platforms.Failure(platforms.BadRequest, "it can't be told whether this message arrived: there are too many newer ones")
}

func nonceOf(m wireMessage) string {
	var p struct {
		Nonce string `json:"nonce"`
	}
	_ = json.Unmarshal(m.Metadata.Payload, &p)
	return p.Nonce
}
