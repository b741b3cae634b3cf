package teams

import "herald/platforms"

// Kind is what Herald knows of Microsoft Teams.
type Kind struct{}

// Name implements platforms.Kind.
func (Kind) Name() platforms.Name { return Platform }

// About implements platforms.Kind.
func (Kind) About() platforms.About {
	return platforms.About{Title: "Microsoft Teams", Block: "Microsoft Teams bots", Variables: "TEAMS"}
}

// Settings implements platforms.Kind.
func (Kind) Settings() platforms.Settings { return &Settings{} }

// Rules implements platforms.Kind. In a channel every message has a thread. Teams lets bots react in a preview only.
func (Kind) Rules() platforms.Rules {
	channel := func(t platforms.ChatType) bool { return t == platforms.Channel }
	return platforms.Rules{
		IDPrefixes:  []string{"8:orgid:", "8:", "19:", "28:", "29:", "a:"},
		ReplyThread: channel, AlwaysThread: channel, NoReactions: true, HomeRank: 5,
	}
}

// New makes the one account of a bot registration.
func (Kind) New(host platforms.Host, own platforms.Settings) ([]platforms.Login, error) {
	s := own.(*Settings)
	limit, proxy := s.RateLimit.On, s.Proxy.Reveal()
	adapter, err := New(Options{
		ClientID: s.ClientID, ClientSecret: s.ClientSecret.Reveal(), TenantID: s.TenantID,
		LoginURL: s.LoginURL, OpenIDURL: s.OpenIDURL, ServiceURL: s.ServiceURL, GraphURL: s.GraphURL, ServiceHosts: s.ServiceHosts,
		Fetch: host.Downloads(proxy, append([]string{s.ServiceURL, s.GraphURL}, s.ServiceHosts...)...),
		Proxy: proxy, IgnoreProxyEnv: !host.TrustEnv, ConnectTimeout: host.ConnectTimeout,
		RequireMention: s.RequireMention, FreeChats: s.FreeResponseChats, MentionPatterns: s.MentionPatterns,
		BotsRequireMention: s.BotsRequireMention, Graph: s.Graph, GraphSite: s.GraphSite, RateLimit: &limit,
		MediaDir: host.Media, Memory: host.Memory(AccountOf(s.ClientID)), Log: host.Log, Metrics: host.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return []platforms.Login{{Adapter: adapter, LockName: "teams-app-id", Identity: s.ClientID,
		Port: s.Port, Host: s.Host, PortKey: "platforms.teams.port"}}, nil
}
