package slack

import (
	"context"
	"encoding/json"
	"strings"

	"herald/platforms"
)

// body is what a message says.
type body struct {
	text  string // with ownMark for the bot's own mention
	files []platforms.Attachment
}

// maxFiles bounds the attachments of one message.
const maxFiles = 50

// body reads a message: its rich text where it has one, else its flat text; then other blocks, what was forwarded,
// and files.
func (a *Adapter) body(ctx context.Context, m wireMessage) body {
	names := a.names.in(ctx)
	text, others := richText(m.Blocks, names)
	if strings.TrimSpace(text) == "" {
		text = mrkdwn(m.Text, names)
	}
	parts := []string{text, otherBlocks(others)}
	left := maxAttachText
	for _, at := range m.Attachments {
		part := cut(attached(at, names), left)
		left -= len(part)
		parts = append(parts, part)
	}
	b := body{}
	files := m.Files
	for _, at := range m.Attachments {
		files = append(files, at.Files...)
	}
	for i, f := range files {
		if i == maxFiles {
			break
		}
		file, line := readFile(f)
		if line != "" {
			parts = append(parts, line)
			continue
		}
		b.files = append(b.files, file)
	}
	var said []string
	for _, p := range parts {
		if strings.TrimSpace(p) != "" {
			said = append(said, p)
		}
	}
	b.text = strings.Join(said, "\n")
	return b
}

// attached reads a forwarded message, or what another app has hung below its own.
func attached(at wireAttachment, names resolver) string {
	text := mrkdwn(at.Text, names)
	for _, m := range at.MessageBlocks {
		if rich, _ := richText(m.Message.Blocks, names); rich != "" {
			text = rich
			break
		}
	}
	if at.IsShare || at.IsMsgUnfurl {
		head := "Forwarded message"
		if at.AuthorName != "" {
			head += " from " + clearText(at.AuthorName)
		}
		return head + ":\n" + quote(firstOf(text, clearText(at.Fallback)))
	}
	if at.FromURL != "" {
		return "" // a preview of a link that is in the text
	}
	lines := []string{mrkdwn(at.Pretext, names), mrkdwn(at.Title, names), text}
	for _, f := range at.Fields {
		lines = append(lines, strings.TrimSpace(mrkdwn(f.Title, names)+": "+mrkdwn(f.Value, names)))
	}
	var said []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" && l != ":" {
			said = append(said, l)
		}
	}
	if len(said) == 0 {
		return clearText(at.Fallback)
	}
	return strings.Join(said, "\n")
}

// fileRef is what Attachment.Ref holds: which file, and where it is when that was told.
type fileRef struct {
	ID  string `json:"id"`
	URL string `json:"url,omitempty"`
}

// readFile returns a file as an attachment, or a line that says why it can't.
func readFile(f wireFile) (platforms.Attachment, string) {
	name := platforms.SafeName(firstOf(f.Name, f.Title, f.ID))
	switch {
	case f.IsExternal || f.Mode == "external":
		return platforms.Attachment{}, "[file " + name + ": " + clearText(firstOf(f.Private, f.Permalink)) + "]"
	case f.Mode == "tombstone":
		return platforms.Attachment{}, "[a file that was deleted]"
	case f.Mode == "hidden_by_limit":
		return platforms.Attachment{}, "[file " + name + " is hidden by the plan of this workspace]"
	case f.ID == "":
		return platforms.Attachment{}, "[file " + name + " can't be read]"
	}
	ref, _ := json.Marshal(fileRef{ID: f.ID, URL: firstOf(f.Download, f.Private)})
	return platforms.Attachment{Kind: kindOf(f), Name: name, MIME: f.MIME, Size: max(f.Size, 0), Ref: string(ref)}, ""
}

func kindOf(f wireFile) platforms.AttachmentKind {
	switch {
	case f.Subtype == "slack_audio":
		return platforms.Voice
	case f.MIME == "image/svg+xml":
		return platforms.Document
	case f.Subtype == "slack_video":
		return platforms.Video
	}
	return platforms.KindOf(f.MIME)
}
