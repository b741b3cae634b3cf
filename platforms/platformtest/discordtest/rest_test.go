package discordtest

import (
	"strings"
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

func TestREST_Refusals(t *testing.T) {
	s := newStage(t, Options{})
	channel := "/channels/" + string(s.channel)
	own := s.post(s.channel, "mine")
	theirs := s.Say(s.channel, "theirs")
	text := func(n int) string { return strings.Repeat("é", n) }
	button := func(id string) m { return m{"type": 2, "style": 1, "label": "x", "custom_id": id} }
	row := func(list ...m) m { return m{"type": 1, "components": list} }
	for name, c := range map[string]struct {
		method, path string
		body         any
		status, code int
		where        string // of the first error of a form
	}{
		"unknown channel":     {"POST", "/channels/1/messages", m{"content": "x"}, 404, 10003, ""},
		"unknown message":     {"PATCH", channel + "/messages/1", m{"content": "x"}, 404, 10008, ""},
		"unknown guild":       {"GET", "/guilds/1", nil, 404, 10004, ""},
		"unknown user":        {"GET", "/users/1", nil, 404, 10013, ""},
		"unknown route":       {"GET", "/nothing", nil, 404, 0, ""},
		"empty":               {"POST", channel + "/messages", m{"content": " \n"}, 400, 50006, ""},
		"at the limit":        {"POST", channel + "/messages", m{"content": text(2000)}, 200, 0, ""},
		"over the limit":      {"POST", channel + "/messages", m{"content": text(2001)}, 400, 50035, "content"},
		"long nonce":          {"POST", channel + "/messages", m{"content": "x", "nonce": text(26)}, 400, 50035, "nonce"},
		"reply to nothing":    {"POST", channel + "/messages", m{"content": "x", "message_reference": m{"message_id": "1"}}, 400, 50035, "message_reference"},
		"reply to nothing ok": {"POST", channel + "/messages", m{"content": "x", "message_reference": m{"message_id": "1", "fail_if_not_exists": false}}, 200, 0, ""},
		"six rows":            {"POST", channel + "/messages", m{"components": []m{row(button("1")), row(button("2")), row(button("3")), row(button("4")), row(button("5")), row(button("6"))}}, 400, 50035, "components"},
		"six buttons":         {"POST", channel + "/messages", m{"components": []m{row(button("1"), button("2"), button("3"), button("4"), button("5"), button("6"))}}, 400, 50035, "components.0.components"},
		"long custom id":      {"POST", channel + "/messages", m{"components": []m{row(button(text(101)))}}, 400, 50035, "components.0.components.0.custom_id"},
		"same custom id":      {"POST", channel + "/messages", m{"components": []m{row(button("1"), button("1"))}}, 400, 50035, "components.0.components.1.custom_id"},
		"edit of another":     {"PATCH", channel + "/messages/" + string(theirs), m{"content": "x"}, 403, 50005, ""},
		"delete of another":   {"DELETE", channel + "/messages/" + string(theirs), nil, 403, 50013, ""},
		"write to a forum":    {"POST", "/channels/" + string(s.forum) + "/messages", m{"content": "x"}, 400, 50008, ""},
		"no emoji":            {"PUT", channel + "/messages/" + string(own) + "/reactions/eyes/@me", nil, 400, 10014, ""},
		"nameless thread":     {"POST", channel + "/messages/" + string(own) + "/threads", m{"name": ""}, 400, 50035, "name"},
		"thread in a DM":      {"POST", "/channels/" + string(s.dm) + "/threads", m{"name": "x"}, 400, 50024, ""},
		"not JSON":            {"POST", channel + "/messages", nil, 400, 50006, ""},
		"too many messages":   {"GET", channel + "/messages?limit=101", nil, 400, 50035, "limit"},
		"upper-case command":  {"POST", "/applications/" + string(s.Bot().ID) + "/commands", m{"name": "Ask", "description": "x"}, 400, 50035, "name"},
		"late interaction":    {"POST", "/interactions/1/x/callback", m{"type": 5}, 404, 10062, ""},
		"unknown webhook":     {"POST", "/webhooks/" + string(s.Bot().ID) + "/x", m{"content": "x"}, 404, 10015, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.do(c.method, c.path, c.body)
			require.Equal(t, c.status, a.status, "%s", a.body)
			if c.status == 200 {
				return
			}
			require.EqualValues(t, c.code, a.at("code"), "%s", a.body)
			require.NotEmpty(t, a.at("message"))
			if c.where != "" {
				require.Equal(t, "Invalid Form Body", a.at("message"))
				require.NotEmpty(t, a.at("errors."+c.where+"._errors.0.code"), "%s", a.body)
			}
		})
	}
}
