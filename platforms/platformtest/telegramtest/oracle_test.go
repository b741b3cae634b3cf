package telegramtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/oracle"
	"herald/platforms/platformtest/telegramtest"
)

const person = int64(501)

// grammy is a fake with a bot of a library that others wrote.
type grammy struct {
	*telegramtest.Server
	*oracle.Process
	t *testing.T
}

func startGrammy(t *testing.T) *grammy {
	fake := telegramtest.New(telegramtest.Options{Token: "4242:AAH-secret"})
	url, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	fake.AddChat(telegramtest.Chat{ID: person, Type: "private", FirstName: "Pat", Username: "pat"})
	p := oracle.Start(t, "telegram.mjs", "TOKEN=4242:AAH-secret", "API_ROOT="+url)
	var me struct{ Username string }
	p.Expect("ready", &me)
	require.Equal(t, "herald_test_bot", me.Username)
	return &grammy{fake, p, t}
}

// taken waits until the library has confirmed all updates.
func (g *grammy) taken() {
	g.t.Helper()
	require.Eventually(g.t, func() bool { return g.Pending() == 0 }, 10*time.Second, time.Millisecond)
}

func TestGrammy_RepliesAndButtons(t *testing.T) {
	g := startGrammy(t)
	group, forum := int64(-1001000000001), int64(-1001000000002)
	g.AddChat(telegramtest.Chat{ID: group, Type: "supergroup", Title: "Team"})
	g.AddChat(telegramtest.Chat{ID: forum, Type: "supergroup", Title: "Forum", IsForum: true})
	topic := g.AddTopic(forum, "Plans")
	for _, c := range []struct {
		chat   int64
		thread int
		kind   string
	}{{person, 0, "private"}, {group, 0, "supergroup"}, {forum, topic, "supergroup"}} {
		said := g.Write(telegramtest.Post{Chat: c.chat, Thread: c.thread, Text: "reply"})[0]
		var got struct {
			ID, To, Thread int
			Text, Chat     string
			Entities       []telegramtest.Entity
		}
		g.Expect("reply", &got)
		require.Equal(t, said, got.To)
		require.Equal(t, c.kind, got.Chat)
		require.Equal(t, "bold & plain", got.Text)
		require.Len(t, got.Entities, 2)
		m, ok := g.Message(c.chat, got.ID)
		require.True(t, ok)
		require.Equal(t, c.thread, m.Thread)
		require.Equal(t, c.thread, got.Thread)
	}
	g.Say(person, "/start now")
	var command struct{ Args, Me string }
	g.Expect("command", &command)
	require.Equal(t, "now", command.Args)

	g.Say(person, "keyboard")
	var keyboard struct{ ID, Rows int }
	g.Expect("keyboard", &keyboard)
	require.Equal(t, 2, keyboard.Rows)
	query, ok := g.Press(person, keyboard.ID, "n:1", telegramtest.User{})
	require.True(t, ok)
	var pressed struct {
		Data, Again string
		On          int
	}
	g.Expect("pressed", &pressed)
	require.Equal(t, "n:1", pressed.Data)
	require.Equal(t, keyboard.ID, pressed.On)
	require.Contains(t, pressed.Again, "query is too old")
	text, answered := g.Answer(query)
	require.True(t, answered)
	require.Equal(t, "Thanks", text)
	m, _ := g.Message(person, keyboard.ID)
	require.Equal(t, "chose n:1", m.Text)
	require.Empty(t, m.Buttons)
	g.taken()
}

func TestGrammy_FilesReactionsEdits(t *testing.T) {
	g := startGrammy(t)
	g.Say(person, "files")
	var files struct {
		Name, Caption, Again string
		Sizes                int
		Album                []string
	}
	g.Expect("files", &files)
	require.Equal(t, "report.txt", files.Name)
	require.Equal(t, "report.txt", files.Again)
	require.Equal(t, "the numbers", files.Caption)
	require.Positive(t, files.Sizes)
	require.Len(t, files.Album, 2)
	require.Equal(t, files.Album[0], files.Album[1])
	seen := g.Visible(person)
	require.Len(t, seen, 5)
	require.Equal(t, "numbers", string(seen[0].Body))
	require.Equal(t, "numbers", string(seen[1].Body))
	require.Equal(t, "pixels", string(seen[2].Body))
	require.Equal(t, []string{"one", "two"}, []string{string(seen[3].Body), string(seen[4].Body)})

	var got struct {
		Body, Name, Caption string
		Size                int
	}
	g.Write(telegramtest.Post{Chat: person, Text: "mine", Files: []telegramtest.File{{Kind: "document", Name: "notes.txt", MIME: "text/plain", Body: []byte("notes")}}})
	g.Expect("document", &got)
	require.Equal(t, "notes", got.Body)
	require.Equal(t, "notes.txt", got.Name)
	require.Equal(t, "mine", got.Caption)
	require.Equal(t, 5, got.Size)
	g.Write(telegramtest.Post{Chat: person, Files: []telegramtest.File{{Kind: "photo", Name: "a.png", Body: []byte("pixels")}}})
	g.Expect("photo", &got)
	require.Equal(t, "pixels", got.Body)

	said := g.Say(person, "react")
	var react struct{ Refused string }
	g.Expect("react", &react)
	require.Equal(t, "Bad Request: REACTION_INVALID", react.Refused)
	m, _ := g.Message(person, said)
	require.Equal(t, "👍", m.Emoji)
	g.React(person, seen[0].ID, "", "🔥", telegramtest.User{})
	var reaction struct{ EmojiAdded, EmojiRemoved []string }
	g.Expect("reaction", &reaction)
	require.Equal(t, []string{"🔥"}, reaction.EmojiAdded)
	g.React(person, seen[0].ID, "🔥", "", telegramtest.User{})
	g.Expect("reaction", &reaction)
	require.Equal(t, []string{"🔥"}, reaction.EmojiRemoved)
	g.Rewrite(person, said, "better")
	var edited struct {
		ID   int
		Text string
	}
	g.Expect("edited", &edited)
	require.Equal(t, said, edited.ID)
	require.Equal(t, "better", edited.Text)
	g.taken()
}

func TestGrammy_RefusalsAndPatience(t *testing.T) {
	g := startGrammy(t)
	g.Say(person, "refusals")
	var refusals struct{ Said []string }
	g.Expect("refusals", &refusals)
	require.Contains(t, refusals.Said[0], "Bad Request: message is not modified")
	require.Equal(t, "Bad Request: chat not found", refusals.Said[1])
	require.Contains(t, refusals.Said[2], "Bad Request: can't parse entities")
	require.Equal(t, "Bad Request: message to delete not found", refusals.Said[3])
	g.Say(person, "menu")
	var menu struct {
		Commands []telegramtest.Command
		Chat     string
	}
	g.Expect("menu", &menu)
	require.Equal(t, []telegramtest.Command{{Command: "status", Description: "What goes on"}}, menu.Commands)
	require.Equal(t, "private", menu.Chat)

	g.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 429, RetryAfter: time.Second, Method: "sendMessage"})
	g.Say(person, "patience")
	var patience struct{ ID, Waits int }
	g.Expect("patience", &patience)
	require.Equal(t, 1, patience.Waits)
	require.Empty(t, g.Violations())
	m, ok := g.Message(person, patience.ID)
	require.True(t, ok)
	require.Equal(t, "late", m.Text)
	g.taken()
}

// The library moves to a webhook and loses nothing on the way.
func TestGrammy_Webhook(t *testing.T) {
	g := startGrammy(t)
	g.Say(person, "one")
	g.Expect("heard", nil)
	g.Tell(map[string]string{"do": "stop"})
	g.Expect("stopped", nil)
	g.Say(person, "two")
	g.Tell(map[string]string{"do": "webhook"})
	texts := map[string]bool{}
	for _, step := range []string{"webhook", "heard"} {
		var got struct{ Text, URL string }
		g.Expect(step, &got)
		texts[got.Text] = true
	}
	require.True(t, texts["two"])
	g.Say(person, "three")
	var got struct{ Text, From string }
	g.Expect("heard", &got)
	require.Equal(t, "three", got.Text)
	require.Equal(t, "Pat", got.From)
	g.taken()
}
