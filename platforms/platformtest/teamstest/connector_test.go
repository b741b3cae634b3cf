package teamstest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/faults"
)

func card(actions ...any) map[string]any {
	return map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": adaptiveCard,
		"content":     map[string]any{"type": "AdaptiveCard", "version": "1.4", "body": []any{map[string]any{"type": "TextBlock", "text": "May I?"}}, "actions": actions},
	}}}
}

func TestConnector_Threads(t *testing.T) {
	s := newStage(t, Options{})
	team := s.Team("Team", s.u)
	channel := s.Channel(team, "Plans")
	group := s.Group("Group", s.u)
	root := s.Say(channel.ID, "begin")
	a := s.next()
	require.Equal(t, channel.ID+";messageid="+root, a["conversation"].(map[string]any)["id"])
	require.Equal(t, "<at>Herald</at> begin", a["text"])
	answer := s.send(channel.ID+";messageid="+root, text("in the thread"))
	require.Equal(t, 201, answer.status, "%s", answer.body)
	reply := s.call("POST", "v3/conversations/"+url.PathEscape(channel.ID)+"/activities/"+root, text("as a reply"))
	require.Equal(t, 201, reply.status)
	require.Len(t, s.Visible(channel.ID+";messageid="+root), 2)
	fresh := s.send(channel.ID, text("a new thread"))
	m, ok := s.Message(channel.ID, fresh.ID)
	require.True(t, ok)
	require.Equal(t, fresh.ID, m.Thread)
	require.Len(t, s.Visible(channel.ID), 3)

	said := s.Say(group.ID, "flat")
	require.Equal(t, 201, s.call("POST", "v3/conversations/"+group.ID+"/activities/"+said, text("flat reply")).status)
	r := s.send(group.ID+";messageid="+said, text("threaded"))
	require.Equal(t, 400, r.status)
	require.Equal(t, "BadSyntax", r.Error.Code)

	r = s.send(channel.ID+";messageid=123", text("nowhere"))
	require.Equal(t, 404, r.status)
	require.Equal(t, "ActivityNotFoundInConversation", r.Error.Code)
	s.DropThread(channel.ID, root)
	require.Equal(t, 404, s.send(channel.ID+";messageid="+root, text("gone")).status)
	require.Equal(t, 201, s.send(channel.ID, text("the channel lives")).status)
}

func TestConnector_Refusals(t *testing.T) {
	s := newStage(t, Options{})
	theirs := s.Say(s.chat.ID, "mine")
	mine := s.send(s.chat.ID, text("x"))
	at := "v3/conversations/" + s.chat.ID
	long := strings.Repeat("ä", 28<<9)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{"POST", "v3/conversations/a:unknown/activities", text("x"), 404, "ConversationNotFound"},
		{"POST", "v3/conversations/has%20space/activities", text("x"), 400, "BadSyntax"},
		{"POST", at + "/activities", text(""), 400, "BadSyntax"},
		{"POST", at + "/activities", json.RawMessage("{"), 400, "BadSyntax"},
		{"POST", at + "/activities", []byte(`{"type":"message","text":"x"}`), 415, "BadArgument"},
		{"POST", at + "/activities", text(long), 201, ""},
		{"POST", at + "/activities", text(long + "x"), 413, "MessageSizeTooBig"},
		{"POST", at + "/activities", map[string]any{"type": "fun"}, 400, "BadSyntax"},
		{"POST", at + "/activities", map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": "text/plain", "contentUrl": "data:text/plain;base64,eA=="}}}, 400, "BadArgument"},
		{"POST", at + "/activities", map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": adaptiveCard, "content": map[string]any{"type": "AdaptiveCard"}}}}, 400, "BadSyntax"},
		{"POST", at + "/activities", map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": "image/png", "contentUrl": "data:image/png;base64," + base64.StdEncoding.EncodeToString(make([]byte, maxPicture+1))}}}, 413, "MessageSizeTooBig"},
		{"PUT", at + "/activities/1", text("x"), 404, "ActivityNotFoundInConversation"},
		{"PUT", at + "/activities/" + theirs, text("x"), 403, "NotEnoughPermissions"},
		{"PUT", at + "/activities/" + mine.ID, text("y"), 200, ""},
		{"DELETE", at + "/activities/" + mine.ID, nil, 200, ""},
		{"DELETE", at + "/activities/" + mine.ID, nil, 404, "ActivityNotFoundInConversation"},
		{"GET", at + "/members/29:nobody", nil, 404, "MemberNotFoundInConversation"},
		{"GET", at + "/members/" + s.u.AAD, nil, 200, ""},
		{"GET", "v3/attachments/none/views/original", nil, 404, "NotFound"},
		{"GET", "v3/teams/none", nil, 404, "TeamNotFound"},
		{"PUT", at + "/activities/" + theirs + "/reactions/like", nil, 200, ""},
		{"DELETE", at + "/activities/" + theirs + "/reactions/like", nil, 200, ""},
		{"GET", "v3/nothing", nil, 404, ""},
	} {
		r := s.call(c.method, c.path, c.body)
		require.Equal(t, c.status, r.status, "%s %s: %s", c.method, c.path, r.body)
		require.Equal(t, c.code, r.Error.Code, "%s %s", c.method, c.path)
	}
	require.Equal(t, 404, s.do("POST", s.URLs().Base+"/v3/conversations", nil, s.token, nil).status, "the region belongs to the path")
	require.Equal(t, 401, s.do("POST", s.URLs().Service+at+"/activities", text("x"), "", nil).status)
	s.Refuse(s.chat.ID, 403, "ConversationBlockedByUser")
	require.Equal(t, "ConversationBlockedByUser", s.send(s.chat.ID, text("x")).Error.Code)
	s.Refuse(s.chat.ID, 0, "")
	s.Uninstall(s.chat.ID, User{})
	require.Equal(t, "ForbiddenOperationException", s.send(s.chat.ID, text("x")).Error.Code)
	group := s.Group("Group", s.u)
	s.Uninstall(group.ID, User{})
	require.Equal(t, "BotNotInConversationRoster", s.send(group.ID, text("x")).Error.Code)
}

func TestConnector_Create(t *testing.T) {
	s := newStage(t, Options{})
	other := s.AddUser("Ann Other")
	members := []any{map[string]any{"id": other.ID}}
	require.Equal(t, 400, s.call("POST", "v3/conversations", map[string]any{"members": members}).status, "no tenant")
	r := s.call("POST", "v3/conversations", map[string]any{"members": members, "tenantId": s.TenantID()})
	require.Equal(t, 201, r.status, "%s", r.body)
	require.Equal(t, s.Personal(other).ID, r.ID)
	require.Equal(t, 201, s.send(r.ID, text("hello")).status)
	require.Equal(t, 400, s.call("POST", "v3/conversations", map[string]any{"members": []any{map[string]any{"id": "29:x"}}, "tenantId": s.TenantID()}).status)

	crowd := []User{s.u}
	for len(crowd) < 50 {
		crowd = append(crowd, s.AddUser("One More"))
	}
	team := s.Team("Team", append(crowd, other)...)
	r = s.call("POST", "v3/conversations", map[string]any{"isGroup": true, "channelData": map[string]any{"channel": map[string]any{"id": team.ID}}, "activity": text("news")})
	require.Equal(t, 201, r.status, "%s", r.body)
	require.Len(t, s.Visible(r.ID), 1)
	s.Channel(team, "Plans")
	var list struct {
		Conversations []struct {
			ID   string
			Name *string
		}
	}
	require.NoError(t, json.Unmarshal(s.call("GET", "v3/teams/"+team.ID+"/conversations", nil).body, &list))
	require.Len(t, list.Conversations, 2)
	require.Nil(t, list.Conversations[0].Name)
	require.Equal(t, "Plans", *list.Conversations[1].Name)
	var page struct {
		Members []member
		Next    string `json:"continuationToken"`
	}
	require.NoError(t, json.Unmarshal(s.call("GET", "v3/conversations/"+team.ID+"/pagedmembers?pageSize=1", nil).body, &page))
	require.Len(t, page.Members, 50, "a page has at least 50")
	require.Equal(t, "50", page.Next)
	page.Next = ""
	require.NoError(t, json.Unmarshal(s.call("GET", "v3/conversations/"+team.ID+"/pagedmembers?pageSize=1&continuationToken=50", nil).body, &page))
	require.Equal(t, other.AAD, page.Members[0].AAD)
	require.Empty(t, page.Next)
}

func TestPress_ExecuteAndSubmit(t *testing.T) {
	s := newStage(t, Options{})
	answers := map[string]string{
		"message": `{"statusCode":200,"type":"application/vnd.microsoft.activity.message","value":"Thanks"}`,
		"card":    `{"statusCode":200,"type":"application/vnd.microsoft.card.adaptive","value":{"type":"AdaptiveCard"}}`,
		"nothing": ``, "failed": `{"statusCode":500,"type":"application/vnd.microsoft.error","value":{}}`,
	}
	s.answer = func(w http.ResponseWriter, a map[string]any) {
		if a["name"] == "adaptiveCard/action" {
			_, _ = w.Write([]byte(answers[a["value"].(map[string]any)["action"].(map[string]any)["verb"].(string)]))
		}
	}
	var actions []any
	for verb := range answers {
		actions = append(actions, map[string]any{"type": "Action.Execute", "title": verb, "verb": verb, "data": map[string]any{"k": 1}})
	}
	actions = append(actions, map[string]any{"type": "Action.Submit", "title": "Submit", "data": map[string]any{"k": 2}},
		map[string]any{"type": "Action.Submit", "title": "Back", "data": map[string]any{"msteams": map[string]any{"type": "messageBack", "text": "said", "value": map[string]any{"v": 1}}}})
	sent := s.send(s.chat.ID, card(actions...))
	require.Equal(t, 201, sent.status, "%s", sent.body)
	require.Equal(t, "May I?", s.Visible(s.chat.ID)[0].CardText)
	for verb := range answers {
		id, err := s.Press(s.chat.ID, sent.ID, verb, User{}, map[string]any{"in": "put"})
		require.NoError(t, err)
		a := s.next()
		require.Equal(t, map[string]any{"k": 1.0, "in": "put"}, a["value"].(map[string]any)["action"].(map[string]any)["data"])
		require.Equal(t, sent.ID, a["replyToId"])
		var i Invocation
		require.Eventually(t, func() bool { i, _ = s.Invocation(id); return i.Done }, 5*time.Second, time.Millisecond)
		require.Equal(t, verb == "message" || verb == "card", i.Err == "", "%s: %s", verb, i.Err)
		require.Equal(t, verb == "message", i.Text == "Thanks")
		require.Equal(t, verb == "card", i.Card != nil)
	}
	_, err := s.Press(s.chat.ID, sent.ID, "Submit", User{}, nil)
	require.NoError(t, err)
	a := s.next()
	require.Equal(t, "message", a["type"])
	require.Equal(t, map[string]any{"k": 2.0}, a["value"])
	require.Nil(t, a["text"])
	_, err = s.Press(s.chat.ID, sent.ID, "Back", User{}, nil)
	require.NoError(t, err)
	require.Equal(t, "said", s.next()["text"])
	_, err = s.Press(s.chat.ID, sent.ID, "None", User{}, nil)
	require.Error(t, err)
}

// P8: a request inside a window is refused and remembered; other rooms go on.
func TestFault_Windows(t *testing.T) {
	s := newStage(t, Options{})
	other := s.Personal(s.AddUser("Ann"))
	s.Break(Fault{Kind: faults.Status, Status: 429, RetryAfter: time.Minute})
	r := s.send(s.chat.ID, text("x"))
	require.Equal(t, 429, r.status)
	require.Equal(t, "60", r.header.Get("Retry-After"))
	require.Empty(t, s.Violations())
	require.Equal(t, 201, s.send(other.ID, text("x")).status)
	require.Equal(t, 429, s.send(s.chat.ID, map[string]any{"type": "typing"}).status)
	require.Len(t, s.Violations(), 1)
	s.Heal()
	require.Equal(t, 201, s.send(s.chat.ID, text("x")).status)
	s.Break(Fault{Kind: faults.Status, Status: 401})
	require.Equal(t, 401, s.send(s.chat.ID, text("x")).status)
	require.Equal(t, 401, s.send(s.chat.ID, text("x")).status, "the token is revoked")
	s.Break(Fault{Kind: faults.Status, On: Keys, Status: 500, Times: -1})
	require.Equal(t, 500, s.do("GET", s.URLs().Base+"/v1/.well-known/keys", nil, "", nil).status)
	s.Heal()
	require.Equal(t, 200, s.do("GET", s.URLs().Base+"/v1/.well-known/keys", nil, "", nil).status)
}

// The eighth send of a second is refused, the other rooms go on.
func TestQuotas(t *testing.T) {
	s := newStage(t, Options{Quotas: true})
	other := s.Personal(s.AddUser("Ann"))
	refused := 0
	for range 8 {
		if r := s.send(s.chat.ID, text("x")); r.status == 429 {
			refused++
			require.NotEmpty(t, r.header.Get("Retry-After"))
		}
	}
	require.Equal(t, 1, refused)
	require.Len(t, s.Visible(s.chat.ID), 7)
	require.Equal(t, 429, s.send(s.chat.ID, text("x")).status)
	require.Len(t, s.Violations(), 1)
	require.Equal(t, 201, s.send(other.ID, text("x")).status)
}

// A guest's chat belongs to the guest's tenant, and is made with that one only.
func TestGuests(t *testing.T) {
	s := newStage(t, Options{})
	guest := s.AddGuest("Gus Guest", "55555555-aaaa-4bbb-8ccc-000000000001")
	for tenant, status := range map[string]int{s.TenantID(): 403, guest.Tenant: 201} {
		r := s.call("POST", "v3/conversations", map[string]any{"members": []any{map[string]any{"id": guest.ID}}, "tenantId": tenant})
		require.Equal(t, status, r.status, "%s", r.body)
	}
	s.Say(s.Personal(guest).ID, "hello")
	a := s.next()
	require.Equal(t, guest.Tenant, a["conversation"].(map[string]any)["tenantId"])
	require.Equal(t, guest.Tenant, a["channelData"].(map[string]any)["tenant"].(map[string]any)["id"])
	older := s.do("POST", s.URLs().Base+"/amer/v3/conversations/"+s.Personal(guest).ID+"/activities", text("x"), s.token, nil)
	require.Equal(t, 201, older.status, "%s", older.body)
}

// Text and a card are two messages without an id, and can be no update and no beginning of a thread.
func TestConnector_SplitsTextAndCards(t *testing.T) {
	s := newStage(t, Options{})
	both := card(map[string]any{"type": "Action.Execute", "title": "Yes", "verb": "y"})
	both["text"] = "beside"
	r := s.send(s.chat.ID, both)
	require.Equal(t, 202, r.status)
	require.Empty(t, r.body)
	seen := s.Visible(s.chat.ID)
	require.Len(t, seen, 2)
	require.Equal(t, []string{"beside", "May I?"}, []string{seen[0].Text, seen[1].Text})
	require.Empty(t, seen[0].Buttons)
	require.Len(t, seen[1].Buttons, 1)
	at := "v3/conversations/" + s.chat.ID + "/activities/"
	r = s.call("PUT", at+seen[0].ID, both)
	require.Equal(t, 400, r.status)
	require.Equal(t, "Activity resulted into multiple skype activities", r.Error.Message)
	require.Equal(t, "beside", s.Visible(s.chat.ID)[0].Text)
	require.Equal(t, 200, s.call("PUT", at+seen[0].ID, card()).status)
	require.Equal(t, 200, s.call("PUT", at+seen[1].ID, text("done")).status)
	team := s.Team("Team", s.u)
	r = s.call("POST", "v3/conversations", map[string]any{"isGroup": true, "channelData": map[string]any{"channel": map[string]any{"id": team.ID}}, "activity": both})
	require.Equal(t, 400, r.status)
	two := map[string]any{"type": "message", "attachments": append(card()["attachments"].([]any), card()["attachments"].([]any)...)}
	require.Equal(t, 202, s.send(team.ID, two).status)
	two["attachmentLayout"] = "carousel"
	require.Equal(t, 201, s.send(team.ID, two).status)
	require.Len(t, s.Visible(team.ID), 3)
	s.Vague(true)
	r = s.send(s.chat.ID, text("no id"))
	require.Equal(t, 202, r.status)
	require.Empty(t, r.body)
	require.Equal(t, "no id", s.Visible(s.chat.ID)[2].Text)
}
