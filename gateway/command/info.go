package command

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"time"

	"herald/gateway/access"
	"herald/gateway/router"
	"herald/gateway/turn"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools/process"
)

// infoCommands tell and change nothing.
func infoCommands() []Spec {
	return []Spec{
		{Name: "help", Args: "[command]", Busy: router.Dispatch, Always: true, run: runHelp, Summary: "what you can do here"},
		{Name: "commands", Args: "[page]", Busy: router.Dispatch, run: runCommands, Summary: "all commands, page by page"},
		{Name: "status", Busy: router.Dispatch, Always: true, run: runStatus, Summary: "what is going on"},
		{Name: "agents", Aliases: []string{"tasks"}, Busy: router.Dispatch, run: runAgents, Summary: "the running answer and background processes of this chat"},
		{Name: "whoami", Busy: router.Dispatch, Always: true, run: runWhoami, Summary: "who you are here and what you may do"},
		{Name: "usage", Busy: router.Dispatch, run: runUsage, Summary: "tokens of this session"},
		{Name: "context", Aliases: []string{"ctx"}, Busy: router.Dispatch, Always: true, run: runContext, Summary: "how full the model's context is"},
		{Name: "version", Busy: router.Dispatch, run: runVersion, Summary: "which Herald this is"},
	}
}

// visible returns the commands that the sender may use.
func (q *Request) visible() []*Spec {
	var out []*Spec
	for _, s := range q.reg.specs {
		if s.Name != "start" && (s.Always || q.May(q.Item.Event, s.Name)) {
			out = append(out, s)
		}
	}
	return out
}

// line shows one command.
func (q *Request) line(s *Spec) string {
	usage := q.Printer.Command(s.Name)
	if s.Args != "" {
		usage += " " + s.Args
	}
	return "- " + format.Code(usage) + " " + s.Summary
}

func runHelp(ctx context.Context, q *Request) error {
	if name := strings.TrimLeft(strings.TrimSpace(q.Args), "/!"); name != "" {
		return q.reply(ctx, q.explain(name))
	}
	var b strings.Builder
	b.WriteString(q.t("command.help.title") + "\n")
	for _, s := range q.visible() {
		b.WriteString("\n" + q.line(s))
	}
	b.WriteString("\n\n" + q.t("command.help.chat"))
	return q.reply(ctx, b.String())
}

func (q *Request) explain(name string) string {
	s := q.reg.lookup(name)
	if s == nil {
		return q.t("command.unknown", locales.Str("name", format.EscapeMarkdown(name)))
	}
	text := q.line(s)
	if len(s.Aliases) > 0 {
		names := make([]string, len(s.Aliases))
		for i, alias := range s.Aliases {
			names[i] = q.Printer.Command(alias)
		}
		text += "\n\n" + q.t("command.help.aliases", locales.Str("names", strings.Join(names, ", ")))
	}
	return text
}

const perPage = 12

func runCommands(ctx context.Context, q *Request) error {
	specs := q.visible()
	pages := (len(specs) + perPage - 1) / perPage
	page := 1
	if q.Args != "" {
		n, err := strconv.Atoi(q.Args)
		if err != nil || n < 1 || n > pages {
			return q.reply(ctx, q.badNumber(q.Args, 1, pages))
		}
		page = n
	}
	var b strings.Builder
	b.WriteString(q.t("command.commands.title", locales.Int("page", page), locales.Int("pages", pages)) + "\n")
	for _, s := range specs[(page-1)*perPage : min(page*perPage, len(specs))] {
		b.WriteString("\n" + q.line(s))
	}
	if page < pages {
		b.WriteString("\n\n" + q.t("command.commands.next", locales.Int("page", page+1)))
	}
	return q.reply(ctx, b.String())
}

func runStatus(ctx context.Context, q *Request) error {
	background := len(q.background())
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		p := q.Printer
		var lines []string
		add := func(key string, args ...locales.Arg) { lines = append(lines, p.T(key, args...)) }
		s, o, err := q.session(tx)
		known := err == nil
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return "", err
		}
		lines = append(lines, q.doing()...)
		if n := len(q.Control.Queued()); n > 0 {
			lines = append(lines, p.N("command.status.queue", n))
		}
		if background > 0 {
			lines = append(lines, p.N("command.status.processes", background))
		}
		add("command.status.model", locales.Str("model", format.Code(q.Models.Current(o.Model).String())))
		if known {
			add("command.status.session", locales.Str("id", format.Code(string(s.ID))))
			if s.Title != "" {
				add("command.status.name", locales.Str("title", format.EscapeMarkdown(s.Title)))
			}
			lines = append(lines, p.N("command.status.messages", s.Messages))
			add("command.status.tokens", locales.Int("input", s.Usage.Input), locales.Int("output", s.Usage.Output))
			if window := s.Usage.LastContext; window > 0 {
				add("command.status.context", locales.Int("used", s.Usage.LastPrompt), locales.Int("window", window),
					locales.Int("percent", 100*s.Usage.LastPrompt/window))
			}
		}
		mode := o.Busy
		if mode == "" {
			mode = q.BusyMode(q.Item.Event.Address)
		}
		add("command.status.busy_mode", locales.Str("mode", mode))
		lines = append(lines, q.Status.Lines(p)...)
		return "**" + p.T("command.status.title") + "**\n\n- " + strings.Join(lines, "\n- "), nil
	})
}

// background returns the conversation's running processes.
func (q *Request) background() []process.View {
	if q.Processes == nil {
		return nil
	}
	return q.Processes.Of(q.Control.Key())
}

func runAgents(ctx context.Context, q *Request) error {
	lines := q.doing()
	running := q.background()
	for _, v := range running {
		lines = append(lines, q.t("command.agents.process", locales.Str("id", format.Code(v.ID)), locales.Dur("time", v.Age),
			locales.Str("command", format.Code(clip(v.Command, 100)))))
	}
	if len(running) == 0 {
		lines = append(lines, q.t("command.agents.none"))
	}
	return q.reply(ctx, "**"+q.t("command.agents.title")+"**\n\n- "+strings.Join(lines, "\n- "))
}

// doing says what the conversation's turn is at.
func (q *Request) doing() []string {
	snap, ok := q.Control.Running()
	if !ok {
		return []string{q.t("command.status.idle")}
	}
	since, alive := time.Since(snap.Began), time.Since(snap.Alive)
	lines := []string{q.t("command.status.working", locales.Dur("time", since), locales.Int("step", snap.Used.Calls+1))}
	switch snap.Phase {
	case turn.PhaseGenerating:
		lines = append(lines, q.t("command.status.waiting_model", locales.Dur("time", alive)))
	case turn.PhaseTool:
		lines = append(lines, q.t("command.status.tool", locales.Str("tool", format.Code(snap.Doing)), locales.Dur("time", alive)))
	case turn.PhaseAsking:
		lines = append(lines, q.t("command.status.waiting_answer"))
	}
	return lines
}

func runWhoami(ctx context.Context, q *Request) error {
	e := q.Item.Event
	var lines []string
	if e.Sender.ID == "" {
		lines = append(lines, q.t("command.whoami.nobody"))
	} else {
		lines = append(lines, q.t("command.whoami.line", locales.Str("name", format.EscapeMarkdown(e.Sender.Name)),
			locales.Str("id", format.Code(string(e.Sender.ID))), locales.Str("platform", string(e.Address.Platform))))
	}
	scope := "command.whoami.scope_group"
	if e.ChatType == platforms.DM {
		scope = "command.whoami.scope_dm"
	}
	lines = append(lines, q.t("command.whoami.scope", locales.Str("scope", q.t(scope))))
	if q.Tier(e) == access.TierAdmin {
		lines = append(lines, q.t("command.whoami.admin"))
	} else {
		var names []string
		for _, s := range q.visible() {
			names = append(names, format.Code(q.Printer.Command(s.Name)))
		}
		lines = append(lines, q.t("command.whoami.user", locales.Str("commands", strings.Join(names, " "))))
	}
	return q.reply(ctx, strings.Join(lines, "\n\n"))
}

func runUsage(ctx context.Context, q *Request) error {
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		s, _, err := q.session(tx)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return "", err
		}
		u := s.Usage
		if err != nil || u.Calls == 0 {
			return q.t("command.usage.none"), nil
		}
		lines := []string{
			q.Printer.N("command.usage.calls", int(u.Calls)),
			q.t("command.usage.input", locales.Int("tokens", u.Input)),
			q.t("command.usage.output", locales.Int("tokens", u.Output)),
		}
		if u.Reasoning > 0 {
			lines = append(lines, q.t("command.usage.reasoning", locales.Int("tokens", u.Reasoning)))
		}
		if u.CacheRead+u.CacheWrite > 0 {
			lines = append(lines, q.t("command.usage.cache", locales.Int("read", u.CacheRead), locales.Int("written", u.CacheWrite)))
		}
		return "**" + q.t("command.usage.title") + "**\n\n- " + strings.Join(lines, "\n- "), nil
	})
}

func runContext(ctx context.Context, q *Request) error {
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		s, o, err := q.session(tx)
		if errors.Is(err, sessions.ErrNotFound) {
			return q.t("command.usage.none"), nil
		}
		if err != nil {
			return "", err
		}
		rows, err := tx.Transcript(s.ID, false, 0, 0)
		if err != nil {
			return "", err
		}
		var talk, results, summary, prompt = 0, 0, 0, len(s.SystemPrompt) / 4
		for _, row := range rows {
			n := len(row.Content) / 4
			switch {
			case row.Kind == sessions.KindSummary:
				summary += n
			case row.Role == sessions.Tool:
				results += n
			default:
				talk += n
			}
		}
		used := int(s.Usage.LastPrompt)
		if used == 0 {
			used = prompt + talk + results + summary
		}
		var lines []string
		add := func(key string, n int) {
			if n > 0 {
				lines = append(lines, q.t(key, locales.Int("tokens", n)))
			}
		}
		window := q.Models.Current(o.Model).Context
		if window > 0 {
			lines = append(lines, q.t("command.context.used", locales.Int("used", used), locales.Int("window", window), locales.Int("percent", 100*used/window)))
		} else {
			lines = append(lines, q.t("command.context.no_window", locales.Int("used", used)))
		}
		add("command.context.system", prompt)
		add("command.context.messages", talk)
		add("command.context.results", results)
		add("command.context.summary", summary)
		add("command.context.free", window-used)
		return "**" + q.t("command.context.title") + "**\n\n- " + strings.Join(lines, "\n- "), nil
	})
}

func runVersion(ctx context.Context, q *Request) error {
	return q.reply(ctx, q.t("command.version.line", locales.Str("version", q.Status.Version()), locales.Str("go", runtime.Version()),
		locales.Str("platform", runtime.GOOS+"/"+runtime.GOARCH)))
}
