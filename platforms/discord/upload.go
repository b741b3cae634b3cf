package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"herald/platforms"
)

// file is an attachment that can be sent.
type file struct {
	platforms.Attachment
	name string
	size int64
}

func fileName(at platforms.Attachment) string {
	name := at.Name
	if name == "" {
		name = filepath.Base(at.Path)
	}
	return platforms.SafeName(name)
}

// usable sorts out files that can't be sent and notes why.
func (o *outbound) usable(ctx context.Context, channel string) []file {
	var files []file
	limit := int64(0) // asked for only when a file is larger than what every place takes
	for _, at := range o.out.Attachments {
		info, err := os.Stat(at.Path)
		switch {
		case at.Path == "" || errors.Is(err, os.ErrNotExist):
			o.note(at, "the file does not exist")
		case err != nil || !info.Mode().IsRegular():
			o.note(at, "it is no readable file")
		case info.Size() > freeUpload && info.Size() > o.limit(ctx, channel, &limit):
			o.note(at, fmt.Sprintf("it has %s, Discord takes at most %s here", megabytes(info.Size()), megabytes(limit)))
		default:
			files = append(files, file{Attachment: at, name: fileName(at), size: info.Size()})
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
func (o *outbound) withFiles(ctx context.Context, channel string, send func(ctx context.Context, text string, files []file) error) error {
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
		case !o.some:
			return err
		default:
			o.failed(group, err)
		}
		text = ""
	}
	return nil
}

// apart sends files that are too large together, or one of which is, each alone. The text comes in any case.
func (o *outbound) apart(ctx context.Context, text string, group []file, send func(ctx context.Context, text string, files []file) error) error {
	if text != "" {
		if err := send(ctx, text, nil); err != nil {
			if !o.some {
				return err
			}
		}
	}
	for _, f := range group {
		if len(group) == 1 {
			o.note(f.Attachment, "Discord finds it too large ("+megabytes(f.size)+")")
			continue
		}
		if err := send(ctx, "", []file{f}); err != nil {
			if !o.some && !isKind(err, platforms.TooLong) {
				return err
			}
			o.failed([]file{f}, err)
		}
	}
	return nil
}

// failed notes files that did not get through.
func (o *outbound) failed(group []file, err error) {
	e := platforms.AsSendError(err)
	why := "Discord refused it: " + e.Err.Error()
	switch {
	case e.Kind == platforms.TooLong:
		why = "Discord finds it too large"
	case e.Kind == platforms.RateLimited:
		why = fmt.Sprintf("Discord asks to wait %s", e.RetryAfter.Round(time.Second))
	case e.Certainty == platforms.Unknown:
		why = "the connection broke, it may have arrived all the same"
	case e.Kind == platforms.Transient:
		why = "Discord could not be reached"
	}
	for _, f := range group {
		o.note(f.Attachment, why)
	}
	o.a.s.Log.Warn().Err(err).Str("chat", string(o.out.Address.Chat)).Int("files", len(group)).Msg("files could not be sent")
}

// withNames writes the files' names into the payload and returns the files.
func withNames(p *payload, files []file) []file {
	p.Attachments = make([]payloadFile, len(files))
	for i, f := range files {
		p.Attachments[i] = payloadFile{ID: i, Filename: f.name}
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
func newForm(payload any, files []file) (*form, error) {
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
		disposition := fmt.Sprintf(`form-data; name="files[%s]"; filename=%s`, strconv.Itoa(i), quoted(at.name))
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
		f.parts, f.size = append(f.parts, io.LimitReader(body, at.size)), f.size+at.size
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

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
