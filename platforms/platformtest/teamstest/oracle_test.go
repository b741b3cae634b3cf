package teamstest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/oracle"
	"herald/platforms/platformtest/teamstest"
)

// bot is a fake with a bot of Microsoft's own library on it.
type bot struct {
	*teamstest.Server
	*oracle.Process
	t    *testing.T
	u    teamstest.User
	chat teamstest.Room
}

func startBot(t *testing.T) *bot {
	fake := teamstest.New(teamstest.Options{StreamEvery: 10 * time.Millisecond})
	t.Cleanup(fake.Close)
	_, err := fake.Start()
	require.NoError(t, err)
	login, ca, err := fake.StartTLS()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, ca, 0o600))
	urls := fake.URLs()
	p := oracle.Start(t, "teams.mjs", "NODE_EXTRA_CA_CERTS="+file, "APP_ID="+fake.AppID(), "APP_SECRET="+fake.Secret(), "TENANT_ID="+fake.TenantID(),
		"OPENID_URL="+urls.OpenID, "LOGIN_URL="+login, "SERVICE_URL="+urls.Service)
	var ready struct{ URL string }
	p.Expect("ready", &ready)
	fake.SetEndpoint(ready.URL)
	u := fake.AddUser("Pat Doe")
	return &bot{fake, p, t, u, fake.Personal(u)}
}

// seen is what the script reports of a message.
type seen struct {
	ID, Conversation, Type, AAD, Tenant string
	Mentions                            int
}

func (b *bot) say(room, word string) (string, seen) {
	b.t.Helper()
	id := b.Say(room, word)
	var got seen
	b.Expect(word, &got)
	return id, got
}

func (b *bot) taken() {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.Pending() == 0 }, 10*time.Second, time.Millisecond)
}

// Messages and threads, edits and deletes, in all three kinds of room.
func TestBotbuilder_Conversations(t *testing.T) {
	b := startBot(t)
	crowd := []teamstest.User{b.u}
	for len(crowd) < 50 { // a page has no fewer
		crowd = append(crowd, b.AddUser("One More"))
	}
	team := b.Team("Crew", append(crowd, b.AddUser("Ann Other"))...)
	plans := b.Channel(team, "Plans")
	group := b.Group("Group", b.u)
	for _, room := range []teamstest.Room{b.chat, group, plans} {
		before := len(b.Visible(room.ID))
		_, got := b.say(room.ID, "reply")
		require.Equal(t, string(room.Type), got.Type)
		require.Equal(t, b.u.AAD, got.AAD)
		require.Equal(t, b.TenantID(), got.Tenant)
		require.Equal(t, room.Type != teamstest.Personal, got.Mentions == 1)
		require.True(t, strings.HasPrefix(got.Conversation, room.ID))
		now := b.Visible(got.Conversation)
		require.Len(t, now, before+1)
		require.Equal(t, "you said: reply", now[before].Text)
		require.Equal(t, got.ID, now[before].ID)
		_, got = b.say(room.ID, "update")
		m, ok := b.Message(room.ID, got.ID)
		require.True(t, ok)
		require.Equal(t, "second", m.Text)
		require.False(t, m.Edited.IsZero())
		_, got = b.say(room.ID, "delete")
		_, ok = b.Message(room.ID, got.ID)
		require.False(t, ok)
	}
	var roster struct {
		Names     []string
		Mail, AAD string
	}
	b.Say(plans.ID, "members")
	b.Expect("members", &roster)
	require.Len(t, roster.Names, 51)
	require.Equal(t, []string{"Pat Doe", "Ann Other"}, []string{roster.Names[0], roster.Names[50]})
	require.Equal(t, b.u.Email, roster.Mail)
	var about struct {
		Name, Group string
		Channels    []string
	}
	b.Say(plans.ID, "team")
	b.Expect("team", &about)
	require.Equal(t, "Crew", about.Name)
	require.Equal(t, team.Group, about.Group)
	require.Equal(t, []string{"General", "Plans"}, about.Channels)
	b.taken()
	require.Equal(t, 1, b.Calls(teamstest.Token), "the library keeps its token")
	require.Empty(t, b.Leaks())
}

// Cards, files, streams and what people do to messages.
func TestBotbuilder_CardsFilesStreams(t *testing.T) {
	b := startBot(t)
	_, card := b.say(b.chat.ID, "card")
	require.Equal(t, []string{"Allow", "Submit"}, []string{b.Visible(b.chat.ID)[0].Buttons[0].Title, b.Visible(b.chat.ID)[0].Buttons[1].Title})
	id, err := b.Press(b.chat.ID, card.ID, "Allow", b.u, map[string]any{"why": "so"})
	require.NoError(t, err)
	var pressed struct {
		Verb, On string
		Data     map[string]string
	}
	b.Expect("executed", &pressed)
	require.Equal(t, "allow", pressed.Verb)
	require.Equal(t, card.ID, pressed.On)
	require.Equal(t, map[string]string{"key": "k1", "why": "so"}, pressed.Data)
	require.Eventually(t, func() bool { i, _ := b.Invocation(id); return i.Done }, 10*time.Second, time.Millisecond)
	answer, _ := b.Invocation(id)
	require.Equal(t, "Thanks", answer.Text, "%+v", answer)
	_, err = b.Press(b.chat.ID, card.ID, "Submit", b.u, nil)
	require.NoError(t, err)
	b.Expect("submitted", nil)

	_, file := b.say(b.chat.ID, "file")
	require.True(t, b.Visible(b.chat.ID)[1].Files[0].Awaiting)
	id, err = b.AnswerConsent(b.chat.ID, file.ID, true)
	require.NoError(t, err)
	var accepted struct{ Status int }
	b.Expect("accepted", &accepted)
	require.Equal(t, 201, accepted.Status)
	shown := b.Visible(b.chat.ID)[2].Files[0]
	require.Equal(t, "report.txt", shown.Name)
	require.Equal(t, "numbers", string(shown.Body))
	require.Eventually(t, func() bool { i, _ := b.Invocation(id); return i.Done && i.Status == 200 }, 10*time.Second, time.Millisecond)
	_, file = b.say(b.chat.ID, "file")
	_, err = b.AnswerConsent(b.chat.ID, file.ID, false)
	require.NoError(t, err)
	b.Expect("declined", nil)

	b.Write(teamstest.Post{Room: b.chat.ID, Text: "read", Files: []teamstest.File{{Name: "notes.txt", MIME: "text/plain",
		Body: []byte("notes")}, {Name: "a.png", MIME: "image/png", Body: []byte("pixels"), Inline: true}}})
	var read struct {
		Found []struct {
			Name, Body   string
			Status, Bare int
		}
	}
	b.Expect("read", &read)
	require.Equal(t, "notes", read.Found[0].Body)
	require.Equal(t, "pixels", read.Found[1].Body)
	require.Equal(t, 401, read.Found[1].Bare, "a picture needs the bot's token")
	require.Contains(t, read.Found[2].Body, "views/original")

	_, streamed := b.say(b.chat.ID, "stream")
	m, ok := b.Message(b.chat.ID, streamed.ID)
	require.True(t, ok)
	require.Equal(t, "A brown fox.", m.Text)
	require.False(t, m.Streaming)

	said, _ := b.say(b.chat.ID, "reply")
	b.Rewrite(b.chat.ID, said, "better")
	var edited struct{ ID, Text string }
	b.Expect("edited", &edited)
	require.Equal(t, said, edited.ID)
	require.Equal(t, "better", edited.Text)
	b.Remove(b.chat.ID, said)
	b.Expect("deleted", nil)
	b.React(b.chat.ID, streamed.ID, "like", b.u)
	var reaction struct {
		Types []string
		On    string
	}
	b.Expect("reaction", &reaction)
	require.Equal(t, []string{"like"}, reaction.Types)
	require.Equal(t, streamed.ID, reaction.On)
	b.Install(b.chat.ID, b.u)
	b.Expect("added", nil)
	b.Expect("installed", nil)
	b.taken()
}

// Sends that answer nothing, tokens that end, and a window that is said clearly.
func TestBotbuilder_ProactiveAndTrouble(t *testing.T) {
	b := startBot(t)
	b.say(b.chat.ID, "reply")
	b.Tell(map[string]string{"do": "proactive"})
	b.Expect("proactive", nil)
	require.Equal(t, "by the way", b.Visible(b.chat.ID)[1].Text)
	other := b.AddUser("Ann Other")
	var created struct{ Conversation, ID string }
	b.Tell(map[string]string{"do": "create", "user": other.ID})
	b.Expect("created", &created)
	require.Equal(t, b.Personal(other).ID, created.Conversation)
	require.Equal(t, "hello there", b.Visible(created.Conversation)[0].Text)
	team := b.Team("Crew", b.u)
	b.Tell(map[string]string{"do": "create", "channel": team.ID})
	b.Expect("created", &created)
	require.Len(t, b.Visible(created.Conversation), 2)

	b.Break(teamstest.Fault{Kind: faults.Status, Status: 429, RetryAfter: time.Second, On: teamstest.Send})
	began := time.Now()
	_, late := b.say(b.chat.ID, "wait")
	require.GreaterOrEqual(t, time.Since(began), time.Second, "the library reads Retry-After")
	require.Empty(t, b.Violations())
	m, ok := b.Message(b.chat.ID, late.ID)
	require.True(t, ok)
	require.Equal(t, "late", m.Text)
	group := b.Group("Group", b.u)
	b.Say(group.ID, "tooMuch")
	var much struct{ Stream, Long, Unknown, Split, Both string }
	b.Expect("tooMuch", &much)
	require.Equal(t, "403 ContentStreamNotAllowed", much.Stream)
	require.Equal(t, "413 MessageSizeTooBig", much.Long)
	require.Equal(t, "404 ActivityNotFoundInConversation", much.Unknown)
	require.Equal(t, "400 BadSyntax", much.Both)
	require.Equal(t, "no id", much.Split)
	b.Refuse(b.chat.ID, 403, "ConversationBlockedByUser")
	b.Say(b.chat.ID, "refused")
	var refused struct {
		Status        int
		Code, Message string
	}
	b.Expect("refused", &refused)
	require.Equal(t, 403, refused.Status)
	require.Equal(t, "ConversationBlockedByUser", refused.Code)
	require.Equal(t, "User blocked the conversation with the bot.", refused.Message)
	b.taken()
}

// The library refuses every token that has a flaw, but the one that it does not look at.
func TestBotbuilder_RefusesFlaws(t *testing.T) {
	b := startBot(t)
	b.say(b.chat.ID, "reply")
	for _, flaw := range teamstest.Flaws() {
		d := b.Forge(teamstest.Post{Room: b.chat.ID, Text: "reply"}, flaw)
		if flaw == teamstest.NoExpiry && d.Status == 200 {
			// jsonwebtoken asks for no exp; our own adapter must. What was forged stands nowhere, so it can't be answered.
			b.Expect("turn failed", nil)
			continue
		}
		require.Contains(t, []int{401, 403, 500}, d.Status, "%s: %s %s", flaw, d.Body, d.Err)
	}
	b.say(b.chat.ID, "reply")
}
