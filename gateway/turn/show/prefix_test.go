package show_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/platforms"
)

// A Slack thread takes no "/": every text of the core names commands there as people can type them.
func TestCommands_AreWrittenAsTheyAreTypedAtThePlace(t *testing.T) {
	for _, lang := range []string{"en", "de"} {
		t.Run(lang, func(t *testing.T) {
			slack := gatewaytest.NewStage("slack")
			slack.Own.ThreadCommandPrefix = "!"
			slack.OnSend = func(out platforms.Outgoing) error {
				if strings.HasPrefix(out.Text.Plain, "re: doubt") {
					return &platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown, Err: errors.New("cut")}
				}
				return nil
			}
			h := gatewaytest.Start(t, gatewaytest.Echo(), slack.On, func(h *gatewaytest.House) { h.Set["display.language"] = lang })
			thread, dm := slack.Place("C1", "17.1"), slack.Place("D1", "")
			for _, text := range []string{"!help", "!help stop", "!title", "!resume nothing", "!model nothing", "!sessions", "!busy", "!whoami"} {
				n := len(slack.Texts(thread))
				slack.Give(h, slack.Message(thread, platforms.Channel, text))
				h.Until("answered "+text, func() bool { return len(slack.Texts(thread)) > n })
			}
			slack.Give(h, slack.Message(thread, platforms.Channel, "doubt"))
			slack.Await(h, thread, "!resend ")
			for _, text := range slack.Texts(thread) {
				require.NotRegexp(t, `(^|[\s(])/[a-z]`, text)
			}
			require.Contains(t, slack.Texts(thread)[0], "!help")
			slack.Give(h, slack.Message(dm, platforms.DM, "/help"))
			slack.Await(h, dm, "/help")
			for _, text := range slack.Texts(dm) {
				require.NotContains(t, text, "!help")
			}
		})
	}
}
