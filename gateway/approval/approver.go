package approval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/access"
	"herald/gateway/config"
	"herald/gateway/model"
	"herald/gateway/turn/ask"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
	"herald/tools/terminal"
)

// previewLength is how much of a command a prompt shows, in characters.
const previewLength = 200

// Checker reads what a call would do; typed is what its conversation has written to a process since the last end of a line.
// ok is false for a call that runs nothing.
type Checker interface {
	Check(call tools.Call, typed string) (c terminal.Check, ok bool)
}

// Asker puts approvals to the people of a turn.
type Asker interface {
	// FindApproval returns what was asked for a call and its text before, also by an earlier process.
	FindApproval(ctx context.Context, call tools.Call, command string) (a ask.Approval, ok bool, err error)
	// Approve asks and waits; ask.ErrNobody where there is nobody to ask.
	Approve(ctx context.Context, call tools.Call, req ask.Request) (ask.Approval, error)
}

// Settings are the configuration in force and the way to change it for good.
type Settings interface {
	Current() *config.Config
	// Edit changes the text of config.yaml, and by adopt what is in force, at once.
	Edit(text func([]byte) ([]byte, error), adopt func(*config.Config)) error
}

// Outbox sends messages whose rows are committed.
type Outbox interface {
	Take(rows ...*sessions.OutboxRow)
}

// Metrics counts what became of approvals, and what the judge has used.
type Metrics interface {
	Approval(outcome string)
	ModelUsed(m model.Info, u model.Usage)
}

// Options is what an Approver is made from. All fields are needed but Log.
type Options struct {
	Store    sessions.Store
	Settings Settings
	Checker  Checker
	// Decide settles where a tool's commands run, if that is still open; it may wait.
	Decide func(ctx context.Context, spec tools.Spec)
	Asker  Asker
	// Judge returns the model that judges commands.
	Judge   func() (model.Model, error)
	Printer func(at platforms.Address) *locales.Printer
	// Notice renders a line of Herald's own for a chat.
	Notice  func(at platforms.Address, markdown string) *sessions.OutboxRow
	Outbox  Outbox
	Redact  func(string) string
	Metrics Metrics
	Log     zerolog.Logger
	Now     func() time.Time
}

// Approver decides whether commands may run. It implements tools.Approver: the floor first, then the operator's deny
// patterns, then what is dangerous, then the mode and what people have allowed. It is safe for concurrent use.
type Approver struct {
	o Options
	// yolo was asked for by the environment when the daemon started: nothing but the first two layers holds.
	yolo bool
	edit sync.Mutex // of config.yaml

	mu sync.Mutex
	// typed is what was written to the processes of a conversation since the last end of a line, so that a command
	// can't be written piece by piece.
	typed map[string]string
}

// New returns an approver. HERALD_YOLO_MODE in the environment switches questions off.
func New(o Options) *Approver {
	a := &Approver{o: o, typed: map[string]string{}}
	switch strings.ToLower(os.Getenv("HERALD_YOLO_MODE")) {
	case "1", "true", "yes", "on":
		a.yolo = true
		o.Log.Warn().Msg("HERALD_YOLO_MODE is set: dangerous commands run without a question")
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
func (a *Approver) Approve(ctx context.Context, call tools.Call, spec tools.Spec) (tools.Decision, error) {
	a.mu.Lock()
	typed := a.typed[call.Caller.Key]
	a.mu.Unlock()
	check, ok := a.o.Checker.Check(call, typed)
	if !ok {
		return mayRun(), nil
	}
	if len(check.Dangers) > 0 && !check.Contained {
		a.o.Decide(ctx, spec) // whether it runs in a container may not be decided yet
		check, _ = a.o.Checker.Check(call, typed)
	}
	d, err := a.layers(ctx, call, check)
	if err == nil && d.Allowed && check.Typed {
		a.write(call.Caller.Key, check.Line)
	}
	return d, err
}

// maxTyped bounds the unfinished line that is kept of a conversation, in bytes; of a longer one the end is kept.
const maxTyped = 64 << 10

// write keeps the unfinished line of what is written.
func (a *Approver) write(key, text string) {
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
func (a *Approver) layers(ctx context.Context, call tools.Call, check terminal.Check) (tools.Decision, error) {
	if check.Refusal != "" {
		a.o.Metrics.Approval("refused")
		return mayNotRun("the command was not run: %s. This is never allowed, and no approval changes it; don't try it in another form",
			check.Refusal), nil
	}
	if pattern := access.Denied(a.o.Settings.Current().Approvals.Deny, check.Candidates); pattern != "" {
		a.o.Metrics.Approval("rule")
		return mayNotRun("the operator's rule %q in approvals.deny forbids it, and no approval changes that", pattern), nil
	}
	if check.Contained || slices.Contains(a.o.Settings.Current().CommandAllowlist, check.Line) {
		return mayRun(), nil
	}
	return a.decide(ctx, wish{call: call, command: check.Line, dangers: check.Dangers, judged: true})
}

// ApproveWrite asks whether a file tool may write a file that the machine or Herald depends on.
func (a *Approver) ApproveWrite(ctx context.Context, call tools.Call, path, why string) (bool, error) {
	kind := "herald-files"
	if strings.Contains(path, "/.ssh/") {
		kind = "ssh-files"
	}
	k, _ := terminal.KindOf(kind)
	d, err := a.decide(ctx, wish{call: call, command: call.Name + " " + path, dangers: []terminal.Danger{k.Danger}})
	if err == nil && !d.Allowed {
		a.o.Log.Info().Str("why", why).Msg("a file was not written: it was not approved")
	}
	return d.Allowed, err
}

// decide applies the mode and what people have allowed.
func (a *Approver) decide(ctx context.Context, w wish) (tools.Decision, error) {
	cfg := a.o.Settings.Current()
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
	known, asked, err := a.o.Asker.FindApproval(ctx, w.call, w.command)
	if err != nil {
		return tools.Decision{}, err
	}
	verdict := judgedUnsure
	switch {
	case asked && known.Judged:
		verdict = judgedBad
	case !asked && w.judged && cfg.Approvals.Mode == "smart":
		verdict = a.judge(ctx, w.command, open)
		a.o.Log.Info().Strs("kinds", keysOf(open)).Str("verdict", string(verdict)).Msg("the helper model has judged a command")
	}
	if verdict == judgedSafe {
		a.o.Metrics.Approval("judged_safe")
		return mayRun(), nil
	}
	return a.ask(ctx, w, open, verdict == judgedBad, cfg.Approvals)
}

// open returns the dangers that nobody has allowed yet, and whether the session needs no approvals at all.
func (a *Approver) open(ctx context.Context, w wish, cfg *config.Config) (open []terminal.Danger, yolo bool, err error) {
	if len(w.dangers) == 0 {
		return nil, false, nil
	}
	var grant access.Grant
	err = a.o.Store.View(ctx, func(v sessions.View) (err error) {
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
func (a *Approver) unattended(w wish, c config.Approvals, open []terminal.Danger) tools.Decision {
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
	a.o.Metrics.Approval("unattended")
	return mayNotRun("%s, and nobody is there to approve it (%s)", reasons(open), key)
}

// ask puts the question to the people of the chat and waits.
func (a *Approver) ask(ctx context.Context, w wish, open []terminal.Danger, judged bool, c config.Approvals) (tools.Decision, error) {
	choices := []ask.Choice{ask.ChoiceOnce, ask.ChoiceSession, ask.ChoiceAlways, ask.ChoiceDeny}
	if judged {
		choices = []ask.Choice{ask.ChoiceOnce, ask.ChoiceDeny}
	}
	a.o.Metrics.Approval("asked")
	got, err := a.o.Asker.Approve(ctx, w.call, ask.Request{Command: w.command, Preview: a.preview(w.command), Kinds: keysOf(open),
		Choices: choices,
		Judged:  judged, Timeout: c.Timeout})
	switch {
	case errors.Is(err, ask.ErrNobody):
		return a.unattended(w, c, open), nil
	case err != nil:
		return tools.Decision{}, err
	}
	a.o.Metrics.Approval(string(got.Choice))
	a.o.Log.Info().Str("choice", string(got.Choice)).Strs("kinds", got.Kinds).Str("session", string(got.Session)).
		Msg("an approval was decided")
	switch {
	case got.Choice == ask.ChoiceAlways:
		a.keep(ctx, got)
		return mayRun(), nil
	case got.Choice.Allows():
		return mayRun(), nil
	case got.Choice == ask.ChoiceTimeout:
		return mayNotRun("%s, and nobody has approved it within %s", reasons(open), c.Timeout), nil
	case got.Reason != "":
		return mayNotRun("the person has refused it and says: %s", got.Reason), nil
	}
	return mayNotRun("the person has refused it"), nil
}

// preview is the beginning of a command without secrets, on one line.
func (a *Approver) preview(command string) string {
	text := []rune(strings.Join(strings.Fields(a.o.Redact(command)), " "))
	if len(text) > previewLength {
		text = append(text[:previewLength-1], '…')
	}
	return string(text)
}

// keep makes "always" last. What can't be written down holds for the session alone, and the chat is told so.
func (a *Approver) keep(ctx context.Context, got ask.Approval) {
	err := a.Allow(got.Kinds...)
	if err == nil {
		return
	}
	a.o.Log.Error().Err(err).Strs("kinds", got.Kinds).Msg("a lasting permission can't be written to config.yaml")
	row := a.o.Notice(got.Address, "⚠️ "+a.o.Printer(got.Address).T("approval.not_saved"))
	err = a.o.Store.Update(context.WithoutCancel(ctx), sessions.EdgeQueue, func(tx sessions.Tx) error {
		if err := access.Allow(tx, got.Session, got.Kinds, a.o.Now()); err != nil {
			return err
		}
		return tx.PutOutbox(row)
	})
	if err != nil {
		a.o.Log.Error().Err(err).Msg("nor can it be kept for the session")
		return
	}
	a.o.Outbox.Take(row)
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
