package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"herald/gateway/router"
	"herald/gateway/workspace"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools/checkpoint"
)

// The bounds of what /rollback and /diff show.
const (
	listedCheckpoints = 10
	listedFiles       = 5  // of one kind; the rest is counted
	offeredButtons    = 5  // checkpoints that have a button
	diffLines         = 80 // of a diff
)

// fileCommands are about the files that the agent changed.
func fileCommands() []Spec {
	return []Spec{
		{Name: "rollback", Args: "[N [now] [--all] [file] | diff N | undo]", Busy: router.Reject, run: runRollback, Summary: "list checkpoints of the files, or go back to one"},
		{Name: "diff", Args: "[N | session] [--stat]", Busy: router.Reject, run: runDiff, Summary: "show what the agent changed in the files"},
	}
}

// rollbackArgs is a parsed /rollback.
type rollbackArgs struct {
	ref, file, diff string
	all, now, undo  bool
}

// parseRollbackArgs reads "[N [now] [--all] [file] | diff N | undo]". A file name may hold spaces.
func parseRollbackArgs(text string) (a rollbackArgs, ok bool) {
	words := strings.Fields(text)
	switch {
	case len(words) == 0:
		return a, true
	case strings.EqualFold(words[0], "undo"):
		a.undo = true
		return a, len(words) == 1
	case strings.EqualFold(words[0], "diff"):
		if len(words) == 2 {
			a.diff = words[1]
		}
		return a, len(words) == 2
	}
	a.ref = words[0]
	var file []string
	for _, w := range words[1:] {
		switch strings.ToLower(w) {
		case "--all", "--force":
			a.all = true
		case "now", "--yes", "-y":
			a.now = true
		default:
			file = append(file, w)
		}
	}
	a.file = strings.Join(file, " ")
	return a, !a.all || a.file == ""
}

func runRollback(ctx context.Context, q *Request) error {
	a, ok := parseRollbackArgs(q.Args)
	dir, err := q.project(ctx)
	switch {
	case err != nil:
		return q.noCheckpoint(ctx, dir, err)
	case !ok:
		return q.reply(ctx, q.usage())
	case a.diff != "":
		return q.diff(ctx, dir, a.diff, false)
	case a.undo:
		return q.undoRollback(ctx, dir)
	case a.ref == "":
		return q.listCheckpoints(ctx, dir)
	case a.now || a.file != "":
		return q.rollback(ctx, dir, checkpoint.Target{Ref: a.ref, All: a.all, File: a.file})
	}
	return q.preview(ctx, dir, checkpoint.Target{Ref: a.ref, All: a.all})
}

// project returns the directory whose checkpoints the chat's session has.
func (q *Request) project(ctx context.Context) (string, error) {
	if q.Checkpoints == nil || !q.Checkpoints.On() {
		return "", checkpoint.ErrOff
	}
	var of sessions.Session
	err := q.Store.View(ctx, func(v sessions.View) error {
		s, _, err := q.session(v)
		if errors.Is(err, sessions.ErrNotFound) {
			return nil
		}
		of = s
		return err
	})
	if err != nil {
		return "", err
	}
	dir, shown, err := q.Project(of)
	if err != nil {
		return "", err
	}
	q.shown = shown
	real, err := q.Checkpoints.Dir(dir)
	if err != nil {
		return dir, err // it names the directory
	}
	return real, nil
}

// called is what people call a directory.
func (q *Request) called(dir string) string {
	if q.shown == nil {
		return dir
	}
	return q.shown(dir)
}

// noCheckpoint says why there is nothing to go back to.
func (q *Request) noCheckpoint(ctx context.Context, dir string, err error) error {
	var out *checkpoint.RangeError
	switch {
	case errors.Is(err, checkpoint.ErrOff):
		return q.reply(ctx, q.t("command.rollback.off"))
	case errors.Is(err, workspace.ErrElsewhere):
		return q.reply(ctx, q.t("command.rollback.elsewhere"))
	case errors.Is(err, checkpoint.ErrBusy):
		return q.reply(ctx, q.t("command.rollback.busy"))
	case errors.Is(err, checkpoint.ErrNone), errors.Is(err, fs.ErrNotExist):
		return q.reply(ctx, q.t("command.rollback.none", locales.Str("dir", format.Code(q.called(dir)))))
	case errors.As(err, &out):
		return q.reply(ctx, q.badNumber(out.Ref, 1, out.N))
	}
	reason := err.Error()
	if dir != "" {
		reason = strings.ReplaceAll(reason, dir, q.called(dir))
	}
	return q.reply(ctx, q.t("command.rollback.failed", locales.Str("reason", format.EscapeMarkdown(reason))))
}

func (q *Request) listCheckpoints(ctx context.Context, dir string) error {
	list, err := q.Checkpoints.List(ctx, dir)
	if err == nil && len(list) == 0 {
		err = checkpoint.ErrNone
	}
	if err != nil {
		return q.noCheckpoint(ctx, dir, err)
	}
	var b strings.Builder
	if res, ok := q.Recovered(dir); ok {
		lines := q.outcome(res)
		b.WriteString(q.t("command.rollback.recovered", locales.Str("short", format.Code(res.RestoredTo))) + "\n" + strings.Join(lines, "\n") + "\n\n")
	}
	b.WriteString(q.t("command.rollback.title", locales.Str("dir", format.Code(q.called(dir)))))
	var row []platforms.Button
	for i, c := range list[:min(len(list), listedCheckpoints)] {
		b.WriteString("\n" + q.t("command.rollback.line", locales.Int("number", i+1), locales.Dur("time", q.age(c)),
			locales.Str("reason", format.EscapeMarkdown(c.Reason)), locales.Str("changes", q.changes(c))))
		if i < offeredButtons {
			row = append(row, platforms.Button{Label: strconv.Itoa(i + 1), Data: rollbackData(pressPreview, c)})
		}
	}
	q.buttons = [][]platforms.Button{row}
	b.WriteString("\n\n" + q.t("command.rollback.usage"))
	return q.reply(ctx, b.String())
}

// age is how old a checkpoint is, in whole minutes beyond the first.
func (q *Request) age(c checkpoint.Checkpoint) time.Duration {
	age := q.Now().Sub(c.At)
	if age >= time.Minute {
		age = age.Truncate(time.Minute)
	}
	return max(age, time.Second)
}

func (q *Request) changes(c checkpoint.Checkpoint) string {
	return q.Printer.N("command.rollback.changes", c.Files, locales.Int("plus", c.Insertions), locales.Int("minus", c.Deletions))
}

// preview says what a rollback would do, and offers it.
func (q *Request) preview(ctx context.Context, dir string, to checkpoint.Target) error {
	plan, err := q.Checkpoints.Preview(ctx, dir, to)
	if err != nil {
		return q.noCheckpoint(ctx, dir, err)
	}
	lines := []string{q.t("command.rollback.preview", locales.Str("short", format.Code(plan.To.Short)), locales.Str("reason", format.EscapeMarkdown(plan.To.Reason)),
		locales.Dur("time", q.age(plan.To)))}
	lines = q.files(lines, "command.rollback.will_restore", plan.Restore)
	lines = q.files(lines, "command.rollback.will_remove", plan.Delete)
	lines = q.files(lines, "command.rollback.kept_user_edits", plan.Edited)
	lines = q.files(lines, "command.rollback.kept_oversize", plan.Oversize)
	if plan.Empty() {
		lines = append(lines, q.t("command.rollback.nothing"))
	} else {
		op, how := pressRestore, to.Ref+" now"
		if to.All {
			op, how = pressAll, to.Ref+" now --all"
		}
		row := []platforms.Button{{Label: q.t("command.rollback.go"), Data: rollbackData(op, plan.To), Style: "primary"}}
		if plan.Safe && len(plan.Edited) > 0 {
			row = append(row, platforms.Button{Label: q.t("command.rollback.go_all"), Data: rollbackData(pressPreviewAll, plan.To), Style: "danger"})
		}
		q.buttons = [][]platforms.Button{row}
		lines = append(lines, q.t("command.rollback.how", locales.Str("command", format.Code(q.Printer.Command("rollback")+" "+how))))
	}
	return q.reply(ctx, strings.Join(lines, "\n"))
}

// files adds a line about files of one kind, if there are any.
func (q *Request) files(lines []string, key string, paths []string) []string {
	if len(paths) == 0 {
		return lines
	}
	var shown []string
	for _, path := range paths[:min(len(paths), listedFiles)] {
		shown = append(shown, format.Code(strings.ToValidUTF8(path, "\uFFFD")))
	}
	text := strings.Join(shown, ", ")
	if more := len(paths) - len(shown); more > 0 {
		text += fmt.Sprintf(" (+%d)", more)
	}
	return append(lines, "• "+q.Printer.N(key, len(paths), locales.Str("files", text)))
}

// wish names this command's row: run again after a crash it must not go back a second time.
func (q *Request) wish() string {
	if q.Item.ID == 0 {
		return ""
	}
	return fmt.Sprintf("inbox/%d", q.Item.ID)
}

// rollback goes back, takes the last turn of the conversation with it, and says what came of it.
func (q *Request) rollback(ctx context.Context, dir string, to checkpoint.Target) error {
	to.Key = q.wish()
	res, err := q.Checkpoints.Rollback(ctx, dir, to)
	if err != nil {
		return q.noCheckpoint(ctx, dir, err)
	}
	lines := []string{q.t("command.rollback.restored", locales.Str("short", format.Code(res.RestoredTo)), locales.Str("reason", format.EscapeMarkdown(res.Reason)))}
	return q.told(ctx, append(lines, q.outcome(res)...), res.Backup != "")
}

func (q *Request) undoRollback(ctx context.Context, dir string) error {
	res, err := q.Checkpoints.Undo(ctx, dir, q.wish())
	if errors.Is(err, checkpoint.ErrNone) {
		return q.reply(ctx, q.t("command.rollback.nothing_to_undo"))
	}
	if err != nil {
		return q.noCheckpoint(ctx, dir, err)
	}
	return q.told(ctx, append([]string{q.t("command.rollback.undone")}, q.outcome(res)...), false)
}

// outcome names what a rollback did and what it kept.
func (q *Request) outcome(res checkpoint.Result) []string {
	var lines []string
	lines = q.files(lines, "command.rollback.files", res.Restored)
	lines = q.files(lines, "command.rollback.kept_user_edits", res.Edited)
	lines = q.files(lines, "command.rollback.kept_oversize", res.Oversize)
	lines = q.files(lines, "command.rollback.failed_deletes", res.FailedDeletes)
	lines = q.files(lines, "command.rollback.failed_restores", res.FailedRestores)
	if len(res.Restored)+len(res.FailedDeletes)+len(res.FailedRestores) == 0 {
		lines = append(lines, q.t("command.rollback.nothing"))
	}
	return lines
}

// told ends a rollback: with changed files the last turn is undone too, and the way back is shown.
func (q *Request) told(ctx context.Context, lines []string, changed bool) error {
	var id sessions.ID
	err := q.commit(ctx, func(tx sessions.Tx) (string, error) {
		text := strings.Join(lines, "\n")
		if !changed {
			return text, nil
		}
		s, _, err := q.session(tx)
		if err == nil {
			id = s.ID
			var rows []sessions.Message
			if rows, err = tx.Undo(s.ID, 1); err == nil && len(rows) > 0 {
				text += "\n" + q.t("command.rollback.turn_undone")
			}
		}
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return "", err
		}
		return text + "\n" + q.t("command.rollback.backup", locales.Str("command", format.Code(q.Printer.Command("rollback")+" undo"))), nil
	})
	if id != "" {
		q.Forget(id)
	}
	return err
}

func runDiff(ctx context.Context, q *Request) error {
	dir, err := q.project(ctx)
	if err != nil {
		return q.noCheckpoint(ctx, dir, err)
	}
	ref, stat := "1", false
	for _, w := range strings.Fields(q.Args) {
		if w == "--stat" {
			stat = true
		} else {
			ref = w
		}
	}
	return q.diff(ctx, dir, ref, stat)
}

// diff shows what has changed since a checkpoint, or since the oldest one that is kept ("session").
func (q *Request) diff(ctx context.Context, dir, ref string, stat bool) error {
	var d checkpoint.Diff
	var err error
	if strings.EqualFold(ref, "session") || strings.EqualFold(ref, "all") {
		d, err = q.Checkpoints.SessionDiff(ctx, dir)
	} else {
		d, err = q.Checkpoints.Diff(ctx, dir, ref)
	}
	switch {
	case err != nil:
		return q.noCheckpoint(ctx, dir, err)
	case d.Empty:
		return q.noCheckpoint(ctx, dir, checkpoint.ErrNone)
	case strings.TrimSpace(d.Stat) == "":
		return q.reply(ctx, q.t("command.diff.none"))
	}
	text := format.Fence("", strings.TrimRight(d.Stat, "\n"))
	if !stat {
		lines := strings.Split(strings.TrimRight(d.Diff, "\n"), "\n")
		text += "\n" + format.Fence("diff", strings.Join(lines[:min(len(lines), diffLines)], "\n"))
		if more := len(lines) - diffLines; more > 0 {
			text += "\n" + q.Printer.N("command.diff.more", more)
		}
	}
	return q.reply(ctx, text)
}

// The buttons of /rollback: what a press does.
const (
	rollbackPrefix  = "rb:"
	pressPreview    = "p"
	pressPreviewAll = "f"
	pressRestore    = "r"
	pressAll        = "a"
)

// press is a button of /rollback.
type press struct{ op, hash string }

func rollbackData(op string, c checkpoint.Checkpoint) string {
	return rollbackPrefix + op + ":" + c.Short
}

func parseRollback(data string) (press, bool) {
	rest, ok := strings.CutPrefix(data, rollbackPrefix)
	op, hash, ok2 := strings.Cut(rest, ":")
	return press{op, hash}, ok && ok2
}

// pressRollback does what a button of /rollback says, for whoever may use the command, in the chat's own directory.
func (q *Request) pressRollback(ctx context.Context, p press) (string, error) {
	q.spec = q.reg.byName["rollback"]
	if !q.May(q.Item.Event, "rollback") {
		return q.t("access.click_denied"), q.end(ctx, "a button of a command that the person may not use")
	}
	dir, err := q.project(ctx)
	if err != nil {
		return q.t("click.taken"), q.noCheckpoint(ctx, dir, err)
	}
	to := checkpoint.Target{Ref: p.hash, All: p.op == pressAll || p.op == pressPreviewAll}
	switch p.op {
	case pressPreview, pressPreviewAll:
		err = q.preview(ctx, dir, to)
	case pressRestore, pressAll:
		err = q.rollback(ctx, dir, to)
	default:
		return q.t("clarify.expired"), q.end(ctx, "an unknown button")
	}
	return q.t("click.taken"), err
}
