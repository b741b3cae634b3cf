package discordtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestREST_AMessageGoesOutAndPeopleSeeIt(t *testing.T) {
	s := newStage(t, Options{})
	gateway := s.login(testIntents)
	asked := s.Say(s.channel, "hello")
	require.Equal(t, "hello", dig(gateway.wait("MESSAGE_CREATE", 1).D, "content"))
	a := s.do("POST", "/channels/"+string(s.channel)+"/messages", m{
		"content": "  hi <@" + string(s.pat) + "> ", "nonce": "n1", "message_reference": m{"message_id": asked},
		"allowed_mentions": m{"parse": []string{}, "replied_user": true},
		"components":       []m{{"type": 1, "components": []m{{"type": 2, "style": 1, "label": "Yes", "custom_id": "y"}}}},
	})
	require.Equal(t, 200, a.status, "%s", a.body)
	require.Equal(t, "n1", a.at("nonce"))
	seen := s.Visible(s.channel)
	require.Len(t, seen, 1)
	require.Equal(t, "hi <@"+string(s.pat)+">", seen[0].Text)
	require.Equal(t, asked, seen[0].ReplyTo)
	require.Equal(t, "Yes", seen[0].Buttons[0][0].Label)
	require.Equal(t, []string{string(s.pat)}, seen[0].Pinged)
	press, ok := s.Press(s.channel, seen[0].ID, "y", s.lee)
	require.True(t, ok)
	e := gateway.wait("INTERACTION_CREATE", 1)
	require.Equal(t, "Lee", dig(e.D, "member.user.global_name"))
	a = s.do("POST", "/interactions/"+string(press)+"/"+dig(e.D, "token").(string)+"/callback", m{"type": 7, "data": m{"content": "done", "components": []m{}}})
	require.Equal(t, 204, a.status, "%s", a.body)
	seen = s.Visible(s.channel)
	require.Equal(t, "done", seen[0].Text)
	require.Empty(t, seen[0].Buttons)
	i, _ := s.Interaction(press)
	require.True(t, i.Answered)
	require.Empty(t, s.Unknown())
}
