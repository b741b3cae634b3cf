package teams

import "herald/platforms"

// Settings is the block platforms.teams.
type Settings struct {
	platforms.Common
	ClientID     string           `yaml:"client_id" env:"TEAMS_CLIENT_ID" check:"text" doc:"the bot's Application (client) ID"`
	ClientSecret platforms.Secret `yaml:"client_secret" env:"TEAMS_CLIENT_SECRET" doc:"the value of the bot's client secret"`
	TenantID     string           `yaml:"tenant_id" env:"TEAMS_TENANT_ID" check:"text" doc:"the Directory (tenant) ID where the bot is registered; activities of other tenants are refused"`
	Port         int              `yaml:"port" default:"3978" min:"0" max:"65535" env:"TEAMS_PORT" doc:"port of a listener for the webhook alone; 0: the HTTP listener serves it"`
	Host         string           `yaml:"host" env:"TEAMS_HOST" check:"text" doc:"address of that listener; unset: all addresses"`
	ServiceURL   string           `yaml:"service_url" env:"TEAMS_SERVICE_URL" check:"url" doc:"where conversations are served that have not written yet; unset: https://smba.trafficmanager.net/teams/"`
	ServiceHosts []string         `yaml:"service_hosts" check:"text" doc:"further servers, as host or host:port, that may serve conversations; each gets the bot's token"`
	LoginURL     string           `yaml:"login_url" check:"url" doc:"another login server; unset: https://login.microsoftonline.com"`
	OpenIDURL    string           `yaml:"openid_url" check:"url" doc:"another metadata document of the signing keys; unset: the Bot Framework's"`
	GraphURL     string           `yaml:"graph_url" check:"url" doc:"another Microsoft Graph; unset: https://graph.microsoft.com"`
	Graph        bool             `yaml:"graph" default:"false" doc:"fetch files of groups and channels with Microsoft Graph; the app needs permissions for that"`
	GraphSite    string           `yaml:"graph_site" check:"text" doc:"id of a SharePoint site (host,guid,guid) where files for groups and channels are put; unset: a line says that they can't be sent"`
	Proxy        platforms.Secret `yaml:"proxy" env:"TEAMS_PROXY" check:"proxy" doc:"HTTP or SOCKS5 proxy for this platform alone; a secret, because it may hold a password"`
}

// On reports whether Teams is to be started: enabled, or not set and one of its credentials is there.
func (s Settings) On() bool {
	return s.Starts(s.ClientID != "" || s.TenantID != "" || s.ClientSecret.IsSet())
}
