package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/faults"
)

const noteSecret = "note-key-0123456789"

// noteWorld is the service of the notes: people whose messages it posts until they are taken, and a page of answers.
type noteWorld struct {
	t      testing.TB
	script faults.Script
	out    *faults.Server // takes answers
	client *http.Client
	ctx    context.Context
	wg     sync.WaitGroup
	last   chan struct{} // closed when the newest message was taken
	inbox  atomic.Pointer[string]

	mu     sync.Mutex
	shown  map[string][]platformtest.Visible
	count  int
	unsent int
	until  time.Time // nobody may ask before
	rude   []string
	newest func() // offers the newest message again
}

func newNoteWorld(t testing.TB) *noteWorld {
	w := &noteWorld{t: t, client: &http.Client{Transport: &http.Transport{}}, shown: map[string][]platformtest.Visible{}}
	w.out = faults.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		early := time.Now().Before(w.until)
		if early {
			w.rude = append(w.rude, r.URL.Path)
		}
		w.mu.Unlock()
		w.script.Wrap(http.HandlerFunc(w.take)).ServeHTTP(rw, r)
	}))
	_, err := w.out.Start()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	t.Cleanup(func() {
		cancel()
		w.wg.Wait()
		w.script.Close()
		w.out.Close()
		w.client.CloseIdleConnections()
	})
	return w
}

// take keeps an answer, as people see it.
func (w *noteWorld) take(rw http.ResponseWriter, r *http.Request) {
	var in note
	body, err := io.ReadAll(r.Body)
	chat := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case err != nil || json.Unmarshal(body, &in) != nil || r.Header.Get("X-Key") != noteSecret:
		http.Error(rw, "no", http.StatusBadRequest)
		return
	case strings.HasPrefix(chat, "999"):
		http.NotFound(rw, r)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	id := fmt.Sprint("n", w.count)
	w.shown[chat] = append(w.shown[chat], platformtest.Visible{ID: platforms.MessageID(id), Text: in.Text})
	_ = json.NewEncoder(rw).Encode(note{ID: id})
}

// Adapter serves a new adapter's routes.
func (w *noteWorld) Adapter(t testing.TB) platforms.Adapter {
	a := newNotes(w.out.URL(), noteSecret)
	mux := http.NewServeMux()
	for pattern, h := range a.Routes() {
		mux.Handle(pattern, h)
	}
	in := faults.NewServer(mux)
	base, err := in.Start()
	require.NoError(t, err)
	t.Cleanup(in.Close)
	w.inbox.Store(&base)
	return a
}

func (w *noteWorld) Places() []platformtest.Place {
	at := func(chat string) platforms.Address {
		return platforms.Address{Platform: notePlatform, Account: "pad", Chat: platforms.ChatID(chat)}
	}
	return []platformtest.Place{{Name: "dm", Type: platforms.DM, Address: at("@ann")}, {Name: "board", Type: platforms.Group, Address: at("board")}}
}

func (w *noteWorld) Say(p platformtest.Place, text string) platforms.MessageID {
	w.mu.Lock()
	w.count++
	id := fmt.Sprint("p", w.count)
	w.mu.Unlock()
	body, _ := json.Marshal(note{ID: id, User: "ann", Text: text})
	post := func() {
		w.mu.Lock()
		w.unsent++
		w.mu.Unlock()
		previous, done := w.last, make(chan struct{})
		w.last = done
		w.wg.Go(func() {
			defer close(done)
			if previous != nil {
				<-previous
			}
			for !w.offer(string(p.Address.Chat), string(body)) {
				select {
				case <-time.After(10 * time.Millisecond):
				case <-w.ctx.Done():
					return
				}
			}
			w.mu.Lock()
			w.unsent--
			w.mu.Unlock()
		})
	}
	w.newest = post
	post()
	return platforms.MessageID(id)
}

func (w *noteWorld) offer(chat, body string) bool {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, *w.inbox.Load()+"/note/"+chat, strings.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("X-Key", noteSecret)
	resp, err := w.client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (w *noteWorld) Visible(p platformtest.Place) []platformtest.Visible {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]platformtest.Visible(nil), w.shown[string(p.Address.Chat)]...)
}

func (w *noteWorld) Unacknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsent
}

func (w *noteWorld) Redeliver() bool {
	w.newest()
	return true
}

func (w *noteWorld) Break(trouble platformtest.Trouble) bool {
	f := faults.Fault{Delay: 100 * time.Millisecond}
	switch trouble {
	case platformtest.RateRefused:
		f.Kind, f.Status, f.Header = faults.Status, http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}}
		f.Then = func(*http.Request) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.until = time.Now().Add(time.Second)
		}
	case platformtest.Unreachable:
		w.out.Shut()
		return true
	default:
		f.Kind = map[platformtest.Trouble]faults.Kind{platformtest.ServerError: faults.Status, platformtest.CutBefore: faults.ResetBefore,
			platformtest.CutAfter: faults.ResetAfter, platformtest.SilentBefore: faults.HangBefore, platformtest.SilentAfter: faults.HangAfter,
			platformtest.BrokenAnswer: faults.HalfBody, platformtest.SlowAnswer: faults.SlowBody, platformtest.ProxyPage: faults.Garbage}[trouble]
	}
	w.script.Break(f)
	return true
}

func (w *noteWorld) Heal() {
	w.script.Heal()
	_ = w.out.Open() // fails when it is open
}

func (w *noteWorld) Deafen() bool   { return false }
func (w *noteWorld) Hear()          {}
func (w *noteWorld) Drop() bool     { return w.out.Cut() == nil }
func (w *noteWorld) Receivers() int { return 0 }
func (w *noteWorld) Impolite() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rude
}

// The platform keeps the contract that every platform keeps.
func TestNewPlatform_Conformance(t *testing.T) {
	const plain = "a note is a text"
	platformtest.Run(t, platformtest.Harness{
		New: func(t *testing.T) platformtest.World { return newNoteWorld(t) },
		Lacks: map[string]string{
			"rewriting": plain, "editing": plain, "deleting": plain, "typing": plain, "reactions of people": plain, "buttons": plain,
			"files of people": plain, "quotes": plain, "native commands": plain, "threads of messages": plain, "private answers": plain,
			"deafness": "each message is a request of its own", "doubling": "as deafness", "shuffling": "as deafness",
			"storms": "the adapter calls nobody by itself", "revocation": "the service has no rights to take away",
		},
	})
}

// Once its kind is among the kinds, the daemon reads its settings, makes its adapter, serves its routes, answers, and shows it.
func TestNewPlatform_AnswersThroughTheDaemon(t *testing.T) {
	w := newNoteWorld(t)
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) {
		h.Kinds = []platforms.Kind{noteKind{}}
		h.Env = append(h.Env, "NOTE_KEY="+noteSecret, "NOTE_URL="+w.out.URL(), "NOTE_ALLOWED_USERS=ann")
	})
	base := strings.TrimSuffix(h.Gateway.URL(), "/")
	w.inbox.Store(&base)
	dm := w.Places()[0]
	w.Say(dm, "hello")
	h.Until("the answer is there", func() bool { return len(w.Visible(dm)) > 0 })
	require.Equal(t, "re: hello", w.Visible(dm)[0].Text)
	require.NotContains(t, h.Log.String(), noteSecret)
}
