package teams

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/wire"
)

// Platform is the name of this platform.
const Platform platforms.Name = "teams"

// Defaults of Options. Addresses and limits are Microsoft's own, see
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication and
// https://learn.microsoft.com/microsoftteams/platform/bots/how-to/rate-limit.
const (
	DefaultLoginURL   = "https://login.microsoftonline.com"
	DefaultOpenIDURL  = "https://login.botframework.com/v1/.well-known/openidconfiguration"
	DefaultServiceURL = "https://smba.trafficmanager.net/teams/"
	DefaultGraphURL   = "https://graph.microsoft.com"
	DefaultPath       = "/api/messages"
	HealthPath        = "/health"

	// DefaultKeyRefresh is the project's own choice. Microsoft asks for once in 24 hours, after which keys count as
	// stale.
	DefaultKeyRefresh = time.Hour
	DefaultKeyMaxAge  = 24 * time.Hour

	DefaultConnectTimeout = 30 * time.Second
	DefaultBackoffMin     = 200 * time.Millisecond
	DefaultBackoffMax     = 15 * time.Second

	// DefaultClickWait is how long a button press waits for the core's word. The person's client gives up after ten
	// seconds and shows an error.
	DefaultClickWait = 2 * time.Second

	// DefaultEditInterval is the pace of a growing answer: Microsoft asks to gather tokens for 1.5 to 2 seconds.
	DefaultEditInterval = 1500 * time.Millisecond

	// DefaultConsentKept is how long a file waits for a person's consent.
	DefaultConsentKept = 7 * 24 * time.Hour

	// messageLimit is Teams' own. textLimit leaves room in it for mentions and small cards.
	messageLimit = 28 << 10
	textLimit    = 28000
	summaryLimit = 200
	// inlineLimit is the most bytes of a picture in a message; as base64 it stays below 256 KB.
	inlineLimit = 150 << 10
	// maxUpload is the project's own choice: a file waits on disk for consent.
	maxUpload = 250 << 20
	maxBody   = 1 << 20 // of one webhook call
)

// serviceHosts are Microsoft's own. Anybody can register other names below trafficmanager.net.
var serviceHosts = []string{"smba.trafficmanager.net", "smba.infra.gov.teams.microsoft.us"}

// cloud is what differs between Microsoft's clouds beside the addresses: who signs tokens for bots, and what our own are
// for.
type cloud struct {
	issuer     string
	botScope   string
	graphScope string
}

var (
	publicCloud     = cloud{"https://api.botframework.com", "https://api.botframework.com/.default", "https://graph.microsoft.com/.default"}
	governmentCloud = cloud{"https://api.botframework.us", "https://api.botframework.us/.default", "https://graph.microsoft.us/.default"}
)

// cloudOf tells the cloud by the metadata document of the signing keys: that of the US government is at
// login.botframework.azure.us.
func cloudOf(openID string) cloud {
	if u, err := url.Parse(openID); err == nil && strings.HasSuffix(strings.ToLower(u.Hostname()), ".azure.us") {
		return governmentCloud
	}
	return publicCloud
}

// Options configures an Adapter. ClientID, ClientSecret and TenantID are mandatory; New fills in the defaults.
type Options struct {
	// ClientID is the bot's application id, a GUID. ClientSecret is its password, a secret. TenantID is the
	// directory that it is registered in, a GUID or a domain.
	ClientID, ClientSecret, TenantID string

	// LoginURL, OpenIDURL, ServiceURL and GraphURL replace Microsoft's servers. ServiceURL serves conversations
	// that nothing is remembered of; the others are served where their last activity said.
	LoginURL, OpenIDURL, ServiceURL, GraphURL string
	// ServiceHosts are further hosts that tokens may be sent to, as "host" (https) or as "host:port" of the loopback
	// interface, which also takes http. ServiceURL's own host is one of them.
	ServiceHosts []string
	// Fetch says how files are downloaded and where pictures of the connector and accepted files may go inside the
	// operator's network. Microsoft's servers need no entry.
	Fetch fetch.Options
	// Path is the webhook's route. Empty is DefaultPath.
	Path string
	// Proxy is the URL of an HTTP(S) or SOCKS5 proxy. Empty takes the proxy of the environment, unless
	// IgnoreProxyEnv is set.
	Proxy          string
	IgnoreProxyEnv bool
	// ConnectTimeout bounds one attempt to connect and one question to the login and key servers. 0 is
	// DefaultConnectTimeout.
	ConnectTimeout time.Duration

	// RequireMention drops messages of groups and channels that don't speak to the bot: no mention, no reply to it,
	// no match of MentionPatterns. Without the resource-specific consent of the app only mentions arrive anyway.
	RequireMention bool
	// FreeChats are the chats where RequireMention does not hold, by id.
	FreeChats []string
	// MentionPatterns are further wake words: regular expressions, case-insensitive. A bad one is reported in the
	// log and ignored.
	MentionPatterns []string
	// BotsRequireMention takes messages of other bots only when they name ours.
	BotsRequireMention bool

	// Graph asks Microsoft Graph for files that the Bot Framework does not hand out. The app needs permissions for
	// that, see docs/platforms/teams.md. GraphSite is the id of a SharePoint site where files for groups and
	// channels are put; empty sends none there.
	Graph     bool
	GraphSite string

	// RateLimit keeps sends and edits under Teams' limits. nil means true; false is for private servers.
	RateLimit *bool
	// EditInterval is the pace of a growing answer. 0 is DefaultEditInterval.
	EditInterval time.Duration
	// StreamLife is how long one stream may take. 0 is 100 s: Teams ends it after two minutes.
	StreamLife time.Duration
	// ClickWait is how long a button press waits for AnswerClick. 0 is DefaultClickWait, negative is not at all.
	ClickWait time.Duration
	// KeyRefresh is how often the signing keys are fetched, KeyMaxAge how long they are trusted. 0 are the defaults.
	KeyRefresh, KeyMaxAge time.Duration
	// BackoffMin and BackoffMax bound the wait between failed attempts to begin. 0 are the defaults.
	BackoffMin, BackoffMax time.Duration

	// MediaDir is where files wait for consent. Empty refuses files that need one.
	MediaDir string
	// ConsentKept is how long they wait. 0 is DefaultConsentKept.
	ConsentKept time.Duration
	// Memory keeps what must outlive a restart. nil is platforms.NewMemory().
	Memory platforms.Memory
	// Log takes one line per notable event. The zero value is silent.
	Log zerolog.Logger
	// Metrics is told what an operator counts. nil is nobody.
	// Polled counts one webhook call: "ok", "auth" (its token was refused), "refused" (by the store), "http" (no activity).
	// Dropped counts an activity that made no event, by reason: "unmentioned", "own", "bot", "empty", "service".
	Metrics platforms.Metrics
	// Clock is the time. nil is the system's.
	Clock wire.Clock
}

var (
	guidPattern   = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	tenantPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,250}$`)
	sitePattern   = regexp.MustCompile(`^[A-Za-z0-9.,_-]{1,300}$`)
)

// settings are Options checked and filled in.
type settings struct {
	Options
	account       platforms.Account
	cloud         cloud
	proxy         *url.URL
	proxyPassword string
	hosts         map[string]bool // "host:port" that tokens may go to
	limited       bool
	patterns      wire.WakeWords
	free          map[string]bool
}

// check validates o. The error names the setting, the value (unless it is a secret) and what is allowed.
func (o Options) check() (settings, error) {
	s := settings{Options: o, limited: o.RateLimit == nil || *o.RateLimit, hosts: map[string]bool{}, free: map[string]bool{}}
	if err := s.checkCredentials(); err != nil {
		return s, err
	}
	if err := s.checkURLs(); err != nil {
		return s, err
	}
	if err := s.checkNumbers(); err != nil {
		return s, err
	}
	if s.Path == "" {
		s.Path = DefaultPath
	}
	if !strings.HasPrefix(s.Path, "/") || strings.ContainsAny(s.Path, " {}") || s.Path == HealthPath {
		return s, s.setting("path", fmt.Errorf("%q: want a path that starts with / and holds no space or brace", s.Path))
	}
	if s.GraphSite != "" && !sitePattern.MatchString(s.GraphSite) {
		return s, s.setting("graph_site", fmt.Errorf("%q is no id of a site: want host,guid,guid", s.GraphSite))
	}
	for _, chat := range o.FreeChats {
		s.free[strings.TrimSpace(chat)] = true
	}
	s.patterns = wire.NewWakeWords(o.MentionPatterns, o.Log)
	if s.Memory == nil {
		s.Memory = platforms.NewMemory()
	}
	if s.Metrics == nil {
		s.Metrics = platforms.NoMetrics{}
	}
	if s.Clock == nil {
		s.Clock = wire.System{}
	}
	return s, nil
}

// AccountOf returns the account of a bot: its application id in lower case.
func AccountOf(clientID string) platforms.Account {
	return platforms.Account{Platform: Platform, ID: platforms.AccountID(strings.ToLower(strings.TrimSpace(clientID)))}
}

func (s *settings) checkCredentials() error {
	s.account = AccountOf(s.ClientID)
	s.ClientID, s.ClientSecret, s.TenantID = string(s.account.ID), strings.TrimSpace(s.ClientSecret), strings.TrimSpace(s.TenantID)
	const where = "it is in the Azure portal, in the app registration of the bot"
	missing := errors.New("is missing: Teams needs TEAMS_CLIENT_ID, TEAMS_CLIENT_SECRET and TEAMS_TENANT_ID")
	switch {
	case s.ClientID == "":
		return s.env("TEAMS_CLIENT_ID", missing, "set it to the Application (client) ID; "+where)
	case !guidPattern.MatchString(s.ClientID):
		s.account.ID = ""
		return s.env("TEAMS_CLIENT_ID", errors.New("is no application id: want a GUID such as 00000000-0000-0000-0000-000000000000"), where)
	case s.ClientSecret == "":
		return s.env("TEAMS_CLIENT_SECRET", missing, "make a client secret under Certificates & secrets and set its value, not its id")
	case guidPattern.MatchString(s.ClientSecret):
		return s.env("TEAMS_CLIENT_SECRET", errors.New("is the id of a secret and not its value"), "make a new client secret and copy its Value; the portal shows it once")
	case s.TenantID == "":
		return s.env("TEAMS_TENANT_ID", missing, "set it to the Directory (tenant) ID; "+where)
	case !tenantPattern.MatchString(s.TenantID):
		return s.env("TEAMS_TENANT_ID", errors.New("is no tenant: want a GUID or a domain"), where)
	}
	return nil
}

func (s *settings) checkURLs() error {
	for _, u := range []struct {
		key   string
		value *string
		def   string
	}{
		{"login_url", &s.LoginURL, DefaultLoginURL},
		{"openid_url", &s.OpenIDURL, DefaultOpenIDURL},
		{"service_url", &s.ServiceURL, DefaultServiceURL},
		{"graph_url", &s.GraphURL, DefaultGraphURL},
	} {
		if *u.value == "" {
			*u.value = u.def
		}
		parsed, err := webURL(*u.value)
		if err != nil {
			return s.setting(u.key, err)
		}
		if parsed.Scheme == "http" && !loopback(parsed.Hostname()) {
			return s.setting(u.key, fmt.Errorf("%q: plain http is for servers on this machine only; want https", parsed.Redacted()))
		}
		*u.value = strings.TrimRight(*u.value, "/")
	}
	s.ServiceURL += "/"
	s.cloud = cloudOf(s.OpenIDURL)
	for _, host := range serviceHosts {
		s.hosts[net.JoinHostPort(host, "443")] = true
	}
	if u, err := url.Parse(s.ServiceURL); err == nil {
		s.hosts[hostPort(u)] = true
	}
	for _, host := range s.ServiceHosts {
		if host = strings.ToLower(strings.TrimSpace(host)); host == "" {
			continue
		}
		if strings.ContainsAny(host, "/@*? ") {
			return s.setting("service_hosts", fmt.Errorf("%q: want a host or host:port, no URL and no pattern", host))
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(host, "443")
		}
		s.hosts[host] = true
	}
	if s.Proxy != "" {
		u, err := url.Parse(s.Proxy)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			return s.setting("proxy", errors.New("is no URL of an http, https or socks5 proxy"))
		}
		s.proxy = u
		s.proxyPassword, _ = u.User.Password()
	}
	return nil
}

func (s *settings) checkNumbers() error {
	for _, d := range []struct {
		key        string
		value      *time.Duration
		def, least time.Duration
	}{
		{"connect_timeout", &s.ConnectTimeout, DefaultConnectTimeout, time.Millisecond},
		{"edit_interval", &s.EditInterval, DefaultEditInterval, time.Millisecond},
		{"stream_life", &s.StreamLife, 100 * time.Second, time.Millisecond},
		{"key_refresh", &s.KeyRefresh, DefaultKeyRefresh, time.Millisecond},
		{"key_max_age", &s.KeyMaxAge, DefaultKeyMaxAge, time.Millisecond},
		{"backoff_min", &s.BackoffMin, DefaultBackoffMin, time.Millisecond},
		{"backoff_max", &s.BackoffMax, DefaultBackoffMax, time.Millisecond},
		{"consent_kept", &s.ConsentKept, DefaultConsentKept, time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < d.least {
			return s.setting(d.key, fmt.Errorf("%s is too short: want at least %s", *d.value, d.least))
		}
	}
	s.BackoffMax = max(s.BackoffMax, s.BackoffMin)
	if s.ClickWait == 0 {
		s.ClickWait = DefaultClickWait
	}
	s.ClickWait = max(s.ClickWait, 0)
	return nil
}

// serves returns the root of a service that tokens may be sent to, with a slash at its end, and whether raw names one.
func (s *settings) serves(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" || len(raw) > 500 {
		return "", false
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return "", false
	}
	if !s.hosts[hostPort(u)] {
		return "", false
	}
	return strings.TrimRight(raw, "/") + "/", true
}

// hostPort returns what a URL connects to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
		if u.Scheme == "http" {
			port = "80"
		}
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// webURL parses an absolute http or https URL. Its errors repeat no user info.
func webURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("is no URL")
	}
	if u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q: want an absolute http or https URL without a query", u.Redacted())
	}
	return u, nil
}

func (s *settings) setting(key string, err error) *platforms.StartError {
	return &platforms.StartError{Account: s.account, Setting: "platforms.teams." + key, Err: err}
}

// env names a credential by its key and by the variable that people set. A bracket stands before the colon, because
// "…_SECRET: word" looks like a secret to those who redact logs.
func (s *settings) env(name string, err error, hint string) *platforms.StartError {
	e := s.setting(strings.ToLower(strings.TrimPrefix(name, "TEAMS_"))+" ("+name+")", err)
	e.Hint = hint
	return e
}
