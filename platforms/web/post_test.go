package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/web"
)

func TestPost_BecomesAnEvent(t *testing.T) {
	c := newClock()
	s := newStage(t, func(o *web.Options) { o.Now = c.now })
	res, b := s.do("POST", messagesPath(testChat), postBody{"client-1", "  Hello\nthere "}, func(r *http.Request) {
		r.Header.Set("Accept-Language", "de-AT,de;q=0.9,en;q=0.5")
	})
	require.Equal(t, 200, res.StatusCode, "%s", b)
	require.Equal(t, []platforms.Event{{
		ID:       platforms.EventID(testChat) + "/m/client-1",
		Address:  platforms.Address{Platform: "web", Account: "local", Chat: testChat},
		ChatType: platforms.DM, ChatName: "Hello",
		Sender:    platforms.User{ID: "owner", Name: "owner", Language: "de-AT"},
		At:        c.now(),
		Addressed: true,
		Message:   &platforms.Message{ID: "1", Text: "  Hello\nthere "},
	}}, s.sink.all())
	h := s.history(testChat, "")
	require.Len(t, h.Messages, 1)
	require.Equal(t, message{Chat: testChat, Seq: 1, From: "user", Text: "  Hello\nthere ", Title: "Hello", Client: "client-1"}, h.Messages[0])
	require.True(t, s.adapter.Health().Inbound)
	require.Equal(t, c.now(), s.adapter.Health().LastEvent)
}

// P2: the same message posted again is the same message.
func TestPost_TwiceIsOnce_P2(t *testing.T) {
	s := newStage(t, nil)
	first := s.post(testChat, "client-1", "hello")
	second := s.post(testChat, "client-1", "hello")
	require.Equal(t, first, second)
	require.Len(t, s.sink.all(), 1)
	require.Equal(t, 1, s.log.count())
	// The id is of the chat: the same one in another chat is another message.
	s.post("chat-another-one-here", "client-1", "hello")
	require.Len(t, s.sink.all(), 2)
	// And many tries at once are one as well.
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			res, err := s.server.Client().Do(s.request("POST", messagesPath(testChat), postBody{"client-2", "at once"}, nil))
			if err == nil {
				_ = res.Body.Close()
			}
		})
	}
	wg.Wait()
	require.Len(t, s.sink.all(), 3)
	require.Equal(t, 3, s.log.count())
}

// P1: a message that was not accepted is told to be so, is kept, and can be offered again.
func TestPost_RefusedIsKept_P1(t *testing.T) {
	for name, again := range map[string]func(s *stage){
		"posted again": func(s *stage) { s.post(testChat, "client-1", "hello") },
		"retried from the log": func(s *stage) {
			res, b := s.do("POST", messagesPath(testChat)+"/1/retry", nil, nil)
			require.Equal(t, 200, res.StatusCode, "%s", b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			s.sink.setErr(fmt.Errorf("store: %w", platforms.ErrRefused))
			res, b := s.do("POST", messagesPath(testChat), postBody{"client-1", "hello"}, nil)
			require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
			require.NotEmpty(t, res.Header.Get("Retry-After"))
			_, sentence := failure(t, b)
			require.Contains(t, sentence, "It is kept here")
			h := s.history(testChat, "")
			require.True(t, h.Messages[0].Pending, "another tab shows that it was not delivered")
			s.sink.setErr(nil)
			again(s)
			again(s)
			require.Len(t, s.sink.all(), 1)
			require.Equal(t, "hello", s.sink.all()[0].Message.Text)
			h = s.history(testChat, "")
			require.Len(t, h.Messages, 1)
			require.False(t, h.Messages[0].Pending)
		})
	}
}

// P1 and P2 over a crash at each edge of a post: after it the page tries again, or another page does.
func TestPost_CrashAtEachEdge_P1_P2(t *testing.T) {
	edges := []string{"before the entry", "after the entry", "after accept"}
	for edge, name := range edges {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			switch edge {
			case 0:
				s.log.setFail(errDisk)
			case 1:
				s.sink.setErr(errDisk)
			case 2: // the core has it, and the mark can't be taken off any more
				s.sink.script = func(platforms.Event) { s.log.setFail(errDisk) }
			}
			res, _ := s.do("POST", messagesPath(testChat), postBody{"client-1", "hello"}, nil)
			require.Equal(t, []int{503, 503, 200}[edge], res.StatusCode)
			s.stop() // the new process knows the log alone
			s.log.setFail(nil)
			s.sink.setErr(nil)
			s.sink.script = nil
			s.start()
			s.post(testChat, "client-1", "hello")
			require.Len(t, s.sink.all(), 1)
			h := s.history(testChat, "")
			require.Len(t, h.Messages, 1)
			require.False(t, h.Messages[0].Pending)
		})
	}
}

// A question stands above its answer however fast that comes.
func TestPost_QuestionAboveItsAnswer_P3(t *testing.T) {
	s := newStage(t, nil)
	s.sink.script = func(e platforms.Event) { s.send(text(e.Address.Chat, string(e.ID), "answer")) }
	s.post(testChat, "client-1", "question")
	h := s.history(testChat, "")
	require.Equal(t, "question", h.Messages[0].Text)
	require.Equal(t, "answer", h.Messages[1].Text)
}

func TestPost_BadBodies(t *testing.T) {
	s := newStage(t, func(o *web.Options) { o.MaxText = 1000 })
	long := strings.Repeat("x", 1001)
	for name, c := range map[string]struct {
		path, kind, body string
		want             int
		sentence         string
	}{
		"not json":       {"", "", "{", 400, "no JSON"},
		"wrong type":     {"", "", `{"id":"client-1","text":5}`, 400, "no JSON"},
		"no id":          {"", "", `{"text":"x"}`, 400, "message id"},
		"short id":       {"", "", `{"id":"1","text":"x"}`, 400, `"1"`},
		"id with slash":  {"", "", `{"id":"../../etc/passwd","text":"x"}`, 400, "message id"},
		"empty":          {"", "", `{"id":"client-1","text":" \n"}`, 400, "empty"},
		"too long":       {"", "", `{"id":"client-1","text":"` + long + `"}`, 413, "at most 1000 bytes"},
		"far too long":   {"", "", `{"id":"client-1","text":"` + strings.Repeat(long, 100) + `"}`, 413, "attach it as a file"},
		"30 MB":          {"", "", `{"id":"client-1","text":"` + strings.Repeat("x", 30<<20) + `"}`, 413, "too long"},
		"plain text":     {"", "text/plain", `{"id":"client-1","text":"x"}`, 400, "Content-Type"},
		"form":           {"", "application/x-www-form-urlencoded", "id=client-1", 400, "Content-Type"},
		"bad chat":       {"/api/chat/chats/a%20b/messages", "", `{"id":"client-1","text":"x"}`, 400, "chat id"},
		"chat traversal": {"/api/chat/chats/..%2f..%2fetc%2fpasswd/messages", "", `{"id":"client-1","text":"x"}`, 400, "chat id"},
		"no boundary":    {"", "multipart/form-data", "x", 400, "Content-Type"},
		"broken form":    {"", "multipart/form-data; boundary=b", "--b\r\nContent-Disp", 400, "broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.path
			if path == "" {
				path = messagesPath(testChat)
			}
			res, b := s.do("POST", path, c.body, func(r *http.Request) {
				if c.kind != "" {
					r.Header.Set("Content-Type", c.kind)
				}
			})
			require.Equal(t, c.want, res.StatusCode, "%s", b)
			_, sentence := failure(t, b)
			require.Contains(t, sentence, c.sentence)
		})
	}
	require.Empty(t, s.sink.all())
	require.Zero(t, s.log.count())
	s.post(testChat, "client-1", strings.Repeat("x", 1000)) // the limit is inclusive
	s.post(testChat, "client-2", strings.Repeat("\u0001", 1000))
}

// upload is one file of a form.
type upload struct {
	name, kind string
	body       []byte
}

// form makes a multipart message. The file name goes onto the wire as it is.
func form(t testing.TB, id, text string, files ...upload) (body []byte, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	j, err := json.Marshal(postBody{id, text})
	require.NoError(t, err)
	require.NoError(t, w.WriteField("message", string(j)))
	for _, f := range files {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", `form-data; name="file"; filename="`+f.name+`"`)
		if f.kind != "" {
			h.Set("Content-Type", f.kind)
		}
		p, err := w.CreatePart(h)
		require.NoError(t, err)
		_, _ = p.Write(f.body)
	}
	require.NoError(t, w.Close())
	return b.Bytes(), w.FormDataContentType()
}

func (s *stage) postForm(id, text string, files ...upload) (*http.Response, []byte) {
	s.t.Helper()
	body, kind := form(s.t, id, text, files...)
	return s.do("POST", messagesPath(testChat), body, func(r *http.Request) { r.Header.Set("Content-Type", kind) })
}

func TestPost_FilesComeWithIt(t *testing.T) {
	s := newStage(t, nil)
	img := picture(t, 8, 8)
	res, b := s.postForm("client-1", "look",
		upload{"cat.png", "text/html", img}, // the bytes tell, not the claim
		upload{"notes.md", "text/markdown", []byte("# hi")},
		upload{"fake.png", "image/png", []byte("<script>alert(1)</script>")},
		upload{"voice.ogg", "audio/ogg", append([]byte("OggS\x00"), make([]byte, 40)...)},
	)
	require.Equal(t, 200, res.StatusCode, "%s", b)
	got := s.sink.all()[0].Message.Attachments
	require.Len(t, got, 4)
	kinds := []string{}
	for _, a := range got {
		kinds = append(kinds, fmt.Sprintf("%s %s %s %d", a.Name, a.Kind, a.MIME, a.Size))
		info, err := os.Lstat(a.Path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
		require.Equal(t, a.Size, info.Size())
		info, err = os.Lstat(filepath.Dir(a.Path))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
		var fetched bytes.Buffer
		require.NoError(t, s.adapter.Fetch(t.Context(), a, a.Size, &fetched))
		require.Equal(t, a.Size, int64(fetched.Len()))
		require.ErrorContains(t, s.adapter.Fetch(t.Context(), a, a.Size-1, io.Discard), "at most")
	}
	require.Equal(t, fmt.Sprintf("cat.png image image/png %d", len(img)), kinds[0])
	require.Equal(t, "notes.md document text/markdown 4", kinds[1])
	require.NotContains(t, kinds[2], "image", "what is no picture is not shown as one")
	require.Contains(t, kinds[3], "voice.ogg audio audio/ogg")

	// Posted again, as after a broken answer: the same files, once.
	res, _ = s.postForm("client-1", "look", upload{"cat.png", "", img}, upload{"notes.md", "", []byte("# hi")})
	require.Equal(t, 200, res.StatusCode)
	require.Len(t, s.sink.all(), 1)
	dirs, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Len(t, dirs, 5, "four files and the key")
}

// A name from outside is never a path.
func TestPost_FileNamesCannotLeaveTheFolder(t *testing.T) {
	s := newStage(t, nil)
	for i, name := range []string{
		"../../etc/passwd", `..\\..\\windows\\system32`, "/etc/shadow", "..", ".", "", "a/../../b", "....//....//x",
		".bashrc", "con\x01trol", "new\tline", strings.Repeat("n", 4000) + ".txt", "\u202egpj.exe", "nul\x00.txt", "-rf",
	} {
		id := fmt.Sprintf("client-name-%d", i)
		res, b := s.postForm(id, "", upload{name, "", []byte("x")})
		if res.StatusCode != 200 { // a header that is none
			require.Equal(t, 400, res.StatusCode, "%q: %s", name, b)
			continue
		}
		events := s.sink.all()
		path := events[len(events)-1].Message.Attachments[0].Path
		rel, err := filepath.Rel(s.dir, path)
		require.NoError(t, err)
		require.Len(t, strings.Split(rel, string(filepath.Separator)), 2, "%q became %q", name, rel)
		require.NotContains(t, rel, "..")
		require.FileExists(t, path)
	}
	parent, err := os.ReadDir(filepath.Dir(s.dir))
	require.NoError(t, err)
	require.Len(t, parent, 1, "nothing was written beside the folder")
}

func TestPost_TooMuchToUpload(t *testing.T) {
	s := newStage(t, func(o *web.Options) { o.MaxUpload = 1000 })
	kb := bytes.Repeat([]byte("k"), 1000)
	for name, c := range map[string]struct {
		files    []upload
		sentence string
	}{
		"one byte too many": {[]upload{{"big.bin", "", append(kb, 'x')}}, "big.bin is too big: at most 1000 bytes"},
		"together":          {[]upload{{"a.bin", "", kb[:600]}, {"b.bin", "", kb[:401]}}, "b.bin is too big"},
		"20 MB":             {[]upload{{"huge.bin", "", bytes.Repeat(kb, 20000)}}, "huge.bin is too big"},
		"eleven files":      {slicesRepeat(upload{"a", "", []byte("x")}, 11), "At most 10 files"},
	} {
		t.Run(name, func(t *testing.T) {
			res, b := s.postForm("client-1", "x", c.files...)
			require.Equal(t, 413, res.StatusCode, "%s", b)
			_, sentence := failure(t, b)
			require.Contains(t, sentence, c.sentence)
		})
	}
	require.Empty(t, s.sink.all())
	res, b := s.postForm("client-2", "x", upload{"a.bin", "", kb[:600]}, upload{"b.bin", "", kb[:400]})
	require.Equal(t, 200, res.StatusCode, "%s", b)
	left, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Len(t, left, 3, "two files and the key: nothing of the refused ones stays")
}

func slicesRepeat(f upload, n int) (out []upload) {
	for range n {
		out = append(out, f)
	}
	return out
}

func TestPost_FormOfAnotherShape(t *testing.T) {
	s := newStage(t, nil)
	send := func(write func(*multipart.Writer)) (int, string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		write(w)
		_ = w.Close()
		res, body := s.do("POST", messagesPath(testChat), b.Bytes(), func(r *http.Request) { r.Header.Set("Content-Type", w.FormDataContentType()) })
		_, sentence := failure(t, body)
		return res.StatusCode, sentence
	}
	status, sentence := send(func(w *multipart.Writer) { _, _ = w.CreateFormFile("file", "a") })
	require.Equal(t, 400, status)
	require.Contains(t, sentence, "must come first")
	status, sentence = send(func(w *multipart.Writer) {
		_ = w.WriteField("message", `{"id":"client-1"}`)
		_ = w.WriteField("other", "x")
	})
	require.Equal(t, 400, status)
	require.Contains(t, sentence, `"other"`)
	status, sentence = send(func(*multipart.Writer) {})
	require.Equal(t, 400, status)
	require.NotEmpty(t, sentence)
	status, sentence = send(func(w *multipart.Writer) { _ = w.WriteField("message", `{"id":"client-1"}`) })
	require.Equal(t, 400, status)
	require.Contains(t, sentence, "empty")
}

// P12: while the core refuses, the page is deaf, and says so until that is over.
func TestHealth_SaysWhenTheCoreRefuses_P12(t *testing.T) {
	c := newClock()
	s := newStage(t, func(o *web.Options) { o.Now = c.now })
	refuse := func() {
		s.sink.setErr(platforms.ErrRefused)
		res, _ := s.do("POST", messagesPath(testChat), postBody{"client-1", "hello"}, nil)
		require.Equal(t, 503, res.StatusCode)
		h := s.adapter.Health()
		require.Equal(t, platforms.Health{State: "deaf", Since: c.now(), Detail: h.Detail}, h)
		require.Contains(t, h.Detail, "refused")
		s.sink.setErr(nil)
	}
	refuse()
	s.post(testChat, "client-1", "hello")
	require.True(t, s.adapter.Health().Inbound)
	s = newStage(t, func(o *web.Options) { o.Now = c.now })
	refuse()
	c.move(30 * time.Second)
	require.True(t, s.adapter.Health().Inbound, "nobody tried for a while")
}

func TestPost_BeforeAndAfterRun(t *testing.T) {
	s := newStage(t, nil)
	require.Equal(t, "connected", s.adapter.Health().State)
	s.stop()
	require.False(t, s.adapter.Health().Inbound)
	require.Equal(t, "stopped", s.adapter.Health().State)
	res, b := s.do("POST", messagesPath(testChat), postBody{"client-1", "hello"}, nil)
	require.Equal(t, 503, res.StatusCode)
	_, sentence := failure(t, b)
	require.Contains(t, sentence, "kept here")
	require.Zero(t, s.log.count())
	s.start()
	s.post(testChat, "client-1", "hello")
	require.Error(t, s.adapter.Run(t.Context(), s.sink), "it runs once at a time")
}

func TestClick_OnlyWhatIsOffered_P13(t *testing.T) {
	s := newStage(t, nil)
	out := text(testChat, "n1", "Run it?")
	out.Buttons = [][]platforms.Button{{{Label: "Yes", Data: "y:1", Style: "primary"}}, {{Label: "No", Data: "n:1"}}}
	id := s.send(out)
	plain := s.send(text(testChat, "n2", "nothing to press"))
	mine := s.post(testChat, "client-1", "mine")
	press := func(chat platforms.ChatID, body any) (int, string) {
		res, b := s.do("POST", "/api/chat/chats/"+string(chat)+"/clicks", body, nil)
		if res.StatusCode == 204 {
			return 204, ""
		}
		_, sentence := failure(t, b)
		return res.StatusCode, sentence
	}
	type body struct {
		ID      string `json:"id"`
		Message string `json:"message"`
		Data    string `json:"data"`
	}
	before := len(s.sink.all())
	for name, c := range map[string]struct {
		chat platforms.ChatID
		body any
		want int
	}{
		"other data":     {testChat, body{"click-01", string(id), "y:2"}, 409},
		"no data":        {testChat, body{"click-01", string(id), ""}, 409},
		"other chat":     {"chat-another-one-here", body{"click-01", string(id), "y:1"}, 409},
		"no buttons":     {testChat, body{"click-01", string(plain), "y:1"}, 409},
		"own message":    {testChat, body{"click-01", fmt.Sprint(mine.Seq), "y:1"}, 409},
		"no message":     {testChat, body{"click-01", "999", "y:1"}, 409},
		"bad message":    {testChat, body{"click-01", "-1", "y:1"}, 400},
		"bad id":         {testChat, body{"x", string(id), "y:1"}, 400},
		"not json":       {testChat, "{", 400},
		"far too large":  {testChat, body{"click-01", string(id), strings.Repeat("x", 20<<10)}, 413},
		"message object": {testChat, `{"id":"click-01","message":{},"data":"y:1"}`, 400},
	} {
		status, sentence := press(c.chat, c.body)
		require.Equal(t, c.want, status, name)
		require.NotEmpty(t, sentence)
	}
	require.Len(t, s.sink.all(), before)

	status, _ := press(testChat, body{"click-01", string(id), "y:1"})
	require.Equal(t, 204, status)
	status, _ = press(testChat, body{"click-01", string(id), "y:1"})
	require.Equal(t, 204, status)
	events := s.sink.all()[before:]
	require.Len(t, events, 1, "P2")
	require.Equal(t, &platforms.Click{MessageID: id, Data: "y:1", Reply: "click-01"}, events[0].Click)
	require.Equal(t, at(testChat), events[0].Address, "P5")

	s.sink.setErr(platforms.ErrRefused)
	status, sentence := press(testChat, body{"click-02", string(id), "y:1"})
	require.Equal(t, 503, status)
	require.NotEmpty(t, sentence)
}

func TestRetry_OnlyOfOnesOwn(t *testing.T) {
	s := newStage(t, nil)
	id := s.send(text(testChat, "n1", "of the agent"))
	for _, seq := range []string{string(id), "99", "0", "-1", "x"} {
		res, _ := s.do("POST", messagesPath(testChat)+"/"+seq+"/retry", nil, nil)
		require.Contains(t, []int{400, 404}, res.StatusCode)
	}
	m := s.post(testChat, "client-1", "hello")
	res, _ := s.do("POST", messagesPath("chat-another-one-here")+"/"+fmt.Sprint(m.Seq)+"/retry", nil, nil)
	require.Equal(t, 404, res.StatusCode)
	require.Len(t, s.sink.all(), 1)
}

// hanging is a core that takes its time to end after it was told to.
type hanging struct {
	entered chan struct{}
	gate    chan struct{}
}

func (h *hanging) Accept(ctx context.Context, _ ...platforms.Event) error {
	close(h.entered)
	<-ctx.Done()
	<-h.gate
	return ctx.Err()
}

// P10: the end of Run breaks off what is being accepted and waits for it; the message is kept.
func TestRun_WaitsForWhatIsBeingAccepted_P10(t *testing.T) {
	s := newStage(t, nil)
	s.stop()
	h := &hanging{make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.adapter.Run(ctx, h) }()
	eventually(t, func() bool { return s.adapter.Health().Inbound })
	status := make(chan int, 1)
	go func() {
		res, err := s.server.Client().Do(s.request("POST", messagesPath(testChat), postBody{"client-1", "hello"}, nil))
		if err != nil {
			status <- 0
			return
		}
		_ = res.Body.Close()
		status <- res.StatusCode
	}()
	<-h.entered
	cancel()
	eventually(t, func() bool { return s.adapter.Health().State == "stopped" })
	require.Len(t, s.history(testChat, "").Messages, 1) // a round trip later
	select {
	case <-done:
		t.Fatal("Run returned while an event was being accepted")
	default:
	}
	close(h.gate)
	require.NoError(t, <-done)
	require.Equal(t, http.StatusServiceUnavailable, <-status)
	require.True(t, s.history(testChat, "").Messages[0].Pending)
}
