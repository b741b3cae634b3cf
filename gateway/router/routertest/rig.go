// Package routertest runs a router with its turns and its delivery on a real store, between a scripted model and a
// platform in memory. It is for tests alone.
package routertest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/gateway/agent"
	"herald/gateway/delivery"
	"herald/gateway/model"
	"herald/gateway/router"
	"herald/gateway/turn"
	"herald/gateway/turn/ask"
	"herald/gateway/turn/show"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
	"herald/tools"
)

// Options says what is special in a test.
type Options struct {
	// Commands makes the commands; nil: there are none.
	Commands func(*Rig) router.Commands
	// Tune changes the router's options; Set those of turns.
	Tune func(*router.Options)
	Set  func(*turn.Settings)
	// Tools are what the model may call.
	Tools []tools.Tool
	// Deny tells why an event may not come in, "" for those that may.
	Deny func(platforms.Event) string
}

// Rig is a router with everything behind it.
type Rig struct {
	T      *testing.T
	Store  *Store
	Model  *Model
	Chat   *Chat
	Bus    *tools.Bus
	Worker *delivery.Worker
	Runs   *turn.Runs
	Asker  *ask.Asker
	Runner *turn.Runner
	Router *router.Router
	Counts *Counts
	// Commands are the commands in force.
	Commands router.Commands
	// NoModel tells that turns get no model.
	NoModel atomic.Bool

	opt  Options
	path string
	seq  int
}

// Within runs a test with a clock of its own, on a real store: time passes only while everything waits.
func Within(t *testing.T, opt Options, fn func(*testing.T, *Rig)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "herald.db")
	synctest.Test(t, func(t *testing.T) {
		r := &Rig{T: t, Model: &Model{}, Chat: &Chat{}, Counts: &Counts{}, opt: opt, path: path}
		r.Open()
		defer func() { r.Close() }()
		fn(t, r)
	})
}

// Open starts a process on the store and takes up what the last one left.
func (r *Rig) Open() {
	r.T.Helper()
	store, err := sqlite.Open(context.Background(), sqlite.Options{Path: r.path})
	require.NoError(r.T, err)
	r.Store = &Store{Store: store}
	r.Worker = delivery.New(delivery.Options{Store: r.Store, Adapters: r.Chat, Printer: English, Log: zerolog.Nop()})
	registry := tools.NewRegistry(tools.RegistryOptions{})
	for _, tool := range r.opt.Tools {
		require.NoError(r.T, registry.Register(tool))
	}
	redact := func(s string) string { return s }
	r.Runs = turn.NewRuns()
	r.Asker = ask.New(ask.Options{Store: r.Store, Turns: r.Runs, Outbox: r.Worker, Adapters: r.Chat, Printer: English, Redact: redact,
		Log: zerolog.Nop()})
	r.Bus = tools.NewBus(tools.Options{Registry: registry, Journal: turn.NewJournal(r.Runs)})
	settings := turn.Settings{Limits: agent.DefaultLimits(), MaxAttempts: 3}
	settings.Limits.EmptyTries = 1
	if r.opt.Set != nil {
		r.opt.Set(&settings)
	}
	r.Runner = turn.NewRunner(turn.Services{
		Runs: r.Runs, Asker: r.Asker,
		Store: r.Store, Bus: r.Bus, Catalog: catalog{registry}, Outbox: r.Worker, Adapters: r.Chat, Printer: English,
		Model: func(string) (model.Model, error) {
			if r.NoModel.Load() {
				return nil, errors.New("no model")
			}
			return r.Model, nil
		},
		Prompt:   func(context.Context, sessions.Session, []string, model.Info) string { return "You are a test." },
		Display:  func(platforms.Address, sessions.Options) show.Display { return show.Display{} },
		Settings: func(platforms.Address) turn.Settings { return settings },
		Origin:   origin, Dir: func(sessions.Session) string { return "/" }, Redact: redact, Log: zerolog.Nop(),
	})
	r.Commands = none{}
	if r.opt.Commands != nil {
		r.Commands = r.opt.Commands(r)
	}
	opt := router.Options{
		Store: r.Store, Runner: r.Runner, Access: gate{r.opt.Deny}, Commands: r.Commands, Outbox: outbox{r.Worker}, Printer: English,
		Metrics: r.Counts,
		Key:     Key, Mode: func(_ platforms.Address, o sessions.Options) turn.Mode {
			if o.Busy != "" {
				return turn.Mode(o.Busy)
			}
			return turn.Queue
		},
		Acks:      func(platforms.Address) router.Acks { return router.Acks{Show: true, Steer: true} },
		Freshness: func(platforms.Address) time.Duration { return time.Hour }, Log: zerolog.Nop(),
	}
	if r.opt.Tune != nil {
		r.opt.Tune(&opt)
	}
	r.Router = router.New(opt)
	require.NoError(r.T, r.Worker.Recover(context.Background()))
	require.NoError(r.T, r.Router.Recover(context.Background()))
}

// Close stops the process as SIGTERM does when the time to drain is over: what runs stays on disk.
func (r *Rig) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.Router.Drain(ctx)
	r.Runner.Close()
	r.Router.Wait()
	_ = r.Bus.Close(context.Background())
	r.Worker.Close()
	require.NoError(r.T, r.Store.Close())
}

// Settle waits until nothing goes on any more but what waits for the test or for time.
func (r *Rig) Settle() {
	r.T.Helper()
	synctest.Wait()
}

// Wait lets so many seconds pass.
func (r *Rig) Wait(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second) // of the test's own clock
	synctest.Wait()
}

// Restart ends the process and starts the next one.
func (r *Rig) Restart() {
	r.Close()
	r.Open()
	r.Settle()
}

// Text makes an event of a person's message in a direct chat.
func (r *Rig) Text(chat, text string) platforms.Event {
	r.seq++
	return platforms.Event{
		ID: platforms.EventID(fmt.Sprint("e", r.seq)), Address: Address(chat), ChatType: platforms.DM, Addressed: true,
		Sender:  platforms.User{ID: platforms.UserID("user-" + chat), Name: "Ada"},
		Message: &platforms.Message{ID: platforms.MessageID(fmt.Sprint("m", r.seq)), Text: text},
	}
}

// Give hands events to the router, which must take them.
func (r *Rig) Give(events ...platforms.Event) {
	r.T.Helper()
	require.NoError(r.T, r.Router.Accept(context.Background(), events...))
}

// Say lets a person write and waits until nothing goes on any more.
func (r *Rig) Say(chat, text string) {
	r.T.Helper()
	r.Give(r.Text(chat, text))
	r.Settle()
}

// Inbox returns the row with that number, from 1 in the order of arrival.
func (r *Rig) Inbox(id sessions.InboxID) (item sessions.InboxItem) {
	r.T.Helper()
	r.View(func(v sessions.View) (err error) {
		item, err = v.InboxItem(id)
		return err
	})
	return item
}

// View reads the store.
func (r *Rig) View(fn func(sessions.View) error) {
	r.T.Helper()
	require.NoError(r.T, r.Store.View(context.Background(), fn))
}

// Update writes to the store.
func (r *Rig) Update(fn func(sessions.Tx) error) {
	r.T.Helper()
	require.NoError(r.T, r.Store.Store.Update(context.Background(), sessions.EdgeState, fn))
}

// Transcript returns the chat's current conversation as "role: text".
func (r *Rig) Transcript(chat string) (out []string) {
	r.T.Helper()
	r.View(func(v sessions.View) error {
		route, err := v.Route(KeyOf(chat))
		if err != nil {
			return err
		}
		rows, err := v.Transcript(route.Session, false, 0, 0)
		for _, row := range rows {
			out = append(out, string(row.Role)+": "+row.Content)
		}
		return err
	})
	return out
}

// Address is where a chat is.
func Address(chat string) platforms.Address {
	return platforms.Address{Platform: "test", Account: "bot", Chat: platforms.ChatID(chat)}
}

// Key is the key of an event.
func Key(e platforms.Event) sessions.Key {
	return sessions.KeyFor(sessions.SourceOf("", e), sessions.DefaultKeyOptions())
}

// KeyOf is the key of a direct chat.
func KeyOf(chat string) sessions.Key {
	return Key(platforms.Event{Address: Address(chat), ChatType: platforms.DM})
}

func origin(e platforms.Event) sessions.Origin {
	return sessions.OriginOf(e, sessions.DefaultKeyOptions())
}
