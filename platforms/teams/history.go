package teams

import (
	"cmp"
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"herald/platforms"
)

const (
	// threadsKept is how many threads of channels are remembered as ones that the bot takes part in.
	threadsKept = 2000
	// historyPage is the most replies that Graph gives in one answer, and historyPages how many answers are asked for.
	historyPage, historyPages = 50, 4
	// maxSaid is the most bytes of one past message.
	maxSaid = 8 << 10
)

// pastMessage is a message as Graph tells it.
type pastMessage struct {
	ID      string    `json:"id"`
	Type    string    `json:"messageType"`
	Created time.Time `json:"createdDateTime"`
	Deleted string    `json:"deletedDateTime"`
	Body    struct {
		Type    string `json:"contentType"`
		Content string `json:"content"`
	} `json:"body"`
	From struct {
		User struct {
			ID   string `json:"id"`
			Name string `json:"displayName"`
		} `json:"user"`
		Application struct {
			ID   string `json:"id"`
			Name string `json:"displayName"`
		} `json:"application"`
	} `json:"from"`
}

// builds reports whether a message in a thread builds on what the core was never shown: the bot is spoken to there for the
// first time, and Graph can tell the rest.
func (a *Adapter) builds(ctx context.Context, act *activity, thread string) (bool, error) {
	if !a.s.Graph || act.kind() != channel || thread == "" || thread == act.ID {
		return false, nil
	}
	chat, _ := act.place()
	known, err := a.threads.Has(ctx, ownName(chat, thread))
	return !known, err
}

// History reads what was said in a thread of a channel before a message, oldest first: the root and the newest replies, at
// most limit. It needs Graph.
func (a *Adapter) History(ctx context.Context, at platforms.Address, before platforms.MessageID, limit int) ([]platforms.Said, error) {
	t, err := a.target(ctx, at)
	if err != nil {
		return nil, err
	}
	if !a.s.Graph || t.Type != channel || t.thread == "" || limit <= 0 {
		return nil, &platforms.SendError{Kind: platforms.Unsupported, Err: errGraphOnly}
	}
	group, err := a.groupOf(ctx, t.chat, t.room)
	if err != nil {
		return nil, err
	}
	root := a.s.GraphURL + "/v1.0/teams/" + url.PathEscape(group) + "/channels/" + url.PathEscape(t.chat) + "/messages/" + url.PathEscape(t.thread)
	var first pastMessage
	if err := a.query(ctx, topicGraph, request{method: http.MethodGet, url: root, graph: true}, &first); err != nil {
		return nil, err
	}
	replies, err := a.replies(ctx, root+"/replies?$top="+strconv.Itoa(historyPage), before, limit)
	if err != nil {
		return nil, err
	}
	said := a.sayings(append([]pastMessage{first}, replies...), before)
	if over := len(said) - limit; over > 0 { // the root says what it is about
		said = append(said[:1], said[1+over:]...)
	}
	return said, nil
}

// replies asks for the replies of a thread, newest first, until there are enough before a message.
func (a *Adapter) replies(ctx context.Context, address string, before platforms.MessageID, limit int) ([]pastMessage, error) {
	var all []pastMessage
	for range historyPages {
		var page struct {
			Value []pastMessage `json:"value"`
			Next  string        `json:"@odata.nextLink"`
		}
		if err := a.query(ctx, topicGraph, request{method: http.MethodGet, url: address, graph: true}, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Value {
			if earlier(m.ID, string(before)) {
				all = append(all, m)
			}
		}
		if len(all) >= limit || !strings.HasPrefix(page.Next, a.s.GraphURL+"/") { // the token goes to Graph alone
			break
		}
		address = page.Next
	}
	return all, nil
}

// earlier reports whether one message id is before another: they are times in milliseconds. Nothing is not before "".
func earlier(id, before string) bool {
	return before == "" || len(id) < len(before) || len(id) == len(before) && id < before
}

// sayings puts messages in order and leaves out what nobody said.
func (a *Adapter) sayings(list []pastMessage, before platforms.MessageID) []platforms.Said {
	slices.SortStableFunc(list, func(x, y pastMessage) int { return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID)) })
	var out []platforms.Said
	for _, m := range list {
		text := m.text()
		if m.Type != "message" || m.Deleted != "" || text == "" || !earlier(m.ID, string(before)) {
			continue
		}
		s := platforms.Said{ID: platforms.MessageID(m.ID), Text: text, At: m.Created.UTC()}
		if app := m.From.Application; app.ID != "" {
			s.Own = strings.EqualFold(app.ID, a.s.ClientID)
			s.Sender = platforms.User{ID: platforms.UserID("28:" + app.ID), Name: app.Name, IsBot: true}
		} else {
			s.Sender = platforms.User{ID: platforms.UserID(strings.ToLower(m.From.User.ID)), Name: m.From.User.Name}
		}
		out = append(out, s)
	}
	return out
}

var lineEnd = regexp.MustCompile(`(?i)</(p|div|li|h[1-6]|tr|blockquote|pre)>|<br[^>]*>`)

// text returns what a message says, without markup.
func (m *pastMessage) text() string {
	text := cut(m.Body.Content, maxMirror)
	if m.Body.Type == "html" {
		text = html.UnescapeString(stripTags(lineEnd.ReplaceAllString(text, "\n")))
	}
	return cut(strings.TrimSpace(text), maxSaid)
}
