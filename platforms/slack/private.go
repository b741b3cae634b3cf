package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/wire"
)

// privateToken is what Command.Reply and Click.Reply hold: all that an answer for one person needs. It is a secret,
// because whoever has the URL can answer in our name.
type privateToken struct {
	URL     string `json:"url,omitempty"`
	Channel string `json:"channel"`
	Thread  string `json:"thread,omitempty"`
	User    string `json:"user"`
	Trigger string `json:"trigger,omitempty"` // one per invocation
	Command bool   `json:"command,omitempty"`
}

func (t privateToken) String() string {
	b, _ := json.Marshal(t)
	return string(b)
}

func parseToken(s string) (privateToken, error) {
	var t privateToken
	if err := json.Unmarshal([]byte(s), &t); err != nil || t.Channel == "" || t.User == "" {
		return t, platforms.Failure(platforms.BadRequest, "the token of the private answer is not one of ours")
	}
	return t, nil
}

// answers knows how far the private answers of each invocation are, and the private messages whose buttons were
// pressed.
type answers struct {
	calls *wire.Recent[string, *invocation]
	seen  *wire.Recent[string, privateToken]
}

func newAnswers() *answers {
	return &answers{calls: wire.NewRecent[string, *invocation](4096), seen: wire.NewRecent[string, privateToken](1024)}
}

// invocation is one command or press that is answered privately. Its posts are made one after the other.
type invocation struct {
	turn  chan struct{} // holds a value while nobody posts
	fresh bool          // it came in while this process runs: what it shows is known
	shown bool          // the placeholder stands there
	posts int           // answers that went out
	uses  int           // of the response URL
}

// of returns the invocation of a token.
func (a *answers) of(t privateToken) (v *invocation) {
	a.calls.Change(t.Channel+"/"+t.User+"/"+t.Trigger+"/"+t.URL, func(known **invocation) {
		if *known == nil {
			*known = &invocation{turn: make(chan struct{}, 1)}
			(*known).turn <- struct{}{}
		}
		v = *known
	})
	return v
}

// enter waits for the turn to post.
func (v *invocation) enter(ctx context.Context) error {
	select {
	case <-v.turn:
		return nil
	case <-ctx.Done():
		return &platforms.SendError{Kind: platforms.Transient, Err: ctx.Err()}
	}
}

func (v *invocation) leave() { v.turn <- struct{}{} }

func (a *answers) ephemeral(channel, message string, t privateToken) {
	a.seen.Put(channel+"/"+message, t)
}

func (a *answers) ofMessage(channel, message string) (privateToken, bool) {
	return a.seen.Get(channel + "/" + message)
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
		o.Note(f, "Slack has no private answers with files")
	}
	v := a.answers.of(t)
	if err := v.enter(ctx); err != nil {
		return err
	}
	defer v.leave()
	if v.posts > privatePosts {
		o.Receipt.Notes = append(o.Receipt.Notes, "a part of the private answer was left out: Slack takes five posts")
		return nil
	}
	p := privatePost{Type: "ephemeral", Text: o.body(), Blocks: o.blocks(), Thread: t.Thread}
	p.Replace = v.shown || v.posts == 0 && t.Command && !v.fresh // an earlier process may have left its placeholder
	if v.posts == privatePosts {
		p = privatePost{Type: "ephemeral", Text: truncated, Thread: t.Thread}
	}
	err = a.respond(ctx, v, t, p)
	if e := platforms.AsSendError(err); e == nil || e.Certainty == platforms.Unknown {
		v.posts++
		v.shown = false
	}
	return err
}

// placeholderAfter is how long a command may take before its person is shown that it is at work.
const placeholderAfter = 700 * time.Millisecond

// holdPlace shows the placeholder of a command that is not answered yet. The first answer replaces it.
func (a *Adapter) holdPlace(ctx context.Context, t privateToken) {
	if a.s.Clock.Sleep(ctx, placeholderAfter) != nil {
		return
	}
	v := a.answers.of(t)
	if v.enter(ctx) != nil {
		return
	}
	defer v.leave()
	if v.posts > 0 {
		return
	}
	err := a.do(ctx, "response_url", t.Channel, func(ctx context.Context) error {
		return a.postResponse(ctx, t.URL, privatePost{Type: "ephemeral", Text: placeholder})
	})
	v.uses++
	v.shown = err == nil
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

// respond posts to the response URL, which takes five posts, and otherwise as an ephemeral message. The caller has the
// turn.
func (a *Adapter) respond(ctx context.Context, v *invocation, t privateToken, p privatePost) error {
	if t.URL != "" && v.uses < privatePosts {
		v.uses++
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
	resp, err := a.hub.client.Do(req)
	if err != nil {
		return wire.Bare(err)
	}
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
	v := a.answers.of(t)
	if err := v.enter(ctx); err != nil {
		return err
	}
	defer v.leave()
	return a.respond(ctx, v, t, privatePost{Type: "ephemeral", Text: escape(cut(text, textLimit)), Thread: t.Thread})
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
