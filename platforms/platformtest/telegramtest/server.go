package telegramtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"herald/platforms/platformtest/faults"
)

// Options configures a fake Bot API server. The zero value takes any token.
type Options struct {
	// Token is the only token that is let in. Empty lets every token in.
	Token string
	// BotID is what getMe answers. 0 takes the digits of Token, or 4242.
	BotID int64
	// Username is the bot's name. Empty is "herald_test_bot".
	Username string
	// Keep is how many messages and acts are remembered, 0 for all: soak runs set it.
	Keep int
	// LocalFiles makes getFile answer absolute paths below this folder, as a server in local mode does.
	LocalFiles string
	// MaxDownload is the size above which getFile refuses, 0 for 20 MB.
	MaxDownload int64
}

// Server is a fake Bot API server with the chats, people and messages behind it. All methods are safe for
// concurrent use.
type Server struct {
	*faults.Server // where it listens

	o       Options
	methods map[string]method

	mu       sync.Mutex
	rooms    map[int64]*room
	files    map[string]stored
	queries  map[string]*query
	commands []Command
	acts     []Act
	watchers []func(Act)
	calls    map[string]int
	revoked  bool
	nextMsg  int
	nextFile int
	nextAny  int

	updates   []update // not confirmed
	confirmed []update // the newest confirmed ones, for Replay
	nextID    int64
	wake      chan struct{}
	poll      *poll // the poll that waits now
	polls     int   // polls that wait now
	mostPolls int
	conflicts int
	webhook   webhook

	script    faults.Script
	windows   faults.Windows[int64] // by chat
	twice     int                   // getUpdates answers with each update twice
	backwards int                   // getUpdates answers the other way round
	done      chan struct{}         // closed by Close: polls end

	sessions sync.WaitGroup
}

// New returns a fake that listens nowhere yet: use it as a handler, or Start it.
func New(o Options) *Server {
	if o.BotID == 0 {
		digits, _, _ := strings.Cut(o.Token, ":")
		o.BotID, _ = strconv.ParseInt(digits, 10, 64)
	}
	if o.BotID == 0 {
		o.BotID = 4242
	}
	if o.Username == "" {
		o.Username = "herald_test_bot"
	}
	if o.MaxDownload == 0 {
		o.MaxDownload = 20 << 20
	}
	t := &Server{
		o: o, methods: methods(), rooms: map[int64]*room{}, files: map[string]stored{}, queries: map[string]*query{},
		calls: map[string]int{}, nextID: 100, nextMsg: 1000,
		wake: make(chan struct{}), done: make(chan struct{}),
	}
	Routes.Add(slices.Collect(maps.Keys(t.methods))...)
	Routes.Add(routeFile)
	t.Server = faults.NewServer(t)
	return t
}

// Serve listens on addr and serves until ctx ends.
func (t *Server) Serve(ctx context.Context, addr string) error {
	if err := t.Listen(addr); err != nil {
		return err
	}
	<-ctx.Done()
	t.Close()
	return nil
}

// Close ends the server and everything that hangs in it.
func (t *Server) Close() {
	t.mu.Lock()
	select {
	case <-t.done:
	default:
		close(t.done)
	}
	if t.webhook.stop != nil {
		t.webhook.stop()
	}
	t.mu.Unlock()
	t.script.Close()
	t.Server.Close()
	t.sessions.Wait()
}

// Revoke makes the server refuse the bot's token from now on.
func (t *Server) Revoke() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revoked = true
}

// BotID returns the bot's own user id.
func (t *Server) BotID() int64 { return t.o.BotID }

// Calls returns how often a method was called; names are matched as Telegram does, ignoring case.
func (t *Server) Calls(method string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[strings.ToLower(method)]
}

// AllCalls returns how many calls came in, of every method.
func (t *Server) AllCalls() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, c := range t.calls {
		n += c
	}
	return n
}

// request is one call with its parameters, however they were encoded.
type request struct {
	method string
	params map[string]string
	files  map[string]stored
	http   *http.Request
}

type requestKey struct{}

func requestOf(r *http.Request) *request { return r.Context().Value(requestKey{}).(*request) }

func (r *request) int(name string) int64 {
	n, _ := strconv.ParseInt(r.params[name], 10, 64)
	return n
}

func (r *request) bool(name string) bool {
	b, _ := strconv.ParseBool(r.params[name])
	return b
}

func (r *request) decode(name string, into any) bool {
	return r.params[name] != "" && json.Unmarshal([]byte(r.params[name]), into) == nil
}

// apiError is a refusal as the Bot API words it.
type apiError struct {
	code        int
	description string
	retryAfter  int
	migrateTo   int64
}

func (e *apiError) Error() string { return e.description }

func refuse(code int, format string, args ...any) error {
	prefix := map[int]string{400: "Bad Request: ", 403: "Forbidden: ", 409: "Conflict: "}[code]
	return &apiError{code: code, description: prefix + fmt.Sprintf(format, args...)}
}

// ServeHTTP answers /bot<token>/<method> and /file/bot<token>/<path>.
func (t *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if rest, ok := strings.CutPrefix(path, "file/"); ok {
		Routes.Hit(routeFile)
		t.serveFile(w, r, rest)
		return
	}
	token, method, ok := strings.Cut(strings.TrimPrefix(path, "bot"), "/")
	if !ok || !strings.HasPrefix(path, "bot") {
		write(w, nil, &apiError{code: 404, description: "Not Found"})
		return
	}
	if !t.letsIn(token) {
		write(w, nil, &apiError{code: 401, description: "Unauthorized"})
		return
	}
	req, err := readRequest(r, strings.ToLower(method))
	if err != nil {
		write(w, nil, err)
		return
	}
	t.count(req)
	t.script.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { t.serve(w, req) })).
		ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, req)))
}

// serve is behind the faults.
func (t *Server) serve(w http.ResponseWriter, req *request) {
	if err := t.politeness(req); err != nil {
		write(w, nil, err)
		return
	}
	result, err := t.call(req)
	if errors.Is(err, errHung) {
		return
	}
	write(w, result, err)
}

func (t *Server) letsIn(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.revoked && (t.o.Token == "" || token == t.o.Token)
}

func (t *Server) count(r *request) {
	Routes.Hit(r.method)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[r.method]++
}

// politeness refuses, and records, a request inside a window that the bot was asked to wait for.
func (t *Server) politeness(r *request) error {
	chat := r.int("chat_id")
	if chat == 0 {
		return nil
	}
	left := t.windows.Enter(chat, fmt.Sprintf("%s for chat %d", r.method, chat))
	if left <= 0 {
		return nil
	}
	return tooMany(int(left/time.Second) + 1)
}

func tooMany(seconds int) error {
	return &apiError{code: 429, description: fmt.Sprintf("Too Many Requests: retry after %d", seconds), retryAfter: seconds}
}

// Violations returns the requests that came inside a retry-after window.
func (t *Server) Violations() []string {
	return t.windows.Violations()
}

func write(w http.ResponseWriter, result any, err error) {
	status, body := answerOf(result, err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func answerOf(result any, err error) (int, []byte) {
	var refusal *apiError
	if err != nil && !errors.As(err, &refusal) {
		refusal = &apiError{code: 500, description: "Internal Server Error"}
	}
	if refusal == nil {
		raw, ok := result.(json.RawMessage)
		if !ok {
			raw, _ = json.Marshal(result)
		}
		body := make([]byte, 0, len(raw)+24)
		body = append(append(append(body, `{"ok":true,"result":`...), raw...), '}')
		return http.StatusOK, body
	}
	type parameters struct {
		RetryAfter int   `json:"retry_after,omitempty"`
		MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
	}
	out := struct {
		OK          bool        `json:"ok"`
		Code        int         `json:"error_code"`
		Description string      `json:"description"`
		Parameters  *parameters `json:"parameters,omitempty"`
	}{Code: refusal.code, Description: refusal.description}
	if refusal.retryAfter != 0 || refusal.migrateTo != 0 {
		out.Parameters = &parameters{refusal.retryAfter, refusal.migrateTo}
	}
	body, _ := json.Marshal(out)
	return refusal.code, body
}

// maxUpload is the most bytes of one request, Telegram's own limit and room for the other fields.
const maxUpload = 51 << 20

// readRequest reads parameters from the query, a form, a multipart form or JSON.
func readRequest(r *http.Request, method string) (*request, error) {
	req := &request{method: method, params: map[string]string{}, files: map[string]stored{}, http: r}
	for k, v := range r.URL.Query() {
		req.params[k] = v[0]
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch kind {
	case "application/json":
		var body map[string]json.RawMessage
		if err := json.NewDecoder(io.LimitReader(r.Body, maxUpload)).Decode(&body); err != nil {
			return nil, refuse(400, "Can't parse request JSON object")
		}
		for k, raw := range body {
			var s string
			if json.Unmarshal(raw, &s) != nil {
				s = string(raw)
			}
			req.params[k] = s
		}
	case "multipart/form-data":
		parts, err := r.MultipartReader()
		if err != nil {
			return nil, refuse(400, "%v", err)
		}
		for {
			part, err := parts.NextPart()
			if errors.Is(err, io.EOF) {
				break // an empty body ends without a boundary
			}
			if err != nil {
				return nil, refuse(400, "request body is broken")
			}
			body, err := io.ReadAll(io.LimitReader(part, maxUpload))
			if err != nil {
				return nil, refuse(400, "request body is broken")
			}
			if part.FileName() != "" {
				req.files[part.FormName()] = stored{name: part.FileName(), body: body}
			} else {
				req.params[part.FormName()] = string(body)
			}
		}
	default:
		if err := r.ParseForm(); err == nil {
			for k, v := range r.PostForm {
				req.params[k] = v[0]
			}
		}
	}
	return req, nil
}
