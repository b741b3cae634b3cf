package slacktest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

func TestSocketMode_UnacknowledgedComesAgain(t *testing.T) {
	w := newWorkspace(t, Options{RetryAfter: 20 * time.Millisecond, Retries: 2})
	l := w.listen(false)
	w.fake.Say("", w.dm, "hello")
	got := l.wait("events_api", 3)
	for i, d := range got {
		require.Equal(t, got[0].event(t).ID, d.event(t).ID)
		require.Equal(t, i, d.Attempt)
	}
	require.Empty(t, got[0].Retry)
	require.Equal(t, "timeout", got[1].Retry)
	require.NotEqual(t, got[0].EnvelopeID, got[1].EnvelopeID)
	require.Equal(t, 1, w.fake.Pending(), "two retries are over, and it stays")
	// The acknowledgement of an older delivery counts.
	require.NoError(t, l.ack(got[0].EnvelopeID, nil))
	w.until(func() bool { return w.fake.Pending() == 0 }, "acknowledged")
}

func TestSocketMode_ANewConnectionGetsWhatTheOldLeft(t *testing.T) {
	w := newWorkspace(t, Options{RetryAfter: -1})
	first := w.listen(false)
	w.fake.Say("", w.dm, "one")
	w.fake.Say("", w.dm, "two")
	was := first.wait("events_api", 2)
	w.fake.CutSockets()
	w.until(func() bool { now, _, _ := w.fake.Connections(); return now == 0 }, "cut")
	w.fake.Say("", w.dm, "three")
	second := w.listen(true)
	got := second.wait("events_api", 3)
	for i := range was {
		require.Equal(t, was[i].event(t).ID, got[i].event(t).ID)
		require.Equal(t, 1, got[i].Attempt)
	}
	require.Equal(t, 0, got[2].Attempt)
	w.until(func() bool { return w.fake.Pending() == 0 }, "acknowledged")
	w.fake.Replay(1)
	again := second.wait("events_api", 4)[3]
	require.Equal(t, got[2].event(t).ID, again.event(t).ID)
	require.Equal(t, 1, again.Attempt)
	w.until(func() bool { return w.fake.Pending() == 0 }, "acknowledged")
}

func TestSocketMode_TwiceAndBackwards(t *testing.T) {
	w := newWorkspace(t, Options{})
	l := w.listen(true)
	l.wait("hello", 1)
	w.fake.Break(Fault{Trouble: Twice})
	w.fake.Say("", w.dm, "twice")
	got := l.wait("events_api", 2)
	require.Equal(t, got[0].event(t).ID, got[1].event(t).ID)
	require.NotEqual(t, got[0].EnvelopeID, got[1].EnvelopeID)
	w.until(func() bool { return w.fake.Pending() == 0 }, "acknowledged")
	w.fake.Break(Fault{Trouble: Backwards})
	w.fake.Say("", w.dm, "earlier")
	require.Equal(t, 1, w.fake.Pending())
	w.fake.Say("", w.dm, "later")
	got = l.wait("events_api", 4)
	require.Equal(t, "later", got[2].event(t).Event.Text)
	require.Equal(t, "earlier", got[3].event(t).Event.Text)
	w.fake.Break(Fault{Trouble: Backwards})
	w.fake.Say("", w.dm, "held")
	w.fake.Heal()
	require.Equal(t, "held", l.wait("events_api", 5)[4].event(t).Event.Text)
}

func TestSocketMode_SeveralConnectionsShareTheEvents(t *testing.T) {
	w := newWorkspace(t, Options{MaxConnections: 2})
	a := w.listen(true)
	a.wait("hello", 1) // the service has it; only then is another one the second
	b := w.listen(true)
	require.Equal(t, 2, b.wait("hello", 1)[0].Count)
	refused, err := w.try(t.Context(), w.fake.AppToken(), "apps.connections.open")
	require.NoError(t, err)
	require.Equal(t, "too_many_websockets", refused.Error)
	for range 4 {
		w.fake.Say("", w.dm, "x")
	}
	w.until(func() bool { return len(a.all("events_api"))+len(b.all("events_api")) == 4 }, "each event goes to one")
	require.Len(t, a.all("events_api"), 2)
	now, most, opened := w.fake.Connections()
	require.Equal(t, []int{2, 2, 2}, []int{now, most, opened})
}

func TestSocketMode_TicketsWorkOnce(t *testing.T) {
	w := newWorkspace(t, Options{})
	a, err := w.try(t.Context(), w.fake.AppToken(), "apps.connections.open")
	require.NoError(t, err)
	url := a.body["url"].(string)
	conn, resp, err := websocket.DefaultDialer.Dial(url, nil)
	require.NoError(t, err)
	resp.Body.Close()
	conn.Close()
	_, resp, err = websocket.DefaultDialer.Dial(url, nil)
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
}

func TestSocketMode_Disconnects(t *testing.T) {
	w := newWorkspace(t, Options{})
	l := w.listen(true)
	l.wait("hello", 1)
	w.fake.Disconnect("warning")
	require.Equal(t, "warning", l.wait("disconnect", 1)[0].Reason)
	w.fake.Say("", w.dm, "still here")
	l.wait("events_api", 1)
	w.fake.Disconnect("refresh_requested")
	require.Equal(t, "refresh_requested", l.wait("disconnect", 2)[1].Reason)
	w.fake.Say("", w.dm, "for the next one")
	w.until(func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.ended }, "the server closes it")
	require.Len(t, l.all("events_api"), 1)
	require.Equal(t, "for the next one", w.listen(true).wait("events_api", 1)[0].event(t).Event.Text)

	w.fake.DisableSocketMode(true)
	a, err := w.try(t.Context(), w.fake.AppToken(), "apps.connections.open")
	require.NoError(t, err)
	require.False(t, a.OK)
	w.fake.DisableSocketMode(false)
	w.listen(true).wait("hello", 1)
}

func TestSocketMode_HalfOpen(t *testing.T) {
	w := newWorkspace(t, Options{PingEvery: 5 * time.Millisecond})
	l := w.listen(true)
	l.wait("hello", 1)
	pongs := func() int { l.mu.Lock(); defer l.mu.Unlock(); return l.pongs }
	ping := func() {
		require.NoError(t, l.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)))
	}
	ping()
	w.until(func() bool { return pongs() == 1 }, "a pong")
	w.fake.Deafen()
	ping()
	w.fake.Say("", w.dm, "anybody?")
	silent := w.listen(true) // a new one is as deaf
	w.until(func() bool { now, _, _ := w.fake.Connections(); return now == 2 }, "both stay")
	require.Equal(t, 1, w.fake.Pending())
	w.fake.Hear()
	w.until(func() bool { now, _, _ := w.fake.Connections(); return now == 0 }, "the deaf ones are cut")
	require.Equal(t, 1, pongs())
	require.Empty(t, l.all("events_api"))
	require.Empty(t, silent.all("hello"))
	require.Equal(t, "anybody?", w.listen(true).wait("events_api", 1)[0].event(t).Event.Text)
}

func TestSocketMode_HelloWithheld(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.fake.WithholdHello(true)
	l := w.listen(true)
	w.fake.Say("", w.dm, "x")
	w.until(func() bool { now, _, _ := w.fake.Connections(); return now == 1 }, "connected")
	require.Equal(t, 1, w.fake.Pending())
	require.Empty(t, l.all("hello"))
	w.fake.WithholdHello(false)
	l.wait("hello", 1)
	l.wait("events_api", 1)
}

func TestSocketMode_BigAcknowledgementsAreDropped(t *testing.T) {
	w := newWorkspace(t, Options{})
	l := w.listen(false)
	l.wait("hello", 1)
	id := w.fake.Run(Command{Channel: w.dm, Name: "/x"})
	envelope := l.wait("slash_commands", 1)[0]
	require.True(t, envelope.Accepts)
	big, _ := json.Marshal(map[string]string{"text": strings.Repeat("x", 20<<10)})
	require.NoError(t, l.ack(envelope.EnvelopeID, big))
	require.NoError(t, l.ack(envelope.EnvelopeID, json.RawMessage(`{"text":"small"}`)))
	w.until(func() bool { i, _ := w.fake.Interaction(id); return i.Acked }, "acknowledged")
	require.Equal(t, "small", w.fake.Visible("", w.dm, "")[0].Text)
}

func TestInteractions_AreNotSentAgain(t *testing.T) {
	w := newWorkspace(t, Options{})
	id := w.fake.Run(Command{Channel: w.dm, Name: "/x"})
	i, _ := w.fake.Interaction(id)
	require.Equal(t, "dispatch_failed", i.Failed, "nobody listens")
	l := w.listen(false)
	l.wait("hello", 1)
	require.Empty(t, l.all("slash_commands"))
	id = w.fake.Run(Command{Channel: w.dm, Name: "/x"})
	l.wait("slash_commands", 1)
	w.until(func() bool { i, _ := w.fake.Interaction(id); return i.Failed == "operation_timeout" }, "the person gives up")
	require.Zero(t, w.fake.Pending())
	require.Len(t, l.all("slash_commands"), 1)
}

func TestResponseURL_FiveUsesAndThirtyMinutes(t *testing.T) {
	w := newWorkspace(t, Options{ResponseFor: time.Hour})
	l := w.listen(true)
	l.wait("hello", 1)
	post := w.must("chat.postMessage", "channel", w.dm, "text", "choose", "blocks", oneButton)
	id, ok := w.fake.Press(Press{Channel: w.dm, Message: post["ts"].(string), Button: "Go"})
	require.True(t, ok)
	_, ok = w.fake.Press(Press{Channel: w.dm, Message: post["ts"].(string), Button: "Nothing"})
	require.False(t, ok)
	var pressed struct {
		URL     string `json:"response_url"`
		Actions []struct {
			Value string
			ID    string `json:"action_id"`
		}
		Message struct{ TS string }
	}
	require.NoError(t, json.Unmarshal(l.wait("interactive", 1)[0].Payload, &pressed))
	require.Equal(t, "go", pressed.Actions[0].ID)
	require.Equal(t, post["ts"], pressed.Message.TS)
	respond := func(body string) (int, string) {
		resp, err := w.http.Post(pressed.URL, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer resp.Body.Close()
		var b bytes.Buffer
		_, err = b.ReadFrom(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, b.String()
	}
	status, body := respond(`{"text":"only for you"}`)
	require.Equal(t, 200, status)
	require.Equal(t, "ok", body)
	respond(`{"text":"for all","response_type":"in_channel"}`)
	respond(`{"text":"instead","replace_original":"true"}`)
	status, _ = respond(`{"replace_original":true}`)
	require.Equal(t, 400, status, "no text")
	seen := w.fake.Visible("", w.dm, "")
	require.Len(t, seen, 3)
	require.Equal(t, "instead", seen[0].Text)
	require.Empty(t, seen[0].Buttons)
	require.Equal(t, w.pat.ID, seen[1].Ephemeral)
	require.Empty(t, seen[2].Ephemeral)
	respond(`{"delete_original":true}`)
	require.Len(t, w.fake.Visible("", w.dm, ""), 2)
	status, body = respond(`{"text":"six"}`)
	require.Equal(t, 404, status)
	require.JSONEq(t, `{"ok":false,"error":"used_url"}`, body)
	i, _ := w.fake.Interaction(id)
	require.Len(t, i.Responses, 4)

	old := newWorkspace(t, Options{ResponseFor: time.Nanosecond})
	old.listen(true).wait("hello", 1)
	i, _ = old.fake.Interaction(old.fake.Run(Command{Channel: old.dm, Name: "/x"}))
	resp, err := old.http.Post(i.ResponseURL, "application/json", strings.NewReader(`{"text":"late"}`))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 404, resp.StatusCode)
}

// oneButton is a message's blocks with a button.
const oneButton = `[{"type":"section","text":{"type":"mrkdwn","text":"choose"}},{"type":"actions","elements":[{"type":"button","action_id":"go","text":{"type":"plain_text","text":"Go"},"value":"1"}]}]`

func TestEvents_NeedScopeSubscriptionAndMembership(t *testing.T) {
	w := newWorkspace(t, Options{Events: []string{"message.im", "message.channels", "app_mention"}})
	l := w.listen(true)
	away := w.fake.AddChannel("", Channel{Name: "away", Members: []string{w.pat.ID}, WithoutBot: true}).ID
	secret := w.fake.AddChannel("", Channel{Kind: Private, Members: []string{w.pat.ID}}).ID
	w.fake.Say("", away, "not a member")
	w.fake.Say("", secret, "not subscribed: message.groups")
	w.fake.SetScopes("", "im:history")
	w.fake.Write(Post{Channel: w.general, Text: "no scope", Mention: true})
	ts := w.fake.Say("", w.dm, "heard")
	w.fake.React("", w.dm, ts, "", "eyes")
	w.fake.Say("", w.dm, "heard too")
	got := l.wait("events_api", 2)
	require.Len(t, got, 2)
	require.Equal(t, "heard too", got[1].event(t).Event.Text)

	all := newWorkspace(t, Options{})
	heard := all.listen(true)
	all.must("chat.postMessage", "channel", all.general, "text", "mine")
	own := heard.wait("events_api", 1)[0]
	require.Contains(t, string(own.Payload), `"bot_id":"`+all.team.BotID+`"`, "the app hears itself")
	all.fake.Join("", all.general, all.fake.AddUser("", User{RealName: "New"}).ID)
	require.Equal(t, "channel_join", heard.wait("events_api", 3)[1].event(t).Event.Subtype)
	all.fake.Revoke("", "token_revoked")
	require.Equal(t, "tokens_revoked", heard.wait("events_api", 4)[3].event(t).Event.Type)
}

func TestTeams_AreApart(t *testing.T) {
	w := newWorkspace(t, Options{})
	other := w.fake.AddTeam(Team{Name: "Other"})
	ann := w.fake.AddUser(other.ID, User{RealName: "Ann"})
	dm := w.fake.OpenDM(other.ID, ann.ID)
	l := w.listen(true)
	w.fake.Say(other.ID, dm, "from elsewhere")
	require.Equal(t, other.ID, l.wait("events_api", 1)[0].event(t).Team)
	require.Equal(t, "channel_not_found", w.call("chat.postMessage", "channel", dm, "text", "x").Error)
	a, err := w.try(t.Context(), other.BotToken, "chat.postMessage", "channel", dm, "text", "x")
	require.NoError(t, err)
	require.True(t, a.OK)
	require.Len(t, w.fake.Visible(other.ID, dm, ""), 1)
	require.Equal(t, other.ID, w.fake.Requests("chat.postMessage")[1].Team)
}
