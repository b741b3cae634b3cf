package teamstest

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// jwks reads the key list as a bot does.
func (s *stage) jwks() map[string]*rsa.PublicKey {
	s.t.Helper()
	var doc struct {
		URI string `json:"jwks_uri"`
	}
	require.NoError(s.t, json.Unmarshal(s.do("GET", s.URLs().OpenID, nil, "", nil).body, &doc))
	var list struct {
		Keys []struct {
			KID, N, E    string
			Endorsements []string
		}
	}
	require.NoError(s.t, json.Unmarshal(s.do("GET", doc.URI, nil, "", nil).body, &list))
	out := map[string]*rsa.PublicKey{}
	for _, k := range list.Keys {
		n, err := base64.RawURLEncoding.DecodeString(k.N)
		require.NoError(s.t, err)
		e, err := base64.RawURLEncoding.DecodeString(k.E)
		require.NoError(s.t, err)
		if len(k.Endorsements) > 0 && k.Endorsements[0] == "msteams" {
			out[k.KID] = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		}
	}
	return out
}

// fine checks a token as a careful bot does, without any leeway in time.
func (s *stage) fine(token, serviceURL string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	var header struct{ Alg, KID string }
	var claims struct {
		Iss, Aud, ServiceURL string
		Nbf, Exp             int64
	}
	for i, into := range []any{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(raw, into) != nil {
			return false
		}
	}
	key := s.jwks()[header.KID]
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	now := time.Now().Unix()
	return header.Alg == "RS256" && key != nil && rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil &&
		claims.Iss == Issuer && claims.Aud == s.AppID() && claims.ServiceURL == serviceURL && claims.Nbf <= now && claims.Exp > now
}

// Each flaw breaks exactly the token, and a token without one is fine.
func TestMint_Flaws(t *testing.T) {
	s := newStage(t, Options{})
	require.True(t, s.fine(s.Mint(None), s.URLs().Service))
	for _, flaw := range Flaws() {
		outside := flaw == NoToken || flaw == NotBearer || flaw == AlteredBody
		require.Equal(t, outside, s.fine(s.Mint(flaw), s.URLs().Service), string(flaw))
		d := s.Forge(Post{Room: s.chat.ID, Text: "x"}, flaw)
		require.Equal(t, 200, d.Status)
		a := s.next()
		token, bearer := strings.CutPrefix(a["authorization"].(string), "Bearer ")
		require.False(t, bearer && s.fine(token, a["serviceUrl"].(string)), string(flaw))
	}
	require.Zero(t, s.Pending())
	_, stands := s.Message(s.chat.ID, "x")
	require.False(t, stands)
}

func TestRotateKeys(t *testing.T) {
	s := newStage(t, Options{})
	first := s.Mint(None)
	s.RotateKeys(true)
	second := s.Mint(None)
	require.True(t, s.fine(first, s.URLs().Service), "the old key is still on the list")
	require.True(t, s.fine(second, s.URLs().Service))
	s.RotateKeys(false)
	require.False(t, s.fine(second, s.URLs().Service), "and now it is not")
	require.False(t, s.fine(s.Mint(RetiredKey), s.URLs().Service))
	require.True(t, s.fine(s.Mint(None), s.URLs().Service))
	require.Equal(t, 8, s.Calls(OpenIDDoc)+s.Calls(Keys)-2)
}

func TestToken_Refusals(t *testing.T) {
	s := newStage(t, Options{TokenLife: time.Hour})
	for _, c := range []struct {
		secret, scope, code string
		status              int
	}{
		{"wrong", connectorScope, "AADSTS7000215: Invalid client secret provided.", 401},
		{s.Secret(), "https://api.botframework.com", "AADSTS1002012", 400},
		{s.Secret(), graphScope, "", 200},
	} {
		status, body := s.fetchToken(c.secret, c.scope)
		require.Equal(t, c.status, status, "%s", body)
		require.Contains(t, string(body), c.code)
		require.NotContains(t, string(body), s.Secret())
	}
	require.Equal(t, 201, s.send(s.chat.ID, text("x")).status)
	s.RevokeTokens()
	r := s.send(s.chat.ID, text("x"))
	require.Equal(t, 401, r.status)
	require.Equal(t, "Unauthorized", r.Error.Code)
	s.RevokeSecret()
	status, body := s.fetchToken(s.Secret(), connectorScope)
	require.Equal(t, 401, status)
	require.Contains(t, string(body), "AADSTS7000222")
}

// A token ends when it says, and one for Graph opens no conversation.
func TestToken_ExpiryAndScope(t *testing.T) {
	s := newStage(t, Options{TokenLife: time.Nanosecond})
	require.Equal(t, 401, s.send(s.chat.ID, text("x")).status)
	s = newStage(t, Options{})
	_, body := s.fetchToken(s.Secret(), graphScope)
	var tok struct {
		Access string `json:"access_token"`
	}
	require.NoError(t, json.Unmarshal(body, &tok))
	s.token = tok.Access
	require.Equal(t, 401, s.send(s.chat.ID, text("x")).status)
}
