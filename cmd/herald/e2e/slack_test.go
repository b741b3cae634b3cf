package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/slacktest"
	"herald/platforms/slack"
)

// slackOffice is a workspace with a person and a channel, and Herald as its app.
type slackOffice struct {
	*daemon
	fake        *slacktest.Server
	pat         slacktest.User
	dm, general string
	root        string // of the thread in the channel
}

// A person who sets nothing but Slack's usual variables holds a direct chat and a thread of a channel, presses a
// button, runs commands, and exchanges files.
func TestSlack_UsualVariablesAreEnough(t *testing.T) {
	o := newSlackOffice(t)
	o.chatsInPrivate()
	o.answersInTheThread()
	o.takesAPress()
	o.runsCommands()
	o.exchangesFiles()
	o.restarts()
	require.Empty(t, o.fake.Violations())
	_, most, _ := o.fake.Connections()
	require.Equal(t, 1, most)
}

// With streaming on, an answer in a thread is one native stream that is sealed with the whole text.
func TestSlack_StreamsNatively(t *testing.T) {
	o := newSlackOffice(t, "--set", "streaming.enabled=true", "--set", "streaming.edit_interval=0.2")
	root := o.fake.Write(slacktest.Post{Channel: o.general, Mention: true, Text: "count to 30 slowly"})
	m := o.sees(o.general, root, "30")
	require.Equal(t, slacktest.Sealed, m.Streaming)
	require.Len(t, o.fake.Visible("", o.general, root), 1)
	require.Positive(t, o.fake.Calls("chat.appendStream"))
	require.Zero(t, o.fake.Calls("chat.update"), "every preview continued the one before it")
	require.Empty(t, o.fake.Violations())
}

func newSlackOffice(t *testing.T, args ...string) *slackOffice {
	return newSlackOfficeWith(t, func(*slackOffice, *place) {}, args...)
}

// newSlackOfficeWith lets the caller prepare the home before the daemon starts.
func newSlackOfficeWith(t *testing.T, prepare func(*slackOffice, *place), args ...string) *slackOffice {
	o := &slackOffice{fake: slacktest.New(slacktest.Options{})}
	_, err := o.fake.Start()
	require.NoError(t, err)
	t.Cleanup(o.fake.Close)
	team := o.fake.AddTeam(slacktest.Team{Scopes: slack.BotScopes()}) // what the manifest asks for is enough
	o.pat = o.fake.AddUser("", slacktest.User{RealName: "Pat Doe"})
	o.dm = o.fake.OpenDM("", o.pat.ID)
	o.general = o.fake.AddChannel("", slacktest.Channel{Name: "general", Members: []string{o.pat.ID}}).ID
	p := newPlace(t)
	p.env = append(p.env, "SLACK_BOT_TOKEN="+team.BotToken, "SLACK_APP_TOKEN="+o.fake.AppToken(), "SLACK_API_URL="+o.fake.APIURL(),
		"SLACK_ALLOWED_USERS="+o.pat.ID)
	prepare(o, p)
	o.daemon = p.run(args...)
	o.connected()
	return o
}

// connected waits until Slack has somebody to deliver to: commands and presses don't wait.
func (o *slackOffice) connected() {
	o.t.Helper()
	o.until("the daemon is connected", func() bool { now, _, _ := o.fake.Connections(); return now == 1 })
	o.until("status says so", func() bool { return strings.Contains(o.good("status"), "connected") })
}

// sees waits until the bot has written part in a place, for good.
func (o *slackOffice) sees(channel, thread, part string) slacktest.Message {
	o.t.Helper()
	var found slacktest.Message
	o.until("Slack shows "+part, func() bool {
		for _, m := range o.fake.Visible("", channel, thread) {
			if m.Streaming != slacktest.Streams && strings.Contains(m.Text, part) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func (o *slackOffice) chatsInPrivate() {
	o.fake.Say("", o.dm, "what is 6 times 7?")
	o.sees(o.dm, "", "= 42")
	require.Contains(o.t, o.good("status"), "slack/")
}

func (o *slackOffice) answersInTheThread() {
	o.root = o.fake.Write(slacktest.Post{Channel: o.general, Mention: true, Text: "what is 6 times 8?"})
	o.sees(o.general, o.root, "= 48")
	require.Empty(o.t, o.fake.Visible("", o.general, ""), "the answer is in the thread alone")
	o.fake.Write(slacktest.Post{Channel: o.general, Thread: o.root, Text: "what is 7 times 8?"}) // without a mention
	o.sees(o.general, o.root, "= 56")
}

func (o *slackOffice) takesAPress() {
	o.fake.Write(slacktest.Post{Channel: o.general, Thread: o.root, Text: "ask me which colour I like: red, green or blue"})
	var asked slacktest.Message
	o.until("the question has buttons", func() bool {
		for _, m := range o.fake.Visible("", o.general, o.root) {
			if len(m.Buttons) >= 3 {
				asked = m
				return true
			}
		}
		return false
	})
	_, ok := o.fake.Press(slacktest.Press{Channel: o.general, Message: asked.TS, Button: "green"})
	require.True(o.t, ok)
	o.until("the buttons are gone", func() bool {
		m, _ := o.fake.Message("", o.general, asked.TS)
		return len(m.Buttons) == 0 && strings.Contains(m.Text, "green")
	})
	o.until("the answer goes on", func() bool {
		seen := o.fake.Visible("", o.general, o.root)
		last := seen[len(seen)-1]
		return last.TS != asked.TS && strings.Contains(last.Text, "green")
	})
}

func (o *slackOffice) runsCommands() {
	for _, c := range []slacktest.Command{{Channel: o.general, Name: "/whoami"}, {Channel: o.general, Name: "/herald", Text: "whoami"}} {
		id := o.fake.Run(c)
		o.until("the command is answered in private", func() bool {
			i, ok := o.fake.Interaction(id)
			return ok && i.Acked && len(i.Responses) > 0 && strings.Contains(string(i.Responses[0]), o.pat.ID)
		})
	}
	for _, m := range o.fake.Visible("", o.general, "") {
		require.NotEmpty(o.t, m.Ephemeral, "%q is public", m.Text)
	}
	o.fake.Write(slacktest.Post{Channel: o.general, Thread: o.root, Text: "!whoami"})
	o.sees(o.general, o.root, o.pat.ID)
}

func (o *slackOffice) exchangesFiles() {
	body := []byte("one\ntwo\nthree\n")
	o.fake.Write(slacktest.Post{Channel: o.dm, Files: []slacktest.Upload{{Name: "notes.txt", MIME: "text/plain", Body: body}}})
	o.sees(o.dm, "", "notes.txt")
	o.fake.Say("", o.dm, "send it back")
	o.until("the file is there", func() bool {
		for _, m := range o.fake.Visible("", o.dm, "") {
			if len(m.Files) == 1 {
				require.Equal(o.t, string(body), string(m.Files[0].Body))
				return true
			}
		}
		return false
	})
}

// restarts: what was said while the daemon was down is answered when it is back, and the thread is still followed.
func (o *slackOffice) restarts() {
	o.until("all is acknowledged", func() bool { return o.fake.Pending() == 0 })
	o.stop()
	o.fake.Say("", o.dm, "what is 6 times 9?")
	o.fake.Write(slacktest.Post{Channel: o.general, Thread: o.root, Text: "what is 7 times 9?"})
	o.daemon = o.place.run()
	o.sees(o.dm, "", "= 54")
	o.sees(o.general, o.root, "= 63")
}

// A platform that can't start says so, and the others go on.
func TestSlack_WrongTokenIsNamed(t *testing.T) {
	fake := slacktest.New(slacktest.Options{})
	_, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	team := fake.AddTeam(slacktest.Team{})
	fake.Revoke("", "invalid_auth")
	p := newPlace(t)
	p.env = append(p.env, "SLACK_BOT_TOKEN="+team.BotToken, "SLACK_APP_TOKEN="+fake.AppToken(), "SLACK_API_URL="+fake.APIURL())
	d := p.run()
	d.until("the log names the setting", func() bool { return strings.Contains(d.log(), "SLACK_BOT_TOKEN") })
	d.until("status names the setting", func() bool {
		return strings.Contains(d.herald("status").out, "platforms.slack.bot_token: was refused by Slack (invalid_auth)")
	})
	require.NotContains(t, d.log(), team.BotToken)
	d.say("main-chat", "message-1", "what is 2 plus 2?")
	d.await("main-chat", "= 4")
}

// The verb writes a manifest that Slack takes.
func TestSlack_Manifest(t *testing.T) {
	p := newPlace(t)
	require.Empty(t, slacktest.ValidateManifest([]byte(p.good("slack", "manifest", "--agent-view", "--name", "Our Herald"))))
	out := p.good("slack", "manifest", "--slashes-only")
	require.Contains(t, out, `"/herald"`)
	require.NotContains(t, out, "oauth_config")
}
