package slacktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// file is a file with its bytes.
type file struct {
	File
	team     *team
	mode     string
	created  time.Time
	secret   string // of its upload URL
	length   int    // that was announced
	uploaded bool
	done     bool // files.completeUploadExternal took it
	alt      string
	shared   []share
}

// share is a message that a file is in.
type share struct {
	channel *channel
	message *message
}

// maxFile is the most bytes of a file.
const maxFile = 1 << 30

func (s *Server) filesUploadURL(t *team, c *call) (object, error) {
	length := c.int("length", 0)
	switch {
	case c.get("filename") == "":
		return nil, missing("filename")
	case length <= 0:
		return nil, missing("length")
	case length > maxFile:
		return nil, refuse("file_upload_size_restricted")
	}
	kind := mime.TypeByExtension(path.Ext(c.get("filename")))
	fill(&kind, "application/octet-stream")
	f := &file{File: File{ID: s.id("F"), Name: c.get("filename"), Title: c.get("filename"), MIME: kind, User: t.BotUser}, team: t,
		mode: "hosted", created: time.Now(), length: length, alt: c.get("alt_txt")}
	f.secret = strings.ReplaceAll(uuid(), "-", "")
	s.files[f.ID], s.uploads[f.secret] = f, f
	return object{"upload_url": s.base() + "/upload/v1/" + f.secret, "file_id": f.ID}, nil
}

// readUpload takes the bytes of a file, bare or as the file part of a form.
func (c *call) readUpload(kind, boundary string, body []byte) error {
	c.body = body
	if kind != "multipart/form-data" {
		return nil
	}
	c.body = nil
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if data, err := io.ReadAll(part); err == nil && (part.FileName() != "" || part.FormName() == "file") {
			c.body = data
		}
	}
}

// serveUpload takes the bytes of a file. Slack answers plain text here.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request, c *call) {
	s.mu.Lock()
	f := s.uploads[c.path]
	status, answer := http.StatusOK, ""
	switch {
	case r.Method != http.MethodPost:
		status, answer = http.StatusMethodNotAllowed, "method not allowed"
	case f == nil:
		status, answer = http.StatusNotFound, "not found"
	case len(c.body) != f.length:
		status, answer = http.StatusBadRequest, "bad content length"
	default:
		f.Body, f.uploaded = c.body, true
		answer = "OK - " + strconv.Itoa(len(c.body))
		s.act(Act{Verb: "upload", Team: f.team.ID, TS: f.ID, User: f.User, Text: f.Name})
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func (s *Server) filesComplete(t *team, c *call) (object, error) {
	var wanted []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if json.Unmarshal([]byte(c.get("files")), &wanted) != nil || len(wanted) == 0 {
		return nil, missing("files")
	}
	var files []*file
	for _, one := range wanted {
		f := s.files[one.ID]
		if f == nil || f.team != t || !f.uploaded || f.done {
			return nil, refuse("file_not_found")
		}
		if one.Title != "" {
			f.Title = one.Title
		}
		files = append(files, f)
	}
	if err := checkBlocks(c.get("blocks"), maxBlocks); err != nil {
		return nil, err
	}
	for _, id := range slices.DeleteFunc(append(strings.Split(c.get("channels"), ","), c.get("channel_id")), empty) {
		ch := t.find(id)
		switch {
		case ch == nil, ch.WithoutBot && ch.Kind != Public:
			return nil, refuse("channel_not_found")
		case ch.WithoutBot:
			return nil, refuse("not_in_channel")
		case ch.Archived:
			return nil, refuse("is_archived")
		case ch.Refuse != "":
			return nil, refuse(ch.Refuse)
		}
		root, err := ch.root(c.get("thread_ts"))
		if err != nil {
			return nil, refuse("invalid_thread_ts")
		}
		m := s.own(ch)
		m.Thread, m.Raw, m.Subtype, m.files = root, c.get("initial_comment"), "file_share", files
		if m.Raw == "" && c.get("blocks") != "" {
			m.Blocks = json.RawMessage(c.get("blocks"))
		}
		for _, f := range files {
			f.shared = append(f.shared, share{ch, m})
		}
		s.write(ch, m)
	}
	var out []object
	for _, f := range files {
		f.done = true
		delete(s.uploads, f.secret)
		one := s.wireFile(f)
		one["shares"] = object{} // Slack shares a moment after it answered; files.info tells
		out = append(out, one)
	}
	return object{"files": out}, nil
}

func (s *Server) filesInfo(t *team, c *call) (object, error) {
	f := s.files[c.get("file")]
	if f == nil || f.team != t {
		return nil, refuse("file_not_found")
	}
	if f.mode == "tombstone" {
		return nil, refuse("file_deleted")
	}
	return object{"file": s.wireFile(f), "comments": []object{}, "response_metadata": object{"next_cursor": ""}}, nil
}

// wireFile is a file object.
func (s *Server) wireFile(f *file) object {
	if f.mode == "tombstone" {
		return object{"id": f.ID, "mode": "tombstone"}
	}
	base := s.base() + "/files-pri/" + f.team.ID + "-" + f.ID + "/"
	kind := strings.TrimPrefix(path.Ext(f.Name), ".")
	fill(&kind, "binary")
	shares := map[string]map[string][]object{}
	var public, private, ims []string
	for _, at := range f.shared {
		where, list := "private", &private
		switch at.channel.Kind {
		case Public:
			where, list = "public", &public
		case IM:
			list = &ims
		}
		*list = append(*list, at.channel.ID)
		if shares[where] == nil {
			shares[where] = map[string][]object{}
		}
		one := object{"ts": at.message.TS, "channel_name": at.channel.Name, "team_id": f.team.ID, "share_user_id": f.User, "source": "UNKNOWN"}
		if at.message.Thread != "" {
			one["thread_ts"] = at.message.Thread
		}
		shares[where][at.channel.ID] = append(shares[where][at.channel.ID], one)
	}
	out := object{
		"id": f.ID, "created": f.created.Unix(), "timestamp": f.created.Unix(), "name": f.Name, "title": f.Title, "mimetype": f.MIME, "filetype": kind,
		"pretty_type": strings.ToUpper(kind), "user": f.User, "user_team": f.team.ID, "editable": f.mode == "snippet", "size": len(f.Body), "mode": f.mode, "is_external": f.mode == "external",
		"external_type": "", "is_public": len(public) > 0, "public_url_shared": false, "display_as_bot": false, "username": "", "alt_txt": f.alt, "file_access": "visible",
		"url_private": base + path.Base(f.Name), "url_private_download": base + "download/" + path.Base(f.Name), "media_display_type": "unknown",
		"permalink": "https://" + f.team.Domain + ".slack.com/files/" + f.User + "/" + f.ID, "is_starred": false, "has_rich_preview": false, "has_more_shares": false,
		"channels": list(public), "groups": list(private), "ims": list(ims), "shares": shares,
	}
	if f.mode == "external" {
		out["url_private"], out["external_type"] = "https://drive.example.com/"+f.ID, "gdrive"
		delete(out, "url_private_download")
	}
	return out
}

func list(l []string) []string { return append([]string{}, l...) }

// loginPage is what Slack answers to a download without a good token: a page, with status 200.
const loginPage = `<!DOCTYPE html><html lang="en-US"><head><title>Sign in to Herald Test | Slack</title></head><body class="signin">Sign in to your workspace</body></html>`

// serveDownload answers url_private.
func (s *Server) serveDownload(w http.ResponseWriter, r *http.Request, c *call) {
	s.mu.Lock()
	id, _, _ := strings.Cut(c.path, "/")
	_, id, _ = strings.Cut(id, "-")
	f, t := s.files[id], s.holder(c.token)
	allowed := f != nil && t == f.team && t.code == "" && t.granted("files:read")
	s.mu.Unlock()
	if !allowed {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, loginPage)
		return
	}
	w.Header().Set("Content-Type", f.MIME)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.Body))
}
