package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/config"
	"herald/gateway/workspace"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools/process"
)

// News is what a background process has to say to its conversation.
type News struct {
	// ID is unique: news with one that was brought before are dropped.
	ID      string
	Key     sessions.Key
	Session sessions.ID
	Address platforms.Address
	User    platforms.UserID
	Text    string // for the model
	// Notice, if not nil, is shown in the chat at once.
	Notice *sessions.OutboxRow
}

// Waker brings news to a conversation, as a turn of it. keep runs in the transaction that keeps the news.
type Waker func(ctx context.Context, n News, keep func(sessions.Tx) error) error

// ProcessOptions is what Processes are made from. All fields are needed but Log.
type ProcessOptions struct {
	Config    func() *config.Config
	Store     sessions.Store
	Workspace *workspace.Workspace
	Printer   func(at platforms.Address) *locales.Printer
	// Row renders a line of Herald's own for a chat.
	Row    func(at platforms.Address, markdown string) *sessions.OutboxRow
	Redact func(string) string
	// Ended counts a process that has ended.
	Ended func(process.State)
	Log   zerolog.Logger
	Now   func() time.Time
}

// Processes are the background processes of a profile. For commands they are what people see of them.
type Processes struct {
	*process.Processes
	records *records
}

// NewProcesses starts nothing; Start and Recover take up the processes of an earlier daemon.
func NewProcesses(o ProcessOptions) *Processes {
	r := &records{o: o}
	return &Processes{records: r, Processes: process.New(process.Options{Environment: o.Workspace.Environment, Store: r, Redact: o.Redact,
		Survive:  o.Workspace.Settings().Survives,
		Surface:  func() bool { return o.Config().Delegation.SurfaceProcesses },
		Finished: o.Ended, Log: o.Log, Now: o.Now})}
}

// Start says who brings news to conversations from now on. Before it there is no process, so no news.
func (p *Processes) Start(w Waker) { p.records.waker.Store(&w) }

// Of returns the processes of a conversation.
func (p *Processes) Of(key sessions.Key) []process.View { return p.Processes.Of(string(key)) }

// End ends the processes of a conversation and returns how many ran.
func (p *Processes) End(key sessions.Key) int { return p.Processes.End(string(key)) }

// records keeps the processes as durable values and makes news of what they report.
type records struct {
	o     ProcessOptions
	waker atomic.Pointer[Waker]
}

// Load implements process.Store. A record that can't be read is left out: it must not keep the daemon from starting.
func (r *records) Load(ctx context.Context) ([]process.Record, error) {
	var out []process.Record
	err := r.o.Store.View(ctx, func(v sessions.View) error {
		values, err := v.Values(sessions.SpaceProcess)
		if err != nil {
			return err
		}
		for _, value := range values {
			var record process.Record
			if err := json.Unmarshal(value.Data, &record); err != nil {
				r.o.Log.Error().Err(err).Str("process", value.Name).Msg("the record of a background process can't be read; it is not followed")
				continue
			}
			out = append(out, record)
		}
		return nil
	})
	return out, err
}

// Save implements process.Store.
func (r *records) Save(ctx context.Context, record process.Record, news ...process.News) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	keep := func(tx sessions.Tx) error { return tx.SetValue(sessions.SpaceProcess, record.ID, data, r.o.Now()) }
	if len(news) == 0 {
		return r.o.Store.Update(ctx, sessions.EdgeState, keep)
	}
	// News that were brought before are dropped, so all but the last may come first.
	for _, n := range news[:len(news)-1] {
		if err := r.Tell(ctx, n); err != nil {
			return err
		}
	}
	return r.wake(ctx, news[len(news)-1], keep)
}

// Tell implements process.Store.
func (r *records) Tell(ctx context.Context, n process.News) error { return r.wake(ctx, n, nil) }

// Delete implements process.Store.
func (r *records) Delete(ctx context.Context, id string) error {
	err := r.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		return tx.SetValue(sessions.SpaceProcess, id, nil,
			r.o.Now())
	})
	if errors.Is(err, sessions.ErrNotFound) {
		return nil
	}
	return err
}

// wake brings news to their conversation, with what is to be kept.
func (r *records) wake(ctx context.Context, n process.News, keep func(sessions.Tx) error) error {
	o := n.Owner
	waker := r.waker.Load()
	if waker == nil {
		return errors.New("the daemon has not started")
	}
	if o.Key == "" { // started outside a conversation: there is nobody to tell
		if keep == nil {
			return nil
		}
		return r.o.Store.Update(ctx, sessions.EdgeState, keep)
	}
	at := platforms.Address{Platform: platforms.Name(o.Platform), Account: platforms.AccountID(o.Account),
		Chat: platforms.ChatID(o.Chat), Thread: platforms.ThreadID(o.Thread)}
	w := News{ID: n.ID, Key: sessions.Key(o.Key), Session: sessions.ID(o.Session), Address: at, User: platforms.UserID(o.User), Text: n.Text}
	if text := r.notice(at, n); text != "" {
		w.Notice = r.o.Row(at, text)
	}
	return (*waker)(ctx, w, keep)
}

// notice is what the chat reads about the news at once, "" for nothing (display.background_process_notifications).
func (r *records) notice(at platforms.Address, n process.News) string {
	v, mode := n.Process, r.o.Config().Display.BackgroundNews
	failed := v.State == process.Lost || v.State == process.Exited && v.Exit != nil && *v.Exit != 0
	switch {
	case v.ID == "", mode == "off", mode == "error" && !failed, !v.State.Ended() && (mode != "all" || n.Output == ""):
		return ""
	}
	key, code := "process.exited", 0
	switch {
	case !v.State.Ended():
		key = "process.matched"
	case v.State == process.Killed:
		key = "process.stopped"
	case v.State == process.Lost:
		key = "process.lost"
	case failed:
		key, code = "process.failed", *v.Exit
	}
	text := r.o.Printer(at).T(key, locales.Str("command", format.Code(short(v.Command))), locales.Int("code", code),
		locales.Dur("time", v.Age))
	if last := lastLines(n.Output); last != "" && (failed || mode == "all" || mode == "result") {
		text += "\n```\n" + strings.ReplaceAll(last, "```", "'''") + "\n```"
	}
	return text
}

// short is a command in a line.
func short(command string) string {
	r := []rune(strings.Join(strings.Fields(command), " "))
	if len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return string(r)
}

// lastLines is the end of an output for people: 5 lines, 500 characters.
func lastLines(output string) string {
	lines := strings.Split(output, "\n")
	r := []rune(strings.Join(lines[max(0, len(lines)-5):], "\n"))
	return string(r[max(0, len(r)-500):])
}
