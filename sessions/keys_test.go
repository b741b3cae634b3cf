package sessions_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
	"herald/sessions"
)

// keyCase is one line of testdata/keys.golden.
type keyCase struct {
	name string
	src  sessions.KeySource
	opts sessions.KeyOptions
}

var (
	rules     = platforms.Rulebook{"slack": {ScopedChats: true}, "whatsapp": {FoldIDs: platforms.FoldJIDs}}
	def       = sessions.KeyOptions{GroupPerUser: true, Rules: rules}
	together  = sessions.KeyOptions{Rules: rules}
	allSplit  = sessions.KeyOptions{GroupPerUser: true, ThreadPerUser: true, Rules: rules}
	onlyInThr = sessions.KeyOptions{ThreadPerUser: true, Rules: rules}
)

func keyCases() []keyCase {
	type ks = sessions.KeySource
	return []keyCase{
		{"dm", ks{Platform: "telegram", ChatType: "dm", Chat: "42", User: "42"}, def},
		{"dm, profile default", ks{Profile: "default", Platform: "telegram", ChatType: "dm", Chat: "42"}, def},
		{"dm, profile main", ks{Profile: "main", Platform: "telegram", ChatType: "dm", Chat: "42"}, def},
		{"dm, named profile", ks{Profile: "work", Platform: "telegram", ChatType: "dm", Chat: "42"}, def},
		{"dm topic on telegram", ks{Platform: "telegram", ChatType: "dm", Chat: "42", Thread: "7", User: "42"}, def},
		{"dm without chat: participant", ks{Platform: "signal", ChatType: "dm", User: "+4917"}, def},
		{"dm without chat: other id of the participant", ks{Platform: "signal", ChatType: "dm", User: "+4917", UserAlt: "uuid-1"}, def},
		{"dm without chat and participant: thread", ks{Platform: "x", ChatType: "dm", Thread: "7"}, def},
		{"dm with nothing: shared", ks{Platform: "x", ChatType: "dm"}, def},
		{"dm is never split further", ks{Platform: "signal", ChatType: "dm", Chat: "c", User: "u"}, allSplit},
		{"slack dm: workspace before chat", ks{Platform: "slack", ChatType: "dm", Scope: "T1", Chat: "D1", User: "U1"}, def},
		{"slack dm thread", ks{Platform: "slack", ChatType: "dm", Scope: "T1", Chat: "D1", Thread: "171.2", User: "U1"}, def},
		{"slack dm without workspace", ks{Platform: "slack", ChatType: "dm", Chat: "D1", User: "U1"}, def},
		{"slack group: workspace before chat", ks{Platform: "slack", ChatType: "group", Scope: "T1", Chat: "G1", User: "U1"}, def},
		{"slack channel", ks{Platform: "slack", ChatType: "channel", Scope: "T1", Chat: "C1", User: "U1"}, def},
		{"slack channel thread: shared", ks{Platform: "slack", ChatType: "channel", Scope: "T1", Chat: "C1", Thread: "171.2", User: "U1"}, def},
		{"only slack takes the scope", ks{Platform: "discord", ChatType: "channel", Scope: "guild", Chat: "c", User: "u"}, def},
		{"group: one session a person", ks{Platform: "telegram", ChatType: "group", Chat: "-100", User: "5"}, def},
		{"group: other id of the participant", ks{Platform: "signal", ChatType: "group", Chat: "g", User: "+4917", UserAlt: "uuid-1"}, def},
		{"group: together when off", ks{Platform: "telegram", ChatType: "group", Chat: "-100", User: "5"}, together},
		{"group: unknown participant falls back to the room", ks{Platform: "telegram", ChatType: "group", Chat: "-100"}, def},
		{"group topic: shared", ks{Platform: "telegram", ChatType: "group", Chat: "-100", Thread: "7", User: "5"}, def},
		{"group topic: split when on", ks{Platform: "telegram", ChatType: "group", Chat: "-100", Thread: "7", User: "5"}, allSplit},
		{"group topic: split needs group_sessions_per_user too", ks{Platform: "telegram", ChatType: "group", Chat: "-100", Thread: "7", User: "5"}, onlyInThr},
		{"channel: one session a person", ks{Platform: "teams", ChatType: "channel", Chat: "c", User: "u"}, def},
		{"unknown kind of room counts as group", ks{Platform: "teams", Chat: "c", User: "u"}, def},
		{"discord auto thread, first message", ks{Platform: "discord", ChatType: "thread", Scope: "guild", Chat: "900", Thread: "555", User: "u1"}, def},
		{"discord auto thread, follow-up of another person", ks{Platform: "discord", ChatType: "thread", Scope: "guild", Chat: "900", Thread: "555", User: "u2"}, def},
		{"thread as a chat of its own: shared", ks{Platform: "discord", ChatType: "thread", Chat: "555", User: "u1"}, def},
		{"whatsapp dm: phone JID", ks{Platform: "whatsapp", ChatType: "dm", Chat: "49170@s.whatsapp.net", User: "49170@s.whatsapp.net"}, def},
		{"whatsapp dm: device JID", ks{Platform: "whatsapp", ChatType: "dm", Chat: "49170:12@s.whatsapp.net", User: "49170:12@s.whatsapp.net"}, def},
		{"whatsapp dm: old server", ks{Platform: "whatsapp", ChatType: "dm", Chat: "49170@c.us"}, def},
		{"whatsapp dm: number", ks{Platform: "whatsapp", ChatType: "dm", Chat: "+49170"}, def},
		{"whatsapp dm: LID with known phone", ks{Platform: "whatsapp", ChatType: "dm", Chat: "777@lid", User: "777@lid", UserAlt: "49170@s.whatsapp.net"}, def},
		{"whatsapp dm: LID beside a phone", ks{Platform: "whatsapp", ChatType: "dm", Chat: "777@lid", User: "49170@s.whatsapp.net", UserAlt: "777@lid"}, def},
		{"whatsapp dm: LID alone", ks{Platform: "whatsapp", ChatType: "dm", Chat: "777@lid", User: "777@lid"}, def},
		{"whatsapp group: participant by phone", ks{Platform: "whatsapp", ChatType: "group", Chat: "123@g.us", User: "777@lid", UserAlt: "49170:3@s.whatsapp.net"}, def},
		{"colons are escaped", ks{Platform: "teams", ChatType: "channel", Chat: "19:abc@thread.tacv2", User: "29:1xyz"}, def},
		{"percent signs are escaped", ks{Platform: "x", ChatType: "dm", Chat: "a%3Ab"}, def},
	}
}

func TestKeyFor_Golden(t *testing.T) {
	var b strings.Builder
	for _, c := range keyCases() {
		fmt.Fprintf(&b, "%-55s %s\n", c.name, sessions.KeyFor(c.src, c.opts))
	}
	golden(t, "keys.golden", b.String())
}

// golden compares with a file; HERALD_UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("HERALD_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// conversation names what must have a key of its own, from the rules rather than from the code: two events
// belong together exactly when these are equal.
func conversation(s sessions.KeySource, o sessions.KeyOptions) string {
	type parts struct {
		Profile, Platform, Type, Scope, Chat, Thread, Person string
	}
	p := parts{Profile: s.Profile, Platform: string(s.Platform), Type: string(s.ChatType), Chat: string(s.Chat), Thread: string(s.Thread)}
	if s.Platform == "slack" {
		p.Scope = string(s.Scope)
	}
	person := string(s.User)
	if s.UserAlt != "" {
		person = string(s.UserAlt)
	}
	inThread := s.Thread != "" || s.ChatType == platforms.Thread
	if s.ChatType != platforms.DM && o.GroupPerUser && (!inThread || o.ThreadPerUser) {
		p.Person = person
	}
	raw, _ := json.Marshal(p)
	return string(raw)
}

// Ids of one kind share an alphabet that is made to collide; kinds differ by a first letter, as the key's
// form needs.
func drawSource(t *rapid.T, label string) sessions.KeySource {
	id := func(kind, name string, optional bool) string {
		s := rapid.StringMatching(`[ab:%3A]{0,4}`).Draw(t, label+name)
		if s == "" && optional {
			return ""
		}
		return kind + s
	}
	return sessions.KeySource{
		Profile:  rapid.SampledFrom([]string{"", "work", "work:slack"}).Draw(t, label+"profile"),
		Platform: rapid.SampledFrom([]platforms.Name{"slack", "telegram", "teams"}).Draw(t, label+"platform"),
		ChatType: rapid.SampledFrom([]platforms.ChatType{platforms.DM, platforms.Group, platforms.Channel, platforms.Thread}).Draw(t, label+"type"),
		Scope:    platforms.ScopeID(id("S", "scope", true)),
		Chat:     platforms.ChatID(id("C", "chat", false)),
		Thread:   platforms.ThreadID(id("T", "thread", true)),
		User:     platforms.UserID(id("U", "user", true)),
		UserAlt:  platforms.UserID(id("V", "alt", true)),
	}
}

// P6: two conversations never share a key, and one conversation never has two.
func TestKeyFor_P6_DifferentConversationsNeverShareAKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opts := sessions.KeyOptions{GroupPerUser: rapid.Bool().Draw(t, "group"), ThreadPerUser: rapid.Bool().Draw(t, "thread"), Rules: rules}
		a, b := drawSource(t, "a."), drawSource(t, "b.")
		same := conversation(a, opts) == conversation(b, opts)
		if ka, kb := sessions.KeyFor(a, opts), sessions.KeyFor(b, opts); same != (ka == kb) {
			t.Fatalf("same conversation: %v, keys %q and %q", same, ka, kb)
		}
	})
}

// A small alphabet, all pairs: what a random draw may miss.
func TestKeyFor_P6_AllSmallSources(t *testing.T) {
	ids := []string{"", "a", "a:b", "b", "a%3Ab"}
	kind := func(k, id string) string {
		if id == "" {
			return ""
		}
		return k + id
	}
	byKey := map[sessions.Key]string{}
	for _, ct := range []platforms.ChatType{platforms.DM, platforms.Group, platforms.Thread} {
		for _, scope := range ids {
			for _, chat := range ids[1:] {
				for _, thread := range ids {
					for _, user := range ids {
						src := sessions.KeySource{Platform: "slack", ChatType: ct, Scope: platforms.ScopeID(kind("S", scope)), Chat: platforms.ChatID("C" + chat),
							Thread: platforms.ThreadID(kind("T", thread)), User: platforms.UserID(kind("U", user))}
						key, conv := sessions.KeyFor(src, allSplit), conversation(src, allSplit)
						if before, ok := byKey[key]; ok {
							require.Equal(t, before, conv, "key %s", key)
						}
						byKey[key] = conv
					}
				}
			}
		}
	}
}

func TestSourceOf_OriginOf(t *testing.T) {
	e := platforms.Event{
		Address:  platforms.Address{Platform: "slack", Account: "A", Chat: "C1", Thread: "17.1"},
		ChatType: platforms.Channel, Scope: "T1", ChatName: "general", Topic: "talk", ParentChat: "P",
		Sender: platforms.User{ID: "U1", Alt: "V1", Name: "Ada"},
	}
	require.Equal(t, sessions.KeySource{Profile: "p", Platform: "slack", ChatType: platforms.Channel, Scope: "T1", Chat: "C1", Thread: "17.1",
		User: "U1", UserAlt: "V1"}, sessions.SourceOf("p", e))
	require.Equal(t, sessions.Origin{Address: e.Address, ChatType: platforms.Channel, Scope: "T1", ParentChat: "P", ChatName: "general", Topic: "talk",
		User: "U1", UserAlt: "V1", UserName: "Ada", Shared: true}, sessions.OriginOf(e, def))
}

func TestOriginOf_Shared(t *testing.T) {
	room := func(ct platforms.ChatType, thread platforms.ThreadID, user platforms.UserID) platforms.Event {
		return platforms.Event{Address: platforms.Address{Platform: "x", Account: "a", Chat: "c", Thread: thread}, ChatType: ct,
			Sender: platforms.User{ID: user}}
	}
	for _, c := range []struct {
		name string
		e    platforms.Event
		opts sessions.KeyOptions
		want bool
	}{
		{"dm", room(platforms.DM, "", "u"), def, false},
		{"dm topic", room(platforms.DM, "7", "u"), def, false},
		{"group", room(platforms.Group, "", "u"), def, false},
		{"group together", room(platforms.Group, "", "u"), together, true},
		{"group, unknown person", room(platforms.Group, "", ""), def, true},
		{"topic", room(platforms.Group, "7", "u"), def, true},
		{"topic split", room(platforms.Group, "7", "u"), allSplit, false},
		{"thread room", room(platforms.Thread, "", "u"), def, true},
		{"unknown kind", room("", "", "u"), def, false},
	} {
		require.Equal(t, c.want, sessions.OriginOf(c.e, c.opts).Shared, c.name)
	}
}
