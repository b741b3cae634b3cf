package directory_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/delivery"
	"herald/gateway/directory"
	"herald/gateway/gatewaytest"
	"herald/platforms"
)

func TestDirectory_NamesResolveAlsoAfterARestart(t *testing.T) {
	s := gatewaytest.NewStage("slack")
	s.Listed = []platforms.Room{{Address: s.Place("C1", ""), Type: platforms.Channel, Name: "general"},
		{Address: s.Place("C2", ""), Type: platforms.Channel, Name: "random"},
		{User: "U7", Type: platforms.DM, Name: "Ann Lee", Aliases: []string{"ann"}}}
	s.Direct = map[platforms.UserID]platforms.ChatID{"U7": "D7"}
	h := gatewaytest.Start(t, gatewaytest.Echo(), s.On)
	e := s.Message(s.Place("C5", "17.1"), platforms.Channel, "hello")
	e.ChatName = "ops"
	s.Give(h, e)
	s.Await(h, e.Address, "hello")

	var lines []directory.Channel
	require.NoError(t, h.Ask("channels", directory.Query{Platform: "Slack", Refresh: true}, &lines))
	targets := map[string]string{}
	for _, l := range lines {
		targets[l.Target] = l.Type + " " + l.Name
	}
	require.Equal(t, map[string]string{"slack:C1": "channel general", "slack:C2": "channel random", "slack:C5": "channel ops", "slack:@U7": "dm Ann Lee"}, targets)
	require.ErrorContains(t, h.Ask("channels", directory.Query{Platform: "slakc"}, &lines), "no platform called")

	send := func(target string) error {
		return h.Ask("send", delivery.SendArgs{Target: target, Text: "to " + target}, &delivery.Sent{})
	}
	require.NoError(t, send("slack:#general"))
	require.NoError(t, send("SLACK:@ann"))
	require.NoError(t, send("slack:#ops:17.1"))
	require.Equal(t, []string{"to slack:#general"}, s.Texts(s.Place("C1", "")))
	require.Equal(t, []string{"to SLACK:@ann"}, s.Texts(s.Place("D7", "")))
	require.Contains(t, s.Texts(e.Address), "to slack:#ops:17.1")
	require.ErrorContains(t, send("slack:#nowhere"), "no room is called #nowhere")
	require.ErrorContains(t, send("slack"), "has no home channel")
	require.ErrorContains(t, send("local"), "nothing was sent")
	before := len(s.Calls())

	h.Halt()
	s.Listed = nil
	h.Run()
	h.Until("it runs", func() bool { return h.Ask("identify", nil, &json.RawMessage{}) == nil })
	require.NoError(t, send("slack:#random"), "what was known is kept")
	require.Len(t, s.Calls(), before+1)
}

func TestSetHome_IsKeptAndWinsOverTheConfiguration(t *testing.T) {
	s := gatewaytest.NewStage("telegram")
	h := gatewaytest.Start(t, gatewaytest.Echo(), s.On, func(h *gatewaytest.House) {
		h.Without("TELEGRAM_BOT_TOKEN")
		h.Env = append(h.Env, "TELEGRAM_HOME_CHANNEL=D0")
	})
	dm, thread := s.Place("D0", ""), s.Place("C1", "17.1")
	send := func(text string) {
		t.Helper()
		require.NoError(t, h.Ask("send", delivery.SendArgs{Target: "telegram", Text: text}, &delivery.Sent{}))
	}
	h.Until("it runs", func() bool { return h.Ask("identify", nil, &json.RawMessage{}) == nil })
	send("to the configured one")
	s.Await(h, dm, "to the configured one")

	s.Give(h, s.Message(thread, platforms.Channel, "/set-home"))
	s.Await(h, thread, "This thread is the home channel now")
	send("to the chosen one")
	s.Await(h, thread, "to the chosen one")

	later := time.Now().Add(time.Hour)
	h.Now = func() time.Time { return later }
	h.Halt()
	h.Run()
	s.Await(h, thread, "Herald is running again")
	require.Len(t, s.Texts(dm), 1, "nothing goes to the other one")
	h.Until("it runs", func() bool { return h.Ask("identify", nil, &json.RawMessage{}) == nil })
	s.Give(h, s.Message(thread, platforms.Channel, "/sethome off"))
	s.Await(h, thread, "the one of the configuration again")
	send("back to the configured one")
	s.Await(h, dm, "back to the configured one")
	s.Give(h, s.Message(thread, platforms.Channel, "/sethome elsewhere"))
	s.Await(h, thread, "elsewhere")
}
