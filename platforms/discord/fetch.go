package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/wire"
)

// contentHosts are where Discord hands out files.
var contentHosts = []string{"cdn.discordapp.com", "media.discordapp.net"}

// Fetch copies the file that a.Ref names to w, at most limit bytes. A link that has expired is asked for again. Files
// come only from Discord's content network, or from the host of an own API server.
func (a *Adapter) Fetch(ctx context.Context, at platforms.Attachment, limit int64, w io.Writer) error {
	var ref fileRef
	if err := json.Unmarshal([]byte(at.Ref), &ref); err != nil || ref.URL == "" {
		return fmt.Errorf("attachment %q names no file", at.Name)
	}
	if limit <= 0 || at.Size > limit {
		return fmt.Errorf("%s has %s, the limit is %s", platforms.SafeName(at.Name), wire.Megabytes(at.Size), wire.Megabytes(limit))
	}
	counted := &counter{w: w}
	err := a.fetch(ctx, ref.URL, limit, counted)
	var status *fetch.StatusError
	if !errors.As(err, &status) || status.Code != http.StatusForbidden && status.Code != http.StatusNotFound || counted.n > 0 {
		return a.clean(err)
	}
	fresh, lookErr := a.freshLink(ctx, ref)
	if lookErr != nil {
		return fmt.Errorf("the link of %s has expired and there is no new one: %w", platforms.SafeName(at.Name), lookErr)
	}
	return a.clean(a.fetch(ctx, fresh, limit, w))
}

func (a *Adapter) fetch(ctx context.Context, link string, limit int64, w io.Writer) error {
	u, err := url.Parse(link)
	if err != nil || !a.servesFiles(u) {
		return errors.New("the file is not on Discord's content network")
	}
	_, err = a.download.Get(ctx, link, nil, limit, w)
	return err
}

func (a *Adapter) servesFiles(u *url.URL) bool {
	for _, host := range contentHosts {
		if u.Scheme == "https" && strings.EqualFold(u.Hostname(), host) {
			return true
		}
	}
	return len(a.s.ownServers()) > 0 && u.Host == a.s.api.Host
}

// freshLink asks for the message again, whose files then have new links.
func (a *Adapter) freshLink(ctx context.Context, ref fileRef) (string, error) {
	if snowflake(ref.Channel) == 0 || snowflake(ref.Message) == 0 {
		return "", errors.New("the message is not known")
	}
	var m message
	err := a.do(ctx, call{
		method: http.MethodGet, route: "/channels/{channel}/messages/{message}", major: ref.Channel,
		path: "/channels/" + ref.Channel + "/messages/" + ref.Message,
	}, &m)
	if err != nil {
		return "", err
	}
	files := m.Files
	for i := range m.Snapshots {
		files = append(files, m.Snapshots[i].Message.Files...)
	}
	for _, f := range files {
		if f != nil && f.ID == ref.File && f.URL != "" {
			return f.URL, nil
		}
	}
	return "", errors.New("the message no longer has the file")
}

// counter notes whether anything was written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
