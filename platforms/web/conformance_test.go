package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/web"
	"herald/sessions/sqlite"
)

// TestAdapter_Conformance runs the suite that every platform passes, on the real store.
func TestAdapter_Conformance(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{
		New: func(t *testing.T) platformtest.World { return newWorld(t) },
		Skip: map[string]string{
			"no error holds a secret": "a chat begins with its first message, so there is no send to nowhere; the other checks look at their errors too",
		},
		Lacks: map[string]string{
			"threads of messages": "a browser chat is one line of messages",
			"redelivery":          "a post that was taken is answered from the log and not handed on again; the tests of posts look at that",
			"doubling":            "as redelivery: the page's own id keeps a repeated post out",
			"shuffling":           "a page sends its posts one after the other",
			"quotes":              "the page has no quoting",
			"native commands":     "commands are typed",
			"rewriting":           "the page can't change what was posted",
			"reactions of people": "the page has no reactions",
			"deafness":            "a message is a request of its own: nothing can be connected and deaf",
			"storms":              "the server is Herald itself",
			"revocation":          "the server is Herald itself",
			"a text limit":        "the page has none",
			"rate refused":        noNetwork, "broken answer": noNetwork, "slow answer": noNetwork, "proxy page": noNetwork, "unreachable": noNetwork,
		},
	})
}

const noNetwork = "a send is an entry in the log of the same process: it has no rate, no network and no proxy"

const worldPassword = "conformance-secret"

// world is a browser, and the log that is its service.
type world struct {
	t       testing.TB
	log     *troubledLog
	dir     string
	server  *httptest.Server
	handler atomic.Pointer[http.ServeMux]
	client  *http.Client

	ctx    context.Context
	wg     sync.WaitGroup
	mu     sync.Mutex
	unsent int
	count  int
	tab    *listener
	last   chan struct{} // closed when the newest post is taken
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}}
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "herald.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w.log = &troubledLog{Log: store.ChatLog()}
	w.handler.Store(http.NewServeMux())
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.handler.Load().ServeHTTP(rw, r) }))
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	t.Cleanup(func() {
		cancel()
		w.wg.Wait()
		w.client.CloseIdleConnections()
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

func (w *world) Adapter(t testing.TB) platforms.Adapter {
	a, err := web.New(web.Options{Log: w.log, MediaDir: w.dir, Listen: "127.0.0.1:0", Password: worldPassword, Token: worldPassword})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	mux := http.NewServeMux()
	for pattern, h := range a.Routes() {
		mux.Handle(pattern, h)
	}
	w.handler.Store(mux)
	return a
}

func (w *world) Places() []platformtest.Place {
	var out []platformtest.Place
	for _, name := range []string{"first chat", "second chat"} {
		out = append(out, platformtest.Place{Name: name, Type: platforms.DM, Address: at(platforms.ChatID(name[:5] + "-chat-0001"))})
	}
	return out
}

// view is a stage's way to speak to the server, for its requests and streams.
func (w *world) view() *stage { return &stage{t: w.t, server: w.server} }

func (w *world) do(method, path string, body []byte, kind string) (status int, answer []byte) {
	req := w.view().request(method, path, body, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+worldPassword)
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
	})
	res, err := w.client.Do(req.WithContext(w.ctx))
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	var raw json.RawMessage
	_ = json.NewDecoder(res.Body).Decode(&raw)
	return res.StatusCode, raw
}

// post does what the page and its reader do: try, and try again under the same id until it is taken. It
// returns once the message has a place in the log.
func (w *world) post(p platformtest.Place, text string, files ...upload) (message platforms.MessageID) {
	w.mu.Lock()
	w.count++
	id := "client-" + strconv.Itoa(w.count)
	w.unsent++
	w.mu.Unlock()
	body, kind := form(w.t, id, text, files...)
	previous, done := w.last, make(chan struct{})
	w.last = done
	w.wg.Go(func() {
		defer close(done)
		if previous != nil {
			<-previous // a page sends in order
		}
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for w.ctx.Err() == nil {
			if status, _ := w.do("POST", messagesPath(p.Address.Chat), body, kind); status == http.StatusOK {
				w.mu.Lock()
				w.unsent--
				w.mu.Unlock()
				return
			}
			select {
			case <-tick.C:
			case <-w.ctx.Done():
			}
		}
	})
	eventually(w.t, func() bool {
		rows, err := w.log.List(w.ctx, p.Address.Chat, 0, 200)
		require.NoError(w.t, err)
		for _, row := range rows {
			var e struct{ Client string }
			require.NoError(w.t, json.Unmarshal(row.Payload, &e))
			if e.Client == id {
				message = platforms.MessageID(strconv.FormatInt(row.Seq, 10))
			}
		}
		return message != ""
	})
	return message
}

func (w *world) Say(p platformtest.Place, text string) platforms.MessageID { return w.post(p, text) }

func (w *world) SayFile(p platformtest.Place, name, mime string, body []byte, caption string) platforms.MessageID {
	return w.post(p, caption, upload{name, mime, body})
}

func (w *world) Visible(p platformtest.Place) []platformtest.Visible {
	status, b := w.do("GET", messagesPath(p.Address.Chat)+"?limit=200", nil, "")
	require.Equal(w.t, 200, status)
	var h page
	require.NoError(w.t, json.Unmarshal(b, &h))
	var out []platformtest.Visible
	for _, m := range h.Messages {
		if m.From != "agent" {
			continue
		}
		v := platformtest.Visible{ID: platforms.MessageID(strconv.FormatInt(m.Seq, 10)), Text: m.Text}
		for _, f := range m.Files {
			v.Files = append(v.Files, f.Name)
		}
		for _, row := range m.Buttons {
			for _, b := range row {
				v.Buttons = append(v.Buttons, b.Label)
			}
		}
		if m.Reply != nil {
			v.ReplyTo = platforms.MessageID(strconv.FormatInt(m.Reply.Seq, 10))
		}
		out = append(out, v)
	}
	return out
}

func (w *world) Press(p platformtest.Place, id platforms.MessageID, label string) {
	_, b := w.do("GET", messagesPath(p.Address.Chat), nil, "")
	var h page
	require.NoError(w.t, json.Unmarshal(b, &h))
	w.tab = w.view().listenWith(h.Cursor, worldPassword)
	for _, m := range h.Messages {
		for _, row := range m.Buttons {
			for _, b := range row {
				if strconv.FormatInt(m.Seq, 10) == string(id) && b.Label == label {
					w.mu.Lock()
					w.count++
					body, _ := json.Marshal(map[string]string{"id": "click-id-" + strconv.Itoa(w.count), "message": string(id), "data": b.Data})
					w.mu.Unlock()
					status, answer := w.do("POST", "/api/chat/chats/"+string(p.Address.Chat)+"/clicks", body, "application/json")
					require.Equal(w.t, 204, status, "%s", answer)
				}
			}
		}
	}
}

func (w *world) Answered() (string, bool) {
	seen := w.tab.until(func(e event) bool { return e.name == "clicked" })
	var v struct{ Text string }
	require.NoError(w.t, json.Unmarshal([]byte(seen[len(seen)-1].data), &v))
	return v.Text, true
}

func (w *world) TypingSeen(p platformtest.Place) bool {
	_, b := w.do("GET", messagesPath(p.Address.Chat), nil, "")
	var h page
	return json.Unmarshal(b, &h) == nil && h.Typing
}

func (w *world) Unacknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsent
}

// Redeliver does nothing: a post that was taken is answered from the log and not handed on again. The
// tests of posts look at that.
func (w *world) Redeliver() bool { return false }

func (w *world) Break(trouble platformtest.Trouble) bool {
	switch trouble {
	case platformtest.ServerError, platformtest.CutBefore, platformtest.CutAfter, platformtest.SilentBefore, platformtest.SilentAfter:
		w.log.set(trouble)
		return true
	}
	return false // the log is in the same process: it has no rate and is never away
}

func (w *world) Heal()              { w.log.set("") }
func (w *world) Deafen() bool       { return false }
func (w *world) Hear()              {}
func (w *world) Receivers() int     { return 0 } // a message is one request
func (w *world) Impolite() []string { return nil }

func (w *world) Drop() bool {
	w.server.CloseClientConnections()
	return true
}

// troubledLog is a log whose next append goes wrong as told.
type troubledLog struct {
	platforms.Log
	mu   sync.Mutex
	next platformtest.Trouble
}

func (l *troubledLog) set(t platformtest.Trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = t
}

var errTrouble = errors.New("trouble")

func (l *troubledLog) Append(ctx context.Context, chat platforms.ChatID, nonce string, payload []byte) (seq int64, err error) {
	err = l.troubled(ctx, func() (err error) {
		seq, err = l.Log.Append(ctx, chat, nonce, payload)
		return err
	})
	return seq, err
}

func (l *troubledLog) Update(ctx context.Context, chat platforms.ChatID, seq int64, payload []byte) error {
	return l.troubled(ctx, func() error { return l.Log.Update(ctx, chat, seq, payload) })
}

// troubled does what is asked, or goes wrong before or after it.
func (l *troubledLog) troubled(ctx context.Context, do func() error) error {
	l.mu.Lock()
	trouble := l.next
	l.next = ""
	l.mu.Unlock()
	switch trouble {
	case platformtest.ServerError, platformtest.CutBefore:
		return errTrouble
	case platformtest.SilentBefore:
		<-ctx.Done()
		return ctx.Err()
	}
	err := do()
	switch trouble {
	case platformtest.CutAfter:
		return errTrouble
	case platformtest.SilentAfter:
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}
