package teams

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/teamstest"
)

// What is in an event: who, where, when, and which tenant.
func TestEvent_Frame(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	id := r.fake.Say(r.thread(), "hello")
	e := r.events(1)[0]
	require.Equal(t, r.atThread(), e.Address)
	require.Equal(t, platforms.Channel, e.ChatType)
	require.Equal(t, platforms.ScopeID(r.fake.TenantID()), e.Scope)
	require.Equal(t, platforms.User{ID: platforms.UserID(r.pat.AAD), Name: "Pat Doe", Language: "en-US"}, e.Sender)
	require.WithinDuration(t, time.Now(), e.At, time.Minute)
	require.Equal(t, platforms.MessageID(id), e.Message.ID)
	require.Nil(t, e.Message.ReplyTo, "the root of a thread is no quote")
	root := r.fake.Say(r.channel.ID, "a new thread")
	e = r.events(2)[1]
	require.Equal(t, platforms.ThreadID(root), e.Address.Thread, "a message in the channel begins a thread")
	r.fake.Say(r.group.ID, "hi")
	require.Equal(t, "Plans", r.events(3)[2].ChatName)
}

func (w *world) thread() string { return w.channel.ID + ";messageid=" + w.root }

// P2: edits of one message are events of their own, and taking a deletion back is none.
func TestEvent_Edits(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	id := r.fake.Say(r.group.ID, "one")
	for _, s := range []string{"two", "three"} {
		r.fake.Rewrite(r.group.ID, id, s)
	}
	r.fake.Remove(r.group.ID, id)
	r.fake.Restore(r.group.ID, id)
	r.fake.Say(r.group.ID, "last")
	events := r.events(4)
	require.Equal(t, &platforms.Edited{MessageID: platforms.MessageID(id), Text: "two"}, events[1].Edited)
	require.Equal(t, &platforms.Edited{MessageID: platforms.MessageID(id), Text: "three"}, events[2].Edited)
	require.NotEqual(t, events[1].ID, events[2].ID)
	require.Equal(t, "last", events[3].Message.Text)
}

func TestEvent_Reactions(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	ours := r.mustSend(platforms.Outgoing{Address: r.atThread(), Text: text("hello")})
	for kind, emoji := range map[string]string{"like": "👍", "heart": "❤️", "1f440_eyes": "👀", "1f468-200d-1f4bb_technologist": "👨‍💻", "someday": "someday", "d800_x": "d800_x", "zz_top": "zz_top"} {
		before := len(r.sink.Events())
		r.fake.React(r.channel.ID, string(ours.Message), kind, teamstest.User{})
		r.fake.Unreact(r.channel.ID, string(ours.Message), kind, teamstest.User{})
		events := r.events(before + 2)
		require.Equal(t, &platforms.Reaction{MessageID: ours.Message, Emoji: emoji, OnOwn: true}, events[before].Reaction)
		require.Equal(t, &platforms.Reaction{MessageID: ours.Message, Emoji: emoji, OnOwn: true, Removed: true}, events[before+1].Reaction)
		require.Equal(t, r.atThread(), events[before].Address)
	}
}

// What is not said by a person makes no event: our own messages, and what Teams tells beside.
func TestEvent_NothingForTheCore(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	for _, from := range []string{r.fake.BotID(), r.fake.AppID()} {
		r.push(r.dm, map[string]any{"type": "message", "id": "own-" + from, "text": "echo", "from": map[string]string{"id": from}})
	}
	for _, kind := range []string{"typing", "endOfConversation", "event", "messageDelete", "surprise"} {
		r.push(r.dm, map[string]any{"type": kind, "id": kind})
	}
	r.push(r.dm, map[string]any{"type": "message", "id": "empty", "text": "  "})
	r.push(r.dm, map[string]any{"type": "messageReaction", "id": "none"})
	r.push(r.dm, map[string]any{"type": "message", "id": "strange", "text": "strange", "entities": []any{1, "x", nil}, "channelData": []int{1}, "value": 7, "attachments": []any{map[string]any{"contentType": "text/html", "content": 5}}})
	r.push(r.dm, map[string]any{"type": "message", "id": "last", "text": "last"})
	events := r.events(2)
	require.Equal(t, "strange", events[0].Message.Text)
	require.Equal(t, "last", events[1].Message.Text)
	r.until("all are acknowledged", func() bool { return r.fake.Pending() == 0 })
}

// push posts an activity of the person with what is given.
func (r *run) push(room teamstest.Room, with map[string]any) {
	r.t.Helper()
	a := map[string]any{
		"channelId": "msteams", "serviceUrl": r.fake.URLs().Service, "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"from":         map[string]string{"id": r.pat.ID, "name": r.pat.Name, "aadObjectId": r.pat.AAD},
		"recipient":    map[string]string{"id": r.fake.BotID(), "name": "Herald"},
		"conversation": map[string]any{"id": room.ID, "conversationType": string(room.Type), "tenantId": r.fake.TenantID()},
	}
	for k, v := range with {
		a[k] = v
	}
	raw, err := json.Marshal(a)
	require.NoError(r.t, err)
	r.fake.Push(room.ID, raw)
}

// People quote in chats: the quote says what and whose, and its text is not said twice.
func TestEvent_Quotes(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	ours := r.mustSend(platforms.Outgoing{Address: r.atGroup(), Text: text("the plan")})
	r.fake.Write(teamstest.Post{Room: r.group.ID, Text: "why?", Quote: string(ours.Message), Mention: true})
	e := r.events(1)[0]
	require.Equal(t, "why?", e.Message.Text)
	require.Equal(t, &platforms.Quote{ID: ours.Message, Text: "the plan", AuthorName: "Herald", Own: true}, e.Message.ReplyTo)
}

// #113577: with the resource-specific consent everything arrives, and require_mention decides.
func TestJudge_RequireMention(t *testing.T) {
	other := map[string]any{"type": "mention", "text": "<at>Kim</at>", "mentioned": map[string]string{"id": "29:kim", "name": "Kim"}}
	bare := map[string]any{"type": "mention", "text": "<at>Herald</at>", "mentioned": map[string]string{"id": teamstest.DefaultAppID, "name": "Herald"}}
	r := start(t, teamstest.Options{}, func(o *Options) {
		o.RequireMention, o.MentionPatterns, o.BotsRequireMention = true, []string{`\bhal\b`, `(`}, true
	})
	r.fake.Overhear(true)
	ours := r.mustSend(platforms.Outgoing{Address: r.address(r.channel.ID, ""), Text: text("a brief")})
	quoted := r.mustSend(platforms.Outgoing{Address: r.atGroup(), Text: text("quote me")})
	r.restart() // what is ours is known over a restart
	drop := func(p teamstest.Post) { r.fake.Write(p) }
	n := 0
	take := func(want string) {
		t.Helper()
		n++
		e := r.events(n)[n-1]
		require.Equal(t, want, e.Message.Text)
		require.True(t, e.Addressed)
	}
	drop(teamstest.Post{Room: r.group.ID, Text: "not for you"})
	drop(teamstest.Post{Room: r.channel.ID, Thread: r.root, Text: "not for you either", Files: []teamstest.File{{Name: "x.txt", Body: []byte("x")}}})
	r.push(r.group, map[string]any{"type": "message", "id": "o1", "text": "<at>Kim</at> look", "entities": []any{other}})
	r.push(r.group, map[string]any{"type": "message", "id": "o2", "text": "<at>Herald</at> typed by hand", "entities": []any{other}})
	r.push(r.group, map[string]any{"type": "message", "id": "b1", "text": "hal, I am a bot", "from": map[string]string{"id": "28:other", "name": "Other", "role": "bot"}})
	r.fake.Write(teamstest.Post{Room: r.group.ID, Text: "for you", Mention: true})
	take("for you")
	r.push(r.group, map[string]any{"type": "message", "id": "m1", "text": "<at>Herald</at>, bare id", "entities": []any{bare}})
	take("bare id")
	r.push(r.group, map[string]any{"type": "message", "id": "m2", "text": "<at>Herald</at> without entities"})
	take("without entities")
	r.fake.Write(teamstest.Post{Room: r.group.ID, Text: "ask HAL about it"})
	take("ask HAL about it")
	r.fake.Write(teamstest.Post{Room: r.channel.ID, Thread: string(ours.Message), Text: "an answer to the brief"})
	take("an answer to the brief")
	r.fake.Write(teamstest.Post{Room: r.group.ID, Quote: string(quoted.Message), Text: "quoted"})
	take("quoted")
	r.fake.Write(teamstest.Post{Room: r.dm.ID, Text: "a direct chat needs no mention"})
	take("a direct chat needs no mention")
	r.until("all are acknowledged", func() bool { return r.fake.Pending() == 0 })
	r.events(n)
}

// Without require_mention everything that arrives is handed on; a free chat is so with it.
func TestJudge_Free(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.RequireMention = true })
	require.NoError(t, r.stop())
	r.alter = func(o *Options) { o.RequireMention, o.FreeChats = true, []string{r.group.ID} }
	r.begin()
	r.fake.Overhear(true)
	r.fake.Write(teamstest.Post{Room: r.channel.ID, Thread: r.root, Text: "no"})
	r.fake.Write(teamstest.Post{Room: r.group.ID, Text: "yes"})
	require.Equal(t, "yes", r.events(1)[0].Message.Text)
	require.False(t, r.events(1)[0].Addressed)
}

func TestPlainText(t *testing.T) {
	a, err := New(goodOptions())
	require.NoError(t, err)
	us := map[string]any{"type": "mention", "text": "<at>Herald</at>", "mentioned": map[string]string{"id": "28:" + teamstest.DefaultAppID, "name": "Herald"}}
	kim := map[string]any{"type": "mention", "text": "<at>Kim Li</at>", "mentioned": map[string]string{"id": "29:kim", "name": "Kim Li"}}
	silent := map[string]any{"type": "mention", "mentioned": map[string]string{"id": "28:" + teamstest.DefaultAppID}}
	for _, c := range []struct {
		in       string
		format   string
		entities []any
		want     string
		named    bool
	}{
		{"hello", "plain", nil, "hello", false},
		{"<at>Herald</at> hello", "plain", []any{us}, "hello", true},
		{"<at>Herald</at>: hello", "plain", []any{us}, "hello", true},
		{"hello <at>Herald</at>&nbsp;there", "plain", []any{us}, "hello there", true},
		{"<at>Herald</at>&nbsp;<at>Kim Li</at> wants tea", "plain", []any{us, kim}, "@Kim Li wants tea", true},
		{"<at>Herald</at> and <at>Herald</at>", "plain", []any{us, us}, "and", true},
		{"<at>Kim Li</at> hello", "plain", []any{kim}, "@Kim Li hello", false},
		{"hello", "plain", []any{silent}, "hello", true},
		{"<at>herald</at> hello", "plain", nil, "hello", true},
		{"<at>Somebody</at> hello", "plain", nil, "Somebody hello", false},
		{"a < b && c > d", "plain", nil, "a < b && c > d", false},
		{"<p>a &lt; b</p>", "xml", nil, "a < b", false},
		{"one\r\ntwo", "plain", nil, "one\ntwo", false},
		{"<at>Herald</at>", "plain", []any{us}, "", true},
	} {
		act := activity{Text: c.in, TextFormat: c.format, Recipient: party{Name: "Herald"}}
		for _, e := range c.entities {
			raw, err := json.Marshal(e)
			require.NoError(t, err)
			act.Entities = append(act.Entities, raw)
		}
		got, named := a.plainText(&act)
		require.Equal(t, c.want, got, c.in)
		require.Equal(t, c.named, named, c.in)
	}
}

func TestActivity_Place(t *testing.T) {
	for id, want := range map[string][2]string{
		"a:1abc":                                {"a:1abc", ""},
		"19:x@thread.tacv2;messageid=16":        {"19:x@thread.tacv2", "16"},
		"19:x@thread.tacv2;other=1;messageid=2": {"19:x@thread.tacv2", "2"},
		"19:x@thread.tacv2;":                    {"19:x@thread.tacv2", ""},
	} {
		chat, thread := (&activity{Conversation: conversation{ID: id}}).place()
		require.Equal(t, want, [2]string{chat, thread})
	}
}
