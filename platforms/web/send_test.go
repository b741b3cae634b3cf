package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
	"herald/platforms/web"
)

func sendError(t testing.TB, err error) *platforms.SendError {
	t.Helper()
	var se *platforms.SendError
	require.ErrorAs(t, err, &se)
	return se
}

func TestTraits(t *testing.T) {
	tr := newStage(t, nil).adapter.Traits()
	require.Equal(t, platforms.Traits{
		Text: platforms.TextTraits{Dialect: platforms.Markdown}, Tier: platforms.TierHigh, Edit: true, Buttons: true,
		Idempotent: true, Trusted: true, Attachments: true, MaxUpload: 128 << 20, EditInterval: 50 * time.Millisecond,
		CommandPrefix: "/",
	}, tr)
}

// P4: whatever is repeated, and however often, a nonce is one message.
func TestSend_ANonceIsOneMessage_P4(t *testing.T) {
	s := newStage(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		chat := platforms.ChatID("chat-" + strings.ToLower(rapid.StringMatching("[a-z0-9]{12}").Draw(rt, "chat")))
		before := len(s.history(chat, "?limit=200").Messages)
		nonces := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 20).Draw(rt, "sends")
		ids := make(map[int]platforms.MessageID)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, n := range nonces {
			wg.Go(func() {
				r, err := s.adapter.Send(context.Background(), text(chat, fmt.Sprint(chat, n), fmt.Sprint("message ", n)))
				mu.Lock()
				defer mu.Unlock()
				if err != nil || ids[n] != "" && ids[n] != r.Message {
					rt.Errorf("nonce %d: %v, ids %s and %s", n, err, ids[n], r.Message)
				}
				ids[n] = r.Message
			})
		}
		wg.Wait()
		if got := len(s.history(chat, "?limit=200").Messages) - before; got != len(ids) {
			rt.Fatalf("%d nonces made %d messages", len(ids), got)
		}
	})
}

// A repeated send must not bring back what was edited since.
func TestSend_RepeatedShowsTheEditedMessage(t *testing.T) {
	s := newStage(t, nil)
	out := text(testChat, "n1", "draft")
	id := s.send(out)
	edit := text(testChat, "n2", "final")
	edit.Edit = id
	s.send(edit)
	require.Equal(t, id, s.send(out))
	require.Equal(t, "final", s.history(testChat, "").Messages[0].Text)
	require.NoError(t, s.adapter.Delete(t.Context(), at(testChat), id))
	_, err := s.adapter.Send(t.Context(), out)
	require.Equal(t, platforms.MessageGone, sendError(t, err).Kind)
}

func TestSend_EditsInPlace(t *testing.T) {
	c := newClock()
	s := newStage(t, func(o *web.Options) { o.Now = c.now })
	out := text(testChat, "n1", "work")
	out.Interim, out.Progress = true, true
	out.Buttons = [][]platforms.Button{{{Label: "A", Data: "a"}}}
	id := s.send(out)
	m := s.history(testChat, "").Messages[0]
	require.True(t, m.Interim && m.Progress)
	require.Equal(t, "a", m.Buttons[0][0].Data)

	c.move(time.Minute)
	done := text(testChat, "n2", "**done**")
	done.Edit = id
	s.send(done)
	m = s.history(testChat, "").Messages[0]
	require.Equal(t, "<p><strong>done</strong></p>\n", m.HTML)
	require.Empty(t, m.Buttons, "an edit without rows takes them away")
	require.Empty(t, m.Edited, "completing a preview is no edit")
	writes := s.log.writes
	s.send(done)
	require.Equal(t, writes, s.log.writes, "the same content is not written again")
	done.Text.Markdown = "changed"
	s.send(done)
	require.NotEmpty(t, s.history(testChat, "").Messages[0].Edited)
	require.Len(t, s.history(testChat, "").Messages, 1, "P4")
}

func TestSend_Refusals(t *testing.T) {
	s := newStage(t, nil)
	mine := s.post(testChat, "client-1", "mine")
	with := func(change func(*platforms.Outgoing)) platforms.Outgoing {
		out := text(testChat, "", "x")
		change(&out)
		return out
	}
	for name, c := range map[string]struct {
		out  platforms.Outgoing
		kind platforms.FailureKind
	}{
		"other platform":  {with(func(o *platforms.Outgoing) { o.Address.Platform = "slack" }), platforms.BadRequest},
		"other account":   {with(func(o *platforms.Outgoing) { o.Address.Account = "other" }), platforms.BadRequest},
		"a thread":        {with(func(o *platforms.Outgoing) { o.Address.Thread = "t" }), platforms.BadRequest},
		"no chat":         {with(func(o *platforms.Outgoing) { o.Address.Chat = "" }), platforms.BadRequest},
		"bad chat":        {with(func(o *platforms.Outgoing) { o.Address.Chat = "../../../x" }), platforms.BadRequest},
		"empty":           {with(func(o *platforms.Outgoing) { o.Text = platforms.Text{} }), platforms.BadRequest},
		"edit of nothing": {with(func(o *platforms.Outgoing) { o.Edit = "77" }), platforms.MessageGone},
		"edit of mine":    {with(func(o *platforms.Outgoing) { o.Edit = platforms.MessageID(fmt.Sprint(mine.Seq)) }), platforms.BadRequest},
	} {
		_, err := s.adapter.Send(t.Context(), c.out)
		se := sendError(t, err)
		require.Equal(t, c.kind, se.Kind, name)
		require.Equal(t, platforms.NotSent, se.Certainty, name)
	}
	require.Equal(t, 1, s.log.count())

	require.ErrorContains(t, s.adapter.Delete(t.Context(), at(testChat), platforms.MessageID(fmt.Sprint(mine.Seq))), "not ours")
	require.NoError(t, s.adapter.Delete(t.Context(), at(testChat), "99"), "gone already is success")
	require.Error(t, s.adapter.Typing(t.Context(), platforms.Address{Platform: "x"}))
}

func TestSend_OutcomeWhenTheLogFails(t *testing.T) {
	s := newStage(t, nil)
	s.log.setFail(errDisk)
	_, err := s.adapter.Send(t.Context(), text(testChat, "n1", "x"))
	require.Equal(t, platforms.Unknown, sendError(t, err).Certainty, "the log may have taken it")
	require.Equal(t, platforms.Transient, sendError(t, err).Kind)
	require.ErrorIs(t, err, errDisk)
	s.log.setFail(nil)
	s.send(text(testChat, "n1", "x"))
	require.Equal(t, 1, s.log.count())
}

func TestSend_Files(t *testing.T) {
	s := newStage(t, func(o *web.Options) { o.MaxUpload = 4000 })
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, b, 0o644))
		return p
	}
	img := write("a.png", picture(t, 4, 4))
	page := write("evil.html", []byte("<script>alert(1)</script>"))
	big := write("big.bin", make([]byte, 4001))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	out := text(testChat, "n1", "files")
	out.Attachments = []platforms.Attachment{
		{Path: img, Name: "../../a.png", Caption: "a picture"}, {Path: page}, {Path: big}, {Path: filepath.Join(dir, "none.txt")},
		{Path: dir, Name: "folder"}, {Path: filepath.Join(dir, "link"), Name: "link"},
	}
	r, err := s.adapter.Send(t.Context(), out)
	require.NoError(t, err)
	require.Len(t, r.Notes, 4)
	require.Contains(t, r.Notes[0], "big.bin was not sent: it is over the limit of 3.906 KiB")
	require.Contains(t, r.Notes[1], "none.txt was not sent: no such file")
	for _, n := range r.Notes {
		require.NotContains(t, n, dir, "a note shows no path")
	}
	again, err := s.adapter.Send(t.Context(), out)
	require.NoError(t, err)
	require.Equal(t, r.Message, again.Message)

	files := s.history(testChat, "").Messages[0].Files
	require.Len(t, files, 2)
	require.Equal(t, "a.png", files[0].Name)
	require.Equal(t, "a picture", files[0].Note)
	// What was sent stays what it was.
	require.NoError(t, os.WriteFile(page, []byte("changed"), 0o644))
	res, body := s.do("GET", files[1].URL, nil, nil)
	require.Equal(t, "<script>alert(1)</script>", string(body))
	require.Equal(t, "application/octet-stream", res.Header.Get("Content-Type"))
	require.Contains(t, res.Header.Get("Content-Disposition"), "attachment; filename*=UTF-8''evil.html")
	require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
	require.Contains(t, res.Header.Get("Content-Security-Policy"), "sandbox")
	require.Equal(t, "same-origin", res.Header.Get("Cross-Origin-Resource-Policy"))
	res, _ = s.do("GET", files[0].URL, nil, nil)
	require.Equal(t, "image/png", res.Header.Get("Content-Type"))
	require.Contains(t, res.Header.Get("Content-Disposition"), "inline")
	res, body = s.do("GET", files[0].URL, nil, func(r *http.Request) { r.Header.Set("Range", "bytes=1-3") })
	require.Equal(t, 206, res.StatusCode)
	require.Equal(t, "PNG", string(body))

	require.NoError(t, s.adapter.Delete(t.Context(), at(testChat), r.Message))
	res, _ = s.do("GET", files[0].URL, nil, nil)
	require.Equal(t, 404, res.StatusCode, "files go with their message")

	only := platforms.Outgoing{Address: at(testChat), Attachments: []platforms.Attachment{{Path: big, Name: "big.bin"}}}
	_, err = s.adapter.Send(t.Context(), only)
	require.ErrorContains(t, err, "big.bin was not sent")
	require.Equal(t, platforms.BadRequest, sendError(t, err).Kind)
}

// Ids are all that a download names: nothing of the disk can be reached with them.
func TestDownload_TraversalIsImpossible(t *testing.T) {
	s := newStage(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "..", "secret"), []byte("s"), 0o600))
	// Even a folder of the right name that leads elsewhere.
	evil := strings.Repeat("a", 32)
	require.NoError(t, os.Symlink("/etc", filepath.Join(s.dir, evil)))
	inner := strings.Repeat("b", 32)
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, inner), 0o700))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(s.dir, inner, "passwd")))
	for _, id := range []string{
		evil, inner, "..", ".", "%2e%2e%2fsecret", "..%2fsecret", ".session-key", "%2e%2e", "..%5csecret",
		strings.Repeat("0", 32), strings.Repeat("A", 32), strings.Repeat("0", 31) + "%00", inner + "%2fpasswd",
	} {
		res, b := s.do("GET", "/api/chat/files/"+id, nil, nil)
		require.Contains(t, []int{404, 400, 503}, res.StatusCode, "%s: %s", id, b)
		require.NotContains(t, string(b), "root:")
		require.NotEqual(t, "s", string(b))
	}
}

func TestMediaDir_IsMadePrivateAndTidy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "media")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "0123.XYZ.part"), 0o755))
	a, err := web.New(web.Options{Log: newMemLog(), MediaDir: dir, Listen: "127.0.0.1:1"})
	require.NoError(t, err)
	defer a.Close()
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoDirExists(t, filepath.Join(dir, "0123.XYZ.part"), "what a crash left half written")
	key, err := os.Stat(filepath.Join(dir, ".session-key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), key.Mode().Perm())
}

func TestSend_Quote(t *testing.T) {
	s := newStage(t, nil)
	m := s.post(testChat, "client-1", "the question")
	out := text(testChat, "n1", "the answer")
	out.ReplyTo = platforms.MessageID(fmt.Sprint(m.Seq))
	s.send(out)
	out = text(testChat, "n2", "to nothing")
	out.ReplyTo = "999"
	s.send(out)
	h := s.history(testChat, "")
	require.Equal(t, "the question", h.Messages[1].Reply.Text)
	require.Nil(t, h.Messages[2].Reply)
}

func TestHistory_Pages(t *testing.T) {
	s := newStage(t, nil)
	for i := range 120 {
		s.send(text(testChat, fmt.Sprint(i), fmt.Sprint("m", i)))
	}
	s.send(text("chat-another-one-here", "x", "other"))
	h := s.history(testChat, "")
	require.Len(t, h.Messages, 50)
	require.True(t, h.More)
	require.Equal(t, "m119", h.Messages[49].Text)
	require.Equal(t, "m0", h.Messages[0].Title, "the title is of the first message")
	var texts []string
	before := int64(0)
	for {
		h = s.history(testChat, fmt.Sprintf("?limit=50&before=%d", before))
		for i := len(h.Messages) - 1; i >= 0; i-- {
			texts = append(texts, h.Messages[i].Text)
		}
		if !h.More {
			break
		}
		before = h.Messages[0].Seq
	}
	require.Len(t, texts, 120)
	require.Equal(t, "m0", texts[119])
	// A page of big messages is cut short, and says so.
	for i := range 5 {
		s.send(text(testChat, fmt.Sprint("big", i), strings.Repeat("word ", 300_000)))
	}
	h = s.history(testChat, "")
	require.Len(t, h.Messages, 2)
	require.True(t, h.More)
	res, _ := s.do("GET", messagesPath(testChat)+"?before=x", nil, nil)
	require.Equal(t, 400, res.StatusCode)
}

func TestChats_TitleAndOrder(t *testing.T) {
	s := newStage(t, nil)
	s.post("chat-aaaaaaaa", "client-1", "# Shopping  list\nmilk")
	s.post("chat-bbbbbbbb", "client-1", strings.Repeat("long title ", 20))
	s.send(text("chat-aaaaaaaa", "n", "noted"))
	_, b := s.do("GET", "/api/chat/bootstrap", nil, nil)
	require.Contains(t, string(b), `"title":"Shopping list","preview":"noted","from":"agent"`)
	require.Less(t, strings.Index(string(b), "chat-aaaaaaaa"), strings.Index(string(b), "chat-bbbbbbbb"))
	require.Contains(t, string(b), "…")
	_, b = s.do("GET", "/api/chat/chats?limit=1", nil, nil)
	require.NotContains(t, string(b), "chat-bbbbbbbb")
	require.Contains(t, string(b), `"more":true`)
	// A new process finds the title in the log.
	other, err := web.New(web.Options{Log: s.log, MediaDir: t.TempDir(), Listen: "127.0.0.1:1"})
	require.NoError(t, err)
	defer other.Close()
	_, err = other.Send(t.Context(), text("chat-aaaaaaaa", "n2", "more"))
	require.NoError(t, err)
	require.Equal(t, "Shopping list", s.history("chat-aaaaaaaa", "").Messages[2].Title)
}

func TestTyping_EndsWithTheAnswerOrByTime(t *testing.T) {
	c := newClock()
	s := newStage(t, func(o *web.Options) { o.Now = c.now })
	require.NoError(t, s.adapter.Typing(t.Context(), at(testChat)))
	require.True(t, s.history(testChat, "").Typing)
	require.False(t, s.history("chat-another-one-here", "").Typing, "P5")
	require.Less(t, s.adapter.TypingEvery(), 5*time.Second)
	c.move(5 * time.Second)
	require.False(t, s.history(testChat, "").Typing)
	require.NoError(t, s.adapter.Typing(t.Context(), at(testChat)))
	out := text(testChat, "n1", "so far")
	out.Interim = true
	id := s.send(out)
	require.True(t, s.history(testChat, "").Typing, "a preview is not the end")
	out.Interim, out.Edit = false, id
	s.send(out)
	require.False(t, s.history(testChat, "").Typing)
}

func TestFetch_Unknown(t *testing.T) {
	s := newStage(t, nil)
	err := s.adapter.Fetch(t.Context(), platforms.Attachment{Ref: "../../x", Name: "../n"}, 10, nil)
	require.True(t, errors.Is(err, os.ErrNotExist), "%v", err)
}
