package routertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"herald/gateway/delivery"
	"herald/gateway/model"
	"herald/gateway/router"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
	"herald/tools"
)

// Store is a real store that can be made to fail.
type Store struct {
	*sqlite.Store
	mu   sync.Mutex
	fail map[sessions.Edge]int
}

// Fail lets the next n updates of an edge fail as on a full disk, after their function has run; n < 0: all of them.
func (s *Store) Fail(edge sessions.Edge, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail == nil {
		s.fail = map[sessions.Edge]int{}
	}
	s.fail[edge] = n
}

// Update implements sessions.Store.
func (s *Store) Update(ctx context.Context, edge sessions.Edge, fn func(sessions.Tx) error) error {
	return s.Store.Update(ctx, edge, s.failing(edge, fn))
}

// Later implements sessions.Store.
func (s *Store) Later(edge sessions.Edge, fn func(sessions.Tx) error, done func(error)) {
	s.Store.Later(edge, s.failing(edge, fn), done)
}

// failing returns fn, or what fails after it when it is the edge's time to.
func (s *Store) failing(edge sessions.Edge, fn func(sessions.Tx) error) func(sessions.Tx) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.fail[edge]
	if n == 0 {
		return fn
	}
	if n > 0 {
		s.fail[edge]--
	}
	return func(tx sessions.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return sessions.ErrFull
	}
}

// Model answers "re: " and the newest words of the person, or as Answer says. Held, it hangs until it is released
// or its caller gives up.
type Model struct {
	// Answer is set before the first call.
	Answer func(ctx context.Context, req model.Request) (model.Response, error)

	mu      sync.Mutex
	gate    chan struct{}
	running map[string]int
	overlap int
	most    int
	asked   []string
	reqs    []model.Request
}

// Info implements model.Model.
func (m *Model) Info() model.Info {
	return model.Info{Provider: "test", Name: "scripted", Context: 100_000}
}

// Stream implements model.Model.
func (m *Model) Stream(ctx context.Context, req model.Request, on func(model.Delta)) (model.Response, error) {
	m.mu.Lock()
	if m.running == nil {
		m.running = map[string]int{}
	}
	m.asked, m.reqs = append(m.asked, LastUser(req)), append(m.reqs, req)
	if m.running[req.CacheKey]++; m.running[req.CacheKey] > 1 {
		m.overlap++
	}
	all := 0
	for _, n := range m.running {
		all += n
	}
	m.most = max(m.most, all)
	gate := m.gate
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.running[req.CacheKey]--
		m.mu.Unlock()
	}()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return model.Response{}, context.Cause(ctx)
		}
	}
	if m.Answer != nil {
		return m.Answer(ctx, req)
	}
	resp := model.Response{Text: "re: " + LastUser(req), Usage: model.Usage{Input: 1, Output: 1}}
	on(model.Delta{Text: resp.Text})
	return resp, ctx.Err()
}

// Hold lets calls hang from now on; Release lets them go on.
func (m *Model) Hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate = make(chan struct{})
}

// Release lets the calls that hang go on.
func (m *Model) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.gate)
	m.gate = nil
}

// Step lets the calls that hang now go on, and holds the next ones.
func (m *Model) Step() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.gate)
	m.gate = make(chan struct{})
}

// Asked returns the newest words of the person in each call, in order; Requests the calls.
func (m *Model) Asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// Requests returns the calls, in order.
func (m *Model) Requests() []model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reqs)
}

// Overlaps counts calls that began while another one of the same session ran; most is how many ran at once in all.
func (m *Model) Overlaps() (overlaps, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.overlap, m.most
}

// LastUser returns what a request's newest message of a person says.
func LastUser(req model.Request) string {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == "user" {
			return m.Text
		}
	}
	return ""
}

// Chat is a platform in memory that shows what is sent.
type Chat struct {
	// Past answers for what was said before a message; nil: nothing was. Set before the first message.
	Past func(ctx context.Context, before platforms.MessageID, limit int) ([]platforms.Said, error)

	mu      sync.Mutex
	places  map[platforms.Address][]string
	private []string
	edits   []string
	sent    int
}

// Account and the next ones implement platforms.Adapter.
func (c *Chat) Account() platforms.Account { return Address("").AccountOf() }

// Traits implements platforms.Adapter.
func (c *Chat) Traits() platforms.Traits {
	return platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}, Buttons: true}
}

// Health implements platforms.Adapter.
func (c *Chat) Health() platforms.Health { return platforms.Health{Inbound: true} }

// Run implements platforms.Adapter.
func (c *Chat) Run(context.Context, platforms.Sink) error { return nil }

// Send implements platforms.Adapter.
func (c *Chat) Send(_ context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.places == nil {
		c.places = map[platforms.Address][]string{}
	}
	c.sent++
	if out.Private != "" {
		c.private = append(c.private, out.Private)
	}
	if out.Edit == "" {
		c.places[out.Address] = append(c.places[out.Address], out.Text.Plain)
	} else {
		c.edits = append(c.edits, out.Text.Plain)
	}
	return platforms.Receipt{Message: platforms.MessageID(fmt.Sprint("s", c.sent))}, nil
}

// History implements platforms.Historian.
func (c *Chat) History(ctx context.Context, _ platforms.Address, before platforms.MessageID, limit int) ([]platforms.Said, error) {
	if c.Past == nil {
		return nil, nil
	}
	return c.Past(ctx, before, limit)
}

// Adapter implements delivery.Adapters.
func (c *Chat) Adapter(platforms.Account) (platforms.Adapter, bool) { return c, true }

// Shown returns what is visible in a chat, oldest first.
func (c *Chat) Shown(chat string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.places[Address(chat)])
}

// Private returns the tokens of messages that only one person sees.
func (c *Chat) Private() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.private)
}

// Edits returns what messages were edited to, oldest first.
func (c *Chat) Edits() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.edits)
}

// Last returns the newest message of a chat.
func (c *Chat) Last(chat string) string {
	all := c.Shown(chat)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// Counts keeps what came in, as "kind outcome".
type Counts struct {
	mu sync.Mutex
	n  map[string]int
}

// Inbound implements router.Metrics.
func (c *Counts) Inbound(_ platforms.Name, kind, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[kind+" "+outcome]++
}

// Of returns how often a kind of event had an outcome.
func (c *Counts) Of(kind, outcome string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[kind+" "+outcome]
}

type outbox struct{ *delivery.Worker }

func (o outbox) Control(at platforms.Address, text string) *sessions.OutboxRow {
	return Row(at, text)
}

// Row makes a row of the control lane.
func Row(at platforms.Address, text string) *sessions.OutboxRow {
	return &sessions.OutboxRow{Kind: sessions.OutControl, Lane: at.String() + "#control",
		Message: platforms.Outgoing{Address: at, Text: platforms.Text{Body: text, Plain: text, Markdown: text}}}
}

type gate struct{ deny func(platforms.Event) string }

func (g gate) Decide(e platforms.Event) router.Decision {
	if g.deny != nil {
		if reason := g.deny(e); reason != "" {
			return router.Decision{Reason: reason, Pair: true}
		}
	}
	return router.Decision{Allowed: true, Bot: e.Sender.IsBot}
}

func (g gate) Guard(_ sessions.Tx, e platforms.Event) (bool, *sessions.OutboxRow, error) {
	switch e.Sender.ID {
	case "loop":
		return false, nil, nil
	case "broken":
		return false, nil, errors.New("the guard can't count")
	}
	return true, nil, nil
}

type none struct{}

func (none) Parse(platforms.Event) (router.Command, bool) { return router.Command{}, false }
func (none) Run(context.Context, router.Command, sessions.InboxItem, *router.Control) {
}
func (none) Click(context.Context, sessions.InboxItem, *router.Control) {}

type catalog struct{ registry *tools.Registry }

func (c catalog) Names(context.Context, sessions.Origin) []string { return c.registry.Names() }
func (c catalog) Spec(name string) (tools.Spec, bool)             { return c.registry.Spec(name) }

func (c catalog) Definitions(_ context.Context, names []string) (out []model.ToolDef) {
	for _, name := range names {
		out = append(out, model.ToolDef{Name: name})
	}
	return out
}

// English speaks English at every address.
func English(platforms.Address) *locales.Printer { return english() }

var english = sync.OnceValue(func() *locales.Printer {
	catalogs, err := locales.New(locales.Options{})
	if err != nil {
		panic(err)
	}
	return catalogs.Printer("en")
})

// Text is a text in English.
func Text(key string, args ...locales.Arg) string { return english().T(key, args...) }

// Queued, Redirected and Steered are what a message that comes while a turn runs is answered with, Full that too many wait.
func Queued() string             { return "↪ " + Text("busy.queued") }
func Redirected() string         { return "↪ " + Text("busy.interrupted") }
func Steered() string            { return "↪ " + Text("busy.steered") }
func Full(n int) string          { return "⚠️ " + english().N("inbound.queue_full", n) }
func Busy(command string) string { return Text("command.refused_busy", locales.Str("name", command)) }
