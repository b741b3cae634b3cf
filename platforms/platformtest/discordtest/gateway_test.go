package discordtest

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

func TestGateway_LoginTellsTheGuilds(t *testing.T) {
	s := newStage(t, Options{})
	thread := s.StartThread(s.channel, "", "Plans", s.lee, false)
	hidden := s.StartThread(s.channel, "", "Secret", s.lee, true)
	g := s.login(testIntents)
	ready := g.wait("READY", 1)
	require.EqualValues(t, 1, seqOf(ready))
	require.EqualValues(t, 10, dig(ready.D, "v"))
	require.Equal(t, string(s.guild), dig(ready.D, "guilds.0.id"))
	require.Equal(t, true, dig(ready.D, "guilds.0.unavailable"))
	require.Equal(t, string(s.Bot().ID), dig(ready.D, "application.id"))
	require.NotEmpty(t, dig(ready.D, "resume_gateway_url"))
	guild := g.wait("GUILD_CREATE", 1).D
	require.Equal(t, string(thread), dig(guild, "threads.0.id"))
	require.Nil(t, dig(guild, "threads.1"), "a private thread that the bot is not in")
	require.Equal(t, string(s.channel), dig(guild, "channels.0.id"))
	require.NotNil(t, dig(guild, "members.2"))
	few := s.login(IntentGuilds)
	require.Nil(t, dig(few.wait("GUILD_CREATE", 1).D, "members.1"), "only the bot without the members intent")
	s.JoinThread(hidden, s.Bot().ID)
	require.Equal(t, string(hidden), dig(g.wait("THREAD_CREATE", 1).D, "id"))
}

func TestGateway_IntentsFilterEventsAndBlankContent(t *testing.T) {
	s := newStage(t, Options{})
	deaf := s.login(IntentGuilds)
	blind := s.login(testIntents &^ IntentMessageContent)
	all := s.login(testIntents)
	own := s.post(s.channel, "mine")
	s.Write(Post{Channel: s.channel, Text: "plain", Files: []File{{Name: "a.txt", Body: []byte("x")}}})
	s.Write(Post{Channel: s.channel, Text: "to you", MentionBot: true})
	s.Write(Post{Channel: s.channel, Text: "an answer", ReplyTo: own})
	s.Write(Post{Channel: s.channel, Text: "a quiet answer", ReplyTo: own, Quiet: true})
	s.Say(s.dm, "direct")
	content := func(c *socket, n int) any { return dig(c.wait("MESSAGE_CREATE", n).D, "content") }
	for n, want := range map[int]string{1: "mine", 2: "", 3: "<@" + string(s.Bot().ID) + "> to you", 4: "an answer", 5: "", 6: "direct"} {
		require.Equal(t, want, content(blind, n), "message %d", n)
	}
	require.Equal(t, "plain", content(all, 2))
	require.Equal(t, "a.txt", dig(all.wait("MESSAGE_CREATE", 2).D, "attachments.0.filename"))
	require.Nil(t, dig(blind.wait("MESSAGE_CREATE", 2).D, "attachments.0"))
	s.React(s.channel, own, "👍", s.lee)
	s.Typing(s.channel, s.lee)
	s.AddMember(s.guild, s.AddUser(User{Username: "new"}))
	for _, name := range []string{"MESSAGE_REACTION_ADD", "TYPING_START", "GUILD_MEMBER_ADD"} {
		all.wait(name, 1)
	}
	s.AddChannel(Channel{Guild: s.guild, Name: "last"})
	deaf.wait("CHANNEL_CREATE", 1)
	require.Equal(t, []string{"READY", "GUILD_CREATE", "CHANNEL_CREATE"}, deaf.events())
}

func TestGateway_EventsOfPeople(t *testing.T) {
	s := newStage(t, Options{})
	g := s.login(testIntents)
	first := s.Say(s.channel, "see https://example.com")
	created := g.wait("MESSAGE_CREATE", 1).D
	require.Equal(t, "Pat", dig(created, "author.global_name"))
	require.Equal(t, string(s.guild), dig(created, "guild_id"))
	require.NotNil(t, dig(created, "member.joined_at"))
	s.Unfurl(s.channel, first, "https://example.com")
	s.Pin(s.channel, first)
	s.Rewrite(s.channel, first, "better")
	for n, edited := range map[int]bool{1: false, 2: false, 3: true} {
		require.Equal(t, edited, dig(g.wait("MESSAGE_UPDATE", n).D, "edited_timestamp") != nil, "update %d", n)
	}
	thread := s.StartThread(s.channel, first, "Talk", s.lee, false)
	require.Equal(t, first, thread)
	require.Equal(t, true, dig(g.wait("THREAD_CREATE", 1).D, "newly_created"))
	require.EqualValues(t, 21, dig(g.wait("MESSAGE_CREATE", 2).D, "type"))
	require.Equal(t, string(thread), dig(g.wait("MESSAGE_UPDATE", 4).D, "thread.id"))
	s.Write(Post{Channel: thread, Text: "you too", MentionBot: true})
	require.Equal(t, string(s.Bot().ID), dig(g.wait("THREAD_MEMBERS_UPDATE", 2).D, "added_members.0.user_id"))
	s.SetThread(thread, true, true)
	require.Equal(t, true, dig(g.wait("THREAD_UPDATE", 1).D, "thread_metadata.locked"))
	s.DropChannel(thread)
	require.Equal(t, string(s.channel), dig(g.wait("THREAD_DELETE", 1).D, "parent_id"))
	s.Erase(s.channel, first)
	require.Equal(t, string(first), dig(g.wait("MESSAGE_DELETE", 1).D, "id"))
	forwarded := s.Write(Post{Channel: s.channel, Text: "from afar", Forward: true})
	snapshot := g.wait("MESSAGE_CREATE", 4).D
	require.Equal(t, string(forwarded), dig(snapshot, "id"))
	require.Equal(t, "", dig(snapshot, "content"))
	require.Equal(t, "from afar", dig(snapshot, "message_snapshots.0.message.content"))
	s.GuildOutage(s.guild, true)
	require.Equal(t, true, dig(g.wait("GUILD_DELETE", 1).D, "unavailable"))
	s.Say(s.channel, "unheard")
	s.GuildOutage(s.guild, false)
	g.wait("GUILD_CREATE", 2)
	require.Len(t, only(g.events(), "MESSAGE_CREATE"), 4)
}

func only(list []string, name string) (out []string) {
	for _, e := range list {
		if e == name {
			out = append(out, e)
		}
	}
	return out
}

func TestGateway_ThreadsThatComeIntoSight(t *testing.T) {
	s := newStage(t, Options{})
	s.Overwrite(s.channel, s.guild, 0, ViewChannel)
	thread := s.StartThread(s.channel, "", "Plans", s.lee, false)
	g := s.login(testIntents)
	s.Say(s.channel, "unseen")
	s.Overwrite(s.channel, s.BotRole(s.guild), ViewChannel, 0)
	require.Equal(t, string(thread), dig(g.wait("THREAD_LIST_SYNC", 1).D, "threads.0.id"))
	require.Empty(t, only(g.events(), "MESSAGE_CREATE"))
}

func TestGateway_ResumeBringsWhatWasMissed(t *testing.T) {
	s := newStage(t, Options{})
	first := s.login(testIntents)
	s.Say(s.channel, "one")
	seen := seqOf(first.wait("MESSAGE_CREATE", 1))
	require.NoError(t, s.Cut())
	require.Equal(t, 1006, first.closed())
	s.Say(s.channel, "two")
	s.Say(s.dm, "three")
	require.Equal(t, 3, s.Unconfirmed())
	second := s.resume(first, seen)
	require.Equal(t, "two", dig(second.wait("MESSAGE_CREATE", 1).D, "content"))
	require.Equal(t, "three", dig(second.wait("MESSAGE_CREATE", 2).D, "content"))
	require.Equal(t, seen+3, seqOf(second.wait("RESUMED", 1)))
	require.Equal(t, []string{"MESSAGE_CREATE", "MESSAGE_CREATE", "RESUMED"}, second.events())
	require.Equal(t, 1, s.Receivers())
	second.say(opHeartbeat, seen+3)
	require.Eventually(t, func() bool { return s.Unconfirmed() == 0 }, 10*time.Second, time.Millisecond)
	s.Redeliver(1)
	again := second.wait("MESSAGE_CREATE", 3)
	require.Equal(t, "three", dig(again.D, "content"))
	require.Equal(t, seen+4, seqOf(again))
}

func TestGateway_WhatEndsASession(t *testing.T) {
	refused := func(t *testing.T, s *stage, old *socket, seq int64) {
		t.Helper()
		g := s.resume(old, seq)
		require.Equal(t, "false", string(g.op(opInvalid).D))
		g.say(opIdentify, identification(testIntents)) // on the same connection
		g.wait("READY", 1)
	}
	t.Run("a goodbye", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		require.NoError(t, g.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second)))
		g.closed()
		require.Eventually(t, func() bool { return s.Receivers() == 0 && s.Connections() == 0 }, 10*time.Second, time.Millisecond)
		s.Say(s.channel, "missed")
		require.Equal(t, 1, s.Unconfirmed())
		refused(t, s, g, 2)
		require.Zero(t, s.Unconfirmed())
	})
	t.Run("no goodbye", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		require.NoError(t, g.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4200, ""), time.Now().Add(time.Second)))
		g.closed()
		s.resume(g, 2).wait("RESUMED", 1)
	})
	t.Run("time", func(t *testing.T) {
		s := newStage(t, Options{ResumeWindow: time.Nanosecond})
		g := s.login(testIntents)
		s.CloseGateway(0)
		g.closed()
		refused(t, s, g, 2)
	})
	t.Run("no window", func(t *testing.T) {
		s := newStage(t, Options{ResumeWindow: -1})
		g := s.login(testIntents)
		s.CloseGateway(0)
		refused(t, s, g, 2)
	})
	t.Run("a number from the future", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		require.Equal(t, closeSeq, s.resume(g, 999).closed())
	})
	t.Run("a second connection takes it over", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		s.resume(g, 2).wait("RESUMED", 1)
		require.Equal(t, 4000, g.closed())
		require.Equal(t, 1, s.Receivers())
	})
}

func TestGateway_Heartbeats(t *testing.T) {
	t.Run("acked", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		g.say(opHeartbeat, 1)
		g.op(opAck)
	})
	t.Run("not acked", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		s.BreakGateway(NoAcks)
		g.say(opHeartbeat, 1)
		s.Say(s.channel, "events go on")
		g.wait("MESSAGE_CREATE", 1)
		s.Mend(NoAcks)
		for _, p := range g.packets() {
			require.NotEqual(t, opAck, p.Op)
		}
		g.say(opHeartbeat, 1)
		g.op(opAck)
	})
	t.Run("missing", func(t *testing.T) {
		s := newStage(t, Options{Heartbeat: 20 * time.Millisecond})
		g := s.login(testIntents)
		require.EqualValues(t, 20, dig(g.op(opHello).D, "heartbeat_interval"))
		require.Equal(t, closeTimeout, g.closed())
	})
}

func TestGateway_CloseCodes(t *testing.T) {
	for name, c := range map[string]struct {
		op   int
		data any
		code int
	}{
		"wrong token":        {opIdentify, m{"token": "x", "intents": 1, "properties": m{}}, closeAuthentication},
		"no intents":         {opIdentify, m{"token": testToken, "properties": m{}}, closeIntents},
		"unknown intents":    {opIdentify, identification(1 << 30), closeIntents},
		"disallowed intents": {opIdentify, identification(IntentMembers), closeDisallowed},
		"unknown op":         {42, nil, closeOpcode},
		"not a payload":      {opIdentify, "x", closeDecode},
		"nobody":             {opPresence, m{}, closeNotAuthenticated},
		"too large":          {opIdentify, m{"token": string(make([]byte, 5000))}, closeDecode},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{WithoutIntents: IntentMembers})
			g := s.dial("v=9&encoding=json")
			g.op(opHello)
			g.say(c.op, c.data)
			require.Equal(t, c.code, g.closed())
			require.Zero(t, s.Identifies())
		})
	}
	s := newStage(t, Options{})
	require.Equal(t, closeVersion, s.dial("v=6&encoding=json").closed())
	g := s.login(testIntents)
	g.say(opIdentify, identification(testIntents))
	require.Equal(t, closeAlready, g.closed())
	many := s.login(testIntents)
	for range ratePayloads {
		_ = many.ws.WriteJSON(m{"op": opHeartbeat, "d": 1})
	}
	require.Equal(t, closeRate, many.closed())
	last := s.login(testIntents)
	s.Revoke()
	require.Equal(t, closeAuthentication, last.closed())
	require.Equal(t, 401, s.do("GET", "/users/@me", nil).status)
	s.Restore()
	require.Equal(t, 200, s.do("GET", "/users/@me", nil).status)
}

func TestGateway_Orders(t *testing.T) {
	s := newStage(t, Options{})
	g := s.login(testIntents)
	s.Reconnect()
	g.op(opReconnect)
	require.Equal(t, 1, s.Receivers())
	s.Invalidate(true)
	require.Equal(t, "true", string(g.op(opInvalid).D))
	require.Zero(t, s.Receivers())
	s.Say(s.channel, "meanwhile")
	g.say(opResume, m{"token": testToken, "session_id": dig(g.wait("READY", 1).D, "session_id"), "seq": 2})
	g.wait("MESSAGE_CREATE", 1)
	g.wait("RESUMED", 1)
	s.CloseGateway(closeDisallowed)
	require.Equal(t, closeDisallowed, g.closed())
}

func TestGateway_Troubles(t *testing.T) {
	texts := func(c *socket, n int) (out []any) {
		for i := range n {
			out = append(out, dig(c.wait("MESSAGE_CREATE", i+1).D, "content"))
		}
		return out
	}
	t.Run("twice", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		s.BreakGateway(Twice)
		s.Say(s.channel, "a")
		require.Equal(t, []any{"a", "a"}, texts(g, 2))
	})
	t.Run("backwards", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		s.BreakGateway(Backwards)
		for _, text := range []string{"a", "b", "c"} {
			s.Say(s.channel, text)
		}
		s.Mend(Backwards)
		require.Equal(t, []any{"b", "a", "c"}, texts(g, 3))
	})
	t.Run("lost", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		s.BreakGateway(Lost)
		s.Say(s.channel, "a")
		s.Heal()
		s.Say(s.channel, "b")
		require.Equal(t, []any{"b"}, texts(g, 1))
		require.EqualValues(t, 4, seqOf(g.wait("MESSAGE_CREATE", 1)))
	})
	t.Run("unknown events", func(t *testing.T) {
		s := newStage(t, Options{})
		g := s.login(testIntents)
		s.BreakGateway(UnknownEvents)
		s.Say(s.channel, "a")
		g.op(99)
		g.wait("SOMETHING_NEW_CREATE", 1)
		require.Equal(t, []any{"a"}, texts(g, 1))
	})
	t.Run("silent", func(t *testing.T) {
		s := newStage(t, Options{Heartbeat: 20 * time.Millisecond})
		g := s.login(testIntents)
		s.BreakGateway(Silent)
		g.say(opHeartbeat, 1)
		s.Say(s.channel, "a")
		late := s.dial("v=10&encoding=json")
		time.AfterFunc(100*time.Millisecond, s.Heal) // five intervals: nobody is closed for it
		late.op(opHello)
		require.Equal(t, []any{"a"}, texts(g, 1))
		require.Equal(t, []string{"READY", "GUILD_CREATE", "MESSAGE_CREATE"}, g.events())
	})
	t.Run("no hello, no ready", func(t *testing.T) {
		s := newStage(t, Options{})
		s.BreakGateway(NoHello)
		quiet := s.dial("v=10&encoding=json")
		s.Mend(NoHello)
		s.BreakGateway(NoReady)
		g := s.dial("v=10&encoding=json")
		g.op(opHello)
		g.say(opIdentify, identification(testIntents))
		g.say(opHeartbeat, nil)
		g.op(opAck)
		require.Len(t, g.packets(), 2)
		require.Empty(t, quiet.packets())
		require.Zero(t, s.Identifies())
		require.Eventually(t, func() bool { return s.Connections() == 2 }, 10*time.Second, time.Millisecond)
	})
	t.Run("dropped", func(t *testing.T) {
		s := newStage(t, Options{})
		s.BreakGateway(Dropped)
		require.Equal(t, -1, s.dial("v=10&encoding=json").closed())
	})
	t.Run("refused", func(t *testing.T) {
		s := newStage(t, Options{})
		s.BreakGateway(Refused)
		_, resp, err := websocket.DefaultDialer.Dial("ws"+s.url[len("http"):]+"/gateway", nil)
		require.Error(t, err)
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	})
	t.Run("no upgrade", func(t *testing.T) {
		s := newStage(t, Options{})
		s.BreakGateway(NoUpgrade)
		dialer := websocket.Dialer{HandshakeTimeout: 50 * time.Millisecond}
		_, _, err := dialer.Dial("ws"+s.url[len("http"):]+"/gateway", nil)
		require.ErrorContains(t, err, "timeout")
	})
}

func TestGateway_Members(t *testing.T) {
	s := newStage(t, Options{})
	g := s.login(testIntents)
	g.say(opMembers, m{"guild_id": s.guild, "query": "", "limit": 0, "nonce": "n"})
	all := g.wait("GUILD_MEMBERS_CHUNK", 1).D
	require.NotNil(t, dig(all, "members.2"))
	require.Equal(t, "n", dig(all, "nonce"))
	g.say(opMembers, m{"guild_id": []ID{s.guild}, "user_ids": []ID{s.lee, "1"}, "limit": 0})
	some := g.wait("GUILD_MEMBERS_CHUNK", 2).D
	require.Equal(t, "lee", dig(some, "members.0.user.username"))
	require.Equal(t, "1", dig(some, "not_found.0"))
}

func TestGateway_Compression(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		each  bool
	}{"stream": {"&compress=zlib-stream", false}, "payload": {"", true}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{})
			ws, _, err := websocket.DefaultDialer.Dial("ws"+s.url[len("http"):]+"/gateway?v=10&encoding=json"+c.query, nil)
			require.NoError(t, err)
			defer ws.Close()
			var stream bytes.Buffer
			var inflater io.Reader
			binary := 0
			next := func() (p packet) {
				kind, raw, err := ws.ReadMessage()
				require.NoError(t, err)
				if kind == websocket.TextMessage {
					require.NoError(t, json.Unmarshal(raw, &p))
					return p
				}
				binary++
				if c.each {
					r, err := zlib.NewReader(bytes.NewReader(raw))
					require.NoError(t, err)
					require.NoError(t, json.NewDecoder(r).Decode(&p))
					return p
				}
				require.Equal(t, []byte{0, 0, 0xff, 0xff}, raw[len(raw)-4:])
				stream.Write(raw)
				if inflater == nil {
					inflater, err = zlib.NewReader(&stream)
					require.NoError(t, err)
				}
				out := make([]byte, 1<<20)
				n, err := inflater.Read(out)
				for err == nil && stream.Len() > 0 {
					var more int
					more, err = inflater.Read(out[n:])
					n += more
				}
				require.NoError(t, json.Unmarshal(out[:n], &p), "%s", strconv.Quote(string(out[:n])))
				return p
			}
			require.Equal(t, opHello, next().Op)
			id := identification(testIntents)
			id["compress"] = c.each
			require.NoError(t, ws.WriteJSON(m{"op": opIdentify, "d": id}))
			require.Equal(t, "READY", *next().T)
			require.Equal(t, "GUILD_CREATE", *next().T)
			require.NotZero(t, binary)
		})
	}
}
