package command

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"herald/gateway/router"
	"herald/gateway/turn"
	"herald/locales"
	"herald/platforms/format"
	"herald/sessions"
)

// talkCommands steer what is going on now.
func talkCommands() []Spec {
	return []Spec{
		{Name: "start", Busy: router.Dispatch, Always: true, run: runStart, Summary: "the platform's ping when a chat is opened"},
		{Name: "stop", Busy: router.Interrupts, run: runStop, Summary: "stop the running answer and background processes, and drop what waits"},
		{Name: "new", Aliases: []string{"reset", "clear"}, Args: "[title] [now]", Busy: router.Interrupts, run: runNew, Summary: "begin a new session"},
		{Name: "retry", Busy: router.Reject, run: runRetry, Summary: "take the last answer back and try again"},
		{Name: "undo", Args: "[N] [now]", Busy: router.Reject, run: runUndo, Summary: "take back the last turn, or the last N"},
		{Name: "queue", Aliases: []string{"q"}, Args: "<message> | list | edit N text | rm N | move A B | clear", Busy: router.Dispatch,
			run: runQueue, Summary: "put a message in line, or manage the line"},
		{Name: "steer", Args: "<note>", Busy: router.Dispatch, run: runSteer, Summary: "hand a note to the running work after its current step"},
		{Name: "busy", Args: "[interrupt | queue | steer]", Busy: router.Dispatch, run: runBusy, Summary: "what a message does while I work"},
		{Name: "resend", Args: "<number>", Busy: router.Dispatch, run: runResend, Summary: "show a message again whose delivery is in doubt"},
	}
}

// runStart swallows the ping that platforms send when a person opens the chat.
func runStart(ctx context.Context, q *Request) error { return q.reply(ctx, "") }

func runStop(ctx context.Context, q *Request) error {
	stopping := q.Control.Stop()
	waiting := q.Control.Waiting()
	task := q.Control.EndTask()
	background := len(q.background())
	var rows []*sessions.OutboxRow
	stopped := false
	err := q.commit(ctx, func(tx sessions.Tx) (_ string, err error) {
		rows, stopped, err = stopping.End(tx, sessions.TurnStopped, "stopped by /stop")
		if err != nil {
			return "", err
		}
		if err := dropWaiting(tx, waiting, "stopped by /stop"); err != nil {
			return "", err
		}
		var said []string
		switch {
		case len(waiting) > 0:
			said = append(said, q.Printer.N("command.stop.dropped", len(waiting)))
		case stopped, task:
			said = append(said, q.t("command.stop.done"))
		case background == 0:
			said = append(said, q.t("command.stop.nothing"))
		}
		if background > 0 {
			said = append(said, q.Printer.N("command.stop.processes", background))
		}
		return strings.Join(said, "\n"), nil
	})
	if err != nil {
		stopping.Failed(stopped)
		return err
	}
	q.Take(rows...)
	q.Control.Clear(waiting)
	if background > 0 {
		q.Processes.End(q.Control.Key())
	}
	if stopped {
		stopping.Done()
	}
	q.Control.Free()
	return nil
}

func dropWaiting(tx sessions.Tx, items []sessions.InboxItem, reason string) error {
	if len(items) == 0 {
		return nil
	}
	ids := make([]sessions.InboxID, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	return tx.SetInbox(sessions.InboxDropped, 0, reason, ids...)
}

func runNew(ctx context.Context, q *Request) error {
	words, sure := q.sure()
	title := strings.Join(words, " ")
	if len([]rune(title)) > maxTitle {
		return q.reply(ctx, q.t("command.title.too_long", locales.Int("n", len([]rune(title))), locales.Int("max", maxTitle)))
	}
	if !sure && q.mustConfirm(ctx) {
		return q.askConfirm(ctx, q.t("confirm.new"))
	}
	stopping := q.Control.Stop()
	waiting := q.Control.Queued()
	var rows []*sessions.OutboxRow
	var old sessions.ID
	stopped := false
	err := q.commit(ctx, func(tx sessions.Tx) (_ string, err error) {
		rows, stopped, err = stopping.End(tx, sessions.TurnStopped, "stopped by /new")
		if err != nil {
			return "", err
		}
		if err := dropWaiting(tx, waiting, "dropped by /new"); err != nil {
			return "", err
		}
		if s, _, err := q.session(tx); err == nil {
			old = s.ID
		}
		fresh, err := tx.NewSession(q.Control.Key(), q.Origin(q.Item.Event), "new", now())
		if err != nil {
			return "", err
		}
		if title == "" {
			return q.t("command.new.done"), nil
		}
		err = tx.SetTitle(fresh.ID, title)
		if errors.Is(err, sessions.ErrConflict) {
			return q.t("command.new.done") + "\n" + q.t("command.new.title_taken", locales.Str("title", format.EscapeMarkdown(title))), nil
		}
		return q.t("command.new.titled", locales.Str("title", format.EscapeMarkdown(title))), err
	})
	if err != nil {
		stopping.Failed(stopped)
		return err
	}
	q.Take(rows...)
	q.Control.Clear(waiting)
	if stopped {
		stopping.Done()
	}
	q.Forget(old)
	q.Control.Free()
	return nil
}

// now is replaced nowhere: sessions are named by the wall clock.
func now() time.Time { return time.Now() }

// maxUndo is how many turns one /undo can take back.
const maxUndo = 1000

func runUndo(ctx context.Context, q *Request) error {
	n := 1
	words, sure := q.sure()
	if arg := strings.Join(words, " "); arg != "" {
		v, err := strconv.Atoi(arg)
		if err != nil || v < 1 || v > maxUndo {
			return q.reply(ctx, q.badNumber(arg, 1, maxUndo))
		}
		n = v
	}
	if !sure && q.mustConfirm(ctx) {
		return q.askConfirm(ctx, q.Printer.N("confirm.undo", n))
	}
	var id sessions.ID
	err := q.commit(ctx, func(tx sessions.Tx) (string, error) {
		s, _, err := q.session(tx)
		if errors.Is(err, sessions.ErrNotFound) {
			return q.t("command.undo.nothing"), nil
		}
		if err != nil {
			return "", err
		}
		id = s.ID
		rows, err := tx.Undo(s.ID, n)
		if err != nil {
			return "", err
		}
		turns := 0
		first := ""
		for _, row := range rows {
			if row.Role == sessions.User && row.Kind == sessions.KindPlain {
				turns++
				if first == "" {
					first = row.Content
				}
			}
		}
		if turns == 0 {
			return q.t("command.undo.nothing"), nil
		}
		return q.Printer.N("command.undo.done", turns, locales.Str("text", format.Code(clip(first, 80)))), nil
	})
	q.Forget(id)
	return err
}

// runRetry takes the last answer back and runs the last user message again.
func runRetry(ctx context.Context, q *Request) error {
	var id sessions.ID
	var again *string
	err := q.Store.Update(ctx, sessions.EdgeCommand, func(tx sessions.Tx) error {
		if err := q.fresh(tx); err != nil {
			return err
		}
		s, _, err := q.session(tx)
		if errors.Is(err, sessions.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		id = s.ID
		// After a crash between this commit and the turn's claim, the mark tells what to run.
		if again = q.marked(tx, sessions.SpaceRetry); again != nil {
			return nil
		}
		rows, err := tx.Undo(s.ID, 1)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Role == sessions.User && row.Kind == sessions.KindPlain {
				again = &row.Content
				break
			}
		}
		if again == nil {
			return nil
		}
		return q.mark(tx, sessions.SpaceRetry, *again)
	})
	if err != nil {
		return err
	}
	q.Forget(id)
	if again == nil {
		return q.reply(ctx, q.t("command.retry.nothing"))
	}
	q.Control.Submit(ctx, q.Item, *again, true)
	return nil
}

func runQueue(ctx context.Context, q *Request) error {
	verb, rest, _ := strings.Cut(q.Args, " ")
	rest = strings.TrimSpace(rest)
	switch verb {
	case "", "list":
		if rest != "" {
			break // a message that begins with the word
		}
		return q.reply(ctx, q.queueList())
	case "clear":
		if rest != "" {
			break
		}
		items := q.Control.Waiting()
		err := q.commit(ctx, func(tx sessions.Tx) (string, error) {
			return q.Printer.N("command.queue.cleared", len(items)), dropWaiting(tx, items, "removed by /queue clear")
		})
		if err == nil {
			q.Control.Clear(items)
		}
		return err
	case "rm":
		return q.queueRemove(ctx, rest)
	case "move":
		return q.queueMove(ctx, rest)
	case "edit":
		return q.queueEdit(ctx, rest)
	}
	busy := q.Control.Busy()
	if !q.Control.Submit(ctx, q.Item, q.Args, true) || !busy {
		return nil
	}
	return q.note(ctx, q.t("command.queue.added", locales.Int("position", len(q.Control.Queued()))))
}

// note says something without ending the command's inbox row: its text still waits for its turn.
func (q *Request) note(ctx context.Context, text string) error {
	rows := q.Render(q.Item.Event.Address, text)
	err := q.Store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error { return tx.PutOutbox(rows...) })
	if err == nil {
		q.Take(rows...)
	}
	return err
}

func (q *Request) queueList() string {
	queued := q.Control.Queued()
	if len(queued) == 0 {
		return q.t("command.queue.empty")
	}
	var b strings.Builder
	b.WriteString(q.t("command.queue.title"))
	for i, item := range queued {
		text := ""
		if item.Event.Message != nil {
			text = item.Event.Message.Text
		} else if item.Event.Internal != nil {
			text = item.Event.Internal.Text
		}
		b.WriteString("\n" + q.t("command.queue.line", locales.Int("position", i+1), locales.Str("text", format.Code(clip(text, 80)))))
	}
	return b.String()
}

func (q *Request) noSuch(position string, count int) string {
	return q.t("command.queue.no_such", locales.Str("position", format.EscapeMarkdown(position)), locales.Int("count", count))
}

func (q *Request) queueRemove(ctx context.Context, arg string) error {
	n, err := strconv.Atoi(arg)
	queued := q.Control.Queued()
	if err != nil || n < 1 || n > len(queued) {
		return q.reply(ctx, q.noSuch(arg, len(queued)))
	}
	err = q.commit(ctx, func(tx sessions.Tx) (string, error) {
		err := tx.SetInbox(sessions.InboxDropped, 0, "removed by /queue rm", queued[n-1].ID)
		return q.t("command.queue.removed", locales.Int("position", n)), err
	})
	if err == nil {
		q.Control.Remove(n)
	}
	return err
}

func (q *Request) queueMove(ctx context.Context, arg string) error {
	words := strings.Fields(arg)
	if len(words) != 2 {
		return q.reply(ctx, q.badValue("move "+arg))
	}
	count := len(q.Control.Queued())
	var places [2]int
	for i, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > count {
			return q.reply(ctx, q.noSuch(word, count))
		}
		places[i] = n
	}
	q.Control.Move(places[0], places[1])
	return q.reply(ctx, q.t("command.queue.moved", locales.Int("from", places[0]), locales.Int("to", places[1]))+"\n\n"+q.queueList())
}

// queueEdit lets the command's own inbox row take the place of an older message, with the new text.
func (q *Request) queueEdit(ctx context.Context, arg string) error {
	number, text, _ := strings.Cut(arg, " ")
	text = strings.TrimSpace(text)
	if text == "" {
		return q.reply(ctx, q.usage())
	}
	n, err := strconv.Atoi(number)
	queued := q.Control.Queued()
	if err != nil {
		n = 0
	}
	again := false
	err = q.Store.Update(ctx, sessions.EdgeCommand, func(tx sessions.Tx) error {
		if err := q.fresh(tx); err != nil {
			return err
		}
		again = q.marked(tx, sessions.SpaceQueueEdit) != nil
		if again || n < 1 || n > len(queued) {
			return nil
		}
		if err := q.mark(tx, sessions.SpaceQueueEdit, text); err != nil {
			return err
		}
		return tx.SetInbox(sessions.InboxDropped, 0, "replaced by /queue edit", queued[n-1].ID)
	})
	switch {
	case err != nil:
		return err
	case again:
		// The last process has dropped the old message. Its place in the line is not known any more.
		q.Control.Submit(ctx, q.Item, text, true)
		return nil
	case n < 1 || n > len(queued):
		return q.reply(ctx, q.noSuch(number, len(queued)))
	}
	q.Control.Replace(n, q.Item, text)
	return q.note(ctx, q.t("command.queue.edited", locales.Int("position", n), locales.Str("text", format.Code(clip(text, 80)))))
}

// fresh returns errHandled when an earlier process has ended the command's row.
func (q *Request) fresh(tx sessions.Tx) error {
	item, err := tx.InboxItem(q.Item.ID)
	if err == nil && item.State != sessions.InboxNew {
		err = errHandled
	}
	return err
}

// mark keeps what the command's row means from now on: after a crash before a turn has claimed it, marked tells so.
// Marks of rows that have left the line are removed.
func (q *Request) mark(tx sessions.Tx, space sessions.Space, text string) error {
	values, err := tx.Values(space)
	if err != nil {
		return err
	}
	for _, v := range values {
		id, err := strconv.ParseInt(v.Name, 10, 64)
		if err == nil {
			var item sessions.InboxItem
			item, err = tx.InboxItem(sessions.InboxID(id))
			if err == nil && item.State == sessions.InboxNew {
				continue
			}
		}
		if err := tx.SetValue(space, v.Name, nil, now()); err != nil {
			return err
		}
	}
	return tx.SetValue(space, strconv.FormatInt(int64(q.Item.ID), 10), quote(text), now())
}

// marked returns the text that mark has kept, nil for none.
func (q *Request) marked(tx sessions.Tx, space sessions.Space) *string {
	v, err := tx.Value(space, strconv.FormatInt(int64(q.Item.ID), 10))
	if err != nil {
		return nil
	}
	text := string(unquote(v.Data))
	return &text
}

func runSteer(ctx context.Context, q *Request) error {
	if q.Args == "" {
		return q.reply(ctx, q.usage())
	}
	_, running := q.Control.Running()
	taken, ok := q.Control.Offer(ctx, q.Item, q.Args, turn.Steer)
	switch {
	case !ok:
		return nil // the line was full, and said so
	case taken == turn.TakenSteer:
		return q.note(ctx, q.t("command.steer.done"))
	case running:
		return q.note(ctx, q.t("command.steer.queued"))
	}
	return q.note(ctx, q.t("command.steer.idle"))
}

func runBusy(ctx context.Context, q *Request) error {
	modes := []string{string(turn.Interrupt), string(turn.Queue), string(turn.Steer)}
	arg := strings.ToLower(strings.TrimSpace(q.Args))
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		_, o, err := q.opened(tx)
		if err != nil {
			return "", err
		}
		if arg == "" || arg == "status" {
			mode := o.Busy
			if mode == "" {
				mode = q.BusyMode(q.Item.Event.Address)
			}
			return q.t("command.busy.status", locales.Str("mode", q.t("command.busy.mode."+mode))) + "\n" + q.usage(), nil
		}
		if !slices.Contains(modes, arg) {
			return q.t("command.busy.unknown", locales.Str("value", format.EscapeMarkdown(arg))), nil
		}
		o.Busy = arg
		return q.t("command.busy.set", locales.Str("mode", q.t("command.busy.mode."+arg))), tx.SetOptions(q.Control.Key(), o)
	})
}

// opened returns the chat's session and options, making the session when there is none.
func (q *Request) opened(tx sessions.Tx) (sessions.Session, sessions.Options, error) {
	s, o, err := q.session(tx)
	if errors.Is(err, sessions.ErrNotFound) {
		s, err = tx.OpenSession(q.Control.Key(), q.Origin(q.Item.Event), now())
	}
	return s, o, err
}

// runResend shows a message again whose delivery is in doubt.
func runResend(ctx context.Context, q *Request) error {
	id, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimSpace(q.Args), "#"), 10, 64)
	if err != nil && q.Args != "" {
		return q.reply(ctx, q.badValue(q.Args))
	}
	if err != nil {
		return q.reply(ctx, q.usage())
	}
	return q.resend(ctx, sessions.OutboxID(id))
}
