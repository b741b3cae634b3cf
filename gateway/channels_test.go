package gateway_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/admin"
	"herald/gateway/config"
	"herald/gateway/delivery"
	"herald/gateway/directory"
	"herald/platforms"
)

// ask runs a verb of the control socket.
func (h *house) ask(verb string, args, reply any) error {
	h.t.Helper()
	return admin.Call(h.t.Context(), config.PathsFor(h.home).Socket, verb, args, reply)
}

func TestDirectory_NamesResolveAlsoAfterARestart(t *testing.T) {
	s := newStage("slack")
	s.rooms = []platforms.Room{{Address: s.place("C1", ""), Type: platforms.Channel, Name: "general"}, {Address: s.place("C2", ""), Type: platforms.Channel, Name: "random"},
		{User: "U7", Type: platforms.DM, Name: "Ann Lee", Aliases: []string{"ann"}}}
	s.open = map[platforms.UserID]platforms.ChatID{"U7": "D7"}
	h := start(t, echo(), s.on)
	e := s.message(s.place("C5", "17.1"), platforms.Channel, "hello")
	e.ChatName = "ops"
	s.give(h, e)
	s.await(h, e.Address, "hello")

	var lines []directory.Channel
	require.NoError(t, h.ask("channels", directory.Query{Platform: "Slack", Refresh: true}, &lines))
	targets := map[string]string{}
	for _, l := range lines {
		targets[l.Target] = l.Type + " " + l.Name
	}
	require.Equal(t, map[string]string{"slack:C1": "channel general", "slack:C2": "channel random", "slack:C5": "channel ops", "slack:@U7": "dm Ann Lee"}, targets)
	require.ErrorContains(t, h.ask("channels", directory.Query{Platform: "slakc"}, &lines), "no platform called")

	send := func(target string) error {
		return h.ask("send", delivery.SendArgs{Target: target, Text: "to " + target}, &delivery.Sent{})
	}
	require.NoError(t, send("slack:#general"))
	require.NoError(t, send("SLACK:@ann"))
	require.NoError(t, send("slack:#ops:17.1"))
	require.Equal(t, []string{"to slack:#general"}, s.texts(s.place("C1", "")))
	require.Equal(t, []string{"to SLACK:@ann"}, s.texts(s.place("D7", "")))
	require.Contains(t, s.texts(e.Address), "to slack:#ops:17.1")
	require.ErrorContains(t, send("slack:#nowhere"), "no room is called #nowhere")
	require.ErrorContains(t, send("slack"), "has no home channel")
	require.ErrorContains(t, send("local"), "nothing was sent")
	before := len(s.calls())

	h.halt()
	s.rooms = nil
	h.run()
	h.until("it runs", func() bool { return h.ask("identify", nil, &json.RawMessage{}) == nil })
	require.NoError(t, send("slack:#random"), "what was known is kept")
	require.Len(t, s.calls(), before+1)
}

func TestSetHome_IsKeptAndWinsOverTheConfiguration(t *testing.T) {
	s := newStage("telegram")
	h := start(t, echo(), s.on, func(h *house) {
		h.env = append(without(h.env, "TELEGRAM_BOT_TOKEN="), "TELEGRAM_HOME_CHANNEL=D0")
	})
	dm, thread := s.place("D0", ""), s.place("C1", "17.1")
	send := func(text string) {
		t.Helper()
		require.NoError(t, h.ask("send", delivery.SendArgs{Target: "telegram", Text: text}, &delivery.Sent{}))
	}
	h.until("it runs", func() bool { return h.ask("identify", nil, &json.RawMessage{}) == nil })
	send("to the configured one")
	s.await(h, dm, "to the configured one")

	s.give(h, s.message(thread, platforms.Channel, "/set-home"))
	s.await(h, thread, "This thread is the home channel now")
	send("to the chosen one")
	s.await(h, thread, "to the chosen one")

	later := time.Now().Add(time.Hour)
	h.now = func() time.Time { return later }
	h.halt()
	h.run()
	s.await(h, thread, "Herald is running again")
	require.Len(t, s.texts(dm), 1, "nothing goes to the other one")
	h.until("it runs", func() bool { return h.ask("identify", nil, &json.RawMessage{}) == nil })
	s.give(h, s.message(thread, platforms.Channel, "/sethome off"))
	s.await(h, thread, "the one of the configuration again")
	send("back to the configured one")
	s.await(h, dm, "back to the configured one")
	s.give(h, s.message(thread, platforms.Channel, "/sethome elsewhere"))
	s.await(h, thread, "elsewhere")
}
