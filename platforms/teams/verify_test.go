package teams

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/teamstest"
)

// P13: every kind of wrong token is refused, and nothing of the call reaches the core.
func TestVerify_EachFlawIsRefused(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	for _, flaw := range teamstest.Flaws() {
		t.Run(string(flaw), func(t *testing.T) {
			want := http.StatusUnauthorized
			switch flaw {
			case teamstest.Unendorsed, teamstest.WrongServiceURL, teamstest.NoServiceURL, teamstest.AlteredBody:
				want = http.StatusForbidden
			}
			got := r.fake.Forge(teamstest.Post{Room: r.dm.ID, Text: "let me in"}, flaw)
			require.Equal(t, want, got.Status)
			require.Empty(t, r.sink.Offered())
		})
	}
	require.True(t, r.a.Health().Inbound, "a forger must not be able to make the adapter deaf")
	good := r.fake.Forge(teamstest.Post{Room: r.dm.ID, Text: "hello"}, teamstest.None)
	require.Equal(t, http.StatusOK, good.Status)
	require.Equal(t, "hello", r.events(1)[0].Message.Text)
}

// Keys come and go without a restart; those that are gone are believed no more.
func TestVerify_KeyRotation(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.KeyRefresh, o.KeyMaxAge = time.Hour, 24*time.Hour })
	for i := range 3 {
		r.fake.RotateKeys(false)
		r.fake.Say(r.dm.ID, "after a rotation")
		r.events(i + 1)
		old := r.fake.Forge(teamstest.Post{Room: r.dm.ID, Text: "old"}, teamstest.RetiredKey)
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusServiceUnavailable}, old.Status)
		require.Len(t, r.sink.Offered(), i+1)
	}
}

// Anybody can send a token with an unknown key: that makes us ask for the keys a few times and no more.
func TestVerify_UnknownKeysAskSeldom(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.KeyRefresh, o.KeyMaxAge = time.Hour, 24*time.Hour })
	before := r.fake.Calls(teamstest.Keys)
	for range 50 {
		got := r.fake.Forge(teamstest.Post{Room: r.dm.ID, Text: "x"}, teamstest.UnknownKey).Status
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusServiceUnavailable}, got)
	}
	require.Empty(t, r.sink.Offered())
	require.True(t, r.a.Health().Inbound, "a forger must not be able to make the adapter deaf")
	require.LessOrEqual(t, r.fake.Calls(teamstest.Keys)-before, askBurst+1)
}

// While the keys can't be fetched, a call with an unknown key is asked to come again, because it may be genuine.
func TestVerify_KeyServerAway(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.KeyRefresh, o.KeyMaxAge = time.Hour, 24*time.Hour })
	r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 500, On: teamstest.Keys, Times: -1})
	r.fake.RotateKeys(false)
	r.fake.Say(r.dm.ID, "patience")
	r.until("it is refused for now", func() bool {
		d := r.fake.Deliveries()
		return len(d) > 0 && d[len(d)-1].Status == http.StatusServiceUnavailable
	})
	require.Empty(t, r.sink.Offered())
}

// The token comes first: neither the size of a call nor what is in it is looked at before.
func TestTake_TokenBeforeBody(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	post := func(token string, body []byte) int {
		req := httptest.NewRequest(http.MethodPost, DefaultPath, bytes.NewReader(body))
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		rec := httptest.NewRecorder()
		r.running.Load().ServeHTTP(rec, req)
		return rec.Code
	}
	big := bytes.Repeat([]byte("x"), maxBody+1)
	require.Equal(t, http.StatusUnauthorized, post("", big))
	require.Equal(t, http.StatusUnauthorized, post(strings.Repeat("y", 1000), []byte("{")))
	token := r.fake.Mint(teamstest.None)
	require.Equal(t, http.StatusRequestEntityTooLarge, post(token, big))
	require.Equal(t, http.StatusBadRequest, post(token, []byte("{")))
	require.Equal(t, http.StatusBadRequest, post(token, []byte(`{"type":"message"}`)))
	service := r.fake.URLs().Service
	act := func(extra string) []byte {
		return []byte(`{"type":"message","id":"1","channelId":"msteams","serviceUrl":"` + service + `","text":"x","from":{"id":"29:x"},` + extra + `}`)
	}
	tenant := `"tenantId":"` + r.fake.TenantID() + `"`
	require.Equal(t, http.StatusForbidden, post(token, act(`"conversation":{"id":"a:1","tenantId":"00000000-0000-0000-0000-000000000000"}`)), "another tenant")
	require.Equal(t, http.StatusForbidden, post(token, act(`"conversation":{"id":"a:1"}`)), "no tenant")
	require.Equal(t, http.StatusBadRequest, post(token, act(`"conversation":{"id":"a:1/../x",`+tenant+`}`)), "a path in an id")
	require.Equal(t, http.StatusBadRequest, post(token, act(`"replyToId":"../1","conversation":{"id":"a:1",`+tenant+`}`)))
	require.Equal(t, http.StatusForbidden, post(token, bytes.Replace(act(`"conversation":{"id":"a:1",`+tenant+`}`), []byte("msteams"), []byte("webchat"), 1)))
	require.Empty(t, r.sink.Offered())
	require.Equal(t, http.StatusOK, post(token, act(`"conversation":{"id":"a:1",`+tenant+`}`)))
	require.Len(t, r.sink.Offered(), 1)
}

// Before and after Run everything is asked to come again, and nothing is taken.
func TestTake_NotRunning(t *testing.T) {
	r := start(t, teamstest.Options{Attempts: 1}, nil)
	require.NoError(t, r.stop())
	d := r.fake.Forge(teamstest.Post{Room: r.dm.ID, Text: "hello"}, teamstest.None)
	require.Equal(t, http.StatusServiceUnavailable, d.Status)
	require.Equal(t, "stopped", r.a.Health().State)
}

func TestSettings_Serves(t *testing.T) {
	o := Options{ClientID: "11111111-aaaa-4bbb-8ccc-00000000b07a", ClientSecret: "s3cret-value", TenantID: "contoso.example",
		ServiceHosts: []string{"bots.contoso.example", "127.0.0.1:8080"}}
	s, err := o.check()
	require.NoError(t, err)
	for raw, want := range map[string]bool{
		"https://smba.trafficmanager.net/amer/":                       true,
		"https://smba.trafficmanager.net:443/amer":                    true,
		"https://SMBA.trafficmanager.net/amer/":                       true,
		"https://smba.infra.gov.teams.microsoft.us/gcc/":              true,
		"https://bots.contoso.example/":                               true,
		"http://127.0.0.1:8080/amer/":                                 true,
		"http://smba.trafficmanager.net/amer/":                        false,
		"https://smba.trafficmanager.net:8443/amer/":                  false,
		"https://evil.trafficmanager.net/":                            false,
		"https://smba.trafficmanager.net.evil.example/":               false,
		"https://smba.trafficmanager.net@evil.example/":               false,
		"https://evil.example/?smba.trafficmanager.net":               false,
		"https://smba.trafficmanager.net/amer/?x=1":                   false,
		"http://bots.contoso.example/":                                false,
		"http://127.0.0.1:8081/":                                      false,
		"ftp://smba.trafficmanager.net/":                              false,
		"":                                                            false,
		"smba.trafficmanager.net":                                     false,
		"https://smba.trafficmanager.net/" + strings.Repeat("x", 600): false,
	} {
		_, got := s.serves(raw)
		require.Equal(t, want, got, raw)
	}
}

// Weak and foreign keys are no keys.
func TestJWK_Public(t *testing.T) {
	const n2048 = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
	for name, c := range map[string]struct {
		key  jwk
		good bool
	}{
		"good":        {jwk{Type: "RSA", Use: "sig", ID: "a", N: n2048, E: "AQAB"}, true},
		"encryption":  {jwk{Type: "RSA", Use: "enc", ID: "a", N: n2048, E: "AQAB"}, false},
		"elliptic":    {jwk{Type: "EC", ID: "a", N: n2048, E: "AQAB"}, false},
		"nameless":    {jwk{Type: "RSA", N: n2048, E: "AQAB"}, false},
		"short":       {jwk{Type: "RSA", ID: "a", N: n2048[:170], E: "AQAB"}, false},
		"exponent 1":  {jwk{Type: "RSA", ID: "a", N: n2048, E: "AQ"}, false},
		"exponent 2":  {jwk{Type: "RSA", ID: "a", N: n2048, E: "Ag"}, false},
		"no exponent": {jwk{Type: "RSA", ID: "a", N: n2048}, false},
		"no base64":   {jwk{Type: "RSA", ID: "a", N: "!", E: "AQAB"}, false},
	} {
		_, err := c.key.public()
		require.Equal(t, c.good, err == nil, "%s: %v", name, err)
	}
}

// The metadata can't lead the request for the keys to an address without TLS.
func TestKeySet_KeysAddress(t *testing.T) {
	k := &keySet{openID: DefaultOpenIDURL}
	require.NoError(t, k.checkKeysURL("https://login.botframework.com/v1/.well-known/keys"))
	for _, bad := range []string{"", "http://login.botframework.com/keys", "file:///etc/passwd", "https://u:p@x.example/", "://"} {
		require.Error(t, k.checkKeysURL(bad), bad)
	}
	k.openID = "http://127.0.0.1:1/openid"
	require.NoError(t, k.checkKeysURL("http://127.0.0.1:1/keys"))
	require.Error(t, k.checkKeysURL("http://127.0.0.1:2/keys"))
}

// A call whose caller has gone is no refusal.
func TestVerify_CallerGone(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	r.fake.RotateKeys(false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.a.verify(ctx, "Bearer "+r.fake.Mint(teamstest.None))
	require.ErrorIs(t, err, context.Canceled)
}
