package teams

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/teamstest"
)

// TestAdapter_Conformance runs the suite that every platform passes (P1 to P5, P8, P12).
func TestAdapter_Conformance(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{
		New: func(t *testing.T) platformtest.World {
			w := startWorld(t, teamstest.Options{})
			w.alter = func(o *Options) { o.KeyMaxAge = time.Second } // so that a key server that is away is noticed soon
			return w
		},
		Lacks: map[string]string{"native commands": "Teams gives bots no slash commands: people type them as text"},
	})
}

// world is a fake Teams with a person, a group chat and a channel with a thread, and Herald's listener beside it.
type world struct {
	fake    *teamstest.Server
	pat     teamstest.User
	dm      teamstest.Room
	group   teamstest.Room
	channel teamstest.Room
	root    string
	memory  platforms.Memory
	media   string
	pressed string
	running atomic.Pointer[http.ServeMux]
	alter   func(*Options)
}

func startWorld(t *testing.T, o teamstest.Options) *world {
	w := &world{fake: teamstest.New(o), memory: platforms.NewMemory(), media: t.TempDir()}
	_, err := w.fake.Start()
	require.NoError(t, err)
	server := httptest.NewServer(w)
	t.Cleanup(func() {
		w.fake.Close()
		server.Close()
	})
	w.fake.SetEndpoint(server.URL + DefaultPath)
	w.pat = w.fake.AddUser("Pat Doe")
	w.dm = w.fake.Personal(w.pat)
	w.group = w.fake.Group("Plans", w.pat)
	w.channel = w.fake.Channel(w.fake.Team("Contoso", w.pat), "news")
	w.root = w.fake.Write(teamstest.Post{Room: w.channel.ID, Text: "a thread"})
	return w
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if mux := w.running.Load(); mux != nil {
		mux.ServeHTTP(rw, r)
		return
	}
	http.Error(rw, "starting", http.StatusServiceUnavailable)
}

// options are those of a test: no pacing, and quick to notice trouble.
func (w *world) options() Options {
	u := w.fake.URLs()
	o := Options{
		ClientID: w.fake.AppID(), ClientSecret: w.fake.Secret(), TenantID: w.fake.TenantID(),
		LoginURL: u.Login, OpenIDURL: u.OpenID, ServiceURL: u.Service, GraphURL: u.Graph,
		Fetch: fetch.Options{Allow: []string{u.Base}}, RateLimit: new(bool), Memory: w.memory, MediaDir: w.media,
		KeyRefresh: 100 * time.Millisecond, BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
	}
	if w.alter != nil {
		w.alter(&o)
	}
	return o
}

func (w *world) Adapter(t testing.TB) platforms.Adapter { return w.adapter(t) }

func (w *world) adapter(t testing.TB) *Adapter {
	a, err := New(w.options())
	require.NoError(t, err)
	mux := http.NewServeMux()
	for pattern, handler := range a.OwnRoutes() {
		mux.Handle(pattern, handler)
	}
	w.running.Store(mux)
	return a
}

func (w *world) address(chat, thread string) platforms.Address {
	at := AccountOf(w.fake.AppID())
	return platforms.Address{Platform: at.Platform, Account: at.ID, Chat: platforms.ChatID(chat), Thread: platforms.ThreadID(thread)}
}

func (w *world) Places() []platformtest.Place {
	return []platformtest.Place{
		{Name: "dm", Type: platforms.DM, Address: w.address(w.dm.ID, "")},
		{Name: "group chat", Type: platforms.Group, Address: w.address(w.group.ID, "")},
		{Name: "channel thread", Type: platforms.Channel, Address: w.address(w.channel.ID, w.root)},
	}
}

func (w *world) Roots() []platformtest.Place {
	return []platformtest.Place{{Name: "channel", Type: platforms.Channel, Address: w.address(w.channel.ID, "")}}
}

func (w *world) post(p platformtest.Place, text string) teamstest.Post {
	return teamstest.Post{Room: string(p.Address.Chat), Thread: string(p.Address.Thread), Text: text, Mention: p.Type != platforms.DM}
}

func (w *world) Say(p platformtest.Place, text string) platforms.MessageID {
	return platforms.MessageID(w.fake.Write(w.post(p, text)))
}

func (w *world) SayFile(p platformtest.Place, name, mime string, body []byte, caption string) platforms.MessageID {
	post := w.post(p, caption)
	post.Files = []teamstest.File{{Name: name, MIME: mime, Body: body}}
	return platforms.MessageID(w.fake.Write(post))
}

func (w *world) SayReply(p platformtest.Place, to platforms.MessageID, text string) platforms.MessageID {
	post := w.post(p, text)
	post.Quote = string(to)
	return platforms.MessageID(w.fake.Write(post))
}

func (w *world) SayTwice(p platformtest.Place, text string) platforms.MessageID {
	w.fake.Hold()
	id := w.Say(p, text)
	w.fake.Release(teamstest.Twice)
	return id
}

func (w *world) SayShuffled(p platformtest.Place, texts ...string) {
	w.fake.Hold()
	for _, text := range texts {
		w.Say(p, text)
	}
	w.fake.Release(teamstest.Backwards)
}

func (w *world) Rewrite(p platformtest.Place, message platforms.MessageID, text string) {
	w.fake.Rewrite(string(p.Address.Chat), string(message), text)
}

func (w *world) React(p platformtest.Place, message platforms.MessageID, emoji string) {
	kind := map[string]string{"👍": "like", "👀": "1f440_eyes"}[emoji]
	w.fake.React(string(p.Address.Chat), string(message), kind, teamstest.User{})
}

func (w *world) Press(p platformtest.Place, message platforms.MessageID, label string) {
	w.pressed, _ = w.fake.Press(string(p.Address.Chat), string(message), label, teamstest.User{}, nil)
}

// Answered waits for the answer, which is on its way when AnswerClick returns.
func (w *world) Answered() (string, bool) {
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		if i, ok := w.fake.Invocation(w.pressed); ok && i.Done {
			return i.Text, i.Err == "" && i.Status == http.StatusOK
		}
		<-time.After(time.Millisecond)
	}
	return "", false
}

func (w *world) TypingSeen(p platformtest.Place) bool {
	for _, act := range w.fake.Acts(string(p.Address.Chat)) {
		if act.Verb == "typing" && act.Bot && act.Thread == string(p.Address.Thread) {
			return true
		}
	}
	return false
}

func (w *world) Visible(p platformtest.Place) []platformtest.Visible {
	conversation := string(p.Address.Chat)
	if p.Address.Thread != "" {
		conversation += ";messageid=" + string(p.Address.Thread)
	}
	var out []platformtest.Visible
	for _, m := range w.fake.Visible(conversation) {
		v := platformtest.Visible{ID: platforms.MessageID(m.ID), Text: m.Text, ReplyTo: platforms.MessageID(m.ReplyTo)}
		for _, kind := range m.Reactions[w.fake.BotID()] {
			v.Emoji += emojiOf(kind)
		}
		for _, f := range m.Files {
			v.Files = append(v.Files, f.Name)
		}
		for _, b := range m.Buttons {
			v.Buttons = append(v.Buttons, b.Title)
		}
		out = append(out, v)
	}
	return out
}

func (w *world) Unacknowledged() int { return w.fake.Pending() }

func (w *world) Redeliver() bool {
	w.fake.Replay(1)
	return true
}

func (w *world) Break(trouble platformtest.Trouble) bool {
	f := teamstest.Fault{Delay: 100 * time.Millisecond}
	switch trouble {
	case platformtest.RateRefused:
		f.Kind, f.Status, f.RetryAfter = faults.Status, http.StatusTooManyRequests, time.Second
	case platformtest.ServerError:
		f.Kind, f.Status = faults.Status, http.StatusBadGateway
	case platformtest.CutBefore:
		f.Kind = faults.ResetBefore
	case platformtest.CutAfter:
		f.Kind = faults.ResetAfter
	case platformtest.SilentBefore:
		f.Kind = faults.HangBefore
	case platformtest.SilentAfter:
		f.Kind = faults.HangAfter
	case platformtest.BrokenAnswer:
		f.Kind = faults.HalfBody
	case platformtest.SlowAnswer:
		f.Kind = faults.SlowBody
	case platformtest.ProxyPage:
		f.Kind = faults.Garbage
	case platformtest.Unreachable:
		w.fake.Shut()
		return true
	default:
		return false
	}
	w.fake.Break(f)
	return true
}

func (w *world) Heal() {
	w.fake.Heal()
	_ = w.fake.Open() // fails when it is open already
}

// Deafen takes the key server away: without its keys no activity can be believed.
func (w *world) Deafen() bool {
	w.fake.Break(teamstest.Fault{Kind: faults.Status, Status: http.StatusServiceUnavailable, On: teamstest.OpenIDDoc, Times: -1})
	return true
}

func (w *world) Hear() { w.fake.Heal() }

func (w *world) Storm() {
	for _, on := range []teamstest.Endpoint{teamstest.AnyConnector, teamstest.OpenIDDoc, teamstest.Keys, teamstest.Token} {
		w.fake.Break(teamstest.Fault{Kind: faults.Status, Status: http.StatusBadGateway, On: on, Times: -1})
	}
}

func (w *world) Calls() int {
	n := 0
	for _, on := range []teamstest.Endpoint{teamstest.Send, teamstest.Edit, teamstest.Typing, teamstest.OpenIDDoc, teamstest.Keys,
		teamstest.Token} {
		n += w.fake.Calls(on)
	}
	return n
}

func (w *world) Revoke() { w.fake.RevokeSecret() }

func (w *world) Drop() bool {
	err := w.fake.Cut()
	for range 1000 { // the port may be in use for a moment
		if err == nil {
			return true
		}
		<-time.After(time.Millisecond)
		err = w.fake.Open()
	}
	return false
}

// Receivers is 0: the service calls us.
func (w *world) Receivers() int { return 0 }

func (w *world) Impolite() []string {
	return append(w.fake.Violations(), strings.Join(w.fake.Leaks(), ", "))[:len(w.fake.Violations())+min(1, len(w.fake.Leaks()))]
}
