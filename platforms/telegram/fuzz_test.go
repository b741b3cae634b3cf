package telegram

import (
	"os"
	"testing"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"
	"github.com/stretchr/testify/require"
)

// FuzzUpdate: whatever a server answers, reading it makes no panic, and every event is valid.
func FuzzUpdate(f *testing.F) {
	if raw, err := os.ReadFile("testdata/updates.json"); err == nil {
		f.Add(raw)
	}
	f.Add([]byte(`{"ok":true,"result":[]}`))
	f.Add([]byte(`{"ok":true,"result":[{"update_id":1,"message":{"message_id":1,"date":1,"chat":{"id":-1,"type":"supergroup"},"text":"😀 @x","entities":[{"type":"mention","offset":3,"length":2}]}}]}`))
	f.Add([]byte(`{"ok":true,"result":[{"update_id":1,"message":{"message_id":1,"date":1700055555500000,"chat":{"id":1,"type":"private"},"from":{"id":1},"text":"x"}}]}`))
	f.Add([]byte(`{"ok":true,"result":[{"update_id":2,"callback_query":{"id":"1","from":{"id":1},"data":"x","message":{"date":0,"chat":{"id":1}}}}]}`))
	f.Add([]byte(`{"ok":true,"result":[{"update_id":3,"message_reaction":{"chat":{"id":1},"new_reaction":[{"type":"paid"}]}}]}`))
	a, err := New(Options{Token: testToken, RequireMention: true, ObserveUnmentioned: true})
	require.NoError(f, err)
	a.me.got.Store(&profile{id: 4242, username: "herald_bot"})
	close(a.me.known)
	f.Fuzz(func(t *testing.T, raw []byte) {
		updates, _, err := decodeUpdates(raw)
		if err != nil {
			return
		}
		events, err := a.events(t.Context(), updates)
		require.NoError(t, err)
		for _, e := range events {
			if e.Address.Chat == "0" {
				continue
			}
			require.NoError(t, e.Validate())
			if e.Message != nil {
				require.True(t, utf8.ValidString(e.Message.Text))
			}
		}
	})
}

// FuzzMarks: entities from outside can point anywhere.
func FuzzMarks(f *testing.F) {
	f.Add("😀 @herald_bot go", "mention", 3, 11, "mention", 0, 2)
	f.Add("/stop@herald_bot", "bot_command", 0, 16, "text_link", 5, 3)
	f.Fuzz(func(t *testing.T, text, kind1 string, at1, n1 int, kind2 string, at2, n2 int) {
		got := readMarks(text, []models.MessageEntity{
			{Type: models.MessageEntityType(kind1), Offset: at1, Length: n1, URL: "u"},
			{Type: models.MessageEntityType(kind2), Offset: at2, Length: n2, User: &models.User{ID: 4242}},
		}, me)
		if utf8.ValidString(text) {
			require.True(t, utf8.ValidString(got.text))
		}
	})
}
