package turn

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"herald/platforms"
	"herald/sessions"
	"herald/tools/spill"
)

// fetchTimeout bounds the download of one attachment.
const fetchTimeout = 5 * time.Minute

// inlineText is the largest text attachment whose content goes into the message, in bytes.
const inlineText = 16 << 10

// userRows makes the transcript rows of inbox items. ready is false when files, or what was said earlier, have to be
// fetched first.
func (run *Run) userRows(items []sessions.InboxItem) (rows []*sessions.Message, ready bool) {
	_, asks := run.asksEarlier(items)
	ready = !asks
	for _, item := range items {
		row := run.userRow(item, sessions.KindPlain)
		for _, a := range row.Attachments {
			ready = ready && a.Path != "" && !isText(a)
		}
		rows = append(rows, row)
	}
	if ready {
		for _, row := range rows {
			row.Content = describe(row.Content, row.Attachments)
		}
	}
	return rows, ready
}

func (run *Run) userRow(item sessions.InboxItem, kind sessions.Kind) *sessions.Message {
	e := item.Event
	row := &sessions.Message{Role: sessions.User, Kind: kind, Active: true, At: item.At}
	if m := e.Message; m != nil {
		row.Content = strings.ToValidUTF8(m.Text, "\uFFFD")
		row.Platform = m.ID
		row.Attachments = append([]platforms.Attachment(nil), m.Attachments...)
		if q := m.ReplyTo; q != nil && q.Text != "" {
			who := q.AuthorName
			if q.Own {
				who = "you"
			}
			row.Content = fmt.Sprintf("[In reply to %s: %q]\n%s", who, shorten(q.Text, 500), row.Content)
		}
	}
	if e.Internal != nil {
		row.Kind, row.Content = sessions.KindInternal, strings.ToValidUTF8(e.Internal.Text, "\uFFFD")
	}
	if e.Reaction != nil {
		row.Content = fmt.Sprintf("[The user put %s on %s]", shorten(strings.ToValidUTF8(e.Reaction.Emoji, ""), 60), reactedTo(*e.Reaction))
	}
	if e.Command != nil {
		row.Content = strings.TrimSpace("/" + e.Command.Name + " " + e.Command.Args)
	}
	if most := run.set.MaxInboundLen; most > 0 && len(row.Content) > most {
		row.Content = fmt.Sprintf("%s\n[Herald cut this message: it has %d bytes, the first %d are above]",
			strings.ToValidUTF8(row.Content[:most], ""), len(row.Content), most)
	}
	if e.Internal == nil && (run.origin.Shared || e.ChatType != platforms.DM) {
		row.Sender = e.Sender.Name
		if row.Sender == "" {
			row.Sender = string(e.Sender.ID)
		}
	}
	return row
}

func reactedTo(r platforms.Reaction) string {
	if r.OnOwn {
		return "a message of yours"
	}
	return "a message"
}

// prepare fetches the files of the rows, and what was said earlier, and appends the rows. What can't be fetched is
// said in the row and to the person.
func (run *Run) prepare(items []sessions.InboxItem, rows []*sessions.Message) error {
	earlier, err := run.earlier(items)
	if err != nil {
		return err
	}
	var lost []*sessions.OutboxRow
	for _, row := range rows {
		for i := range row.Attachments {
			a := &row.Attachments[i]
			if a.Path == "" {
				if err := run.fetch(a); err != nil {
					if run.ctx.Err() != nil {
						return context.Cause(run.ctx)
					}
					run.r.s.Log.Warn().Int64("turn", int64(run.turn.ID)).Str("kind", string(a.Kind)).Err(err).Msg("an attachment could not be fetched")
					lost = append(lost, run.row(sessions.OutNotice, fileNotice(run.say(), "attachment.download_failed", a.Name, err.Error())))
					row.Content += fmt.Sprintf("\n[The user sent %s %q, but it could not be fetched: %v]", a.Kind, a.Name, err)
				}
			}
		}
		row.Content = describe(row.Content, row.Attachments)
	}
	if earlier != nil {
		rows = append([]*sessions.Message{earlier}, rows...)
	}
	err = run.update(sessions.EdgeTurnBegin, func(tx sessions.Tx) error {
		if len(lost) > 0 {
			if err := tx.PutOutbox(lost...); err != nil {
				return err
			}
		}
		return run.appendRows(tx, rows)
	})
	if err != nil {
		return err
	}
	run.r.s.Outbox.Take(lost...)
	return nil
}

// describe adds a line for each local file, and the content of small text files.
func describe(text string, files []platforms.Attachment) string {
	var b strings.Builder
	b.WriteString(text)
	for _, a := range files {
		if a.Path == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[The user sent %s %q, saved as %s]", a.Kind, a.Name, a.Path)
		if a.Caption != "" && a.Caption != text {
			fmt.Fprintf(&b, " %s", a.Caption)
		}
		if !isText(a) {
			continue
		}
		if data, err := readSmall(a.Path, inlineText); err == nil && utf8.Valid(data) {
			fmt.Fprintf(&b, "\n```\n%s\n```", strings.TrimRight(string(data), "\n"))
		}
	}
	return b.String()
}

func isText(a platforms.Attachment) bool {
	if strings.HasPrefix(a.MIME, "text/") {
		return true
	}
	switch strings.ToLower(filepath.Ext(a.Name)) {
	case ".txt", ".md", ".csv", ".json", ".yaml", ".yml", ".log", ".xml", ".toml", ".ini":
		return true
	}
	return false
}

func readSmall(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return data, err
}

// fetch downloads one attachment into the media cache.
func (run *Run) fetch(a *platforms.Attachment) error {
	adapter, ok := run.r.s.Adapters.Adapter(run.turn.Address.AccountOf())
	if !ok {
		return fmt.Errorf("%s is not running", run.turn.Address.AccountOf())
	}
	fetcher, can := adapter.(platforms.Fetcher)
	if !can {
		return fmt.Errorf("%s can't download files", run.turn.Address.Platform)
	}
	if a.Size > run.set.MaxMedia {
		return fmt.Errorf("it has %d bytes, the limit is %d (gateway.max_inbound_media_bytes)", a.Size, run.set.MaxMedia)
	}
	if err := spill.EnsureDir(run.set.MediaDir, true); err != nil {
		return err
	}
	f, err := os.CreateTemp(run.set.MediaDir, "in-*-"+strings.ReplaceAll(platforms.SafeName(a.Name), "*", "_"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(run.ctx, fetchTimeout)
	defer cancel()
	w := &capped{w: f, left: run.set.MaxMedia, most: run.set.MaxMedia}
	err = fetcher.Fetch(ctx, *a, run.set.MaxMedia, w)
	if w.over {
		err = w.err() // also where the adapter did not care
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	if info, err := os.Stat(f.Name()); err == nil {
		a.Size = info.Size()
	}
	a.Path = f.Name()
	return nil
}

// capped is a writer that takes so many bytes and not one more, whatever an adapter believes of a file's size.
type capped struct {
	w          io.Writer
	left, most int64
	over       bool
}

func (c *capped) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		c.over = true
	}
	if c.over {
		return 0, c.err()
	}
	n, err := c.w.Write(p)
	c.left -= int64(n)
	return n, err
}

func (c *capped) err() error {
	return fmt.Errorf("it has more than %d bytes, the limit (gateway.max_inbound_media_bytes)", c.most)
}

// shorten cuts s to about n bytes at a rune border.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
