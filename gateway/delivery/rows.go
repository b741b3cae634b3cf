package delivery

import (
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
)

// Rows renders Markdown for an address, one row per chunk, at least one. The rows are in no store yet.
func (w *Worker) Rows(kind sessions.OutboxKind, at platforms.Address, markdown string) []*sessions.OutboxRow {
	traits := platforms.TextTraits{Dialect: platforms.Plain}
	if adapter, ok := w.opt.Adapters.Adapter(at.AccountOf()); ok {
		traits = adapter.Traits().Text
	}
	chunks := format.Render(w.opt.Redact(markdown), traits)
	if len(chunks) == 0 {
		chunks = []platforms.Text{{Body: markdown, Plain: markdown, Markdown: markdown}}
	}
	out := make([]*sessions.OutboxRow, len(chunks))
	for i, c := range chunks {
		out[i] = &sessions.OutboxRow{Kind: kind, Message: platforms.Outgoing{Address: at, Text: c}}
	}
	return out
}

// Notice renders a line of Herald's own.
func (w *Worker) Notice(at platforms.Address, markdown string) *sessions.OutboxRow {
	return w.Rows(sessions.OutNotice, at, markdown)[0]
}

// Controls renders an answer that waits for nothing else: its lane is the second one of the address.
func (w *Worker) Controls(at platforms.Address, markdown string) []*sessions.OutboxRow {
	rows := w.Rows(sessions.OutControl, at, markdown)
	for _, row := range rows {
		row.Lane = at.String() + "#control"
	}
	return rows
}

// Control is the first row of Controls, for a short text.
func (w *Worker) Control(at platforms.Address, markdown string) *sessions.OutboxRow {
	return w.Controls(at, markdown)[0]
}
