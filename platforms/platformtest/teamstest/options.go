package teamstest

import (
	"cmp"
	"net/http"
	"time"
)

// Options configures a fake. The zero value is a service with one tenant and one bot on it.
type Options struct {
	// AppID and Secret are the bot's credentials, TenantID its home tenant. Empty takes DefaultAppID,
	// DefaultSecret and DefaultTenantID.
	AppID, Secret, TenantID string
	// BotName is what people see and mention. Empty is "Herald".
	BotName string
	// Endpoint is where activities are posted, such as "http://127.0.0.1:3978/api/messages". Without one they
	// wait. See SetEndpoint.
	Endpoint string
	// Client posts the activities. nil is a client of the fake's own.
	Client *http.Client
	// Region is the first element of the service URL's path. Empty is "amer".
	Region string
	// TokenLife is what the token endpoint's answers are good for. 0 is one hour.
	TokenLife time.Duration
	// DeliveryTimeout is how long a delivery waits for the bot. 0 is 15 seconds, the Bot Framework's own.
	DeliveryTimeout time.Duration
	// Attempts is how often an activity is offered before it counts as lost; 0 is forever. Invokes are offered
	// once: a person waits for their answer.
	Attempts int
	// RetryEvery is the pause between two attempts. 0 is 20 ms.
	RetryEvery time.Duration
	// MessageLimit is the most bytes of a message's text, cards and mentions. 0 is 28 KB (28672), what Teams says of
	// a post; for a bot another page of Teams says 100 KB in UTF-16, and the fake keeps to the smaller.
	MessageLimit int
	// StreamEvery is the least time between two chunks of a stream; faster ones get a 429. 0 is one second,
	// Teams' own. Negative allows any pace.
	StreamEvery time.Duration
	// StreamLife is how long a stream may take. 0 is two minutes, Teams' own.
	StreamLife time.Duration
	// NoGraph refuses everything on Graph with 403, as a tenant whose admin has not consented.
	NoGraph bool
	// Quotas refuses sends above the documented limits of one conversation with a 429: 7 in one second, 8 in two,
	// 60 in thirty.
	Quotas bool
	// Keep is how many messages, acts and deliveries are remembered, 0 for all: soak runs set it.
	Keep int
}

// The credentials of a zero Options.
const (
	DefaultAppID    = "11111111-aaaa-4bbb-8ccc-00000000b07a"
	DefaultSecret   = "fake~Teams.Secret_8Q~only-for-tests"
	DefaultTenantID = "22222222-aaaa-4bbb-8ccc-0000000e4a47"
)

func (o Options) filled() Options {
	o.AppID = cmp.Or(o.AppID, DefaultAppID)
	o.Secret = cmp.Or(o.Secret, DefaultSecret)
	o.TenantID = cmp.Or(o.TenantID, DefaultTenantID)
	o.BotName = cmp.Or(o.BotName, "Herald")
	o.Region = cmp.Or(o.Region, "amer")
	o.TokenLife = cmp.Or(o.TokenLife, time.Hour)
	o.DeliveryTimeout = cmp.Or(o.DeliveryTimeout, 15*time.Second)
	o.RetryEvery = cmp.Or(o.RetryEvery, 20*time.Millisecond)
	o.MessageLimit = cmp.Or(o.MessageLimit, 28<<10)
	o.StreamEvery = cmp.Or(o.StreamEvery, time.Second)
	o.StreamLife = cmp.Or(o.StreamLife, 2*time.Minute)
	return o
}

// URLs are the fake's addresses, each as a bot would be configured with it. None but Service ends with a slash.
type URLs struct {
	// Base is the server's root.
	Base string
	// OpenID is the Bot Framework's metadata document, in place of
	// https://login.botframework.com/v1/.well-known/openidconfiguration.
	OpenID string
	// Login stands for https://login.microsoftonline.com: tokens are at {Login}/{tenant}/oauth2/v2.0/token.
	Login string
	// Service is the serviceUrl of activities, in place of https://smba.trafficmanager.net/amer/{tenant}/. It ends
	// with a slash. Calls below the older form without the tenant are answered too.
	Service string
	// Graph stands for https://graph.microsoft.com: resources are at {Graph}/v1.0/...
	Graph string
}
