package teamstest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"sync"
	"time"
)

// Issuer is who signs the tokens of deliveries.
const Issuer = "https://api.botframework.com"

// pool holds the RSA keys of this process by number: making one takes longer than most tests, so that fakes share
// them under names of their own.
var pool struct {
	sync.Mutex
	keys []*rsa.PrivateKey
}

func pooled(n int) *rsa.PrivateKey {
	pool.Lock()
	defer pool.Unlock()
	for len(pool.keys) <= n {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err) // the system has no randomness
		}
		pool.keys = append(pool.keys, key)
	}
	return pool.keys[n]
}

// signingKey is one key of the key server.
type signingKey struct {
	kid          string
	number       int // in the pool, where 0 belongs to nobody and 1 is the unendorsed key
	endorsements []string
}

// keyring is what the key server knows.
type keyring struct {
	current, unendorsed, retired *signingKey
	old                          []*signingKey // still published
	rotated                      int
}

func (k *keyring) fill() {
	k.current = newSigningKey(2, "msteams")
	k.unendorsed = newSigningKey(1, "webchat")
}

func newSigningKey(number int, channel string) *signingKey {
	return &signingKey{kid: randomHex(16), number: number, endorsements: []string{channel}}
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// RotateKeys makes the issuer sign with a new key from now on, under a kid that was never published before. keepOld
// leaves the old key on the list, as the Bot Framework does for some days; else it is gone at once.
func (s *Server) RotateKeys(keepOld bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.keys
	k.rotated++
	if keepOld {
		k.old = append(k.old, k.current)
	} else {
		k.old, k.retired = nil, k.current
	}
	k.current = newSigningKey(2+k.rotated%3, "msteams")
}

// serveOpenID answers the metadata document of the Bot Framework.
func (s *Server) serveOpenID(w http.ResponseWriter) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                Issuer,
		"authorization_endpoint":                "https://invalid.botframework.com",
		"jwks_uri":                              s.URLs().Base + "/v1/.well-known/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"},
		"token_endpoint_auth_methods_supported": []string{"private_key_jwt"},
	})
}

// serveKeys answers the key list.
func (s *Server) serveKeys(w http.ResponseWriter) {
	type jwk struct {
		Type         string   `json:"kty"`
		Use          string   `json:"use"`
		KID          string   `json:"kid"`
		Thumbprint   string   `json:"x5t"`
		N            string   `json:"n"`
		E            string   `json:"e"`
		Endorsements []string `json:"endorsements,omitempty"`
	}
	s.mu.Lock()
	list := append([]*signingKey{s.keys.current, s.keys.unendorsed}, s.keys.old...)
	s.mu.Unlock()
	keys := make([]jwk, 0, len(list))
	for _, k := range list {
		public := pooled(k.number).PublicKey
		keys = append(keys, jwk{
			"RSA", "sig", k.kid, k.kid, base64.RawURLEncoding.EncodeToString(public.N.Bytes()),
			base64.RawURLEncoding.EncodeToString(big.NewInt(int64(public.E)).Bytes()), k.endorsements,
		})
	}
	writeJSON(w, http.StatusOK, map[string]any{"keys": keys})
}

// Mint returns a token as deliveries carry it, with a flaw. NoToken, NotBearer and AlteredBody give a fine one:
// what is wrong there is outside of it.
func (s *Server) Mint(flaw Flaw) string {
	s.mu.Lock()
	key, retired, unendorsed := s.keys.current, s.keys.retired, s.keys.unendorsed
	s.mu.Unlock()
	now := time.Now()
	header := map[string]any{"typ": "JWT", "alg": "RS256", "kid": key.kid, "x5t": key.kid}
	claims := map[string]any{
		"serviceurl": s.URLs().Service, "nbf": now.Add(-5 * time.Minute).Unix(), "exp": now.Add(time.Hour).Unix(),
		"iss": Issuer, "aud": s.o.AppID,
	}
	number := key.number
	switch flaw {
	case Expired:
		claims["nbf"], claims["exp"] = now.Add(-70*time.Minute).Unix(), now.Add(-10*time.Minute).Unix()
	case NotYetValid:
		claims["nbf"] = now.Add(10 * time.Minute).Unix()
	case NoExpiry:
		delete(claims, "exp")
	case WrongAudience:
		claims["aud"] = "99999999-aaaa-4bbb-8ccc-0000000007e5"
	case WrongIssuer:
		claims["iss"] = "https://sts.windows.net/" + s.o.TenantID + "/"
	case WrongServiceURL:
		claims["serviceurl"] = "https://smba.trafficmanager.net/elsewhere/"
	case NoServiceURL:
		delete(claims, "serviceurl")
	case Unsigned:
		header["alg"] = "none"
	case Symmetric:
		header["alg"] = "HS256"
	case BadSignature:
		number = 0
	case UnknownKey:
		number, header["kid"] = 0, randomHex(16)
	case NoKey:
		delete(header, "kid")
		delete(header, "x5t")
	case Unendorsed:
		number, header["kid"] = unendorsed.number, unendorsed.kid
	case RetiredKey:
		number, header["kid"] = 0, randomHex(16)
		if retired != nil {
			number, header["kid"] = retired.number, retired.kid
		}
	}
	return sign(header, claims, pooled(number))
}

func sign(header, claims map[string]any, key *rsa.PrivateKey) string {
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	text := part(header) + "." + part(claims)
	var signature []byte
	switch header["alg"] {
	case "RS256":
		sum := sha256.Sum256([]byte(text))
		signature, _ = rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	case "HS256":
		der, _ := x509.MarshalPKIXPublicKey(&key.PublicKey)
		mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		mac.Write([]byte(text))
		signature = mac.Sum(nil)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
