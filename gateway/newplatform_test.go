package gateway_test

// A new platform, whole: what is added for one beside a line in platforms/all and a page in docs/platforms. It is a webhook:
// messages come as POST /note/{chat} with the key, answers go to the address of the settings. TestNewPlatform_* run it.

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

const notePlatform platforms.Name = "note"

type noteKind struct{}

func (noteKind) Name() platforms.Name         { return notePlatform }
func (noteKind) Settings() platforms.Settings { return &noteSettings{} }
func (noteKind) About() platforms.About {
	return platforms.About{Title: "Notes", Block: "notes over HTTP", Variables: "NOTE"}
}

// Rules: chats with one person begin with "@".
func (noteKind) Rules() platforms.Rules {
	return platforms.Rules{DirectChat: func(chat platforms.ChatID) bool { return noteType(chat) == platforms.DM }}
}

func (noteKind) New(host platforms.Host, own platforms.Settings) ([]platforms.Login, error) {
	s := own.(*noteSettings)
	if s.URL == "" {
		return nil, &platforms.StartError{Account: platforms.Account{Platform: notePlatform}, Setting: "platforms.note.url", Err: errors.New("is empty"),
			Hint: "set it to where answers go"}
	}
	a := newNotes(s.URL, s.Key.Reveal())
	return []platforms.Login{{Adapter: a, LockName: "note-key", Identity: s.Key.Reveal()}}, nil
}

type noteSettings struct {
	platforms.Common
	URL string           `yaml:"url" env:"NOTE_URL" check:"url" doc:"where answers go"`
	Key platforms.Secret `yaml:"key" env:"NOTE_KEY" doc:"what a caller must send along"`
}

func (s noteSettings) On() bool { return s.Starts(s.Key.IsSet()) }

func (s noteSettings) Check(f platforms.Findings) {
	if s.On() && !s.Key.IsSet() {
		f.Errorf("key", "enabled", "anyone could write without it; set NOTE_KEY")
	}
}

// note is what comes in, and what goes out with an id in the answer.
type note struct {
	ID   string `json:"id,omitempty"`
	User string `json:"user,omitempty"`
	Text string `json:"text,omitempty"`
}

func noteType(chat platforms.ChatID) platforms.ChatType {
	if chat != "" && chat[0] == '@' {
		return platforms.DM
	}
	return platforms.Group
}

// notes is the adapter.
type notes struct {
	url, key string
	client   *wire.Client
	gate     *wire.Gate
	health   *wire.Health
	running  atomic.Pointer[noteRun] // nil: Run does not run
}

func newNotes(url, key string) *notes {
	transport := wire.NewTransport(wire.TransportOptions{})
	return &notes{url: url, key: key, health: wire.NewHealth(wire.System{}, ""),
		client: &wire.Client{HTTP: &http.Client{Transport: transport, CheckRedirect: wire.NoRedirects}, Limit: 1 << 16},
		gate:   wire.NewGate(wire.GateOptions{Clock: wire.System{}, Platform: "Notes"})}
}

type noteRun struct {
	ctx  context.Context
	sink platforms.Sink
}

func (n *notes) Account() platforms.Account {
	return platforms.Account{Platform: notePlatform, ID: "pad"}
}
func (n *notes) Health() platforms.Health { return n.health.Now() }
func (n *notes) Secrets() []string        { return []string{n.key} }
func (n *notes) Traits() platforms.Traits {
	return platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain, Limit: 500}, Tier: platforms.TierLow, CommandPrefix: "/"}
}

func (n *notes) Run(ctx context.Context, sink platforms.Sink) error {
	n.running.Store(&noteRun{ctx, sink})
	n.health.Fine()
	<-ctx.Done()
	n.running.Store(nil)
	n.health.Set("stopped", "")
	n.client.HTTP.CloseIdleConnections()
	return nil
}

func (n *notes) Routes() map[string]http.Handler {
	return map[string]http.Handler{"POST /note/{chat}": http.HandlerFunc(n.receive)}
}

// receive answers 200 only for what is committed; the caller offers everything else again.
func (n *notes) receive(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Key")), []byte(n.key)) != 1 {
		http.Error(w, "wrong key", http.StatusUnauthorized)
		return
	}
	var in note
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in) != nil || in.ID == "" || in.User == "" {
		http.Error(w, "want id, user and text", http.StatusBadRequest)
		return
	}
	at := n.at(platforms.ChatID(r.PathValue("chat")))
	e := platforms.Event{ID: platforms.EventID(in.ID), Address: at, ChatType: noteType(at.Chat), At: platforms.Instant(time.Now()),
		Addressed: true,
		Sender:    platforms.User{ID: platforms.UserID(in.User), Name: in.User}, Message: &platforms.Message{ID: platforms.MessageID(in.ID), Text: in.Text}}
	if run := n.running.Load(); run != nil {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(run.ctx, cancel)()
		if run.sink.Accept(ctx, e) == nil {
			n.health.Fine()
			return
		}
		if run.ctx.Err() == nil {
			n.health.Set("refused", "the last message could not be kept")
		}
	}
	http.Error(w, "later", http.StatusServiceUnavailable)
}

func (n *notes) at(chat platforms.ChatID) platforms.Address {
	return platforms.Address{Platform: notePlatform, Account: n.Account().ID, Chat: chat}
}

// Describe implements platforms.Describer.
func (n *notes) Describe(_ context.Context, at platforms.Address) (platforms.Room, error) {
	return platforms.Room{Address: n.at(at.Chat), Type: noteType(at.Chat)}, nil
}

func (n *notes) Send(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	switch {
	case out.Edit != "":
		return platforms.Receipt{}, platforms.Failure(platforms.Unsupported, "notes can't be changed")
	case len([]rune(out.Text.Body)) > n.Traits().Text.Limit:
		return platforms.Receipt{}, platforms.Failure(platforms.TooLong, "a note has at most %d characters", n.Traits().Text.Limit)
	}
	parts := wire.Parts{Platform: "Notes"}
	id, err := n.post(ctx, out.Address.Chat, note{Text: out.Text.Body})
	if err != nil {
		return platforms.Receipt{}, err
	}
	parts.Sent(id)
	for _, file := range out.Attachments {
		parts.Note(file, "notes hold no files")
	}
	return parts.Receipt, nil
}

func (n *notes) post(ctx context.Context, chat platforms.ChatID, out note) (platforms.MessageID, error) {
	if err := n.gate.Pass(ctx, false, wire.Account); err != nil {
		return "", err
	}
	body, _ := json.Marshal(out)
	call, ctx, cancel := wire.NewCall(ctx, 0)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url+"/"+string(chat), bytes.NewReader(body))
	if err != nil {
		return "", platforms.Failure(platforms.BadRequest, "no address")
	}
	req.Header.Set("X-Key", n.key)
	_, err = n.client.Do(req)
	var back note
	if err == nil && call.Status == http.StatusOK && json.Unmarshal(call.Body, &back) == nil && back.ID != "" {
		return platforms.MessageID(back.ID), nil
	}
	fail := call.Outcome(wire.Redact(cmp.Or(err, errors.New("the answer is no note")), n.key))
	if fail.RetryAfter > 0 {
		n.gate.Close(fail.RetryAfter, wire.Account)
	}
	return "", fail
}
