package discord

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/discordtest"
)

// Close codes that waiting can't mend stop the account and name what to do; the others are resumed or begun again.
func TestGateway_CloseCodes(t *testing.T) {
	for _, c := range []struct {
		code   int
		says   string // of the StartError; empty: it goes on
		resume bool
	}{
		{4004, "DISCORD_BOT_TOKEN", false},
		{4010, "close code 4010", false},
		{4011, "too many servers", false},
		{4012, "close code 4012", false},
		{4013, "close code 4013", false},
		{4014, "switch on Message Content Intent under Privileged Gateway Intents", false},
		{4000, "", true},
		{4008, "", true},
		{1011, "", true},
		{4007, "", false},
		{4009, "", false},
		{1000, "", false},
	} {
		t.Run(fmt.Sprint(c.code), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, discordtest.Options{}, nil)
			identifies, resumes := r.fake.Identifies(), r.fake.Resumes()
			r.fake.CloseGateway(c.code)
			if c.says != "" {
				err := r.gaveUp()
				require.Contains(t, err.Error(), c.says)
				require.False(t, r.a.Health().Inbound)
				require.Equal(t, "paused", r.a.Health().State)
				return
			}
			r.until("it is back", func() bool {
				return r.a.Health().Inbound && r.fake.Identifies()+r.fake.Resumes() > identifies+resumes
			})
			require.Equal(t, c.resume, r.fake.Resumes() > resumes)
			require.LessOrEqual(t, r.fake.Receivers(), 1)
		})
	}
}

// A missing switch of the portal is named before anything works.
func TestGateway_DisallowedIntents(t *testing.T) {
	r := prepareRig(t, discordtest.Options{WithoutIntents: discordtest.IntentMembers}, func(o *Options) { o.LookupRoles = true })
	r.launch()
	require.Contains(t, r.gaveUp().Error(), "Server Members Intent")
}

func TestGateway_WrongToken(t *testing.T) {
	r := prepareRig(t, discordtest.Options{}, func(o *Options) { o.Token = "wrong.token.here" })
	r.launch()
	err := r.gaveUp()
	require.Contains(t, err.Error(), "was refused by Discord")
	require.NotContains(t, err.Error(), "wrong.token")
}

// Each step of opening is bounded: HELLO and READY that do not come, and an upgrade that is never answered.
func TestGateway_OpeningIsBounded(t *testing.T) {
	for _, trouble := range []discordtest.GatewayTrouble{discordtest.NoHello, discordtest.NoReady, discordtest.NoUpgrade,
		discordtest.Refused} {
		t.Run(string(trouble), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, discordtest.Options{}, func(o *Options) { o.OpenTimeout, o.ConnectTimeout = 100*time.Millisecond, 200*time.Millisecond })
			r.fake.BreakGateway(trouble)
			r.fake.CloseGateway(4000)
			r.until("it is noticed", func() bool { return !r.a.Health().Inbound && r.a.Health().Detail != "" })
			r.fake.Say(r.dm, "said meanwhile")
			r.until("it is tried again", func() bool { return strings.Count(r.log.String(), "connecting again") >= 3 })
			require.LessOrEqual(t, r.fake.Connections(), 2, "old connections are closed first")
			r.fake.Mend(trouble)
			require.Equal(t, "said meanwhile", r.last(1).Message.Text)
			r.until("all is well", func() bool { return r.a.Health().Inbound })
		})
	}
}

// Heartbeats without an answer end a connection, though events go on over it.
func TestGateway_MissingAcksAreDeaf(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.BreakGateway(discordtest.NoAcks)
	r.until("the silence is noticed", func() bool { return strings.Contains(r.log.String(), deafDetail) })
	r.fake.Mend(discordtest.NoAcks)
	r.until("all is well", func() bool { return r.a.Health().Inbound })
	require.LessOrEqual(t, r.fake.Receivers(), 1)
	r.fake.Say(r.dm, "hello")
	r.last(1)
}

// Op 7: the session is resumed at once, on the next connection.
func TestGateway_ReconnectRequest(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	resumes, identifies := r.fake.Resumes(), r.fake.Identifies()
	r.fake.Reconnect()
	r.until("it is resumed", func() bool { return r.fake.Resumes() > resumes && r.a.Health().Inbound })
	require.Equal(t, identifies, r.fake.Identifies())
}

// Op 9: a session that can be resumed is, one that can't is begun again, after the wait that Discord asks for.
func TestGateway_InvalidSession(t *testing.T) {
	for _, resumable := range []bool{true, false} {
		t.Run(fmt.Sprint(resumable), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, discordtest.Options{}, nil)
			resumes, identifies := r.fake.Resumes(), r.fake.Identifies()
			r.fake.Invalidate(resumable)
			r.until("it is back", func() bool {
				return r.a.Health().Inbound && r.fake.Resumes()+r.fake.Identifies() > resumes+identifies
			})
			require.Equal(t, resumable, r.fake.Identifies() == identifies)
			r.fake.Say(r.dm, "hello")
			r.last(1)
		})
	}
}

// What the core has not committed is replayed after a crash: the session and the number outlive the process.
func TestGateway_ARestartResumes(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.Say(r.dm, "one")
	r.last(1)
	r.sink.Fail(platforms.ErrRefused)
	r.fake.Say(r.dm, "two")
	r.until("it is offered", func() bool { return len(r.sink.Offered()) >= 2 })
	r.until("health says so", func() bool { return r.a.Health().State == "paused" })
	identifies := r.fake.Identifies()
	r.stop()
	r.fake.Say(r.dm, "three")
	r.sink.Fail(nil)
	r.start()
	events := r.events(3)
	require.Equal(t, "two", events[1].Message.Text)
	require.Equal(t, "three", events[2].Message.Text)
	require.Equal(t, identifies, r.fake.Identifies())
	// A thread that this process has never heard of is looked up before its first event is handed on.
	r.fake.Write(discordtest.Post{Channel: r.thread, Text: "hello", MentionBot: true})
	require.Equal(t, address(r.channel, r.thread), r.last(4).Address)
}

// A session that Discord has forgotten is begun again, and that messages may be missing is said.
func TestGateway_ALostSessionIsSaid(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.stop()
	r.fake.Forget()
	r.start()
	r.until("it is said", func() bool { return strings.Contains(r.log.String(), "a new session has begun") })
	r.until("all is well", func() bool { return r.a.Health().Inbound })
}

// Events and opcodes that nobody knows do no harm, nor do payloads that can't be read.
func TestGateway_UnknownThings(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.BreakGateway(discordtest.UnknownEvents)
	r.fake.Say(r.dm, "hello")
	r.last(1)
	for _, bad := range []frame{
		{T: "MESSAGE_CREATE", D: []byte(`{"id":5}`)}, {T: "MESSAGE_CREATE", D: []byte(`[]`)}, {T: "INTERACTION_CREATE", D: []byte(`"x"`)},
		{T: "READY", D: []byte(`7`)}, {T: "GUILD_CREATE", D: []byte(`{"channels":1}`)}, {T: "MESSAGE_REACTION_ADD", D: nil},
		{T: "MESSAGE_CREATE", D: []byte(`{"id":"1","channel_id":"2"}`)}, {T: "MESSAGE_UPDATE", D: []byte(`{"id":"1","channel_id":"2"}`)},
	} {
		require.NoError(t, r.a.dispatch(t.Context(), &link{a: r.a, sink: r.sink}, bad))
	}
	require.Len(t, r.sink.Events(), 1)
}

// The version and the encoding are ours, whatever the API names.
func TestGateway_AddressOfAGateway(t *testing.T) {
	for raw, want := range map[string]string{
		"wss://gateway.discord.gg":           "wss://gateway.discord.gg/?v=10&encoding=json",
		"wss://gateway-us-east1.discord.gg/": "wss://gateway-us-east1.discord.gg/?v=10&encoding=json",
		"ws://127.0.0.1:1/gateway?v=6":       "ws://127.0.0.1:1/gateway/?v=10&encoding=json",
	} {
		got, err := withVersion(raw)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, raw := range []string{"", "https://discord.com", "://", "wss://"} {
		_, err := withVersion(raw)
		require.Error(t, err, raw)
	}
}

// Discord allows a number of new sessions a day: when none is left, none is asked for until there is one again. A session
// that can be resumed costs none.
func TestGateway_NoSessionsLeft(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"url":"wss://gateway.example","shards":1,"session_start_limit":{"total":1000,"remaining":0,"reset_after":90000}}`))
	}))
	defer server.Close()
	a, err := New(Options{Token: testToken, APIURL: server.URL})
	require.NoError(t, err)
	defer a.moves.CloseIdleConnections()
	l := &link{a: a}
	_, err = l.address(t.Context())
	require.Equal(t, platforms.RateLimited, failure(t, err).Kind)
	require.Equal(t, 90*time.Second, failure(t, err).RetryAfter)
	a.begin(&ready{SessionID: "s", ResumeURL: "wss://resume.example"}, 5)
	address, err := l.address(t.Context())
	require.NoError(t, err)
	require.Equal(t, "wss://resume.example/?v=10&encoding=json", address)
	l.failures = 3
	_, err = l.address(t.Context())
	require.NoError(t, err, "where resuming failed it is tried at the usual address")
}
