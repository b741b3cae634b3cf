package command

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"herald/gateway/agent"
	"herald/gateway/router"
	"herald/locales"
	"herald/platforms/format"
	"herald/sessions"
)

// maxTitle is the longest session title, in characters.
const maxTitle = 100

// sessionCommands are about earlier conversations.
func sessionCommands() []Spec {
	return []Spec{
		{Name: "title", Args: "[name]", Busy: router.Reject, run: runTitle, Summary: "show or set this session's title"},
		{Name: "sessions", Args: "[all] [search words]", Busy: router.Reject, run: runSessions, Summary: "list the sessions of this chat"},
		{Name: "resume", Args: "[name or number]", Busy: router.Reject, run: runResume, Summary: "go back to an earlier session of this chat"},
		{Name: "compress", Aliases: []string{"compact"}, Args: "[here [N] | topic]", Busy: router.Reject, run: runCompress, Summary: "summarise the conversation to save room"},
	}
}

func runTitle(ctx context.Context, q *Request) error {
	title := strings.Join(strings.Fields(q.Args), " ")
	if len([]rune(title)) > maxTitle {
		return q.reply(ctx, q.t("command.title.too_long", locales.Int("n", len([]rune(title))), locales.Int("max", maxTitle)))
	}
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		s, _, err := q.opened(tx)
		if err != nil {
			return "", err
		}
		if title == "" {
			if s.Title == "" {
				return q.t("command.title.none"), nil
			}
			return q.t("command.title.show", locales.Str("title", format.EscapeMarkdown(s.Title))), nil
		}
		err = tx.SetTitle(s.ID, title)
		if errors.Is(err, sessions.ErrConflict) {
			return q.t("command.title.taken", locales.Str("title", format.EscapeMarkdown(title))), nil
		}
		return q.t("command.title.set", locales.Str("title", format.EscapeMarkdown(title))), err
	})
}

// listed is how many sessions a list shows.
const listed = 10

// choose returns the sessions that a chat may see, newest first: those of its own key, or all of them for a
// named admin who asks for all: titles are other people's first words.
func (q *Request) choose(v sessions.View, all bool, words string) ([]sessions.Session, error) {
	query := sessions.SessionQuery{Key: q.Control.Key(), Limit: listed, TitleIn: words}
	if all {
		query.Key = ""
	}
	return v.Sessions(query)
}

func runSessions(ctx context.Context, q *Request) error {
	words := strings.Fields(q.Args)
	all := len(words) > 0 && strings.EqualFold(words[0], "all")
	if all {
		words = words[1:]
		if !q.Named(q.Item.Event) {
			return q.reply(ctx, q.t("command.sessions.admin_only"))
		}
	}
	if len(words) > 0 && strings.EqualFold(words[0], "search") {
		words = words[1:]
	}
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		list, err := q.choose(tx, all, strings.Join(words, " "))
		if err != nil {
			return "", err
		}
		filter := strings.Join(words, " ")
		if len(list) == 0 && filter != "" {
			return q.t("command.sessions.no_match", locales.Str("query", format.EscapeMarkdown(filter))), nil
		}
		if len(list) == 0 {
			return q.t("command.sessions.none"), nil
		}
		var b strings.Builder
		switch {
		case filter != "":
			b.WriteString(q.t("command.sessions.found", locales.Str("query", format.EscapeMarkdown(filter))))
		case all:
			b.WriteString(q.t("command.sessions.title_all"))
		default:
			b.WriteString(q.t("command.sessions.title"))
		}
		for i, s := range list {
			title := s.Title
			if title == "" {
				title = firstWords(tx, s.ID)
			}
			when := s.UpdatedAt.Local().Format("2006-01-02 15:04")
			if s.EndedAt.IsZero() && s.Key == q.Control.Key() {
				when = q.t("session.current")
			}
			b.WriteString("\n" + q.t("session.line", locales.Int("number", i+1), locales.Str("title", "**"+format.EscapeMarkdown(clip(title, 60))+"**"),
				locales.Str("messages", q.Printer.N("session.messages", s.Messages)), locales.Str("when", when)))
		}
		b.WriteString("\n\n" + q.t("command.sessions.hint"))
		return b.String(), nil
	})
}

// firstWords is what an untitled session is called in lists: the first words of a person, else of what was delivered there.
func firstWords(v sessions.View, id sessions.ID) string {
	title := string(id)
	rows, err := v.Transcript(id, true, 0, 5)
	if err != nil {
		return title
	}
	for _, row := range rows {
		words := strings.Join(strings.Fields(row.Content), " ")
		if row.Role != sessions.User || words == "" {
			continue
		}
		if row.Kind != sessions.KindMirror {
			return words
		}
		title = words
	}
	return title
}

func runResume(ctx context.Context, q *Request) error {
	arg := strings.TrimSpace(q.Args)
	if arg == "" {
		return runSessions(ctx, q)
	}
	var old sessions.ID
	err := q.commit(ctx, func(tx sessions.Tx) (string, error) {
		target, err := q.find(tx, arg)
		if errors.Is(err, sessions.ErrNotFound) {
			return q.t("command.resume.not_found", locales.Str("name", format.EscapeMarkdown(arg))), nil
		}
		if errors.Is(err, errAmbiguous) {
			return q.t("command.resume.ambiguous", locales.Str("name", format.EscapeMarkdown(arg))), nil
		}
		if err != nil {
			return "", err
		}
		if s, _, err := q.session(tx); err == nil {
			old = s.ID
			if s.ID == target.ID {
				return q.t("command.resume.current"), nil
			}
		}
		if _, err := tx.SwitchSession(q.Control.Key(), target.ID, old, now()); err != nil {
			return "", err
		}
		title := target.Title
		if title == "" {
			title = firstWords(tx, target.ID)
		}
		return q.t("command.resume.done", locales.Str("title", format.EscapeMarkdown(clip(title, 60))),
			locales.Str("messages", q.Printer.N("session.messages", target.Messages))), nil
	})
	q.Forget(old)
	return err
}

// find returns the session that a number of the list, a title or an id names, among those of this chat.
func (q *Request) find(v sessions.View, arg string) (sessions.Session, error) {
	list, err := q.choose(v, false, "")
	if err != nil {
		return sessions.Session{}, err
	}
	n, notNumber := strconv.Atoi(arg)
	if notNumber == nil && n >= 1 && n <= len(list) {
		return list[n-1], nil
	}
	if s, err := v.Session(sessions.ID(arg)); err == nil && s.Key == q.Control.Key() {
		return s, nil
	}
	named, err := v.Sessions(sessions.SessionQuery{Key: q.Control.Key(), TitleIn: arg})
	if err != nil {
		return sessions.Session{}, err
	}
	for _, s := range named {
		if strings.EqualFold(s.Title, arg) {
			return s, nil
		}
	}
	switch {
	case len(named) == 0 || notNumber == nil: // a number means a place in the list, not a part of a title
		return sessions.Session{}, sessions.ErrNotFound
	case len(named) == 1:
		return named[0], nil
	}
	return sessions.Session{}, errAmbiguous
}

var errAmbiguous = errors.New("several sessions match")

// runCompress summarises the conversation now. It asks the model, so it runs beside the actor.
func runCompress(ctx context.Context, q *Request) error {
	keep, focus := 2, strings.TrimSpace(q.Args)
	if words := strings.Fields(focus); len(words) > 0 && strings.EqualFold(words[0], "here") {
		focus = ""
		if len(words) > 1 {
			n, err := strconv.Atoi(words[1])
			if err != nil || n < 0 || n > maxUndo {
				return q.reply(ctx, q.badNumber(words[1], 0, maxUndo))
			}
			keep = n
		}
	}
	q.Control.Task(func(ctx context.Context) {
		err := q.compress(ctx, keep, focus)
		switch {
		case err == nil, errors.Is(err, errHandled):
		case errors.Is(context.Cause(ctx), router.ErrTaskEnded):
			_ = q.reply(context.WithoutCancel(ctx), "") // /stop has said so
		case ctx.Err() != nil: // the daemon stops: the next process takes the command up again
		default:
			q.Log.Error().Err(err).Msg("a conversation can't be compressed")
			_ = q.reply(ctx, q.t("command.compress.failed", locales.Str("reason", err.Error())))
		}
	})
	return nil
}

func (q *Request) compress(ctx context.Context, keep int, focus string) error {
	var s sessions.Session
	var o sessions.Options
	var rows []sessions.Message
	err := q.Store.View(ctx, func(v sessions.View) (err error) {
		if s, o, err = q.session(v); err != nil {
			return err
		}
		rows, err = v.Transcript(s.ID, false, 0, 0)
		return err
	})
	if errors.Is(err, sessions.ErrNotFound) {
		return q.reply(ctx, q.t("command.compress.nothing"))
	}
	if err != nil {
		return err
	}
	tail := 0
	for i, users := len(rows)-1, 0; i >= 0 && users < keep; i-- {
		tail++
		if rows[i].Role == sessions.User && rows[i].Kind != sessions.KindMirror {
			users++
		}
	}
	span, ok := agent.PlanSpan(rows, 0, tail)
	if !ok {
		return q.reply(ctx, q.t("command.compress.nothing"))
	}
	summary, err := q.Compress(ctx, o.Model, span.Old, focus)
	if err != nil {
		return err
	}
	err = q.commit(ctx, func(tx sessions.Tx) (string, error) {
		row := &sessions.Message{Session: s.ID, Role: sessions.User, Kind: sessions.KindSummary, Content: summary, Active: true, At: now()}
		before := agent.Estimate(rows)
		after := before - agent.Estimate(span.Old) + agent.Estimate([]sessions.Message{*row})
		return q.t("command.compress.done", locales.Int("before", before), locales.Int("after", after)), tx.Compact(s.ID, span.UpTo, span.Keep, row)
	})
	q.Forget(s.ID)
	return err
}

// clip cuts text to n characters.
func clip(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always has a JSON form
	return b
}

func unquote(raw json.RawMessage) []byte {
	var s string
	_ = json.Unmarshal(raw, &s)
	return []byte(s)
}
