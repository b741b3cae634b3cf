package gateway_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

// A Slack thread takes no "/": every text of the core names commands there as people can type them.
func TestCommands_AreWrittenAsTheyAreTypedAtThePlace(t *testing.T) {
	for _, lang := range []string{"en", "de"} {
		t.Run(lang, func(t *testing.T) {
			slack := newStage("slack")
			slack.traits.ThreadCommandPrefix = "!"
			slack.send = func(out platforms.Outgoing) error {
				if strings.HasPrefix(out.Text.Plain, "re: doubt") {
					return &platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown, Err: errors.New("cut")}
				}
				return nil
			}
			h := start(t, echo(), slack.on, func(h *house) { h.set["display.language"] = lang })
			thread, dm := slack.place("C1", "17.1"), slack.place("D1", "")
			for _, text := range []string{"!help", "!help stop", "!title", "!resume nothing", "!model nothing", "!sessions", "!busy", "!whoami"} {
				n := len(slack.texts(thread))
				slack.give(h, slack.message(thread, platforms.Channel, text))
				h.until("answered "+text, func() bool { return len(slack.texts(thread)) > n })
			}
			slack.give(h, slack.message(thread, platforms.Channel, "doubt"))
			slack.await(h, thread, "!resend ")
			for _, text := range slack.texts(thread) {
				require.NotRegexp(t, `(^|[\s(])/[a-z]`, text)
			}
			require.Contains(t, slack.texts(thread)[0], "!help")
			slack.give(h, slack.message(dm, platforms.DM, "/help"))
			slack.await(h, dm, "/help")
			for _, text := range slack.texts(dm) {
				require.NotContains(t, text, "!help")
			}
		})
	}
}
