package teams

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/teamstest"
)

func goodOptions() Options {
	return Options{ClientID: teamstest.DefaultAppID, ClientSecret: teamstest.DefaultSecret, TenantID: teamstest.DefaultTenantID}
}

// Every wrong setting is named, with what is allowed, and no secret is repeated.
func TestNew_WrongSettingsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(*Options)
		names string
	}{
		"no client id":       {func(o *Options) { o.ClientID = "" }, "TEAMS_CLIENT_ID"},
		"client id":          {func(o *Options) { o.ClientID = "herald" }, "TEAMS_CLIENT_ID"},
		"no secret":          {func(o *Options) { o.ClientSecret = "" }, "TEAMS_CLIENT_SECRET"},
		"the secret's id":    {func(o *Options) { o.ClientSecret = teamstest.DefaultAppID }, "TEAMS_CLIENT_SECRET"},
		"no tenant":          {func(o *Options) { o.TenantID = " " }, "TEAMS_TENANT_ID"},
		"tenant":             {func(o *Options) { o.TenantID = "../x" }, "TEAMS_TENANT_ID"},
		"login url":          {func(o *Options) { o.LoginURL = "login" }, "login_url"},
		"plain http":         {func(o *Options) { o.LoginURL = "http://login.example" }, "login_url"},
		"openid url":         {func(o *Options) { o.OpenIDURL = "https://x.example/?q" }, "openid_url"},
		"service url":        {func(o *Options) { o.ServiceURL = "http://smba.trafficmanager.net/" }, "service_url"},
		"graph url":          {func(o *Options) { o.GraphURL = "//x" }, "graph_url"},
		"a pattern of hosts": {func(o *Options) { o.ServiceHosts = []string{"*.trafficmanager.net"} }, "service_hosts"},
		"a url as a host":    {func(o *Options) { o.ServiceHosts = []string{"https://x.example"} }, "service_hosts"},
		"proxy":              {func(o *Options) { o.Proxy = "ftp://u:hunter22@x" }, "proxy"},
		"path":               {func(o *Options) { o.Path = "api" }, "path"},
		"graph site":         {func(o *Options) { o.GraphSite = "a/b" }, "graph_site"},
		"download hosts":     {func(o *Options) { o.Fetch.Allow = []string{"a b"} }, "download_hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			o := goodOptions()
			c.alter(&o)
			_, err := New(o)
			var se *platforms.StartError
			require.True(t, errors.As(err, &se), "%v", err)
			require.Contains(t, se.Setting, c.names)
			require.ErrorIs(t, err, platforms.ErrPermanent)
			require.NotContains(t, err.Error(), teamstest.DefaultSecret)
			require.NotContains(t, err.Error(), "hunter22")
		})
	}
	_, err := New(goodOptions())
	require.NoError(t, err)
}

// What the login server refuses for good ends Run, with the setting to look at.
func TestRun_RefusedCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(*Options)
		names string
	}{
		"another secret": {func(o *Options) { o.ClientSecret = "some-other-secret" }, "TEAMS_CLIENT_SECRET"},
		"another app":    {func(o *Options) { o.ClientID = "99999999-aaaa-4bbb-8ccc-00000000b07a" }, "TEAMS_CLIENT_ID"},
		"another tenant": {func(o *Options) { o.TenantID = "99999999-aaaa-4bbb-8ccc-00000000b07a" }, "TEAMS_TENANT_ID"},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWorld(t, teamstest.Options{})
			w.alter = c.alter
			a := w.adapter(t)
			err := a.Run(t.Context(), &platformtest.Sink{})
			var se *platforms.StartError
			require.True(t, errors.As(err, &se), "%v", err)
			require.Contains(t, se.Setting, c.names)
			require.NotEmpty(t, se.Hint)
			require.NotContains(t, err.Error(), "some-other-secret")
			h := a.Health()
			require.Equal(t, "paused", h.State)
			require.False(t, h.Inbound)
			require.Contains(t, h.Detail, c.names)
		})
	}
}

// A login server that is away is waited for.
func TestRun_LoginServerAway(t *testing.T) {
	w := startWorld(t, teamstest.Options{})
	w.fake.Shut()
	r := &run{world: w, t: t, sink: &platformtest.Sink{}}
	r.a = w.adapter(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.a.Run(ctx, r.sink) }()
	r.until("it says why", func() bool { h := r.a.Health(); return h.State == "reconnecting" && h.Detail != "" })
	require.NoError(t, w.fake.Open())
	r.until("it hears", func() bool { return r.a.Health().Inbound })
	cancel()
	require.NoError(t, <-ended)
}

// One token serves many sends; a refused one is renewed once, and the send is made once.
func TestTokens_KeptAndRenewed(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	for range 5 {
		r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text("hello")})
	}
	require.Equal(t, 1, r.fake.Calls(teamstest.Token))
	r.fake.RevokeTokens()
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text("again")})
	require.Equal(t, 2, r.fake.Calls(teamstest.Token))
	require.Len(t, r.fake.Visible(r.dm.ID), 6)
	for _, secret := range r.a.Secrets() {
		require.NotEmpty(t, secret)
	}
	require.Len(t, r.a.Secrets(), 2, "the client secret and the token in use")
}

// The government's cloud signs and is spoken to by other names; what is in its name is no part of the public one.
func TestCloudOf(t *testing.T) {
	require.Equal(t, publicCloud, cloudOf(DefaultOpenIDURL))
	require.Equal(t, governmentCloud, cloudOf("https://login.botframework.azure.us/v1/.well-known/openidconfiguration"))
	require.Equal(t, publicCloud, cloudOf("https://azure.us.example.org/"))
	require.Equal(t, publicCloud, cloudOf("http://127.0.0.1:1/azure.us"))
	r := start(t, teamstest.Options{}, nil)
	r.a.s.cloud = governmentCloud
	require.Equal(t, http.StatusUnauthorized, r.fake.Forge(teamstest.Post{Room: r.dm.ID, Text: "hello"}, teamstest.None).Status)
}

func TestRoutes(t *testing.T) {
	a, err := New(goodOptions())
	require.NoError(t, err)
	require.Contains(t, a.Routes(), "POST "+DefaultPath)
	require.Len(t, a.Routes(), 1)
	r := start(t, teamstest.Options{}, nil)
	rec := serve(r.running.Load(), http.MethodGet, HealthPath)
	require.Equal(t, http.StatusOK, rec.Code)
	require.Equal(t, "ok\n", rec.Body.String())
	require.Equal(t, http.StatusMethodNotAllowed, serve(r.running.Load(), http.MethodGet, DefaultPath).Code)
}
