package signal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// Adapter is one Signal account. Make it with New.
type Adapter struct {
	s       settings
	rpc     *Client
	streams *http.Client // the event stream; its own transport, so that ending it closes the connection
	health  *health
	gate    *wire.Gate // Signal limits the account: one window for all chats
	echo    *echoes
	people  *people
	mark    mark
	texts   *texts // what people wrote
	emoji   *texts // our reactions
	unread  *unread
	typing  *typing
	again   poke
	ffmpeg  string

	mu       sync.Mutex
	me       string    // our UUID, once it is known
	contacts time.Time // when they were last read
	other    bool      // it was told that the daemon serves another account
	cut      func()    // ends the stream; nil without one
}

var (
	_ platforms.Adapter   = (*Adapter)(nil)
	_ platforms.Fetcher   = (*Adapter)(nil)
	_ platforms.Describer = (*Adapter)(nil)
	_ platforms.Typist    = (*Adapter)(nil)
	_ platforms.Reactor   = (*Adapter)(nil)
	_ platforms.Directory = (*Adapter)(nil)
	_ platforms.Opener    = (*Adapter)(nil)
)

// New checks the options and returns an adapter that has made no request yet. The error is a *platforms.StartError
// that names the key, what is wrong and what is allowed.
func New(o Options) (*Adapter, error) {
	s, err := o.check()
	if err != nil {
		return nil, err
	}
	a := &Adapter{s: s, echo: newEchoes(), people: newPeople(s.Memory), mark: mark{memory: s.Memory}, texts: newTexts(), emoji: newTexts(),
		unread: newUnread(),
		typing: newTyping(s.TypingPause), again: newPoke()}
	a.rpc = NewClient(s.URL, !s.IgnoreProxyEnv)
	a.rpc.account, a.rpc.timeout = s.Account, s.RPCTimeout
	stream := a.rpc.http.Transport.(*http.Transport).Clone()
	stream.DisableKeepAlives = true
	a.streams = &http.Client{Transport: stream, CheckRedirect: a.rpc.http.CheckRedirect}
	a.health = newHealth(s.Silence + s.CheckEvery) // the monitor has had its chance by then
	a.gate = wire.NewGate(wire.GateOptions{Clock: wire.System{}, Platform: "Signal"})
	switch s.FFmpeg {
	case "-":
	case "":
		a.ffmpeg, _ = exec.LookPath("ffmpeg")
	default:
		a.ffmpeg = s.FFmpeg
	}
	return a, nil
}

// Account returns our number.
func (a *Adapter) Account() platforms.Account { return a.s.account }

// Traits says what Signal can do: no edits, no buttons, no threads.
func (a *Adapter) Traits() platforms.Traits {
	return platforms.Traits{
		Text: platforms.TextTraits{Dialect: platforms.SignalStyles, Limit: TextLimit, Unit: platforms.UTF16, Number: true},
		Tier: platforms.TierLow, Attachments: true, MaxUpload: FileLimit, CommandPrefix: "/",
	}
}

// Run receives until ctx ends. It returns nil then, and a *platforms.StartError when the server is no daemon of
// signal-cli's. No goroutine of it is left behind.
func (a *Adapter) Run(ctx context.Context, sink platforms.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := newIntake(a, sink)
	if err := a.remember(ctx, queue); err != nil && ctx.Err() == nil {
		a.s.Log.Error().Err(err).Msg("what Signal's adapter has kept can't be read; it goes on without")
	}
	var wg sync.WaitGroup
	wg.Go(func() { queue.run(ctx) })
	err := (&listener{a: a, queue: queue}).run(ctx)
	cancel()
	wg.Wait()
	queue.finish()
	a.rpc.Close()
	a.streams.CloseIdleConnections()
	if err != nil {
		a.health.set("paused", err.Error())
		return err
	}
	a.health.set("stopped", "")
	return nil
}

// Health says whether events flow in. It makes no request.
func (a *Adapter) Health() platforms.Health { return a.health.now() }

// Retry makes an adapter that waits to connect try at once: after a device was linked.
func (a *Adapter) Retry() { a.again.poke() }

// streaming notes how the stream of now is ended.
func (a *Adapter) streaming(cut func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = cut
}

// restart ends the stream, so that a new one shows what is wrong.
func (a *Adapter) restart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cut != nil {
		a.cut()
	}
}

const selfKey = "self/uuid"

// remember reads what an earlier run has kept.
func (a *Adapter) remember(ctx context.Context, queue *intake) error {
	facts, err := a.s.Memory.Recall(ctx, selfKey)
	for _, f := range facts {
		var uuid string
		if json.Unmarshal(f.Data, &uuid) == nil && isUUID(uuid) {
			a.mu.Lock()
			a.me = uuid
			a.mu.Unlock()
		}
	}
	return errors.Join(err, a.people.load(ctx), a.mark.load(ctx), queue.load(ctx))
}

// self returns our UUID, empty while it is not known.
func (a *Adapter) self() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.me
}

// learnSelf notes our UUID, over restarts too.
func (a *Adapter) learnSelf(ctx context.Context, uuid string) {
	uuid = strings.ToLower(uuid)
	a.mu.Lock()
	fresh := isUUID(uuid) && a.me != uuid
	if fresh {
		a.me = uuid
	}
	a.mu.Unlock()
	if !fresh {
		return
	}
	data, _ := json.Marshal(uuid)
	_ = a.s.Memory.Keep(ctx, platforms.Fact{Key: selfKey, Data: data}) // only a convenience
}

// isOwn reports whether an id is ours.
func (a *Adapter) isOwn(number, uuid string) bool {
	return number != "" && tidyNumber(number) == a.s.Account || uuid != "" && strings.EqualFold(uuid, a.self())
}

// serves reports whether an event's account, a number or a UUID, is ours as far as we know.
func (a *Adapter) serves(account string) bool {
	if isUUID(account) && a.self() == "" {
		return true
	}
	return a.isOwn(ids(account, "", ""))
}

// wrongAccount says once that the daemon serves somebody else.
func (a *Adapter) wrongAccount(account string) {
	a.mu.Lock()
	told := a.other
	a.other = true
	a.mu.Unlock()
	if !told {
		a.s.Log.Error().Msg(fmt.Sprintf(sayOther, Mask(account)))
	}
}

// drop counts something that made no event.
func (a *Adapter) drop(reason string, err error) {
	a.s.Metrics.Dropped(reason)
	if reason == dropUndecodable {
		a.s.Log.Warn().Err(err).Msg("the event stream holds something that can't be read; it is skipped")
		return
	}
	a.s.Log.Debug().Str("reason", reason).Msg("something on the event stream makes no message")
}

// contactsEvery is how often the contact list is read at most.
const contactsEvery = 10 * time.Minute

type contact struct {
	Number   string `json:"number"`
	UUID     string `json:"uuid"`
	Username string `json:"username"`
	Name     string `json:"name"`
	Blocked  bool   `json:"isBlocked"`
	Profile  struct {
		Given  string `json:"givenName"`
		Family string `json:"familyName"`
	} `json:"profile"`
}

func (c contact) shown() string {
	if c.Name != "" {
		return c.Name
	}
	return strings.TrimSpace(c.Profile.Given + " " + c.Profile.Family)
}

// learnContacts learns which number belongs to which UUID, ours too.
func (a *Adapter) learnContacts(ctx context.Context) {
	a.mu.Lock()
	fresh := time.Since(a.contacts) < contactsEvery
	a.mu.Unlock()
	if fresh {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, a.s.CheckTimeout)
	defer cancel()
	list, err := a.listContacts(ctx)
	if err != nil {
		a.s.Log.Debug().Err(err).Msg("the contact list can't be read")
		return
	}
	a.mu.Lock()
	a.contacts = time.Now()
	a.mu.Unlock()
	for _, c := range list {
		if tidyNumber(c.Number) == a.s.Account {
			a.learnSelf(ctx, c.UUID)
		}
	}
}

func (a *Adapter) listContacts(ctx context.Context) ([]contact, error) {
	var list []contact
	if err := a.rpc.call(ctx, "listContacts", map[string]any{"allRecipients": true}, &list); err != nil {
		return nil, err
	}
	for _, c := range list {
		a.people.learn(c.Number, c.UUID, c.shown())
	}
	return list, nil
}

// poke wakes one who waits.
type poke struct{ ch chan struct{} }

func newPoke() poke { return poke{make(chan struct{}, 1)} }

func (p poke) poke() {
	select {
	case p.ch <- struct{}{}:
	default:
	}
}

// wait waits for d, and returns true when it was poked before.
func (p poke) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-p.ch:
		return true
	}
	return false
}
