package discordtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// form sends a multipart body: payload_json and files[n] by name.
func (s *stage) form(method, path string, payload any, files ...File) answered {
	s.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	raw, err := json.Marshal(payload)
	require.NoError(s.t, err)
	require.NoError(s.t, w.WriteField("payload_json", string(raw)))
	for i, f := range files {
		part, err := w.CreateFormFile(fmt.Sprintf("files[%d]", i), f.Name)
		require.NoError(s.t, err)
		_, _ = part.Write(f.Body)
	}
	require.NoError(s.t, w.Close())
	req, err := http.NewRequest(method, s.url+"/api/v9"+path, &body)
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", w.FormDataContentType())
	return s.send(req)
}

func (s *stage) fetch(url string) (int, string) {
	s.t.Helper()
	resp, err := s.client.Get(url)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(raw)
}

func TestRules_Nonce(t *testing.T) {
	s := newStage(t, Options{})
	path := "/channels/" + string(s.channel) + "/messages"
	body := m{"content": "once", "nonce": "n-1", "enforce_nonce": true}
	first, second := s.do("POST", path, body), s.do("POST", path, body)
	require.Equal(t, 200, second.status)
	require.Equal(t, first.at("id"), second.at("id"))
	require.Len(t, s.Visible(s.channel), 1)
	require.Equal(t, 200, s.do("POST", path, m{"content": "again", "nonce": "n-1"}).status)
	require.Len(t, s.Visible(s.channel), 2, "without enforce_nonce it is only a label")
	require.NotContains(t, string(s.do("GET", path, nil).body), "nonce")
}

func TestRules_Files(t *testing.T) {
	s := newStage(t, Options{})
	path := "/channels/" + string(s.channel) + "/messages"
	a := s.form("POST", path, m{"content": "two", "attachments": []m{{"id": 1, "description": "alt"}}},
		File{Name: "a b.txt", Body: []byte("A")}, File{Name: "../c.png", Body: []byte("B")})
	require.Equal(t, 200, a.status, "%s", a.body)
	id := a.at("id").(string)
	seen := s.Visible(s.channel)[0]
	require.Equal(t, "a_b.txt", seen.Files[0].Name)
	require.Equal(t, "c.png", seen.Files[1].Name)
	require.Equal(t, "alt", seen.Files[1].Description)
	status, body := s.fetch(a.at("attachments.0.url").(string))
	require.Equal(t, 200, status)
	require.Equal(t, "A", body)
	a = s.form("PATCH", path+"/"+id, m{"attachments": []m{{"id": a.at("attachments.1.id")}, {"id": 0}}}, File{Name: "d.txt", Body: []byte("D")})
	require.Equal(t, 200, a.status, "%s", a.body)
	seen = s.Visible(s.channel)[0]
	require.Equal(t, "two", seen.Text)
	require.Equal(t, []string{"c.png", "d.txt"}, []string{seen.Files[0].Name, seen.Files[1].Name})
	require.Equal(t, 204, s.do("DELETE", path+"/"+id, nil).status)
	status, _ = s.fetch(seen.Files[0].URL)
	require.Equal(t, 404, status)

	big := File{Name: "big", Body: make([]byte, 10<<20+1)}
	a = s.form("POST", path, m{}, big)
	require.Equal(t, 413, a.status)
	require.EqualValues(t, 40005, a.at("code"))
	boosted := s.AddGuild("Rich", 2, s.pat)
	rich := s.AddChannel(Channel{Guild: boosted, Name: "general"})
	require.Equal(t, 200, s.form("POST", "/channels/"+string(rich)+"/messages", m{}, big).status)
	many := make([]File, 11)
	for i := range many {
		many[i] = File{Name: "x", Body: []byte("x")}
	}
	require.EqualValues(t, 30015, s.form("POST", path, m{}, many...).at("code"))
}

func TestRules_History(t *testing.T) {
	s := newStage(t, Options{})
	var ids []ID
	for i := range 6 {
		ids = append(ids, s.Say(s.channel, fmt.Sprint(i)))
	}
	for query, want := range map[string]string{
		"": "543210", "?limit=2": "54", "?limit=2&before=" + string(ids[3]): "21", "?limit=2&after=" + string(ids[3]): "54",
		"?limit=2&after=" + string(ids[0]): "21", "?limit=3&around=" + string(ids[3]): "432", "?after=" + string(ids[5]): "", "?before=1": "", "?limit=2&after=1": "10",
	} {
		var list []struct{ Content string }
		require.NoError(t, json.Unmarshal(s.do("GET", "/channels/"+string(s.channel)+"/messages"+query, nil).body, &list))
		got := ""
		for _, m := range list {
			got += m.Content
		}
		require.Equal(t, want, got, "%q", query)
	}
	s.Overwrite(s.channel, s.guild, 0, ReadMessageHistory)
	require.Equal(t, "[]", string(s.do("GET", "/channels/"+string(s.channel)+"/messages", nil).body))
	require.EqualValues(t, 50013, s.do("GET", "/channels/"+string(s.channel)+"/messages/"+string(ids[0]), nil).at("code"))
	a := s.do("POST", "/channels/"+string(s.channel)+"/messages", m{"content": "x", "message_reference": m{"message_id": ids[0]}})
	require.EqualValues(t, 160002, a.at("code"))
	old := s.do("DELETE", "/channels/"+string(s.channel)+"/messages/"+string(ids[0]), nil)
	require.EqualValues(t, 50013, old.at("code"))
	s.SetRole(s.guild, s.BotRole(s.guild), ManageMessages)
	require.Equal(t, 204, s.do("POST", "/channels/"+string(s.channel)+"/messages/bulk-delete", m{"messages": ids[:3]}).status)
	require.Len(t, s.Messages(s.channel), 3)
}

func TestRules_Permissions(t *testing.T) {
	s := newStage(t, Options{})
	role := s.BotRole(s.guild)
	thread := s.StartThread(s.channel, s.Say(s.channel, "x"), "Talk", s.lee, false)
	hidden := s.StartThread(s.channel, "", "Secret", s.lee, true)
	say := func(channel ID) any {
		return s.do("POST", "/channels/"+string(channel)+"/messages", m{"content": "x"}).at("code")
	}
	require.EqualValues(t, 50001, say(hidden))
	s.JoinThread(hidden, s.Bot().ID)
	require.Nil(t, say(hidden))
	for _, c := range []struct {
		deny            Permissions
		channel, thread any
	}{
		{0, nil, nil}, {SendMessages, 50013., nil}, {SendInThreads, nil, 50013.}, {ViewChannel, 50001., 50001.},
	} {
		s.Overwrite(s.channel, role, 0, c.deny)
		require.Equal(t, c.channel, say(s.channel), "without %d", c.deny)
		require.Equal(t, c.thread, say(thread), "without %d", c.deny)
	}
	require.EqualValues(t, 50001, s.do("GET", "/channels/"+string(s.channel), nil).at("code"))
	// A permission of the user comes last, an administrator has all of them.
	s.Overwrite(s.channel, s.Bot().ID, ViewChannel, 0)
	require.Nil(t, say(s.channel))
	s.Overwrite(s.channel, s.Bot().ID, 0, ViewChannel)
	s.SetRole(s.guild, role, Administrator)
	require.Nil(t, say(s.channel))
	s.SetRole(s.guild, role, 0)
	s.Overwrite(s.channel, role, 0, AttachFiles|EmbedLinks|AddReactions|CreatePublicThreads)
	s.Overwrite(s.channel, s.Bot().ID, 0, 0)
	path := "/channels/" + string(s.channel) + "/messages"
	own := s.post(s.channel, "mine")
	require.EqualValues(t, 50013, s.form("POST", path, m{}, File{Name: "x", Body: []byte("x")}).at("code"))
	require.EqualValues(t, 50013, s.do("POST", path, m{"embeds": []m{{"title": "x"}}}).at("code"))
	require.EqualValues(t, 50013, s.do("POST", path+"/"+string(own)+"/threads", m{"name": "x"}).at("code"))
	require.EqualValues(t, 50013, s.do("PUT", path+"/"+string(own)+"/reactions/%F0%9F%91%80/@me", nil).at("code"))
	s.React(s.channel, own, "👀", s.lee)
	require.Equal(t, 204, s.do("PUT", path+"/"+string(own)+"/reactions/%F0%9F%91%80/@me", nil).status, "joining one needs no permission")
	s.RemoveMember(s.guild, s.Bot().ID)
	require.EqualValues(t, 50001, say(s.channel))
	require.EqualValues(t, 50001, s.do("GET", "/guilds/"+string(s.guild), nil).at("code"))
}

func TestRules_Pings(t *testing.T) {
	s := newStage(t, Options{})
	role := s.AddRole(s.guild, "team", 0)
	asked := s.Say(s.channel, "?")
	pat, lee := string(s.pat), string(s.lee)
	text := "<@" + lee + "> <@&" + string(role) + "> @everyone"
	for _, c := range []struct {
		allowed any
		want    []string
	}{
		{nil, []string{lee, pat, string(role)}},
		{m{"parse": []string{}}, nil},
		{m{"parse": []string{"users"}}, []string{lee}},
		{m{"parse": []string{}, "replied_user": true}, []string{pat}},
		{m{"roles": []ID{role}}, []string{string(role)}},
	} {
		a := s.do("POST", "/channels/"+string(s.channel)+"/messages", m{"content": text, "allowed_mentions": c.allowed, "message_reference": m{"message_id": asked}})
		require.Equal(t, 200, a.status, "%s", a.body)
		seen, _ := s.Message(s.channel, ID(a.at("id").(string)))
		require.Equal(t, c.want, seen.Pinged, "%v", c.allowed)
	}
	a := s.do("POST", "/channels/"+string(s.channel)+"/messages", m{"content": text, "allowed_mentions": m{"parse": []string{"users"}, "users": []string{lee}}})
	require.EqualValues(t, 50035, a.at("code"))
	s.SetRole(s.guild, s.BotRole(s.guild), MentionEveryone)
	a = s.do("POST", "/channels/"+string(s.channel)+"/messages", m{"content": text})
	require.Equal(t, true, a.at("mention_everyone"))
}

func TestRules_Threads(t *testing.T) {
	s := newStage(t, Options{})
	asked := s.Say(s.channel, "a matter")
	path := "/channels/" + string(s.channel) + "/messages/" + string(asked) + "/threads"
	a := s.do("POST", path, m{"name": "Matter", "auto_archive_duration": 60})
	require.Equal(t, 201, a.status, "%s", a.body)
	require.Equal(t, string(asked), a.at("id"))
	require.EqualValues(t, 160004, s.do("POST", path, m{"name": "Matter"}).at("code"))
	require.EqualValues(t, 50035, s.do("POST", "/channels/"+string(s.channel)+"/threads", m{"name": "x", "auto_archive_duration": 5}).at("code"))
	say := func() any {
		return s.do("POST", "/channels/"+string(asked)+"/messages", m{"content": "x"}).at("code")
	}
	s.SetThread(asked, true, false)
	require.Nil(t, say())
	c, _ := s.Channel(asked)
	require.False(t, c.Archived, "writing opens it")
	s.SetThread(asked, true, true)
	require.EqualValues(t, 50083, say())
	s.SetThread(asked, false, true)
	require.EqualValues(t, 160005, say())
	s.SetRole(s.guild, s.BotRole(s.guild), ManageThreads)
	require.Nil(t, say())
	require.Equal(t, 204, s.do("DELETE", "/channels/"+string(asked)+"/thread-members/@me", nil).status)
	c, _ = s.Channel(asked)
	require.NotContains(t, c.Members, s.Bot().ID)
	s.DropChannel(asked)
	require.EqualValues(t, 10003, say())
	a = s.do("POST", "/channels/"+string(s.forum)+"/threads", m{"name": "Idea"})
	require.Equal(t, "BASE_TYPE_REQUIRED", a.at("errors.message._errors.0.code"))
	a = s.form("POST", "/channels/"+string(s.forum)+"/threads", m{"name": "Idea", "message": m{"content": "what if"}}, File{Name: "x", Body: []byte("y")})
	require.Equal(t, 201, a.status, "%s", a.body)
	require.Equal(t, a.at("id"), a.at("message.id"))
	require.Equal(t, "y", string(s.Visible(ID(a.at("id").(string)))[0].Files[0].Body))
}

func TestRules_Interactions(t *testing.T) {
	s := newStage(t, Options{TokenLife: 300 * time.Millisecond, InteractionWindow: 250 * time.Millisecond})
	g := s.login(testIntents)
	app := "/applications/" + string(s.Bot().ID) + "/commands"
	require.Equal(t, 201, s.do("POST", app, m{"name": "ask", "description": "Ask"}).status)
	run := func() (Interaction, string) {
		t.Helper()
		id, ok := s.Run(Command{Channel: s.channel, Name: "ask", From: s.lee})
		require.True(t, ok)
		i, _ := s.Interaction(id)
		return i, "/interactions/" + string(id) + "/" + i.Token + "/callback"
	}
	hook := func(i Interaction) string { return "/webhooks/" + string(s.Bot().ID) + "/" + i.Token }

	i, callback := run()
	require.EqualValues(t, 10015, s.do("POST", hook(i), m{"content": "too soon"}).at("code"))
	require.Equal(t, 204, s.do("POST", callback, m{"type": 5, "data": m{"flags": 64}}).status)
	require.EqualValues(t, 40060, s.do("POST", callback, m{"type": 5}).at("code"))
	require.True(t, s.Visible(s.channel)[0].Thinking)
	a := s.do("POST", hook(i), m{"content": "the first follow-up takes its place"})
	require.Equal(t, 200, a.status, "%s", a.body)
	seen := s.Visible(s.channel)
	require.Len(t, seen, 1)
	require.True(t, seen[0].Ephemeral)
	require.False(t, seen[0].Thinking)
	require.Equal(t, s.lee, seen[0].For)
	require.Equal(t, "[]", string(s.do("GET", "/channels/"+string(s.channel)+"/messages", nil).body))
	require.EqualValues(t, 10008, s.do("PATCH", "/channels/"+string(s.channel)+"/messages/"+string(seen[0].ID), m{"content": "x"}).at("code"))
	require.Equal(t, 200, s.do("PATCH", hook(i)+"/messages/@original", m{"content": "edited"}).status)
	require.Equal(t, 204, s.do("DELETE", hook(i)+"/messages/@original", nil).status)
	require.Empty(t, s.Visible(s.channel))
	require.Eventually(t, func() bool { return s.do("POST", hook(i), m{"content": "late"}).at("code") == 50027. }, 10*time.Second, 10*time.Millisecond)

	late, callback := run()
	require.Eventually(t, func() bool { return s.do("POST", callback, m{"type": 1}).at("code") == 10062. }, 10*time.Second, 10*time.Millisecond)
	late, _ = s.Interaction(late.ID)
	require.False(t, late.Answered)
	g.wait("INTERACTION_CREATE", 2)
	ephemeral := g.wait("MESSAGE_CREATE", 1).D
	require.EqualValues(t, flagEphemeral|flagLoading, dig(ephemeral, "flags"))
	require.Nil(t, dig(ephemeral, "guild_id"))
	require.Nil(t, dig(ephemeral, "member"))
	_, ok := s.Run(Command{Channel: s.channel, Name: "nothing"})
	require.False(t, ok)
}

func TestRules_Commands(t *testing.T) {
	s := newStage(t, Options{})
	app := "/applications/" + string(s.Bot().ID)
	list := func(n int) (out []m) {
		for i := range n {
			out = append(out, m{"name": fmt.Sprintf("c%d", i), "description": "x"})
		}
		return out
	}
	require.EqualValues(t, 50035, s.do("PUT", app+"/commands", list(101)).at("code"))
	require.Equal(t, 200, s.do("PUT", app+"/commands", list(100)).status)
	require.EqualValues(t, 30032, s.do("POST", app+"/commands", m{"name": "more", "description": "x"}).at("code"))
	was := s.Commands("")[3].ID
	require.Equal(t, 200, s.do("POST", app+"/commands", m{"name": "c3", "description": "new"}).status)
	require.Equal(t, was, s.Commands("")[3].ID)
	require.Equal(t, "new", s.Commands("")[3].Description)
	require.Equal(t, 200, s.do("PUT", app+"/commands", list(5)).status)
	require.Equal(t, was, s.Commands("")[3].ID)
	require.Len(t, s.Commands(""), 5)
	require.Equal(t, 201, s.do("POST", app+"/guilds/"+string(s.guild)+"/commands", m{"name": "here", "description": "x"}).status)
	require.Len(t, s.Commands(s.guild), 1)
	_, ok := s.Run(Command{Channel: s.dm, Name: "here"})
	require.False(t, ok)
	_, ok = s.Run(Command{Channel: s.channel, Name: "here"})
	require.True(t, ok)
	require.Equal(t, 204, s.do("DELETE", app+"/commands/"+string(was), nil).status)
	require.EqualValues(t, 10063, s.do("GET", app+"/commands/"+string(was), nil).at("code"))
	require.EqualValues(t, 20012, s.do("GET", "/applications/1/commands", nil).at("code"))
	a := s.do("POST", app+"/commands", m{"name": "x", "description": strings.Repeat("x", 101), "options": []m{
		{"type": 3, "name": "a", "description": "x"}, {"type": 3, "name": "b", "description": "x", "required": true}, {"type": 3, "name": "b", "description": ""},
	}})
	require.Equal(t, "BASE_TYPE_BAD_LENGTH", a.at("errors.description._errors.0.code"))
	require.Equal(t, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", a.at("errors.options.1._errors.0.code"))
	require.Equal(t, "APPLICATION_COMMAND_OPTIONS_NAME_DUPLICATED", a.at("errors.options.2._errors.0.code"))
}

func TestRules_RateLimits(t *testing.T) {
	s := newStage(t, Options{})
	path := "/channels/" + string(s.channel) + "/messages"
	s.Limit(SendMessage, 2, time.Second)
	for left := 1; left >= 0; left-- {
		a := s.do("POST", path, m{"content": "x"})
		require.Equal(t, 200, a.status)
		require.Equal(t, fmt.Sprint(left), a.head.Get("X-RateLimit-Remaining"))
		require.Equal(t, "2", a.head.Get("X-RateLimit-Limit"))
		require.NotEmpty(t, a.head.Get("X-RateLimit-Bucket"))
		require.NotEmpty(t, a.head.Get("X-RateLimit-Reset-After"))
	}
	a := s.do("POST", path, m{"content": "x"})
	require.Equal(t, 429, a.status)
	require.Equal(t, "user", a.head.Get("X-RateLimit-Scope"))
	require.Equal(t, "You are being rate limited.", a.at("message"))
	require.Equal(t, false, a.at("global"))
	require.InDelta(t, 0.5, a.at("retry_after"), 0.5)
	require.Empty(t, s.Violations(), "the first one is told")
	require.Equal(t, 200, s.do("POST", "/channels/"+string(s.dm)+"/messages", m{"content": "x"}).status, "another channel has its own bucket")
	require.Equal(t, 429, s.do("POST", path, m{"content": "x"}).status)
	require.Len(t, s.Violations(), 1)
	s.Heal()
	s.Limit(SendMessage, 0, 0)

	s.Break(Fault{Trouble: AnswerStatus, Route: SendMessage, Status: 429, RetryAfter: time.Minute, Scope: "global"})
	a = s.do("POST", path, m{"content": "x"})
	require.Equal(t, "true", a.head.Get("X-RateLimit-Global"))
	require.Equal(t, "60", a.head.Get("Retry-After"))
	require.Equal(t, true, a.at("global"))
	require.Equal(t, 429, s.do("GET", "/users/@me", nil).status, "everything waits")
	require.Len(t, s.Violations(), 2)
	s.Heal()
	s.Break(Fault{Trouble: AnswerStatus, Status: 429, RetryAfter: 2 * time.Second, Proxy: true})
	a = s.do("POST", path, m{"content": "x"})
	require.Equal(t, "2", a.head.Get("Retry-After"))
	require.Empty(t, a.head.Get("X-RateLimit-Scope"))
	require.Nil(t, a.at("message"))
	s.Heal()
	s.LimitAll(1, time.Minute)
	require.Equal(t, 200, s.do("GET", "/users/@me", nil).status)
	require.Equal(t, "global", s.do("GET", "/users/@me", nil).head.Get("X-RateLimit-Scope"))
}

func TestRules_Faults(t *testing.T) {
	s := newStage(t, Options{})
	path := s.url + "/api/v10/channels/" + string(s.channel) + "/messages"
	send := func(text string) (int, string, error) {
		req, err := http.NewRequest("POST", path, strings.NewReader(`{"content":"`+text+`"}`))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bot "+testToken)
		client := &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(raw), err
	}
	for trouble, c := range map[Trouble]struct {
		status int
		copies int
		fails  bool
	}{
		AnswerStatus: {503, 0, false}, ResetBefore: {0, 0, true}, ResetAfter: {0, 1, true}, HangBefore: {0, 0, true}, HangAfter: {0, 1, true},
		SlowBody: {200, 1, false}, HalfBody: {200, 1, true}, Garbage: {200, 0, false},
	} {
		t.Run(string(trouble), func(t *testing.T) {
			before := len(s.Visible(s.channel))
			s.Break(Fault{Trouble: trouble, Channel: s.channel, Status: 503, Delay: time.Millisecond})
			require.Equal(t, 200, s.do("GET", "/users/@me", nil).status, "who am I is spared")
			s.post(s.dm, "another channel")
			status, body, err := send("x")
			require.Equal(t, c.fails, err != nil, "%v", err)
			require.Equal(t, c.status, status)
			if trouble == AnswerStatus {
				require.Contains(t, body, `"message":"503: Service Unavailable"`)
			}
			require.Len(t, s.Visible(s.channel), before+c.copies)
			status, _, err = send("once only")
			require.NoError(t, err)
			require.Equal(t, 200, status)
		})
	}
	s.Break(Fault{Trouble: AnswerStatus, Route: "cdn", Status: 500, Times: -1})
	s.Write(Post{Channel: s.channel, Files: []File{{Name: "ä.txt", Body: []byte("x")}}})
	all := s.Messages(s.channel)
	url := all[len(all)-1].Files[0].URL
	for range 2 {
		status, _ := s.fetch(url)
		require.Equal(t, 500, status)
	}
	s.Heal()
	_, body := s.fetch(url)
	require.Equal(t, "x", body)
	s.Shut()
	_, _, err := send("x")
	require.ErrorContains(t, err, "refused")
	require.NoError(t, s.Open())
	status, _, err := send("x")
	require.NoError(t, err)
	require.Equal(t, 200, status)
}

func TestRules_VersionsAndTokens(t *testing.T) {
	s := newStage(t, Options{})
	get := func(path, auth string) answered {
		req, err := http.NewRequest("GET", s.url+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", auth)
		return s.send(req)
	}
	for path, status := range map[string]int{
		"/api/v9/gateway": 200, "/api/v10/gateway/bot": 200, "/api/users/@me": 200, "/api/v6/gateway": 400, "/api/v10/nothing": 404, "/nothing": 404,
	} {
		require.Equal(t, status, get(path, "Bot "+testToken).status, path)
	}
	for _, auth := range []string{testToken, "Bot wrong", "Bearer " + testToken} {
		a := get("/api/v10/users/@me", auth)
		require.Equal(t, 401, a.status)
		require.Equal(t, "401: Unauthorized", a.at("message"))
	}
	require.Equal(t, []string{"GET /api/nothing", "GET /nothing"}, sorted(s.Unknown()))
	require.Equal(t, 4, s.Calls("GET /users/@me"))
	require.Contains(t, s.Routes(), SendMessage)
	require.WithinDuration(t, time.Now(), s.Say(s.channel, "x").Time(), 10*time.Second)
}

func sorted(list []string) []string {
	if len(list) == 2 && list[0] > list[1] {
		return []string{list[1], list[0]}
	}
	return list
}

func TestKeep_BoundsWhatIsRemembered(t *testing.T) {
	s := newStage(t, Options{Keep: 10})
	for range 100 {
		s.Write(Post{Channel: s.channel, Text: "x", Files: []File{{Name: "x", Body: []byte("x")}}})
	}
	require.LessOrEqual(t, len(s.Messages(s.channel)), 20)
	require.LessOrEqual(t, len(s.Acts("")), 20)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.LessOrEqual(t, len(s.files), 20)
}
