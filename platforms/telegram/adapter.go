package telegram

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-telegram/bot"

	"herald/platforms"
	"herald/platforms/wire"
)

// ownKept is how many of our messages are remembered with their threads: Telegram does not say whose message a reaction is on,
// nor in which topic it or an old message with buttons is.
const ownKept = 4096

type ownMessage struct {
	chat int64
	id   int
}

// Adapter is one Telegram bot. Make it with New.
type Adapter struct {
	s      settings
	api    *bot.Bot
	client *wire.Client
	moves  *http.Transport
	me     identity
	health *wire.Health
	gate   *wire.Gate
	own    *wire.Recent[ownMessage, int] // the thread that a message of ours is in
	albums albumVerdicts
	doubt  chan struct{} // see doubtToken

	// taking is held for reading while a webhook call is handled, and for writing once Run ends.
	taking sync.RWMutex
	intake *intake // nil while Run does not run

	movedMu sync.Mutex
	moved   map[int64]int64 // groups that became supergroups
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
	_ platforms.Handler       = (*Adapter)(nil)
	_ platforms.Secretive     = (*Adapter)(nil)
)

// New checks the options and returns an adapter that has made no request yet. The error is a
// *platforms.StartError that names the key, what is wrong and what is allowed, and repeats no secret.
func New(o Options) (*Adapter, error) {
	s, err := o.check()
	if err != nil {
		return nil, err
	}
	a := &Adapter{s: s, own: wire.NewRecent[ownMessage, int](ownKept), moved: map[int64]int64{}, doubt: make(chan struct{}, 1)}
	a.moves = newTransport(s)
	a.client = &wire.Client{HTTP: &http.Client{Transport: a.moves}, Limit: maxAnswer, Buffer: buffered}
	a.me = newIdentity(s.account.ID)
	a.gate = newGate(s)
	a.health = wire.NewHealth(s.Clock, "no poll was answered")
	if s.WebhookURL == "" {
		a.health.Expect(2 * s.PollTimeout)
	}
	a.api, err = bot.New(s.Token,
		bot.WithSkipGetMe(),
		bot.WithServerURL(s.BaseURL),
		bot.WithHTTPClient(s.PollTimeout, a.client),
		bot.WithErrorsHandler(func(err error) { s.Log.Debug().Err(a.clean(err)).Msg("bot api client") }),
	)
	if err != nil {
		return nil, s.setting("token", a.clean(err))
	}
	return a, nil
}

// Account returns the bot: its id is the digits of the token.
func (a *Adapter) Account() platforms.Account { return a.s.account }

// Secrets returns the token, its secret part, the webhook secret and the proxy's password.
func (a *Adapter) Secrets() []string {
	secrets := []string{a.s.Token, a.s.Token[len(a.s.account.ID)+1:]}
	if a.s.WebhookSecret != "" {
		secrets = append(secrets, a.s.WebhookSecret)
	}
	if a.s.proxyPassword != "" {
		secrets = append(secrets, a.s.proxyPassword)
	}
	return secrets
}

// Traits says what Telegram can do. A private server lifts the upload limit; with the rate limit off there
// is no least time between edits.
func (a *Adapter) Traits() platforms.Traits {
	t := platforms.Traits{
		Text: platforms.TextTraits{
			Dialect: platforms.TelegramHTML, Limit: textLimit, Unit: platforms.UTF16, Number: true,
		},
		Tier: platforms.TierHighQuiet, Edit: true, Buttons: true, Threads: true,
		Attachments: true, MaxUpload: a.maxUpload(), EditInterval: time.Second, CommandPrefix: "/",
	}
	if !a.s.limited {
		t.EditInterval = 0
	}
	return t
}

func (a *Adapter) maxUpload() int64 {
	if a.s.private {
		return localUpload
	}
	return publicUpload
}

// Run receives until ctx ends. It returns nil then, and a *platforms.StartError when Telegram refuses the
// token or the webhook. No goroutine of it is left behind.
func (a *Adapter) Run(ctx context.Context, sink platforms.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	a.takeInto(&intake{ctx, sink})
	var wg sync.WaitGroup
	wg.Go(func() { a.identify(ctx) })
	defer func() {
		cancel()
		wg.Wait()
		a.takeInto(nil)
		a.moves.CloseIdleConnections()
	}()
	var err error
	if a.s.WebhookURL != "" {
		err = a.listen(ctx)
	} else {
		err = a.poll(ctx, sink)
	}
	if err != nil {
		a.health.Set("paused", err.Error())
		return err
	}
	a.health.Set("stopped", "")
	return nil
}

// intake is where a webhook call goes, for as long as Run runs.
type intake struct {
	ctx  context.Context
	sink platforms.Sink
}

// takeInto changes the intake once no webhook call is being handled.
func (a *Adapter) takeInto(in *intake) {
	a.taking.Lock()
	defer a.taking.Unlock()
	a.intake = in
}

// Health says whether updates flow in. It makes no request.
func (a *Adapter) Health() platforms.Health { return a.health.Now() }

// chatOf parses the chat and the thread of an address. A group that became a supergroup is followed.
func (a *Adapter) chatOf(at platforms.Address) (chat int64, thread int, err error) {
	if at.AccountOf() != a.s.account {
		return 0, 0, platforms.Failure(platforms.BadRequest, "address %s is not of account %s", at, a.s.account)
	}
	chat, err = strconv.ParseInt(string(at.Chat), 10, 64)
	if err != nil || chat == 0 {
		return 0, 0, platforms.Failure(platforms.BadRequest, "chat %q is no Telegram chat id: want a whole number", at.Chat)
	}
	if at.Thread != "" {
		thread, err = strconv.Atoi(string(at.Thread))
		if err != nil || thread <= 0 {
			return 0, 0, platforms.Failure(platforms.BadRequest, "thread %q is no Telegram topic id: want a positive number", at.Thread)
		}
		if thread == generalTopic {
			thread = 0
		}
	}
	a.movedMu.Lock()
	if to, ok := a.moved[chat]; ok {
		chat = to
	}
	a.movedMu.Unlock()
	return chat, thread, nil
}

func messageID(id platforms.MessageID) (int, error) {
	n, err := strconv.Atoi(string(id))
	if err != nil || n <= 0 {
		return 0, platforms.Failure(platforms.BadRequest, "message %q is no Telegram message id: want a positive number", id)
	}
	return n, nil
}
