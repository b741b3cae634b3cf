package slacktest

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/oracle"
)

// boltMessage is what Bolt sees of a message.
type boltMessage struct {
	Type, Subtype, Text, User, TS, Channel string
	Thread                                 string `json:"thread_ts"`
	Kind                                   string `json:"channel_type"`
	BotID                                  string `json:"bot_id"`
	Files                                  []struct {
		ID, Name, Mimetype string
		URL                string `json:"url_private_download"`
		Size               int
	}
}

// bolt starts Slack's Bolt against the fake and waits until it is connected.
func (w *workspace) bolt() *oracle.Process {
	w.t.Helper()
	p := oracle.Start(w.t, "slack.mjs", "SLACK_API_URL="+w.fake.APIURL(), "SLACK_BOT_TOKEN="+w.team.BotToken, "SLACK_APP_TOKEN="+w.fake.AppToken())
	p.Expect("connected", nil)
	var me struct {
		Team string `json:"team_id"`
		User string `json:"user_id"`
		Bot  string `json:"bot_id"`
	}
	p.Expect("ready", &me)
	require.Equal(w.t, w.team.ID, me.Team)
	require.Equal(w.t, w.team.BotUser, me.User)
	require.Equal(w.t, w.team.BotID, me.Bot)
	return p
}

// TestBolt_RoundTrip holds a conversation with Slack's own framework.
func TestBolt_RoundTrip(t *testing.T) {
	w := newWorkspace(t, Options{})
	p := w.bolt()
	now, _, _ := w.fake.Connections()
	require.Equal(t, 1, now)
	w.boltMention(p)
	w.boltButton(p)
	w.boltCommand(p)
	w.boltEdits(p)
	w.boltFiles(p)
	w.boltStream(p)
	w.boltErrors(p)
	w.boltLimits(p)
	w.boltRefresh(p)
	p.Tell(map[string]string{"do": "stop"})
	p.Expect("stopped", nil)
	w.until(func() bool { now, _, _ := w.fake.Connections(); return now == 0 }, "the connection ends")
	require.Zero(t, w.fake.Pending())
}

// boltMention: a mention comes as a message and as app_mention; the answer is in the thread.
func (w *workspace) boltMention(p *oracle.Process) {
	ts := w.fake.Write(Post{Channel: w.general, Text: "what &lt; is", Mention: true})
	var message struct {
		Message boltMessage
		Bot     string `json:"botUserId"`
		Team    string `json:"teamId"`
	}
	p.Expect("message", &message)
	require.Equal(w.t, boltMessage{Type: "message", Text: "<@" + w.team.BotUser + "> what &lt; is", User: w.pat.ID, TS: ts,
		Channel: w.general, Kind: "channel"}, message.Message)
	require.Equal(w.t, w.team.BotUser, message.Bot)
	require.Equal(w.t, w.team.ID, message.Team)
	var mention boltMessage
	p.Expect("mention", &mention)
	require.Equal(w.t, ts, mention.TS)
	require.Equal(w.t, "app_mention", mention.Type)
	var posted struct {
		TS      string
		Message boltMessage
	}
	p.Expect("answered", &posted)
	require.Equal(w.t, w.team.BotID, posted.Message.BotID)
	seen := w.fake.Visible("", w.general, ts)
	require.Len(w.t, seen, 1)
	require.Equal(w.t, "hello @pat.doe", seen[0].Text)
	require.Equal(w.t, posted.TS, seen[0].TS)
}

// boltButton: buttons and selects in a direct chat, pressed, answered by an update and an ephemeral note.
func (w *workspace) boltButton(p *oracle.Process) {
	ts := w.fake.Say("", w.dm, "a button please")
	p.Expect("message", nil)
	p.Expect("posted", nil)
	seen := w.fake.Visible("", w.dm, ts)
	require.Len(w.t, seen, 1)
	require.Equal(w.t, "Shall I?", seen[0].Text)
	require.Equal(w.t, []Button{
		{Label: "Yes", ActionID: "yes", BlockID: "choice", Value: "v1", Style: "primary", Kind: "button"},
		{Label: "Which", ActionID: "which", BlockID: "choice", Kind: "static_select", Options: []string{"1", "2"}},
	}, seen[0].Buttons)
	_, ok := w.fake.Press(Press{Channel: w.dm, Message: seen[0].TS, Button: "Which", Option: "Two"})
	require.True(w.t, ok)
	var picked struct {
		Selected struct{ Value string } `json:"selected_option"`
		Block    string                 `json:"block_id"`
	}
	p.Expect("picked", &picked)
	require.Equal(w.t, "2", picked.Selected.Value)
	id, ok := w.fake.Press(Press{Channel: w.dm, Message: seen[0].TS, Button: "Yes"})
	require.True(w.t, ok)
	var clicked struct {
		Action struct{ Value string }
		Body   struct {
			User      struct{ ID string }
			Container struct {
				TS     string `json:"message_ts"`
				Thread string `json:"thread_ts"`
			}
		}
	}
	p.Expect("clicked", &clicked)
	require.Equal(w.t, "v1", clicked.Action.Value)
	require.Equal(w.t, w.pat.ID, clicked.Body.User.ID)
	require.Equal(w.t, ts, clicked.Body.Container.Thread)
	p.Expect("updated", nil)
	w.until(func() bool { i, _ := w.fake.Interaction(id); return i.Acked }, "the acknowledgement comes")
	i, _ := w.fake.Interaction(id)
	require.Len(w.t, i.Responses, 1)
	seen = w.fake.Visible("", w.dm, ts)
	require.Equal(w.t, "@pat.doe said yes", seen[0].Text)
	require.Empty(w.t, seen[0].Buttons, "an update with text alone takes blocks off")
	notes := w.fake.Visible("", w.dm, "")
	require.Equal(w.t, w.pat.ID, notes[len(notes)-1].Ephemeral)
	require.Equal(w.t, "noted", notes[len(notes)-1].Text)
}

// boltCommand: the acknowledgement's text and the response are ephemeral.
func (w *workspace) boltCommand(p *oracle.Process) {
	id := w.fake.Run(Command{Channel: w.general, Name: "/ask", Text: "why"})
	var command struct {
		Text, Command string
		Channel       string `json:"channel_name"`
		Team          string `json:"team_domain"`
	}
	p.Expect("command", &command)
	require.Equal(w.t, "why", command.Text)
	require.Equal(w.t, "general", command.Channel)
	require.Equal(w.t, w.team.Domain, command.Team)
	w.until(func() bool { i, _ := w.fake.Interaction(id); return i.Acked }, "the acknowledgement comes")
	i, _ := w.fake.Interaction(id)
	require.JSONEq(w.t, `{"text":"thinking"}`, string(i.Payload))
	seen := w.fake.Visible("", w.general, "")
	require.Len(w.t, seen, 2)
	// The one came over the socket, the other over HTTP.
	require.ElementsMatch(w.t, []string{"thinking", "you asked why"}, []string{seen[0].Text, seen[1].Text})
	require.Equal(w.t, []string{w.pat.ID, w.pat.ID}, []string{seen[0].Ephemeral, seen[1].Ephemeral})
}

// boltEdits: what people do to their messages.
func (w *workspace) boltEdits(p *oracle.Process) {
	ts := w.fake.Say("", w.dm, "first")
	p.Expect("message", nil)
	w.fake.Rewrite("", w.dm, ts, "second")
	var changed struct {
		Message  boltMessage
		Previous boltMessage `json:"previous_message"`
		Hidden   bool
	}
	p.Expect("message_changed", &changed)
	require.Equal(w.t, "second", changed.Message.Text)
	require.Equal(w.t, "first", changed.Previous.Text)
	require.True(w.t, changed.Hidden)
	w.fake.React("", w.dm, ts, "", "eyes")
	var reaction struct {
		Reaction, User string
		Item           struct{ Channel, TS string }
	}
	p.Expect("reaction_added", &reaction)
	require.Equal(w.t, "eyes", reaction.Reaction)
	require.Equal(w.t, ts, reaction.Item.TS)
	w.fake.Unreact("", w.dm, ts, "", "eyes")
	p.Expect("reaction_removed", nil)
	w.fake.Delete("", w.dm, ts)
	var deleted struct {
		TS string `json:"deleted_ts"`
	}
	p.Expect("message_deleted", &deleted)
	require.Equal(w.t, ts, deleted.TS)
	w.fake.OpenHome("", w.pat.ID, "messages")
	var home struct{ User, Tab, Channel string }
	p.Expect("app_home_opened", &home)
	require.Equal(w.t, w.dm, home.Channel)
}

// boltFiles: a file each way.
func (w *workspace) boltFiles(p *oracle.Process) {
	root := w.fake.Write(Post{Channel: w.dm, Text: "see", Files: []Upload{{Name: "plan.txt", Body: []byte("the plan")}}})
	var message struct{ Message boltMessage }
	p.Expect("message", &message)
	require.Equal(w.t, "file_share", message.Message.Subtype)
	require.Equal(w.t, "plan.txt", message.Message.Files[0].Name)
	p.Tell(map[string]string{"do": "download", "url": message.Message.Files[0].URL})
	type got struct {
		Status     int
		Type, Body string
	}
	var down struct{ With, Without got }
	p.Expect("download", &down)
	require.Equal(w.t, got{200, "text/plain; charset=utf-8", base64.StdEncoding.EncodeToString([]byte("the plan"))}, down.With)
	require.Equal(w.t, 200, down.Without.Status)
	require.Contains(w.t, down.Without.Type, "text/html")
	p.Tell(map[string]string{"do": "upload", "channel": w.dm, "thread": root, "name": "result.bin", "comment": "here", "content": base64.StdEncoding.EncodeToString([]byte{0, 1, 255})})
	p.Expect("upload", nil)
	seen := w.fake.Visible("", w.dm, root)
	require.Len(w.t, seen, 1)
	require.Equal(w.t, "here", seen[0].Text)
	require.Equal(w.t, "result.bin", seen[0].Files[0].Name)
	require.Equal(w.t, []byte{0, 1, 255}, seen[0].Files[0].Body)
}

// boltStream: a stream grows, is sealed, and takes nothing more.
func (w *workspace) boltStream(p *oracle.Process) {
	root := w.fake.Write(Post{Channel: w.general, Text: "tell", Silent: true})
	p.Tell(map[string]any{"do": "stream", "channel": w.general, "thread": root, "user": w.pat.ID, "team": w.team.ID, "parts": []string{"**one** ", "two three ", "four"}})
	var stream struct {
		Late    string
		Stopped struct{ TS string }
	}
	p.Expect("stream", &stream)
	require.Equal(w.t, "message_not_in_streaming_state", stream.Late)
	seen := w.fake.Visible("", w.general, root)
	require.Len(w.t, seen, 1)
	require.Equal(w.t, "**one** two three four", seen[0].Text)
	require.Equal(w.t, Sealed, seen[0].Streaming)
	require.Equal(w.t, stream.Stopped.TS, seen[0].TS)
	require.Positive(w.t, w.fake.Calls("chat.appendStream"))
}

// boltErrors: refusals have the codes that Bolt's errors carry, and lists their pages.
func (w *workspace) boltErrors(p *oracle.Process) {
	for _, c := range []struct {
		method, want string
		args         map[string]any
	}{
		{"chat.postMessage", "channel_not_found", map[string]any{"channel": "C404", "text": "x"}},
		{"chat.postMessage", "no_text", map[string]any{"channel": w.dm}},
		{"chat.postMessage", "invalid_blocks", map[string]any{"channel": w.dm, "blocks": []any{map[string]any{"type": "header", "text": map[string]any{"type": "mrkdwn", "text": "x"}}}}},
		{"conversations.replies", "thread_not_found", map[string]any{"channel": w.dm, "ts": "1.000001"}},
	} {
		p.Tell(map[string]any{"do": "call", "method": c.method, "args": c.args})
		var got struct{ Failed string }
		p.Expect("call", &got)
		require.Equal(w.t, c.want, got.Failed, c.method)
	}
	p.Tell(map[string]any{"do": "pages", "method": "users.list", "args": map[string]any{"limit": 1}, "list": "members"})
	var pages struct{ All []struct{ ID string } }
	p.Expect("pages", &pages)
	require.Len(w.t, pages.All, 2)
}

// boltLimits: Bolt waits as long as a 429 says and comes back once.
func (w *workspace) boltLimits(p *oracle.Process) {
	before := w.fake.Calls("chat.postMessage")
	w.fake.Break(Fault{Trouble: AnswerStatus, Status: http.StatusTooManyRequests, RetryAfter: time.Second, Method: "chat.postMessage"})
	begun := time.Now()
	p.Tell(map[string]any{"do": "call", "method": "chat.postMessage", "args": map[string]any{"channel": w.dm, "text": "patient"}})
	var got struct {
		Failed string
		OK     bool
	}
	p.Expect("call", &got)
	require.True(w.t, got.OK, got.Failed)
	require.GreaterOrEqual(w.t, time.Since(begun), time.Second)
	require.Equal(w.t, before+2, w.fake.Calls("chat.postMessage"))
	require.Empty(w.t, w.fake.Violations())
}

// boltRefresh: after a disconnect Bolt takes a new connection, and an event that was not acknowledged comes
// again.
func (w *workspace) boltRefresh(p *oracle.Process) {
	w.fake.Disconnect("refresh_requested")
	ts := w.fake.Say("", w.dm, "while nobody listens")
	p.Expect("reconnecting", nil)
	p.Expect("connected", nil)
	var message struct{ Message boltMessage }
	p.Expect("message", &message)
	require.Equal(w.t, ts, message.Message.TS)
	w.until(func() bool { now, _, opened := w.fake.Connections(); return now == 1 && opened == 2 }, "one connection")
	w.until(func() bool { return w.fake.Pending() == 0 }, "acknowledged")
}
