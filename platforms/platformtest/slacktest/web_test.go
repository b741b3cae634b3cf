package slacktest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFaults_ActOrNot(t *testing.T) {
	for _, c := range []struct {
		trouble Trouble
		acts    bool
		fails   bool
		status  int
		code    string
	}{
		{AnswerStatus, false, false, 503, ""},
		{AnswerError, false, false, 200, "internal_error"},
		{ResetBefore, false, true, 0, ""},
		{ResetAfter, true, true, 0, ""},
		{HangBefore, false, true, 0, ""},
		{HangAfter, true, true, 0, ""},
		{HalfBody, true, true, 0, ""},
		{SlowBody, true, false, 200, ""},
		{Garbage, false, false, 200, ""},
		{Late, true, false, 200, ""},
	} {
		t.Run(string(c.trouble), func(t *testing.T) {
			w := newWorkspace(t, Options{})
			w.fake.Break(Fault{Trouble: c.trouble, Channel: w.dm, Delay: time.Millisecond, Code: "internal_error"})
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			w.must("auth.test")
			w.must("chat.postMessage", "channel", w.general, "text", "not that one")
			a, err := w.try(ctx, w.team.BotToken, "chat.postMessage", "channel", w.dm, "text", "x")
			require.Equal(t, c.fails, err != nil, "%v", err)
			require.Equal(t, c.status, a.status)
			require.Equal(t, c.code, a.Error)
			require.Len(t, w.fake.Visible("", w.dm, ""), map[bool]int{true: 1}[c.acts])
			w.must("chat.postMessage", "channel", w.dm, "text", "once only")
		})
	}
}

func TestFaults_Storm(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.fake.Break(Fault{Trouble: AnswerStatus, Status: 500, Times: -1, Method: "conversations.history"})
	for range 5 {
		require.Equal(t, 500, w.call("conversations.history", "channel", w.dm).status)
	}
	w.must("chat.postMessage", "channel", w.dm, "text", "x")
	w.fake.Heal()
	w.must("conversations.history", "channel", w.dm)
}

func TestFaults_RateLimitOpensAWindow(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.fake.Break(Fault{Trouble: AnswerStatus, Status: 429, RetryAfter: 1500 * time.Millisecond})
	a := w.call("chat.postMessage", "channel", w.dm, "text", "x")
	require.Equal(t, 429, a.status)
	require.Equal(t, "2", a.header.Get("Retry-After"))
	require.Equal(t, "ratelimited", a.Error)
	w.must("chat.postMessage", "channel", w.general, "text", "another channel")
	w.must("reactions.add", "channel", w.dm, "timestamp", w.fake.Say("", w.dm, "x"), "name", "eyes")
	require.Empty(t, w.fake.Violations())
	require.Equal(t, 429, w.call("chat.postMessage", "channel", w.dm, "text", "too early").status)
	require.Len(t, w.fake.Violations(), 1)
	w.fake.Heal()
	w.must("chat.postMessage", "channel", w.dm, "text", "x")
}

func TestServer_ShutAndOpen(t *testing.T) {
	w := newWorkspace(t, Options{})
	l := w.listen(true)
	l.wait("hello", 1)
	w.fake.Shut()
	_, err := w.try(t.Context(), w.team.BotToken, "auth.test")
	require.Error(t, err)
	w.until(func() bool { now, _, _ := w.fake.Connections(); return now == 0 }, "sockets go too")
	require.NoError(t, w.fake.Open())
	w.must("auth.test")
	require.NoError(t, w.fake.Cut())
	w.http.CloseIdleConnections() // those are dead now
	w.listen(true).wait("hello", 1)
}

func TestChat_Refusals(t *testing.T) {
	w := newWorkspace(t, Options{})
	root := w.fake.Say("", w.general, "root")
	reply := w.fake.Write(Post{Channel: w.general, Thread: root, Text: "reply"})
	closed := w.fake.AddChannel("", Channel{Archived: true}).ID
	away := w.fake.AddChannel("", Channel{WithoutBot: true}).ID
	hidden := w.fake.AddChannel("", Channel{Kind: Private, WithoutBot: true}).ID
	quiet := w.fake.AddChannel("", Channel{Refuse: "restricted_action"}).ID
	long := strings.Repeat("x", 12001)
	for _, c := range []struct {
		want   string
		params []string
	}{
		{"channel_not_found", []string{"channel", "C404", "text", "x"}},
		{"channel_not_found", []string{"channel", hidden, "text", "x"}},
		{"is_archived", []string{"channel", closed, "text", "x"}},
		{"restricted_action", []string{"channel", quiet, "text", "x"}},
		{"no_text", []string{"channel", w.dm, "text", " \n"}},
		{"thread_not_found", []string{"channel", w.general, "text", "x", "thread_ts", "1.000001"}},
		{"cannot_reply_to_message", []string{"channel", w.general, "text", "x", "thread_ts", reply}},
		{"markdown_text_conflict", []string{"channel", w.dm, "text", "x", "markdown_text", "y"}},
		{"msg_too_long", []string{"channel", w.dm, "markdown_text", long}},
		{"msg_blocks_too_long", []string{"channel", w.dm, "blocks", `[{"type":"markdown","text":"` + long + `"}]`}},
		{"invalid_blocks_format", []string{"channel", w.dm, "blocks", "{"}},
		{"invalid_attachments", []string{"channel", w.dm, "attachments", "{"}},
		{"invalid_metadata_format", []string{"channel", w.dm, "text", "x", "metadata", "{}"}},
		{"", []string{"channel", "#general", "text", "by name"}},
		{"", []string{"channel", away, "text", "chat:write.public"}},
		{"", []string{"channel", w.general, "text", "in the thread", "thread_ts", root, "reply_broadcast", "true"}},
	} {
		require.Equal(t, c.want, w.call("chat.postMessage", c.params...).Error, "%v", c.params[:2])
	}
	seen := w.fake.Visible("", w.general, "")
	require.Len(t, seen, 2)
	require.True(t, seen[1].Broadcast)
	w.fake.SetScopes("", "chat:write")
	require.Equal(t, "not_in_channel", w.call("chat.postMessage", "channel", away, "text", "x").Error)
	require.Equal(t, "missing_scope", w.call("chat.postMessage", "channel", w.dm, "text", "x", "username", "Else").Error)
	w.must("chat.postMessage", "channel", w.dm, "text", strings.Repeat("é", 40001))
	require.Equal(t, strings.Repeat("é", 40000), w.fake.Visible("", w.dm, "")[0].Text)
	require.Equal(t, "user_not_in_channel", w.call("chat.postEphemeral", "channel", w.general, "user", "U404", "text", "x").Error)
	w.must("chat.postEphemeral", "channel", w.general, "user", w.pat.ID, "text", "psst", "thread_ts", root)
	require.Equal(t, w.pat.ID, w.fake.Visible("", w.general, root)[1].Ephemeral)
}

func TestChat_TakesJSONToo(t *testing.T) {
	w := newWorkspace(t, Options{})
	body := `{"channel":"` + w.dm + `","text":"json","unfurl_links":false,"blocks":` + oneButton + `}`
	a, err := w.post(t.Context(), w.team.BotToken, "chat.postMessage", "application/json; charset=utf-8", []byte(body))
	require.NoError(t, err)
	require.True(t, a.OK, a.raw)
	seen := w.fake.Visible("", w.dm, "")[0]
	require.Equal(t, "choose", seen.Text)
	require.Equal(t, "json", seen.Fallback)
	require.Equal(t, "Go", seen.Buttons[0].Label)
	require.False(t, *seen.UnfurlLinks)
	require.Nil(t, seen.UnfurlMedia)
	require.True(t, w.fake.Requests("chat.postMessage")[0].JSON)
	// Methods that read take no JSON: Slack doesn't see the arguments.
	a, err = w.post(t.Context(), w.team.BotToken, "conversations.info", "application/json", []byte(`{"channel":"`+w.dm+`"}`))
	require.NoError(t, err)
	require.Equal(t, "channel_not_found", a.Error)
	a, err = w.try(t.Context(), "", "auth.test", "token", w.team.BotToken)
	require.NoError(t, err)
	require.True(t, a.OK, "the token as a parameter")
}

func TestChat_UpdateKeepsWhatIsNotGiven(t *testing.T) {
	w := newWorkspace(t, Options{UpdateLimit: 10})
	ts := w.must("chat.postMessage", "channel", w.dm, "text", "t", "blocks", oneButton)["ts"].(string)
	w.must("chat.update", "channel", w.dm, "ts", ts, "blocks", strings.ReplaceAll(oneButton, "Go", "Stop"))
	require.Equal(t, "Stop", w.fake.Visible("", w.dm, "")[0].Buttons[0].Label)
	require.Equal(t, "t", w.fake.Visible("", w.dm, "")[0].Fallback)
	w.must("chat.update", "channel", w.dm, "ts", ts, "text", "t2", "blocks", "[]")
	seen := w.fake.Visible("", w.dm, "")[0]
	require.Equal(t, "t2", seen.Text)
	require.Empty(t, seen.Buttons)
	require.Equal(t, "msg_too_long", w.call("chat.update", "channel", w.dm, "ts", ts, "text", "ééééé.").Error, "the limit is in bytes")
	require.Equal(t, "message_not_found", w.call("chat.update", "channel", w.dm, "ts", "1.000001", "text", "x").Error)
}

func TestBlocks_Rules(t *testing.T) {
	w := newWorkspace(t, Options{})
	section := func(n int) string {
		return `{"type":"section","text":{"type":"mrkdwn","text":"` + strings.Repeat("x", n) + `"}}`
	}
	button := func(id string) string {
		return `{"type":"button","action_id":"` + id + `","text":{"type":"plain_text","text":"B"}}`
	}
	many := func(one string, n int) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	buttons := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, button(fmt.Sprint(i)))
		}
		return `{"type":"actions","elements":[` + strings.Join(all, ",") + `]}`
	}
	row := `[{"type":"raw_text","text":"x"}]`
	for _, c := range []struct{ name, blocks, want string }{
		{"50 blocks", many(section(1), 50), ""},
		{"51 blocks", many(section(1), 51), "no more than 50 items allowed [json-pointer:/blocks]"},
		{"3000 characters", section(3000), ""},
		{"3001 characters", section(3001), "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"},
		{"empty section", section(0), "must be more than 0 characters [json-pointer:/blocks/0/text/text]"},
		{"no text", `{"type":"section"}`, "missing required field: text [json-pointer:/blocks/0]"},
		{"unknown type", `{"type":"poem"}`, "unsupported type: poem [json-pointer:/blocks/0/type]"},
		{"header in mrkdwn", `{"type":"header","text":{"type":"mrkdwn","text":"x"}}`, "failed to match all allowed schemas [json-pointer:/blocks/0/text]"},
		{"25 buttons", buttons(25), ""},
		{"26 buttons", buttons(26), "no more than 25 items allowed [json-pointer:/blocks/0/elements]"},
		{"action id twice", `{"type":"actions","elements":[` + button("a") + "," + button("a") + `]}`, "`action_id` already exists: a [json-pointer:/blocks/0/elements/1/action_id]"},
		{"long label", `{"type":"actions","elements":[` + strings.ReplaceAll(button("a"), `"B"`, `"`+strings.Repeat("x", 76)+`"`) + `]}`, "must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]"},
		{"style", `{"type":"actions","elements":[{"type":"button","action_id":"a","style":"huge","text":{"type":"plain_text","text":"B"}}]}`, `invalid value: "huge" [json-pointer:/blocks/0/elements/0/style]`},
		{"table", `{"type":"table","rows":[` + many(row, 100) + `]}`, ""},
		{"101 rows", `{"type":"table","rows":[` + many(row, 101) + `]}`, "no more than 100 items allowed [json-pointer:/blocks/0/rows]"},
		{"two tables", many(`{"type":"table","rows":[`+row+`]}`, 2), "only one table block is allowed [json-pointer:/blocks/1]"},
		{"image without a description", `{"type":"image","image_url":"https://x.example/x.png"}`, "must be more than 0 characters [json-pointer:/blocks/0/alt_text]"},
		{"block id twice", many(`{"type":"divider","block_id":"d"}`, 2), "`block_id` already exists: d [json-pointer:/blocks/1/block_id]"},
		{"rich text", `{"type":"rich_text","elements":[{"type":"rich_text_quote","elements":[{"type":"text","text":"x","style":{"bold":true}}]}]}`, ""},
	} {
		a := w.call("chat.postMessage", "channel", w.dm, "text", "x", "blocks", "["+c.blocks+"]")
		if c.want == "" {
			require.True(t, a.OK, "%s: %s", c.name, a.raw)
			continue
		}
		require.Equal(t, "invalid_blocks", a.Error, c.name)
		require.Contains(t, fmt.Sprint(a.body["errors"]), c.want, c.name)
	}
}

func TestConversations_HistoryAndReplies(t *testing.T) {
	w := newWorkspace(t, Options{})
	var all []string
	for i := range 5 {
		all = append(all, w.fake.Say("", w.general, fmt.Sprint("m", i)))
	}
	w.must("chat.postMessage", "channel", w.general, "thread_ts", all[1], "text", "r0", "metadata", `{"event_type":"e","event_payload":{"k":"v"}}`)
	w.fake.Write(Post{Channel: w.general, Thread: all[1], Text: "r1"})
	w.must("chat.postEphemeral", "channel", w.general, "user", w.pat.ID, "text", "unseen", "thread_ts", all[1])
	texts := func(body map[string]any) (out []string) {
		for _, m := range body["messages"].([]any) {
			out = append(out, m.(map[string]any)["text"].(string))
		}
		return out
	}
	page := w.must("conversations.history", "channel", w.general, "limit", "3")
	require.Equal(t, []string{"m4", "m3", "m2"}, texts(page))
	require.Equal(t, true, page["has_more"])
	cursor := page["response_metadata"].(map[string]any)["next_cursor"].(string)
	page = w.must("conversations.history", "channel", w.general, "limit", "3", "cursor", cursor)
	require.Equal(t, []string{"m1", "m0"}, texts(page))
	root := page["messages"].([]any)[0].(map[string]any)
	require.EqualValues(t, 2, root["reply_count"])
	require.Equal(t, all[1], root["thread_ts"])
	require.Equal(t, "invalid_cursor", w.call("conversations.history", "channel", w.general, "cursor", "nonsense").Error)
	require.Equal(t, []string{"m3", "m2"}, texts(w.must("conversations.history", "channel", w.general, "oldest", all[1], "latest", all[4])))

	replies := w.must("conversations.replies", "channel", w.general, "ts", all[1])
	require.Equal(t, []string{"m1", "r0", "r1"}, texts(replies))
	require.NotContains(t, replies["messages"].([]any)[1], "metadata")
	replies = w.must("conversations.replies", "channel", w.general, "ts", all[1], "include_all_metadata", "true")
	require.Contains(t, replies["messages"].([]any)[1], "metadata")
	require.Equal(t, "thread_not_found", w.call("conversations.replies", "channel", w.general, "ts", "1.000001").Error)
	w.fake.Delete("", w.general, all[1])
	require.Equal(t, "This message was deleted.", texts(w.must("conversations.replies", "channel", w.general, "ts", all[1]))[0])
	w.fake.SetScopes("", "groups:history")
	a := w.call("conversations.history", "channel", w.general)
	require.Equal(t, "channels:history", a.body["needed"])
}

func TestConversations_OpenAndList(t *testing.T) {
	w := newWorkspace(t, Options{})
	ann := w.fake.AddUser("", User{RealName: "Ann", Email: "ann@x.example"})
	open := w.must("conversations.open", "users", ann.ID)
	require.Equal(t, w.fake.OpenDM("", ann.ID), open["channel"].(map[string]any)["id"])
	require.Equal(t, true, w.must("conversations.open", "users", ann.ID)["already_open"])
	group := w.must("conversations.open", "users", ann.ID+","+w.pat.ID)["channel"].(map[string]any)["id"]
	require.Equal(t, group, w.must("conversations.open", "users", w.pat.ID+","+ann.ID)["channel"].(map[string]any)["id"])
	require.Equal(t, "user_not_found", w.call("conversations.open", "users", "U404").Error)
	info := w.must("conversations.info", "channel", group.(string))["channel"].(map[string]any)
	require.Equal(t, true, info["is_mpim"])
	require.Len(t, w.must("users.conversations", "types", "im,mpim,public_channel")["channels"], 4)
	profile := func() any { return w.must("users.info", "user", ann.ID)["user"].(map[string]any)["profile"] }
	require.Contains(t, profile(), "email")
	w.fake.SetScopes("", "users:read", "channels:read")
	require.NotContains(t, profile(), "email")
}

func TestReactions(t *testing.T) {
	w := newWorkspace(t, Options{})
	ts := w.fake.Say("", w.dm, "x")
	do := func(method, name string) string {
		return w.call(method, "channel", w.dm, "timestamp", ts, "name", name).Error
	}
	require.Empty(t, do("reactions.add", "eyes"))
	require.Equal(t, "already_reacted", do("reactions.add", "eyes"))
	require.Equal(t, "no_reaction", do("reactions.remove", "+1"))
	require.Equal(t, "invalid_name", do("reactions.add", ":eyes:"))
	w.fake.React("", w.dm, ts, "", "eyes")
	m, _ := w.fake.Message("", w.dm, ts)
	require.Equal(t, []Reaction{{"eyes", []string{w.team.BotUser, w.pat.ID}}}, m.Reactions)
	require.Empty(t, do("reactions.remove", "eyes"))
	got := w.must("reactions.get", "channel", w.dm, "timestamp", ts)["message"].(map[string]any)["reactions"].([]any)
	require.EqualValues(t, 1, got[0].(map[string]any)["count"])
	require.Equal(t, "message_not_found", w.call("reactions.add", "channel", w.dm, "timestamp", "1.000001", "name", "eyes").Error)
}

func TestFiles(t *testing.T) {
	w := newWorkspace(t, Options{})
	root := w.fake.Say("", w.general, "send me")
	get := w.must("files.getUploadURLExternal", "filename", "a.txt", "length", "5")
	id, to := get["file_id"].(string), get["upload_url"].(string)
	complete := func() string {
		return w.call("files.completeUploadExternal", "files", `[{"id":"`+id+`","title":"A"}]`, "channel_id", w.general, "thread_ts", root, "initial_comment", "look").Error
	}
	require.Equal(t, "file_not_found", complete(), "nothing was uploaded")
	upload := func(kind string, body []byte) int {
		resp, err := w.http.Post(to, kind, bytes.NewReader(body))
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, 400, upload("application/octet-stream", []byte("four")))
	require.Equal(t, 200, upload("application/octet-stream", []byte("hello")))
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	part, err := parts.CreateFormFile("file", "a.txt")
	require.NoError(t, err)
	_, _ = part.Write([]byte("hallo"))
	require.NoError(t, parts.Close())
	require.Equal(t, 200, upload(parts.FormDataContentType(), form.Bytes()))
	require.Empty(t, complete())
	require.Equal(t, "file_not_found", complete(), "once only")
	seen := w.fake.Visible("", w.general, root)
	require.Equal(t, "look", seen[0].Text)
	require.Equal(t, "A", seen[0].Files[0].Title)
	require.Equal(t, "hallo", string(seen[0].Files[0].Body))

	info := w.must("files.info", "file", id)["file"].(map[string]any)
	shares := info["shares"].(map[string]any)["public"].(map[string]any)[w.general].([]any)
	require.Equal(t, seen[0].TS, shares[0].(map[string]any)["ts"])
	download := func(token string) (string, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, info["url_private"].(string), nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := w.http.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		return string(body), resp.Header.Get("Content-Type")
	}
	body, _ := download(w.team.BotToken)
	require.Equal(t, "hallo", body)
	_, kind := download("xoxb-other")
	require.Contains(t, kind, "text/html", "a sign-in page, not an error")
	w.fake.SetScopes("", "chat:write")
	_, kind = download(w.team.BotToken)
	require.Contains(t, kind, "text/html", "without files:read too")
}

func TestStreams(t *testing.T) {
	w := newWorkspace(t, Options{StreamsPerMinute: 2})
	root := w.fake.Say("", w.general, "tell me")
	start := func(more ...string) answer {
		return w.call("chat.startStream", append([]string{"channel", w.general, "thread_ts", root, "recipient_team_id", w.team.ID, "recipient_user_id", w.pat.ID}, more...)...)
	}
	require.Equal(t, "missing_recipient_user_id", w.call("chat.startStream", "channel", w.general, "thread_ts", root).Error)
	require.Equal(t, "invalid_arguments", w.call("chat.startStream", "channel", w.dm).Error, "streams are replies")
	ts := start("markdown_text", "**a**").body["ts"].(string)
	add := func(method string, params ...string) string {
		return w.call(method, append([]string{"channel", w.general, "ts", ts}, params...)...).Error
	}
	require.Empty(t, add("chat.appendStream", "chunks", `[{"type":"markdown_text","text":" b"},{"type":"task_update","id":"1","title":"Look","status":"in_progress"}]`))
	require.Equal(t, "no_text", add("chat.appendStream"))
	require.Equal(t, "invalid_chunks", add("chat.appendStream", "chunks", `[{"type":"task_update","id":"1","title":"`+strings.Repeat("x", 257)+`"}]`))
	require.Equal(t, "streaming_state_conflict", add("chat.update", "text", "x"))
	require.Equal(t, "cant_delete_message", add("chat.delete"))
	require.Equal(t, Streams, w.fake.Visible("", w.general, root)[0].Streaming)
	require.Empty(t, add("chat.stopStream", "markdown_text", " c", "blocks", oneButton))
	require.Equal(t, "message_not_in_streaming_state", add("chat.stopStream"))
	seen := w.fake.Visible("", w.general, root)[0]
	require.Equal(t, Sealed, seen.Streaming)
	require.Equal(t, "**a** b c\nchoose", seen.Text)
	require.Len(t, seen.Chunks, 1)
	require.Equal(t, "Go", seen.Buttons[0].Label)
	require.Empty(t, add("chat.update", "text", "sealed ones can be edited"))

	ts = start().body["ts"].(string)
	require.True(t, w.fake.StopStream("", w.general, ts, false))
	require.Equal(t, "stopped_by_user", add("chat.appendStream", "markdown_text", "x"))
	limited := start()
	require.Equal(t, 429, limited.status)
	require.NotEmpty(t, limited.header.Get("Retry-After"))
}

func TestAssistant(t *testing.T) {
	w := newWorkspace(t, Options{})
	l := w.listen(true)
	channel, thread := w.fake.OpenAssistant("", w.pat.ID, w.general)
	require.Equal(t, w.dm, channel)
	require.Equal(t, "assistant_thread_started", l.wait("events_api", 1)[0].event(t).Event.Type)
	w.fake.SwitchContext("", channel, thread, w.general)
	require.Equal(t, "assistant_thread_context_changed", l.wait("events_api", 2)[1].event(t).Event.Type)
	w.must("assistant.threads.setStatus", "channel_id", channel, "thread_ts", thread, "status", "is thinking")
	w.must("assistant.threads.setTitle", "channel_id", channel, "thread_ts", thread, "title", "Plans")
	w.must("assistant.threads.setSuggestedPrompts", "channel_id", channel, "thread_ts", thread, "prompts", `[{"title":"A","message":"a"}]`)
	require.Equal(t, "invalid_arguments", w.call("assistant.threads.setSuggestedPrompts", "channel_id", channel, "thread_ts", thread, "prompts", strings.Replace(`[P,P,P,P,P]`, "P", `{"title":"A","message":"a"}`, 5)).Error)
	require.Equal(t, "is thinking", w.fake.Status("", channel, thread))
	require.Equal(t, "Plans", w.fake.Title("", channel, thread))
	require.JSONEq(t, `[{"title":"A","message":"a"}]`, string(w.fake.Prompts("", channel, thread)))
	w.must("chat.postMessage", "channel", channel, "thread_ts", thread, "text", "done")
	require.Empty(t, w.fake.Status("", channel, thread), "an answer ends the status")
	require.Equal(t, "invalid_thread_ts", w.call("assistant.threads.setStatus", "channel_id", channel, "thread_ts", "1.000001", "status", "x").Error)
}

func TestPeople_WriteAsSlackDelivers(t *testing.T) {
	w := newWorkspace(t, Options{})
	l := w.listen(true)
	bot := w.fake.AddUser("", User{RealName: "CI Bot", IsBot: true})
	w.fake.Write(Post{Channel: w.general, User: bot.ID, Text: "built", NoBlocks: true})
	w.fake.Write(Post{Channel: w.general, User: bot.ID, Text: "old style", Subtype: "bot_message"})
	root := w.fake.Write(Post{Channel: w.general, Text: "see <#" + w.general + "> &amp; <https://x.example|x>"})
	w.fake.Write(Post{Channel: w.general, Thread: root, Broadcast: true, Text: "both"})
	w.fake.Write(Post{Channel: w.general, Text: "by a script", ViaAPI: true})
	got := l.wait("events_api", 5)
	require.Contains(t, string(got[0].Payload), `"bot_id":"`+bot.BotID+`"`)
	require.NotContains(t, string(got[0].Payload), "client_msg_id")
	require.Equal(t, "bot_message", got[1].event(t).Event.Subtype)
	require.Empty(t, got[1].event(t).Event.User)
	require.Contains(t, string(got[2].Payload), `{"channel_id":"`+w.general+`","type":"channel"}`)
	require.Contains(t, string(got[2].Payload), `{"text":"x","type":"link","url":"https://x.example"}`)
	require.Equal(t, "thread_broadcast", got[3].event(t).Event.Subtype)
	require.Equal(t, root, got[3].event(t).Event.Thread)
	require.Contains(t, string(got[4].Payload), `"bot_id":"B0OTHERAPP"`)
	m, _ := w.fake.Message("", w.general, root)
	require.Equal(t, "see #general & x", m.Text)
	require.Equal(t, "a < b & <@U1>", w.fake.Unescape("", Escape("a < b & <@U1>")))
}

func TestKeep_BoundsWhatIsRemembered(t *testing.T) {
	w := newWorkspace(t, Options{Keep: 10})
	for range 100 {
		w.fake.Write(Post{Channel: w.dm, Text: "x", Files: []Upload{{Name: "a.txt", Body: []byte("a")}}})
		w.fake.Run(Command{Channel: w.dm, Name: "/x"})
		w.must("auth.test")
	}
	require.Less(t, len(w.fake.Messages("", w.dm)), 21)
	require.Less(t, len(w.fake.Acts("")), 21)
	require.Less(t, len(w.fake.Requests("")), 21)
	require.Equal(t, 100, w.fake.Calls("auth.test"))
	w.fake.mu.Lock()
	defer w.fake.mu.Unlock()
	require.Less(t, len(w.fake.files), 21)
	require.Less(t, len(w.fake.interactions), 21)
	require.Len(t, w.fake.responses, len(w.fake.interactions))
}
