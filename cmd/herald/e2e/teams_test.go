package e2e_test

import (
	"archive/zip"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/teamstest"
)

// teamsOffice is a tenant with a person, a channel, and Herald as its bot.
type teamsOffice struct {
	*daemon
	fake    *teamstest.Server
	dm      teamstest.Room
	channel teamstest.Room
	root    string // of a thread in the channel
}

// A person who sets nothing but Teams' usual variables holds a direct chat and a thread of a channel, presses a button, and
// exchanges files.
func TestTeams_UsualVariablesAreEnough(t *testing.T) {
	o := newTeamsOffice(t)
	o.chatsInPrivate()
	o.growsAnAnswer()
	o.answersInTheThread()
	o.takesAPress()
	o.exchangesFiles()
	o.restarts()
	require.Empty(t, o.fake.Leaks())
	require.Empty(t, o.fake.Violations())
}

func newTeamsOffice(t *testing.T) *teamsOffice {
	o := &teamsOffice{fake: teamstest.New(teamstest.Options{})}
	_, err := o.fake.Start()
	require.NoError(t, err)
	t.Cleanup(o.fake.Close)
	pat := o.fake.AddUser("Pat Doe")
	o.dm = o.fake.Personal(pat)
	o.channel = o.fake.Channel(o.fake.Team("Contoso", pat), "news")
	o.root = o.fake.Write(teamstest.Post{Room: o.channel.ID, Text: "a thread"})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	require.NoError(t, free.Close())
	o.fake.SetEndpoint("http://127.0.0.1:" + port + "/api/messages")
	p, u := newPlace(t), o.fake.URLs()
	p.env = append(p.env, "TEAMS_CLIENT_ID="+o.fake.AppID(), "TEAMS_CLIENT_SECRET="+o.fake.Secret(), "TEAMS_TENANT_ID="+o.fake.TenantID(),
		"TEAMS_ALLOWED_USERS="+pat.AAD, "TEAMS_HOST=127.0.0.1", "TEAMS_PORT="+port, "TEAMS_SERVICE_URL="+u.Service,
		"HERALD_TEAMS_LOGIN_URL="+u.Login, "HERALD_TEAMS_OPENID_URL="+u.OpenID, "HERALD_TEAMS_GRAPH_URL="+u.Graph)
	o.daemon = p.run("--set", "streaming.enabled=true")
	o.until("the webhook answers", func() bool {
		resp, err := http.Get("http://127.0.0.1:" + port + "/health")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return o
}

// say makes the person write.
func (o *teamsOffice) say(p teamstest.Post) string { return o.fake.Write(p) }

// sees waits until the bot has written part in a conversation, for good.
func (o *teamsOffice) sees(conversation, part string) teamstest.Message {
	o.t.Helper()
	var found teamstest.Message
	o.until("Teams shows "+part, func() bool {
		for _, m := range o.fake.Visible(conversation) {
			if !m.Streaming && strings.Contains(m.Text, part) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func (o *teamsOffice) thread() string { return o.channel.ID + ";messageid=" + o.root }

func (o *teamsOffice) chatsInPrivate() {
	o.say(teamstest.Post{Room: o.dm.ID, Text: "what is 6 times 7?"})
	o.sees(o.dm.ID, "= 42")
	require.Contains(o.t, o.good("status"), "teams/"+o.fake.AppID())
}

// growsAnAnswer: a long answer in a personal chat is one stream from its first word to its last.
func (o *teamsOffice) growsAnAnswer() {
	before := len(o.fake.Visible(o.dm.ID))
	o.say(teamstest.Post{Room: o.dm.ID, Text: "count to 70 slowly"})
	last := o.sees(o.dm.ID, "70")
	require.Len(o.t, o.fake.Visible(o.dm.ID), before+1)
	states := 0
	for _, act := range o.fake.Acts(o.dm.ID) {
		if act.Verb == "stream" {
			states++
			require.Equal(o.t, last.ID, act.Message)
			require.True(o.t, strings.HasPrefix(last.Text, act.Text), "%q is no beginning of the answer", act.Text)
		}
	}
	require.GreaterOrEqual(o.t, states, 2)
}

func (o *teamsOffice) answersInTheThread() {
	o.say(teamstest.Post{Room: o.channel.ID, Thread: o.root, Mention: true, Text: "what is 6 times 8?"})
	o.sees(o.thread(), "= 48")
	for _, m := range o.fake.Visible(o.channel.ID) {
		require.Equal(o.t, o.root, m.Thread, "%q stands outside the thread", m.Text)
	}
}

func (o *teamsOffice) takesAPress() {
	o.say(teamstest.Post{Room: o.channel.ID, Thread: o.root, Mention: true, Text: "ask me which colour I like: red, green or blue"})
	var asked teamstest.Message
	o.until("the question has buttons", func() bool {
		for _, m := range o.fake.Visible(o.thread()) {
			if len(m.Buttons) >= 3 {
				asked = m
				return true
			}
		}
		return false
	})
	id, err := o.fake.Press(o.channel.ID, asked.ID, "green", teamstest.User{}, nil)
	require.NoError(o.t, err)
	o.until("the press is answered", func() bool { i, _ := o.fake.Invocation(id); return i.Done })
	i, _ := o.fake.Invocation(id)
	require.Empty(o.t, i.Err)
	o.sees(o.thread(), "green")
}

func (o *teamsOffice) exchangesFiles() {
	body := []byte("one\ntwo\nthree\n")
	o.say(teamstest.Post{Room: o.dm.ID, Files: []teamstest.File{{Name: "notes.txt", MIME: "text/plain", Body: body}}})
	o.sees(o.dm.ID, "notes.txt")
	o.say(teamstest.Post{Room: o.dm.ID, Text: "send it back"})
	var card teamstest.Message
	o.until("a card asks for consent", func() bool {
		for _, m := range o.fake.Visible(o.dm.ID) {
			if len(m.Files) == 1 && m.Files[0].Awaiting {
				card = m
				return true
			}
		}
		return false
	})
	_, err := o.fake.AnswerConsent(o.dm.ID, card.ID, true)
	require.NoError(o.t, err)
	o.until("the file is there", func() bool {
		for _, m := range o.fake.Visible(o.dm.ID) {
			if len(m.Files) == 1 && m.Files[0].URL != "" {
				require.Equal(o.t, string(body), string(m.Files[0].Body))
				return true
			}
		}
		return false
	})
}

// restarts: what was said while the daemon was down is answered when it is back.
func (o *teamsOffice) restarts() {
	o.stop()
	o.say(teamstest.Post{Room: o.dm.ID, Text: "what is 6 times 9?"})
	o.daemon = o.place.run()
	o.sees(o.dm.ID, "= 54")
}

// With port 0 Herald's own HTTP listener takes the webhook; a stranger gets no answer.
func TestTeams_OnTheCommonListener(t *testing.T) {
	fake := teamstest.New(teamstest.Options{})
	_, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	chat, stranger := fake.Personal(fake.AddUser("Pat Doe")), fake.Personal(fake.AddUser("Kim Li"))
	p, u := newPlace(t), fake.URLs()
	p.env = append(p.env, "TEAMS_CLIENT_ID="+fake.AppID(), "TEAMS_CLIENT_SECRET="+fake.Secret(), "TEAMS_TENANT_ID="+fake.TenantID(),
		"TEAMS_ALLOWED_USERS="+chat.Members[0].AAD, "TEAMS_PORT=0", "TEAMS_SERVICE_URL="+u.Service,
		"HERALD_TEAMS_LOGIN_URL="+u.Login, "HERALD_TEAMS_OPENID_URL="+u.OpenID)
	d := p.run()
	fake.SetEndpoint(d.address() + "api/messages")
	o := &teamsOffice{daemon: d, fake: fake}
	o.say(teamstest.Post{Room: chat.ID, Text: "what is 6 times 7?"})
	o.sees(chat.ID, "= 42")
	o.say(teamstest.Post{Room: stranger.ID, Text: "what is 6 times 7?"})
	d.until("the stranger's message is refused", func() bool { return strings.Contains(d.log(), "not allowed") })
	require.Empty(t, fake.Visible(stranger.ID))
	require.NotContains(t, d.log(), stranger.Members[0].AAD)
}

// A platform that can't start says so, and the others go on.
func TestTeams_WrongSecretIsNamed(t *testing.T) {
	fake := teamstest.New(teamstest.Options{})
	_, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	p, u := newPlace(t), fake.URLs()
	const wrong = "not-the-secret-at-all"
	p.env = append(p.env, "TEAMS_CLIENT_ID="+fake.AppID(), "TEAMS_CLIENT_SECRET="+wrong, "TEAMS_TENANT_ID="+fake.TenantID(),
		"TEAMS_PORT=0", "TEAMS_SERVICE_URL="+u.Service, "HERALD_TEAMS_LOGIN_URL="+u.Login, "HERALD_TEAMS_OPENID_URL="+u.OpenID)
	d := p.run()
	d.until("the log names the setting", func() bool { return strings.Contains(d.log(), "TEAMS_CLIENT_SECRET") })
	d.until("status names the setting", func() bool {
		return strings.Contains(d.herald("status").out, "client_secret (TEAMS_CLIENT_SECRET): is wrong")
	})
	require.NotContains(t, d.log(), wrong)
	d.say("main-chat", "message-1", "what is 2 plus 2?")
	d.await("main-chat", "= 4")
}

// herald teams manifest writes a package without a daemon and without a home.
func TestTeams_Manifest(t *testing.T) {
	p := newPlace(t)
	r := p.herald("teams", "manifest")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "TEAMS_CLIENT_ID")
	p.env = append(p.env, "TEAMS_CLIENT_ID="+teamstest.DefaultAppID)
	file := filepath.Join(t.TempDir(), "app.zip")
	require.Contains(t, p.good("teams", "manifest", "--write", file, "--name", "Hal", "--rsc"), "Upload an app")
	z, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer z.Close()
	require.Len(t, z.File, 3)
	require.Contains(t, p.good("teams", "manifest"), `"botId": "`+teamstest.DefaultAppID+`"`)
	_, err = os.Stat(p.home)
	require.ErrorIs(t, err, os.ErrNotExist)
}
