package teams

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// leeway is how far clocks may be apart.
	leeway = 5 * time.Minute
	// teamsChannel is the channel id of Teams, which the key must be endorsed for.
	teamsChannel = "msteams"
	maxToken     = 16 << 10
)

// refusal is why a webhook call is not taken: the status for the caller and the reason for the log.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

func refuse(status int, reason string) error { return &refusal{status, reason} }

// proof is what a token says.
type proof struct {
	serviceURL   string
	endorsements []string
}

// claims are those that are read of a token.
type claims struct {
	jwt.RegisteredClaims
	ServiceURL string `json:"serviceurl"`
}

// verify checks the token of a call before anything else of it is read: signature by a key of the Bot Framework,
// issuer, audience, time. The error is a *refusal or the context's.
func (a *Adapter) verify(ctx context.Context, header string) (proof, error) {
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return proof{}, refuse(http.StatusUnauthorized, "there is no bearer token")
	}
	var c claims
	var key signingKey
	var keyErr error
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer(a.s.cloud.issuer), jwt.WithAudience(a.s.ClientID),
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(a.s.Clock.Now))
	_, err := parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		if id == "" {
			keyErr = errUnknownKey
			return nil, keyErr
		}
		key, keyErr = a.keys.find(ctx, id)
		return key.key, keyErr
	})
	switch {
	case err == nil:
		return proof{strings.TrimRight(c.ServiceURL, "/"), key.endorsements}, nil
	case keyErr != nil && ctx.Err() != nil:
		return proof{}, ctx.Err()
	case errors.Is(keyErr, errKeysAway):
		return proof{}, refuse(http.StatusServiceUnavailable, keyErr.Error())
	case keyErr != nil:
		return proof{}, refuse(http.StatusUnauthorized, keyErr.Error())
	}
	return proof{}, refuse(http.StatusUnauthorized, "the token is not valid: "+tokenFault(err))
}

// tokenFault names what is wrong with a token, in words that repeat nothing of it.
func tokenFault(err error) string {
	for _, f := range []struct {
		err  error
		text string
	}{
		{jwt.ErrTokenExpired, "it has expired"},
		{jwt.ErrTokenNotValidYet, "it is not valid yet"},
		{jwt.ErrTokenInvalidAudience, "it is for another bot (check TEAMS_CLIENT_ID)"},
		{jwt.ErrTokenInvalidIssuer, "it is not from the Bot Framework"},
		{jwt.ErrTokenRequiredClaimMissing, "a claim is missing"},
		{jwt.ErrTokenSignatureInvalid, "its signature is wrong"},
		{jwt.ErrTokenUnverifiable, "its signature can't be checked"},
		{jwt.ErrTokenMalformed, "it is malformed"},
	} {
		if errors.Is(err, f.err) {
			return f.text
		}
	}
	return "its claims are wrong"
}

// matches checks an activity against the token that came with it: the service that answers will go to, the channel, the
// tenant. The error is a *refusal.
func (a *Adapter) matches(p proof, act *activity) error {
	if p.serviceURL == "" || p.serviceURL != strings.TrimRight(act.ServiceURL, "/") {
		return refuse(http.StatusForbidden, "the activity names another service than its token")
	}
	if _, ok := a.s.serves(act.ServiceURL); !ok {
		return refuse(http.StatusForbidden, "the activity names a service that is not on the list of service hosts (platforms.teams.service_hosts)")
	}
	if act.ChannelID != teamsChannel {
		return refuse(http.StatusForbidden, "the activity is not from Teams")
	}
	if !slices.Contains(p.endorsements, act.ChannelID) {
		return refuse(http.StatusForbidden, "the token's key is not endorsed for Teams")
	}
	if tenant := act.tenant(); guidPattern.MatchString(a.s.TenantID) && !strings.EqualFold(tenant, a.s.TenantID) {
		return refuse(http.StatusForbidden, "the activity is from another tenant than TEAMS_TENANT_ID")
	}
	return nil
}

// tenant returns the directory that an activity comes from.
func (a *activity) tenant() string {
	if a.Conversation.TenantID != "" {
		return a.Conversation.TenantID
	}
	return a.data().Tenant.ID
}
