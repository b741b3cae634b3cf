package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"herald/gateway/access"
	"herald/gateway/config"
	"herald/gateway/turn"
	"herald/sessions"
	"herald/tools"
	"herald/tools/terminal"
)

// previewLength is how much of a command a prompt shows, in characters (spec gateway 3.4).
const previewLength = 200

// approvals decides whether commands may run. It implements tools.Approver: the floor first, then the operator's deny
// patterns, then what is dangerous, then the mode and what people have allowed (spec gateway 3.4).
type approvals struct {
	g *Gateway
	// yolo was asked for by the environment when the daemon started: nothing but the first two layers holds.
	yolo bool
	edit sync.Mutex // of config.yaml

	mu sync.Mutex
	// typed is what was written to the processes of a conversation since the last end of a line, so that a command
	// can't be written piece by piece.
	typed map[string]string
}

func newApprovals(g *Gateway) *approvals {
	a := &approvals{g: g, typed: map[string]string{}}
	switch strings.ToLower(os.Getenv("HERALD_YOLO_MODE")) {
	case "1", "true", "yes", "on":
		a.yolo = true
		g.log.Warn().Msg("HERALD_YOLO_MODE is set: dangerous commands run without a question")
	}
	return a
}

// wish is one call that wants an approval.
type wish struct {
	call    tools.Call
	command string // what it would do, whole
	dangers []terminal.Danger
	judged  bool // the helper model may judge it
}

func mayRun() tools.Decision { return tools.Decision{Allowed: true} }

func mayNotRun(format string, args ...any) tools.Decision {
	return tools.Decision{Reason: fmt.Sprintf(format, args...)}
}

// Approve implements tools.Approver.
func (a *approvals) Approve(ctx context.Context, call tools.Call, spec tools.Spec) (tools.Decision, error) {
	a.mu.Lock()
	typed := a.typed[call.Caller.Key]
	a.mu.Unlock()
	check, ok := a.g.catalog.terminal.Check(call, typed)
	if !ok {
		return mayRun(), nil
	}
	if len(check.Dangers) > 0 && !check.Contained {
		a.g.workspace.Decide(ctx, spec) // whether it runs in a container may be open yet
		check, _ = a.g.catalog.terminal.Check(call, typed)
	}
	d, err := a.layers(ctx, call, check)
	if err == nil && d.Allowed && check.Typed {
		a.write(call.Caller.Key, check.Line)
	}
	return d, err
}

// maxTyped bounds the unfinished line that is kept of a conversation, in bytes; of a longer one the end is.
const maxTyped = 64 << 10

// write keeps the unfinished line of what is written.
func (a *approvals) write(key, text string) {
	text = text[strings.LastIndexByte(text, '\n')+1:]
	a.mu.Lock()
	defer a.mu.Unlock()
	if text == "" {
		delete(a.typed, key)
		return
	}
	a.typed[key] = text[max(0, len(text)-maxTyped):]
}

// layers asks the rules in their order.
func (a *approvals) layers(ctx context.Context, call tools.Call, check terminal.Check) (tools.Decision, error) {
	if check.Refusal != "" {
		a.g.metrics.Approval("refused")
		return mayNotRun("the command was not run: %s. This is never allowed, and no approval changes it; don't try it in another form", check.Refusal), nil
	}
	if pattern := access.Denied(a.g.cfg().Approvals.Deny, check.Candidates); pattern != "" {
		a.g.metrics.Approval("rule")
		return mayNotRun("the operator's rule %q in approvals.deny forbids it, and no approval changes that", pattern), nil
	}
	if check.Contained || slices.Contains(a.g.cfg().CommandAllowlist, check.Line) {
		return mayRun(), nil
	}
	return a.decide(ctx, wish{call: call, command: check.Line, dangers: check.Dangers, judged: true})
}

// ApproveWrite asks whether a file tool may write a file that the machine or Herald depends on.
func (a *approvals) ApproveWrite(ctx context.Context, call tools.Call, path, why string) (bool, error) {
	kind := "herald-files"
	if strings.Contains(path, "/.ssh/") {
		kind = "ssh-files"
	}
	k, _ := terminal.KindOf(kind)
	d, err := a.decide(ctx, wish{call: call, command: call.Name + " " + path, dangers: []terminal.Danger{k.Danger}})
	if err == nil && !d.Allowed {
		a.g.log.Info().Str("why", why).Msg("a file was not written: it was not approved")
	}
	return d.Allowed, err
}

// decide applies the mode and what people have allowed.
func (a *approvals) decide(ctx context.Context, w wish) (tools.Decision, error) {
	cfg := a.g.cfg()
	open, yolo, err := a.open(ctx, w, cfg)
	if err != nil {
		return tools.Decision{}, err
	}
	if len(open) == 0 || yolo || a.yolo || cfg.Approvals.Mode == "off" {
		return mayRun(), nil
	}
	if w.call.Caller.Unattended || w.call.Caller.Source == "query" || w.call.Caller.Source == "cron" {
		return a.unattended(w, cfg.Approvals, open), nil
	}
	known, asked, err := a.g.runner.FindApproval(ctx, w.call, w.command)
	if err != nil {
		return tools.Decision{}, err
	}
	verdict := judgeAsk
	switch {
	case asked && known.Judged:
		verdict = judgeDeny
	case !asked && w.judged && cfg.Approvals.Mode == "smart":
		verdict = a.g.judge(ctx, w.command, open)
		a.g.log.Info().Strs("kinds", keysOf(open)).Str("verdict", string(verdict)).Msg("the helper model has judged a command")
	}
	if verdict == judgeApprove {
		a.g.metrics.Approval("judged_safe")
		return mayRun(), nil
	}
	return a.ask(ctx, w, open, verdict == judgeDeny, cfg.Approvals)
}

// open returns the dangers that nobody has allowed yet, and whether the session needs no approvals at all.
func (a *approvals) open(ctx context.Context, w wish, cfg *config.Config) (open []terminal.Danger, yolo bool, err error) {
	if len(w.dangers) == 0 {
		return nil, false, nil
	}
	var grant access.Grant
	err = a.g.store.View(ctx, func(v sessions.View) (err error) {
		grant, err = access.SessionGrant(v, sessions.ID(w.call.Caller.Session))
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("read what is allowed for the session: %w", err)
	}
	for _, d := range w.dangers {
		if !slices.Contains(cfg.CommandAllowlist, d.Key) && !slices.Contains(grant.Kinds, d.Key) {
			open = append(open, d)
		}
	}
	return open, grant.Yolo, nil
}

// unattended decides where nobody can be asked.
func (a *approvals) unattended(w wish, c config.Approvals, open []terminal.Danger) tools.Decision {
	mode, key := c.UnattendedMode, "approvals.unattended_mode"
	switch w.call.Caller.Source {
	case "cron":
		mode, key = c.CronMode, "approvals.cron_mode"
	case "query":
		mode, key = c.SingleQueryMode, "approvals.single_query_mode"
	}
	if mode == "approve" {
		return mayRun()
	}
	a.g.metrics.Approval("unattended")
	return mayNotRun("%s, and nobody is there to approve it (%s)", reasons(open), key)
}

// ask puts the question to the people of the chat and waits.
func (a *approvals) ask(ctx context.Context, w wish, open []terminal.Danger, judged bool, c config.Approvals) (tools.Decision, error) {
	choices := []turn.Choice{turn.ChoiceOnce, turn.ChoiceSession, turn.ChoiceAlways, turn.ChoiceDeny}
	if judged {
		choices = []turn.Choice{turn.ChoiceOnce, turn.ChoiceDeny}
	}
	a.g.metrics.Approval("asked")
	got, err := a.g.runner.Approve(ctx, w.call, turn.ApprovalRequest{Command: w.command, Preview: a.preview(w.command), Kinds: keysOf(open), Choices: choices,
		Judged: judged, Timeout: c.Timeout})
	switch {
	case errors.Is(err, turn.ErrNobody):
		return a.unattended(w, c, open), nil
	case err != nil:
		return tools.Decision{}, err
	}
	a.g.metrics.Approval(string(got.Choice))
	a.g.log.Info().Str("choice", string(got.Choice)).Strs("kinds", got.Kinds).Str("session", string(got.Session)).Msg("an approval was decided")
	switch {
	case got.Choice == turn.ChoiceAlways:
		a.keep(ctx, got)
		return mayRun(), nil
	case got.Choice.Allows():
		return mayRun(), nil
	case got.Choice == turn.ChoiceTimeout:
		return mayNotRun("%s, and nobody has approved it within %s", reasons(open), c.Timeout), nil
	case got.Reason != "":
		return mayNotRun("the person has refused it and says: %s", got.Reason), nil
	}
	return mayNotRun("the person has refused it"), nil
}

// preview is the beginning of a command without secrets, on one line.
func (a *approvals) preview(command string) string {
	text := []rune(strings.Join(strings.Fields(a.g.opt.Redactor.String(command)), " "))
	if len(text) > previewLength {
		text = append(text[:previewLength-1], '…')
	}
	return string(text)
}

// keep makes "always" last. What can't be written down holds for the session alone, and the chat is told.
func (a *approvals) keep(ctx context.Context, got turn.Approval) {
	err := a.Allow(got.Kinds...)
	if err == nil {
		return
	}
	a.g.log.Error().Err(err).Strs("kinds", got.Kinds).Msg("a lasting permission can't be written to config.yaml")
	row := a.g.noticeRow(got.Address, "⚠️ "+a.g.texts.notSaved(got.Address))
	err = a.g.store.Update(context.WithoutCancel(ctx), sessions.EdgeQueue, func(tx sessions.Tx) error {
		if err := access.Allow(tx, got.Session, got.Kinds, a.g.now()); err != nil {
			return err
		}
		return tx.PutOutbox(row)
	})
	if err != nil {
		a.g.log.Error().Err(err).Msg("nor can it be kept for the session")
		return
	}
	a.g.worker.Take(row)
}

// Allow writes kinds of danger into command_allowlist and obeys it at once.
func (a *approvals) Allow(kinds ...string) error {
	return a.change(func(list []string) []string {
		for _, k := range kinds {
			if !slices.Contains(list, k) {
				list = append(list, k)
			}
		}
		return list
	})
}

// Revoke takes entries out of command_allowlist.
func (a *approvals) Revoke(entries ...string) error {
	return a.change(func(list []string) []string {
		return slices.DeleteFunc(list, func(e string) bool { return slices.Contains(entries, e) })
	})
}

func (a *approvals) change(change func([]string) []string) error {
	a.edit.Lock()
	defer a.edit.Unlock()
	old := a.g.cfg()
	list := change(slices.Clone(old.CommandAllowlist))
	if slices.Equal(list, old.CommandAllowlist) {
		return nil
	}
	err := EditConfig(a.g.configFile(), func(text []byte) ([]byte, error) { return config.SetList(text, "command_allowlist", list) })
	if err != nil {
		return err
	}
	a.g.adopt(func(c *config.Config) { c.CommandAllowlist = list })
	return nil
}

// SetMode writes approvals.mode and obeys it at once.
func (a *approvals) SetMode(mode string) error {
	a.edit.Lock()
	defer a.edit.Unlock()
	err := EditConfig(a.g.configFile(), func(text []byte) ([]byte, error) { return config.SetText(text, "approvals.mode", mode) })
	if err != nil {
		return err
	}
	a.g.adopt(func(c *config.Config) { c.Approvals.Mode = mode })
	return nil
}

// Mode and Allowlist implement command.Approvals.
func (a *approvals) Mode() string        { return a.g.cfg().Approvals.Mode }
func (a *approvals) Allowlist() []string { return slices.Clone(a.g.cfg().CommandAllowlist) }

// Yolo reports whether the environment has switched approvals off.
func (a *approvals) Yolo() bool { return a.yolo }

// configFile is the file that edits go to.
func (g *Gateway) configFile() string {
	if g.opt.Source.File != "" {
		return g.opt.Source.File
	}
	return g.opt.Paths.Config
}

// adopt takes over a change that stands in config.yaml already, before the file is read again.
func (g *Gateway) adopt(change func(*config.Config)) {
	for {
		old := g.cfg()
		next := *old
		change(&next)
		if g.config.CompareAndSwap(old, &next) {
			return
		}
	}
}

func keysOf(dangers []terminal.Danger) []string {
	out := make([]string, len(dangers))
	for i, d := range dangers {
		out[i] = d.Key
	}
	return out
}

// reasons joins what a command does in one sentence for the model.
func reasons(dangers []terminal.Danger) string {
	out := make([]string, len(dangers))
	for i, d := range dangers {
		out[i] = d.Reason
	}
	return strings.Join(out, "; ")
}
