package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
)

// Parts is how far one outgoing message has come that may need several requests: which of its parts are visible, and what the
// person hears about the others. A message fails as a whole only while nothing of it is visible; from then on it counts as sent,
// and what is missing becomes a note.
type Parts struct {
	// Platform is the platform's name for people.
	Platform string
	// Log hears about files that did not go out, with Chat unless that is empty.
	Log  *zerolog.Logger
	Chat string

	// Receipt grows with each part.
	Receipt platforms.Receipt
	// Some says that a part is visible.
	Some bool
}

// Sent notes that a message is visible. id may be empty on a platform that gives none.
func (p *Parts) Sent(id platforms.MessageID) {
	switch {
	case !p.Some:
		p.Some, p.Receipt.Message = true, id
	case id != "":
		p.Receipt.More = append(p.Receipt.More, id)
	}
}

// Note tells the person that a file did not go out, and why.
func (p *Parts) Note(at platforms.Attachment, why string) {
	p.Receipt.Notes = append(p.Receipt.Notes, fmt.Sprintf("%s was not sent: %s.", FileName(at), why))
}

// Failed says what the error of one part means for the whole: err while nothing is visible, else nil, and the part's files are
// noted. A nil err stays nil.
func (p *Parts) Failed(err error, files ...platforms.Attachment) error {
	if err == nil || !p.Some {
		return err
	}
	for _, f := range files {
		p.Note(f, p.Why(err))
	}
	if p.Log != nil {
		line := p.Log.Warn().Err(err).Int("files", len(files))
		if p.Chat != "" {
			line = line.Str("chat", p.Chat)
		}
		line.Msg("a part of a message could not be sent")
	}
	return nil
}

// Why puts the error of a part into words for the person, as Note takes them.
func (p *Parts) Why(err error) string {
	switch e := platforms.AsSendError(err); {
	case e.Kind == platforms.RateLimited:
		return fmt.Sprintf("%s asks to wait %s", p.Platform, e.RetryAfter.Round(time.Second))
	case e.Kind == platforms.TooLong:
		return p.Platform + " finds it too large"
	case e.Certainty == platforms.Unknown:
		return "the connection broke, it may have arrived all the same"
	case e.Kind == platforms.Transient:
		return p.Platform + " could not be reached"
	default:
		return p.Platform + " refused it: " + string(e.Kind)
	}
}

// File is an attachment that can be sent.
type File struct {
	platforms.Attachment
	Name string // one that is safe to show and to write into a header; never empty
	Size int64  // as it is on the disk
}

// Errors of Open, as they are told to the person.
var (
	errNoFile     = errors.New("the file does not exist")
	errUnreadable = errors.New("it is no readable file")
)

// Open returns an attachment as a file that can be sent: one that exists, is a regular file, and has from least to most bytes
// (both inclusive). The error says why not, in words for Note.
func (p *Parts) Open(at platforms.Attachment, least, most int64) (File, error) {
	f := File{Attachment: at, Name: FileName(at)}
	info, err := os.Stat(at.Path)
	switch {
	case at.Path == "" || errors.Is(err, os.ErrNotExist):
		return f, errNoFile
	case err != nil || !info.Mode().IsRegular():
		return f, errUnreadable
	case info.Size() < least:
		return f, fmt.Errorf("the file is empty, which %s refuses", p.Platform)
	case info.Size() > most:
		return f, fmt.Errorf("it has %s, %s takes at most %s", Megabytes(info.Size()), p.Platform, Megabytes(most))
	}
	f.Size = info.Size()
	return f, nil
}

// Files returns those of the attachments that can be sent, in order, and notes why the others can't; see Open.
func (p *Parts) Files(list []platforms.Attachment, least, most int64) []File {
	var files []File
	for _, at := range list {
		f, err := p.Open(at, least, most)
		if err != nil {
			p.Note(at, err.Error())
			continue
		}
		files = append(files, f)
	}
	return files
}

// FileName returns the name of an attachment that is safe to show: its own, else that of its file.
func FileName(at platforms.Attachment) string {
	name := at.Name
	if name == "" {
		name = filepath.Base(at.Path)
	}
	return platforms.SafeName(name)
}

// Attachments returns the attachments of files.
func Attachments(files []File) []platforms.Attachment {
	list := make([]platforms.Attachment, len(files))
	for i, f := range files {
		list[i] = f.Attachment
	}
	return list
}

// ButtonData is the most bytes of Button.Data, on every platform.
const ButtonData = 64

// CheckButtons returns a BadRequest error for a button without a label or with data that has not 1 to ButtonData bytes.
func CheckButtons(rows [][]platforms.Button) error {
	for _, row := range rows {
		for _, b := range row {
			switch {
			case strings.TrimSpace(b.Label) == "":
				return platforms.Failure(platforms.BadRequest, "a button has no label")
			case b.Data == "" || len(b.Data) > ButtonData:
				return platforms.Failure(platforms.BadRequest, "button %q has %d bytes of data: want 1 to %d", b.Label, len(b.Data), ButtonData)
			}
		}
	}
	return nil
}

// CopyFile copies a file from a server, at most limit bytes: one that has more is TooLong, whatever the server said before.
func CopyFile(w io.Writer, r io.Reader, limit int64) error {
	n, err := io.Copy(w, io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("the file could not be read: %w", err)
	}
	if n > limit {
		return platforms.Failure(platforms.TooLong, "the file has more than %s", Megabytes(limit))
	}
	return nil
}

// Megabytes writes a size for people, such as "1.5 MB".
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
