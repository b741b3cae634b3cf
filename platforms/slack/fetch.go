package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/wire"
)

// Fetch copies the file that at.Ref names to w, at most limit bytes. The bot's token goes to Slack's own servers
// alone.
func (a *Adapter) Fetch(ctx context.Context, at platforms.Attachment, limit int64, w io.Writer) error {
	var ref fileRef
	if json.Unmarshal([]byte(at.Ref), &ref) != nil || ref.ID == "" {
		return platforms.Failure(platforms.BadRequest, "attachment %q names no file of Slack", at.Name)
	}
	if limit <= 0 || at.Size > limit {
		return tooLarge(at, limit)
	}
	if ref.URL == "" {
		if err := a.locate(ctx, &ref); err != nil {
			return err
		}
	}
	u, err := url.Parse(ref.URL)
	if err != nil || !a.isSlack(u) {
		return platforms.Failure(platforms.BadRequest, "%s is not on a server of Slack and is not fetched", platforms.SafeName(at.Name))
	}
	return a.do(ctx, "download", "", func(ctx context.Context) error { return a.download(ctx, u, at, limit, w) })
}

// locate asks where a file is: events from shared channels name its id alone.
func (a *Adapter) locate(ctx context.Context, ref *fileRef) error {
	var f *api.File
	err := a.do(ctx, "files.info", "", func(ctx context.Context) (err error) {
		f, _, _, err = a.api.GetFileInfoContext(ctx, ref.ID, 0, 0)
		return err
	})
	if err != nil {
		return err
	}
	ref.URL = firstOf(f.URLPrivateDownload, f.URLPrivate)
	return nil
}

func (a *Adapter) download(ctx context.Context, u *url.URL, at platforms.Attachment, limit int64, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return errors.New("the file's address is no URL")
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	client := *a.hub.client.HTTP
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if len(via) > 5 || !a.isSlack(next.URL) {
			return errors.New("the file's address leads away from Slack")
		}
		return nil
	}
	c := wire.CallOf(ctx)
	resp, err := client.Do(req.WithContext(c.With(ctx)))
	if err != nil {
		return wire.Bare(err)
	}
	defer resp.Body.Close()
	c.Status, c.After = resp.StatusCode, wire.RetryAfter(resp.Header)
	switch {
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized || isLogin(resp, at):
		return api.SlackErrorResponse{Err: "missing_scope", Needed: "files:read"}
	case resp.StatusCode == http.StatusNotFound:
		return api.SlackErrorResponse{Err: "file_not_found"}
	case resp.StatusCode == http.StatusTooManyRequests:
		return &api.RateLimitedError{}
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("answer %d of Slack", resp.StatusCode)
	}
	n, err := io.Copy(w, io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return wire.Bare(err)
	}
	if n > limit {
		return api.SlackErrorResponse{Err: "file_too_large"}
	}
	return nil
}

// isLogin reports whether Slack sent its sign-in page in place of a file: what it does without the scope.
func isLogin(resp *http.Response, at platforms.Attachment) bool {
	if resp.Request != nil && resp.Request.URL.Query().Get("redir") != "" {
		return true
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	ext := strings.ToLower(path.Ext(at.Name))
	return kind == "text/html" && at.MIME != "text/html" && ext != ".html" && ext != ".htm"
}

func tooLarge(at platforms.Attachment, limit int64) error {
	return platforms.Failure(platforms.TooLong, "%s has %d bytes, the limit is %d", platforms.SafeName(at.Name), at.Size, limit)
}
