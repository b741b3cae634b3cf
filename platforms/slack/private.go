package slack

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	api "github.com/slack-go/slack"

	"herald/platforms"
)

// privateToken is what Command.Reply and Click.Reply hold: all that an answer for one person needs. It is a secret,
// because whoever has the URL can answer in our name.
type privateToken struct {
	URL     string `json:"url,omitempty"`
	Channel string `json:"channel"`
	Thread  string `json:"thread,omitempty"`
	User    string `json:"user"`
	Trigger string `json:"trigger,omitempty"` // one per invocation
	Replace bool   `json:"replace,omitempty"` // a placeholder waits to be replaced
}

func (t privateToken) String() string {
	b, _ := json.Marshal(t)
	return string(b)
}

func parseToken(s string) (privateToken, error) {
	var t privateToken
	if err := json.Unmarshal([]byte(s), &t); err != nil || t.Channel == "" || t.User == "" {
		return t, badRequest("the token of the private answer is not one of ours")
	}
	return t, nil
}

// answers counts the private posts of each invocation, and knows the private messages whose buttons were pressed.
type answers struct {
	mu    sync.Mutex
	posts bounded[int]
	seen  bounded[privateToken]
	// coming holds the invocations whose placeholder is not shown yet: an answer that overtook it would leave it
	// standing for ever.
	coming map[string]chan struct{}
}

func newAnswers() *answers {
	return &answers{posts: newBounded[int](4096), seen: newBounded[privateToken](1024), coming: map[string]chan struct{}{}}
}

// expect says that a placeholder will be shown; the returned function says that it is.
func (a *answers) expect(trigger string) (shown func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := make(chan struct{})
	a.coming[trigger] = c
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		close(c)
		if a.coming[trigger] == c {
			delete(a.coming, trigger)
		}
	}
}

// await returns when the placeholder of an invocation is shown, at the latest after writeTimeout.
func (a *answers) await(ctx context.Context, trigger string) {
	a.mu.Lock()
	c := a.coming[trigger]
	a.mu.Unlock()
	if c == nil {
		return
	}
	timer := time.NewTimer(writeTimeout)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// next returns which post of its invocation this is, from 1 on.
func (a *answers) next(t privateToken) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, _ := a.posts.get(t.key())
	a.posts.put(t.key(), n+1)
	return n + 1
}

// back takes a post back that did not go out.
func (a *answers) back(t privateToken) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, _ := a.posts.get(t.key()); n > 0 {
		a.posts.put(t.key(), n-1)
	}
}

func (t privateToken) key() string { return t.Channel + "/" + t.User + "/" + t.Trigger + "/" + t.URL }

func (a *answers) ephemeral(channel, message string, t privateToken) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen.put(channel+"/"+message, t)
}

func (a *answers) ofMessage(channel, message string) (privateToken, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen.get(channel + "/" + message)
}

// truncated tells a person that an answer was longer than Slack lets a private one be.
const truncated = "_The answer is longer than Slack's limit of five private posts; the rest is left out._"

// private sends an answer that one person alone sees. It is never public: when no private way works it fails.
func (o *outbound) private(ctx context.Context) error {
	a := o.a
	t, err := parseToken(o.out.Private)
	if err != nil {
		return err
	}
	for _, f := range o.out.Attachments {
		o.note(f, "Slack has no private answers with files")
	}
	a.answers.await(ctx, t.Trigger)
	n := a.answers.next(t)
	if n > privatePosts+1 {
		o.receipt.Notes = append(o.receipt.Notes, "a part of the private answer was left out: Slack takes five posts")
		return nil
	}
	p := privatePost{Type: "ephemeral", Text: o.body(), Blocks: o.blocks(), Thread: t.Thread, Replace: n == 1 && t.Replace}
	if n == privatePosts+1 {
		p = privatePost{Type: "ephemeral", Text: truncated, Thread: t.Thread}
	}
	err = a.respond(ctx, t, p, n)
	if e := platforms.AsSendError(err); e != nil && e.Certainty == platforms.NotSent {
		a.answers.back(t)
	}
	return err
}

// privatePost is the body of a post to a response URL.
type privatePost struct {
	Type    string      `json:"response_type"`
	Text    string      `json:"text"`
	Blocks  []api.Block `json:"blocks,omitempty"`
	Thread  string      `json:"thread_ts,omitempty"`
	Replace bool        `json:"replace_original"`
	Delete  bool        `json:"delete_original,omitempty"`
}

// respond posts to the response URL and, where that is refused, as an ephemeral message. n counts the posts of the
// invocation; those above five can't use the URL.
func (a *Adapter) respond(ctx context.Context, t privateToken, p privatePost, n int) error {
	if t.URL != "" && n <= privatePosts {
		err := a.do(ctx, "response_url", t.Channel, func(ctx context.Context) error { return a.postResponse(ctx, t.URL, p) })
		e := platforms.AsSendError(err)
		if e == nil || e.Certainty == platforms.Unknown || e.Kind == platforms.RateLimited {
			return err
		}
		a.s.Log.Debug().Str("cause", e.Err.Error()).Msg("a response URL was refused; the answer goes out as an ephemeral message")
	}
	options := []api.MsgOption{api.MsgOptionText(p.Text, false)}
	if len(p.Blocks) > 0 {
		options = append(options, api.MsgOptionBlocks(p.Blocks...))
	}
	if t.Thread != "" {
		options = append(options, api.MsgOptionTS(t.Thread))
	}
	return a.do(ctx, "chat.postEphemeral", t.Channel, func(ctx context.Context) error {
		_, err := a.api.PostEphemeralContext(ctx, t.Channel, t.User, options...)
		return err
	})
}

func (a *Adapter) postResponse(ctx context.Context, address string, p privatePost) error {
	u, err := url.Parse(address)
	if err != nil || !a.isSlack(u) {
		return api.SlackErrorResponse{Err: "invalid_response_url"}
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the response URL is no URL")
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := (&recorder{next: a.httpClient()}).Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	var answer struct {
		OK    *bool  `json:"ok"`
		Error string `json:"error"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&answer) // "ok" as plain text is a success too
	switch {
	case answer.OK != nil && !*answer.OK:
		return api.SlackErrorResponse{Err: firstOf(answer.Error, "refused")}
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone || resp.StatusCode == http.StatusForbidden:
		return api.SlackErrorResponse{Err: "used_url"}
	case resp.StatusCode != http.StatusOK:
		return errors.New("the response URL was refused")
	}
	return nil
}

// withoutURL takes the address, which is a secret, out of an error of net/http.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// isSlack reports whether an address is Slack's or the API server's, so that secrets may go there.
func (a *Adapter) isSlack(u *url.URL) bool {
	if u.Scheme == a.s.api.Scheme && strings.EqualFold(u.Host, a.s.api.Host) {
		return true
	}
	host := strings.ToLower(u.Hostname())
	for _, domain := range []string{"slack.com", "slack-gov.com"} {
		if u.Scheme == "https" && (host == domain || strings.HasSuffix(host, "."+domain)) {
			return true
		}
	}
	return false
}

// AnswerClick shows text to the presser alone. Slack has no waiting sign that must be ended.
func (a *Adapter) AnswerClick(ctx context.Context, at platforms.Address, click platforms.Click, text string) error {
	t, err := parseToken(click.Reply)
	if err != nil || text == "" {
		return err
	}
	return a.whisper(ctx, t, text)
}

// whisper says text, which is plain, to one person.
func (a *Adapter) whisper(ctx context.Context, t privateToken, text string) error {
	n := a.answers.next(t)
	err := a.respond(ctx, t, privatePost{Type: "ephemeral", Text: escape(cut(text, textLimit)), Thread: t.Thread}, n)
	if e := platforms.AsSendError(err); e != nil && e.Certainty == platforms.NotSent {
		a.answers.back(t)
	}
	return err
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// bounded is a map of at most a number of entries; the oldest give way. Its owner guards it.
type bounded[V any] struct {
	most  int
	items map[string]*list.Element
	order *list.List
}

type boundedItem[V any] struct {
	key   string
	value V
}

func newBounded[V any](most int) bounded[V] {
	return bounded[V]{most: most, items: map[string]*list.Element{}, order: list.New()}
}

func (b *bounded[V]) get(key string) (v V, ok bool) {
	e, ok := b.items[key]
	if ok {
		v = e.Value.(*boundedItem[V]).value
	}
	return v, ok
}

func (b *bounded[V]) put(key string, v V) {
	if e, ok := b.items[key]; ok {
		e.Value.(*boundedItem[V]).value = v
		b.order.MoveToBack(e)
		return
	}
	b.items[key] = b.order.PushBack(&boundedItem[V]{key, v})
	if len(b.items) > b.most {
		b.remove(b.order.Front().Value.(*boundedItem[V]).key)
	}
}

func (b *bounded[V]) remove(key string) {
	if e, ok := b.items[key]; ok {
		b.order.Remove(e)
		delete(b.items, key)
	}
}
