package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/slacktest"
)

func TestButtons_ManyBecomeAMenu(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	at := w.at(w.dm, "")
	var rows [][]platforms.Button
	for i := range 130 {
		rows = append(rows, []platforms.Button{{Label: fmt.Sprintf("Choice %d %s", i, strings.Repeat("long ", 20)), Data: fmt.Sprintf("c:%d", i)}})
	}
	id := r.send(platforms.Outgoing{Address: at, Text: say("which?"), Buttons: rows}).Message
	m := w.one(t, at)
	require.Len(t, m.Buttons, 2)
	require.Equal(t, "static_select", m.Buttons[0].Kind)
	_, ok := w.fake.Press(slacktest.Press{Channel: w.dm, Message: string(id), User: w.pat.ID, Button: m.Buttons[1].ActionID, Option: "c:120"})
	require.True(t, ok)
	require.Equal(t, "c:120", r.events(1)[0].Click.Data)
}

func TestButtons_BelowALongText(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	at := w.at(w.dm, "")
	for _, n := range []int{5000, 20000} {
		text := strings.TrimSpace(strings.Repeat("word ", n/5))
		got := r.send(platforms.Outgoing{Address: at, Text: say(text), Buttons: [][]platforms.Button{{{Label: "Yes", Data: "y"}}}})
		m, ok := w.fake.Message("", w.dm, string(got.Message))
		require.True(t, ok)
		require.Len(t, m.Buttons, 1)
		var all string
		for _, m := range w.fake.Visible("", w.dm, "") {
			all += m.Text + " "
		}
		require.Equal(t, n/5, strings.Count(all, "word"))
		for _, m := range w.fake.Visible("", w.dm, "") {
			require.NoError(t, r.Delete(t.Context(), at, platforms.MessageID(m.TS)))
		}
	}
}

func TestButtons_AreChecked(t *testing.T) {
	r := startWorld(t).run(t)
	for _, b := range []platforms.Button{{Label: " ", Data: "x"}, {Label: "x"}, {Label: "x", Data: strings.Repeat("y", 65)}} {
		_, err := r.try(platforms.Outgoing{Address: r.w.at(r.w.dm, ""), Text: say("?"), Buttons: [][]platforms.Button{{b}}})
		require.Equal(t, platforms.BadRequest, platforms.AsSendError(err).Kind)
	}
}

// An edit that changes the buttons alone keeps the text.
func TestEdit_ButtonsAlone(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	at := w.at(w.general, w.threads[w.general])
	id := r.send(platforms.Outgoing{Address: at, Text: say("sure?"), Buttons: [][]platforms.Button{{{Label: "Yes", Data: "y"}}}}).Message
	r.send(platforms.Outgoing{Address: at, Edit: id})
	m := w.one(t, at)
	require.Equal(t, "sure?", m.Text)
	require.Empty(t, m.Buttons)
}

// A private answer: the placeholder is replaced, five posts, one word about the rest, and nothing in public.
func TestPrivate_FivePosts(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Run(slacktest.Command{Channel: w.general, User: w.pat.ID, Name: "/help"})
	e := r.events(1)[0]
	told := func() (texts []string) {
		for _, m := range w.fake.Visible("", w.general, "") {
			require.Equal(t, w.pat.ID, m.Ephemeral)
			texts = append(texts, m.Text)
		}
		return texts
	}
	r.until("the placeholder", func() bool { return slices.Equal(told(), []string{placeholder}) })
	var notes []string
	for i := range 8 {
		got := r.send(platforms.Outgoing{Address: e.Address, Text: say(fmt.Sprintf("part %d", i+1)), Private: e.Command.Reply})
		notes = append(notes, got.Notes...)
	}
	require.Equal(t, []string{"part 1", "part 2", "part 3", "part 4", "part 5", truncated}, told())
	require.Len(t, notes, 2)
	require.Zero(t, w.fake.Calls("chat.postMessage"))
}

func TestPrivate_SecondWay(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Run(slacktest.Command{Channel: w.general, User: w.pat.ID, Name: "/help"})
	e := r.events(1)[0]
	w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerStatus, Status: http.StatusNotFound, Method: slacktest.MethodRespond})
	r.send(platforms.Outgoing{Address: e.Address, Text: say("answer"), Private: e.Command.Reply})
	require.Equal(t, 1, w.fake.Calls("chat.postEphemeral"))
	// When no private way works, it fails and is not said in public.
	w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerStatus, Status: http.StatusNotFound, Method: slacktest.MethodRespond, Times: -1})
	w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerError, Code: "user_not_in_channel", Method: "chat.postEphemeral", Times: -1})
	_, err := r.try(platforms.Outgoing{Address: e.Address, Text: say("secret answer"), Private: e.Command.Reply})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "http")
	for _, m := range w.fake.Visible("", w.general, "") {
		require.NotEmpty(t, m.Ephemeral)
		require.NotContains(t, m.Text, "secret answer")
	}
}

func TestPrivate_TokenGoesToSlackAlone(t *testing.T) {
	r := startWorld(t).run(t)
	for _, url := range []string{"https://evil.example/x", "http://hooks.slack.com/x", "https://slack.com.evil.example/", "::"} {
		token := privateToken{URL: url, Channel: r.w.general, User: r.w.pat.ID}.String()
		r.send(platforms.Outgoing{Address: r.w.at(r.w.general, ""), Text: say("x"), Private: token})
	}
	require.Equal(t, 4, r.w.fake.Calls("chat.postEphemeral"))
	_, err := r.try(platforms.Outgoing{Address: r.w.at(r.w.general, ""), Text: say("x"), Private: "junk"})
	require.Equal(t, platforms.BadRequest, platforms.AsSendError(err).Kind)
}

func TestOutput_Settings(t *testing.T) {
	no, yes := false, true
	w, r, at := asked(t, func(o *Options) {
		o.ReplyBroadcast, o.ReplyPrefix, o.UnfurlLinks, o.UnfurlMedia, o.NativeStreaming = true, "🤖 ", &no, &no, &yes
	})
	first := r.send(platforms.Outgoing{Address: at, Text: say("first")})
	r.send(platforms.Outgoing{Address: at, Text: say("second")})
	m, _ := w.fake.Message("", w.general, string(first.Message))
	require.True(t, m.Broadcast)
	require.Equal(t, "🤖 first", m.Text)
	require.False(t, *m.UnfurlLinks)
	require.False(t, *m.UnfurlMedia)
	seen := w.fake.Visible("", w.general, string(at.Thread))
	require.False(t, seen[len(seen)-1].Broadcast, "the first part of the first answer alone")
}

func TestOutput_RichBlocks(t *testing.T) {
	w, r, at := asked(t, func(o *Options) { o.RichBlocks, o.FeedbackButtons = true, true })
	markdown := "Here:\n\n| a | b |\n|---|--:|\n| `1` | 2\\|3 |\n\nDone."
	r.send(platforms.Outgoing{Address: at, Text: platforms.Text{Body: "fallback", Plain: "fallback", Markdown: markdown}})
	m := w.one(t, at)
	var blocks []struct {
		Type string `json:"type"`
		Rows [][]struct {
			Text string `json:"text"`
		} `json:"rows"`
	}
	require.NoError(t, json.Unmarshal(m.Blocks, &blocks))
	var types []string
	for _, b := range blocks {
		types = append(types, b.Type)
	}
	require.Equal(t, []string{"section", "table", "section", "context_actions"}, types)
	require.Equal(t, "2|3", blocks[1].Rows[1][1].Text)
	id, ok := w.fake.Press(slacktest.Press{Channel: w.general, Message: m.TS, User: w.pat.ID, Button: feedbackID, Option: "good"})
	if !ok {
		id, ok = w.fake.Press(slacktest.Press{Channel: w.general, Message: m.TS, User: w.pat.ID, Button: feedbackID})
	}
	require.True(t, ok)
	r.until("the thanks", func() bool { i, _ := w.fake.Interaction(id); return len(i.Responses) == 1 })
	require.Len(t, r.sink.Events(), 1, "feedback is no event")
}

func TestTables(t *testing.T) {
	wide := "|" + strings.Repeat("a|", 21) + "\n|" + strings.Repeat("-|", 21)
	for name, c := range map[string]struct {
		markdown string
		blocks   int
	}{
		"none":             {"text", 0},
		"in code":          {"```\n|a|b|\n|-|-|\n```", 0},
		"no delimiter":     {"|a|b|\n|c|d|", 0},
		"alone":            {"|a|b|\n|:-:|-|\n|c|d|", 1},
		"after code":       {"~~~~\n|x|y|\n~~~~\n\n|a|b|\n|-|-|", 2},
		"too wide":         {wide, 0},
		"too long":         {"|a|b|\n|-|-|\n" + strings.Repeat("|c|d|\n", 101), 0},
		"too many letters": {"|a|b|\n|-|-|\n|" + strings.Repeat("x", 10001) + "|d|", 0},
	} {
		t.Run(name, func(t *testing.T) { require.Len(t, tableBlocks(c.markdown), c.blocks) })
	}
}

func TestTaskCards(t *testing.T) {
	w, r, at := asked(t, func(o *Options) { o.TaskCards = true })
	r.send(platforms.Outgoing{Address: at, Text: say("reads report.txt\nand more"), Progress: true, Interim: true})
	require.Contains(t, string(w.one(t, at).Blocks), "task_card")
}

func TestFind(t *testing.T) {
	w, r, at := asked(t, nil)
	out := platforms.Outgoing{Address: at, Text: say("answer"), Nonce: "abc"}
	w.fake.Break(slacktest.Fault{Trouble: slacktest.ResetAfter, Method: "chat.postMessage"})
	_, err := r.try(out)
	require.Equal(t, platforms.Unknown, platforms.AsSendError(err).Certainty)
	id, found, err := r.Find(t.Context(), out)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, platforms.MessageID(w.one(t, at).TS), id)
	out.Nonce = "other"
	_, found, err = r.Find(t.Context(), out)
	require.NoError(t, err)
	require.False(t, found)
	flat := platforms.Outgoing{Address: w.at(w.dm, ""), Text: say("x"), Nonce: "dm"}
	sent := r.send(flat)
	id, found, err = r.Find(t.Context(), flat)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, sent.Message, id)
}

func TestReact_ReplacesAlsoAfterARestart(t *testing.T) {
	w, r, at := asked(t, nil)
	id := r.sink.Events()[0].Message.ID
	require.NoError(t, r.React(t.Context(), at, id, "👀"))
	require.Zero(t, w.fake.Calls("reactions.get"), "one call is enough for the first sign")
	r.settled()
	r = w.run(t)
	require.NoError(t, r.React(t.Context(), at, id, "✅"))
	require.NoError(t, r.React(t.Context(), at, id, "✅"))
	m, _ := w.fake.Message("", w.general, string(id))
	require.Len(t, m.Reactions, 1)
	require.Equal(t, "white_check_mark", m.Reactions[0].Name)
	r.s.Reactions = false
	require.Equal(t, platforms.Unsupported, platforms.AsSendError(r.React(t.Context(), at, id, "👀")).Kind)
}

func TestEmoji_BothWays(t *testing.T) {
	for name, char := range emoji {
		require.Equal(t, char, unicodeOf(slackName(char)), name)
		require.Equal(t, char, unicodeOf(name))
	}
	for in, want := range map[string]string{"👍🏽": "+1", ":tada:": "tada", "thumbsup": "+1", "party-parrot": "party-parrot", "❤": "heart", "wave::skin-tone-3": "wave"} {
		require.Equal(t, want, slackName(in), in)
	}
	require.Equal(t, ":party-parrot:", unicodeOf("party-parrot"))
	require.Equal(t, "👍", unicodeOf("+1::skin-tone-4"))
}

func TestFiles_AreTriedThreeTimes(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	path := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(path, []byte("body"), 0o600))
	at := w.at(w.general, w.threads[w.general])
	file := platforms.Attachment{Name: "a.txt", Path: path, Caption: "look & see"}
	for name, f := range map[string]slacktest.Fault{
		"5xx at the upload": {Trouble: slacktest.AnswerStatus, Method: slacktest.MethodUpload, Times: 2},
		"429 at the start":  {Trouble: slacktest.AnswerStatus, Status: 429, RetryAfter: time.Second, Method: "files.getUploadURLExternal"},
		"a cut upload":      {Trouble: slacktest.ResetAfter, Method: slacktest.MethodUpload, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(w.fake.Visible("", w.general, string(at.Thread)))
			w.fake.Break(f)
			got := r.send(platforms.Outgoing{Address: at, Attachments: []platforms.Attachment{file}})
			require.Empty(t, got.Notes)
			seen := w.fake.Visible("", w.general, string(at.Thread))
			require.Len(t, seen, before+1)
			require.Equal(t, "a.txt", seen[before].Files[0].Name)
			require.Equal(t, "look & see", seen[before].Text)
		})
	}
	w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerStatus, Method: slacktest.MethodUpload, Times: 3})
	_, err := r.try(platforms.Outgoing{Address: at, Attachments: []platforms.Attachment{file}})
	require.Equal(t, platforms.NotSent, platforms.AsSendError(err).Certainty, "nothing of an upload is visible")
	w.fake.Break(slacktest.Fault{Trouble: slacktest.ResetAfter, Method: "files.completeUploadExternal"})
	_, err = r.try(platforms.Outgoing{Address: at, Attachments: []platforms.Attachment{file}})
	require.Equal(t, platforms.Unknown, platforms.AsSendError(err).Certainty)
	require.Empty(t, w.fake.Violations())
}

func TestFiles_CaptionsGoFirstWithUnfurlSettings(t *testing.T) {
	no := false
	w, r, at := asked(t, func(o *Options) { o.UnfurlLinks = &no })
	path := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(path, []byte("body"), 0o600))
	r.send(platforms.Outgoing{Address: at, Attachments: []platforms.Attachment{{Name: "a.txt", Path: path, Caption: "see https://a.b"}}})
	seen := w.fake.Visible("", w.general, string(at.Thread))
	require.Len(t, seen, 2)
	require.False(t, *seen[0].UnfurlLinks)
	require.Len(t, seen[1].Files, 1)
}

func TestFetch_LoginPageAndForeignServers(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Write(slacktest.Post{Channel: w.dm, User: w.pat.ID, Files: []slacktest.Upload{{Name: "n.txt", MIME: "text/plain",
		Body: []byte("body")}, {Name: "later.txt", Mode: "check_file_info", Body: []byte("late")}, {Name: "away.txt", Mode: "external"}, {Name: "gone.txt", Mode: "tombstone"}}})
	m := r.events(1)[0].Message
	require.Len(t, m.Attachments, 2, "%+v", m)
	require.Contains(t, m.Text, "away.txt")
	require.Contains(t, m.Text, "deleted")
	var got strings.Builder
	require.NoError(t, r.Fetch(t.Context(), m.Attachments[1], 100, &got))
	require.Equal(t, "late", got.String())
	w.fake.SetScopes("", "chat:write")
	err := r.Fetch(t.Context(), m.Attachments[0], 100, &got)
	require.ErrorContains(t, err, "files:read")
	for _, url := range []string{"https://evil.example/x", "http://slack.com/x", "file:///etc/passwd"} {
		ref, _ := json.Marshal(fileRef{ID: "F1", URL: url})
		err := r.Fetch(t.Context(), platforms.Attachment{Name: "x", Ref: string(ref)}, 100, &got)
		require.Equal(t, platforms.BadRequest, platforms.AsSendError(err).Kind, url)
	}
	require.Error(t, r.Fetch(t.Context(), platforms.Attachment{Name: "x", Ref: "junk"}, 100, &got))
}

// An event of a shared channel names the id of a file alone: where it is has to be asked.
func TestFetch_OfASharedChannel(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Write(slacktest.Post{Channel: w.dm, User: w.pat.ID, Files: []slacktest.Upload{{Name: "later.txt", Mode: "check_file_info", Body: []byte("late")}}})
	m := r.events(1)[0].Message
	require.Len(t, m.Attachments, 1, "%+v", m)
	var got strings.Builder
	require.NoError(t, r.Fetch(t.Context(), m.Attachments[0], 100, &got))
	require.Equal(t, "late", got.String())
	require.Equal(t, 1, w.fake.Calls("files.info"))
}

func TestDirectory(t *testing.T) {
	w := startWorld(t)
	for i := range 450 {
		w.fake.AddUser("", slacktest.User{RealName: fmt.Sprintf("Person %d", i)})
	}
	r := w.run(t)
	rooms, err := r.Rooms(t.Context())
	require.NoError(t, err)
	byName := map[string]platforms.Room{}
	for _, room := range rooms {
		byName[room.Name] = room
	}
	require.Equal(t, w.at(w.general, ""), byName["general"].Address)
	require.Equal(t, platforms.UserID(w.pat.ID), byName["Pat Doe"].User)
	require.Equal(t, []string{"pat"}, byName["Pat Doe"].Aliases)
	require.Contains(t, byName, "Person 449")
	at, err := r.Open(t.Context(), platforms.UserID(w.pat.ID))
	require.NoError(t, err)
	require.Equal(t, w.at(w.dm, ""), at)
	// A person's id as a target is their direct chat.
	r.send(platforms.Outgoing{Address: w.at(w.pat.ID, ""), Text: say("hello")})
	require.Equal(t, "hello", w.one(t, w.at(w.dm, "")).Text)
	_, err = r.Open(t.Context(), "UNOBODY")
	require.Equal(t, platforms.NotFound, platforms.AsSendError(err).Kind)
}

func TestOutcome_Codes(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	for code, kind := range map[string]platforms.FailureKind{
		"channel_not_found": platforms.NotFound, "not_in_channel": platforms.Forbidden, "is_archived": platforms.Forbidden,
		"restricted_action": platforms.Forbidden, "msg_too_long": platforms.TooLong, "ratelimited": platforms.RateLimited,
		"missing_scope": platforms.Unsupported, "internal_error": platforms.Transient, "thread_not_found": platforms.ThreadGone,
		"something_new": platforms.BadRequest,
	} {
		w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerError, Code: code, Method: "chat.postMessage"})
		_, err := r.try(platforms.Outgoing{Address: w.at(w.dm, ""), Text: say("x")})
		require.Equal(t, kind, platforms.AsSendError(err).Kind, code)
		r.gate = newGate(r.s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := r.Send(ctx, platforms.Outgoing{Address: w.at(w.dm, ""), Text: say("x")})
	require.Equal(t, platforms.NotSent, platforms.AsSendError(err).Certainty)
	for _, at := range []platforms.Address{{}, {Platform: Platform, Account: "other", Chat: "C1"}, w.at("", "")} {
		_, err := r.try(platforms.Outgoing{Address: at, Text: say("x")})
		require.Equal(t, platforms.BadRequest, platforms.AsSendError(err).Kind)
	}
	_, err = r.try(platforms.Outgoing{Address: w.at(w.dm, "")})
	require.Equal(t, platforms.BadRequest, platforms.AsSendError(err).Kind)
}
