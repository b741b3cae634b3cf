package sessionsearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"herald/tools"
)

// Name is the tool's name.
const Name = "session_search"

const (
	// DefaultLimit and MaxLimit bound how many sessions one answer shows.
	DefaultLimit = 3
	MaxLimit     = 10
	// DefaultWindow and MaxWindow bound how many rows are shown on each side of an anchor.
	DefaultWindow = 5
	MaxWindow     = 20
	// DefaultRead and MaxRead bound how many rows of a session are read at once.
	DefaultRead = 40
	MaxRead     = 100
	// scanRows is how many matching rows are looked at before they are grouped by session.
	scanRows = 300
	// bookend is how many rows of a session's start and end go with a hit.
	bookend = 3
	// longText is how much of one row is shown, in characters; tool results get less.
	longText, toolText = 2000, 500
	maxQuery           = 500
)

// Options configure the tool.
type Options struct {
	Archive Archive
	// Direct reports whether a call comes from a conversation with one person alone. Only there may that
	// person's other direct conversations be read: in a room the answer would show them to others. Nil: no
	// call does.
	Direct func(tools.Caller) bool
}

const parameters = `{"type":"object","properties":{` +
	`"query":{"type":"string","description":"Words to look for; all must occur. \"exact phrases\", OR, NOT and prefix* work.","maxLength":500},` +
	`"session_id":{"type":"string","description":"Read this session instead of searching."},` +
	`"around_message_id":{"type":"integer","description":"With session_id: show the messages around this one.","minimum":1},` +
	`"window":{"type":"integer","description":"With around_message_id: messages on each side.","minimum":1,"maximum":20,"default":5},` +
	`"after_message_id":{"type":"integer","description":"With session_id: go on behind this message.","minimum":0},` +
	`"limit":{"type":"integer","description":"Sessions to show (3, at most 10); messages when a session is read (40, at most 100).","minimum":1,"maximum":100},` +
	`"detail":{"type":"string","enum":["adaptive","full"],"description":"adaptive shows the best session with its messages and the others in short; full shows messages of all.","default":"adaptive"},` +
	`"sort":{"type":"string","enum":["newest","oldest"],"description":"By time instead of by fit."},` +
	`"role_filter":{"type":"string","description":"Whose messages are searched: user, assistant, tool, separated by commas.","default":"user,assistant"},` +
	`"scope":{"type":"string","enum":["conversation","all"],"description":"conversation is this chat, all are the person's direct chats here. all works in a direct chat only."}},` +
	`"additionalProperties":false}`

const description = "Look into past conversations with this person: what was said, decided or done in earlier sessions. Use it before you ask for something " +
	"again, and when they refer to something that is not in this session. With query it finds sessions and shows the best one around the match; with session_id and " +
	"around_message_id it shows more around a message; with session_id alone it reads that session; without arguments it lists recent sessions. " +
	"It costs no model call."

// New returns the tool.
func New(o Options) tools.Tool {
	return tools.Tool{
		Spec: tools.Spec{
			Name: Name, Toolset: "session_search", Description: description, Parameters: json.RawMessage(parameters),
			ReadOnly: true, Parallel: tools.Safe, Core: true, Emoji: "🔎", Preview: "query",
		},
		Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
			var a arguments
			if err := json.Unmarshal(call.Args, &a); err != nil {
				return tools.Result{}, fmt.Errorf("read arguments: %w", err)
			}
			return o.run(ctx, call.Caller, a)
		},
	}
}

type arguments struct {
	Query   string `json:"query"`
	Session string `json:"session_id"`
	Around  int64  `json:"around_message_id"`
	Window  int    `json:"window"`
	After   int64  `json:"after_message_id"`
	Limit   int    `json:"limit"`
	Detail  string `json:"detail"`
	Sort    Order  `json:"sort"`
	Roles   string `json:"role_filter"`
	Scope   string `json:"scope"`
}

// run picks the mode from the arguments that are there.
func (o Options) run(ctx context.Context, caller tools.Caller, a arguments) (tools.Result, error) {
	a.Query, a.Session = strings.TrimSpace(a.Query), strings.TrimSpace(a.Session)
	scope, fail := o.scope(caller, a.Scope)
	if fail != "" {
		return tools.Failure("%s", fail), nil
	}
	var r tools.Result
	var err error
	switch {
	case a.Query != "" && a.Session != "":
		return tools.Failure("give either query or session_id, not both"), nil
	case a.Around != 0 && a.Session == "":
		return tools.Failure("around_message_id needs session_id"), nil
	case a.Query != "":
		r, err = o.discover(ctx, caller, scope, a)
	case a.Around != 0:
		r, err = o.around(ctx, scope, a)
	case a.Session != "":
		r, err = o.read(ctx, scope, a)
	default:
		r, err = o.browse(ctx, caller, scope, a)
	}
	if errors.Is(err, ErrNotFound) {
		return tools.Failure("there is no such session or message among the conversations that can be read here: session_id %q, message %d", a.Session, a.Around), nil
	}
	if err != nil {
		return tools.Result{}, fmt.Errorf("look into past conversations: %w", err)
	}
	return r, nil
}

// scope decides what may be read. Telegram chats stay by themselves unless all is asked for; any doubt
// narrows the scope.
func (o Options) scope(c tools.Caller, asked string) (s Scope, fail string) {
	direct := o.Direct != nil && o.Direct(c) && c.User != "" && c.Platform != ""
	if asked == "all" && !direct {
		return Scope{}, "scope all is possible only in a direct chat with one person; this is not one. Leave scope out to look into this conversation."
	}
	s.Key = c.Key
	if direct && (asked == "all" || asked == "" && c.Platform != "telegram") {
		s.Platform, s.User = c.Platform, c.User
	}
	if s == (Scope{}) {
		return s, "it can't be told whose conversations may be read here, so none can"
	}
	return s, ""
}

// row is a message as the model sees it.
type row struct {
	ID     int64  `json:"message_id"`
	Role   string `json:"role"`
	Sender string `json:"sender,omitempty"`
	Tool   string `json:"tool,omitempty"`
	At     string `json:"at"`
	Text   string `json:"text"`
	Anchor bool   `json:"match,omitempty"`
}

// head describes a session.
type head struct {
	Session  string `json:"session_id"`
	Title    string `json:"title,omitempty"`
	Source   string `json:"source,omitempty"`
	Started  string `json:"started,omitempty"`
	Updated  string `json:"last_active,omitempty"`
	Messages int    `json:"messages,omitempty"`
	Current  bool   `json:"current,omitempty"`
}

// found is one session of a search.
type found struct {
	head
	Match   int64  `json:"match_message_id"`
	Snippet string `json:"snippet"`
	Start   []row  `json:"start,omitempty"`
	Rows    []row  `json:"around,omitempty"`
	End     []row  `json:"end,omitempty"`
}

type searchReply struct {
	Mode    string  `json:"mode"`
	Query   string  `json:"query"`
	Results []found `json:"results"`
	More    int     `json:"more_sessions,omitempty"`
	Hint    string  `json:"hint,omitempty"`
}

type rowsReply struct {
	Mode string `json:"mode"`
	head
	Rows []row  `json:"rows"`
	Hint string `json:"hint,omitempty"`
}

type browseReply struct {
	Mode     string `json:"mode"`
	Sessions []head `json:"sessions"`
	Hint     string `json:"hint,omitempty"`
}

// hidden sources are work behind the scenes; demoted ones come after what people said.
var (
	hidden  = []string{"kanban", "subagent", "tool"}
	demoted = []string{"cron"}
)

// discover searches and groups by lineage.
func (o Options) discover(ctx context.Context, caller tools.Caller, scope Scope, a arguments) (tools.Result, error) {
	if n := utf8.RuneCountInString(a.Query); n > maxQuery {
		return tools.Failure("query has %d characters; allowed are at most %d", n, maxQuery), nil
	}
	roles, fail := roleList(a.Roles)
	if fail != "" {
		return tools.Failure("%s", fail), nil
	}
	hits, err := o.Archive.Search(ctx, scope, Query{Text: a.Query, Roles: roles, Order: a.Sort, Limit: scanRows})
	if err != nil {
		return tools.Result{}, err
	}
	hits = group(hits)
	limit := bound(a.Limit, DefaultLimit, MaxLimit)
	reply := searchReply{Mode: "search", Query: a.Query, Results: []found{}, More: max(0, len(hits)-limit)}
	for i, h := range hits[:min(limit, len(hits))] {
		f := found{head: headOf(h.Session, caller), Match: h.Message.Row, Snippet: clip(h.Snippet, 300)}
		if i == 0 || a.Detail == "full" {
			if err := o.hydrate(ctx, scope, h, &f); err != nil && !errors.Is(err, ErrNotFound) {
				return tools.Result{}, err
			}
		}
		reply.Results = append(reply.Results, f)
	}
	switch {
	case len(hits) == 0:
		reply.Hint = "Nothing matches all of these words. Try fewer or other words, OR between them, or a prefix with *."
	case reply.More > 0:
		reply.Hint = "There are more sessions: raise limit or add words."
	}
	r := tools.JSON(reply)
	r.Summary = fmt.Sprintf("%d sessions found", len(hits))
	return r, nil
}

// group keeps the first hit of each lineage, leaves hidden sources out and puts demoted ones last.
func group(hits []Hit) []Hit {
	seen := map[string]bool{}
	var first, last []Hit
	for _, h := range hits {
		lineage := h.Session.Lineage
		if lineage == "" {
			lineage = h.Session.ID
		}
		if seen[lineage] || slices.Contains(hidden, h.Session.Source) {
			continue
		}
		seen[lineage] = true
		if slices.Contains(demoted, h.Session.Source) {
			last = append(last, h)
		} else {
			first = append(first, h)
		}
	}
	return append(first, last...)
}

// hydrate adds the messages around a hit, and how its session began and ended.
func (o Options) hydrate(ctx context.Context, scope Scope, h Hit, f *found) error {
	id := h.Session.ID
	around, err := o.Archive.Around(ctx, scope, id, h.Message.Row, DefaultWindow, DefaultWindow)
	if err != nil {
		return err
	}
	// A summary replaces rows that are there anyway; look a little further for real ones.
	start, err := o.Archive.Read(ctx, scope, id, 0, 3*bookend)
	if err != nil {
		return err
	}
	end, err := o.Archive.Last(ctx, scope, id, 3*bookend)
	if err != nil {
		return err
	}
	shown := map[int64]bool{}
	for _, m := range around {
		shown[m.Row] = true
	}
	f.Rows = rows(around, h.Message.Row)
	start = plain(start, shown)
	f.Start = rows(start[:min(bookend, len(start))], 0)
	for _, m := range start[:min(bookend, len(start))] {
		shown[m.Row] = true
	}
	end = plain(end, shown)
	f.End = rows(end[max(0, len(end)-bookend):], 0)
	return nil
}

// plain leaves out summaries, tool rows and what is shown already.
func plain(messages []Message, shown map[int64]bool) []Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m Message) bool {
		return m.Summary || m.Role == "tool" || shown[m.Row]
	})
}

// around shows the window around one message.
func (o Options) around(ctx context.Context, scope Scope, a arguments) (tools.Result, error) {
	session, err := o.Archive.Session(ctx, scope, a.Session)
	if err != nil {
		return tools.Result{}, err
	}
	n := bound(a.Window, DefaultWindow, MaxWindow)
	messages, err := o.Archive.Around(ctx, scope, a.Session, a.Around, n, n)
	if err != nil {
		return tools.Result{}, err
	}
	if len(messages) == 0 {
		return tools.Result{}, ErrNotFound
	}
	r := tools.JSON(rowsReply{Mode: "around", head: headOf(session, tools.Caller{}), Rows: rows(messages, a.Around)})
	r.Summary = fmt.Sprintf("%d messages", len(messages))
	return r, nil
}

// read shows a stretch of one session.
func (o Options) read(ctx context.Context, scope Scope, a arguments) (tools.Result, error) {
	session, err := o.Archive.Session(ctx, scope, a.Session)
	if err != nil {
		return tools.Result{}, err
	}
	limit := bound(a.Limit, DefaultRead, MaxRead)
	messages, err := o.Archive.Read(ctx, scope, a.Session, a.After, limit+1)
	if err != nil {
		return tools.Result{}, err
	}
	reply := rowsReply{Mode: "read", head: headOf(session, tools.Caller{})}
	if len(messages) > limit {
		messages = messages[:limit]
		reply.Hint = fmt.Sprintf("There is more: go on with after_message_id %d.", messages[limit-1].Row)
	}
	reply.Rows = rows(messages, 0)
	r := tools.JSON(reply)
	r.Summary = fmt.Sprintf("%d messages", len(messages))
	return r, nil
}

// browse lists recent sessions.
func (o Options) browse(ctx context.Context, caller tools.Caller, scope Scope, a arguments) (tools.Result, error) {
	limit := bound(a.Limit, DefaultLimit, MaxLimit)
	sessions, err := o.Archive.Recent(ctx, scope, limit+20)
	if err != nil {
		return tools.Result{}, err
	}
	sessions = slices.DeleteFunc(slices.Clone(sessions), func(s Session) bool { return slices.Contains(hidden, s.Source) })
	reply := browseReply{Mode: "recent", Sessions: []head{}}
	for _, s := range sessions[:min(limit, len(sessions))] {
		reply.Sessions = append(reply.Sessions, headOf(s, caller))
	}
	if len(sessions) == 0 {
		reply.Hint = "There are no sessions yet."
	}
	r := tools.JSON(reply)
	r.Summary = fmt.Sprintf("%d sessions", len(reply.Sessions))
	return r, nil
}

func headOf(s Session, caller tools.Caller) head {
	return head{Session: s.ID, Title: s.Title, Source: s.Source, Started: stamp(s.Started), Updated: stamp(s.Updated),
		Messages: s.Messages, Current: caller.Session != "" && caller.Session == s.ID}
}

// rows renders messages; anchor is the one that matched.
func rows(messages []Message, anchor int64) []row {
	out := make([]row, 0, len(messages))
	for _, m := range messages {
		limit := longText
		if m.Role == "tool" {
			limit = toolText
		}
		r := row{ID: m.Row, Role: m.Role, Sender: m.Sender, Tool: m.Tool, At: stamp(m.At), Text: clip(m.Text, limit), Anchor: m.Row == anchor}
		if m.Summary {
			r.Role = "summary"
		}
		out = append(out, r)
	}
	return out
}

// roleList parses a role filter.
func roleList(s string) (roles []string, fail string) {
	for r := range strings.SplitSeq(s, ",") {
		switch r = strings.ToLower(strings.TrimSpace(r)); r {
		case "":
		case "user", "assistant", "tool":
			roles = append(roles, r)
		default:
			return nil, fmt.Sprintf("role_filter has %q; allowed: user, assistant, tool", r)
		}
	}
	if roles == nil {
		roles = []string{"user", "assistant"}
	}
	return roles, ""
}

// bound returns n, or unset when it is not given, at most most.
func bound(n, unset, most int) int {
	if n <= 0 {
		return unset
	}
	return min(n, most)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// clip bounds a text in characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}
