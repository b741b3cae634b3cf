package discordtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/oracle"
)

// client is discord.js.
type client struct {
	*oracle.Process
	t *testing.T
}

// jsMessage is a message as discord.js understood it.
type jsMessage struct {
	ID, Channel, Guild, Author ID
	Name, Content, Nonce       string
	Type                       int
	Reply                      ID
	Mentions                   []ID
	Thread                     ID
	Flags                      int
	Edited                     bool
	Buttons                    []string
	Files                      []struct {
		Name, URL, Type string
		Size            int
	}
	Made int64
}

// do makes the client do something and decodes what it reports.
func (c *client) do(step string, arguments m, into any) {
	c.t.Helper()
	if arguments == nil {
		arguments = m{}
	}
	arguments["do"] = step
	c.Tell(arguments)
	c.Expect(step, into)
}

func (c *client) message(step string, arguments m) (out jsMessage) {
	c.t.Helper()
	c.do(step, arguments, &out)
	return out
}

// until waits for a message event about a certain message.
func (c *client) until(event string, id ID) jsMessage {
	c.t.Helper()
	for {
		if got := c.message("next", m{"event": event}); got.ID == id {
			return got
		}
	}
}

// startClient logs discord.js in to a fake.
func startClient(t *testing.T, o Options) (*stage, *client) {
	t.Helper()
	s := newStage(t, o)
	c := &client{oracle.Start(t, "discord.mjs", "DISCORD_URL="+s.url, "DISCORD_TOKEN="+testToken), t}
	c.Expect("started", nil)
	var in struct {
		User   ID
		Name   string
		Guilds []struct {
			ID      ID
			Name    string
			Members int
			People  []string
		}
		Channels []struct{ Name string }
		Writes   bool
	}
	c.do("login", nil, &in)
	require.Equal(t, s.Bot().ID, in.User)
	require.Len(t, in.Guilds, 1)
	require.Equal(t, []string{"Lee", "Pat", "herald"}, in.Guilds[0].People)
	require.Len(t, in.Channels, 2)
	require.True(t, in.Writes)
	t.Cleanup(func() {
		require.Empty(t, s.Unknown())
		require.Empty(t, s.Violations())
	})
	return s, c
}

func TestOracle_MessagesAndButtons(t *testing.T) {
	s, c := startClient(t, Options{})
	asked := s.Write(Post{Channel: s.channel, Text: "hello <@" + string(s.lee) + ">", MentionBot: true,
		Files: []File{{Name: "in.txt", Type: "text/plain", Body: []byte("from people")}}})
	got := c.message("next", m{"event": "messageCreate"})
	require.Equal(t, asked, got.ID)
	require.Equal(t, s.pat, got.Author)
	require.Equal(t, "Pat", got.Name)
	require.Equal(t, "<@"+string(s.Bot().ID)+"> hello <@"+string(s.lee)+">", got.Content)
	require.Equal(t, []ID{s.Bot().ID, s.lee}, got.Mentions)
	require.InDelta(t, time.Now().UnixMilli(), got.Made, 60000)
	require.Equal(t, "in.txt", got.Files[0].Name)
	var file struct {
		Status int
		Text   string
	}
	c.do("download", m{"url": got.Files[0].URL}, &file)
	require.Equal(t, "from people", file.Text)

	replied := c.message("reply", m{"channel": s.channel, "message": asked, "content": "an answer", "buttons": true})
	require.Equal(t, asked, replied.Reply)
	require.Equal(t, []string{"Yes", "No"}, replied.Buttons)
	require.Empty(t, replied.Mentions)
	seen := s.Visible(s.channel)
	require.Equal(t, asked, seen[0].ReplyTo)
	require.Equal(t, "Yes", seen[0].Buttons[0][0].Label)
	require.Empty(t, seen[0].Pinged)

	press, ok := s.Press(s.channel, replied.ID, "no", s.lee)
	require.True(t, ok)
	var i struct {
		ID, User, Message ID
		Custom            string
		Sends             bool
	}
	c.do("interaction", nil, &i)
	require.Equal(t, press, i.ID)
	require.Equal(t, s.lee, i.User)
	require.Equal(t, replied.ID, i.Message)
	require.Equal(t, "no", i.Custom)
	require.True(t, i.Sends)
	updated := c.message("update", m{"content": "chosen"})
	require.Equal(t, replied.ID, updated.ID)
	require.Equal(t, "chosen", s.Visible(s.channel)[0].Text)
	require.Empty(t, s.Visible(s.channel)[0].Buttons)
	_, ok = s.Press(s.channel, replied.ID, "no", s.lee)
	require.False(t, ok)

	menu := c.message("select", m{"channel": s.channel})
	_, ok = s.Pick(s.channel, menu.ID, "model", []string{"l"}, "")
	require.True(t, ok)
	var picked struct{ Values []string }
	c.do("interaction", nil, &picked)
	require.Equal(t, []string{"l"}, picked.Values)
	c.do("deferUpdate", nil, nil)
	require.Equal(t, "large it is", c.message("editReply", m{"content": "large it is"}).Content)
	seenMenu, _ := s.Message(s.channel, menu.ID)
	require.Equal(t, "large it is", seenMenu.Text)
}

func TestOracle_EditsReactionsFilesHistory(t *testing.T) {
	s, c := startClient(t, Options{})
	first := c.message("send", m{"channel": s.channel, "content": "one", "nonce": "k1"})
	require.Equal(t, "k1", first.Nonce)
	require.Equal(t, first.ID, c.message("send", m{"channel": s.channel, "content": "one", "nonce": "k1"}).ID)
	require.Len(t, s.Visible(s.channel), 1)
	edited := c.message("edit", m{"channel": s.channel, "message": first.ID, "content": "two"})
	require.True(t, edited.Edited)
	require.Equal(t, "two", s.Visible(s.channel)[0].Text)

	sent := c.message("send", m{"channel": s.channel, "content": "a file", "file": "bytes of it", "name": "out put.txt"})
	require.Equal(t, "out_put.txt", sent.Files[0].Name)
	seen := s.Visible(s.channel)[1]
	require.Equal(t, "bytes of it", string(seen.Files[0].Body))
	require.Equal(t, "words", seen.Files[0].Description)
	other := c.message("edit", m{"channel": s.channel, "message": sent.ID, "content": "another file", "file": "more", "name": "b.txt"})
	require.Len(t, other.Files, 1) // discord.js lists the new one alone, so that the old one goes
	require.Equal(t, "b.txt", s.Visible(s.channel)[1].Files[0].Name)

	var who struct{ People []ID }
	s.React(s.channel, first.ID, "👀", s.lee)
	c.do("react", m{"channel": s.channel, "message": first.ID, "emoji": "👀"}, &who)
	require.Len(t, who.People, 2)
	var reaction struct {
		Emoji         string
		Message, User ID
	}
	c.do("reaction", m{"event": "messageReactionAdd"}, &reaction)
	require.Equal(t, s.lee, reaction.User)
	require.Equal(t, "👀", reaction.Emoji)
	c.do("unreact", m{"channel": s.channel, "message": first.ID, "emoji": "👀"}, nil)
	require.Equal(t, []ID{s.lee}, s.Visible(s.channel)[0].Reactions[0].By)
	s.Unreact(s.channel, first.ID, "👀", s.lee)
	c.do("reaction", m{"event": "messageReactionRemove"}, &reaction) // its own
	c.do("reaction", m{"event": "messageReactionRemove"}, &reaction)
	require.Equal(t, s.lee, reaction.User)

	say := s.Say(s.channel, "mine")
	s.Rewrite(s.channel, say, "mine, better")
	better := c.until("messageUpdate", say)
	require.Equal(t, "mine, better", better.Content)
	require.True(t, better.Edited)
	s.Erase(s.channel, say)
	require.Equal(t, say, c.message("next", m{"event": "messageDelete"}).ID)
	var list struct{ List []string }
	c.do("history", m{"channel": s.channel, "limit": 5}, &list)
	require.Equal(t, []string{"another file", "two"}, list.List)
	c.do("history", m{"channel": s.channel, "limit": 5, "after": first.ID}, &list)
	require.Equal(t, []string{"another file"}, list.List)
	c.do("typing", m{"channel": s.channel}, nil)
	require.True(t, s.TypingSeen(s.channel))
	c.do("remove", m{"channel": s.channel, "message": first.ID}, nil)
	require.Len(t, s.Visible(s.channel), 1)

	direct := c.message("dm", m{"user": s.pat, "content": "psst"})
	require.Equal(t, s.dm, direct.Channel)
	require.Equal(t, "psst", s.Visible(s.dm)[0].Text)
	s.CloseDMs(s.pat, true)
	var refused struct {
		Code, Status int
		Message      string
	}
	c.do("refused", m{"channel": s.dm, "content": "x"}, &refused)
	require.Equal(t, 50007, refused.Code)
	s.Overwrite(s.channel, s.guild, 0, SendMessages)
	c.do("refused", m{"channel": s.channel, "content": "x"}, &refused)
	require.Equal(t, 50013, refused.Code)
	c.do("presence", m{"name": "chess"}, nil)
	require.Eventually(t, func() bool { status, activity := s.Presence(); return status == "idle" && activity == "chess" }, 10*time.Second,
		time.Millisecond)
	var people struct {
		Found, All []string
		Searched   int
	}
	c.do("members", m{"guild": s.guild, "query": "le"}, &people)
	require.Equal(t, []string{"Lee"}, people.Found)
	require.Equal(t, []string{"Lee", "Pat", "herald"}, people.All)
	require.Equal(t, 1, people.Searched)
}

func TestOracle_Commands(t *testing.T) {
	s, c := startClient(t, Options{InteractionWindow: 30 * time.Second})
	var set struct{ Set, All []string }
	c.do("commands", nil, &set)
	require.Equal(t, []string{"ask", "city"}, set.Set)
	require.Equal(t, []string{"A city", "Ask something", "Even more"}, set.All)
	require.Len(t, s.Commands(""), 2)

	run, ok := s.Run(Command{Channel: s.channel, From: s.lee, Name: "ask", Options: []Option{{"question", "why"}, {"whom", s.pat}}})
	require.True(t, ok)
	type option struct {
		Name, Value, User string
		Focused           bool
	}
	var i struct {
		ID, User, Guild ID
		Name            string
		Options         []option
		Focused         string
		Fields          string
	}
	c.do("interaction", nil, &i)
	require.Equal(t, run, i.ID)
	require.Equal(t, []option{{"question", "why", "", false}, {"whom", string(s.pat), "pat", false}}, i.Options)
	reply := c.message("answer", m{"content": "because", "private": true})
	require.Equal(t, 64, reply.Flags)
	more := c.message("followUp", m{"content": "and", "private": true})
	seen := s.Visible(s.channel)
	require.Len(t, seen, 2)
	require.True(t, seen[0].Ephemeral)
	require.Equal(t, s.lee, seen[1].For)
	require.Equal(t, "better", c.message("editReply", m{"content": "better"}).Content)
	c.do("deleteReply", nil, nil)
	seen = s.Visible(s.channel)
	require.Len(t, seen, 1)
	require.Equal(t, more.ID, seen[0].ID)
	what, _ := s.Interaction(run)
	require.True(t, what.Answered)
	require.True(t, what.Private)
	require.Equal(t, []ID{more.ID}, what.Followups)

	later, _ := s.Run(Command{Channel: s.dm, Name: "ask", Options: []Option{{"question", "later"}}})
	c.do("interaction", nil, &i)
	c.do("defer", nil, nil)
	what, _ = s.Interaction(later)
	require.True(t, what.Thinking)
	require.Equal(t, "done", c.message("editReply", m{"content": "done"}).Content)
	what, _ = s.Interaction(later)
	require.False(t, what.Thinking)
	require.Equal(t, "done", what.Text)

	typed, ok := s.Complete(Command{Channel: s.channel, Name: "city", Options: []Option{{"name", "p"}}, Focused: "name"})
	require.True(t, ok)
	c.do("interaction", nil, &i)
	require.Equal(t, "p", i.Focused)
	c.do("complete", nil, nil)
	what, _ = s.Interaction(typed)
	require.Equal(t, []Choice{{"Paris", "paris"}, {"Pisa", "pisa"}}, what.Choices)

	asked, _ := s.Run(Command{Channel: s.channel, Name: "ask", Options: []Option{{"question", "modal"}}})
	c.do("interaction", nil, &i)
	c.do("modal", nil, nil)
	sent, ok := s.Submit(asked, map[string]string{"why": "so"})
	require.True(t, ok)
	c.do("interaction", nil, &i)
	require.Equal(t, sent, i.ID)
	require.Equal(t, "so", i.Fields)
	c.message("answer", m{"content": "thanks"})
}

func TestOracle_Threads(t *testing.T) {
	s, c := startClient(t, Options{})
	asked := s.Say(s.channel, "a long matter")
	var made struct {
		ID, Parent, Message   ID
		Name, Starter         string
		Joined                bool
		Again, Type, Archived any
	}
	c.do("thread", m{"channel": s.channel, "message": asked, "name": "Matter", "content": "inside"}, &made)
	require.Equal(t, asked, made.ID)
	require.Equal(t, s.channel, made.Parent)
	require.Equal(t, "a long matter", made.Starter)
	require.EqualValues(t, 160004, made.Again)
	require.Equal(t, "inside", s.Visible(asked)[0].Text)
	require.Equal(t, "Matter", s.Threads(s.channel)[0].Name)
	require.Equal(t, "a long matter", c.message("next", m{"event": "messageCreate"}).Content)
	inside := s.Say(asked, "a word in it")
	require.Equal(t, asked, c.until("messageCreate", inside).Channel)

	c.do("openThread", m{"channel": s.channel, "name": "Alone", "type": PublicThread, "content": "x"}, &made)
	alone := made.ID
	c.do("openThread", m{"channel": s.channel, "name": "Hidden", "type": PrivateThread, "content": "y"}, &made)
	require.Equal(t, "y", s.Visible(made.ID)[0].Text)
	c.do("post", m{"channel": s.forum, "name": "Idea", "content": "what if", "file": "then"}, &made)
	require.Equal(t, "what if", made.Starter)
	post := s.Visible(made.ID)
	require.Equal(t, made.ID, post[0].ID)
	require.Equal(t, "then", string(post[0].Files[0].Body))
	opened := s.OpenPost("Question", Post{Channel: s.forum, Text: "who knows"})
	var created struct {
		ID    ID
		Name  string
		Fresh bool
	}
	for created.ID != opened {
		c.do("threadCreated", nil, &created)
	}
	require.Equal(t, "Question", created.Name)
	require.True(t, created.Fresh)

	c.do("archive", m{"thread": alone, "name": "Done"}, &made)
	left, _ := s.Channel(alone)
	require.True(t, left.Archived)
	require.Equal(t, "Done", left.Name)
	var lists struct{ Active, Archived []ID }
	c.do("threads", m{"guild": s.guild, "channel": s.channel}, &lists)
	require.Len(t, lists.Active, 4)
	require.Equal(t, []ID{alone}, lists.Archived)
	s.Say(alone, "open again")
	left, _ = s.Channel(alone)
	require.False(t, left.Archived)
}

func TestOracle_ReconnectsAndResumes(t *testing.T) {
	s, c := startClient(t, Options{})
	heard := func(text string) {
		t.Helper()
		require.Equal(t, text, c.message("next", m{"event": "messageCreate"}).Content)
	}
	s.Say(s.channel, "before")
	heard("before")

	require.NoError(t, s.Cut())
	s.Say(s.channel, "while cut")
	c.do("until", m{"event": "shardResume"}, nil)
	heard("while cut")

	s.Reconnect()
	c.do("until", m{"event": "shardResume"}, nil)
	s.Say(s.channel, "after op 7")
	heard("after op 7")
	require.Equal(t, 2, s.Resumes())
	require.Equal(t, 1, s.Identifies())

	s.CloseGateway(4000)
	s.Say(s.channel, "after 4000")
	heard("after 4000")
	c.do("until", m{"event": "shardResume"}, nil)
	require.Equal(t, 3, s.Resumes())

	s.Invalidate(false)
	require.Eventually(t, func() bool { return s.Identifies() == 2 && s.Receivers() == 1 }, 30*time.Second, 5*time.Millisecond)
	s.Say(s.channel, "after op 9")
	heard("after op 9")
	require.Equal(t, 1, s.Connections())
}

func TestOracle_ObeysRateLimits(t *testing.T) {
	s, c := startClient(t, Options{})
	var limited struct {
		Scope  string
		Global bool
		More   int
	}
	for _, scope := range []string{"user", "shared", "global"} {
		s.Break(Fault{Trouble: AnswerStatus, Route: SendMessage, Status: 429, RetryAfter: 700 * time.Millisecond, Scope: scope})
		begun := time.Now()
		c.message("send", m{"channel": s.channel, "content": scope})
		require.GreaterOrEqual(t, time.Since(begun), 700*time.Millisecond)
		c.do("limited", nil, &limited)
		require.Equal(t, scope, limited.Scope)
		require.Equal(t, scope == "global", limited.Global)
	}
	s.Limit(SendMessage, 2, 500*time.Millisecond)
	for range 6 {
		c.message("send", m{"channel": s.channel, "content": "many"})
	}
	require.Len(t, s.Visible(s.channel), 9)
	c.do("limits", nil, &limited)
	require.Zero(t, limited.More) // the headers are enough for it
	s.Break(Fault{Trouble: AnswerStatus, Route: SendMessage, Status: 502, Proxy: true})
	c.message("send", m{"channel": s.channel, "content": "after the storm"}) // discord.js tries again
	require.Len(t, s.Visible(s.channel), 10)
}

func TestOracle_NoticesWhatIsDead(t *testing.T) {
	s, c := startClient(t, Options{Heartbeat: 400 * time.Millisecond})
	s.BreakGateway(NoAcks)
	require.Eventually(t, func() bool { return s.Resumes() > 0 }, 30*time.Second, 5*time.Millisecond)
	s.Mend(NoAcks)
	c.do("until", m{"event": "shardResume"}, nil)
	s.Say(s.channel, "after the silence")
	require.Equal(t, "after the silence", c.message("next", m{"event": "messageCreate"}).Content)

	s.Forget() // the next resume is refused, and a new session begins
	require.NoError(t, s.Cut())
	require.Eventually(t, func() bool { return s.Identifies() == 2 && s.Receivers() == 1 }, 30*time.Second, 5*time.Millisecond)
	s.Say(s.channel, "in a new session")
	require.Equal(t, "in a new session", c.message("next", m{"event": "messageCreate"}).Content)
}

func TestOracle_LoginsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		token   string
		says    string
	}{
		"a wrong token": {Options{}, "MTE.other.token", "invalid token"},
		"an intent that the portal does not grant": {Options{WithoutIntents: IntentMessageContent}, testToken, "disallowed intents"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.options)
			p := oracle.Start(t, "discord.mjs", "DISCORD_URL="+s.url, "DISCORD_TOKEN="+c.token)
			p.Expect("started", nil)
			p.Tell(m{"do": "login"})
			var failed struct{ Error string }
			p.Expect("failed", &failed)
			require.Contains(t, failed.Error, c.says)
		})
	}
}
