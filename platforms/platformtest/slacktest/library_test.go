package slacktest

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/stretchr/testify/require"
)

// TestEvents_TheLibraryReadsAllOfThem: slack-go knows every event that the fake makes by its type.
func TestEvents_TheLibraryReadsAllOfThem(t *testing.T) {
	w := newWorkspace(t, Options{})
	l := w.listen(true)
	l.wait("hello", 1)
	ann := w.fake.AddUser("", User{RealName: "Ann"})
	root := w.fake.Write(Post{Channel: w.general, Text: "see", Mention: true, Files: []Upload{{Name: "a.png", Body: []byte("x")},
		{Name: "b", Mode: "external"}, {Name: "c", Mode: "tombstone"}}})
	w.fake.Write(Post{Channel: w.general, Thread: root, Broadcast: true, Text: "both"})
	w.fake.Write(Post{Channel: w.dm, Files: []Upload{{Name: "x.txt", Mode: "check_file_info"}}})
	w.fake.Rewrite("", w.general, root, "saw")
	w.fake.Unfurl("", w.general, root, json.RawMessage(`{"title":"a page"}`))
	w.fake.React("", w.general, root, "", "eyes")
	w.fake.Unreact("", w.general, root, "", "eyes")
	w.fake.Join("", w.general, ann.ID)
	w.fake.Leave("", w.general, ann.ID)
	w.fake.Delete("", w.general, root)
	w.fake.OpenHome("", w.pat.ID, "home")
	_, thread := w.fake.OpenAssistant("", w.pat.ID, w.general)
	w.fake.SwitchContext("", w.dm, thread, w.general)
	ts := w.must("chat.postMessage", "channel", w.dm, "text", "x", "blocks", oneButton)["ts"].(string)
	w.must("chat.update", "channel", w.dm, "ts", ts, "text", "y", "blocks", oneButton)
	w.fake.Press(Press{Channel: w.dm, Message: ts, Button: "go"})
	w.fake.Run(Command{Channel: w.dm, Name: "/ask", Text: "why"})
	w.fake.Leave("", w.general, w.team.BotUser)
	w.fake.Revoke("", "token_revoked")
	w.until(func() bool { return w.fake.Pending() == 0 }, "all were sent")

	kinds := map[string]bool{}
	for _, d := range l.all("events_api") {
		e, err := slackevents.ParseEvent(d.Payload, slackevents.OptionNoVerifyToken())
		require.NoError(t, err, "%s", d.Payload)
		require.Equal(t, w.team.ID, e.TeamID)
		kind := reflect.TypeOf(e.InnerEvent.Data).Elem().Name()
		if m, ok := e.InnerEvent.Data.(*slackevents.MessageEvent); ok && m.SubType != "" {
			kind += " " + m.SubType
		}
		kinds[kind] = true
	}
	var names []string
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	require.Equal(t, []string{
		"AppHomeOpenedEvent", "AppMentionEvent", "AssistantThreadContextChangedEvent", "AssistantThreadStartedEvent", "ChannelLeftEvent",
		"MemberJoinedChannelEvent", "MemberLeftChannelEvent", "MessageEvent", "MessageEvent channel_join", "MessageEvent file_share",
		"MessageEvent message_changed", "MessageEvent message_deleted", "MessageEvent thread_broadcast", "ReactionAddedEvent",
		"ReactionRemovedEvent", "TokensRevokedEvent",
	}, names)

	var press slack.InteractionCallback
	require.NoError(t, json.Unmarshal(l.wait("interactive", 1)[0].Payload, &press))
	require.Equal(t, slack.InteractionTypeBlockActions, press.Type)
	require.Equal(t, "go", press.ActionCallback.BlockActions[0].ActionID)
	require.Equal(t, ts, press.Message.Timestamp)
	require.Equal(t, w.pat.ID, press.User.ID)
	var command slack.SlashCommand
	require.NoError(t, json.Unmarshal(l.wait("slash_commands", 1)[0].Payload, &command))
	require.Equal(t, "why", command.Text)
}

// FuzzBlocks: whatever a client posts as blocks is refused or shown, and never the end of the fake.
func FuzzBlocks(f *testing.F) {
	f.Add(oneButton)
	f.Add(`[{"type":"rich_text","elements":[{"type":"rich_text_list","indent":2,"elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U1"}]}]}]}]`)
	f.Add(`[{"type":"table","rows":[[{"type":"raw_text","text":"a"},{"type":"rich_text","elements":[]}]]}]`)
	f.Add(`[{"type":"context_actions","elements":[{"type":"feedback_buttons","action_id":"f","positive_button":{"text":{"type":"plain_text","text":"+"},"value":"p"}}]}]`)
	f.Add(`[{"type":"plan","title":"p","tasks":[{"type":"task_card","title":"t","details":{"type":"rich_text","elements":[]}}]}]`)
	s := New(Options{})
	s.AddTeam(Team{})
	f.Fuzz(func(t *testing.T, raw string) {
		err := checkBlocks(raw, maxBlocks)
		m := &message{Message: Message{Raw: "x", Blocks: json.RawMessage(raw)}}
		shown := m.snapshot(s.team(""))
		for _, b := range shown.Buttons {
			pressed(m, Press{Button: b.ActionID})
			for _, o := range b.Options {
				pressed(m, Press{Button: b.ActionID, Option: o})
			}
		}
		if err == nil && raw != "" && !json.Valid([]byte(raw)) {
			t.Fatalf("%q was taken", raw)
		}
	})
}
