package teams

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/wire"
)

// Adapter is one Teams bot. Make it with New.
type Adapter struct {
	s           settings
	client      *wire.Client
	moves       *http.Transport
	files       *fetch.Client
	keys        *keySet
	tokens      *tokens
	graphTokens *tokens
	health      *wire.Health
	gate        *wire.Gate
	rooms       *rooms
	own         *platforms.Marks
	threads     *platforms.Marks // of channels, that the bot takes part in
	presses     presses
	streams     streams
	reactions   *wire.Recent[string, string] // ours, by ownName
	consents    *consents
	refused     chan *platforms.StartError // what ends Run
	turned      rate.Sometimes             // when a call that was turned away is logged

	// taking is held for reading while a webhook call is handled, and for writing once Run ends.
	taking sync.RWMutex
	intake *intake // nil while Run does not run
}

var (
	_ platforms.Adapter   = (*Adapter)(nil)
	_ platforms.Fetcher   = (*Adapter)(nil)
	_ platforms.Deleter   = (*Adapter)(nil)
	_ platforms.Describer = (*Adapter)(nil)
	_ platforms.Typist    = (*Adapter)(nil)
	_ platforms.Reactor   = (*Adapter)(nil)
	_ platforms.Clicker   = (*Adapter)(nil)
	_ platforms.Directory = (*Adapter)(nil)
	_ platforms.Historian = (*Adapter)(nil)
	_ platforms.Opener    = (*Adapter)(nil)
	_ platforms.Handler   = (*Adapter)(nil)
	_ platforms.Secretive = (*Adapter)(nil)
)

// New checks the options and returns an adapter that has made no request yet. The error is a *platforms.StartError that
// names the setting, what is wrong and what is allowed, and repeats no secret.
func New(o Options) (*Adapter, error) {
	s, err := o.check()
	if err != nil {
		return nil, err
	}
	a := &Adapter{s: s, refused: make(chan *platforms.StartError, 1), presses: presses{open: map[string]*press{}}}
	a.turned = rate.Sometimes{First: 20, Interval: 10 * time.Second} // anybody can call
	if a.files, err = fetch.New(s.Fetch); err != nil {
		return nil, s.setting("download_hosts", err)
	}
	a.moves = newTransport(&a.s)
	a.client = &wire.Client{HTTP: &http.Client{Transport: a.moves, CheckRedirect: wire.NoRedirects}, Limit: maxAnswer}
	a.keys = newKeySet(&a.s, a.client.HTTP)
	a.tokens = newTokens(&a.s, a.client.HTTP, s.cloud.botScope)
	a.graphTokens = newTokens(&a.s, a.client.HTTP, s.cloud.graphScope)
	a.health = wire.NewHealth(s.Clock, "")
	a.gate = newGate(s)
	a.rooms = newRooms(s.Memory, s.Clock)
	a.own = platforms.NewMarks(s.Memory, "own", ownKept)
	a.threads = platforms.NewMarks(s.Memory, "thread", threadsKept)
	a.streams = streams{live: map[string]*stream{}, denied: wire.NewRecent[string, bool](deniedKept)}
	a.reactions = wire.NewRecent[string, string](reactionsKept)
	a.consents = newConsents(&a.s)
	return a, nil
}

// Account returns the bot: its id is the application id.
func (a *Adapter) Account() platforms.Account { return a.s.account }

// Secrets returns the client secret, the tokens in use and the proxy's password.
func (a *Adapter) Secrets() []string {
	secrets := []string{a.s.ClientSecret}
	for _, s := range []string{a.tokens.secret(), a.graphTokens.secret(), a.s.proxyPassword} {
		if s != "" {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

// Traits says what Teams can do.
func (a *Adapter) Traits() platforms.Traits {
	return platforms.Traits{
		Text: platforms.TextTraits{Dialect: platforms.TeamsMD, Limit: textLimit, Unit: platforms.Bytes, CountMarkup: true, Number: true},
		Tier: platforms.TierMediumQuiet, Edit: true, Buttons: true, Threads: true, Attachments: true, MaxUpload: maxUpload,
		EditInterval: a.s.EditInterval, CommandPrefix: "/", AppendOnly: true,
	}
}

// Health says whether activities can come in: the signing keys are known and the login server gives us tokens. Whether
// the Bot Framework reaches the webhook is only known when it calls. It makes no request.
func (a *Adapter) Health() platforms.Health { return a.health.Now() }

// intake is where a webhook call goes, for as long as Run runs.
type intake struct {
	ctx  context.Context
	sink platforms.Sink
	work *sync.WaitGroup // what goes on after an answer
}

// takeInto changes the intake once no webhook call is being handled.
func (a *Adapter) takeInto(in *intake) {
	a.taking.Lock()
	defer a.taking.Unlock()
	a.intake = in
}

// Run gets the keys and a token, keeps both fresh, and lets activities in until ctx ends. It returns nil then, and a
// *platforms.StartError when the credentials are refused. No goroutine of it is left behind.
func (a *Adapter) Run(ctx context.Context, sink platforms.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	select {
	case <-a.refused: // of an earlier run
	default:
	}
	var work sync.WaitGroup
	a.takeInto(&intake{ctx, sink, &work})
	defer func() {
		cancel()
		a.takeInto(nil)
		work.Wait()
		a.moves.CloseIdleConnections()
		a.files.Close()
	}()
	if err := a.watch(ctx); err != nil {
		a.health.Set("paused", a.scrub(err.Error()))
		return err
	}
	a.health.Set("stopped", "")
	return nil
}

// watch keeps the keys and the token fresh. It returns nil when ctx ended.
func (a *Adapter) watch(ctx context.Context) error {
	wait := a.newBackoff()
	for ctx.Err() == nil {
		err := a.ready(ctx)
		switch se := startError(err); {
		case ctx.Err() != nil:
			return nil
		case se != nil:
			return se
		case err != nil:
			a.unready(err)
			_ = wait.Wait(ctx, a.s.Clock, 0)
			continue
		}
		wait.Reset()
		a.health.Fine()
		if se := a.rest(ctx); se != nil {
			return se
		}
	}
	return nil
}

// ready fetches the keys and a token.
func (a *Adapter) ready(ctx context.Context) error {
	if _, err := a.tokens.get(ctx); err != nil {
		return err
	}
	if err := a.keys.refresh(ctx); err != nil {
		return err
	}
	return a.consents.sweep(ctx)
}

// unready tells that something is missing. While the keys that we have are still good, activities come in all the same.
func (a *Adapter) unready(err error) {
	err = a.clean(err)
	a.s.Log.Warn().Err(err).Msg("Teams is not ready, trying again")
	switch {
	case !a.keys.fresh() && a.Health().State == "starting":
		a.health.Set("reconnecting", err.Error())
	case !a.keys.fresh():
		a.health.Set("deaf", err.Error())
	case a.Health().Inbound: // only what goes out is troubled
	default:
		a.health.Set("reconnecting", err.Error())
	}
}

// rest waits until the keys are to be fetched again. A refused secret ends it early.
func (a *Adapter) rest(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slept := make(chan struct{})
	go func() {
		defer close(slept)
		_ = a.s.Clock.Sleep(ctx, a.s.KeyRefresh)
	}()
	select {
	case se := <-a.refused:
		cancel()
		<-slept
		return se
	case <-slept:
		return nil
	}
}

func (a *Adapter) newBackoff() *wire.Backoff { return wire.NewBackoff(a.s.BackoffMin, a.s.BackoffMax) }

// heard notes that an activity has come in. It never revives an adapter that has stopped.
func (a *Adapter) heard() {
	if a.health.Now().State != "stopped" {
		a.health.Fine()
	}
}
