package sqlite

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
	"herald/sessions"
)

var everything = sessions.Scope{All: true}

func find(t testing.TB, s *Store, q sessions.SearchQuery) (hits []sessions.SearchHit) {
	t.Helper()
	viewing(t, s, func(v sessions.View) {
		var err error
		hits, err = v.Search(q)
		require.NoError(t, err)
	})
	return hits
}

func texts(hits []sessions.SearchHit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, h.Message.Content)
	}
	return out
}

// golden compares with a file; HERALD_UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if os.Getenv("HERALD_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// What people type, and what the index is asked.
func TestParseQuery_Golden(t *testing.T) {
	var b strings.Builder
	for _, text := range []string{
		`milk`, `milk bread`, `milk AND bread`, `"fresh milk" bread`, `milk OR bread`, `a b OR c d`, `milk NOT bread`, `milk -bread`, `milk -"old bread"`,
		`mil*`, `"fresh mil"*`, `well-known`, `well-know*`, `foo.bar@example.com`, `C++`, `"open quote`, `say "" nothing`, `he said "x" y"z`,
		`OR`, `OR milk`, `milk OR`, `milk OR OR bread`, `NOT`, `NOT milk`, `milk NOT`, `AND`, `milk AND`, `-milk`, `-`, `--flag`, `milk - bread`, `*`, `* milk`, `**`,
		`or not and`, `(milk OR bread)`, `content:milk`, `NEAR(a b)`, `^milk`, `{a b}: c`, `milk + bread`, `a"b`, `'; DROP TABLE messages;--`, "a\x00b", "\xff\xfe", ``, `   `,
		`牛奶`, `牛奶 bread`, `🎉`, `🎉 party`, `l'été`,
	} {
		clauses := parseQuery(text)
		grams := []string{}
		for _, c := range clauses {
			grams = append(grams, gramQuery(c))
		}
		fmt.Fprintf(&b, "%-28q words %-48s grams %s\n", text, wordQuery(clauses), strings.Join(grams, " | "))
	}
	golden(t, "queries.golden", b.String())
}

func TestStore_Search_Language(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	say(t, s, se.ID, "fresh milk and bread", "old milk", "milk chocolate", "the state-of-the-art café", "buy 牛奶 and 面包", "日本語の文章です",
		"C++ is a language", "rate 50% off_sale", "Ünïcode ÜBER alles")
	for _, c := range []struct {
		text string
		want []string
	}{
		{"bread", []string{"fresh milk and bread"}},
		{"milk bread", []string{"fresh milk and bread"}},
		{`"milk and"`, []string{"fresh milk and bread"}},
		{`"and milk"`, []string{}},
		{"bread OR chocolate", []string{"fresh milk and bread", "milk chocolate"}},
		{"milk NOT fresh -chocolate", []string{"old milk"}},
		{"choco*", []string{"milk chocolate"}},
		{"hocola", []string{"milk chocolate"}}, // no word begins so: the pieces
		{"STATE-of-the-art", []string{"the state-of-the-art café"}},
		{"cafe", []string{"the state-of-the-art café"}},
		{"uber", []string{"Ünïcode ÜBER alles"}},
		{"牛奶", []string{"buy 牛奶 and 面包"}},
		{"牛奶 面包", []string{"buy 牛奶 and 面包"}},
		{"奶", []string{"buy 牛奶 and 面包"}},
		{"牛奶 -面包", []string{}},
		{"本語の文", []string{"日本語の文章です"}},
		{"文章 OR 牛奶", []string{"buy 牛奶 and 面包", "日本語の文章です"}},
		{"C++", []string{"C++ is a language"}},
		{"50%", []string{"rate 50% off_sale"}},
		{"%", []string{"rate 50% off_sale"}},
		{"f_s", []string{"rate 50% off_sale"}},
		{"", []string{}},
		{"-milk", []string{}},
	} {
		t.Run(c.text, func(t *testing.T) {
			require.ElementsMatch(t, c.want, texts(find(t, s, sessions.SearchQuery{Text: c.text, Scope: everything})))
		})
	}
}

func TestStore_Search_SnippetRankAndOrder(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	long := strings.Repeat("filler words here ", 60)
	say(t, s, se.ID, "milk milk milk", long+"about milk today "+long, long+"关于牛奶的事情"+long)
	hits := find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything})
	require.Equal(t, "«milk» «milk» «milk»", hits[0].Snippet)
	require.Less(t, hits[0].Rank, hits[1].Rank, "smaller is better")
	require.Contains(t, hits[1].Snippet, "about «milk» today")
	require.Less(t, utf8.RuneCountInString(hits[1].Snippet), 300)
	require.Equal(t, se.ID, hits[0].Session.ID)
	hits = find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything, Newest: true})
	require.Greater(t, hits[0].Message.ID, hits[1].Message.ID)
	require.Len(t, find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything, Limit: 1}), 1)
	hits = find(t, s, sessions.SearchQuery{Text: "牛奶", Scope: everything})
	require.Contains(t, hits[0].Snippet, "关于«牛奶»的事情")
	require.Less(t, utf8.RuneCountInString(hits[0].Snippet), 200)
}

func TestStore_Search_LimitIsBounded(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	rows := make([]string, 350)
	for i := range rows {
		rows[i] = "milk"
	}
	say(t, s, se.ID, rows...)
	require.Len(t, find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything}), defaultHits)
	require.Len(t, find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything, Limit: 9999}), maxHits)
}

// Which rows can be found: what was said, also after compaction; not what was undone, nor what only
// Herald said.
func TestStore_Search_RolesAndKinds(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	row := func(role sessions.Role, kind sessions.Kind, content string) *sessions.Message {
		return &sessions.Message{Session: se.ID, Role: role, Kind: kind, Content: "milk 牛奶 " + content}
	}
	compacted := row(sessions.User, "", "compacted")
	update(t, s, func(tx sessions.Tx) error {
		require.NoError(t, tx.Append(compacted))
		require.NoError(t, tx.Compact(se.ID, compacted.ID, nil, row(sessions.User, "", "summary")))
		require.NoError(t, tx.Append(
			row(sessions.User, sessions.KindObserved, "observed"), row(sessions.Assistant, sessions.KindMirror, "mirror"),
			row(sessions.Assistant, sessions.KindNotice, "notice"), row(sessions.Assistant, sessions.KindPartial, "partial"),
			&sessions.Message{Session: se.ID, Role: sessions.Assistant, ToolCalls: []sessions.ToolCall{{ID: "1", Name: "terminal", Arguments: `{"command":"fetch milk 牛奶"}`}}},
			&sessions.Message{Session: se.ID, Role: sessions.Tool, ToolName: "terminal", Content: "milk 牛奶 tool" + strings.Repeat(" x", 9000) + " farbehind"},
			row(sessions.User, "", "undone")))
		_, err := tx.Undo(se.ID, 1)
		return err
	})
	short := func(hits []sessions.SearchHit) (out []string) {
		for _, h := range hits {
			text := strings.TrimPrefix(h.Message.Content, "milk 牛奶 ")
			out = append(out, text[:min(len(text), 9)])
		}
		return out
	}
	for _, text := range []string{"milk", "牛奶"} {
		want := []string{"compacted", "observed", "mirror", "partial"}
		if text == "milk" {
			want = append(want, "") // the call's arguments are among the words
		}
		require.ElementsMatch(t, want, short(find(t, s, sessions.SearchQuery{Text: text, Scope: everything})), text)
	}
	require.Equal(t, []string{"tool x x "}, short(find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything, Roles: []sessions.Role{sessions.Tool}})))
	require.Empty(t, find(t, s, sessions.SearchQuery{Text: "farbehind", Scope: everything, Roles: []sessions.Role{sessions.Tool}}), "a tool result counts with its beginning")
	require.ElementsMatch(t, []string{"compacted", "observed"}, short(find(t, s,
		sessions.SearchQuery{Text: "milk", Scope: everything, Roles: []sessions.Role{sessions.User}})))
}

// P6: nobody's search reads another person's conversation. The golden table names, for each scope, whose
// rows come back; every row has the same word.
func TestStore_Search_P6_Scope(t *testing.T) {
	s := openStore(t)
	at := func(platform platforms.Name, chat platforms.ChatID) platforms.Address {
		return platforms.Address{Platform: platform, Account: "bot", Chat: chat}
	}
	for _, c := range []struct {
		name   string
		key    sessions.Key
		origin sessions.Origin
	}{
		{"dm of ada", "k:dm:ada", sessions.Origin{Address: at("telegram", "1"), ChatType: platforms.DM, User: "ada"}},
		{"dm of bob", "k:dm:bob", sessions.Origin{Address: at("telegram", "2"), ChatType: platforms.DM, User: "bob"}},
		{"dm of ada on slack", "k:slack:ada", sessions.Origin{Address: at("slack", "D1"), ChatType: platforms.DM, User: "ada"}},
		{"dm of a person with alt ada", "k:dm:alt", sessions.Origin{Address: at("telegram", "3"), ChatType: platforms.DM, User: "+49", UserAlt: "ada"}},
		{"dm without person", "k:dm:none", sessions.Origin{Address: at("telegram", "4"), ChatType: platforms.DM}},
		{"ada's part of a room", "k:group:g:ada", sessions.Origin{Address: at("telegram", "g"), ChatType: platforms.Group, User: "ada"}},
		{"bob's part of a room", "k:group:g:bob", sessions.Origin{Address: at("telegram", "g"), ChatType: platforms.Group, User: "bob"}},
		{"shared thread that ada opened", "k:group:g:7", sessions.Origin{Address: at("telegram", "g"), ChatType: platforms.Group, User: "ada", Shared: true}},
		{"dm that several share", "k:dm:shared", sessions.Origin{Address: at("telegram", "5"), ChatType: platforms.DM, User: "ada", Shared: true}},
	} {
		update(t, s, func(tx sessions.Tx) error {
			se, err := tx.OpenSession(c.key, c.origin, clock)
			require.NoError(t, err)
			return tx.Append(&sessions.Message{Session: se.ID, Role: sessions.User, Content: "milk 牛奶 in " + c.name})
		})
	}
	var b strings.Builder
	for _, c := range []struct {
		name  string
		scope sessions.Scope
	}{
		{"zero", sessions.Scope{}},
		{"platform alone", sessions.Scope{Platform: "telegram"}},
		{"person alone", sessions.Scope{User: "ada"}},
		{"ada on telegram", sessions.Scope{Platform: "telegram", User: "ada"}},
		{"bob on telegram", sessions.Scope{Platform: "telegram", User: "bob"}},
		{"ada on slack", sessions.Scope{Platform: "slack", User: "ada"}},
		{"nobody on telegram", sessions.Scope{Platform: "telegram", User: "' OR 1=1 --"}},
		{"ada's key of the room", sessions.Scope{Key: "k:group:g:ada"}},
		{"the shared thread", sessions.Scope{Key: "k:group:g:7"}},
		{"ada in the shared thread", sessions.Scope{Platform: "telegram", User: "ada", Key: "k:group:g:7"}},
		{"a key that is not there", sessions.Scope{Key: "k:group:g"}},
		{"all", sessions.Scope{All: true}},
	} {
		fmt.Fprintf(&b, "%s:\n", c.name)
		byWord := find(t, s, sessions.SearchQuery{Text: "milk", Scope: c.scope, Newest: true})
		byGrams := find(t, s, sessions.SearchQuery{Text: "牛奶 in", Scope: c.scope, Newest: true})
		byLike := find(t, s, sessions.SearchQuery{Text: "奶", Scope: c.scope, Newest: true})
		require.Equal(t, texts(byWord), texts(byGrams), "each way to search has the same walls")
		require.Equal(t, texts(byWord), texts(byLike), "each way to search has the same walls")
		for _, h := range byWord {
			fmt.Fprintf(&b, "  %s\n", strings.TrimPrefix(h.Message.Content, "milk 牛奶 in "))
		}
	}
	golden(t, "scopes.golden", b.String())
}

// A search sees every row that was committed before it, in a View that has read before and in an Update.
func TestStore_Search_IsNeverStale(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	for i := range 30 {
		word := fmt.Sprintf("word%d", i)
		say(t, s, se.ID, word)
		viewing(t, s, func(v sessions.View) {
			if i%2 == 0 { // the snapshot is older than the index that the search makes
				_, err := v.Counts()
				require.NoError(t, err)
			}
			hits, err := v.Search(sessions.SearchQuery{Text: word, Scope: everything})
			require.NoError(t, err)
			require.Len(t, hits, 1)
		})
	}
	update(t, s, func(tx sessions.Tx) error {
		require.NoError(t, tx.Append(&sessions.Message{Session: se.ID, Role: sessions.User, Content: "within the update"}))
		hits, err := tx.Search(sessions.SearchQuery{Text: "within", Scope: everything})
		require.NoError(t, err)
		require.Len(t, hits, 1)
		return nil
	})
	require.Zero(t, s.Metrics().Unindexed)
	// An update that searched and was then undone leaves no trace in the index.
	err := s.Update(t.Context(), sessions.EdgeState, func(tx sessions.Tx) error {
		require.NoError(t, tx.Append(&sessions.Message{Session: se.ID, Role: sessions.User, Content: "never was"}))
		hits, err := tx.Search(sessions.SearchQuery{Text: "never", Scope: everything})
		require.NoError(t, err)
		require.Len(t, hits, 1)
		return sessions.ErrConflict
	})
	require.ErrorIs(t, err, sessions.ErrConflict)
	require.Empty(t, find(t, s, sessions.SearchQuery{Text: "never", Scope: everything}))
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Problems())
}

// A view shows nothing that was committed after it began, in a search neither.
func TestStore_Search_StaysInItsSnapshot(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	say(t, s, se.ID, "milk before")
	viewing(t, s, func(v sessions.View) {
		_, err := v.Counts()
		require.NoError(t, err)
		say(t, s, se.ID, "milk after")
		hits, err := v.Search(sessions.SearchQuery{Text: "milk", Scope: everything})
		require.NoError(t, err)
		require.Equal(t, []string{"milk before"}, texts(hits))
	})
	require.Len(t, find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything}), 2)
}

// In quiet the index follows by itself.
func TestStore_Search_IndexedInQuiet(t *testing.T) {
	s := openStore(t)
	rows := make([]string, 200)
	for i := range rows {
		rows[i] = "some words"
	}
	say(t, s, openSession(t, s, "ada").ID, rows...)
	require.Eventually(t, func() bool { return s.Metrics().Unindexed == 0 }, pollFor, pollEvery)
}

func TestStore_Rebuild(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	say(t, s, se.ID, "milk one", "milk two")
	require.Len(t, find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything}), 2)
	update(t, s, func(st sessions.Tx) error { // somebody broke the index
		_, _, err := st.(*tx).c.exec("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
		return err
	})
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(2), report.Misindexed)
	update(t, s, func(st sessions.Tx) error { return st.(*tx).c.script("DROP TABLE messages_tri") })
	report, err = s.Check(t.Context())
	require.NoError(t, err)
	require.Contains(t, report.Problems(), "search: messages_tri is missing: rebuild the search index")
	require.NoError(t, s.Rebuild(t.Context()))
	require.Len(t, find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything}), 2)
	report, err = s.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Problems())
}

func TestStore_Search_Cancelled(t *testing.T) {
	s := openStore(t)
	say(t, s, openSession(t, s, "ada").ID, "milk")
	ctx, cancel := context.WithCancel(t.Context())
	err := s.View(ctx, func(v sessions.View) error {
		cancel()
		_, err := v.Search(sessions.SearchQuery{Text: "milk", Scope: everything})
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything}), 1)
}

// searchAnything fails when an input is an error, or when a hit breaks the scope.
func searchAnything(t interface{ Fatalf(string, ...any) }, s *Store, text string) {
	err := s.View(context.Background(), func(v sessions.View) error {
		hits, err := v.Search(sessions.SearchQuery{Text: text, Scope: sessions.Scope{Platform: "telegram", User: "ada"}, Limit: 5})
		for _, h := range hits {
			if h.Session.Origin.User != "ada" {
				t.Fatalf("%q finds a row of %q", text, h.Session.Origin.User)
			}
			if !utf8.ValidString(h.Snippet) {
				t.Fatalf("%q: the snippet is no text: %q", text, h.Snippet)
			}
		}
		return err
	})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

func searchable(t testing.TB) *Store {
	s := openStore(t)
	for _, user := range []string{"ada", "bob"} {
		say(t, s, openSession(t, s, user).ID, "milk and bread OR butter", `a "quoted" NOT-so-simple (text)`, "牛奶 日本語 한국어", "C++ 50% _x_ *star*")
	}
	return s
}

// FuzzQuery runs any text against the real index: no input is a syntax error.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{`milk`, `"`, `""*`, `a OR`, `NOT NOT a`, `-"`, `(a`, `a*b*`, `NEAR(a,b)`, `content:a`, `牛`, "\x00", `\`, `%_`, "\u0301", "\U0001F468\u200d", `^`, `{x}:y`} {
		f.Add(seed)
	}
	s := searchable(f)
	f.Fuzz(func(t *testing.T, text string) { searchAnything(t, s, text) })
}

func TestStore_Search_NoInputIsAnError(t *testing.T) {
	s := searchable(t)
	piece := rapid.OneOf(rapid.SampledFrom([]string{`"`, `*`, `-`, ` `, `OR`, `AND`, `NOT`, `NEAR`, `(`, `)`, `:`, `^`, `{`, `}`, `+`, `,`,
		`'`, `\`, `%`, `_`, "\x00", "牛", "奶", "milk", "\u0301", "content"}),
		rapid.StringN(0, 3, -1))
	rapid.Check(t, func(rt *rapid.T) {
		searchAnything(rt, s, strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(rt, "pieces"), ""))
	})
	searchAnything(t, s, strings.Repeat("word ", 100000))
	searchAnything(t, s, strings.Repeat(`"`, 5001))
	searchAnything(t, s, strings.Repeat("OR NOT ", 5000))
}
