package approval

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/access"
	"herald/gateway/config"
	"herald/gateway/model"
	"herald/gateway/turn/ask"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
	"herald/tools"
	"herald/tools/sandbox"
	"herald/tools/terminal"
)

// rig is an approver with a real store and the real reader of commands, and people, a model and a configuration file that
// the test plays.
type rig struct {
	*Approver
	t     *testing.T
	cfg   *config.Config
	store *sqlite.Store

	asked   []ask.Request // what people were asked
	known   *ask.Approval // what was asked before
	answer  func(ask.Request) (ask.Approval, error)
	verdict func(model.Request) (string, error)
	judged  []model.Request
	editErr error
	edits   []string // what was written to config.yaml
	counts  map[string]int
	sent    []*sessions.OutboxRow
	decided int
}

func newRig(t *testing.T) *rig {
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "herald.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	catalogs, err := locales.New(locales.Options{})
	require.NoError(t, err)
	r := &rig{t: t, cfg: config.Default(), store: store, counts: map[string]int{},
		answer: func(req ask.Request) (ask.Approval, error) {
			return ask.Approval{Choice: ask.ChoiceDeny, Session: "s1", Kinds: req.Kinds}, nil
		}}
	r.cfg.Approvals.Mode = "manual"
	local := terminal.Deps{Protected: []string{"/home/herald"}, Environment: func(tools.Caller) (sandbox.Environment, error) {
		return nil, sandbox.ErrUnavailable // commands are judged by their text
	}}
	r.Approver = New(Options{Store: store, Settings: r, Checker: local, Decide: func(context.Context, tools.Spec) { r.decided++ }, Asker: r,
		Judge:   func() (model.Model, error) { return judge{r}, nil },
		Printer: func(platforms.Address) *locales.Printer { return catalogs.Printer("en") },
		Notice: func(at platforms.Address, text string) *sessions.OutboxRow {
			return &sessions.OutboxRow{Kind: sessions.OutNotice, Message: platforms.Outgoing{Address: at, Text: platforms.Text{Body: text}}}
		},
		Outbox: r, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[secret]") }, Metrics: r, Now: time.Now})
	return r
}

// Current and Edit are the configuration.
func (r *rig) Current() *config.Config { return r.cfg }

func (r *rig) Edit(text func([]byte) ([]byte, error), adopt func(*config.Config)) error {
	if r.editErr != nil {
		return r.editErr
	}
	out, err := text([]byte("# mine\n"))
	require.NoError(r.t, err)
	r.edits = append(r.edits, string(out))
	next := *r.cfg
	adopt(&next)
	r.cfg = &next
	return nil
}

// FindApproval and Approve are the people.
func (r *rig) FindApproval(context.Context, tools.Call, string) (ask.Approval, bool, error) {
	if r.known == nil {
		return ask.Approval{}, false, nil
	}
	return *r.known, true, nil
}

func (r *rig) Approve(_ context.Context, _ tools.Call, req ask.Request) (ask.Approval, error) {
	r.asked = append(r.asked, req)
	return r.answer(req)
}

func (r *rig) Take(rows ...*sessions.OutboxRow)      { r.sent = append(r.sent, rows...) }
func (r *rig) Approval(outcome string)               { r.counts[outcome]++ }
func (r *rig) ModelUsed(m model.Info, _ model.Usage) { r.counts["model "+m.Provider]++ }
func (r *rig) says(choice ask.Choice, reason string) {
	r.answer = func(req ask.Request) (ask.Approval, error) {
		at := platforms.Address{Platform: "web", Account: "a", Chat: "c"}
		return ask.Approval{Choice: choice, Reason: reason, Session: "s1", Kinds: req.Kinds, Address: at}, nil
	}
}

// judge is the model that judges commands.
type judge struct{ r *rig }

func (j judge) Info() model.Info { return model.Info{Provider: "openai", Name: "judge"} }

func (j judge) Stream(_ context.Context, req model.Request, _ func(model.Delta)) (model.Response, error) {
	j.r.judged = append(j.r.judged, req)
	if j.r.verdict == nil {
		return model.Response{}, errors.New("no judge today")
	}
	text, err := j.r.verdict(req)
	return model.Response{Text: text}, err
}

// run asks for a command of the terminal; change tells who calls.
func (r *rig) run(command string, change ...func(*tools.Caller)) tools.Decision {
	r.t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	require.NoError(r.t, err)
	return r.call("terminal", string(args), change...)
}

func (r *rig) call(tool, args string, change ...func(*tools.Caller)) tools.Decision {
	r.t.Helper()
	call := tools.Call{ID: "c1", Name: tool, Args: json.RawMessage(args), Caller: tools.Caller{Session: "s1", Key: "k1", Turn: 1}}
	for _, c := range change {
		c(&call.Caller)
	}
	d, err := r.Approver.Approve(r.t.Context(), call, tools.Spec{Name: tool})
	require.NoError(r.t, err)
	return d
}

const dangerous = "rm -rf build"

func from(source string) func(*tools.Caller) { return func(c *tools.Caller) { c.Source = source } }
func unattended(c *tools.Caller)             { c.Unattended = true }

// What is not dangerous runs at once, and what runs no command is not looked at.
func TestApprover_HarmlessRunsUnasked(t *testing.T) {
	r := newRig(t)
	require.True(t, r.run("ls -l").Allowed)
	require.True(t, r.call("read_file", `{"path":"/etc/hosts"}`).Allowed)
	require.Empty(t, r.asked)
	require.Zero(t, r.decided, "where it runs matters for dangers alone")
}

// P14: the floor and the operator's patterns hold in each mode, for each caller, and no approval is asked for.
func TestApprover_FloorAndPatternsComeFirst(t *testing.T) {
	for _, mode := range []string{"manual", "smart", "off"} {
		r := newRig(t)
		r.yolo = true
		r.cfg.Approvals.Mode, r.cfg.Approvals.Deny = mode, []string{"npm PUBLISH*"}
		r.cfg.CommandAllowlist = []string{"recursive-delete", "npm publish"}
		d := r.run("rm -rf /")
		require.False(t, d.Allowed)
		require.Contains(t, d.Reason, "never allowed")
		d = r.run("npm publish --access public")
		require.False(t, d.Allowed)
		require.Contains(t, d.Reason, `"npm PUBLISH*" in approvals.deny`)
		require.Empty(t, r.asked)
		require.Equal(t, map[string]int{"refused": 1, "rule": 1}, r.counts)
	}
}

// What lets a dangerous command run without a question.
func TestApprover_WhatIsAllowedAlready(t *testing.T) {
	grant := func(g access.Grant) func(*rig) {
		return func(r *rig) {
			require.NoError(r.t, r.store.Update(r.t.Context(), sessions.EdgeState, func(tx sessions.Tx) error {
				return access.SetSessionGrant(tx, "s1", g, time.Now())
			}))
		}
	}
	for name, c := range map[string]struct {
		set  func(*rig)
		want bool
	}{
		"nothing":                      {func(*rig) {}, false},
		"mode off":                     {func(r *rig) { r.cfg.Approvals.Mode = "off" }, true},
		"the environment":              {func(r *rig) { r.yolo = true }, true},
		"its kind for good":            {func(r *rig) { r.cfg.CommandAllowlist = []string{"recursive-delete"} }, true},
		"the command itself for good":  {func(r *rig) { r.cfg.CommandAllowlist = []string{dangerous} }, true},
		"another kind for good":        {func(r *rig) { r.cfg.CommandAllowlist = []string{"interpreter-code"} }, false},
		"its kind for the session":     {grant(access.Grant{Kinds: []string{"recursive-delete"}}), true},
		"another kind for the session": {grant(access.Grant{Kinds: []string{"interpreter-code"}}), false},
		"everything for the session":   {grant(access.Grant{Yolo: true}), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c.set(r)
			require.Equal(t, c.want, r.run(dangerous).Allowed)
			require.Equal(t, c.want, len(r.asked) == 0)
		})
	}
}

// Where nobody can be asked, the setting for that kind of caller decides.
func TestApprover_Unattended(t *testing.T) {
	for name, c := range map[string]struct {
		caller func(*tools.Caller)
		set    func(*config.Approvals)
		key    string
	}{
		"a run of a job":   {from("cron"), func(a *config.Approvals) { a.CronMode = "approve" }, "approvals.cron_mode"},
		"a single query":   {from("query"), func(a *config.Approvals) { a.SingleQueryMode = "approve" }, "approvals.single_query_mode"},
		"anything else":    {unattended, func(a *config.Approvals) { a.UnattendedMode = "approve" }, "approvals.unattended_mode"},
		"nobody in a chat": {func(c *tools.Caller) {}, func(a *config.Approvals) { a.UnattendedMode = "approve" }, "approvals.unattended_mode"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.answer = func(ask.Request) (ask.Approval, error) { return ask.Approval{}, ask.ErrNobody }
			d := r.run(dangerous, c.caller)
			require.False(t, d.Allowed)
			require.Contains(t, d.Reason, c.key)
			require.Equal(t, 1, r.counts["unattended"])
			c.set(&r.cfg.Approvals)
			require.True(t, r.run(dangerous, c.caller).Allowed)
		})
	}
}

// What people answer, and what the model reads of it.
func TestApprover_Answers(t *testing.T) {
	for choice, c := range map[ask.Choice]struct {
		reason  string
		allowed bool
		says    string
	}{
		ask.ChoiceOnce:    {"", true, ""},
		ask.ChoiceSession: {"", true, ""},
		ask.ChoiceAlways:  {"", true, ""},
		ask.ChoiceDeny:    {"use a branch", false, "use a branch"},
		ask.ChoiceTimeout: {"", false, "nobody has approved it within 42s"},
		ask.ChoiceVoid:    {"", false, "has refused it"},
	} {
		r := newRig(t)
		r.cfg.Approvals.Timeout = 42 * time.Second
		r.says(choice, c.reason)
		d := r.run(dangerous + " # hunter2")
		require.Equal(t, c.allowed, d.Allowed, choice)
		require.Contains(t, d.Reason, c.says)
		require.Len(t, r.asked, 1)
		require.Equal(t, []string{"recursive-delete"}, r.asked[0].Kinds)
		require.Equal(t, "rm -rf build # [secret]", r.asked[0].Preview)
		require.Equal(t, 42*time.Second, r.asked[0].Timeout)
		require.Equal(t, []ask.Choice{ask.ChoiceOnce, ask.ChoiceSession, ask.ChoiceAlways, ask.ChoiceDeny}, r.asked[0].Choices)
	}
}

// "Always" is written to config.yaml and holds at once. Where it can't be written, it holds for the session and the chat is
// told so.
func TestApprover_AlwaysLasts(t *testing.T) {
	r := newRig(t)
	r.says(ask.ChoiceAlways, "")
	require.True(t, r.run(dangerous).Allowed)
	require.True(t, r.run(dangerous).Allowed)
	require.Len(t, r.asked, 1)
	require.Len(t, r.edits, 1)
	require.Contains(t, r.edits[0], "# mine\n")
	require.Contains(t, r.edits[0], "recursive-delete")
	require.Empty(t, r.sent)

	r = newRig(t)
	r.editErr = errors.New("read-only file system")
	r.says(ask.ChoiceAlways, "")
	require.True(t, r.run(dangerous).Allowed)
	require.Len(t, r.sent, 1)
	require.Contains(t, r.sent[0].Message.Text.Body, "⚠️ ")
	require.True(t, r.run(dangerous).Allowed, "the session knows it")
	require.Len(t, r.asked, 1)
}

// In smart mode the model decides what is clear; everything else is asked about, and whatever goes wrong too.
func TestApprover_SmartMode(t *testing.T) {
	for name, c := range map[string]struct {
		verdict string
		fails   bool
		command string
		allowed bool
		asked   bool
		judged  bool // the prompt says that the model advises against it
	}{
		"it approves":             {verdict: "APPROVE", allowed: true},
		"it approves loosely":     {verdict: " `approve`.\n", allowed: true},
		"it denies":               {verdict: "DENY", asked: true, judged: true},
		"it is in doubt":          {verdict: "ASK", asked: true},
		"it says more than that":  {verdict: "APPROVE, because it is safe", asked: true},
		"it says nothing":         {verdict: "", asked: true},
		"it can't be reached":     {fails: true, asked: true},
		"the command is too long": {verdict: "APPROVE", command: dangerous + " # " + strings.Repeat("x", judgeCommand), asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.cfg.Approvals.Mode = "smart"
			if !c.fails {
				r.verdict = func(model.Request) (string, error) { return c.verdict, nil }
			}
			if c.command == "" {
				c.command = dangerous + " # hunter2"
			}
			require.Equal(t, c.allowed, r.run(c.command).Allowed)
			require.Equal(t, c.asked, len(r.asked) == 1)
			if c.asked {
				require.Equal(t, c.judged, r.asked[0].Judged)
				require.Equal(t, c.judged, len(r.asked[0].Choices) == 2, "against its advice there is no lasting permission")
			}
			for _, q := range r.judged {
				require.NotContains(t, q.Messages[0].Text, "hunter2")
				require.Equal(t, judgePrompt, q.System)
			}
		})
	}
	r := newRig(t)
	r.cfg.Approvals.Mode = "smart"
	r.known = &ask.Approval{Judged: true}
	r.run(dangerous)
	require.Empty(t, r.judged, "what was asked before is not judged again")
	require.True(t, r.asked[0].Judged)
}

// A command that is written piece by piece to a process is judged as the line that it becomes.
func TestApprover_TypedPiecesAreOneLine(t *testing.T) {
	r := newRig(t)
	write := func(data string, change ...func(*tools.Caller)) tools.Decision {
		args, _ := json.Marshal(map[string]string{"action": "write", "session_id": "p", "data": data})
		return r.call("process", string(args), change...)
	}
	require.True(t, write("rm ").Allowed)
	require.True(t, write("-rf build\n", func(c *tools.Caller) { c.Key = "k2" }).Allowed, "another conversation has a line of its own")
	require.False(t, write("-rf build\n").Allowed)
	require.Equal(t, "rm -rf build", r.asked[0].Preview)
	d := write("x.txt\n")
	require.True(t, d.Allowed, d.Reason+"what was refused is no part of the line")
	require.True(t, write("-rf build\n").Allowed, "a new line has begun")
	require.Len(t, r.asked, 1)
}

// A file that the machine or Herald depends on is written only when a person allows it.
func TestApprover_Writes(t *testing.T) {
	r := newRig(t)
	call := tools.Call{ID: "c", Name: "write_file", Caller: tools.Caller{Session: "s1", Turn: 1}}
	ok, err := r.ApproveWrite(t.Context(), call, "/home/x/.ssh/config", "it decides who may log in")
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, []string{"ssh-files"}, r.asked[0].Kinds)
	r.says(ask.ChoiceOnce, "")
	ok, err = r.ApproveWrite(t.Context(), call, "/home/x/.herald/config.yaml", "it is Herald's")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []string{"herald-files"}, r.asked[1].Kinds)
	require.Equal(t, "write_file /home/x/.herald/config.yaml", r.asked[1].Preview)
	r.answer = func(ask.Request) (ask.Approval, error) { return ask.Approval{}, context.Canceled }
	ok, err = r.ApproveWrite(t.Context(), call, "/home/x/.ssh/config", "")
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, ok, "an error is a no")
}

// A long command is shown by its beginning.
func TestApprover_PreviewIsShort(t *testing.T) {
	r := newRig(t)
	r.run(dangerous + "\n" + strings.Repeat("ä", 500))
	preview := []rune(r.asked[0].Preview)
	require.Len(t, preview, previewLength)
	require.Equal(t, '…', preview[previewLength-1])
	require.NotContains(t, r.asked[0].Preview, "\n")
}

func TestApprover_Rules(t *testing.T) {
	r := newRig(t)
	require.NoError(t, r.Allow("a", "b", "a"))
	require.NoError(t, r.Allow("b"))
	require.Len(t, r.edits, 1, "what stands there already is not written again")
	require.NoError(t, r.Revoke("a", "nothing"))
	require.Equal(t, []string{"b"}, r.Allowlist())
	require.NoError(t, r.SetMode("smart"))
	require.Equal(t, "smart", r.Mode())
	require.Contains(t, r.edits[2], "mode: smart")
	r.editErr = errors.New("no")
	require.Error(t, r.SetMode("off"))
	require.Error(t, r.Allow("c"))
	require.Equal(t, "smart", r.Mode(), "what can't be written does not hold")
	require.Equal(t, []string{"b"}, r.Allowlist())
}

func TestNew_YoloOfTheEnvironment(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "Yes": true, "on": true, "true": true, "0": false, "": false, "maybe": false} {
		t.Setenv("HERALD_YOLO_MODE", value)
		require.Equal(t, want, New(Options{}).Yolo(), value)
	}
}
