package teams

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"herald/platforms"
)

// driveItem is a file as Graph describes it.
type driveItem struct {
	Name        string `json:"name"`
	WebURL      string `json:"webUrl"`
	ETag        string `json:"eTag"`
	DownloadURL string `json:"@microsoft.graph.downloadUrl"`
}

// graphMessage is what Graph says of a message's files.
type graphMessage struct {
	Attachments []struct {
		ID         string `json:"id"`
		Type       string `json:"contentType"`
		ContentURL string `json:"contentUrl"`
		Name       string `json:"name"`
	} `json:"attachments"`
}

// fetchShared downloads a file by its address in SharePoint.
func (a *Adapter) fetchShared(ctx context.Context, address string, limit int64, w io.Writer) error {
	var item driveItem
	share := "u!" + base64.RawURLEncoding.EncodeToString([]byte(address))
	if err := a.query(ctx, topicGraph, request{method: http.MethodGet, url: a.s.GraphURL + "/v1.0/shares/" + share + "/driveItem", graph: true}, &item); err != nil {
		return err
	}
	if item.DownloadURL == "" {
		return errors.New("the answer of Microsoft Graph names no address of the file")
	}
	_, err := a.files.Get(ctx, item.DownloadURL, nil, limit, w) // the address is good by itself: no token
	return err
}

// fetchReferenced downloads a file of a group or a channel, which the activity only hints at.
func (a *Adapter) fetchReferenced(ctx context.Context, r ref, limit int64, w io.Writer) error {
	m, err := a.graphMessage(ctx, r)
	if err != nil {
		return err
	}
	for _, at := range m.Attachments {
		if at.ID == r.File && at.ContentURL != "" {
			return a.fetchShared(ctx, at.ContentURL, limit, w)
		}
	}
	return errors.New("the message has no such file any more")
}

// nameReferenced gives the files that only Graph knows their names. It is a help: without them the files have numbers.
func (a *Adapter) nameReferenced(ctx context.Context, list []platforms.Attachment) {
	var m *graphMessage
	for i, at := range list {
		var r ref
		if json.Unmarshal([]byte(at.Ref), &r) != nil || r.File == "" {
			continue
		}
		if m == nil {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			got, err := a.graphMessage(ctx, r)
			cancel()
			if err != nil {
				a.s.Log.Warn().Err(a.clean(err)).Msg("Microsoft Graph does not tell the names of files")
				return
			}
			m = &got
		}
		for _, known := range m.Attachments {
			if known.ID == r.File && known.Name != "" {
				list[i] = attachment(known.Name, "", r)
			}
		}
	}
}

// graphMessage asks Graph for a message.
func (a *Adapter) graphMessage(ctx context.Context, r ref) (graphMessage, error) {
	var m graphMessage
	path := "/v1.0/chats/" + url.PathEscape(r.Chat) + "/messages/" + url.PathEscape(r.Message)
	known, _, err := a.rooms.find(ctx, r.Chat)
	if err != nil {
		return m, err
	}
	if known.Type == channel {
		group, err := a.groupOf(ctx, r.Chat, known)
		if err != nil {
			return m, err
		}
		path = "/v1.0/teams/" + url.PathEscape(group) + "/channels/" + url.PathEscape(r.Chat) + "/messages/"
		if r.Thread != "" && r.Thread != r.Message {
			path += url.PathEscape(r.Thread) + "/replies/"
		}
		path += url.PathEscape(r.Message)
	}
	err = a.query(ctx, topicGraph, request{method: http.MethodGet, url: a.s.GraphURL + path, graph: true}, &m)
	return m, err
}

// groupOf returns the Entra group of a channel's team.
func (a *Adapter) groupOf(ctx context.Context, chat string, known room) (string, error) {
	if known.Group != "" {
		return known.Group, nil
	}
	team, err := a.team(ctx, known)
	if err != nil {
		return "", err
	}
	known.Group, known.TeamName = team.Group, cut(team.Name, 200)
	if err := a.rooms.note(ctx, chat, known); err != nil {
		return "", err
	}
	return known.Group, nil
}

var etagID = regexp.MustCompile(`[0-9A-Fa-f]{8}-[0-9A-Fa-f-]{27}`)

// share puts a file into the SharePoint site that is set up for groups and channels, and shows its card there.
func (o *outbound) share(ctx context.Context, f file) error {
	item, err := o.a.put(ctx, f)
	if err != nil {
		return err
	}
	kind := strings.TrimPrefix(filepath.Ext(f.Name), ".")
	act := outActivity{Type: "message", Text: cut(f.Caption, 1000), TextFormat: "plain",
		Attachments: []outAttachment{fileInfo(item.WebURL, f.Name, strings.ToLower(etagID.FindString(item.ETag)), kind)}}
	return o.create(ctx, act)
}

// put uploads a file with Graph.
func (a *Adapter) put(ctx context.Context, f file) (driveItem, error) {
	var item driveItem
	body, err := os.Open(f.Path)
	if err != nil {
		return item, platforms.Failure(platforms.BadRequest, "the file can't be read")
	}
	defer body.Close()
	token, err := a.graphTokens.get(ctx)
	if err != nil {
		return item, &platforms.SendError{Kind: platforms.Transient, Err: a.clean(err)}
	}
	folder := a.s.Clock.Now().UTC().Format("2006-01-02 15.04.05.000")
	address := a.s.GraphURL + "/v1.0/sites/" + url.PathEscape(a.s.GraphSite) + "/drive/root:/Herald/" + url.PathEscape(folder) + "/" + url.PathEscape(f.Name) + ":/content"
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, io.NopCloser(body))
	if err != nil {
		return item, platforms.Failure(platforms.BadRequest, "the address of the upload is no URL")
	}
	req.ContentLength = f.Size
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := a.client.HTTP.Do(req)
	if err != nil { // nothing is visible of it yet
		return item, &platforms.SendError{Kind: platforms.Transient, Err: a.clean(err)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		if resp.StatusCode == http.StatusUnauthorized {
			a.graphTokens.drop(token)
		}
		kind := platforms.Forbidden
		if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
			kind = platforms.Transient
		}
		return item, &platforms.SendError{Kind: kind, Err: fmt.Errorf("an upload was answered %d by Microsoft Graph (platforms.teams.graph_site)", resp.StatusCode)}
	}
	if err != nil || json.Unmarshal(answer, &item) != nil || item.WebURL == "" {
		return item, &platforms.SendError{Kind: platforms.Transient, Err: errGarbled}
	}
	return item, nil
}
