package slack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	api "github.com/slack-go/slack"

	"herald/platforms"
)

// historyPage is what history and replies answer. The messages are decoded by us: the library gives a whole page up
// when one block in it has a shape that it does not know.
type historyPage struct {
	api.SlackResponse
	Messages []wireMessage `json:"messages"`
	HasMore  bool          `json:"has_more"`
	Meta     struct {
		Next string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// page asks for messages of a channel, or of a thread when it is set: history newest first, replies oldest first.
func (a *Adapter) page(ctx context.Context, channel, thread string, limit int, values url.Values) (historyPage, error) {
	if values == nil {
		values = url.Values{}
	}
	method := "conversations.history"
	if thread != "" {
		method = "conversations.replies"
		values.Set("ts", thread)
	}
	values.Set("channel", channel)
	values.Set("limit", strconv.Itoa(limit))
	var p historyPage
	err := a.do(ctx, method, "", func(ctx context.Context) error {
		p = historyPage{}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.s.APIURL+method, strings.NewReader(values.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Authorization", "Bearer "+a.token)
		resp, err := a.hub.client.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New("answer " + resp.Status + " of Slack")
		}
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
			return err
		}
		return p.Err()
	})
	return p, err
}

// message returns one message. ok is false when it is not there.
func (a *Adapter) message(ctx context.Context, channel, thread, ts string) (m wireMessage, ok bool, err error) {
	values := url.Values{"oldest": {ts}, "latest": {ts}, "inclusive": {"1"}}
	p, err := a.page(ctx, channel, thread, 2, values)
	if err != nil {
		return m, false, err
	}
	for _, m := range p.Messages {
		if m.TS == ts {
			return m, true, nil
		}
	}
	return m, false, nil
}

// messageText returns the mrkdwn of a message of ours, for an edit that changes its buttons alone.
func (a *Adapter) messageText(ctx context.Context, channel, thread, ts string) (string, error) {
	m, ok, err := a.message(ctx, channel, thread, ts)
	if err == nil && !ok {
		err = platforms.Failure(platforms.MessageGone, "the message is not there any more")
	}
	return m.Text, err
}

// threadOf returns the thread of any message, "" when it is in none. With reply_in_thread a message that opens none
// yet is the root of its own.
func (a *Adapter) threadOf(ctx context.Context, channel, ts string, r room) string {
	var thread string
	if m, ok, err := a.message(ctx, channel, ts, ts); err == nil && ok {
		thread = m.Thread
	}
	switch {
	case thread != "" && thread != ts:
		return thread
	case r.kind != platforms.DM && a.s.inThread:
		return ts
	}
	return ""
}
