package slacktest

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"herald/platforms/platformtest/faults"
)

// call is one HTTP request with its parameters, however they were encoded.
type call struct {
	Request
	token string
	path  string // the part of the URL that names an upload, a file or a response
	body  []byte // of an upload
	query url.Values
}

type callKey struct{}

func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call)
	if c == nil {
		return &call{} // a fault asks about a request of nobody
	}
	return c
}

func (c *call) get(name string) string { return c.Params[name] }

func (c *call) bool(name string) bool {
	b, _ := strconv.ParseBool(c.Params[name])
	return b
}

func (c *call) int(name string, otherwise int) int {
	if n, err := strconv.Atoi(c.Params[name]); err == nil {
		return n
	}
	return otherwise
}

// has says whether a parameter was given, empty or not.
func (c *call) has(name string) bool {
	_, ok := c.Params[name]
	return ok
}

// channel is the channel that the call is about, if any.
func (c *call) channel() string {
	for _, name := range []string{"channel", "channel_id"} {
		if v := c.Params[name]; v != "" {
			return v
		}
	}
	return ""
}

// maxBody is the most bytes of a request.
const maxBody = 128 << 20

// prefixes are the paths besides the Web API.
var prefixes = map[string]string{"/link/": MethodSocket, "/upload/v1/": MethodUpload, "/files-pri/": MethodDownload, "/response/": MethodRespond}

// readCall reads a request and notes it.
func (s *Server) readCall(r *http.Request) (*call, error) {
	c := &call{Request: Request{At: time.Now(), Params: map[string]string{}}, query: r.URL.Query()}
	for prefix, method := range prefixes {
		if rest, ok := strings.CutPrefix(r.URL.Path, prefix); ok {
			c.Method, c.path = method, rest
		}
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/api/"); ok {
		c.Method = rest
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case c.Method == MethodUpload:
		err = c.readUpload(kind, params["boundary"], body)
	case kind == "application/json" || c.Method == MethodRespond:
		c.JSON = true
		err = c.readJSON(body)
	default:
		err = c.readForm(r, kind, params["boundary"], body)
	}
	c.token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if c.token == "" {
		c.token = c.Params["token"]
	}
	delete(c.Params, "token")
	Routes.Hit(c.Method)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = r.Host
	if t := s.holder(c.token); t != nil {
		c.Team = t.ID
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		s.requests = bounded(append(s.requests, c.Request), s.o.Keep)
	}
	s.calls[c.Method]++
	return c, err
}

func (c *call) readJSON(body []byte) error {
	var fields map[string]json.RawMessage
	if len(body) > 0 && json.Unmarshal(body, &fields) != nil {
		return errors.New("no JSON object")
	}
	for k, raw := range fields {
		var text string
		switch {
		case string(raw) == "null":
			continue
		case json.Unmarshal(raw, &text) != nil:
			text = string(raw)
		}
		c.Params[k] = text
	}
	if c.Method == MethodRespond {
		c.body = body
	}
	return nil
}

func (c *call) readForm(r *http.Request, kind, boundary string, body []byte) error {
	for k, v := range c.query {
		c.Params[k] = v[0]
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	var values url.Values
	switch {
	case kind == "multipart/form-data" && boundary != "":
		if err := r.ParseMultipartForm(maxBody); err != nil {
			return err
		}
		values = r.MultipartForm.Value
	default:
		var err error
		if values, err = url.ParseQuery(string(body)); err != nil {
			return err
		}
	}
	for k, v := range values {
		c.Params[k] = v[0]
	}
	return nil
}

// holder is the workspace of a bot token. The caller holds mu.
func (s *Server) holder(token string) *team {
	for _, t := range s.teams {
		if token != "" && t.BotToken == token {
			return t
		}
	}
	return nil
}

// refusal is an answer that is not ok.
type refusal struct {
	code   string
	errors []string // what is wrong with blocks
	more   object
	status int // HTTP, 0 is 200
}

func (r refusal) Error() string { return r.code }

func refuse(code string) error { return refusal{code: code} }

// tooSoon is a 429 that comes of a limit of the fake's own.
type tooSoon struct{ wait time.Duration }

func (tooSoon) Error() string { return "ratelimited" }

// method is a method of the Web API.
type method struct {
	// scopes: one of them is needed. A method whose scope depends on the channel asks itself.
	scopes []string
	app    bool // it takes the app token
	form   bool // it takes no JSON
	run    func(*Server, *team, *call) (object, error)
}

func needs(scopes ...string) []string { return scopes }

// Routes are the methods of the Web API and the pseudo-methods, with how often they were called in this process.
var Routes = faults.NewRoutes("slacktest")

// webMethods are the methods of the Web API.
func webMethods() map[string]method {
	return map[string]method{
		"apps.connections.open":                 {app: true, run: (*Server).connectionsOpen},
		"auth.test":                             {run: (*Server).authTest},
		"users.info":                            {scopes: needs("users:read"), form: true, run: (*Server).usersInfo},
		"users.list":                            {scopes: needs("users:read"), form: true, run: (*Server).usersList},
		"users.conversations":                   {form: true, run: (*Server).usersConversations},
		"conversations.info":                    {form: true, run: (*Server).conversationsInfo},
		"conversations.open":                    {scopes: needs("im:write", "mpim:write"), run: (*Server).conversationsOpen},
		"conversations.history":                 {form: true, run: (*Server).conversationsHistory},
		"conversations.replies":                 {form: true, run: (*Server).conversationsReplies},
		"chat.postMessage":                      {scopes: needs("chat:write"), run: (*Server).chatPost},
		"chat.postEphemeral":                    {scopes: needs("chat:write"), run: (*Server).chatEphemeral},
		"chat.update":                           {scopes: needs("chat:write"), run: (*Server).chatUpdate},
		"chat.delete":                           {scopes: needs("chat:write"), run: (*Server).chatDelete},
		"chat.startStream":                      {scopes: needs("chat:write"), run: (*Server).streamStart},
		"chat.appendStream":                     {scopes: needs("chat:write"), run: (*Server).streamAppend},
		"chat.stopStream":                       {scopes: needs("chat:write"), run: (*Server).streamStop},
		"reactions.add":                         {scopes: needs("reactions:write"), run: (*Server).reactionsAdd},
		"reactions.remove":                      {scopes: needs("reactions:write"), run: (*Server).reactionsRemove},
		"reactions.get":                         {scopes: needs("reactions:read"), form: true, run: (*Server).reactionsGet},
		"files.getUploadURLExternal":            {scopes: needs("files:write"), form: true, run: (*Server).filesUploadURL},
		"files.completeUploadExternal":          {scopes: needs("files:write"), run: (*Server).filesComplete},
		"files.info":                            {scopes: needs("files:read"), form: true, run: (*Server).filesInfo},
		"assistant.threads.setStatus":           {scopes: needs("assistant:write", "chat:write"), run: (*Server).assistantStatus},
		"assistant.threads.setTitle":            {scopes: needs("assistant:write"), run: (*Server).assistantTitle},
		"assistant.threads.setSuggestedPrompts": {scopes: needs("assistant:write"), run: (*Server).assistantPrompts},
	}
}

// serveMethod answers a Web API call.
func (s *Server) serveMethod(w http.ResponseWriter, c *call) {
	s.mu.Lock()
	t := s.holder(c.token)
	m, known := s.methods[c.Method]
	answer, err := object(nil), error(nil)
	switch {
	case !known:
		err = refusal{code: "unknown_method", more: object{"req_method": c.Method}}
	default:
		if err = s.letIn(t, m, c); err == nil {
			if m.form && c.JSON {
				c.Params = map[string]string{} // Slack doesn't look at a JSON body here
			}
			answer, err = m.run(s, t, c)
		}
	}
	if t != nil {
		w.Header().Set("X-OAuth-Scopes", strings.Join(t.Scopes, ","))
		w.Header().Set("X-Accepted-OAuth-Scopes", strings.Join(m.scopes, ","))
	}
	s.mu.Unlock()
	var soon tooSoon
	if errors.As(err, &soon) {
		s.limit(w, soon.wait)
		return
	}
	status, body := wireAnswer(answer, err)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// letIn checks token and scopes. The caller holds mu.
func (s *Server) letIn(t *team, m method, c *call) error {
	switch {
	case c.token == "":
		return refuse("not_authed")
	case c.token == s.o.AppToken && s.appCode != "":
		return refuse(s.appCode)
	case c.token == s.o.AppToken && !m.app && c.Method != "auth.test":
		return refuse("not_allowed_token_type")
	case c.token == s.o.AppToken:
		return nil
	case t == nil:
		return refuse("invalid_auth")
	case t.code != "":
		return refuse(t.code)
	case m.app:
		return refuse("not_allowed_token_type")
	case len(m.scopes) > 0:
		return t.need(m.scopes...)
	}
	return nil
}

// need refuses when none of the scopes was granted.
func (t *team) need(scopes ...string) error {
	if slices.ContainsFunc(scopes, t.granted) {
		return nil
	}
	return refusal{code: "missing_scope", more: object{"needed": strings.Join(scopes, ","), "provided": strings.Join(t.Scopes, ",")}}
}

func wireAnswer(answer object, err error) (int, []byte) {
	if err == nil {
		out := object{"ok": true}
		for k, v := range answer {
			out[k] = v
		}
		return http.StatusOK, encode(out)
	}
	var r refusal
	if !errors.As(err, &r) {
		r = refusal{code: "internal_error"}
	}
	out := object{"ok": false, "error": r.code}
	for k, v := range r.more {
		out[k] = v
	}
	if len(r.errors) > 0 {
		var messages []string
		for _, e := range r.errors {
			messages = append(messages, "[ERROR] "+e)
		}
		out["errors"], out["response_metadata"] = r.errors, object{"messages": messages}
	}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.status, encode(out)
}

// missing is Slack's refusal of a call without a parameter.
func missing(field string) error {
	return refusal{code: "invalid_arguments", more: object{"response_metadata": object{"messages": []string{"[ERROR] missing required field: " + field}}}}
}

func (s *Server) authTest(t *team, _ *call) (object, error) {
	if t == nil {
		return object{"app_name": "Herald", "app_id": s.o.AppID}, nil
	}
	return object{
		"url": "https://" + t.Domain + ".slack.com/", "team": t.Name, "user": t.BotName, "team_id": t.ID, "user_id": t.BotUser, "bot_id": t.BotID,
		"is_enterprise_install": false,
	}, nil
}

// Revoke refuses the bot token of a workspace from now on with code: "token_revoked", "invalid_auth",
// "token_expired", "account_inactive". token_revoked also sends the tokens_revoked event. Empty code takes it
// back.
func (s *Server) Revoke(team, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(team)
	t.code = code
	if code == "token_revoked" {
		s.event(t, nil, "tokens_revoked", object{"type": "tokens_revoked", "tokens": object{"oauth": []string{}, "bot": []string{t.BotUser}}, "event_ts": s.ts()})
	}
}

// RevokeApp refuses the app token from now on with code; empty takes it back.
func (s *Server) RevokeApp(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appCode = code
}
