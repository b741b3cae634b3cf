package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"herald/gateway/router"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools"
	"herald/tools/process"
	"herald/tools/sandbox"
)

// newProcesses makes the background processes of the profile and returns their tool.
func (g *Gateway) newProcesses(environment func(tools.Caller) (sandbox.Environment, error)) []tools.Tool {
	cfg := g.cfg()
	g.processes = process.New(process.Options{Environment: environment, Store: processes{g}, Redact: g.opt.Redactor.String,
		Survive:  g.workspace.Settings().Survives,
		Surface:  func() bool { return g.cfg().Delegation.SurfaceProcesses },
		Finished: g.metrics.ProcessEnded, Log: g.log, Now: g.now})
	return []tools.Tool{g.processes.Tool(process.ToolOptions{MaxWait: cfg.Terminal.Timeout})}
}

// processes keeps their records as durable values and brings news of them to their conversations. For commands it is
// what people see of them.
type processes struct{ g *Gateway }

const spaceProcess = "process"

// Load implements process.Store. A record that can't be read is left out: it must not keep the daemon from starting.
func (p processes) Load(ctx context.Context) ([]process.Record, error) {
	var out []process.Record
	err := p.g.store.View(ctx, func(v sessions.View) error {
		values, err := v.Values(spaceProcess)
		if err != nil {
			return err
		}
		for _, value := range values {
			var r process.Record
			if err := json.Unmarshal(value.Data, &r); err != nil {
				p.g.log.Error().Err(err).Str("process", value.Name).Msg("the record of a background process can't be read; it is not followed")
				continue
			}
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// Save implements process.Store.
func (p processes) Save(ctx context.Context, r process.Record, news ...process.News) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	keep := func(tx sessions.Tx) error { return tx.SetValue(spaceProcess, r.ID, data, p.g.now()) }
	if len(news) == 0 {
		return p.g.store.Update(ctx, sessions.EdgeState, keep)
	}
	// What was given before is not given again, so all but the last may come first.
	for _, n := range news[:len(news)-1] {
		if err := p.Tell(ctx, n); err != nil {
			return err
		}
	}
	return p.wake(ctx, news[len(news)-1], keep)
}

// Tell implements process.Store.
func (p processes) Tell(ctx context.Context, n process.News) error { return p.wake(ctx, n, nil) }

// Delete implements process.Store.
func (p processes) Delete(ctx context.Context, id string) error {
	err := p.g.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error { return tx.SetValue(spaceProcess, id, nil, p.g.now()) })
	if errors.Is(err, sessions.ErrNotFound) {
		return nil
	}
	return err
}

// wake brings news to their conversation, with what is to be kept.
func (p processes) wake(ctx context.Context, n process.News, keep func(sessions.Tx) error) error {
	o := n.Owner
	if p.g.router == nil {
		return fmt.Errorf("the daemon is not ready")
	}
	if o.Key == "" { // started outside a conversation: there is nobody to tell
		if keep == nil {
			return nil
		}
		return p.g.store.Update(ctx, sessions.EdgeState, keep)
	}
	at := platforms.Address{Platform: platforms.Name(o.Platform), Account: platforms.AccountID(o.Account), Chat: platforms.ChatID(o.Chat), Thread: platforms.ThreadID(o.Thread)}
	w := router.Wake{ID: n.ID, Source: "process", Key: sessions.Key(o.Key), Session: sessions.ID(o.Session), Address: at, User: platforms.UserID(o.User), Text: n.Text}
	if text := p.notice(at, n); text != "" {
		w.Notice = p.g.noticeRow(at, text)
	}
	return p.g.router.Wake(ctx, w, keep)
}

// notice is what the chat is told of the news itself, "" for nothing (display.background_process_notifications).
func (p processes) notice(at platforms.Address, n process.News) string {
	v, mode := n.Process, p.g.cfg().Display.BackgroundNews
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
	text := p.g.texts.say(at, key, locales.Str("command", format.Code(short(v.Command))), locales.Int("code", code), locales.Dur("time", v.Age))
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

// Of implements command.Processes.
func (p processes) Of(key sessions.Key) []process.View { return p.g.processes.Of(string(key)) }

// End implements command.Processes.
func (p processes) End(key sessions.Key) int { return p.g.processes.End(string(key)) }
