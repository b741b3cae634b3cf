package web

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
)

// The names under which the browser chat is known to the rest of Herald.
const (
	// Platform is the platform of every browser chat.
	Platform platforms.Name = "web"
	// Account is its one account.
	Account platforms.AccountID = "local"
	// Owner is the sender of every message: whoever got through the door.
	Owner platforms.UserID = "owner"
)

// Defaults and bounds of Options.
const (
	// DefaultMaxUpload is the most bytes of the files of one message: 128 MiB, the core's own cap for
	// inbound media.
	DefaultMaxUpload = 128 << 20
	// DefaultMaxText is the most bytes of one message's text: 1 MiB, about 250 pages.
	DefaultMaxText = 1 << 20
	// MaxFiles is the most files of one message, inclusive.
	MaxFiles = 10
	// DefaultName is what the page calls the assistant.
	DefaultName = "Herald"
)

// Options say how the browser chat is served.
type Options struct {
	// Log keeps the visible messages. Required.
	Log platforms.Log
	// MediaDir is a folder of our own for uploads and sent files. It is made with mode 0700, and a wider
	// mode is narrowed to that. Required.
	MediaDir string
	// Listen is the host:port that the HTTP listener is bound to. It decides whether Password or Token
	// must be set. Required.
	Listen string
	// Hosts are further host names (no port) under which browsers may reach the page: that of
	// http.public_url, such as the name of a reverse proxy. A name that is not loopback makes the page exposed: Password or Token must be set.
	Hosts []string
	// Password opens the page through its login form. Empty: no password.
	Password string
	// Token opens the HTTP interface as a bearer token, and the page as a password does. Empty: no token.
	Token string
	// MaxUpload bounds the files of one message together, and one file that is sent, in bytes, inclusive.
	// 0 takes DefaultMaxUpload.
	MaxUpload int64
	// MaxText bounds the text of one message from the browser, in bytes, inclusive. 0 takes
	// DefaultMaxText.
	MaxText int64
	// Name is what the page calls the assistant. Empty takes DefaultName.
	Name string
	// Version is shown in the page's foot.
	Version string
	// Logger takes the adapter's log lines. The zero value logs nothing.
	Logger zerolog.Logger
	// Now is the clock. nil takes time.Now.
	Now func() time.Time
}

// withDefaults returns the options with every default filled in, or what is wrong with them.
func (o Options) withDefaults() (Options, error) {
	if o.Log == nil {
		return o, errors.New("web: Options.Log is nil")
	}
	if o.MediaDir == "" {
		return o, errors.New("web: Options.MediaDir is empty")
	}
	if o.MaxUpload < 0 {
		return o, startError("gateway.max_inbound_media_bytes", fmt.Errorf("%d bytes is negative", o.MaxUpload), "0 takes the default of 128 MiB")
	}
	if o.MaxText < 0 {
		return o, startError("gateway.max_message_bytes", fmt.Errorf("%d bytes is negative", o.MaxText), "0 takes the default of 1 MiB")
	}
	if o.MaxUpload == 0 {
		o.MaxUpload = DefaultMaxUpload
	}
	if o.MaxText == 0 {
		o.MaxText = DefaultMaxText
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, o.checkExposure()
}

// checkExposure refuses a page that others can reach and that has no lock (P13).
func (o Options) checkExposure() error {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return startError("http.listen", fmt.Errorf("%q is no host:port: %w", o.Listen, err), `such as "127.0.0.1:7878"`)
	}
	if o.Password != "" || o.Token != "" {
		return nil
	}
	const hint = "set HERALD_HTTP_PASSWORD or HERALD_HTTP_TOKEN in the environment or in .env, or keep to 127.0.0.1"
	if !isLoopback(host) {
		return startError("http.listen", fmt.Errorf("%q is not loopback and there is neither a password nor a token", o.Listen), hint)
	}
	for _, h := range o.Hosts {
		if !isLoopback(h) {
			return startError("http.public_url", fmt.Errorf("%q is not loopback and there is neither a password nor a token", h), hint)
		}
	}
	return nil
}

// locked reports whether a password or a token stands before the page.
func (o Options) locked() bool { return o.Password != "" || o.Token != "" }

// isLoopback reports whether a host, without port, is this machine and nothing else. An empty host is all
// interfaces, so it is not.
func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}

func startError(setting string, err error, hint string) error {
	return &platforms.StartError{Account: account, Setting: setting, Err: err, Hint: hint}
}

var account = platforms.Account{Platform: Platform, ID: Account}
