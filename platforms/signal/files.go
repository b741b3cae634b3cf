package signal

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"herald/platforms"
	"herald/platforms/wire"
)

// inlineFile is up to how many bytes a file travels inside the request. A larger one is named by its path when the
// daemon is on this machine and can be expected to read it.
const inlineFile = 8 << 20

// outFile is a file on its way out.
type outFile struct {
	wire.File
	mime string
}

// parts cuts an Outgoing into messages of Signal's: the text goes with the first one that can carry it.
func (o *outbound) parts(ctx context.Context) []part {
	var images, voices []outFile
	var singles []outFile
	for _, at := range o.out.Attachments {
		f, err := o.open(at)
		if err != nil {
			o.Note(at, err.Error())
			continue
		}
		switch {
		case at.Kind == platforms.Voice:
			voices = append(voices, o.asVoice(ctx, f))
		case at.Kind == platforms.Image && !at.AsDocument:
			images = append(images, f)
		default:
			singles = append(singles, f)
		}
	}
	var out []part
	for len(images) > 0 {
		n, size := 0, int64(0)
		for n < len(images) && n < imagesAtOnce && (n == 0 || size+images[n].Size <= o.a.rpc.inline) {
			size += images[n].Size
			n++
		}
		out = append(out, part{files: images[:n], text: caption(images[:n])})
		images = images[n:]
	}
	for _, f := range singles {
		out = append(out, part{files: []outFile{f}, text: caption([]outFile{f})})
	}
	text := o.out.Text
	switch {
	case text.Body == "":
	case len(out) > 0 && out[0].text.Body == "":
		out[0].text = text
	default:
		out = append([]part{{text: text}}, out...)
	}
	for _, f := range voices {
		out = append(out, part{files: []outFile{f}, voice: true})
	}
	return out
}

// caption is the text that belongs to a file of its own.
func caption(files []outFile) platforms.Text {
	if len(files) == 1 && files[0].Caption != "" && units(files[0].Caption) <= TextLimit {
		return platforms.Text{Body: files[0].Caption, Plain: files[0].Caption}
	}
	return platforms.Text{}
}

// open looks whether a file can be sent.
func (o *outbound) open(at platforms.Attachment) (outFile, error) {
	file, err := o.Open(at, 0, FileLimit)
	if err != nil {
		return outFile{}, err
	}
	f := outFile{File: file, mime: at.MIME}
	if f.mime == "" {
		f.mime = mime.TypeByExtension(strings.ToLower(filepath.Ext(f.Name)))
	}
	if f.mime, _, _ = strings.Cut(f.mime, ";"); f.mime == "" || !strings.Contains(f.mime, "/") || strings.ContainsAny(f.mime, ", ") {
		f.mime = "application/octet-stream"
	}
	return f, nil
}

// attached writes files into a request while it goes out, so that they are never in memory as a whole.
type attached struct{ files []outFile }

// into returns the request's body: the JSON of a call with params.attachments put in.
func (t *attached) into(call []byte) io.ReadCloser {
	var open openFiles
	// The keys of the call are sorted, so params is its last one, and params is never empty.
	head := bytes.TrimSuffix(call, []byte("}}"))
	readers := []io.Reader{bytes.NewReader(head), strings.NewReader(`,"attachments":[`)}
	for i, f := range t.files {
		if i > 0 {
			readers = append(readers, strings.NewReader(","))
		}
		opening, _ := json.Marshal("data:" + f.mime + ";filename=" + uriName.Replace(f.Name) + ";base64,")
		file := &base64File{path: f.Path, left: f.Size}
		open = append(open, file)
		readers = append(readers, bytes.NewReader(opening[:len(opening)-1]), file, strings.NewReader(`"`))
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(append(readers, strings.NewReader("]}}"))...), open}
}

// openFiles are the files of a request; closing it closes those that are open still.
type openFiles []*base64File

func (o openFiles) Close() error {
	for _, b := range o {
		b.close()
	}
	return nil
}

// uriName takes out of a name what has a meaning in a data URI.
var uriName = strings.NewReplacer(";", "_", ",", "_", "=", "_", "%", "_")

// base64File reads a file as base64. It opens the file at the first read and closes it at the end.
type base64File struct {
	path string
	left int64 // bytes of the file that may still be read

	mu  sync.Mutex // a request that was given up is closed beside its reader
	f   *os.File
	buf []byte
	err error
}

func (b *base64File) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.buf) == 0 && b.err == nil {
		b.fill()
	}
	if len(b.buf) == 0 {
		return 0, b.err
	}
	n := copy(p, b.buf)
	b.buf = b.buf[n:]
	return n, nil
}

func (b *base64File) fill() {
	if b.f == nil {
		if b.f, b.err = os.Open(b.path); b.err != nil {
			return
		}
	}
	chunk := make([]byte, min(48<<10, b.left)) // a multiple of three but for the last one
	n, err := io.ReadFull(b.f, chunk)
	b.left -= int64(n)
	b.buf = []byte(base64.StdEncoding.EncodeToString(chunk[:n]))
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		b.err = fmt.Errorf("the file changed while it was sent: %w", err)
	case b.left == 0:
		b.err = io.EOF
	}
	if b.err != nil {
		_ = b.f.Close()
	}
}

func (b *base64File) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = os.ErrClosed
		if b.f != nil {
			_ = b.f.Close()
		}
	}
}

// send makes one send call, with files inside the request or, when they are large and the daemon is on this machine, by
// their paths.
func (c *Client) send(ctx context.Context, params map[string]any, files []outFile) (sendAnswer, error) {
	var answer sendAnswer
	if len(files) == 0 {
		return answer, c.call(ctx, "send", params, &answer)
	}
	var size int64
	paths := make([]string, len(files))
	for i, f := range files {
		size += f.Size
		paths[i] = f.Path
	}
	if size > c.inline && c.local() {
		byPath := map[string]any{"attachments": paths}
		for k, v := range params {
			byPath[k] = v
		}
		err := c.call(ctx, "send", byPath, &answer)
		var e *callError
		if !errors.As(err, &e) || !e.answered || !strings.Contains(strings.ToLower(e.message), "attachment") {
			return answer, err
		}
		// The daemon may not read our files: another user, or a container.
	}
	resp, failed, cancel := c.post(ctx, "send", params, &attached{files})
	if failed != nil {
		return answer, failed
	}
	defer cancel()
	defer drop(resp.Body)
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return answer, &callError{method: "send", sent: true, status: http.StatusOK, err: err}
	}
	return answer, decodeAnswer("send", body, &answer)
}

// local reports whether the daemon is on this machine.
func (c *Client) local() bool {
	u, err := url.Parse(c.root)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
