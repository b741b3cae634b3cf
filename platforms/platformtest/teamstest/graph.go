package teamstest

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
)

// The routes of Graph, for Routes.
const (
	graphShare   = "graph shares"
	graphUpload  = "graph upload"
	graphChat    = "graph chat message"
	graphChannel = "graph channel message"
)

// serveGraph answers as much of Microsoft Graph as files need: shared files, the messages that refer to them, hosted
// pictures, and uploads into a drive.
func (s *Server) serveGraph(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	s.noteLeak(r)
	switch {
	case s.authorize(r, graphScope) != nil:
		writeError(w, refuse(401, "InvalidAuthenticationToken", "Access token is empty, expired or for another audience."))
		return
	case s.o.NoGraph:
		writeError(w, refuse(403, "Forbidden", "Missing role permissions on the request. API requires one of 'Files.Read.All, Sites.Read.All'."))
		return
	case len(c.rest) < 2 || c.rest[0] != "v1.0":
		writeError(w, refuse(400, "BadRequest", "Invalid version."))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := c.rest[1:]
	switch {
	case parts[0] == "shares" && len(parts) >= 3 && parts[2] == "driveItem":
		Routes.Hit(graphShare)
		s.share(w, r, parts)
	case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, ":/content"):
		Routes.Hit(graphUpload)
		s.driveUpload(w, r, c)
	case parts[0] == "chats" && len(parts) >= 4 && parts[2] == "messages":
		Routes.Hit(graphChat)
		s.graphMessage(w, parts[1], parts[3], parts[4:])
	case parts[0] == "teams" && len(parts) >= 6 && parts[2] == "channels" && parts[4] == "messages":
		Routes.Hit(graphChannel)
		s.channelMessage(w, parts)
	default:
		writeError(w, refuse(404, "ResourceNotFound", "Resource could not be discovered."))
	}
}

// share answers shares/{encoded url}/driveItem and its content.
func (s *Server) share(w http.ResponseWriter, r *http.Request, parts []string) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(parts[1], "u!"))
	if err != nil || !strings.HasPrefix(parts[1], "u!") {
		writeError(w, refuse(400, "invalidRequest", "The sharing token is malformed"))
		return
	}
	for _, f := range s.files {
		if f.url != string(raw) {
			continue
		}
		if len(parts) == 4 && parts[3] == "content" {
			http.Redirect(w, r, s.preauthorised(f), http.StatusFound)
			return
		}
		writeJSON(w, http.StatusOK, f.item(s))
		return
	}
	writeError(w, refuse(404, "itemNotFound", "The resource could not be found."))
}

// driveUpload takes a small file: PUT …/root:/folder/name:/content or …/items/{id}:/name:/content.
func (s *Server) driveUpload(w http.ResponseWriter, r *http.Request, c *call) {
	name := strings.TrimSuffix(c.rest[len(c.rest)-2], ":")
	f := s.store(name, r.Header.Get("Content-Type"), slices.Clone(c.body), "")
	s.act(Act{Verb: "upload", Text: name, Bot: true})
	writeJSON(w, http.StatusCreated, f.item(s))
}

func (s *Server) channelMessage(w http.ResponseWriter, parts []string) {
	r := s.rooms[parts[3]]
	if r == nil || r.Team.Group != parts[1] {
		writeError(w, refuse(404, "NotFound", "Channel not found."))
		return
	}
	id, rest := parts[5], parts[6:]
	if len(rest) == 1 && rest[0] == "replies" {
		s.graphReplies(w, r, id)
		return
	}
	if len(rest) >= 2 && rest[0] == "replies" {
		id, rest = rest[1], rest[2:]
	}
	s.graphMessage(w, r.ID, id, rest)
}

// graphMessage answers a message of a person, or a picture in it.
func (s *Server) graphMessage(w http.ResponseWriter, room, id string, rest []string) {
	r := s.rooms[room]
	if r == nil || r.messages[id] == nil {
		writeError(w, refuse(404, "NotFound", "Message not found."))
		return
	}
	m := r.messages[id]
	if len(rest) == 3 && rest[0] == "hostedContents" && rest[2] == "$value" {
		f := s.files[rest[1]]
		if f == nil || f.room != room {
			writeError(w, refuse(404, "NotFound", "Hosted content not found."))
			return
		}
		f.serve(w)
		return
	}
	writeJSON(w, http.StatusOK, s.graphItem(r, m))
}

// graphReplies lists the replies of a thread, newest first.
func (s *Server) graphReplies(w http.ResponseWriter, r *room, root string) {
	if r.messages[root] == nil {
		writeError(w, refuse(404, "NotFound", "Message not found."))
		return
	}
	list := []map[string]any{}
	for _, id := range slices.Backward(r.order) {
		if m := r.messages[id]; m.Thread == root && m.ID != root {
			list = append(list, s.graphItem(r, m))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"value": list})
}

// graphItem is a message as Graph describes it.
func (s *Server) graphItem(r *room, m *Message) map[string]any {
	body := "<p>" + html.EscapeString(m.Text) + "</p>"
	refs := []map[string]any{}
	for _, f := range s.references[r.ID+"/"+m.ID] {
		body += fmt.Sprintf(`<attachment id="%s"></attachment>`, f.id)
		refs = append(refs, map[string]any{"id": f.id, "contentType": "reference", "contentUrl": f.url, "content": nil, "name": f.name, "thumbnailUrl": nil})
	}
	u := s.users[m.From]
	from := map[string]any{"user": map[string]string{"id": u.AAD, "displayName": u.Name}}
	if m.Bot {
		from = map[string]any{"user": nil, "application": map[string]string{"id": s.o.AppID, "displayName": s.o.BotName}}
	}
	return map[string]any{
		"id": m.ID, "messageType": "message", "createdDateTime": m.At.UTC(), "attachments": refs, "deletedDateTime": nil,
		"body": map[string]string{"contentType": "html", "content": body}, "from": from,
	}
}
