package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"herald/platforms"
	"herald/platforms/fetch"
)

const downloadInfoType = "application/vnd.microsoft.teams.file.download.info"

// ref is where a file of a person is. It travels in Attachment.Ref.
type ref struct {
	// URL is an address that is good by itself, or with the bot's token where Bot is set.
	URL string `json:"url,omitempty"`
	Bot bool   `json:"bot,omitempty"`
	// Shared is the file's own address in SharePoint, which Graph resolves.
	Shared string `json:"shared,omitempty"`
	// Chat, Thread, Message and File name a file that only Graph hands out.
	Chat    string `json:"chat,omitempty"`
	Thread  string `json:"thread,omitempty"`
	Message string `json:"message,omitempty"`
	File    string `json:"file,omitempty"`
}

func (r ref) String() string {
	raw, _ := json.Marshal(r)
	return string(raw)
}

var referenceTag = regexp.MustCompile(`(?i)<attachment[^>]*\bid="([A-Za-z0-9-]{1,100})"`)

// attachmentsOf lists the files of a message. Mirrors of the text and cards are none. lost is how many files there are that
// can't be fetched.
func (a *Adapter) attachmentsOf(act *activity) (list []platforms.Attachment, lost int) {
	pictures := 0
	for _, at := range act.Attachments {
		switch {
		case strings.EqualFold(at.ContentType, downloadInfoType):
			var info struct {
				URL  string `json:"downloadUrl"`
				Type string `json:"fileType"`
			}
			if json.Unmarshal(at.Content, &info) != nil || (info.URL == "" && at.ContentURL == "") {
				lost++
				continue
			}
			list = append(list, attachment(at.Name, "", ref{URL: info.URL, Shared: at.ContentURL}))
		case strings.HasPrefix(strings.ToLower(at.ContentType), "image/") && at.ContentURL != "":
			name := at.Name
			if pictures++; name == "" {
				name = fmt.Sprintf("image-%d.png", pictures)
			}
			one := attachment(name, strings.TrimSuffix(at.ContentType, "/*"), ref{URL: at.ContentURL, Bot: true})
			one.Kind = platforms.Image
			list = append(list, one)
		case at.ContentURL != "" && !strings.HasPrefix(at.ContentType, "application/vnd.microsoft.") && at.ContentType != "text/html":
			list = append(list, attachment(at.Name, at.ContentType, ref{URL: at.ContentURL, Bot: true}))
		}
	}
	if act.kind() == personal {
		return list, lost
	}
	chat, thread := act.place()
	for i, tag := range referenceTag.FindAllStringSubmatch(act.mirror(), maxAttachments) {
		if !a.s.Graph {
			lost++
			continue
		}
		list = append(list, attachment(fmt.Sprintf("file-%d", i+1), "", ref{Chat: chat, Thread: thread, Message: act.ID, File: tag[1]}))
	}
	return list, lost
}

func attachment(name, kind string, r ref) platforms.Attachment {
	name = platforms.SafeName(html.UnescapeString(name))
	if !strings.Contains(kind, "/") {
		kind, _, _ = strings.Cut(mime.TypeByExtension(strings.ToLower(filepath.Ext(name))), ";")
	}
	return platforms.Attachment{Kind: platforms.KindOf(kind), Name: name, MIME: kind, Ref: r.String()}
}

// Fetch copies the file that at.Ref names to w, at most limit bytes. The bot's token goes to service hosts only.
func (a *Adapter) Fetch(ctx context.Context, at platforms.Attachment, limit int64, w io.Writer) error {
	var r ref
	if json.Unmarshal([]byte(at.Ref), &r) != nil {
		return fmt.Errorf("attachment %q names no file", platforms.SafeName(at.Name))
	}
	var err error
	switch {
	case r.File != "":
		err = a.fetchReferenced(ctx, r, limit, w)
	case r.URL != "":
		err = a.fetchURL(ctx, r, limit, w)
	default:
		err = errGraphOnly
	}
	if r.Shared != "" && a.s.Graph && (err == errGraphOnly || denied(err)) {
		err = a.fetchShared(ctx, r.Shared, limit, w) // the address has expired; nothing was written
	}
	if err != nil {
		return a.clean(err)
	}
	return nil
}

var errGraphOnly = errors.New("this file comes only through Microsoft Graph (platforms.teams.graph)")

func denied(err error) bool {
	var status *fetch.StatusError
	return errors.As(err, &status) && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden ||
		status.Code == http.StatusNotFound)
}

// fetchURL downloads an address, with the bot's token where it is the connector's.
func (a *Adapter) fetchURL(ctx context.Context, r ref, limit int64, w io.Writer) error {
	if !r.Bot || !a.isService(r.URL) {
		_, err := a.files.Get(ctx, r.URL, nil, limit, w)
		return err
	}
	for again := false; ; again = true {
		token, err := a.tokens.get(ctx)
		if err != nil {
			return err
		}
		_, err = a.files.Get(ctx, r.URL, http.Header{"Authorization": {"Bearer " + token}}, limit, w)
		var status *fetch.StatusError
		if again || !errors.As(err, &status) || status.Code != http.StatusUnauthorized {
			return err
		}
		a.tokens.drop(token)
	}
}

// isService reports whether an address is one of a server that gets the bot's token.
func (a *Adapter) isService(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || (u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname()))) {
		return false
	}
	return a.s.hosts[hostPort(u)]
}
