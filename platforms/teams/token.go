package teams

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// renewBefore is how long before its end a token is not used any more.
	renewBefore = 5 * time.Minute
)

// tokens gets and keeps the bot's own token for one scope.
type tokens struct {
	s      *settings
	http   *http.Client
	config clientcredentials.Config
	turn   chan struct{} // held while a token is fetched

	mu     sync.Mutex
	last   *oauth2.Token
	closed time.Time // until when the login server asked to wait
}

func newTokens(s *settings, client *http.Client, scope string) *tokens {
	return &tokens{s: s, http: client, turn: make(chan struct{}, 1), config: clientcredentials.Config{
		ClientID: s.ClientID, ClientSecret: s.ClientSecret, Scopes: []string{scope}, AuthStyle: oauth2.AuthStyleInParams,
		TokenURL: s.LoginURL + "/" + s.TenantID + "/oauth2/v2.0/token",
	}}
}

// get returns a token that is good for at least renewBefore, or for half of its life when that is shorter. The error is a
// *platforms.StartError when waiting can't mend it.
func (t *tokens) get(ctx context.Context) (string, error) {
	if token := t.kept(); token != "" {
		return token, nil
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if token := t.kept(); token != "" { // somebody else has fetched it
		return token, nil
	}
	begun := t.s.Clock.Now()
	if d := t.window().Sub(begun); d > 0 {
		return "", fmt.Errorf("the login server asked to wait %s more", d.Round(time.Second))
	}
	ctx, cancel := context.WithTimeout(ctx, t.s.ConnectTimeout)
	defer cancel()
	token, err := t.config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.http))
	if err != nil {
		t.close(err)
		return "", t.explain(err)
	}
	// The library counts with the system's clock.
	life := time.Until(token.Expiry)
	if token.Expiry.IsZero() {
		life = time.Hour
	}
	token.Expiry = begun.Add(life - min(renewBefore, life/2))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = token
	return token.AccessToken, nil
}

func (t *tokens) kept() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || !t.s.Clock.Now().Before(t.last.Expiry) {
		return ""
	}
	return t.last.AccessToken
}

func (t *tokens) window() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// close notes how long the login server asks to wait, if it does (P8).
func (t *tokens) close(err error) {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) || re.Response == nil {
		return
	}
	if d := wire.RetryAfter(re.Response.Header); d > 0 {
		t.mu.Lock()
		t.closed = t.s.Clock.Now().Add(d)
		t.mu.Unlock()
	}
}

// drop forgets a token that a server has refused.
func (t *tokens) drop(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && t.last.AccessToken == token {
		t.last = nil
	}
}

// secret returns the token for Secrets, empty without one.
func (t *tokens) secret() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		return ""
	}
	return t.last.AccessToken
}

var aadCode = regexp.MustCompile(`AADSTS[0-9]{4,9}`)

// refused are the login server's codes that no waiting mends, with the setting to look at.
// https://learn.microsoft.com/entra/identity-platform/reference-error-codes
var refused = map[string]struct{ setting, what, hint string }{
	"AADSTS7000215": {"TEAMS_CLIENT_SECRET", "is wrong", "set the secret's Value, not its Secret ID; make a new one under Certificates & secrets if it is lost"},
	"AADSTS7000222": {"TEAMS_CLIENT_SECRET", "has expired", "make a new client secret under Certificates & secrets and set its Value"},
	"AADSTS7000218": {"TEAMS_CLIENT_SECRET", "is missing in the request", "set the secret's Value"},
	"AADSTS700016":  {"TEAMS_CLIENT_ID", "is not known in the tenant", "check TEAMS_CLIENT_ID and TEAMS_TENANT_ID: both stand on the app registration's Overview page"},
	"AADSTS7000229": {"TEAMS_CLIENT_ID", "has no service principal in the tenant", "an administrator has to consent to the app in this tenant"},
	"AADSTS7000112": {"TEAMS_CLIENT_ID", "is disabled", "an administrator has to enable the app"},
	"AADSTS90002":   {"TEAMS_TENANT_ID", "names no tenant", "set it to the Directory (tenant) ID of the app registration"},
	"AADSTS900023":  {"TEAMS_TENANT_ID", "is no valid tenant", "set it to the Directory (tenant) ID of the app registration"},
	"AADSTS50059":   {"TEAMS_TENANT_ID", "is missing in the request", "set it to the Directory (tenant) ID of the app registration"},
}

// explain turns an error of the login server into one that says what to do and holds no secret.
func (t *tokens) explain(err error) error {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) {
		return fmt.Errorf("the login server %s can't be reached: %w", t.s.LoginURL, wire.Bare(err))
	}
	status := 0
	if re.Response != nil {
		status = re.Response.StatusCode
	}
	code := aadCode.FindString(re.ErrorDescription + " " + string(re.Body[:min(len(re.Body), 4096)]))
	words := strings.TrimSpace(re.ErrorCode + " " + code)
	if r, ok := refused[code]; ok {
		return t.s.env(r.setting, fmt.Errorf("%s: the login server refused it (%s)", r.what, words), r.hint)
	}
	if status == http.StatusUnauthorized || status == http.StatusBadRequest {
		switch re.ErrorCode {
		case "invalid_client", "unauthorized_client", "invalid_grant":
			return t.s.env("TEAMS_CLIENT_SECRET", fmt.Errorf("was refused by the login server (%s)", words),
				"check TEAMS_CLIENT_ID, TEAMS_CLIENT_SECRET and TEAMS_TENANT_ID")
		}
	}
	return fmt.Errorf("the login server answered %d %s", status, words)
}

// startError returns err as a StartError, nil when waiting may mend it.
func startError(err error) *platforms.StartError {
	var se *platforms.StartError
	if errors.As(err, &se) {
		return se
	}
	return nil
}
