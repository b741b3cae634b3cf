package teamstest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// classify reads a request's path.
func (s *Server) classify(r *http.Request, body []byte) *call {
	c := &call{body: body}
	for part := range strings.SplitSeq(strings.Trim(r.URL.EscapedPath(), "/"), "/") {
		clear, err := url.PathUnescape(part)
		if err != nil {
			return c
		}
		c.rest = append(c.rest, clear)
	}
	switch path := r.URL.Path; {
	case path == "/v1/.well-known/openidconfiguration":
		c.on = OpenIDDoc
	case path == "/v1/.well-known/keys":
		c.on = Keys
	case strings.HasSuffix(path, "/oauth2/v2.0/token"):
		c.on = Token
	case strings.HasSuffix(path, "/v2.0/.well-known/openid-configuration"), path == "/common/discovery/instance":
		c.on = login
	case c.rest[0] == "graph":
		c.on, c.rest = Graph, c.rest[1:]
	case c.rest[0] == "sharepoint" && len(c.rest) > 1:
		c.on = Download
		if r.Method == http.MethodPut {
			c.on = Upload
		}
	case c.rest[0] == s.o.Region:
		c.rest = c.rest[1:]
		if len(c.rest) > 0 && c.rest[0] == s.o.TenantID {
			c.rest = c.rest[1:]
		}
		if len(c.rest) > 1 && c.rest[0] == "v3" {
			c.rest = c.rest[1:]
			c.on = c.connector(r.Method)
		}
	}
	return c
}

// login is what a client library asks before it asks for a token.
const login Endpoint = "login"

// connector reads the path below v3 and leaves in rest what follows a conversation id.
func (c *call) connector(method string) Endpoint {
	switch {
	case c.rest[0] == "attachments":
		return Attachments
	case c.rest[0] == "teams":
		return Teams
	case c.rest[0] != "conversations":
		return ""
	case len(c.rest) == 1:
		return Create
	}
	c.room, c.thread = splitID(c.rest[1])
	c.rest = c.rest[2:]
	switch what := strings.Join(c.rest[:min(1, len(c.rest))], ""); {
	case what == "members" || what == "pagedmembers":
		return Members
	case what != "activities":
		return ""
	case len(c.rest) == 4 && c.rest[2] == "reactions":
		return React
	case len(c.rest) == 3 && c.rest[2] == "members":
		return Members
	case method == http.MethodPut:
		return Edit
	case method == http.MethodDelete:
		return Delete
	}
	var a sent
	_ = json.Unmarshal(c.body, &a)
	if _, streams := a.stream(); a.Type == "typing" && !streams {
		return Typing
	}
	return Send
}

// serveConnector answers the REST interface below the service URL.
func (s *Server) serveConnector(w http.ResponseWriter, r *http.Request, c *call) {
	if c.on == login {
		s.serveLogin(w, r)
		return
	}
	if err := s.authorize(r, connectorScope); err != nil {
		writeError(w, err)
		return
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); len(c.body) > 0 && kind != "application/json" {
		writeError(w, refuse(http.StatusUnsupportedMediaType, "BadArgument", "The request entity's media type '"+kind+"' is not supported for this resource."))
		return
	}
	status, value, err := s.connect(r, c)
	switch {
	case err != nil:
		writeError(w, err)
	case value == nil:
		w.WriteHeader(status)
	default:
		if file, ok := value.(*storedFile); ok {
			file.serve(w)
			return
		}
		writeJSON(w, status, value)
	}
}

type resource struct {
	ID string `json:"id,omitempty"`
}

func (s *Server) connect(r *http.Request, c *call) (int, any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.on {
	case Create:
		return s.create(c)
	case Attachments:
		return s.attachment(c)
	case Teams:
		return s.teamInfo(c)
	}
	at, err := s.place(c)
	if err != nil {
		return 0, nil, err
	}
	switch c.on {
	case Send, Typing:
		return s.receive(at, c)
	case Edit:
		return s.edit(at, c)
	case Delete:
		return s.remove(at, c)
	case React:
		return s.botReaction(r, at, c)
	case Members:
		return s.members(r, at, c)
	}
	return 0, nil, refuse(404, "NotFound", "No HTTP resource was found that matches the request URI.")
}

var conversationID = regexp.MustCompile(`^(a:|19:|29:)[A-Za-z0-9:@\-_.]+$`)

// place finds the room of a request, and refuses as Teams does.
func (s *Server) place(c *call) (*room, error) {
	if !conversationID.MatchString(c.room) {
		return nil, refuse(400, "BadSyntax", "Bad format of conversation ID")
	}
	r := s.rooms[c.room]
	switch {
	case r == nil:
		return nil, refuse(404, "ConversationNotFound", wording(404, "ConversationNotFound"))
	case r.refusal != nil:
		return nil, r.refusal
	case !r.installed && r.Type == Personal:
		return nil, refuse(403, "ForbiddenOperationException", wording(403, "ForbiddenOperationException"))
	case !r.installed:
		return nil, refuse(403, "BotNotInConversationRoster", wording(403, "BotNotInConversationRoster"))
	case c.thread == "":
		return r, nil
	case r.Type != Channel:
		return nil, refuse(400, "BadSyntax", "Bad format of conversation ID: threads are not supported in this conversation")
	case r.gone[c.thread] || r.messages[c.thread] == nil || r.messages[c.thread].Thread != c.thread:
		return nil, refuse(404, "ActivityNotFoundInConversation", wording(404, "ActivityNotFoundInConversation"))
	}
	return r, nil
}

// messageNumber is the form of a message's id. Other activities have other ids.
var messageNumber = regexp.MustCompile(`^[0-9]+$`)

// receive takes an activity of the bot.
func (s *Server) receive(r *room, c *call) (int, any, error) {
	a, err := s.read(c.body)
	if err != nil {
		return 0, nil, err
	}
	thread := c.thread
	if len(c.rest) == 2 { // a reply to an activity
		answered := r.messages[c.rest[1]]
		switch {
		case r.gone[c.rest[1]]:
			return 0, nil, refuse(404, "ActivityNotFoundInConversation", wording(404, "ActivityNotFoundInConversation"))
		case answered == nil && !messageNumber.MatchString(c.rest[1]):
			// The id of an invoke or of a library's own event: botbuilder answers those, and Teams takes it.
		case answered == nil:
			return 0, nil, refuse(404, "ActivityNotFoundInConversation", wording(404, "ActivityNotFoundInConversation"))
		case r.Type == Channel && thread == "":
			thread = answered.Thread
		}
		a.ReplyToID = c.rest[1]
	}
	if info, ok := a.stream(); ok {
		return s.streamed(r, a, info)
	}
	if err := s.quota(r); err != nil {
		return 0, nil, err
	}
	switch a.Type {
	case "typing":
		s.act(Act{Verb: "typing", Room: r.ID, Thread: thread, Bot: true})
		return http.StatusCreated, resource{s.messageID()}, nil
	case "message":
		return s.say(r, thread, a)
	}
	return 0, nil, refuse(400, "BadSyntax", "Unknown activity type")
}

// say puts an activity into a room: as one message, or as several, and then Teams gives no id.
func (s *Server) say(r *room, thread string, a *sent) (int, any, error) {
	parts := a.parts()
	first := ""
	for _, part := range parts {
		m, err := s.deliver(r, thread, part)
		if err != nil {
			return 0, nil, err
		}
		if first = cmp.Or(first, m.ID); r.Type == Channel {
			thread = cmp.Or(thread, m.ID)
		}
	}
	if len(parts) > 1 || s.vague {
		return http.StatusAccepted, nil, nil
	}
	return http.StatusCreated, resource{first}, nil
}

// parts splits an activity as Teams does: the text is one message, and each card or picture one of its own, unless
// they are laid out as a carousel. (That pictures are split off too is what people report, not documented.)
func (a *sent) parts() []*sent {
	var parts []*sent
	if a.Text != "" || len(a.Attachments) == 0 {
		alone := *a
		alone.Attachments = nil
		parts = append(parts, &alone)
	}
	groups := slices.Chunk(a.Attachments, 1)
	if a.AttachmentLayout == "carousel" && len(a.Attachments) > 0 {
		groups = slices.Chunk(a.Attachments, len(a.Attachments))
	}
	for group := range groups {
		one := *a
		one.Text, one.Attachments = "", group
		parts = append(parts, &one)
	}
	return parts
}

// whole refuses an activity that would be several messages where there can be but one: in an update, and as the first
// of a new thread.
func (a *sent) whole() error {
	if len(a.parts()) > 1 {
		return refuse(400, "BadSyntax", "Activity resulted into multiple skype activities")
	}
	return nil
}

// read parses and measures an activity.
func (s *Server) read(body []byte) (*sent, error) {
	a := &sent{}
	if err := json.Unmarshal(body, a); err != nil {
		return nil, refuse(400, "BadSyntax", "Invalid activity: the request body is no valid JSON")
	}
	a.raw = slices.Clone(body)
	if a.size() > s.o.MessageLimit {
		if _, ok := a.stream(); ok {
			return nil, notAllowed("Message size too large")
		}
		return nil, refuse(http.StatusRequestEntityTooLarge, "MessageSizeTooBig", wording(413, "MessageSizeTooBig"))
	}
	return a, nil
}

// size is what counts for the limit: text, cards and mentions in UTF-8, pictures in data URIs not included.
func (a *sent) size() int {
	n := len(a.Text) + len(a.Summary)
	for _, x := range a.Attachments {
		n += len(x.Content) + len(x.Name) + len(x.ContentType)
		if !strings.HasPrefix(x.ContentURL, "data:") {
			n += len(x.ContentURL)
		}
	}
	for _, e := range a.Entities {
		if e.Type == "mention" {
			n += len(e.Text) + len(e.Mentioned.ID) + len(e.Mentioned.Name)
		}
	}
	return n
}

// deliver puts a message of the bot into a room.
func (s *Server) deliver(r *room, thread string, a *sent) (*Message, error) {
	m := &Message{ID: s.messageID(), Room: r.ID, Thread: thread, From: s.BotID(), Bot: true, At: time.Now()}
	if r.Type == Channel && thread == "" {
		m.Thread = m.ID
	}
	if err := s.fill(r, m, a); err != nil {
		return nil, err
	}
	s.put(r, m)
	s.act(Act{Verb: "send", Room: r.ID, Thread: m.Thread, Message: m.ID, Text: m.Text, Bot: true})
	return m, nil
}

// fill makes a message look as an activity says.
func (s *Server) fill(r *room, m *Message, a *sent) error {
	if a.Text == "" && len(a.Attachments) == 0 && a.Summary == "" {
		return refuse(400, "BadSyntax", "Activity must include non empty 'text' field or at least 1 attachment")
	}
	look, err := s.look(r, m.ID, a)
	if err != nil {
		return err
	}
	m.Cards, m.Buttons, m.Files, m.CardText = look.cards, look.buttons, look.files, strings.Join(look.texts, "\n")
	m.Text, m.Raw, m.Format, m.Alert = cmp.Or(a.Text, m.CardText), a.raw, cmp.Or(a.TextFormat, "markdown"), a.ChannelData.Notification.Alert
	m.Mentioned = nil
	for _, e := range a.Entities {
		if e.Type == "mention" && strings.Contains(a.Text, e.Text) {
			m.Mentioned = append(m.Mentioned, e.Mentioned.ID)
		}
	}
	if a.ReplyToID != "" && r.Type != Channel {
		m.ReplyTo = a.ReplyToID
	}
	return nil
}

// own finds a message of the bot.
func (s *Server) own(r *room, id string) (*Message, error) {
	m := r.messages[id]
	switch {
	case m == nil:
		return nil, refuse(404, "ActivityNotFoundInConversation", wording(404, "ActivityNotFoundInConversation"))
	case !m.Bot:
		return nil, refuse(403, "NotEnoughPermissions", wording(403, "NotEnoughPermissions"))
	}
	return m, nil
}

// edit is PUT of an activity.
func (s *Server) edit(r *room, c *call) (int, any, error) {
	if len(c.rest) != 2 {
		return 0, nil, refuse(405, "MethodNotAllowed", "The requested resource does not support http method 'PUT'.")
	}
	m, err := s.own(r, c.rest[1])
	if err != nil {
		return 0, nil, err
	}
	a, err := s.read(c.body)
	if err != nil {
		return 0, nil, err
	}
	if err := a.whole(); err != nil {
		return 0, nil, err
	}
	if m.Streaming {
		return 0, nil, refuse(403, "ContentStreamNotAllowed", "Content stream is not completed")
	}
	if err := s.fill(r, m, a); err != nil {
		return 0, nil, err
	}
	m.Edited = time.Now()
	s.act(Act{Verb: "edit", Room: r.ID, Thread: m.Thread, Message: m.ID, Text: m.Text, Bot: true})
	return http.StatusOK, resource{m.ID}, nil
}

// remove is DELETE of an activity.
func (s *Server) remove(r *room, c *call) (int, any, error) {
	if len(c.rest) != 2 {
		return 0, nil, refuse(405, "MethodNotAllowed", "The requested resource does not support http method 'DELETE'.")
	}
	m, err := s.own(r, c.rest[1])
	if err != nil {
		return 0, nil, err
	}
	r.forget(m.ID)
	s.act(Act{Verb: "delete", Room: r.ID, Thread: m.Thread, Message: m.ID, Bot: true})
	return http.StatusOK, nil, nil
}

var reactionType = regexp.MustCompile(`^[A-Za-z0-9_\-]+$`)

// botReaction is PUT and DELETE of a reaction.
func (s *Server) botReaction(req *http.Request, r *room, c *call) (int, any, error) {
	m := r.messages[c.rest[1]]
	if m == nil {
		return 0, nil, refuse(404, "ActivityNotFoundInConversation", wording(404, "ActivityNotFoundInConversation"))
	}
	if !reactionType.MatchString(c.rest[3]) {
		return 0, nil, refuse(400, "BadSyntax", "Invalid reaction type")
	}
	verb := map[string]string{http.MethodPut: "react", http.MethodDelete: "unreact"}[req.Method]
	if verb == "" {
		return 0, nil, refuse(405, "MethodNotAllowed", "The requested resource does not support http method '"+req.Method+"'.")
	}
	m.react(s.BotID(), c.rest[3], verb == "unreact")
	s.act(Act{Verb: verb, Room: r.ID, Thread: m.Thread, Message: m.ID, Text: c.rest[3], Bot: true})
	return http.StatusOK, nil, nil
}
