package telegram

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-telegram/bot"

	"herald/platforms"
	"herald/platforms/wire"
)

// Fetch copies the file that a.Ref names to w, at most limit bytes. Telegram's own server hands out files
// up to 20 MB; a private server has no such limit, and in local mode names a path, which is read only
// below Options.LocalRoot.
func (a *Adapter) Fetch(ctx context.Context, at platforms.Attachment, limit int64, w io.Writer) error {
	if at.Ref == "" {
		return fmt.Errorf("attachment %q names no file", at.Name)
	}
	if limit <= 0 || at.Size > limit {
		return fmt.Errorf("%s has %s, the limit is %s", platforms.SafeName(at.Name), wire.Megabytes(at.Size), wire.Megabytes(limit))
	}
	if !a.s.private && at.Size > publicDownload {
		return tooBigToFetch(at)
	}
	call, callCtx, cancel := newCall(ctx, 0)
	defer cancel()
	file, err := a.api.GetFile(callCtx, &bot.GetFileParams{FileID: at.Ref})
	switch {
	case call.says("file is too big"):
		return tooBigToFetch(at)
	case err != nil:
		return a.outcome(call, err)
	case file.FilePath == "":
		return fmt.Errorf("getFile names no path for %s", platforms.SafeName(at.Name))
	}
	if path.IsAbs(file.FilePath) {
		return a.readLocal(file.FilePath, limit, w)
	}
	return a.download(ctx, file.FilePath, limit, w)
}

func tooBigToFetch(at platforms.Attachment) error {
	return &platforms.SendError{Kind: platforms.TooLong, Err: fmt.Errorf(
		"%s can't be fetched: Telegram hands out files up to 20 MB only; a private Bot API server (base_url) lifts that", platforms.SafeName(at.Name))}
}

// readLocal reads a file of a private server in local mode. The root can't be left, not by symlinks either.
func (a *Adapter) readLocal(name string, limit int64, w io.Writer) error {
	if a.s.LocalRoot == "" {
		return fmt.Errorf("the Bot API server runs in local mode and names a path: set platforms.telegram.local_root to its folder")
	}
	inside, err := filepath.Rel(a.s.LocalRoot, filepath.Clean(name))
	if err != nil || !filepath.IsLocal(inside) {
		return fmt.Errorf("the Bot API server names a file outside platforms.telegram.local_root")
	}
	f, err := os.OpenInRoot(a.s.LocalRoot, inside)
	if err != nil {
		return fmt.Errorf("read a file of the local Bot API server: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("the Bot API server names something that is no file")
	}
	return wire.CopyFile(w, f, limit)
}

func (a *Adapter) download(ctx context.Context, name string, limit int64, w io.Writer) error {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if p == ".." || p == "." {
			return fmt.Errorf("the Bot API server names a path with %q", p)
		}
		parts[i] = url.PathEscape(p)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.s.files+"/bot"+a.s.Token+"/"+strings.Join(parts, "/"), nil)
	if err != nil {
		return a.clean(err)
	}
	resp, err := a.client.HTTP.Do(req)
	if err != nil {
		return a.clean(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("download of a file: the server answered %d", resp.StatusCode)
	}
	if err := wire.CopyFile(w, resp.Body, limit); err != nil {
		return a.clean(err)
	}
	return nil
}
