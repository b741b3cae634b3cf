package signal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"herald/platforms"
	"herald/platforms/wire"
)

// remuxLimit is up to how many bytes a voice note is held in memory to be remuxed.
const remuxLimit = 16 << 20

// Fetch copies the file that at.Ref names to w, at most limit bytes and at most 100 MB. A voice note of bare AAC comes
// as an m4a file where ffmpeg is there.
func (a *Adapter) Fetch(ctx context.Context, at platforms.Attachment, limit int64, w io.Writer) error {
	limit = min(limit, FileLimit)
	switch {
	case at.Ref == "":
		return fmt.Errorf("attachment %q names no file", at.Name)
	case limit <= 0 || at.Size > limit:
		return platforms.Failure(platforms.TooLong, "%s has %s, the limit is %s", platforms.SafeName(at.Name), wire.Megabytes(at.Size), wire.Megabytes(limit))
	}
	method, params := "getAttachment", map[string]any{"id": at.Ref}
	if pack, ok := strings.CutPrefix(at.Ref, stickerRef); ok {
		name, number, _ := strings.Cut(pack, ":")
		method, params = "getSticker", map[string]any{"packId": name, "stickerId": number}
	}
	resp, failed, cancel := a.rpc.post(ctx, method, params, nil)
	if failed != nil {
		return outcome(failed)
	}
	defer cancel()
	defer drop(resp.Body)
	data, err := fileData(method, resp.Body)
	if err != nil {
		return outcome(err)
	}
	if a.ffmpeg == "" || !isRawVoice(at) {
		return wire.CopyFile(w, data, limit)
	}
	head := bufio.NewReaderSize(data, 4096)
	if first, _ := head.Peek(2); !isADTS(first) {
		return wire.CopyFile(w, head, limit)
	}
	var raw bytes.Buffer
	if err := wire.CopyFile(&raw, head, min(limit, remuxLimit)); err != nil {
		return err
	}
	if a.remux(ctx, raw.Bytes(), limit, w) {
		return nil
	}
	_, err = io.Copy(w, &raw)
	return err
}

// dataBegins is where the base64 of a file begins: the result itself, or its field data.
var dataBegins = regexp.MustCompile(`"(?:data|result)"\s*:\s*"`)

// fileData returns the bytes of a file in an answer, decoded as they are read: a file of 100 MB is never in memory as
// a whole. Base64 holds no quotes, so the first one ends it.
func fileData(method string, body io.Reader) (io.Reader, error) {
	r := bufio.NewReaderSize(body, 32<<10)
	head, err := r.Peek(4096)
	at := dataBegins.FindIndex(head)
	if bad := bytes.Index(head, []byte(`"error"`)); at == nil || bad >= 0 && bad < at[0] {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, &callError{method: method, sent: true, status: 200, err: err}
		}
		whole, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil {
			return nil, &callError{method: method, sent: true, status: 200, err: err}
		}
		if err := decodeAnswer(method, whole, nil); err != nil {
			return nil, err
		}
		return nil, &callError{method: method, sent: true, status: 200, err: errors.New("the answer holds no file")}
	}
	_, _ = r.Discard(at[1])
	return base64.NewDecoder(base64.StdEncoding, &untilQuote{r: r}), nil
}

// untilQuote reads the inside of a JSON string without escapes, but for "\/".
type untilQuote struct {
	r    *bufio.Reader
	done bool
}

func (u *untilQuote) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && !u.done {
		c, err := u.r.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
		switch c {
		case '"':
			u.done = true
		case '\\':
		default:
			p[n] = c
			n++
		}
	}
	if n == 0 && u.done {
		return 0, io.EOF
	}
	return n, nil
}
