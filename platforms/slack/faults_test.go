package slack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/slacktest"
	"herald/platforms/wire"
)

// Connected is only what has said hello.
func TestSocket_HelloWithheld(t *testing.T) {
	w := startWorld(t)
	w.change = func(o *Options) { o.ConnectTimeout = 200 * time.Millisecond }
	w.fake.WithholdHello(true)
	r := w.begin(t)
	r.until("it is tried again", func() bool { _, _, opened := w.fake.Connections(); return opened >= 2 })
	h := r.Health()
	require.False(t, h.Inbound)
	require.NotEqual(t, "connected", h.State)
	r.until("it says why", func() bool { return strings.Contains(r.Health().Detail, "hello") })
	w.fake.WithholdHello(false)
	r.until("it hears", func() bool { return r.Health().Inbound })
	_, most, _ := w.fake.Connections()
	require.Equal(t, 1, most)
}

// A half-open connection is noticed, closed, and replaced; nothing is lost and nothing comes twice.
func TestSocket_HalfOpen(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Say("", w.dm, "before")
	r.events(1)
	w.fake.Deafen()
	w.fake.Say("", w.dm, "meanwhile")
	r.until("it is noticed", func() bool { return !r.Health().Inbound })
	require.Contains(t, []string{"deaf", "reconnecting"}, r.Health().State)
	w.fake.Hear()
	require.Equal(t, "meanwhile", r.events(2)[1].Message.Text)
	require.True(t, r.Health().Inbound)
	_, most, _ := w.fake.Connections()
	require.Equal(t, 1, most, "the old connection is closed before a new one is opened")
}

// Slack's requests for a new connection are followed at once, with one connection at a time, and what was read is
// acknowledged before.
func TestSocket_Refresh(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	for i, reason := range []string{"warning", "refresh_requested", "refresh_requested"} {
		_, _, opened := w.fake.Connections()
		w.fake.Say("", w.dm, "before "+reason)
		w.fake.Disconnect(reason)
		r.until("a new connection", func() bool { _, _, now := w.fake.Connections(); return now > opened })
		w.fake.Say("", w.dm, "after "+reason)
		r.events(2*i + 2)
	}
	r.until("all is acknowledged", func() bool { return w.fake.Pending() == 0 })
	_, most, _ := w.fake.Connections()
	require.Equal(t, 1, most)
}

func TestSocket_SwitchedOff(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.DisableSocketMode(true)
	r.until("it says so", func() bool {
		h := r.Health()
		return !h.Inbound && strings.Contains(h.Detail, "Socket Mode") || strings.Contains(h.Detail, "xapp-")
	})
}

// An envelope that comes twice at once, or again after a restart, has the same id each time.
func TestSocket_Duplicates(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Break(slacktest.Fault{Trouble: slacktest.Twice})
	w.fake.Write(slacktest.Post{Channel: w.general, User: w.pat.ID, Text: "hi", Mention: true})
	r.until("both", func() bool { return len(r.sink.Offered()) >= 2 })
	id := r.events(1)[0].ID
	sink := r.sink
	r.settled()
	w.fake.Replay(3)
	r = w.run(t)
	r.until("again", func() bool { return len(r.sink.Offered()) >= 1 })
	require.Equal(t, id, r.sink.Offered()[0].ID)
	require.Len(t, sink.Events(), 1)
}

func TestSocket_JunkIsSkipped(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Push("", []byte(`{"type":"message","channel":7,"text":[],"blocks":"x"}`))
	w.fake.Push("", []byte(`[1,2]`))
	w.fake.Push("", []byte(`"text"`))
	w.fake.Say("", w.dm, "still there")
	require.Equal(t, "still there", r.events(1)[0].Message.Text)
	r.until("junk is acknowledged, it would come forever", func() bool { return w.fake.Pending() == 0 })
}

func TestRun_RefusedTokens(t *testing.T) {
	for name, c := range map[string]struct {
		break_        func(w *world)
		setting, hint string
	}{
		"the bot's":           {func(w *world) { w.fake.Revoke("", "invalid_auth") }, "platforms.slack.bot_token", "SLACK_BOT_TOKEN"},
		"the bot's, inactive": {func(w *world) { w.fake.Revoke("", "account_inactive") }, "platforms.slack.bot_token", "install it again"},
		"the app's":           {func(w *world) { w.fake.RevokeApp("invalid_auth") }, "platforms.slack.app_token", "SLACK_APP_TOKEN"},
		"the app's, no scope": {func(w *world) { w.fake.RevokeApp("missing_scope") }, "platforms.slack.app_token", "connections:write"},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWorld(t)
			c.break_(w)
			a := w.Adapter(t).(*Adapter)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := a.Run(ctx, &platformtest.Sink{})
			var start *platforms.StartError
			require.ErrorAs(t, err, &start)
			require.ErrorIs(t, err, platforms.ErrPermanent)
			require.Equal(t, c.setting, start.Setting)
			require.Equal(t, a.Account(), start.Account)
			require.Contains(t, start.Hint, c.hint)
			require.Equal(t, "paused", a.Health().State)
			for _, secret := range a.Secrets() {
				require.NotContains(t, err.Error(), secret)
			}
		})
	}
}

// A token that is revoked while the adapter runs ends it, with the reason.
func TestRun_RevokedLater(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Revoke("", "token_revoked")
	r.until("it pauses", func() bool { return r.Health().State == "paused" })
	var start *platforms.StartError
	require.ErrorAs(t, r.stop(), &start)
}

// Two workspaces share the one connection, and each event reaches its own bot.
func TestHub_TwoWorkspaces(t *testing.T) {
	w := startWorld(t)
	const second = "xoxb-999888777-666555444-othersecretothersecret"
	w.fake.AddTeam(slacktest.Team{ID: "T2", BotToken: second, Name: "Second"})
	sam := w.fake.AddUser("T2", slacktest.User{RealName: "Sam"})
	dm := w.fake.OpenDM("T2", sam.ID)
	o := w.options()
	o.Tokens = append(o.Tokens, Token{Token: second}, Token{Token: testBot}, Token{Token: "xoxb-999888777-666555444-rotated"})
	adapters, err := New(o)
	require.NoError(t, err)
	require.Len(t, adapters, 2)
	ctx, cancel := context.WithCancel(t.Context())
	sinks := []*platformtest.Sink{{}, {}}
	stops := []context.CancelFunc{}
	var wg sync.WaitGroup
	for i, a := range adapters {
		ctx, stop := context.WithCancel(ctx)
		stops = append(stops, stop)
		wg.Go(func() { require.NoError(t, a.Run(ctx, sinks[i])) })
	}
	defer wg.Wait()
	defer cancel()
	until := func(cond func() bool) { t.Helper(); require.Eventually(t, cond, patience, 2*time.Millisecond) }
	until(func() bool { return adapters[0].Health().Inbound && adapters[1].Health().Inbound })
	w.fake.Say("T1", w.dm, "one")
	w.fake.Say("T2", dm, "two")
	until(func() bool { return len(sinks[0].Events()) == 1 && len(sinks[1].Events()) == 1 })
	require.Equal(t, "one", sinks[0].Events()[0].Message.Text)
	e := sinks[1].Events()[0]
	require.Equal(t, "two", e.Message.Text)
	require.Equal(t, platforms.AccountID("999888777-666555444"), e.Address.Account)
	require.Equal(t, platforms.ScopeID("T2"), e.Scope)
	now, most, _ := w.fake.Connections()
	require.Equal(t, 1, now)
	require.Equal(t, 1, most)
	// The connection outlives the first adapter and ends with the last.
	stops[0]()
	until(func() bool { return adapters[0].Health().State == "stopped" })
	w.fake.Say("T2", dm, "three")
	until(func() bool { return len(sinks[1].Events()) == 2 })
	stops[1]()
	until(func() bool { now, _, _ := w.fake.Connections(); return now == 0 })
}

// An event of a workspace that has no token here is dropped with a counter, and does not come again forever.
func TestHub_UnknownWorkspace(t *testing.T) {
	w := startWorld(t)
	reasons := w.watch()
	w.fake.AddTeam(slacktest.Team{ID: "T2"})
	sam := w.fake.AddUser("T2", slacktest.User{RealName: "Sam"})
	dm := w.fake.OpenDM("T2", sam.ID)
	r := w.run(t)
	w.fake.Say("T2", dm, "anybody?")
	require.Equal(t, "team", r.reason(reasons))
	r.until("it is acknowledged", func() bool { return w.fake.Pending() == 0 })
	require.Empty(t, r.sink.Events())
}

func TestOptions_Refused(t *testing.T) {
	good := Options{Tokens: []Token{{Token: testBot}}, AppToken: testApp}
	for name, c := range map[string]struct {
		change func(*Options)
		key    string
	}{
		"no token":           {func(o *Options) { o.Tokens = nil }, "bot_token"},
		"an app token":       {func(o *Options) { o.Tokens[0].Token = testApp }, "bot_token"},
		"a user token":       {func(o *Options) { o.Tokens[0].Token = "xoxp-1-2-3" }, "bot_token"},
		"a broken token":     {func(o *Options) { o.Tokens[0].Token = "xoxb 1 2" }, "bot_token"},
		"no app token":       {func(o *Options) { o.AppToken = "" }, "app_token"},
		"a bot as app token": {func(o *Options) { o.AppToken = testBot }, "app_token"},
		"a bad address":      {func(o *Options) { o.APIURL = "slack.com" }, "api_url"},
		"a bad proxy":        {func(o *Options) { o.Proxy = "::" }, "proxy"},
		"five prompts":       {func(o *Options) { o.Prompts = make([]PromptSettings, 5) }, "suggested_prompts"},
		"a long prefix":      {func(o *Options) { o.ReplyPrefix = strings.Repeat("x", 501) }, "reply_prefix"},
		"a short time":       {func(o *Options) { o.PingEvery = 1 }, "ping_every"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			o.Tokens = []Token{{Token: testBot}}
			c.change(&o)
			_, err := New(o)
			var start *platforms.StartError
			require.ErrorAs(t, err, &start)
			require.Equal(t, "platforms.slack."+c.key, start.Setting)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	a, err := New(good)
	require.NoError(t, err)
	require.Equal(t, platforms.AccountID("111222333-444555666"), a[0].Account().ID)
	require.NotEqual(t, accountOf("xoxb-one"), accountOf("xoxb-two"))
	require.Equal(t, accountOf("xoxb-one"), accountOf("xoxb-one"))
}

func TestReadTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slack_tokens.json")
	none, err := ReadTokens(path)
	require.NoError(t, err)
	require.Empty(t, none)
	require.NoError(t, os.WriteFile(path, []byte(`{"T2":{"token":" xoxb-2 ","team_name":"Two"},"T1":{"token":"xoxb-1"},"T3":{}}`), 0o600))
	got, err := ReadTokens(path)
	require.NoError(t, err)
	require.Equal(t, []Token{{Token: "xoxb-1", Team: "T1"}, {Token: "xoxb-2", Team: "T2"}}, got)
	require.NoError(t, os.WriteFile(path, []byte(`["xoxb-secret"]`), 0o600))
	_, err = ReadTokens(path)
	require.ErrorContains(t, err, path)
	require.NotContains(t, err.Error(), "secret")
	require.Equal(t, []Token{{Token: "a"}, {Token: "b"}}, SplitTokens(" a, ,b"))
}

// The gate: a window of Slack's is never entered, and our own pace is kept.
func TestGate(t *testing.T) {
	g := newGate(&settings{Options: Options{Clock: wire.System{}, Metrics: platforms.NoMetrics{}}, limited: true})
	for range chatBurst {
		err := g.pass(t.Context(), "chat.postMessage", "C1", true)
		require.NoError(t, err)
	}
	err := g.pass(t.Context(), "chat.postMessage", "C1", true)
	require.Equal(t, platforms.RateLimited, platforms.AsSendError(err).Kind)
	err = g.pass(t.Context(), "chat.postMessage", "C2", true)
	require.NoError(t, err, "another channel has its own pace")
	g.shut("chat.postMessage", "C2", time.Minute)
	require.Error(t, g.open("chat.postMessage", "C2"))
	require.Error(t, g.open("chat.update", "C2"))
	require.NoError(t, g.open("chat.postMessage", "C3"), "messages are counted by channel")
	g.shut("chat.update", "C4", time.Minute)
	require.Error(t, g.open("chat.update", "C5"), "other methods by workspace")
	require.NoError(t, g.open("chat.postMessage", "C5"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err = g.pass(ctx, "chat.postMessage", "C1", false)
	require.Equal(t, platforms.RateLimited, platforms.AsSendError(err).Kind, "a turn that would come too late is not waited for")
}

func TestClean_HidesSecrets(t *testing.T) {
	a := offline(t, nil)
	err := a.clean(errors.New("token=" + testBot + " and " + testApp))
	require.NotContains(t, err.Error(), "secret")
	require.ErrorIs(t, a.clean(context.Canceled), context.Canceled)
}
