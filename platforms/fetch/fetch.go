package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Bounds that hold where Options has none.
const (
	DefaultTimeout = 5 * time.Minute  // of one download
	DefaultConnect = 15 * time.Second // of one connection attempt, its TLS handshake and the first byte of an answer, each
	DefaultIdle    = 30 * time.Second // without one byte of a body
	maxRedirects   = 5
	maxAddresses   = 4 // that are tried of one name
)

var (
	errRedirects = fmt.Errorf("more than %d redirects", maxRedirects)
	errStalled   = errors.New("the server stopped sending")
)

// Resolver finds the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options says what a Client may do. The zero value is strict and uses no proxy.
type Options struct {
	// Allow names the operator's own servers: "host:port", "host" (ports 80 and 443), or a URL, of which only
	// host and port count. They are exempt from the rules on addresses and ports. Never put in what a stranger said.
	Allow []string
	// TrustEnv honours HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
	TrustEnv bool
	// Proxy is the URL of an http, https or socks5 proxy, which wins over the environment.
	Proxy string
	// UserAgent is sent where the caller sets none; empty is "Herald".
	UserAgent string
	// Timeout bounds a whole download, Connect each step up to the first byte, Idle a pause within a body. 0 takes
	// the defaults.
	Timeout, Connect, Idle time.Duration
	// Resolver finds addresses; nil is net.DefaultResolver.
	Resolver Resolver
	// ModifyTransport is for tests (a certificate pool); nil changes nothing.
	ModifyTransport func(*http.Transport)

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // of an address that was checked
}

// Client fetches. It is safe for concurrent use.
type Client struct {
	opt    Options
	allow  map[string]bool // host:port, lower case
	proxy  func(*http.Request) (*url.URL, error)
	direct *http.Transport
	http   *http.Client
}

// New returns a client. An error means that an entry of Allow, or Proxy, can't be read.
func New(o Options) (*Client, error) {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Connect <= 0 {
		o.Connect = DefaultConnect
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.UserAgent == "" {
		o.UserAgent = "Herald"
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.dial == nil {
		o.dial = (&net.Dialer{Timeout: o.Connect, KeepAlive: 30 * time.Second}).DialContext
	}
	c := &Client{opt: o, allow: map[string]bool{}, proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}
	for _, entry := range o.Allow {
		places, err := placesOf(entry)
		if err != nil {
			return nil, err
		}
		for _, p := range places {
			c.allow[p] = true
		}
	}
	if o.TrustEnv {
		c.proxy = http.ProxyFromEnvironment
	}
	if o.Proxy != "" {
		u, err := url.Parse(o.Proxy)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			return nil, errors.New("the proxy is no URL of an http, https or socks5 proxy")
		}
		c.proxy = http.ProxyURL(u)
	}
	c.direct = c.transport()
	c.direct.DialContext = c.dialChecked
	c.http = &http.Client{Transport: door{c}, CheckRedirect: c.redirect}
	return c, nil
}

// CheckAllow reports why an entry is not allowed in Options.Allow.
func CheckAllow(entry string) error {
	_, err := placesOf(entry)
	return err
}

// placesOf reads one entry of Options.Allow.
func placesOf(entry string) ([]string, error) {
	text := strings.TrimSpace(entry)
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, errors.New("an allowed server is no http or https URL")
		}
		return []string{place(u)}, nil
	}
	if host, port, err := net.SplitHostPort(text); err == nil && host != "" && port != "" {
		return []string{net.JoinHostPort(plainHost(host), port)}, nil
	}
	host := strings.Trim(text, "[]")
	if host == "" || strings.ContainsAny(host, "/ @?#") {
		return nil, fmt.Errorf("%q is no host or host:port", entry)
	}
	return []string{net.JoinHostPort(plainHost(host), "80"), net.JoinHostPort(plainHost(host), "443")}, nil
}

// place is the host:port that a URL names, in the form in which places are compared.
func place(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	return net.JoinHostPort(plainHost(u.Hostname()), port)
}

func plainHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// transport returns one with our bounds.
func (c *Client) transport() *http.Transport {
	t := &http.Transport{
		TLSHandshakeTimeout: c.opt.Connect, ResponseHeaderTimeout: c.opt.Connect, ExpectContinueTimeout: time.Second,
		IdleConnTimeout: 30 * time.Second, MaxIdleConns: 16, MaxIdleConnsPerHost: 4, MaxResponseHeaderBytes: 64 << 10,
		DisableCompression: true, ForceAttemptHTTP2: true,
	}
	if c.opt.ModifyTransport != nil {
		c.opt.ModifyTransport(t)
	}
	return t
}

// HTTP returns a client that enforces everything but the size of a body and the time of a whole request: those who
// read more than a file bound these themselves.
func (c *Client) HTTP() *http.Client { return c.http }

// Close drops idle connections.
func (c *Client) Close() { c.direct.CloseIdleConnections() }

// File says what a download was.
type File struct {
	// Type is the media type that the server claims, without parameters; empty when it claims none.
	Type string
	// Name is the file name that the server proposes; empty for none. It comes from outside: see platforms.SafeName.
	Name string
	// Size is how many bytes were written.
	Size int64
}

// Get copies what a URL names to w, at most limit bytes. header goes to the URL's own origin only. Errors:
// *TooLargeError, with at most limit bytes written; *StatusError for another answer than 200; ErrForbidden; ctx's. What
// was written before an error is to be thrown away.
func (c *Client) Get(ctx context.Context, rawURL string, header http.Header, limit int64, w io.Writer) (File, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opt.Timeout, context.DeadlineExceeded)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return File{}, forbidden("it is no URL")
	}
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	host := req.URL.Hostname()
	resp, err := c.http.Do(req)
	if err != nil {
		return File{}, Clean(ctx, host, err)
	}
	defer resp.Body.Close()
	host = resp.Request.URL.Hostname()
	if resp.StatusCode != http.StatusOK {
		return File{}, &StatusError{Host: host, Code: resp.StatusCode}
	}
	if resp.ContentLength > limit {
		return File{}, &TooLargeError{Limit: limit} // a claim that spares the transfer; a lower one is not believed
	}
	f := File{}
	f.Type, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		f.Name = params["filename"]
	}
	watch := time.AfterFunc(c.opt.Idle, func() { stop(errStalled) })
	defer watch.Stop()
	dest := &target{w: w}
	f.Size, err = Copy(dest, &alive{r: resp.Body, watch: watch, idle: c.opt.Idle}, limit)
	switch {
	case dest.err != nil:
		return File{}, dest.err
	case err != nil:
		return File{}, Clean(ctx, host, err)
	}
	return f, nil
}

// target remembers that it was the writing that failed.
type target struct {
	w   io.Writer
	err error
}

func (t *target) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if err != nil {
		t.err = err
	}
	return n, err
}

// alive pushes the watch back with every byte.
type alive struct {
	r     io.Reader
	watch *time.Timer
	idle  time.Duration
}

func (a *alive) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if n > 0 {
		a.watch.Reset(a.idle)
	}
	return n, err
}

// Copy copies r to w and fails with *TooLargeError when r holds more than limit bytes; then exactly limit bytes were
// written.
func Copy(w io.Writer, r io.Reader, limit int64) (int64, error) {
	limit = max(limit, 0)
	n, err := io.Copy(w, io.LimitReader(r, limit))
	if err != nil || n < limit {
		return n, err
	}
	var one [1]byte
	switch m, err := io.ReadFull(r, one[:]); {
	case m > 0:
		return n, &TooLargeError{Limit: limit}
	case errors.Is(err, io.EOF):
		return n, nil
	default:
		return n, err
	}
}
