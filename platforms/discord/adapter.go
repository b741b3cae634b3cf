package discord

import (
	"context"
	"net/http"
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/wire"
)

// Adapter is one Discord bot. Make it with New.
type Adapter struct {
	s        settings
	client   *wire.Client
	moves    *http.Transport
	download *fetch.Client
	gate     *gate
	health   *wire.Health
	rooms    *rooms
	self     self

	threads      *threads
	own          *wire.Recent[string, platforms.Address] // where messages of ours were meant for
	sent         *attempts
	interactions *interactions
	reacted      *reacted
	life         life

	rolesMu sync.Mutex
	roles   map[string]knownRoles

	choicesMu sync.Mutex
	choices   map[string][]string // of the commands' argument, by command
}

var (
	_ platforms.Adapter       = (*Adapter)(nil)
	_ platforms.Fetcher       = (*Adapter)(nil)
	_ platforms.Deleter       = (*Adapter)(nil)
	_ platforms.Describer     = (*Adapter)(nil)
	_ platforms.Typist        = (*Adapter)(nil)
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

// New checks the options and returns an adapter that has made no request yet. The error is a *platforms.StartError
// that names the key, what is wrong and what is allowed, and repeats no secret.
func New(o Options) (*Adapter, error) {
	s, err := o.check()
	if err != nil {
		return nil, err
	}
	a := &Adapter{
		s: s, gate: newGate(s), rooms: newRooms(), own: wire.NewRecent[string, platforms.Address](ownKept), sent: newAttempts(),
		reacted: newReacted(),
		roles:   map[string]knownRoles{}, choices: map[string][]string{},
	}
	a.self.known = make(chan struct{})
	a.self.now.Bot = s.bot
	a.moves = newTransport(s)
	a.client = &wire.Client{HTTP: &http.Client{Transport: a.moves, CheckRedirect: wire.NoRedirects}, Limit: maxAnswer}
	a.health = wire.NewHealth(wire.System{}, deafDetail)
	a.threads = newThreads(a)
	a.interactions = newInteractions(a)
	downloads := s.Downloads
	downloads.Allow = append(downloads.Allow[:len(downloads.Allow):len(downloads.Allow)], s.ownServers()...)
	if a.download, err = fetch.New(downloads); err != nil {
		return nil, s.setting("proxy", a.clean(err), "")
	}
	return a, nil
}

// Account returns the bot: its user id, which the token holds.
func (a *Adapter) Account() platforms.Account { return a.s.account }

// Secrets returns the token and the proxy's password.
func (a *Adapter) Secrets() []string {
	secrets := []string{a.s.Token}
	if a.s.proxyPassword != "" {
		secrets = append(secrets, a.s.proxyPassword)
	}
	return secrets
}

// Traits says what Discord can do. A nonce holds for some minutes only, so that Idempotent is not promised.
func (a *Adapter) Traits() platforms.Traits {
	t := platforms.Traits{
		Text: platforms.TextTraits{
			Dialect: platforms.DiscordMD, Limit: textLimit, Unit: platforms.CodePoints, CountMarkup: true,
		},
		Tier: platforms.TierHigh, Edit: true, Buttons: true, Threads: true,
		Attachments: true, MaxUpload: freeUpload, EditInterval: time.Second, CommandPrefix: "/",
	}
	if !a.s.limited {
		t.EditInterval = 0
	}
	return t
}

// Run receives until ctx ends. It returns nil then, and a *platforms.StartError when Discord refuses the token or
// the intents. No goroutine of it is left behind.
func (a *Adapter) Run(ctx context.Context, sink platforms.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := a.life.begin(ctx)
	err := a.receive(ctx, sink)
	cancel()
	end()
	a.moves.CloseIdleConnections()
	a.download.Close()
	if err != nil {
		a.health.Set("paused", err.Error())
		return err
	}
	a.health.Set("stopped", "")
	return nil
}

// Health says whether events flow in. It makes no request.
func (a *Adapter) Health() platforms.Health { return a.health.Now() }

// life owns what runs beside the connection, for as long as Run runs.
type life struct {
	mu   sync.Mutex
	ctx  context.Context // nil while Run does not run
	wg   sync.WaitGroup
	room chan struct{}
}

// besideLimit is how many things run beside the connection at a time.
const besideLimit = 32

// begin opens the life; the returned function ends it and waits.
func (l *life) begin(ctx context.Context) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.room = ctx, make(chan struct{}, besideLimit)
	return func() {
		l.mu.Lock()
		l.ctx = nil
		l.mu.Unlock()
		l.wg.Wait()
	}
}

// beside runs f on its own until Run ends. false: Run has ended.
func (a *Adapter) beside(f func(ctx context.Context)) bool {
	l := &a.life
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		return false
	}
	ctx, room := l.ctx, l.room
	l.wg.Go(func() {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		case <-ctx.Done():
			// f still runs: it may have to tell somebody that it can't.
		}
		f(ctx)
	})
	return true
}
