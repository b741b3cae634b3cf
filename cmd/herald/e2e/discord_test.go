package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/discordtest"
)

// discordGuild is a server with a person and a channel, and Herald as its bot.
type discordGuild struct {
	*daemon
	fake                *discordtest.Discord
	person, dm, general discordtest.ID
}

const discordToken = "NzAwMDAwMDAwMDAwMDAwMDAx.GsuperX.secret-part_of-the-token"

// A person who sets nothing but Discord's usual variables holds a direct chat and a channel's thread, presses a button,
// runs an application command and exchanges files.
func TestDiscord_UsualVariablesAreEnough(t *testing.T) {
	g := newDiscordGuild(t)
	g.chatsInPrivate()
	thread := g.opensAThread()
	g.goesOnWithoutAMention(thread)
	g.takesAPress(thread)
	g.runsACommand()
	g.exchangesFiles()
	g.restarts()
	require.Empty(t, g.fake.Violations())
	require.Empty(t, g.fake.Unknown())
	require.NotContains(t, g.log(), discordToken)
}

func newDiscordGuild(t *testing.T, env ...string) *discordGuild {
	g := &discordGuild{fake: discordtest.New(discordtest.Options{Token: discordToken, BotID: "700000000000000001", RealLimits: true})}
	url, err := g.fake.Start()
	require.NoError(t, err)
	t.Cleanup(g.fake.Close)
	g.person = g.fake.AddUser(discordtest.User{Username: "pat", GlobalName: "Pat Doe"})
	guild := g.fake.AddGuild("Team", 0, g.person)
	g.dm = g.fake.DM(g.person)
	g.general = g.fake.AddChannel(discordtest.Channel{Guild: guild, Name: "general"})
	p := newPlace(t)
	p.env = append(p.env, "DISCORD_BOT_TOKEN="+discordToken, "DISCORD_API_URL="+url, "DISCORD_ALLOWED_USERS="+string(g.person))
	p.env = append(p.env, env...)
	g.daemon = p.run()
	g.connected()
	return g
}

func (g *discordGuild) connected() {
	g.t.Helper()
	g.until("Discord is connected", func() bool {
		return strings.Contains(g.herald("status").out, "✓ discord/700000000000000001 connected")
	})
}

// sees waits until the bot has written part in a channel.
func (g *discordGuild) sees(channel discordtest.ID, part string) discordtest.Message {
	g.t.Helper()
	var found discordtest.Message
	g.until("Discord shows "+part, func() bool {
		for _, m := range g.fake.Visible(channel) {
			if strings.Contains(m.Text, part) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func (g *discordGuild) chatsInPrivate() {
	g.fake.Say(g.dm, "what is 6 times 7?")
	g.sees(g.dm, "= 42")
}

// opensAThread: a mention is answered in a thread on it, and not in the channel.
func (g *discordGuild) opensAThread() discordtest.ID {
	id := g.fake.Write(discordtest.Post{Channel: g.general, Text: "what is 6 times 8?", MentionBot: true})
	g.sees(id, "= 48")
	require.Empty(g.t, g.fake.Visible(g.general))
	c, ok := g.fake.Channel(id)
	require.True(g.t, ok)
	require.Equal(g.t, "what is 6 times 8?", c.Name)
	return id
}

func (g *discordGuild) goesOnWithoutAMention(thread discordtest.ID) {
	g.fake.Say(thread, "what is 6 times 9?")
	g.sees(thread, "= 54")
}

func (g *discordGuild) takesAPress(thread discordtest.ID) {
	g.fake.Say(thread, "ask me which colour I like: red, green or blue")
	var data string
	var asked discordtest.Message
	g.until("the question has buttons", func() bool {
		for _, m := range g.fake.Visible(thread) {
			for _, row := range m.Buttons {
				for _, b := range row {
					if b.Label == "green" {
						asked, data = m, b.Data
						return true
					}
				}
			}
		}
		return false
	})
	press, ok := g.fake.Press(thread, asked.ID, data, "")
	require.True(g.t, ok)
	g.until("the press is confirmed", func() bool { i, _ := g.fake.Interaction(press); return i.Answered })
	g.until("the choice is taken up", func() bool {
		for _, m := range g.fake.Visible(thread) {
			if m.ID > asked.ID && strings.Contains(m.Text, "green") {
				return true
			}
		}
		return false
	})
}

// runsACommand: commands are registered, and answer their person alone.
func (g *discordGuild) runsACommand() {
	g.until("the commands are registered", func() bool {
		for _, c := range g.fake.Commands("") {
			if c.Name == "status" {
				return true
			}
		}
		return false
	})
	run, ok := g.fake.Run(discordtest.Command{Channel: g.general, Name: "status"})
	require.True(g.t, ok)
	g.until("the command is answered", func() bool {
		i, _ := g.fake.Interaction(run)
		return i.Answered && i.Private && !i.Thinking && i.Text != ""
	})
	for _, m := range g.fake.Visible(g.general) {
		require.True(g.t, m.Ephemeral, "%q is for everybody", m.Text)
	}
}

func (g *discordGuild) exchangesFiles() {
	body := []byte("one\ntwo\nthree\n")
	g.fake.Write(discordtest.Post{Channel: g.dm, Files: []discordtest.File{{Name: "notes.txt", Type: "text/plain", Body: body}}})
	g.sees(g.dm, "notes.txt")
	g.fake.Say(g.dm, "send it back")
	g.until("the file is there", func() bool {
		for _, m := range g.fake.Visible(g.dm) {
			if len(m.Files) == 1 {
				require.Equal(g.t, string(body), string(m.Files[0].Body))
				return true
			}
		}
		return false
	})
}

// restarts: what was said while the daemon was down is answered when it is back, by resuming the session.
func (g *discordGuild) restarts() {
	identifies := g.fake.Identifies()
	g.stop()
	g.fake.Say(g.dm, "what is 7 times 8?")
	g.daemon = g.place.run()
	g.sees(g.dm, "= 56")
	require.Equal(g.t, identifies, g.fake.Identifies(), "a new session was begun")
	require.NotZero(g.t, g.fake.Resumes())
}

// A platform that can't start says so, and the others go on.
func TestDiscord_WrongTokenAndMissingIntentAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		options discordtest.Options
		says    string
	}{
		"token":  {discordtest.Options{Token: "another.one.entirely"}, "token: was refused by Discord"},
		"intent": {discordtest.Options{WithoutIntents: discordtest.IntentMessageContent}, "switch on Message Content Intent"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := discordtest.New(c.options)
			url, err := fake.Start()
			require.NoError(t, err)
			t.Cleanup(fake.Close)
			p := newPlace(t)
			p.env = append(p.env, "DISCORD_BOT_TOKEN="+discordToken, "DISCORD_API_URL="+url)
			d := p.run()
			d.until("status names what to do", func() bool { return strings.Contains(d.herald("status").out, c.says) })
			require.NotContains(t, d.log(), discordToken)
			d.say("main-chat", "message-1", "what is 2 plus 2?")
			d.await("main-chat", "= 4")
			require.LessOrEqual(t, fake.Identifies(), 1)
		})
	}
}

// What was written while Herald was away for longer than Discord keeps a session is read where that is switched on.
func TestDiscord_MissedMessagesAreCaughtUp(t *testing.T) {
	fake := discordtest.New(discordtest.Options{Token: discordToken, BotID: "700000000000000001", ResumeWindow: time.Millisecond})
	url, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	pat := fake.AddUser(discordtest.User{Username: "pat"})
	dm := fake.DM(pat)
	p := newPlace(t)
	p.env = append(p.env, "DISCORD_BOT_TOKEN="+discordToken, "DISCORD_API_URL="+url, "DISCORD_ALLOWED_USERS="+string(pat),
		"HERALD_DISCORD_MISSED_MESSAGE_BACKFILL_ENABLED=true")
	g := &discordGuild{fake: fake, person: pat, dm: dm, daemon: p.run()}
	g.connected()
	g.chatsInPrivate()
	g.stop()
	g.fake.Say(dm, "what is 7 times 8?")
	g.daemon = g.place.run()
	g.sees(dm, "= 56")
	count := 0
	for _, m := range fake.Visible(dm) {
		if strings.Contains(m.Text, "= 42") {
			count++
		}
	}
	require.Equal(t, 1, count, "an answered message was taken up again")
}

// A role lets people in, in channels and in direct chats; everybody else is a stranger.
func TestDiscord_RolesLetPeopleIn(t *testing.T) {
	fake := discordtest.New(discordtest.Options{Token: discordToken, BotID: "700000000000000001"})
	url, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	staff, guest := fake.AddUser(discordtest.User{Username: "staff"}), fake.AddUser(discordtest.User{Username: "guest"})
	guild := fake.AddGuild("Team", 0, guest)
	role := fake.AddRole(guild, "team", 0)
	fake.AddMember(guild, staff, role)
	general := fake.AddChannel(discordtest.Channel{Guild: guild, Name: "general"})
	p := newPlace(t)
	p.env = append(p.env, "DISCORD_BOT_TOKEN="+discordToken, "DISCORD_API_URL="+url, "DISCORD_ALLOWED_ROLES="+string(role), "DISCORD_AUTO_THREAD=false")
	g := &discordGuild{fake: fake, person: staff, dm: fake.DM(staff), general: general, daemon: p.run()}
	g.connected()
	fake.Write(discordtest.Post{Channel: general, From: guest, Text: "what is 6 times 6?", MentionBot: true})
	fake.Write(discordtest.Post{Channel: general, From: staff, Text: "what is 6 times 7?", MentionBot: true})
	g.sees(general, "= 42")
	fake.Write(discordtest.Post{Channel: g.dm, From: staff, Text: "what is 6 times 8?"})
	g.sees(g.dm, "= 48")
	for _, m := range fake.Visible(general) {
		require.NotContains(t, m.Text, "= 36")
	}
}

// A question that is longer than one message is put whole, with the buttons under its last part, and the answer is noted
// there.
func TestDiscord_LongQuestionIsWhole(t *testing.T) {
	question := "The first word. " + strings.Repeat("🎨 ", 983) + "The last word?"
	llm := modeltest.Serve(modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if text, ok := r.ToolResult(); ok {
			return modeltest.Text("You said " + text)
		}
		return modeltest.Calls("c1", "clarify", `{"question":"`+question+`","choices":["`+strings.Repeat("red", 20)+`","blue"]}`)
	}))
	t.Cleanup(llm.Close)
	g := newDiscordGuild(t, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_BASE_URL="+llm.OpenAI(), "HERALD_MODEL=a-model", "HERALD_MODEL_PROVIDER=openai")
	g.fake.Say(g.dm, "ask me")
	first := g.sees(g.dm, "The first word.")
	require.Empty(t, first.Buttons)
	var last discordtest.Message
	g.until("the last part has the buttons", func() bool {
		all := g.fake.Visible(g.dm)
		last = all[len(all)-1]
		return len(last.Buttons) > 0
	})
	require.NotEqual(t, first.ID, last.ID)
	require.Contains(t, first.Text+last.Text, "The last word?")
	_, ok := g.fake.Press(g.dm, last.ID, last.Buttons[len(last.Buttons)-1][0].Data, g.person)
	require.True(t, ok)
	g.sees(g.dm, "You said ")
	g.sees(g.dm, "The first word.")
}
