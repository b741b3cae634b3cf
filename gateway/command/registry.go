package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"herald/gateway/access"
	"herald/gateway/model"
	"herald/gateway/router"
	"herald/gateway/turn/ask"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools/checkpoint"
	"herald/tools/process"
)

// Services is what commands work with.
type Services struct {
	Store   sessions.Store
	Printer func(at platforms.Address) *locales.Printer
	// Render makes an outbox row of Markdown for a place, in its control lane.
	Render func(at platforms.Address, markdown string) []*sessions.OutboxRow
	Take   func(rows ...*sessions.OutboxRow)
	Origin func(e platforms.Event) sessions.Origin
	// Tier says who the sender is; May whether that tier may use a command.
	Tier func(e platforms.Event) access.Tier
	May  func(e platforms.Event, command string) bool
	// Named reports whether the sender is an admin by name (access.Decision.Named).
	Named func(e platforms.Event) bool
	// SetHome makes the place of an event the platform's home channel; off takes that back.
	SetHome func(tx sessions.Tx, e platforms.Event, off bool) error
	// Forget drops cached conversations whose rows a command has changed.
	Forget func(id sessions.ID)
	// Checkpoints are the pictures of the agent's directories. Project returns the one that a session works in, and what
	// people call a path of it; workspace.ErrElsewhere where this machine does not see it.
	Checkpoints *checkpoint.Store
	// Recovered returns the rollback of a directory that the last process began and this one has finished.
	Recovered func(dir string) (checkpoint.Result, bool)
	Project   func(s sessions.Session) (dir string, shown func(path string) string, err error)
	// Processes are the background processes of conversations.
	Processes Processes
	// Models and Status describe the daemon.
	Models Models
	Status Status
	// Compress summarises rows of a session, with an optional focus.
	Compress func(ctx context.Context, override string, rows []sessions.Message, focus string) (string, error)
	// Resend repeats a message whose delivery is in doubt; AnswerAsk answers a question's button.
	Resend    func(tx sessions.Tx, id sessions.OutboxID, at platforms.Address, label string) (*sessions.OutboxRow, error)
	AnswerAsk func(ctx context.Context, item sessions.InboxItem, id string, choice int, user platforms.UserID) error
	// MayDecide reports whether the sender of an event may decide what waits for requester's sake (access.Decision.MayDecide).
	MayDecide func(e platforms.Event, requester platforms.UserID) bool
	// Decide writes a decision about an approval down, and Wake lets its call go on after the commit (ask.Asker).
	Decide func(tx sessions.Tx, id string, choice ask.Choice, reason, by string) (ask.Approval, []*sessions.OutboxRow, error)
	Wake   func(a ask.Approval)
	// Approvals are the rules that hold; nil: there are none.
	Approvals Approvals
	// Jobs are the scheduled jobs as the sender of an event may see and change them; nil: there are none.
	Jobs func(e platforms.Event) Jobs
	// Confirm reports whether commands that drop a conversation ask first; nil: they don't.
	Confirm func() bool
	// AnswerClick tells the presser what came of a press, where the platform has a place for it.
	AnswerClick func(at platforms.Address, click platforms.Click, text string)
	// BusyMode and Progress return the configured defaults of a chat.
	BusyMode func(at platforms.Address) string
	Progress func(at platforms.Address) string
	Now      func() time.Time
	Log      zerolog.Logger
}

// Processes knows the background processes of conversations.
type Processes interface {
	// Of returns those of a conversation that run, the oldest first.
	Of(key sessions.Key) []process.View
	// End ends them, without waiting, and returns how many.
	End(key sessions.Key) int
}

// Approvals are the lasting rules about dangerous commands. The changes are written to config.yaml.
type Approvals interface {
	Mode() string
	SetMode(mode string) error
	// Allowlist are the kinds of danger and the commands that need no approval; Revoke takes some out.
	Allowlist() []string
	Revoke(entries ...string) error
	// Yolo reports whether the environment has switched approvals off.
	Yolo() bool
}

// Models lists and resolves models.
type Models interface {
	// Resolve checks a name that a person typed and returns its canonical form.
	Resolve(name string) (canonical string, info model.Info, err error)
	// Current describes the model of a chat with that override; Known lists names for a menu.
	Current(override string) model.Info
	Known() []string
}

// Status describes the daemon.
type Status interface {
	Version() string
	Lines(p *locales.Printer) []string // one line per account and warning
}

// Spec is one command.
type Spec struct {
	Name    string
	Aliases []string
	// Args is a hint for menus, such as "[name]".
	Args string
	Busy router.Busy
	// Summary is one line for menus and the help. Like all command descriptions it is not translated.
	Summary string
	// Always commands may be used by everyone who may talk.
	Always bool
	run    func(context.Context, *Request) error
}

// Registry is all commands. Make one with New; it does not change.
type Registry struct {
	s      Services
	specs  []*Spec
	byName map[string]*Spec
}

// New returns the registry.
func New(s Services) *Registry {
	if s.Now == nil {
		s.Now = time.Now
	}
	r := &Registry{s: s, byName: map[string]*Spec{}}
	for _, family := range [][]Spec{talkCommands(), sessionCommands(), fileCommands(), approvalCommands(), modelCommands(), cronCommands(),
		placeCommands(), infoCommands()} {
		for _, spec := range family {
			r.specs = append(r.specs, &spec)
			for _, name := range append([]string{spec.Name}, spec.Aliases...) {
				if r.byName[name] != nil {
					panic("command: two commands are called " + name) // a programming error, met by every test
				}
				r.byName[name] = &spec
			}
		}
	}
	return r
}

// Specs returns the commands in the order of their families.
func (r *Registry) Specs() []*Spec { return slices.Clone(r.specs) }

// Infos returns the commands for platforms' menus.
func (r *Registry) Infos() []platforms.CommandInfo {
	out := make([]platforms.CommandInfo, 0, len(r.specs))
	for _, s := range r.specs {
		out = append(out, platforms.CommandInfo{Name: s.Name, Description: s.Summary, Args: s.Args})
	}
	return out
}

// lookup finds a command by name, alias, or unambiguous beginning (the first in the registry's order).
func (r *Registry) lookup(name string) *Spec {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if s := r.byName[name]; s != nil {
		return s
	}
	if len(name) < 2 {
		return nil
	}
	for _, s := range r.specs {
		if strings.HasPrefix(s.Name, name) {
			return s
		}
	}
	return nil
}

// Parse implements router.Commands. Text is a command when its first word is "/" (or "!") and a known
// name; everything else goes to the agent.
func (r *Registry) Parse(e platforms.Event) (router.Command, bool) {
	name, args := "", ""
	switch {
	case e.Command != nil:
		name, args = e.Command.Name, strings.TrimSpace(e.Command.Args)
	case e.Message != nil && len(e.Message.Attachments) == 0:
		text := strings.TrimSpace(e.Message.Text)
		if text == "" || (text[0] != '/' && text[0] != '!') {
			return router.Command{}, false
		}
		name = text[1:]
		if i := strings.IndexFunc(name, unicode.IsSpace); i >= 0 {
			name, args = name[:i], strings.TrimSpace(name[i:])
		}
		name, _, _ = strings.Cut(name, "@") // /help@herald_bot
	}
	spec := r.lookup(name)
	if spec == nil {
		return router.Command{}, false
	}
	return router.Command{Name: spec.Name, Args: args, Busy: spec.Busy}, true
}

// Request is one command being run.
type Request struct {
	Services
	Printer *locales.Printer
	Item    sessions.InboxItem
	Args    string
	Control *router.Control
	spec    *Spec
	reg     *Registry
	buttons [][]platforms.Button // below the answer
	// also is done in the transaction of commit; its rows are queued before the answer. nil: nothing.
	also func(tx sessions.Tx) ([]*sessions.OutboxRow, error)
	// kept is called in the transaction of commit with the id of the answer's last message. nil: not at all.
	kept func(tx sessions.Tx, answer sessions.OutboxID) error
	// confirmed says that the person was asked whether they mean it.
	confirmed bool
	ended     string                   // what the question is edited to say then: one of the confirm constants
	shown     func(path string) string // what people call a path of this machine; nil: by its name
}

// Run implements router.Commands.
func (r *Registry) Run(ctx context.Context, c router.Command, item sessions.InboxItem, control *router.Control) {
	spec := r.byName[c.Name]
	req := &Request{Services: r.s, Printer: r.s.Printer(item.Event.Address), Item: item, Args: c.Args, Control: control, spec: spec, reg: r}
	var err error
	if !spec.Always && !r.s.May(item.Event, spec.Name) {
		err = req.reply(ctx, req.t("command.not_allowed", locales.Str("name", spec.Name)))
	} else {
		err = spec.run(ctx, req)
	}
	switch {
	case err == nil, errors.Is(err, errHandled):
	default:
		r.s.Log.Error().Str("command", spec.Name).Err(err).Msg("a command failed")
		if err := req.reply(ctx, req.t("command.failed", locales.Str("name", spec.Name), locales.Str("reason", err.Error()))); err != nil && !errors.Is(err, errHandled) {
			r.s.Log.Error().Str("command", spec.Name).Err(err).Msg("its failure can't be said; the command is taken up again at the next start")
		}
	}
}

// errHandled says that the command's inbox row is done already: an earlier process ran it.
var errHandled = errors.New("the command has been run already")

// commit runs the command's effect and answer in one transaction with its inbox row. effect returns the
// answer in Markdown; "" answers nothing.
func (q *Request) commit(ctx context.Context, effect func(tx sessions.Tx) (string, error)) error {
	var rows []*sessions.OutboxRow
	err := q.Store.Update(ctx, sessions.EdgeCommand, func(tx sessions.Tx) (err error) {
		rows, err = q.finish(tx, effect)
		return err
	})
	if err != nil {
		return err
	}
	q.Take(rows...)
	return nil
}

// finish is commit inside the caller's transaction. The rows are to be queued after it.
func (q *Request) finish(tx sessions.Tx, effect func(tx sessions.Tx) (string, error)) ([]*sessions.OutboxRow, error) {
	if q.Item.ID != 0 {
		now, err := tx.InboxItem(q.Item.ID)
		if err != nil {
			return nil, err
		}
		if now.State == sessions.InboxDone || now.State == sessions.InboxDropped {
			return nil, errHandled
		}
	}
	var more []*sessions.OutboxRow
	text, err := effect(tx)
	if err == nil && q.also != nil {
		more, err = q.also(tx)
	}
	if err != nil {
		return nil, err
	}
	if q.Item.ID != 0 {
		if err := tx.SetInbox(sessions.InboxDone, 0, "command "+q.name(), q.Item.ID); err != nil {
			return nil, err
		}
	}
	if text == "" {
		return more, nil
	}
	rows := q.Render(q.Item.Event.Address, text)
	for _, row := range rows {
		row.Message.Private = q.private()
	}
	rows[len(rows)-1].Message.Buttons = q.buttons
	if err := tx.PutOutbox(rows...); err != nil {
		return nil, err
	}
	if q.kept != nil {
		err = q.kept(tx, rows[len(rows)-1].ID)
	}
	return append(more, rows...), err
}

func (q *Request) name() string {
	if q.spec == nil {
		return "button"
	}
	return q.spec.Name
}

// private is the platform's token for an answer that only the person sees.
func (q *Request) private() string {
	if c := q.Item.Event.Command; c != nil {
		return c.Reply
	}
	return ""
}

// reply ends the command with an answer and no other effect.
func (q *Request) reply(ctx context.Context, text string) error {
	return q.commit(ctx, func(sessions.Tx) (string, error) { return text, nil })
}

// session returns the chat's current session; ErrNotFound before the first turn.
func (q *Request) session(v sessions.View) (sessions.Session, sessions.Options, error) {
	route, err := v.Route(q.Control.Key())
	if err != nil {
		return sessions.Session{}, sessions.Options{}, err
	}
	s, err := v.Session(route.Session)
	return s, route.Options, err
}

func (q *Request) t(key string, args ...locales.Arg) string { return q.Printer.T(key, args...) }

// usage tells how the command is written.
func (q *Request) usage() string {
	text := q.Printer.Command(q.spec.Name)
	if q.spec.Args != "" {
		text += " " + q.spec.Args
	}
	return q.t("command.usage", locales.Str("usage", format.Code(text)))
}

// badValue tells that an argument is none of those that the command takes.
func (q *Request) badValue(value string) string {
	return "\"" + format.EscapeMarkdown(value) + "\"? " + q.usage()
}

// badNumber tells that an argument is no number in a range.
func (q *Request) badNumber(value string, low, high int) string {
	return q.t("command.bad_number", locales.Str("value", format.EscapeMarkdown(value)), locales.Int("min", low), locales.Int("max", high))
}
