package agent

import (
	"context"
	"fmt"
	"strings"

	"herald/gateway/model"
	"herald/sessions"
)

// Compaction says when and how a long conversation is shortened (spec 6.9).
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
	// MaxAttempts bounds forced compactions after the provider said that the request is too long.
	MaxAttempts int
}

// DefaultCompaction returns the documented defaults.
func DefaultCompaction() Compaction {
	return Compaction{Enabled: true, Threshold: 0.50, SmallThreshold: 0.75, SmallWindow: 512_000, ThresholdTokens: 256_000,
		ProtectFirst: 3, ProtectLast: 20, MaxAttempts: 3}
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
// call and its results, and always leaving the newest user row. ok is false when nothing is worth it.
func PlanSpan(rows []sessions.Message, first, last int) (span Span, ok bool) {
	head := min(first, len(rows))
	for head > 0 && head < len(rows) && rows[head].Role == sessions.Tool {
		head++ // results stay with their call
	}
	tail := max(head, len(rows)-last)
	newestUser := len(rows)
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Role == sessions.User && rows[i].Kind != sessions.KindSteer {
			newestUser = i
			break
		}
	}
	tail = min(tail, newestUser)
	for tail > head && rows[tail].Role == sessions.Tool {
		tail--
	}
	if tail > head && len(rows[tail-1].ToolCalls) > 0 && tail < len(rows) && rows[tail].Role == sessions.Tool {
		tail--
	}
	if tail-head < 2 {
		return Span{}, false
	}
	for _, row := range rows[:head] {
		span.Keep = append(span.Keep, row.ID)
	}
	span.Old = rows[head:tail]
	span.UpTo = rows[tail-1].ID
	return span, true
}

// shorten replaces the middle of the conversation by a summary. forced protects less, because the provider
// has said that the request does not fit.
func (r *run) shorten(ctx context.Context, forced bool) error {
	c := r.loop.Limits.Compaction
	first, last := c.ProtectFirst, c.ProtectLast
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
	summary, err := Summarise(ctx, r.loop.Model, span.Old, "")
	if err != nil {
		return err
	}
	rows, err := r.turn.Compact(ctx, span.UpTo, span.Keep, summary)
	if err != nil {
		return err
	}
	r.rows, r.in.LastPrompt, r.in.LastRows = rows, 0, 0
	return nil
}

const summaryHeader = "[Summary of the earlier conversation, made by Herald to save space. The full text is kept and can be searched.]\n"

// Summarise asks the model for a summary of rows, with an optional focus. When the model can't (an error,
// an empty answer, the demo), a plain list of what was said takes its place: compaction never loses the
// turn. Only the end of ctx is an error.
func Summarise(ctx context.Context, m model.Model, rows []sessions.Message, focus string) (string, error) {
	if m.Info().Provider != "demo" {
		ask := "Summarise the conversation below for yourself, so that you can go on without it. Keep exact names, paths, numbers, commands, decisions, open questions and what the user wants. Be brief. Do not answer it."
		if focus != "" {
			ask += " Pay most attention to: " + focus
		}
		text := clip(listing(rows, 4000), m.Info().Context*3)
		resp, err := m.Stream(ctx, model.Request{System: ask, Messages: []model.Message{{Role: "user", Text: text}}, MaxOutput: 2000}, func(model.Delta) {})
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err == nil && strings.TrimSpace(resp.Text) != "" {
			return summaryHeader + strings.TrimSpace(resp.Text), nil
		}
	}
	return summaryHeader + clip(listing(rows, 160), 8000), nil
}

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
