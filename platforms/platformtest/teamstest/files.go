package teamstest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// storedFile is a file in SharePoint, or a picture behind the connector.
type storedFile struct {
	id, name, mime string
	body           []byte
	url            string // where people open it
	room           string // of a picture
}

func (f *storedFile) serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", cmp.Or(f.mime, "application/octet-stream"))
	_, _ = w.Write(f.body)
}

// consent is a file consent card.
type consent struct {
	room, message   string
	name            string
	size            int64
	accept, decline json.RawMessage
	answered        bool
}

// upload is a file on its way into SharePoint.
type upload struct {
	file  *storedFile
	total int64
	done  bool
}

// store keeps a file. The caller holds mu.
func (s *Server) store(name, mime string, body []byte, room string) *storedFile {
	id := uuid()
	f := &storedFile{id: id, name: name, mime: mime, body: body, room: room}
	f.url = s.URLs().Base + "/sharepoint/personal/contoso/Documents/" + id + "/" + url.PathEscape(name)
	s.files[id] = f
	return f
}

// attach makes the attachments of a person's files as the bot gets them, and the images in the HTML mirror. The
// caller holds mu.
func (s *Server) attach(r *room, message string, files []File) (out []attachment, images string) {
	for _, file := range files {
		f := s.store(file.Name, file.MIME, file.Body, r.ID)
		switch {
		case file.Inline:
			at := s.URLs().Service + "v3/attachments/" + f.id + "/views/original"
			out = append(out, attachment{ContentType: "image/*", ContentURL: at})
			images += fmt.Sprintf(`<p><img alt="image" src="%s" itemscope="%s" itemtype="http://schema.skype.com/AMSImage" width="250" height="250"></p>`, at, path.Ext(f.name))
		case r.Type == Personal:
			out = append(out, attachment{
				ContentType: downloadInfo, ContentURL: f.url, Name: f.name,
				Content: mustJSON(map[string]string{"downloadUrl": s.preauthorised(f), "uniqueId": f.id, "fileType": fileType(f.name)}),
			})
		default:
			images += fmt.Sprintf(`<attachment id="%s"></attachment>`, html.EscapeString(f.id))
			s.references[r.ID+"/"+message] = append(s.references[r.ID+"/"+message], f)
		}
	}
	return out, images
}

func (s *Server) preauthorised(f *storedFile) string {
	return s.URLs().Base + "/sharepoint/download/" + f.id + "?tempauth=" + f.id[:8]
}

func fileType(name string) string { return strings.TrimPrefix(path.Ext(name), ".") }

// attachment answers v3/attachments/{id} and its views.
func (s *Server) attachment(c *call) (int, any, error) {
	f := s.files[strings.Join(c.rest[1:min(2, len(c.rest))], "")]
	if f == nil || f.room == "" {
		return 0, nil, refuse(404, "NotFound", "Attachment not found.")
	}
	switch strings.Join(c.rest[2:], "/") {
	case "":
		return http.StatusOK, map[string]any{"name": f.name, "type": f.mime, "views": []map[string]any{{"viewId": "original", "size": len(f.body)}}}, nil
	case "views/original":
		return http.StatusOK, f, nil
	}
	return 0, nil, refuse(404, "NotFound", "Attachment view not found.")
}

// serveDownload answers a pre-authorised URL: /sharepoint/download/{id}?tempauth=…
func (s *Server) serveDownload(w http.ResponseWriter, r *http.Request, c *call) {
	s.noteLeak(r)
	s.mu.Lock()
	f := s.files[c.rest[len(c.rest)-1]]
	s.mu.Unlock()
	if c.rest[1] != "download" || f == nil {
		http.Error(w, "Access denied. You do not have permission to perform this action or access this resource.", http.StatusUnauthorized)
		return
	}
	if r.URL.Query().Get("tempauth") != f.id[:8] {
		http.Error(w, "The tempauth token is expired or invalid.", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Disposition", `attachment; filename*=UTF-8''`+url.PathEscape(f.name))
	f.serve(w)
}

// noteLeak remembers a request that carries a token to where it does not belong.
func (s *Server) noteLeak(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.issued[bearer(r)]; t.scope == connectorScope {
		s.leaks = append(s.leaks, fmt.Sprintf("%s %s carried the connector's token", r.Method, r.URL.Path))
	}
}

// Leaks returns the requests to SharePoint or Graph that carried the token for the connector, in words. (A token for
// Graph comes to SharePoint by a redirect that, with real hosts, would drop it.)
func (s *Server) Leaks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.leaks...)
}

// consentCard reads a file consent card.
func (s *Server) consentCard(r *room, message string, l *look, x attachment) error {
	var card struct {
		SizeInBytes    int64           `json:"sizeInBytes"`
		AcceptContext  json.RawMessage `json:"acceptContext"`
		DeclineContext json.RawMessage `json:"declineContext"`
	}
	switch {
	case r.Type != Personal:
		return refuse(400, "BadSyntax", "File consent cards are supported in personal chats only")
	case json.Unmarshal(x.Content, &card) != nil || card.SizeInBytes <= 0:
		return refuse(400, "BadSyntax", "Failed to parse file consent card: sizeInBytes must be positive")
	case x.Name == "":
		return refuse(400, "BadSyntax", "Failed to parse file consent card: name is missing")
	}
	s.consents[r.ID+"/"+message] = &consent{room: r.ID, message: message, name: x.Name, size: card.SizeInBytes, accept: card.AcceptContext,
		decline: card.DeclineContext}
	l.cards = append(l.cards, x.Content)
	l.files = append(l.files, File{Name: x.Name, Awaiting: true})
	return nil
}

// answerConsent presses Accept or Decline. The caller holds mu.
func (s *Server) answerConsent(r *room, m *Message, accept bool) (string, error) {
	card := s.consents[r.ID+"/"+m.ID]
	if card == nil || card.answered || len(m.Files) == 0 || !m.Files[0].Awaiting {
		return "", fmt.Errorf("message %s has no open file consent card", m.ID)
	}
	card.answered = true
	m.Files[0].Awaiting = false
	a := s.activity(r, m.Thread, "invoke", "f:"+uuid(), s.author(r, User{}))
	a.Name, a.ReplyToID = "fileConsent/invoke", m.ID
	value := map[string]any{"type": "fileUpload", "action": "decline", "context": card.decline}
	if accept {
		f := s.store(card.name, "", nil, "")
		s.uploads[f.id] = &upload{file: f, total: card.size}
		value["action"], value["context"] = "accept", card.accept
		value["uploadInfo"] = map[string]string{
			"contentUrl": f.url, "name": f.name, "uploadUrl": s.URLs().Base + "/sharepoint/upload/" + f.id + "?tempauth=" + f.id[:8],
			"uniqueId": f.id, "fileType": fileType(f.name),
		}
	}
	a.Value = mustJSON(value)
	return s.invoke(a, nil), nil
}

// serveUpload takes a range of a file: an upload session of OneDrive.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request, c *call) {
	s.noteLeak(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uploads[c.rest[len(c.rest)-1]]
	var from, to, total int64
	_, scanErr := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &total)
	switch {
	case u == nil || u.done:
		writeError(w, refuse(404, "itemNotFound", "The upload session was not found"))
	case r.Header.Get("Authorization") != "":
		writeError(w, refuse(401, "unauthenticated", "An upload URL takes no Authorization header"))
	case scanErr != nil || to-from+1 != int64(len(c.body)) || to >= total:
		writeError(w, refuse(400, "invalidRequest", "Invalid Content-Range header"))
	case total != u.total:
		writeError(w, refuse(400, "invalidRequest", "The Content-Range header length does not match the declared size"))
	case from != int64(len(u.file.body)):
		writeError(w, refuse(416, "invalidRange", "The uploaded fragment overlaps with data that has already been received."))
	case to+1 < total && int64(len(c.body))%(320<<10) != 0:
		writeError(w, refuse(400, "invalidRequest", "The fragment's size must be a multiple of 320 KiB"))
	default:
		u.file.body = append(u.file.body, c.body...)
		if to+1 < total {
			writeJSON(w, http.StatusAccepted, map[string]any{"nextExpectedRanges": []string{fmt.Sprintf("%d-", to+1)}})
			return
		}
		u.done = true
		s.act(Act{Verb: "upload", Text: u.file.name, Bot: true})
		writeJSON(w, http.StatusCreated, u.file.item(s))
	}
}

// item is a file as OneDrive and Graph describe it.
func (f *storedFile) item(s *Server) map[string]any {
	return map[string]any{
		"id": f.id, "name": f.name, "size": len(f.body), "webUrl": f.url, "eTag": `"{` + strings.ToUpper(f.id) + `},1"`,
		"file": map[string]string{"mimeType": cmp.Or(f.mime, "application/octet-stream")}, "@microsoft.graph.downloadUrl": s.preauthorised(f),
	}
}

// fileInfo reads a file info card, which shows a file that lies in SharePoint.
func (s *Server) fileInfo(l *look, x attachment) error {
	for _, f := range s.files {
		if f.url == x.ContentURL {
			l.cards = append(l.cards, x.Content)
			l.files = append(l.files, File{Name: cmp.Or(x.Name, f.name), MIME: f.mime, Body: f.body, URL: x.ContentURL})
			return nil
		}
	}
	return refuse(400, "BadArgument", "The file of the file info card was not found")
}
