package brief

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/gateway/delivery"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
)

// Config is the part of the configuration that is read each time a brief is written.
type Config struct {
	// Mirror lets briefs become part of conversations, Wrap puts a frame around them, and Quiet asks platforms for no sound.
	Mirror, Wrap, Quiet bool
	// Nudge is after how many failures in a row a job's notice suggests looking at it; 0 is never.
	Nudge int
	// InChannel reports whether briefs of a platform are continued in the channel and not in a thread; nil: none are.
	InChannel func(platforms.Name) bool
}

// Metrics counts what becomes of briefs.
type Metrics interface {
	// Delivered counts an answer of a platform, Mirrored a conversation that a brief became part of.
	Delivered(platform platforms.Name, state sessions.OutboxState)
	Mirrored(kind string)
}

// Options are what a Writer works with. Those without a remark must be set.
type Options struct {
	Store sessions.Store
	// Account names the profile in session keys.
	Account platforms.AccountID
	// KeyOptions say how the rooms of several people are split into conversations.
	KeyOptions func() sessions.KeyOptions
	// Describe tells what events from a place carry; see platforms.Describer. nil: nobody knows.
	Describe func(ctx context.Context, at platforms.Address) (platforms.Room, error)
	Places   cron.Places
	// Rules are those of the platforms.
	Rules  platforms.Rulebook
	Config func() Config
	// Zone is that of the jobs' clocks.
	Zone func() *time.Location
	// Printer speaks the language of a place.
	Printer func(at platforms.Address) *locales.Printer
	Metrics Metrics // nil: nothing is counted
	// Render writes Markdown for a place, in as many messages as it needs.
	Render func(at platforms.Address, markdown string) []platforms.Text
	// Attach takes the files out of a text that a run's session wrote, for a place: those that may go there, and why
	// others may not, by name. Strip only takes them out.
	Attach func(ctx context.Context, of sessions.Key, text string, at platforms.Address) (rest string, files []platforms.Attachment,
		refused map[string]string)
	Strip  func(text string) string
	Redact func(string) string
	Log    zerolog.Logger
	Now    func() time.Time
}

// Writer writes the briefs of a profile and follows them to their places. It is safe for concurrent use.
type Writer struct{ o Options }

// New returns a Writer.
func New(o Options) *Writer { return &Writer{o} }

// Ended is a run that has ended, as far as its brief tells of it.
type Ended struct {
	Job  cron.Job
	Task cron.Task
	Run  sessions.Run
	// Of is the session that the run had; empty for none.
	Of     sessions.Key
	State  sessions.RunState
	Reason string
	Text   string // what is delivered of a run that went well; empty: nothing
	// Blocked is why the job could not begin at all; Mute keeps the notice back, because people know already.
	Blocked string
	Mute    bool
}

// Brief is what is known of a row of kind OutBrief beside the message itself: its Value in sessions.SpaceBrief. It is
// read when the platform has answered for the row.
type Brief struct {
	Job  cron.JobID     `json:"job"`
	Name string         `json:"name"` // of the job, free of secrets
	Run  sessions.RunID `json:"run"`
	// Target is the index of the row's place in Result.Deliveries.
	Target int `json:"target"`
	// First is the first message of the brief: with it the brief becomes part of conversations, and More follows.
	First bool `json:"first,omitempty"`
	// Mirror says that it does (cron.MirrorEligible); InChannel that this happens in the channel and not in a thread.
	Mirror    bool `json:"mirror,omitempty"`
	InChannel bool `json:"in_channel,omitempty"`
	// Origin is the chat that the job was made in; nil for none.
	Origin *sessions.Origin `json:"origin,omitempty"`
	// Place is where the brief goes as events from there name it, as far as is known, with the person of a direct chat.
	Place sessions.Origin `json:"place,omitzero"`
	// Text is the output for the conversation: without a frame, files and secrets. Empty: nothing becomes part of one.
	Text string `json:"text,omitempty"`
	// More are the further messages to this place, in order, without an address.
	More []platforms.Outgoing `json:"more,omitempty"`
}

// Draft is a brief that is not queued yet.
type Draft struct {
	Brief
	first platforms.Outgoing
}

// Write finds the places that the output of a run goes to and writes it for each. It adds them to the result, in the
// order of the drafts, with what is wrong with the targets.
func (w *Writer) Write(ctx context.Context, e Ended, result *Result) []Draft {
	failed := e.State != sessions.RunRan
	if e.Mute || (!failed && e.Text == "") {
		return nil
	}
	deliver := e.Task.Deliver
	if failed && e.Task.FailureDeliver != "" {
		deliver = e.Task.FailureDeliver
	}
	targets, problems := w.Targets(ctx, deliver, e.Task.Origin)
	for _, err := range problems {
		result.Problems = append(result.Problems, w.o.Redact(err.Error()))
	}
	var out []Draft
	for _, target := range targets {
		d, ok := w.render(ctx, e, w.surface(ctx, e, target))
		if !ok {
			continue
		}
		d.Target = len(result.Deliveries)
		result.Deliveries = append(result.Deliveries, Delivery{Target: target, State: sessions.OutPending})
		out = append(out, d)
	}
	return out
}

// resolveTime bounds how long a platform may take to say where a target is.
const resolveTime = 20 * time.Second

// Targets finds the places that a job delivers to, and what is wrong with the others.
func (w *Writer) Targets(ctx context.Context, deliver string, origin *sessions.Origin) ([]cron.Target, []error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	return cron.ResolveTargets(ctx, deliver, origin, w.o.Places)
}

// maxThreadName is how many characters the name of a thread has.
const maxThreadName = 80

// surface decides how a brief is continued at its place.
func (w *Writer) surface(ctx context.Context, e Ended, target cron.Target) Draft {
	cfg := w.o.Config()
	d := Draft{Brief: Brief{Job: e.Job.ID, Name: w.o.Redact(e.Job.Name), Run: e.Run.ID, First: true, Origin: e.Task.Origin}}
	d.first.Address = target.Address
	d.Mirror = cron.MirrorEligible(target, e.Task.Origin, e.Task.Attach, cfg.Mirror)
	flat := cfg.InChannel != nil && cfg.InChannel(target.Address.Platform)
	if !d.Mirror && !flat {
		return d
	}
	d.Place = w.place(ctx, target.Address, e.Task.Origin)
	if flat && (target.Address.Thread != "" || d.Place.Address.Thread == "") { // not a thread that its id alone names
		d.InChannel = cron.InChannelContinuable(w.o.Rules, target, e.Task.Origin, e.Task.Attach, cfg.Mirror)
	}
	switch {
	case d.InChannel:
		d.first.Address.Thread = ""
	case d.Mirror && !flat && target.Address.Thread == "" && d.Place.Address.Thread == "":
		d.first.Thread = cron.Plain(d.Name, maxThreadName)
		d.first.Address.Thread = w.topic(ctx, e.Job.ID, target.Address)
	}
	return d
}

// render writes the output for a place; ok is false when nothing is left to send.
func (w *Writer) render(ctx context.Context, e Ended, d Draft) (Draft, bool) {
	at := d.first.Address
	framed, bare := w.words(e, d)
	rest, files, refused := framed, []platforms.Attachment(nil), map[string]string(nil)
	if e.State == sessions.RunRan {
		rest, files, refused = w.o.Attach(ctx, e.Of, framed, at)
	}
	names := make([]string, 0, len(refused))
	for name := range refused {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rest += "\n\n" + w.refusedText(at, name, refused[name])
	}
	d.Text = w.o.Redact(w.o.Strip(bare))
	quiet := w.o.Config().Quiet
	var messages []platforms.Outgoing
	for _, chunk := range w.o.Render(at, w.o.Redact(rest)) {
		messages = append(messages, platforms.Outgoing{Text: chunk, Silent: quiet})
	}
	for _, file := range files {
		messages = append(messages, platforms.Outgoing{Attachments: []platforms.Attachment{file}, Silent: quiet})
	}
	if len(messages) == 0 {
		return d, false
	}
	first := messages[0]
	first.Address, first.Thread = at, d.first.Thread
	d.first, d.More = first, messages[1:]
	return d, true
}

// Queue puts the first message of each draft into the outbox, in the transaction that ends the run, and notes the rows
// in the result. It returns them.
func (w *Writer) Queue(tx sessions.Tx, run sessions.RunID, result *Result, drafts []Draft) ([]*sessions.OutboxRow, error) {
	var rows []*sessions.OutboxRow
	for _, d := range drafts {
		d.Run = run
		row := &sessions.OutboxRow{Kind: sessions.OutBrief, Message: d.first}
		if err := w.put(tx, row, d.Brief); err != nil {
			return nil, err
		}
		result.Deliveries[d.Target].Rows = []sessions.OutboxID{row.ID}
		rows = append(rows, row)
	}
	return rows, nil
}

// put adds a row and its Brief.
func (w *Writer) put(tx sessions.Tx, row *sessions.OutboxRow, b Brief) error {
	if err := tx.PutOutbox(row); err != nil {
		return err
	}
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return tx.SetValue(sessions.SpaceBrief, delivery.BriefName(row.ID), data, w.o.Now())
}
