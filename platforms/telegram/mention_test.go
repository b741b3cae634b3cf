package telegram

import (
	"strings"
	"testing"

	"github.com/go-telegram/bot/models"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var me = profile{id: 4242, username: "herald_bot"}

// entity marks word in text, counting as Telegram does.
func entity(kind models.MessageEntityType, text, word string) models.MessageEntity {
	at := strings.Index(text, word)
	return models.MessageEntity{Type: kind, Offset: units(text[:at]), Length: units(word)}
}

func TestReadMarks(t *testing.T) {
	mention, command, link := models.MessageEntityTypeMention, models.MessageEntityTypeBotCommand, models.MessageEntityTypeTextLink
	for _, c := range []struct {
		name string
		text string
		mark models.MessageEntity
		want marks
	}{
		{"ours first", "@herald_bot, how are you?", entity(mention, "@herald_bot", "@herald_bot"), marks{text: "how are you?", named: true}},
		{"ours in the middle", "tell me @Herald_Bot what", entity(mention, "tell me @Herald_Bot what", "@Herald_Bot"), marks{text: "tell me what", named: true}},
		{"ours last", "what now @herald_bot", entity(mention, "what now @herald_bot", "@herald_bot"), marks{text: "what now", named: true}},
		{"after an emoji of two units", "😀👍 @herald_bot go", entity(mention, "😀👍 @herald_bot go", "@herald_bot"), marks{text: "😀👍 go", named: true}},
		{"another bot", "@other_bot go", entity(mention, "@other_bot go", "@other_bot"), marks{text: "@other_bot go", otherBot: true}},
		{"a person", "@ann go", entity(mention, "@ann go", "@ann"), marks{text: "@ann go"}},
		{"our name is only the beginning", "@herald_bots go", entity(mention, "@herald_bots go", "@herald_bots"), marks{text: "@herald_bots go"}},
		{"a bare command", "/status now", entity(command, "/status now", "/status"), marks{text: "/status now", command: true}},
		{"a command for us", "/status@herald_bot now", entity(command, "/status@herald_bot now", "/status@herald_bot"), marks{text: "/status now", named: true}},
		{"a command for another bot", "/status@other_bot now", entity(command, "/status@other_bot", "/status@other_bot"), marks{text: "/status@other_bot now", otherCommand: true}},
		{"a command inside", "say /status@other_bot", entity(command, "say /status@other_bot", "/status@other_bot"), marks{text: "say /status@other_bot"}},
		{"a link keeps its target", "read this now", models.MessageEntity{Type: link, Offset: 5, Length: 4, URL: "https://a.example"}, marks{text: "read this (https://a.example) now"}},
		{"by link", "Herald go", models.MessageEntity{Type: models.MessageEntityTypeTextMention, Offset: 0, Length: 6, User: &models.User{ID: 4242, IsBot: true}}, marks{text: "go", named: true}},
		{"another bot by link", "Robo go", models.MessageEntity{Type: models.MessageEntityTypeTextMention, Offset: 0, Length: 4, User: &models.User{ID: 7, IsBot: true}}, marks{text: "Robo go", otherBot: true}},
		{"outside the text", "hello", models.MessageEntity{Type: mention, Offset: 3, Length: 99}, marks{text: "hello"}},
		{"negative", "hello", models.MessageEntity{Type: mention, Offset: -3, Length: 2}, marks{text: "hello"}},
		{"overflowing", "hello", models.MessageEntity{Type: mention, Offset: 1, Length: 1<<62 + 1<<61}, marks{text: "hello"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, readMarks(c.text, []models.MessageEntity{c.mark}, me))
		})
	}
}

// A text without marks of ours comes through as it was, wherever other marks lie.
func TestReadMarks_LeavesOtherTextAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		var entities []models.MessageEntity
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			entities = append(entities, models.MessageEntity{
				Type:   rapid.SampledFrom([]models.MessageEntityType{"bold", "mention", "bot_command", "code", "url"}).Draw(t, "type"),
				Offset: rapid.IntRange(-2, 40).Draw(t, "offset"), Length: rapid.IntRange(-2, 40).Draw(t, "length"),
			})
		}
		got := readMarks(text, entities, profile{id: 1, username: "nobody_has_this_name_bot"})
		require.Equal(t, strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), got.text)
		require.False(t, got.named)
	})
}

func TestAdapter_Judge(t *testing.T) {
	no := false
	bold := func(text string) []models.MessageEntity {
		var out []models.MessageEntity
		for _, word := range strings.Fields(text) {
			switch {
			case strings.HasPrefix(word, "@"):
				out = append(out, entity(models.MessageEntityTypeMention, text, word))
			case strings.HasPrefix(word, "/"):
				out = append(out, entity(models.MessageEntityTypeBotCommand, text, word))
			}
		}
		return out
	}
	ours := &models.Message{ID: 5, From: &models.User{ID: 4242, IsBot: true}}
	robo := &models.User{ID: 9, IsBot: true, Username: "robo_bot"}
	topicRoot := &models.Message{ID: 5, From: &models.User{ID: 4242, IsBot: true}, ForumTopicCreated: &models.ForumTopicCreated{Name: "x"}}
	answer, addressed, observed := verdict{}, verdict{addressed: true}, verdict{observed: true}
	drop := func(why string) verdict { return verdict{drop: why} }
	for _, c := range []struct {
		name string
		o    Options
		m    models.Message
		want verdict
	}{
		{"a group answers all it sees by default", Options{}, models.Message{Text: "hello"}, answer},
		{"a mention", Options{RequireMention: true}, models.Message{Text: "@herald_bot hello"}, addressed},
		{"no mention", Options{RequireMention: true}, models.Message{Text: "hello"}, drop(dropUnmentioned)},
		{"no mention where none is needed", Options{RequireMention: true, FreeChats: []string{"-9"}}, models.Message{Text: "hello"}, answer},
		{"no mention, free elsewhere", Options{RequireMention: true, FreeChats: []string{"-8"}}, models.Message{Text: "hello"}, drop(dropUnmentioned)},
		{"no mention, observed", Options{RequireMention: true, ObserveUnmentioned: true}, models.Message{Text: "hello"}, observed},
		{"a reply to the bot", Options{RequireMention: true}, models.Message{Text: "hello", ReplyToMessage: ours}, addressed},
		{"the root of a topic the bot made is no reply", Options{RequireMention: true}, models.Message{Text: "hello", ReplyToMessage: topicRoot}, drop(dropUnmentioned)},
		{"a command with our name", Options{RequireMention: true}, models.Message{Text: "/stop@herald_bot"}, addressed},
		{"a bare command needs the name when mentions do", Options{RequireMention: true}, models.Message{Text: "/stop"}, drop(dropUnmentioned)},
		{"a bare command", Options{}, models.Message{Text: "/stop"}, addressed},
		{"another bot's command", Options{}, models.Message{Text: "/stop@robo_bot"}, drop(dropOtherBot)},
		{"a wake word", Options{RequireMention: true, MentionPatterns: []string{`\bherald\b`}}, models.Message{Text: "Hey HERALD!"}, addressed},
		{"another bot is mentioned", Options{}, models.Message{Text: "@robo_bot hello"}, drop(dropOtherBot)},
		{"both are mentioned", Options{}, models.Message{Text: "@robo_bot @herald_bot hello"}, addressed},
		{"another bot, not exclusive", Options{ExclusiveBotMentions: &no}, models.Message{Text: "@robo_bot hello"}, answer},
		{"a bot's message", Options{}, models.Message{Text: "hello", From: robo}, answer},
		{"bots must mention", Options{BotsRequireMention: true}, models.Message{Text: "hello", From: robo, ReplyToMessage: ours}, drop(dropBot)},
		{"bots do mention", Options{BotsRequireMention: true}, models.Message{Text: "@herald_bot hello", From: robo}, addressed},
		{"an ignored topic", Options{IgnoredThreads: []string{"77"}}, models.Message{Text: "@herald_bot", IsTopicMessage: true, MessageThreadID: 77}, drop(dropThread)},
		{"an ignored topic of another chat", Options{IgnoredThreads: []string{"-5/77"}}, models.Message{Text: "@herald_bot", IsTopicMessage: true, MessageThreadID: 77}, addressed},
		{"the General topic ignored", Options{IgnoredThreads: []string{"-9/1"}}, models.Message{Text: "@herald_bot", Chat: models.Chat{ID: -9, Type: "supergroup", IsForum: true}}, drop(dropThread)},
		{"a chat that is allowed", Options{AllowedChats: []string{"-9"}}, models.Message{Text: "hello"}, answer},
		{"a chat that is not", Options{AllowedChats: []string{"-8"}}, models.Message{Text: "@herald_bot"}, drop(dropChat)},
		{"a guest who mentions", Options{AllowedChats: []string{"-8"}, GuestMode: true}, models.Message{Text: "@herald_bot"}, addressed},
		{"a guest who does not", Options{AllowedChats: []string{"-8"}, GuestMode: true, ObserveUnmentioned: true}, models.Message{Text: "hello"}, drop(dropChat)},
		{"a direct chat is never gated", Options{RequireMention: true, AllowedChats: []string{"-8"}}, models.Message{Text: "hello", Chat: models.Chat{ID: 5, Type: "private"}}, addressed},
		{"a caption", Options{RequireMention: true}, models.Message{Caption: "@herald_bot look"}, addressed},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Token = testToken
			a, err := New(c.o)
			require.NoError(t, err)
			if c.m.Chat.ID == 0 {
				c.m.Chat = models.Chat{ID: -9, Type: models.ChatTypeSupergroup}
			}
			if c.m.From == nil {
				c.m.From = &models.User{ID: 3}
			}
			c.m.Entities, c.m.CaptionEntities = bold(c.m.Text), bold(c.m.Caption)
			got := a.judge(&c.m, me)
			got.text = ""
			require.Equal(t, c.want, got)
		})
	}
}
