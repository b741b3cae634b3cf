package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/textproto"
	"os"
	"strconv"

	"herald/platforms"
	"herald/platforms/wire"
)

// usable returns the files that can be sent, and notes why the others can't.
func (o *outbound) usable(ctx context.Context, channel string) []wire.File {
	var files []wire.File
	limit := int64(0) // asked for only when a file is larger than what every place takes
	for _, at := range o.out.Attachments {
		f, err := o.Open(at, 0, math.MaxInt64)
		switch {
		case err != nil:
			o.Note(at, err.Error())
		case f.Size > freeUpload && f.Size > o.limit(ctx, channel, &limit):
			o.Note(at, fmt.Sprintf("it has %s, Discord takes at most %s here", wire.Megabytes(f.Size), wire.Megabytes(limit)))
		default:
			files = append(files, f)
		}
	}
	return files
}

// limit returns the largest file that a place takes, asked for once.
func (o *outbound) limit(ctx context.Context, channel string, known *int64) int64 {
	if *known == 0 {
		*known = o.a.uploadLimit(ctx, channel)
	}
	return *known
}

// withFiles sends the text with the first files, and the others after it, ten to a message. What Discord finds too
// large becomes a note.
func (o *outbound) withFiles(ctx context.Context, channel string, send func(ctx context.Context, text string,
	files []wire.File) error) error {
	files := o.usable(ctx, channel)
	text := o.text
	for _, f := range files {
		if f.Caption != "" && text == "" {
			text = cut(f.Caption, textLimit)
		}
	}
	if len(files) == 0 {
		if text == "" {
			return nil // nothing but notes
		}
		return send(ctx, text, nil)
	}
	for len(files) > 0 {
		group := files[:min(len(files), filesLimit)]
		files = files[len(group):]
		err := send(ctx, text, group)
		switch {
		case err == nil:
		case isKind(err, platforms.TooLong):
			if err := o.apart(ctx, text, group, send); err != nil {
				return err
			}
		default:
			if err := o.Failed(err, wire.Attachments(group)...); err != nil {
				return err
			}
		}
		text = ""
	}
	return nil
}

// apart sends files that are too large together, or one of which is, each alone. The text comes in any case.
func (o *outbound) apart(ctx context.Context, text string, group []wire.File,
	send func(ctx context.Context, text string, files []wire.File) error) error {
	if text != "" {
		if err := o.Failed(send(ctx, text, nil)); err != nil {
			return err
		}
	}
	for _, f := range group {
		if len(group) == 1 {
			o.Note(f.Attachment, "Discord finds it too large ("+wire.Megabytes(f.Size)+")")
			continue
		}
		err := send(ctx, "", []wire.File{f})
		if isKind(err, platforms.TooLong) {
			o.Note(f.Attachment, "Discord finds it too large")
			continue
		}
		if err := o.Failed(err, f.Attachment); err != nil {
			return err
		}
	}
	return nil
}

// withNames writes the files' names into the payload and returns the files.
func withNames(p *payload, files []wire.File) []wire.File {
	p.Attachments = make([]payloadFile, len(files))
	for i, f := range files {
		p.Attachments[i] = payloadFile{ID: i, Filename: f.Name}
		if f.Caption != "" {
			p.Attachments[i].Description = cut(f.Caption, 1024)
		}
	}
	return files
}

// form is a multipart body whose files are read while it is sent. Its length is known beforehand, so that a broken
// transfer is never taken for a whole one.
type form struct {
	parts    []io.Reader
	files    []*os.File
	size     int64
	boundary string
}

// newForm makes the form of a payload with files.
func newForm(payload any, files []wire.File) (*form, error) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	f := &form{}
	var head bytes.Buffer
	w := multipart.NewWriter(&head)
	f.boundary = w.Boundary()
	flush := func() {
		part := bytes.Clone(head.Bytes())
		head.Reset()
		f.parts, f.size = append(f.parts, bytes.NewReader(part)), f.size+int64(len(part))
	}
	if err := part(w, `form-data; name="payload_json"`, "application/json"); err != nil {
		return nil, err
	}
	head.Write(raw)
	for i, at := range files {
		kind := at.MIME
		if kind == "" {
			kind = "application/octet-stream"
		}
		disposition := fmt.Sprintf(`form-data; name="files[%s]"; filename=%s`, strconv.Itoa(i), quoted(at.Name))
		if err := part(w, disposition, kind); err != nil {
			f.close()
			return nil, err
		}
		flush()
		body, err := os.Open(at.Path)
		if err != nil {
			f.close()
			return nil, err
		}
		f.files = append(f.files, body)
		f.parts, f.size = append(f.parts, io.LimitReader(body, at.Size)), f.size+at.Size
	}
	if err := w.Close(); err != nil {
		f.close()
		return nil, err
	}
	flush()
	return f, nil
}

func part(w *multipart.Writer, disposition, kind string) error {
	_, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}, "Content-Type": {kind}})
	return err
}

// quoted writes a file's name for a header; SafeName left no quotes and no controls in it.
func quoted(name string) string { return `"` + name + `"` }

// reader returns the body. It is closed with the form and not by the transport.
func (f *form) reader() io.Reader { return io.NopCloser(io.MultiReader(f.parts...)) }

func (f *form) length() int64 { return f.size }

func (f *form) contentType() string { return "multipart/form-data; boundary=" + f.boundary }

func (f *form) close() {
	for _, file := range f.files {
		_ = file.Close()
	}
}
