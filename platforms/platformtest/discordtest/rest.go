package discordtest

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"herald/platforms/platformtest/faults"
)

// call is one REST request with its body read.
type call struct {
	r     *http.Request
	route string
	body  []byte   // JSON, also payload_json of a multipart body
	files []upload // of a multipart body
	base  string   // the service's address
}

// upload is a file part.
type upload struct {
	field string
	name  string
	kind  string
	body  []byte
}

func (c *call) id(name string) ID { return ID(c.r.PathValue(name)) }

// decode reads the JSON body.
func (c *call) decode(into any) error {
	err := json.Unmarshal(c.body, into)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch):
		f := &form{}
		f.add(mismatch.Field, "BASE_TYPE_BAD_TYPE", "Could not interpret the value as "+mismatch.Type.String()+".")
		return f.err()
	}
	return refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
}

// refusal is an error as the API words it.
type refusal struct {
	status  int
	code    int
	message string
	errors  any
}

func (e *refusal) Error() string { return e.message }

func refuse(status, code int, message string) error {
	return &refusal{status: status, code: code, message: message}
}

// Refusals that many routes share.
var (
	errUnauthorized   = refuse(401, 0, "401: Unauthorized")
	errNotFound       = refuse(404, 0, "404: Not Found")
	errUnknownChannel = refuse(404, 10003, "Unknown Channel")
	errUnknownGuild   = refuse(404, 10004, "Unknown Guild")
	errUnknownMember  = refuse(404, 10007, "Unknown Member")
	errUnknownMessage = refuse(404, 10008, "Unknown Message")
	errUnknownUser    = refuse(404, 10013, "Unknown User")
	errUnknownEmoji   = refuse(400, 10014, "Unknown Emoji")
	errUnknownWebhook = refuse(404, 10015, "Unknown Webhook")
	errUnknownAction  = refuse(404, 10062, "Unknown interaction")
	errUnknownCommand = refuse(404, 10063, "Unknown application command")
	errWebhookToken   = refuse(401, 50027, "Invalid Webhook Token")
	errAccess         = refuse(403, 50001, "Missing Access")
	errPermissions    = refuse(403, 50013, "Missing Permissions")
	errNotAuthor      = refuse(403, 50005, "Cannot edit a message authored by another user")
	errNoDM           = refuse(403, 50007, "Cannot send messages to this user")
	errNotText        = refuse(400, 50008, "Cannot send messages in a non-text channel")
	errEmpty          = refuse(400, 50006, "Cannot send an empty message")
	errChannelType    = refuse(400, 50024, "Cannot execute action on this channel type")
	errArchived       = refuse(400, 50083, "Thread is archived")
	errTooLarge       = refuse(413, 40005, "Request entity too large")
	errAcknowledged   = refuse(400, 40060, "Interaction has already been acknowledged.")
	errHasThread      = refuse(400, 160004, "A thread has already been created for this message")
	errLocked         = refuse(400, 160005, "Thread is locked")
	errNoHistory      = refuse(403, 160002, "Cannot reply without permission to read message history")
)

// form collects what is wrong in a body.
type form struct{ root map[string]any }

// add notes an error at a path such as "components.0.label"; "" is the body itself.
func (f *form) add(path, code, message string) {
	if f.root == nil {
		f.root = map[string]any{}
	}
	at := f.root
	for _, key := range strings.Split(path, ".") {
		if key == "" {
			continue
		}
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	list, _ := at["_errors"].([]map[string]string)
	at["_errors"] = append(list, map[string]string{"code": code, "message": message})
}

// err returns what was collected as one refusal, nil without.
func (f *form) err() error {
	if f.root == nil {
		return nil
	}
	return &refusal{http.StatusBadRequest, 50035, "Invalid Form Body", f.root}
}

// Routes are the REST routes, with how often they were called in this process.
var Routes = faults.NewRoutes("discordtest")

// ForOthers are routes that our adapter does not call. The tests of this package, with a client that nobody here wrote,
// do.
var ForOthers = []string{
	"GET /api/gateway", "GET /api/users/@me", "GET /api/users/{user}", "GET /api/guilds/{guild}", "GET /api/guilds/{guild}/members/search",
	"GET /api/applications/{application}/commands/{command}", "POST /api/applications/{application}/guilds/{guild}/commands",
	"PATCH /api/channels/{channel}",
	"DELETE /api/channels/{channel}/thread-members/@me", "GET /api/channels/{channel}/threads/archived/public",
	"GET /api/channels/{channel}/messages/{message}/reactions/{emoji}", "POST /api/channels/{channel}/messages/bulk-delete",
}

// handler answers a call while the fake is locked: a status and what is written as JSON, nothing with 204.
type handler func(*call) (status int, result any, err error)

// Who may call a route.
const (
	anybody = iota // webhooks and interactions: the token is in the path
	theBot
)

func (d *Discord) handle(route string, who int, h handler) {
	d.routes = append(d.routes, route)
	Routes.Add(route)
	d.mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
		c := &call{r: r, route: route, base: d.base(r)}
		broken := c.read()
		status, result, wait, err := d.decide(c, w.Header(), who, broken, h)
		if wait != nil {
			tooMany(w, wait)
			return
		}
		answer(w, status, result, err)
	})
}

// decide answers a call while the fake is locked; what it returns is written afterwards.
func (d *Discord) decide(c *call, head http.Header, who int, broken error, h handler) (status int, result json.RawMessage, wait *wait,
	err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	Routes.Hit(c.route)
	d.calls[c.route]++
	if who == theBot && !d.letsIn(botToken(c.r)) {
		return 0, nil, nil, errUnauthorized
	}
	if wait := d.admit(head, c, who); wait != nil {
		return 0, nil, wait, nil
	}
	if broken != nil {
		return 0, nil, nil, broken
	}
	status, value, err := h(c)
	if err != nil || status == http.StatusNoContent {
		return status, nil, nil, err
	}
	if result, err = json.Marshal(value); err != nil {
		panic("discordtest: " + err.Error())
	}
	return status, result, nil, nil
}

// botToken returns the token of an Authorization header, empty when it is of another scheme.
func botToken(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bot ")
	if !ok {
		return ""
	}
	return token
}

// maxBody is the most bytes of a request: ten files of the largest tier, and room.
const maxBody = 1 << 30

// read takes the body: JSON, or multipart with payload_json and files.
func (c *call) read() error {
	kind, parameters, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" || parameters["boundary"] == "" {
		var err error
		c.body, err = io.ReadAll(io.LimitReader(c.r.Body, maxBody))
		if len(c.body) == 0 {
			c.body = []byte("{}")
		}
		return err
	}
	parts, err := c.r.MultipartReader()
	if err != nil {
		return refuse(400, 50035, "Invalid Form Body")
	}
	fields := map[string]any{}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return refuse(400, 50035, "Invalid Form Body")
		}
		body, err := io.ReadAll(io.LimitReader(part, maxBody))
		if err != nil {
			return refuse(400, 50035, "Invalid Form Body")
		}
		switch {
		case part.FileName() != "":
			c.files = append(c.files, upload{part.FormName(), part.FileName(), part.Header.Get("Content-Type"), body})
		case part.FormName() == "payload_json":
			c.body = body
		default:
			fields[part.FormName()] = string(body)
		}
	}
	if c.body == nil {
		c.body, _ = json.Marshal(fields)
	}
	return nil
}

// answer writes a result or an error.
func answer(w http.ResponseWriter, status int, result any, err error) {
	if err != nil {
		var e *refusal
		if !errors.As(err, &e) {
			e = &refusal{status: 500, message: "500: Internal Server Error"}
		}
		status, result = e.status, struct {
			Message string `json:"message"`
			Code    int    `json:"code"`
			Errors  any    `json:"errors,omitempty"`
		}{e.message, e.code, e.errors}
	}
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	body, err := json.Marshal(result)
	if err != nil {
		panic("discordtest: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// ServeHTTP answers REST, gateway and files.
func (d *Discord) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.TrimSuffix(r.URL.Path, "/") == "/gateway" {
		d.serveGateway(w, r)
		return
	}
	rest, isAPI := strings.CutPrefix(r.URL.EscapedPath(), "/api/")
	if !isAPI {
		d.handler.ServeHTTP(w, r)
		return
	}
	if version, below, _ := strings.Cut(rest, "/"); isVersion(version) {
		if version != "v9" && version != "v10" {
			answer(w, 0, nil, refuse(400, 50041, "Invalid API version specified"))
			return
		}
		rest = below
	}
	inner := r.Clone(r.Context())
	inner.URL.RawPath = "/api/" + rest
	path, err := url.PathUnescape(inner.URL.RawPath)
	if err != nil {
		answer(w, 0, nil, errNotFound)
		return
	}
	inner.URL.Path = path
	d.handler.ServeHTTP(w, inner)
}

func isVersion(s string) bool {
	digits, ok := strings.CutPrefix(s, "v")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// table sets the routes up.
func (d *Discord) table() {
	d.mux = http.NewServeMux()
	add := func(who int, list map[string]handler) {
		for _, route := range slices.Sorted(maps.Keys(list)) {
			method, path, _ := strings.Cut(route, " ")
			d.handle(method+" /api"+path, who, list[route])
		}
	}
	add(theBot, d.guildRoutes())
	add(theBot, d.messageRoutes())
	add(theBot, d.threadRoutes())
	add(theBot, d.commandRoutes())
	add(anybody, d.webhookRoutes())
	d.mux.HandleFunc("GET /attachments/{channel}/{file}/{name}", d.serveFile)
	d.mux.HandleFunc("GET /ephemeral-attachments/{channel}/{file}/{name}", d.serveFile)
	d.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.unknown = append(d.unknown, r.Method+" "+r.URL.Path)
		d.mu.Unlock()
		answer(w, 0, nil, errNotFound)
	})
}

// routeOf names the route that answers r, "cdn" for files, empty for none.
func (d *Discord) routeOf(r *http.Request) string {
	_, pattern := d.mux.Handler(r)
	if strings.Contains(pattern, "attachments/") {
		return "cdn"
	}
	return strings.Replace(pattern, " /api", " ", 1)
}

// serveFile is the content network.
func (d *Discord) serveFile(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	f := d.files[ID(r.PathValue("file"))]
	d.mu.Unlock()
	if f == nil || f.Name != r.PathValue("name") {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if f.Type != "" {
		w.Header().Set("Content-Type", f.Type)
	}
	_, _ = w.Write(f.Body)
}

// Calls returns how many requests a route got.
func (d *Discord) Calls(route string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[strings.Replace(route, " ", " /api", 1)]
}

// Routes returns the REST routes that the fake knows.
func (d *Discord) Routes() []string {
	var out []string
	for _, r := range d.routes {
		out = append(out, strings.Replace(r, " /api", " ", 1))
	}
	return out
}

// Unknown returns the requests that met no route, as "METHOD path": what a client wants and the fake lacks.
func (d *Discord) Unknown() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.unknown)
}
