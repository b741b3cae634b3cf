package command

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"herald/gateway/access"
	"herald/gateway/router"
	"herald/gateway/turn/ask"
	"herald/locales"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools/terminal"
)

// approvalCommands decide what dangerous commands may do.
func approvalCommands() []Spec {
	return []Spec{
		{Name: "approve", Args: "[session | always]", Busy: router.Dispatch, run: runApprove, Summary: "let the command run that waits for you"},
		{Name: "deny", Args: "[all] [reason]", Busy: router.Dispatch, run: runDeny, Summary: "refuse the command that waits for you"},
		{Name: "approvals", Args: "[smart | manual | off | revoke <name>]", Busy: router.Dispatch, run: runApprovals, Summary: "what waits, what is allowed, and how commands are checked"},
		{Name: "yolo", Args: "[on | off]", Busy: router.Dispatch, run: runYolo, Summary: "run dangerous commands of this session without a question"},
	}
}

func runApprove(ctx context.Context, q *Request) error {
	choice := ask.Choice(cmp.Or(strings.ToLower(strings.TrimSpace(q.Args)), string(ask.ChoiceOnce)))
	if !choice.Allows() {
		return q.reply(ctx, q.badValue(q.Args))
	}
	return q.decideOldest(ctx, choice, "", false)
}

func runDeny(ctx context.Context, q *Request) error {
	words := strings.Fields(q.Args)
	all := len(words) > 0 && strings.EqualFold(words[0], "all")
	if all {
		words = words[1:]
	}
	return q.decideOldest(ctx, ask.ChoiceDeny, clip(strings.Join(words, " "), 500), all)
}

// lateFor is how long a person who comes late is told what became of what they were asked.
const lateFor = 24 * time.Hour

// waitingHere returns what waits in this conversation, or in the chat that it is part of, the oldest first.
func (q *Request) waitingHere(v sessions.View) ([]ask.Approval, error) {
	all, err := ask.PendingApprovals(v)
	if err != nil {
		return nil, err
	}
	at := q.Item.Event.Address
	here := slices.DeleteFunc(all, func(a ask.Approval) bool {
		same := a.Address.AccountOf() == at.AccountOf() && a.Address.Chat == at.Chat && a.Address.Thread == at.Thread
		return a.Key != q.Control.Key() && !same
	})
	slices.SortStableFunc(here, func(a, b ask.Approval) int {
		return own(b.Key, q.Control.Key()) - own(a.Key, q.Control.Key())
	})
	return here, nil
}

// own is 1 for the conversation's own key, which goes before others of the chat.
func own(key, mine sessions.Key) int {
	if key == mine {
		return 1
	}
	return 0
}

// decideOldest decides the oldest approval that waits here and that the person may decide, or all of them.
func (q *Request) decideOldest(ctx context.Context, choice ask.Choice, reason string, all bool) error {
	var rows []*sessions.OutboxRow
	var decided []ask.Approval
	err := q.commit(ctx, func(tx sessions.Tx) (string, error) {
		here, err := q.waitingHere(tx)
		if err != nil {
			return "", err
		}
		mine := slices.DeleteFunc(slices.Clone(here), func(a ask.Approval) bool { return !q.MayDecide(q.Item.Event, a.Requester) })
		switch {
		case len(here) == 0:
			return q.nothingWaits(tx)
		case len(mine) == 0:
			return q.t("approval.not_yours"), nil
		case !all:
			mine = mine[:1]
		}
		for _, a := range mine {
			got, edits, err := q.Decide(tx, a.ID, choice, reason, q.Item.Event.Sender.Name)
			if text := q.undecided(a, err); text != "" {
				return text, nil
			}
			if err != nil {
				return "", err
			}
			decided, rows = append(decided, got), append(rows, edits...)
		}
		text := q.t("command.approve." + string(choice))
		if len(decided) > 1 {
			text = q.Printer.N("command.deny.all", len(decided))
		}
		if left := len(here) - len(decided); left > 0 {
			text += " " + q.Printer.N("command.approve.left", left)
		}
		return text, nil
	})
	if err != nil {
		return err
	}
	q.Take(rows...)
	for _, a := range decided {
		q.Wake(a)
	}
	return nil
}

// undecided is the answer to a person whose decision does not count; "" when err is none of these.
func (q *Request) undecided(a ask.Approval, err error) string {
	switch {
	case errors.Is(err, ask.ErrExpired):
		return q.t("approval.expired")
	case errors.Is(err, ask.ErrStale):
		return q.t("approval.stale")
	case errors.Is(err, ask.ErrNotOffered):
		var offered []string
		for _, c := range a.Choices {
			offered = append(offered, q.t("approval.choice."+string(c)))
		}
		return q.t("approval.not_offered", locales.Str("choices", strings.Join(offered, ", ")))
	}
	return ""
}

// nothingWaits says so, and what became of the last approval if the person may just be late.
func (q *Request) nothingWaits(v sessions.View) (string, error) {
	last, ok, err := ask.LastApproval(v, q.Control.Key())
	switch {
	case err != nil:
		return "", err
	case !ok || q.Now().Sub(last.Asked) > lateFor || last.Choice == ask.ChoiceVoid:
		return q.t("approval.none"), nil
	case last.Choice == ask.ChoiceTimeout:
		return q.t("approval.expired"), nil
	}
	return q.t("approval.stale"), nil
}

// pressApproval decides an approval by its button. Who presses needs what who types would need.
func (q *Request) pressApproval(ctx context.Context, id string, choice ask.Choice) (string, error) {
	command := "approve"
	if choice == ask.ChoiceDeny {
		command = "deny"
	}
	var rows []*sessions.OutboxRow
	var a ask.Approval
	text, done := "", false
	err := q.commit(ctx, func(tx sessions.Tx) (_ string, err error) {
		a, err = ask.GetApproval(tx, id)
		switch {
		case errors.Is(err, sessions.ErrNotFound):
			text = q.t("approval.stale")
			return "", nil
		case err != nil:
			return "", err
		case !q.May(q.Item.Event, command), !q.MayDecide(q.Item.Event, a.Requester):
			text = q.t("access.click_denied")
			return "", nil
		}
		got, edits, err := q.Decide(tx, id, choice, "", q.Item.Event.Sender.Name)
		if text = q.undecided(a, err); text != "" {
			return "", nil
		}
		a, rows, done = got, edits, err == nil
		return "", err
	})
	if err != nil || !done {
		return text, err
	}
	q.Take(rows...)
	q.Wake(a)
	return q.t("click.taken"), nil
}

// runYolo lets the session's commands run without a question, or no more. In a session that several people share, who
// may decide for everybody decides.
func runYolo(ctx context.Context, q *Request) error {
	arg := strings.ToLower(strings.TrimSpace(q.Args))
	if arg != "" && arg != "on" && arg != "off" {
		return q.reply(ctx, q.badValue(q.Args))
	}
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		s, _, err := q.opened(tx)
		if err != nil {
			return "", err
		}
		owner := userOf(q.Item)
		if s.Origin.Shared {
			owner = ""
		}
		if !q.MayDecide(q.Item.Event, owner) {
			return q.t("approval.not_yours"), nil
		}
		g, err := access.SessionGrant(tx, s.ID)
		if err != nil {
			return "", err
		}
		g.Yolo = arg == "on" || arg == "" && !g.Yolo
		text := q.t("command.yolo.off")
		if g.Yolo {
			text = "⚠️ " + q.t("command.yolo.on")
		}
		return text, access.SetSessionGrant(tx, s.ID, g, q.Now())
	})
}

func runApprovals(ctx context.Context, q *Request) error {
	words := strings.Fields(strings.ToLower(q.Args))
	switch {
	case q.Approvals == nil:
		return q.reply(ctx, q.t("approval.none"))
	case len(words) == 0:
		return q.commit(ctx, q.showApprovals)
	case len(words) == 1 && slices.Contains([]string{"smart", "manual", "off"}, words[0]):
		if err := q.Approvals.SetMode(words[0]); err != nil {
			return err
		}
		return q.reply(ctx, q.t("command.approvals.set", locales.Str("mode", q.t("command.approvals.mode."+words[0]))))
	case len(words) > 1 && words[0] == "revoke":
		return q.revoke(ctx, strings.TrimSpace(strings.TrimSpace(q.Args)[len("revoke"):]))
	}
	return q.reply(ctx, q.badValue(q.Args))
}

// showApprovals tells the mode, what waits here, and what is allowed.
func (q *Request) showApprovals(tx sessions.Tx) (string, error) {
	lines := []string{q.t("command.approvals.status", locales.Str("mode", q.t("command.approvals.mode."+q.Approvals.Mode())))}
	if q.Approvals.Yolo() {
		lines = append(lines, "⚠️ "+q.t("command.approvals.yolo_env"))
	}
	here, err := q.waitingHere(tx)
	if err != nil {
		return "", err
	}
	if len(here) > 0 {
		lines = append(lines, q.Printer.N("command.approvals.waiting", len(here)))
		for _, a := range here {
			lines = append(lines, "• "+format.Code(clip(a.Preview, 80)))
		}
	}
	var grant access.Grant
	s, _, err := q.session(tx)
	if err == nil {
		grant, err = access.SessionGrant(tx, s.ID)
	}
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return "", err
	}
	if grant.Yolo {
		lines = append(lines, "⚠️ "+q.t("command.yolo.on"))
	}
	lines = q.listed(lines, "command.approvals.session", grant.Kinds)
	lines = q.listed(lines, "command.approvals.always", q.Approvals.Allowlist())
	return strings.Join(lines, "\n"), nil
}

// listed adds entries below a title, if there are any.
func (q *Request) listed(lines []string, title string, entries []string) []string {
	if len(entries) == 0 {
		return lines
	}
	lines = append(lines, q.t(title))
	for _, e := range entries {
		line := "• " + format.Code(e)
		if _, ok := terminal.KindOf(e); ok {
			line += ": " + q.t(ask.WhyKey(e))
		}
		lines = append(lines, line)
	}
	return lines
}

// revoke takes back what was allowed for the session and for good.
func (q *Request) revoke(ctx context.Context, name string) error {
	entries := []string{name}
	if strings.EqualFold(name, "all") {
		entries = q.Approvals.Allowlist()
	}
	had := slices.ContainsFunc(entries, func(e string) bool { return slices.Contains(q.Approvals.Allowlist(), e) })
	if had {
		if err := q.Approvals.Revoke(entries...); err != nil {
			return err
		}
	}
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		s, _, err := q.session(tx)
		if err == nil {
			var g access.Grant
			if g, err = access.SessionGrant(tx, s.ID); err != nil {
				return "", err
			}
			before := len(g.Kinds)
			g.Kinds = slices.DeleteFunc(g.Kinds, func(k string) bool { return strings.EqualFold(name, "all") || k == name })
			if len(g.Kinds) != before {
				had = true
				err = access.SetSessionGrant(tx, s.ID, g, q.Now())
			}
		}
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return "", err
		}
		if !had {
			return q.t("command.approvals.nothing_revoked", locales.Str("name", format.Code(name))), nil
		}
		return q.t("command.approvals.revoked", locales.Str("name", format.Code(name))), nil
	})
}
