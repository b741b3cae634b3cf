package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"herald/platforms"
)

// The prefix of everything that the page talks to.
const api = "/api/chat"

func (a *Adapter) routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /{$}":                     a.guard(a.page.serveHTML, true),
		"GET /static/{hash}/{file...}": a.hostOnly(a.page.serveStatic),

		"POST " + api + "/login":     a.guard(a.login, false),
		"POST " + api + "/logout":    a.guard(a.logout, false),
		"GET " + api + "/bootstrap":  a.member(a.bootstrap),
		"GET " + api + "/events":     a.member(a.events),
		"GET " + api + "/chats":      a.member(a.listChats),
		"GET " + api + "/files/{id}": a.member(a.download),

		"GET " + api + "/chats/{chat}/messages":              a.member(a.history),
		"POST " + api + "/chats/{chat}/messages":             a.member(a.postMessage),
		"POST " + api + "/chats/{chat}/messages/{seq}/retry": a.member(a.retryMessage),
		"POST " + api + "/chats/{chat}/clicks":               a.member(a.postClick),

		api + "/": a.member(func(w http.ResponseWriter, r *http.Request) {
			a.fail(w, r, http.StatusNotFound, "not_found", "There is nothing at "+r.Method+" "+r.URL.Path+".")
		}),
	}
}

// hostOnly checks the host alone: static files hold no secret.
func (a *Adapter) hostOnly(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := a.door.checkHost(r); err != nil {
			a.refuse(w, r, http.StatusMisdirectedRequest, "host", err)
			return
		}
		next(w, r)
	})
}

// guard checks host and origin. document says that it is the page itself.
func (a *Adapter) guard(next http.HandlerFunc, document bool) http.Handler {
	return a.hostOnly(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		h.Set("Cache-Control", "no-store")
		if err := a.door.checkOrigin(r, document); err != nil {
			a.refuse(w, r, http.StatusForbidden, "origin", err)
			return
		}
		next(w, r)
	})
}

// member checks host, origin and session.
func (a *Adapter) member(next http.HandlerFunc) http.Handler {
	return a.guard(func(w http.ResponseWriter, r *http.Request) {
		ok, wait := a.door.admitted(r)
		switch {
		case wait > 0:
			a.tooMany(w, r, wait)
		case !ok:
			a.fail(w, r, http.StatusUnauthorized, "login", "Log in first.")
		default:
			next(w, r)
		}
	}, false)
}

// Behind returns next behind the door of the chat page, for other pages of Herald's: host, origin, and session or
// token are checked. Who has no session and opens a page in a tab is sent to the chat page to log in.
func (a *Adapter) Behind(next http.Handler) http.Handler {
	return a.guard(func(w http.ResponseWriter, r *http.Request) {
		ok, wait := a.door.admitted(r)
		switch {
		case wait > 0:
			a.tooMany(w, r, wait)
		case ok:
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && r.Header.Get("Authorization") == "":
			http.Redirect(w, r, "/", http.StatusSeeOther)
		default:
			a.fail(w, r, http.StatusUnauthorized, "login", "Log in first.")
		}
	}, true)
}

// Static is where the page's style and scripts are served, for other pages behind the door.
func (a *Adapter) Static() string { return "/static/" + a.page.hash }

// Title is what the page calls the assistant.
func (a *Adapter) Title() string { return a.opts.Name }

// Markdown implements platforms.Door; see RenderMarkdown.
func (a *Adapter) Markdown(source string) string { return RenderMarkdown(source) }

// refuse logs and answers a request that should not have come (P7).
func (a *Adapter) refuse(w http.ResponseWriter, r *http.Request, status int, code string, err error) {
	a.log.Warn().Str("remote", r.RemoteAddr).Str("method", r.Method).Str("path", r.URL.Path).Err(err).Msg("web request refused")
	a.fail(w, r, status, code, "Refused: "+err.Error()+".")
}

func (a *Adapter) tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	w.Header().Set("Retry-After", retryAfter(wait))
	a.log.Warn().Str("remote", r.RemoteAddr).Msg("too many wrong passwords")
	a.fail(w, r, http.StatusTooManyRequests, "wait", fmt.Sprintf("Too many wrong tries. Try again in %s s.", retryAfter(wait)))
}

// fail answers with an error: a code for the page, and a sentence for the person.
func (a *Adapter) fail(w http.ResponseWriter, _ *http.Request, status int, code, message string) {
	a.answer(w, status, struct {
		Error failure `json:"error"`
	}{failure{code, message}})
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (a *Adapter) answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		a.log.Error().Err(err).Msg("answer cannot be encoded")
		status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"Herald has a fault; see its log."}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// internal logs a failure of ours and answers with a sentence.
func (a *Adapter) internal(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody listens any more
	}
	a.log.Error().Err(err).Str("path", r.URL.Path).Msg("web request failed")
	a.fail(w, r, http.StatusServiceUnavailable, "store", "Herald can't read its store right now. Try again in a moment.")
}

// errBody is a body that can't be used.
type errBody struct {
	status  int
	code    string
	message string
}

func (e *errBody) Error() string { return e.message }

func badRequest(format string, args ...any) error {
	return &errBody{http.StatusBadRequest, "bad_request", fmt.Sprintf(format, args...)}
}

// failBody answers with what is wrong with a body.
func (a *Adapter) failBody(w http.ResponseWriter, r *http.Request, err error) {
	var e *errBody
	if errors.As(err, &e) {
		a.fail(w, r, e.status, e.code, e.message)
		return
	}
	a.internal(w, r, err)
}

// decodeJSON reads a JSON body of at most limit bytes.
func decodeJSON[T any](body io.Reader, limit int64) (v T, err error) {
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return v, badRequest("The request broke off: %v.", err)
	}
	if int64(len(b)) > limit {
		return v, &errBody{http.StatusRequestEntityTooLarge, "too_large", "The request is over the limit of " + bytesText(limit) + "."}
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, badRequest("The request is no JSON of the expected form: %v.", err)
	}
	return v, nil
}

func isJSON(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && t == "application/json"
}

// login opens a session for a password.
func (a *Adapter) login(w http.ResponseWriter, r *http.Request) {
	if !isJSON(r) {
		a.failBody(w, r, badRequest("Content-Type must be application/json."))
		return
	}
	body, err := decodeJSON[struct {
		Password string `json:"password"`
	}](r.Body, 64<<10)
	if err != nil {
		a.failBody(w, r, err)
		return
	}
	if !a.door.locked {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	ok, wait := a.door.login(r, body.Password)
	switch {
	case wait > 0:
		a.tooMany(w, r, wait)
	case !ok:
		a.log.Warn().Str("remote", r.RemoteAddr).Msg("wrong password")
		a.fail(w, r, http.StatusUnauthorized, "password", "That is not the password.")
	default:
		http.SetCookie(w, a.door.newSession(r))
		w.WriteHeader(http.StatusNoContent)
	}
}

// logout takes the session out of the browser.
func (a *Adapter) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, a.door.endSession(r))
	w.WriteHeader(http.StatusNoContent)
}

// chatOf reads the chat of a request's path.
func (a *Adapter) chatOf(w http.ResponseWriter, r *http.Request) (platforms.ChatID, bool) {
	chat := r.PathValue("chat")
	if !validID(chat) {
		a.failBody(w, r, badRequest("A chat id is 8 to 64 letters, digits, '-' and '_', not %q.", strings.ToValidUTF8(chat, "?")))
		return "", false
	}
	return platforms.ChatID(chat), true
}
