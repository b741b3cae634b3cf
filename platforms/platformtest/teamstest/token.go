package teamstest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The scopes that the token endpoint knows.
const (
	connectorScope = "https://api.botframework.com/.default"
	graphScope     = "https://graph.microsoft.com/.default"
)

// issuedToken is an access token of the bot.
type issuedToken struct {
	scope   string
	expires time.Time
}

// RevokeTokens makes all access tokens that the bot has invalid: the next request with one gets a 401.
func (s *Server) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued = map[string]issuedToken{}
}

// RevokeSecret makes the token endpoint refuse the secret as an expired one (AADSTS7000222), and revokes all
// tokens.
func (s *Server) RevokeSecret() {
	s.RevokeTokens()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = true
}

// serveToken answers POST /{tenant}/oauth2/v2.0/token.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	tenant, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	form, err := url.ParseQuery(string(callOf(r).body))
	if r.Method != http.MethodPost || err != nil {
		entraError(w, 400, "invalid_request", 900144, "The request body must contain the following parameter: 'grant_type'.")
		return
	}
	id, scope := form.Get("client_id"), form.Get("scope")
	secret := form.Get("client_secret")
	if user, pass, ok := r.BasicAuth(); ok && secret == "" {
		id, _ = url.QueryUnescape(user)
		secret, _ = url.QueryUnescape(pass)
	}
	s.mu.Lock()
	lost := s.lost
	s.mu.Unlock()
	switch {
	case form.Get("grant_type") != "client_credentials":
		entraError(w, 400, "unsupported_grant_type", 70003, "The app requested an unsupported grant type '"+form.Get("grant_type")+"'.")
	case tenant != s.o.TenantID && tenant != "botframework.com":
		entraError(w, 400, "invalid_request", 90002, "Tenant '"+tenant+"' not found. Check to make sure you have the correct tenant ID and are signing into the correct cloud.")
	case id != s.o.AppID:
		entraError(w, 400, "unauthorized_client", 700016, fmt.Sprintf("Application with identifier '%s' was not found in the directory 'Contoso'. This can happen if the application has not been installed by the administrator of the tenant or consented to by any user in the tenant.", id))
	case lost:
		entraError(w, 401, "invalid_client", 7000222, fmt.Sprintf("The provided client secret keys for app '%s' are expired. Visit the Azure portal to create new keys for your app.", id))
	case secret != s.o.Secret:
		entraError(w, 401, "invalid_client", 7000215, fmt.Sprintf("Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID, for a secret added to app '%s'.", id))
	case scope != connectorScope && scope != graphScope:
		entraError(w, 400, "invalid_scope", 1002012, "The provided value for scope "+scope+" is not valid. Client credential flows must have a scope value with /.default suffixed to the resource identifier (application ID URI).")
	default:
		writeJSON(w, http.StatusOK, map[string]any{
			"token_type": "Bearer", "expires_in": int(s.o.TokenLife / time.Second), "ext_expires_in": int(s.o.TokenLife / time.Second),
			"access_token": s.issue(tenant, scope),
		})
	}
}

func (s *Server) issue(tenant, scope string) string {
	now := time.Now()
	token := sign(map[string]any{"typ": "JWT", "alg": "RS256", "kid": "entra"}, map[string]any{
		"aud": strings.TrimSuffix(scope, "/.default"), "iss": "https://sts.windows.net/" + tenant + "/", "appid": s.o.AppID, "tid": tenant,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(s.o.TokenLife).Unix(), "uti": randomHex(8),
	}, pooled(0))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued[token] = issuedToken{scope, now.Add(s.o.TokenLife)}
	return token
}

// entraError answers as Microsoft Entra does.
func entraError(w http.ResponseWriter, status int, name string, code int, text string) {
	trace, correlation, at := uuid(), uuid(), time.Now().UTC().Format("2006-01-02 15:04:05Z")
	writeJSON(w, status, map[string]any{
		"error":             name,
		"error_description": fmt.Sprintf("AADSTS%d: %s Trace ID: %s Correlation ID: %s Timestamp: %s", code, text, trace, correlation, at),
		"error_codes":       []int{code}, "timestamp": at, "trace_id": trace, "correlation_id": correlation,
		"error_uri": "https://login.microsoftonline.com/error?code=" + strconv.Itoa(code),
	})
}

func uuid() string {
	h := randomHex(16)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:]
}

// bearer returns the token of a request.
func bearer(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return token
}

// authorize refuses a request without a living token for scope.
func (s *Server) authorize(r *http.Request, scope string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.issued[bearer(r)]
	if !ok || t.scope != scope || !time.Now().Before(t.expires) {
		return refuse(http.StatusUnauthorized, "Unauthorized", wording(http.StatusUnauthorized, "Unauthorized"))
	}
	return nil
}
