package sessionsearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stored is one session of the fake archive: who it belongs to and what was said.
type stored struct {
	Session
	key, platform, user string
	messages            []Message
}

// archive is an Archive in memory that keeps to the scope, and notes it.
type archive struct {
	sessions []stored
	scope    Scope
	query    Query
	err      error
}

func (a *archive) readable(scope Scope) []stored {
	a.scope = scope
	return slices.DeleteFunc(slices.Clone(a.sessions), func(s stored) bool {
		own := scope.User != "" && s.platform == scope.Platform && s.user == scope.User
		return !own && (scope.Key == "" || s.key != scope.Key)
	})
}

func (a *archive) find(scope Scope, id string) (stored, error) {
	for _, s := range a.readable(scope) {
		if s.ID == id {
			return s, nil
		}
	}
	return stored{}, ErrNotFound
}

func (a *archive) Search(_ context.Context, scope Scope, q Query) ([]Hit, error) {
	a.query = q
	var hits []Hit
	for _, s := range a.readable(scope) {
		for _, m := range s.messages {
			if slices.Contains(q.Roles, m.Role) && strings.Contains(m.Text, q.Text) && len(hits) < q.Limit {
				hits = append(hits, Hit{Session: s.Session, Message: m, Snippet: "«" + q.Text + "»"})
			}
		}
	}
	return hits, a.err
}

func (a *archive) Session(_ context.Context, scope Scope, id string) (Session, error) {
	s, err := a.find(scope, id)
	return s.Session, err
}

func (a *archive) Around(_ context.Context, scope Scope, id string, row int64, before, after int) ([]Message, error) {
	s, err := a.find(scope, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.messages, func(m Message) bool { return m.Row == row })
	if i < 0 {
		return nil, ErrNotFound
	}
	return s.messages[max(0, i-before):min(len(s.messages), i+after+1)], nil
}

func (a *archive) Read(_ context.Context, scope Scope, id string, after int64, limit int) ([]Message, error) {
	s, err := a.find(scope, id)
	rest := slices.DeleteFunc(slices.Clone(s.messages), func(m Message) bool { return m.Row <= after })
	return rest[:min(limit, len(rest))], err
}

func (a *archive) Last(_ context.Context, scope Scope, id string, limit int) ([]Message, error) {
	s, err := a.find(scope, id)
	return s.messages[max(0, len(s.messages)-limit):], err
}

func (a *archive) Recent(_ context.Context, scope Scope, limit int) ([]Session, error) {
	var out []Session
	for _, s := range a.readable(scope) {
		out = append(out, s.Session)
	}
	return out[:min(limit, len(out))], a.err
}

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// talk makes a session of n messages; the one numbered at says the text.
func talk(id, key, user string, n, at int, text string, change ...func(*stored)) stored {
	s := stored{Session: Session{ID: id, Source: "slack", Started: noon, Updated: noon, Messages: n}, key: key, platform: "slack", user: user}
	for i := range n {
		m := Message{Row: int64(100*len(id) + i), Role: []string{"user", "assistant"}[i%2], Text: fmt.Sprintf("m%d", i), At: noon}
		if i == at {
			m.Text = text
		}
		s.messages = append(s.messages, m)
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func source(name string) func(*stored) { return func(s *stored) { s.Source = name } }

func lineage(name string) func(*stored) { return func(s *stored) { s.Lineage = name } }

var ann = tools.Caller{Platform: "slack", User: "U1", Key: "dm:U1", Session: "a"}

func dispatch(t *testing.T, a *archive, caller tools.Caller, args string) tools.Result {
	t.Helper()
	r := tools.NewRegistry(tools.RegistryOptions{})
	require.NoError(t, r.Register(New(Options{Archive: a, Direct: func(c tools.Caller) bool { return strings.HasPrefix(c.Key, "dm:") }})))
	return tools.NewBus(tools.Options{Registry: r}).Dispatch(t.Context(), tools.Call{ID: "1", Name: Name, Args: json.RawMessage(args),
		Caller: caller})
}

func search(t *testing.T, a *archive, caller tools.Caller, args string) searchReply {
	t.Helper()
	res := dispatch(t, a, caller, args)
	require.Equal(t, tools.ExitOK, res.Exit, res.Content)
	var r searchReply
	require.NoError(t, json.Unmarshal([]byte(res.Content), &r))
	return r
}

func ids(found []found) string {
	var out []string
	for _, f := range found {
		out = append(out, f.Session)
	}
	return strings.Join(out, " ")
}

func TestSearch(t *testing.T) {
	a := &archive{sessions: []stored{
		talk("cron1", "dm:U1", "U1", 5, 1, "buy milk", source("cron")),
		talk("sub", "dm:U1", "U1", 5, 1, "buy milk", source("subagent")),
		talk("aa", "dm:U1", "U1", 30, 15, "buy milk", lineage("L")),
		talk("aaa", "dm:U1", "U1", 30, 15, "buy milk", lineage("L")),
		talk("a", "dm:U1", "U1", 5, 1, "buy milk"),
		talk("bbbb", "room:1", "", 5, 1, "buy milk"),
		talk("other", "dm:U2", "U2", 5, 1, "buy milk"),
	}}
	got := search(t, a, ann, `{"query":"milk"}`)
	require.Equal(t, "aa a cron1", ids(got.Results), "one of a lineage, no hidden sources, cron last, nobody else's")
	require.Equal(t, Query{Text: "milk", Roles: []string{"user", "assistant"}, Limit: 300}, a.query)

	best := got.Results[0]
	require.Len(t, best.Rows, 11)
	require.Equal(t, "buy milk", best.Rows[5].Text)
	require.True(t, best.Rows[5].Anchor)
	require.Equal(t, []string{"m0", "m1", "m2"}, texts(best.Start))
	require.Equal(t, []string{"m27", "m28", "m29"}, texts(best.End))
	require.Empty(t, got.Results[1].Rows, "the others in short")
	require.Equal(t, "«milk»", got.Results[1].Snippet)
	require.True(t, got.Results[1].Current)

	require.NotEmpty(t, search(t, a, ann, `{"query":"milk","detail":"full"}`).Results[1].Rows)
	got = search(t, a, ann, `{"query":"milk","limit":1}`)
	require.Equal(t, 2, got.More)
	require.NotEmpty(t, got.Hint)
	search(t, a, ann, `{"query":"milk","sort":"oldest","role_filter":"tool, user"}`)
	require.Equal(t, Query{Text: "milk", Roles: []string{"tool", "user"}, Order: Oldest, Limit: 300}, a.query)
	require.Contains(t, search(t, a, ann, `{"query":"nothing"}`).Hint, "Nothing matches")
}

func texts(rows []row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Text)
	}
	return out
}

func TestSearch_ShortSessionShowsNothingTwice(t *testing.T) {
	a := &archive{sessions: []stored{talk("a", "dm:U1", "U1", 9, 4, "milk", func(s *stored) {
		s.messages[0].Summary = true
		s.messages[8].Role, s.messages[8].Text = "tool", strings.Repeat("x", 900)
	})}}
	got := search(t, a, ann, `{"query":"milk"}`).Results[0]
	require.Len(t, got.Rows, 9)
	require.Equal(t, "summary", got.Rows[0].Role)
	require.Len(t, []rune(got.Rows[8].Text), toolText)
	require.Empty(t, got.Start)
	require.Empty(t, got.End)
}

func TestScope(t *testing.T) {
	always := func(tools.Caller) bool { return true }
	dm := Scope{Key: "k", Platform: "slack", User: "U1"}
	for _, tt := range []struct {
		name   string
		direct func(tools.Caller) bool
		caller tools.Caller
		asked  string
		want   Scope
		fails  bool
	}{
		{"direct chat", always, tools.Caller{Platform: "slack", User: "U1", Key: "k"}, "", dm, false},
		{"direct chat, all", always, tools.Caller{Platform: "slack", User: "U1", Key: "k"}, "all", dm, false},
		{"direct chat, conversation", always, tools.Caller{Platform: "slack", User: "U1", Key: "k"}, "conversation", Scope{Key: "k"}, false},
		{"Telegram keeps to the chat", always, tools.Caller{Platform: "telegram", User: "U1", Key: "k"}, "", Scope{Key: "k"}, false},
		{"Telegram, all", always, tools.Caller{Platform: "telegram", User: "U1", Key: "k"}, "all", Scope{Key: "k", Platform: "telegram", User: "U1"}, false},
		{"room", func(tools.Caller) bool { return false }, tools.Caller{Platform: "slack", User: "U1", Key: "k"}, "", Scope{Key: "k"}, false},
		{"room, all", func(tools.Caller) bool { return false }, tools.Caller{Platform: "slack", User: "U1", Key: "k"}, "all", Scope{}, true},
		{"nobody can tell", nil, tools.Caller{Platform: "slack", User: "U1", Key: "k"}, "all", Scope{}, true},
		{"no user", always, tools.Caller{Platform: "slack", Key: "k"}, "all", Scope{}, true},
		{"no platform", always, tools.Caller{User: "U1", Key: "k"}, "", Scope{Key: "k"}, false},
		{"no origin at all", always, tools.Caller{}, "", Scope{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, fail := Options{Direct: tt.direct}.scope(tt.caller, tt.asked)
			require.Equal(t, tt.fails, fail != "", fail)
			require.Equal(t, tt.want, got)
		})
	}
}

// P6: ids that one has heard of open nothing, and a refusal does not tell whether they exist.
func TestRead_OtherPeoplesSessionsDoNotExist(t *testing.T) {
	a := &archive{sessions: []stored{talk("secret", "dm:U2", "U2", 5, 1, "x")}}
	for _, args := range []string{`{"session_id":"secret"}`, `{"session_id":"secret","around_message_id":601}`} {
		foreign := dispatch(t, a, ann, args)
		missing := dispatch(t, a, ann, strings.ReplaceAll(args, "secret", "nope"))
		require.True(t, foreign.IsError)
		require.Equal(t, strings.ReplaceAll(foreign.Content, "secret", "nope"), missing.Content)
	}
}

func TestReadAroundBrowse(t *testing.T) {
	a := &archive{sessions: []stored{talk("a", "dm:U1", "U1", 50, 7, "long "+strings.Repeat("y", 3000)), talk("kan", "dm:U1", "U1", 3, 0, "x", source("kanban"))}}
	var r rowsReply
	res := dispatch(t, a, ann, `{"session_id":"a"}`)
	require.NoError(t, json.Unmarshal([]byte(res.Content), &r))
	require.Len(t, r.Rows, DefaultRead)
	require.Contains(t, r.Hint, "after_message_id 139")
	require.Len(t, []rune(r.Rows[7].Text), longText)

	r = rowsReply{}
	res = dispatch(t, a, ann, `{"session_id":"a","after_message_id":139,"limit":5}`)
	require.NoError(t, json.Unmarshal([]byte(res.Content), &r))
	require.Equal(t, []string{"m40", "m41", "m42", "m43", "m44"}, texts(r.Rows))

	r = rowsReply{}
	res = dispatch(t, a, ann, `{"session_id":"a","around_message_id":120,"window":2}`)
	require.NoError(t, json.Unmarshal([]byte(res.Content), &r))
	require.Equal(t, []string{"m18", "m19", "m20", "m21", "m22"}, texts(r.Rows))

	var b browseReply
	res = dispatch(t, a, ann, `{}`)
	require.NoError(t, json.Unmarshal([]byte(res.Content), &b))
	require.Equal(t, []head{{Session: "a", Source: "slack", Started: "2026-11-29 12:00", Updated: "2026-11-29 12:00", Messages: 50, Current: true}}, b.Sessions)
}

func TestBadArguments(t *testing.T) {
	for args, says := range map[string]string{
		`{"query":"x","session_id":"a"}`:                       "not both",
		`{"around_message_id":4}`:                              "needs session_id",
		`{"query":"x","role_filter":"user,boss"}`:              "boss",
		`{"query":"x","detail":"more"}`:                        "adaptive",
		`{"query":"x","limit":0}`:                              "1 or more",
		`{"query":"x","sort":"best"}`:                          "newest",
		`{"query":"` + strings.Repeat("x", 501) + `"}`:         "500 characters",
		`{"session_id":"a","window":99,"around_message_id":1}`: "20 or less",
		`{"search":"x"}`:                                       "query",
	} {
		res := dispatch(t, &archive{}, ann, args)
		require.True(t, res.IsError, args)
		require.Contains(t, res.Content, says)
	}
	res := dispatch(t, &archive{err: errors.New("disk gone")}, ann, `{"query":"x"}`)
	require.Contains(t, res.Content, "disk gone")
}
