package platforms

import (
	"context"
	"io"
	"strings"
)

// AttachmentKind says how a platform shows an attachment.
type AttachmentKind string

// The kinds of attachment.
const (
	Image    AttachmentKind = "image"
	Video    AttachmentKind = "video"
	Audio    AttachmentKind = "audio"
	Voice    AttachmentKind = "voice" // a voice note
	Document AttachmentKind = "document"
	Sticker  AttachmentKind = "sticker"
)

// Attachment is a file beside a message. Inbound it names the platform's file in Ref and is fetched in the
// turn, so that accepting a message never waits for a download; Path is set once a local copy exists.
// Outbound Path is a local file that the media policy has allowed.
type Attachment struct {
	Kind AttachmentKind `json:"kind"`
	// Name is the file's name for people. It comes from outside: never a path; see SafeName.
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	// Size is in bytes, 0 when unknown. It is a claim of the platform: readers limit what they read.
	Size int64 `json:"size,omitempty"`
	// Ref is the platform's own handle of the file (a Telegram file id, a URL). Only the adapter reads it.
	Ref string `json:"ref,omitempty"`
	// Path is the local copy, absolute.
	Path string `json:"path,omitempty"`
	// Caption is text that belongs to this file.
	Caption string `json:"caption,omitempty"`
	// AsDocument forbids recompression ([[as_document]]).
	AsDocument bool `json:"as_document,omitempty"`
}

// Fetcher is an adapter that can download what an inbound attachment names.
type Fetcher interface {
	// Fetch copies at most limit bytes of the attachment to w. More than limit is an error and what was
	// written is to be thrown away. It honours ctx.
	Fetch(ctx context.Context, a Attachment, limit int64, w io.Writer) error
}

// KindOf returns the kind of a file by its media type, such as "image/png". A voice message, a sticker and a picture that can't be
// shown have none of their own; who knows better says so.
func KindOf(mime string) AttachmentKind {
	switch major, _, _ := strings.Cut(mime, "/"); strings.ToLower(major) {
	case "image":
		return Image
	case "video":
		return Video
	case "audio":
		return Audio
	}
	return Document
}
