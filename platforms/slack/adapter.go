package slack

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/wire"
)

// Adapter is the bot of one workspace. Make them with New.
type Adapter struct {
	s       *settings
	hub     *hub
	token   string
	team    string // as the settings name it, "" when they don't
	account platforms.Account
	api     *api.Client
	gate    gate
	health  *wire.Health
	me      atomic.Pointer[identity]
	doubt   chan struct{} // the token was refused: ask whether it still works

	names   *names
	threads *platforms.Marks // where the bot takes part, "channel/ts"
	fresh   map[string]bool  // those of the batch that is being taken; Run's goroutine alone
	shown   *platforms.Marks // threads whose first reply was broadcast
	streams *streams
	answers *answers
	spoke   *wire.Recent[platforms.Address, platforms.UserID] // who spoke last in a place: Slack wants to know for whom a stream is
	past    *wire.Recent[string, pastThread]                  // threads that were read a moment ago
	marked  *wire.Recent[string, string]                      // message: our reaction
	dms     *wire.Recent[platforms.UserID, string]            // person: their direct chat
	known   atomic.Pointer[map[string]bool]                   // command names
	off     offSwitches

	work    sync.WaitGroup // what runs beside Run
	running atomic.Pointer[context.Context]
}

// offSwitches remember what Slack has refused for good, so that it is not asked again and again.
type offSwitches struct{ status, streams, prompts, titles atomic.Bool }

var (
	_ platforms.Adapter       = (*Adapter)(nil)
	_ platforms.Fetcher       = (*Adapter)(nil)
	_ platforms.Deleter       = (*Adapter)(nil)
	_ platforms.Describer     = (*Adapter)(nil)
	_ platforms.Narrator      = (*Adapter)(nil)
	_ platforms.Reactor       = (*Adapter)(nil)
	_ platforms.Clicker       = (*Adapter)(nil)
	_ platforms.CommandLister = (*Adapter)(nil)
	_ platforms.Reconciler    = (*Adapter)(nil)
	_ platforms.Threader      = (*Adapter)(nil)
	_ platforms.Historian     = (*Adapter)(nil)
	_ platforms.Directory     = (*Adapter)(nil)
	_ platforms.Opener        = (*Adapter)(nil)
	_ platforms.Secretive     = (*Adapter)(nil)
)

// New checks the options and returns an adapter for each bot token, in their order, that share one connection.
// Nothing is requested yet. Of two tokens of the same bot the first counts. The error is a *platforms.StartError
// that names the key, what is wrong and what is allowed, and repeats no secret.
func New(o Options) ([]*Adapter, error) {
	s, err := o.check()
	if err != nil {
		return nil, err
	}
	h := newHub(s)
	var adapters []*Adapter
	seen := map[platforms.AccountID]bool{}
	for _, t := range s.Tokens {
		id := accountOf(t.Token)
		if seen[id] {
			s.Log.Warn().Str("account", string(id)).Msg("two tokens belong to the same Slack bot; the first one is used")
			continue
		}
		seen[id] = true
		adapters = append(adapters, newAdapter(h, t, id))
	}
	return adapters, nil
}

func newAdapter(h *hub, t Token, id platforms.AccountID) *Adapter {
	s := h.s
	memory := s.Memory(id)
	a := &Adapter{
		s: s, hub: h, token: t.Token, team: t.Team, account: platforms.Account{Platform: Platform, ID: id},
		gate: newGate(s), health: wire.NewHealth(s.Clock, ""), doubt: make(chan struct{}, 1),
		threads: platforms.NewMarks(memory, "threads", threadsKept), fresh: map[string]bool{},
		shown:   platforms.NewMarks(memory, "broadcast", threadsKept),
		streams: newStreams(), answers: newAnswers(), spoke: wire.NewRecent[platforms.Address, platforms.UserID](4096),
		past: wire.NewRecent[string, pastThread](pastKept), marked: wire.NewRecent[string, string](4096),
		dms: wire.NewRecent[platforms.UserID, string](4096),
	}
	a.names = newNames(a)
	a.api = api.New(t.Token, api.OptionAPIURL(s.APIURL), api.OptionHTTPClient(h.client))
	return a
}

// Account returns the bot: its id are the two numbers of the token.
func (a *Adapter) Account() platforms.Account { return a.account }

// Secrets returns the tokens and the proxy's password.
func (a *Adapter) Secrets() []string {
	secrets := a.s.secrets()
	for _, t := range append([]string{a.token}, a.s.AppToken) {
		if i := strings.LastIndexByte(t, '-'); i >= 0 && len(t)-i > 8 {
			secrets = append(secrets, t[i+1:]) // the secret part alone
		}
	}
	return secrets
}

// Traits says what Slack can do.
func (a *Adapter) Traits() platforms.Traits {
	t := platforms.Traits{
		Text: platforms.TextTraits{Dialect: platforms.SlackMrkdwn, Limit: textLimit, Unit: platforms.UTF16, CountMarkup: true, Number: true},
		Tier: platforms.TierMediumQuiet, Edit: true, Buttons: true, Threads: true, Attachments: true, MaxUpload: maxUpload,
		EditInterval: 1200 * time.Millisecond, CommandPrefix: "/", ThreadCommandPrefix: "!", AppendOnly: a.s.streaming,
	}
	if !a.s.limited {
		t.EditInterval = 0
	}
	return t
}

// Health says whether events flow in: the account's own state until it takes part in the shared connection, and
// that connection's state then. It makes no request.
func (a *Adapter) Health() platforms.Health {
	own := a.health.Now()
	if own.State != "connected" {
		return own
	}
	return a.hub.health.Now()
}

// Run receives until ctx ends. It returns nil then, and a *platforms.StartError when Slack refuses the bot's or the
// app's token. No goroutine of it is left behind; the shared connection ends with the last adapter.
func (a *Adapter) Run(ctx context.Context, sink platforms.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	a.running.Store(&ctx)
	defer func() {
		a.running.Store(nil)
		cancel()
		a.work.Wait()
	}()
	a.health.Set("starting", "")
	err := a.run(ctx, sink)
	if err != nil {
		a.health.Set("paused", err.Error())
		return err
	}
	a.health.Set("stopped", "")
	return nil
}

func (a *Adapter) run(ctx context.Context, sink platforms.Sink) error {
	seat := a.hub.enter()
	defer seat.leave()
	if err := a.identify(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	seat.sit(a)
	a.health.Set("connected", "")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-seat.failed():
			err := *a.hub.failure()
			err.Account = a.account
			return &err
		case <-a.doubt:
			if err := a.recheck(ctx); err != nil {
				return err
			}
		case d := <-seat.inbox:
			a.take(ctx, sink, a.drain(d, seat.inbox))
		}
	}
}

// aside runs work beside Run, bounded in time. It does nothing while Run does not run.
func (a *Adapter) aside(work func(context.Context)) {
	running := a.running.Load()
	if running == nil {
		return
	}
	ctx, cancel := context.WithTimeout(*running, 30*time.Second)
	a.work.Go(func() {
		defer cancel()
		work(ctx)
	})
}

// doubtToken makes Run ask whether the token still works.
func (a *Adapter) doubtToken() {
	select {
	case a.doubt <- struct{}{}:
	default:
	}
}
