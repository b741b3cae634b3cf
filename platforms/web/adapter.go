package web

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
)

// Adapter is the browser chat. Make it with New, mount Routes on the HTTP listener, then Run it.
type Adapter struct {
	opts  Options
	log   zerolog.Logger
	door  *door
	media *media
	hub   *hub
	page  *page

	// chats holds one lock for each stripe of chats: a log write and its announcement happen under it, so
	// that the browsers learn of changes in the order in which the log took them.
	chats    [64]sync.Mutex
	chatSeed maphash.Seed

	opened   chan struct{} // closed by the first Run
	openOnce sync.Once

	mu       sync.Mutex
	sink     platforms.Sink  // nil while not running
	run      context.Context // of Run
	refused  time.Time       // when the core last refused an event; zero once it took one again
	reason   string          // why it did
	since    time.Time
	state    string
	last     time.Time
	commands []platforms.CommandInfo
	typing   map[platforms.ChatID]time.Time // until when it shows
	titles   map[platforms.ChatID]string
	busy     sync.WaitGroup // requests that use sink or run
	streams  int
}

var (
	_ platforms.Adapter       = (*Adapter)(nil)
	_ platforms.Handler       = (*Adapter)(nil)
	_ platforms.Typist        = (*Adapter)(nil)
	_ platforms.Deleter       = (*Adapter)(nil)
	_ platforms.Describer     = (*Adapter)(nil)
	_ platforms.Clicker       = (*Adapter)(nil)
	_ platforms.CommandLister = (*Adapter)(nil)
	_ platforms.Fetcher       = (*Adapter)(nil)
	_ platforms.Secretive     = (*Adapter)(nil)
)

// New makes the browser chat and its media folder. Errors: a *platforms.StartError that names the setting
// and its value, among them a listener that others can reach without a password or a token (P13).
// Close releases what it holds.
func New(o Options) (*Adapter, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := openMedia(o.MediaDir)
	if err != nil {
		return nil, startError("HERALD_HOME", err, "make the folder of media writable for Herald, or choose another home")
	}
	d, err := newDoor(o, m)
	if err != nil {
		_ = m.Close()
		return nil, startError("HERALD_HOME", err, "make the folder of media writable for Herald, or choose another home")
	}
	p, err := loadPage(o)
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	return &Adapter{
		opts: o, log: o.Logger.With().Str("platform", string(Platform)).Logger(),
		door: d, media: m, page: p, hub: newHub(),
		chatSeed: maphash.MakeSeed(),
		opened:   make(chan struct{}),
		since:    o.Now(), state: "starting",
		typing: make(map[platforms.ChatID]time.Time),
		titles: make(map[platforms.ChatID]string),
	}, nil
}

// Close releases the media folder. Call it after Run has returned and the listener is closed.
func (a *Adapter) Close() error { return a.media.Close() }

// Account returns web/local.
func (a *Adapter) Account() platforms.Account { return account }

// Traits returns what a browser page can do: nearly everything. Threads are separate chats here.
func (a *Adapter) Traits() platforms.Traits {
	return platforms.Traits{
		Text:          platforms.TextTraits{Dialect: platforms.Markdown},
		Tier:          platforms.TierHigh,
		Edit:          true,
		Buttons:       true,
		Idempotent:    true,
		Trusted:       true,
		Attachments:   true,
		MaxUpload:     a.opts.MaxUpload,
		EditInterval:  50 * time.Millisecond,
		CommandPrefix: "/",
	}
}

// Secrets returns the password and the token, where they are set.
func (a *Adapter) Secrets() []string {
	var s []string
	for _, v := range []string{a.opts.Password, a.opts.Token} {
		if v != "" {
			s = append(s, v)
		}
	}
	return s
}

// Run opens the door for messages until ctx ends. It then ends every event stream, breaks off what is being
// accepted (the page keeps it), waits for both, and returns nil. It can be run again. It returns an error only when it runs already.
func (a *Adapter) Run(ctx context.Context, sink platforms.Sink) error {
	if sink == nil {
		return startError("", errors.New("no sink"), "")
	}
	a.mu.Lock()
	if a.sink != nil {
		a.mu.Unlock()
		return startError("", errors.New("runs already"), "")
	}
	a.sink, a.run = sink, ctx
	a.refused = time.Time{}
	a.setState("connected")
	a.mu.Unlock()
	a.openOnce.Do(func() { close(a.opened) })

	<-ctx.Done()

	a.mu.Lock()
	a.sink = nil
	a.setState("stopped")
	a.mu.Unlock()
	a.busy.Wait()
	return nil
}

// Opened implements platforms.Door.
func (a *Adapter) Opened() <-chan struct{} { return a.opened }

// setState is called with mu held.
func (a *Adapter) setState(state string) { a.state, a.since = state, a.opts.Now() }

// refusedFor is how long a refusal of the core says that the next event would be refused too. A browser
// does not try again by itself, so nothing else would ever tell that the trouble is over.
const refusedFor = 30 * time.Second

// Health reports inbound as open from the start of Run to the end of its context, but for the half minute
// after the core refused an event and took none since (P12).
func (a *Adapter) Health() platforms.Health {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := platforms.Health{Inbound: a.sink != nil, State: a.state, Since: a.since, LastEvent: a.last}
	if h.Inbound && !a.refused.IsZero() && a.opts.Now().Sub(a.refused) < refusedFor {
		h.Inbound, h.State, h.Since, h.Detail = false, "deaf", a.refused, a.reason
	}
	return h
}

// offer hands one event to the core and notes for Health how that went. It does not end with the request
// that brought the event: a tab that is closed meanwhile must not break it off half way. It ends with Run,
// and after acceptWithin.
func (a *Adapter) offer(ctx context.Context, sink platforms.Sink, ev platforms.Event) error {
	err := sink.Accept(ctx, ev)
	now := a.opts.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.refused, a.reason = now, "the core refused an event: "+err.Error()
		return err
	}
	a.refused, a.last = time.Time{}, now
	return nil
}

// enter borrows the sink for one request. Run does not return before leave was called. ok is false while
// the adapter does not run. ctx is Run's own and ends with it.
func (a *Adapter) enter() (ctx context.Context, sink platforms.Sink, leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sink == nil || a.run.Err() != nil {
		return nil, nil, nil, false
	}
	a.busy.Add(1)
	return a.run, a.sink, a.busy.Done, true
}

// running reports whether messages are taken now.
func (a *Adapter) running() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sink != nil && a.run.Err() == nil
}

// lockChat serialises the writes of a chat. The returned function gives the lock back.
func (a *Adapter) lockChat(chat platforms.ChatID) (unlock func()) {
	m := &a.chats[maphash.String(a.chatSeed, string(chat))%uint64(len(a.chats))]
	m.Lock()
	return m.Unlock
}

// Routes returns the page, its static files and the interface under /api/chat/.
func (a *Adapter) Routes() map[string]http.Handler { return a.routes() }

// SetCommands replaces the page's completion menu.
func (a *Adapter) SetCommands(_ context.Context, commands []platforms.CommandInfo) error {
	kept := append([]platforms.CommandInfo(nil), commands...)
	a.mu.Lock()
	a.commands = kept
	a.mu.Unlock()
	a.hub.publish("commands", "commands", func() any { return commandViews(kept) })
	return nil
}

// TypingEvery is how often a caller repeats Typing while work goes on.
func (a *Adapter) TypingEvery() time.Duration { return 3 * time.Second }

// typingFor is how long one Typing shows: one repetition may be late by two thirds.
const typingFor = 5 * time.Second

// Typing shows in the chat that an answer is being made, for five seconds or until a finished message.
func (a *Adapter) Typing(_ context.Context, at platforms.Address) error {
	if err := checkAddress(at); err != nil {
		return err
	}
	now := a.opts.Now()
	a.mu.Lock()
	for chat, until := range a.typing {
		if until.Before(now) {
			delete(a.typing, chat)
		}
	}
	a.typing[at.Chat] = now.Add(typingFor)
	a.mu.Unlock()
	a.announceTyping(at.Chat, typingFor)
	return nil
}

// isTyping reports whether the chat's typing indicator shows now.
func (a *Adapter) isTyping(chat platforms.ChatID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.typing[chat].After(a.opts.Now())
}

// endTyping takes the indicator away, if it shows.
func (a *Adapter) endTyping(chat platforms.ChatID) {
	a.mu.Lock()
	_, was := a.typing[chat]
	delete(a.typing, chat)
	a.mu.Unlock()
	if was {
		a.announceTyping(chat, 0)
	}
}

func (a *Adapter) announceTyping(chat platforms.ChatID, d time.Duration) {
	a.hub.publish("typing", "typing/"+string(chat), func() any {
		return typingView{Chat: chat, ForMS: d.Milliseconds()}
	})
}

// AnswerClick shows text for a moment in the tabs that show the chat. An empty text shows nothing.
func (a *Adapter) AnswerClick(_ context.Context, at platforms.Address, click platforms.Click, text string) error {
	if err := checkAddress(at); err != nil {
		return err
	}
	a.hub.publish("clicked", "", func() any {
		return clickedView{Chat: at.Chat, Message: click.MessageID, Reply: click.Reply, Text: text}
	})
	return nil
}
