package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"herald/gateway/model"
	"herald/sessions"
)

// Compaction says when and how a long conversation is shortened.
type Compaction struct {
	Enabled bool
	// Threshold is the share of the context window at which it happens; windows under SmallWindow tokens
	// take SmallThreshold instead. ThresholdTokens caps both.
	Threshold       float64
	SmallThreshold  float64
	SmallWindow     int
	ThresholdTokens int
	// ProtectFirst and ProtectLast rows are never summarised.
	ProtectFirst, ProtectLast int
	// TargetRatio is the share of the threshold that the newest rows may take; fewer than ProtectLast of them are
	// then kept. 0 keeps all of ProtectLast. MinTailUser messages of people stay in any case.
	TargetRatio float64
	MinTailUser int
	// SummaryTimeout bounds one summary, SummaryTotal all those of a turn together; 0 leaves the time to the model.
	SummaryTimeout, SummaryTotal time.Duration
	// MaxAttempts bounds forced compactions after the provider said that the request is too long.
	MaxAttempts int
}

// DefaultCompaction returns the documented defaults.
func DefaultCompaction() Compaction {
	return Compaction{Enabled: true, Threshold: 0.50, SmallThreshold: 0.75, SmallWindow: 512_000, ThresholdTokens: 256_000,
		ProtectFirst: 3, ProtectLast: 20, TargetRatio: 0.20, MinTailUser: 1, SummaryTimeout: 2 * time.Minute, SummaryTotal: 10 * time.Minute,
		MaxAttempts: 3}
}

// limit returns the number of input tokens at which a conversation is shortened.
func (c Compaction) limit(window int) int {
	share := c.Threshold
	if window < c.SmallWindow {
		share = max(share, c.SmallThreshold)
	}
	n := int(share * float64(window))
	if c.ThresholdTokens > 0 {
		n = min(n, c.ThresholdTokens)
	}
	return n
}

// tail returns how many of the newest rows stay.
func (c Compaction) tail(rows []sessions.Message, window int) int {
	last := min(c.ProtectLast, len(rows))
	if c.TargetRatio > 0 {
		room := int(c.TargetRatio * float64(c.limit(window)))
		for n := range last {
			if room -= Estimate(rows[len(rows)-1-n : len(rows)-n]); room < 0 {
				last = n
				break
			}
		}
	}
	people := 0
	for i := len(rows) - 1; i >= 0 && people < c.MinTailUser; i-- {
		switch rows[i].Kind {
		case sessions.KindSteer, sessions.KindSummary, sessions.KindEarlier, sessions.KindDelivery, sessions.KindInternal, sessions.KindMirror:
			continue
		}
		if rows[i].Role == sessions.User {
			people++
			last = max(last, len(rows)-i)
		}
	}
	return last
}

// keepShort compacts when the next request would be over the threshold.
func (r *run) keepShort(ctx context.Context) error {
	c := r.loop.Limits.Compaction
	if !c.Enabled {
		return nil
	}
	tokens := r.size()
	if tokens < c.limit(r.loop.Model.Info().Context) {
		return nil
	}
	return r.shorten(ctx, false)
}

// size is the provider's last count plus an estimate of what came after it, or an estimate of everything.
func (r *run) size() int {
	if r.in.LastPrompt > 0 && r.in.LastRows <= len(r.rows) {
		return int(r.in.LastPrompt) + Estimate(r.rows[r.in.LastRows:])
	}
	n := len(r.in.System)/4 + Estimate(r.rows)
	for _, t := range r.in.Tools {
		n += (len(t.Description) + len(t.Parameters)) / 4
	}
	return n
}

// Span is the part of a conversation that a compaction replaces.
type Span struct {
	// Keep are rows before it that stay, UpTo is its last row, Old its rows.
	Keep []sessions.RowID
	UpTo sessions.RowID
	Old  []sessions.Message
}

// PlanSpan chooses what to summarise: everything but the first and last rows, never cutting between a tool
// call and its results, and always leaving the newest rows in which people spoke to the bot, as far as nothing
// stands between them, and every message that has no complete answer yet. ok is false when nothing is worth it.
func PlanSpan(rows []sessions.Message, first, last int) (span Span, ok bool) {
	whole := wholeCuts(rows)
	head := min(max(first, 0), len(rows))
	for !whole[head] {
		head++ // results stay with their call
	}
	tail := max(head, min(len(rows), len(rows)-last))
	newestUser := len(rows)
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Role == sessions.User && rows[i].Kind == sessions.KindPlain {
			newestUser = i
			break
		}
	}
	// Messages that were taken together wait for their answer together.
	for newestUser > 0 && newestUser < len(rows) && rows[newestUser-1].Role == sessions.User && rows[newestUser-1].Kind == sessions.KindPlain {
		newestUser--
	}
	tail = min(tail, newestUser)
	for tail > 0 && !whole[tail] {
		tail--
	}
	if tail-head < 2 {
		return Span{}, false
	}
	for _, row := range rows[:head] {
		span.Keep = append(span.Keep, row.ID)
	}
	open := unanswered(rows)
	for i, row := range rows[head:tail] {
		if head+i >= open && row.Role == sessions.User && row.Kind == sessions.KindPlain {
			span.Keep = append(span.Keep, row.ID) // a summary is no place for a question that still waits
			continue
		}
		span.Old = append(span.Old, row)
	}
	span.UpTo = rows[tail-1].ID
	return span, len(span.Old) >= 2
}

// unanswered returns the place from which on nothing that was said has had a complete answer.
func unanswered(rows []sessions.Message) int {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Role == sessions.Assistant && rows[i].Kind == sessions.KindPlain && len(rows[i].ToolCalls) == 0 {
			return i + 1
		}
	}
	return 0
}

// wholeCuts tells for each place between two rows, from before the first to behind the last, that no tool call stands
// before it with a result behind it. What was heard or mirrored meanwhile may stand between a call and its results.
func wholeCuts(rows []sessions.Message) []bool {
	cuts := make([]bool, len(rows)+1)
	reach := 0 // the place behind the last result of the calls so far
	for i := range cuts {
		cuts[i] = i >= reach
		if i == len(rows) || len(rows[i].ToolCalls) == 0 {
			continue
		}
		for j := i + 1; j < len(rows) && len(rows[j].ToolCalls) == 0; j++ {
			if rows[j].Role == sessions.Tool {
				reach = j + 1
			}
		}
	}
	return cuts
}

// shorten replaces the middle of the conversation by a summary. forced protects less, because the provider
// has said that the request does not fit.
func (r *run) shorten(ctx context.Context, forced bool) error {
	c := r.loop.Limits.Compaction
	first, last := c.ProtectFirst, c.tail(r.rows, r.loop.Model.Info().Context)
	if forced {
		last = max(2, last>>r.compact)
		first = 0
	}
	span, ok := PlanSpan(r.rows, first, last)
	if !ok {
		if !forced {
			return nil // nothing to gain: the provider decides whether it fits
		}
		return &model.Error{Kind: model.ContextLength, Provider: r.loop.Model.Info().Provider,
			Err: fmt.Errorf("the newest messages alone are too long for the model")}
	}
	if !forced && !r.in.Cooldown.Cold(r.in.Now()) {
		return nil // the last summary failed a moment ago, and the provider has not refused yet
	}
	if notifier, ok := r.turn.(Notifier); ok {
		notifier.Compacting()
	}
	summary, err := r.summary(ctx, span.Old, forced)
	if err != nil || summary == "" {
		return err
	}
	rows, err := r.turn.Compact(ctx, span.UpTo, span.Keep, summary)
	if err != nil {
		return err
	}
	r.rows, r.in.LastPrompt, r.in.LastRows = rows, 0, 0
	return nil
}

// Notifier is a Turn that wants to know when a summary begins, which may take a while.
type Notifier interface{ Compacting() }

// summary makes the summary within its time. When the model can't make one, a plain list takes its place where the
// request has to become shorter; elsewhere it is empty and the conversation stays as it is for a while.
func (r *run) summary(ctx context.Context, rows []sessions.Message, forced bool) (string, error) {
	c := r.loop.Limits.Compaction
	limit := c.SummaryTimeout
	if c.SummaryTotal > 0 {
		left := max(c.SummaryTotal-r.summing, time.Millisecond)
		if limit == 0 || left < limit {
			limit = left
		}
	}
	call, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		call, cancel = context.WithTimeout(ctx, limit)
	}
	began := r.in.Now()
	text, ok := ask(call, r.loop.Model, rows, "")
	cancel()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	r.summing += r.in.Now().Sub(began)
	r.in.Cooldown.Note(ok, r.in.Now())
	switch {
	case ok:
		return text, nil
	case forced:
		return plain(rows), nil
	}
	return "", nil
}

const summaryHeader = "[Summary of the earlier conversation, made by Herald to save space. The full text is kept and can be searched.]\n"

// Summarise asks the model for a summary of rows, with an optional focus. When the model can't (an error,
// an empty answer, the demo), a plain list of what was said takes its place: compaction never loses the
// turn. Only the end of ctx is an error.
func Summarise(ctx context.Context, m model.Model, rows []sessions.Message, focus string) (string, error) {
	text, ok := ask(ctx, m, rows, focus)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if !ok {
		text = plain(rows)
	}
	return text, nil
}

// ask lets the model summarise. ok is false when it could not. The demo writes a plain list, which is its best.
func ask(ctx context.Context, m model.Model, rows []sessions.Message, focus string) (text string, ok bool) {
	if m.Info().Provider == "demo" {
		return plain(rows), true
	}
	ask := "Summarise the conversation below for yourself, so that you can go on without it. Keep exact names, paths, numbers, commands, decisions, open questions and what the user wants. Be brief. Do not answer it."
	if focus != "" {
		ask += " Pay most attention to: " + focus
	}
	all := clip(listing(rows, 4000), m.Info().Context*3)
	resp, err := m.Stream(ctx, model.Request{System: ask, Messages: []model.Message{{Role: "user", Text: all}}, MaxOutput: 2000},
		func(model.Delta) {})
	if err != nil || strings.TrimSpace(resp.Text) == "" {
		return "", false
	}
	return summaryHeader + strings.TrimSpace(resp.Text), true
}

// plain is a summary without a model: what was said, shortened.
func plain(rows []sessions.Message) string { return summaryHeader + clip(listing(rows, 160), 8000) }

// listing writes rows as lines, each cut at max characters.
func listing(rows []sessions.Message, most int) string {
	var b strings.Builder
	for _, row := range rows {
		if row.Kind == sessions.KindNotice {
			continue
		}
		who := string(row.Role)
		if row.Sender != "" {
			who = row.Sender
		}
		if row.Content != "" {
			fmt.Fprintf(&b, "%s: %s\n", who, clip(row.Content, most))
		}
		for _, c := range row.ToolCalls {
			fmt.Fprintf(&b, "%s called %s %s\n", who, c.Name, clip(c.Arguments, most))
		}
	}
	return b.String()
}

// clip cuts s to about n bytes at a rune border, keeping its beginning and end.
func clip(s string, n int) string {
	if n <= 0 || len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n*2/3], "") + " … " + strings.ToValidUTF8(s[len(s)-n/3:], "")
}
