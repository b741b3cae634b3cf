package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"herald/platforms"
)

// media keeps the files of messages: one folder each, named by an id of ours, that holds the file under
// its own safe name. Nothing that a person or an agent names is ever a path here.
type media struct {
	dir  string // absolute
	root *os.Root
}

const partSuffix = ".part"

// errTooBig says that a file is over the limit.
var errTooBig = errors.New("file is over the limit")

// openMedia makes the folder private, opens it, and removes what a crash left half written.
func openMedia(dir string) (*media, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(abs, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	m := &media{dir: abs, root: root}
	names, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	for _, n := range names {
		if strings.HasSuffix(n.Name(), partSuffix) {
			_ = root.RemoveAll(n.Name())
		}
	}
	return m, nil
}

// Close releases the folder.
func (m *media) Close() error { return m.root.Close() }

// fileID makes the id of a file of a message of ours from what names the message and the file's place in
// it, so that a repeated send stores its files once.
func fileID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// newFileID makes an id that nobody can guess.
func newFileID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// validFileID reports whether s has the form of a file's id.
func validFileID(s string) bool {
	if len(s) != 32 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// save stores at most limit bytes of r under id, on disk for good before it returns. A file that is
// stored already under the id is kept, and r is read to its end all the same. errTooBig: over the limit,
// nothing stays.
func (m *media) save(ctx context.Context, id, name, claimed string, r io.Reader, limit int64) (file, error) {
	name = platforms.SafeName(name)
	part := id + "." + rand.Text() + partSuffix
	if err := m.root.Mkdir(part, 0o700); err != nil {
		return file{}, err
	}
	defer func() { _ = m.root.RemoveAll(part) }() // gone already once renamed

	head, size, err := m.write(ctx, filepath.Join(part, name), r, limit)
	if err != nil {
		return file{}, err
	}
	f := file{ID: id, Name: name, Size: size}
	f.MIME, f.Kind = mimeOf(head, name, claimed)
	if err := m.root.Rename(part, id); err != nil {
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return file{}, err
		}
		stored, err := m.stat(id)
		if err != nil {
			return file{}, err
		}
		f.Name, f.Size = stored.Name(), stored.Size()
	}
	return f, m.sync()
}

// write makes one new file and returns its first bytes and its size.
func (m *media) write(ctx context.Context, path string, r io.Reader, limit int64) (head []byte, size int64, err error) {
	w, err := m.root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	var sniff bytes.Buffer
	src := io.LimitReader(contextReader{ctx, r}, limit+1)
	if _, err := io.CopyN(io.MultiWriter(w, &sniff), src, 512); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	rest, err := io.Copy(w, src)
	if err != nil {
		return nil, 0, err
	}
	size = int64(sniff.Len()) + rest
	if size > limit {
		return nil, 0, errTooBig
	}
	return sniff.Bytes(), size, w.Sync()
}

func (m *media) sync() error {
	d, err := m.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// open returns a stored file. fs.ErrNotExist: no file has that id.
func (m *media) open(id string) (*os.File, fs.FileInfo, error) {
	info, err := m.stat(id)
	if err != nil {
		return nil, nil, err
	}
	f, err := m.root.OpenFile(filepath.Join(id, info.Name()), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, nil, fs.ErrNotExist
	}
	return f, info, nil
}

func (m *media) stat(id string) (fs.FileInfo, error) {
	if !validFileID(id) {
		return nil, fs.ErrNotExist
	}
	d, err := m.root.Open(id)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.ReadDir(1)
	if err != nil || !names[0].Type().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return names[0].Info()
}

// path is where a stored file lies, for the agent's tools.
func (m *media) path(f file) string { return filepath.Join(m.dir, f.ID, f.Name) }

// remove deletes a stored file. One that is gone is no error.
func (m *media) remove(id string) error {
	if !validFileID(id) {
		return nil
	}
	return m.root.RemoveAll(id)
}

// mimeOf decides what a file is: by its first bytes where they tell, else by what the sender claims, else
// by its name.
func mimeOf(head []byte, name, claimed string) (string, platforms.AttachmentKind) {
	sniffed := http.DetectContentType(head)
	base, _, _ := mime.ParseMediaType(sniffed)
	switch kind, _, _ := strings.Cut(base, "/"); kind {
	case "image":
		return base, platforms.Image
	case "audio":
		return base, platforms.Audio
	case "video":
		return base, platforms.Video
	}
	// The bytes are no known medium, so a claim or an ending that says so is wrong or unknown to us: it
	// may still name a kind of document.
	for _, c := range []string{claimed, mime.TypeByExtension(filepath.Ext(name))} {
		t, _, err := mime.ParseMediaType(c)
		if err != nil || t == "application/octet-stream" || strings.HasPrefix(t, "image/") && t != "image/svg+xml" {
			continue
		}
		switch kind, _, _ := strings.Cut(t, "/"); kind {
		case "audio":
			return t, platforms.Audio
		case "video":
			return t, platforms.Video
		}
		return t, platforms.Document
	}
	return base, platforms.Document
}

// contextReader ends a copy when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// takeFiles copies the attachments of an outgoing message into the media folder. notes name those that
// could not be. An error is a failure of our own folder.
func (a *Adapter) takeFiles(ctx context.Context, out platforms.Outgoing) (files []file, notes []string, err error) {
	for i, at := range out.Attachments {
		name := at.Name
		if name == "" {
			name = filepath.Base(at.Path)
		}
		name = platforms.SafeName(name)
		nonce := out.Nonce
		if nonce == "" {
			nonce = rand.Text()
		}
		f, err := a.takeFile(ctx, fileID("agent", string(out.Address.Chat), nonce, fmt.Sprint(i)), name, at)
		var source *sourceError
		switch {
		case errors.Is(err, errTooBig):
			notes = append(notes, fmt.Sprintf("%s was not sent: it is over the limit of %s", name, bytesText(a.opts.MaxUpload)))
		case errors.As(err, &source):
			notes = append(notes, fmt.Sprintf("%s was not sent: %v", name, source))
		case err != nil:
			return nil, nil, err
		default:
			files = append(files, f)
		}
	}
	return files, notes, nil
}

// sourceError is a fault of the file that is to be sent, not of ours.
type sourceError struct{ text string }

func (e *sourceError) Error() string { return e.text }

func (a *Adapter) takeFile(ctx context.Context, id, name string, at platforms.Attachment) (file, error) {
	// O_NONBLOCK: a pipe must not hold up the send.
	src, err := os.OpenFile(at.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // without the path: notes are shown in the chat
		}
		return file{}, &sourceError{err.Error()}
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return file{}, &sourceError{"it is no regular file"}
	}
	if info.Size() > a.opts.MaxUpload {
		return file{}, errTooBig
	}
	f, err := a.media.save(ctx, id, name, at.MIME, src, a.opts.MaxUpload)
	if err != nil {
		return file{}, err
	}
	if at.Kind == platforms.Voice && f.Kind == platforms.Audio {
		f.Kind = platforms.Voice
	}
	if at.AsDocument {
		f.Kind = platforms.Document
	}
	f.Note = at.Caption
	return f, nil
}

// Fetch copies an uploaded file to w. The files of this platform are local already, so this is for callers
// that treat every platform alike. Errors: an unknown Ref, more than limit bytes, those of w.
func (a *Adapter) Fetch(ctx context.Context, at platforms.Attachment, limit int64, w io.Writer) error {
	f, info, err := a.media.open(at.Ref)
	if err != nil {
		return fmt.Errorf("file %q of the browser chat: %w", platforms.SafeName(at.Name), err)
	}
	defer f.Close()
	if info.Size() > limit {
		return fmt.Errorf("file %q has %d bytes, at most %d may be fetched", platforms.SafeName(at.Name), info.Size(), limit)
	}
	_, err = io.Copy(w, io.LimitReader(contextReader{ctx, f}, limit))
	return err
}

// bytesText writes a count of bytes for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
