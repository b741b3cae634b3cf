package gateway

import (
	"path/filepath"

	"herald/gateway/config"
	"herald/platforms/teams"
)

// teamsAccounts makes the one account of a bot registration.
func teamsAccounts(g *Gateway, cfg *config.Config) ([]*account, error) {
	t := cfg.Platforms.Teams
	limit := t.RateLimit.On
	adapter, err := teams.New(teams.Options{
		ClientID: t.ClientID, ClientSecret: t.ClientSecret.Reveal(), TenantID: t.TenantID,
		LoginURL: t.LoginURL, OpenIDURL: t.OpenIDURL, ServiceURL: t.ServiceURL, GraphURL: t.GraphURL, ServiceHosts: t.ServiceHosts,
		Fetch: g.downloads(t.Proxy.Reveal(), append([]string{t.ServiceURL, t.GraphURL}, t.ServiceHosts...)...),
		Proxy: t.Proxy.Reveal(), IgnoreProxyEnv: !cfg.Gateway.TrustEnv, ConnectTimeout: cfg.Gateway.ConnectTimeout,
		RequireMention: t.RequireMention, FreeChats: t.FreeResponseChats, MentionPatterns: t.MentionPatterns,
		BotsRequireMention: t.BotsRequireMention, Graph: t.Graph, GraphSite: t.GraphSite, RateLimit: &limit,
		MediaDir: filepath.Join(g.opt.Paths.Media, "teams"), Memory: g.memoryOf(teams.AccountOf(t.ClientID)),
		Log: g.log, Metrics: g.metrics.Adapter(teams.Platform),
	})
	if err != nil {
		return nil, err
	}
	return []*account{{adapter: adapter, lockName: "teams-app-id", identity: t.ClientID,
		port: t.Port, host: t.Host, portKey: "platforms.teams.port"}}, nil
}
