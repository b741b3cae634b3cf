package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"herald/cron"
	"herald/gateway/delivery"
	"herald/platforms"
	"herald/sessions"
)

// Brief is what is known of a row of kind OutBrief beside the message itself: its Value in delivery.SpaceBrief. It is
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

// brief is a brief that is not queued yet.
type brief struct {
	Brief
	first platforms.Outgoing
}

// briefs finds the places that the output of a run goes to and renders it for each.
func (j *Jobs) briefs(ctx context.Context, f finish, result *Result) []brief {
	failed := f.state != sessions.RunRan
	if f.mute || (!failed && f.text == "") {
		return nil
	}
	deliver := f.task.Deliver
	if failed && f.task.FailureDeliver != "" {
		deliver = f.task.FailureDeliver
	}
	targets, problems := j.targets(ctx, deliver, f.task.Origin)
	for _, err := range problems {
		result.Problems = append(result.Problems, j.o.Redact(err.Error()))
	}
	var out []brief
	for _, target := range targets {
		b, ok := j.render(ctx, f, j.surface(ctx, f, target))
		if !ok {
			continue
		}
		b.Target = len(result.Deliveries)
		result.Deliveries = append(result.Deliveries, Delivery{Target: target, State: sessions.OutPending})
		out = append(out, b)
	}
	return out
}

// resolveTime bounds how long a platform may take to say where a target is.
const resolveTime = 20 * time.Second

// targets finds the places of a job.
func (j *Jobs) targets(ctx context.Context, deliver string, origin *sessions.Origin) ([]cron.Target, []error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	return cron.ResolveTargets(ctx, deliver, origin, j.o.Places)
}

// surface decides how a brief is continued at its place.
func (j *Jobs) surface(ctx context.Context, f finish, target cron.Target) brief {
	cfg := j.o.Config()
	b := brief{Brief: Brief{Job: f.job.ID, Name: j.o.Redact(f.job.Name), Run: f.run.ID, First: true, Origin: f.task.Origin}}
	b.first.Address = target.Address
	b.Mirror = cron.MirrorEligible(target, f.task.Origin, f.task.Attach, cfg.Mirror)
	flat := cfg.InChannel != nil && cfg.InChannel(target.Address.Platform)
	if !b.Mirror && !flat {
		return b
	}
	b.Place = j.place(ctx, target.Address, f.task.Origin)
	if flat && (target.Address.Thread != "" || b.Place.Address.Thread == "") { // not a thread that its id alone names
		b.InChannel = cron.InChannelContinuable(target, f.task.Origin, f.task.Attach, cfg.Mirror)
	}
	switch {
	case b.InChannel:
		b.first.Address.Thread = ""
	case b.Mirror && !flat && target.Address.Thread == "" && b.Place.Address.Thread == "":
		b.first.Thread = cron.Plain(b.Name, maxThreadName)
		b.first.Address.Thread = j.topic(ctx, f.job.ID, target.Address)
	}
	return b
}

// maxThreadName is how many characters the name of a thread has.
const maxThreadName = 80

// render writes the output for a place; ok is false when nothing is left to send.
func (j *Jobs) render(ctx context.Context, f finish, b brief) (brief, bool) {
	at := b.first.Address
	text, plain := j.words(f, b)
	rest, files, refused := text, []platforms.Attachment(nil), map[string]string(nil)
	if f.state == sessions.RunRan {
		rest, files, refused = j.o.Attach(ctx, f.of, text, at)
	}
	names := make([]string, 0, len(refused))
	for name := range refused {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rest += "\n\n" + j.o.Texts.Refused(at, name, refused[name])
	}
	b.Text = j.o.Redact(j.o.Strip(plain))
	quiet := j.o.Config().Quiet
	var messages []platforms.Outgoing
	for _, chunk := range j.o.Render(at, j.o.Redact(rest)) {
		messages = append(messages, platforms.Outgoing{Text: chunk, Silent: quiet})
	}
	for _, file := range files {
		messages = append(messages, platforms.Outgoing{Attachments: []platforms.Attachment{file}, Silent: quiet})
	}
	if len(messages) == 0 {
		return b, false
	}
	first := messages[0]
	first.Address, first.Thread = at, b.first.Thread
	b.first, b.More = first, messages[1:]
	return b, true
}

// words is what people read, with its frame, and what a conversation keeps of it.
func (j *Jobs) words(f finish, b brief) (shown, plain string) {
	cfg, at := j.o.Config(), b.first.Address
	switch {
	case f.state == sessions.RunMissed:
		shown = j.o.Texts.Missed(at, f.job, f.run.Slot)
		return shown, shown
	case f.blocked != "":
		shown = j.o.Texts.Blocked(at, f.job, f.blocked)
		return shown, shown
	case f.state != sessions.RunRan:
		streak := f.job.Streak + 1
		nudge := cron.Nudge(streak, cfg.Nudge, f.job.Plan.Schedule.Kind != cron.Once)
		shown = j.o.Texts.Failed(at, f.job, cron.FailureLine(f.reason), streak, nudge)
		return shown, shown
	case !cfg.Wrap:
		return f.text, f.text
	}
	title, footer := j.o.Texts.Frame(at, f.job, b.Mirror || b.InChannel)
	return cron.Wrap(cron.Frame{Name: j.o.Redact(f.job.Name), ID: f.job.ID, Title: title, Footer: footer}, f.text), f.text
}

// queue puts the first message of each brief into the outbox, with what is known of it.
func (j *Jobs) queue(tx sessions.Tx, run sessions.Run, result *Result, briefs []brief) ([]*sessions.OutboxRow, error) {
	var rows []*sessions.OutboxRow
	for _, b := range briefs {
		b.Run = run.ID
		row := &sessions.OutboxRow{Kind: sessions.OutBrief, Message: b.first}
		if err := j.put(tx, row, b.Brief); err != nil {
			return nil, err
		}
		result.Deliveries[b.Target].Rows = []sessions.OutboxID{row.ID}
		rows = append(rows, row)
	}
	return rows, nil
}

// put adds a row and its Brief.
func (j *Jobs) put(tx sessions.Tx, row *sessions.OutboxRow, b Brief) error {
	if err := tx.PutOutbox(row); err != nil {
		return err
	}
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return tx.SetValue(delivery.SpaceBrief, delivery.BriefName(row.ID), data, j.o.Now())
}
