package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// door is the transport that every request goes through, each redirect hop included.
type door struct{ c *Client }

// RoundTrip implements http.RoundTripper.
func (d door) RoundTrip(req *http.Request) (*http.Response, error) {
	c := d.c
	if err := c.checkURL(req.URL); err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", c.opt.UserAgent)
	}
	proxy, err := c.proxy(req)
	if err != nil {
		return nil, errors.New("the proxy of the environment is no URL")
	}
	if proxy == nil {
		return c.direct.RoundTrip(out)
	}
	resp, err := c.throughProxy(out, proxy)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// checkURL refuses what needs no look at the network.
func (c *Client) checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return forbidden("its scheme is not http or https")
	case u.Hostname() == "":
		return forbidden("it names no host")
	case u.User != nil:
		return forbidden("it holds a user name or a password")
	case c.allow[place(u)]:
		return nil
	case !strings.HasSuffix(place(u), ":80") && !strings.HasSuffix(place(u), ":443"):
		return forbidden("%s is asked on another port than 80 and 443", u.Hostname())
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !Public(ip) {
		return forbidden("%s is no address of the public internet", u.Hostname())
	}
	return nil
}

// dialChecked connects to a server: to an allowed one wherever it is, to another one only at a public address.
func (c *Client) dialChecked(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, forbidden("it names no host and port")
	}
	if c.allow[net.JoinHostPort(plainHost(host), port)] {
		return c.opt.dial(ctx, network, addr)
	}
	ips, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips[:min(len(ips), maxAddresses)] {
		var conn net.Conn
		if conn, err = c.opt.dial(ctx, network, net.JoinHostPort(ip.String(), port)); err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// resolve returns the public addresses of a host, IPv4 first, at least one. One that is not public makes the
// host no place to go: a name that points both ways is a trap or a mistake.
func (c *Client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	ips := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		ips = append(ips, ip)
	} else if ips, err = c.opt.Resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	ips = slices.Clone(ips)
	for i, ip := range ips {
		if !Public(ip) {
			return nil, forbidden("%s is no address of the public internet", host)
		}
		ips[i] = ip.Unmap()
	}
	slices.SortStableFunc(ips, func(a, b netip.Addr) int {
		switch {
		case a.Is4() == b.Is4():
			return 0
		case a.Is4():
			return -1
		}
		return 1
	})
	return ips, nil
}

// throughProxy sends a request through a proxy. The proxy gets the address that was checked here, never the
// name, except of an allowed server.
func (c *Client) throughProxy(req *http.Request, proxy *url.URL) (*http.Response, error) {
	t := c.transport()
	t.Proxy = http.ProxyURL(proxy)
	t.DisableKeepAlives = true // one connection for one request: its certificate belongs to one name
	t.DialContext = c.opt.dial // to the proxy, which the operator named
	if !c.allow[place(req.URL)] {
		if req.URL.Scheme == "http" && strings.HasPrefix(proxy.Scheme, "http") {
			return nil, forbidden("plain http goes through an HTTP proxy by name, which can't be checked; use https")
		}
		host := req.URL.Hostname()
		ips, err := c.resolve(req.Context(), host)
		if err != nil {
			return nil, err
		}
		if t.TLSClientConfig == nil {
			t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		} else {
			t.TLSClientConfig = t.TLSClientConfig.Clone()
		}
		t.TLSClientConfig.ServerName = host
		if req.Host == "" {
			req.Host = req.URL.Host
		}
		u := *req.URL
		_, port, _ := net.SplitHostPort(place(req.URL))
		u.Host = net.JoinHostPort(ips[0].String(), port)
		req.URL = &u
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		t.CloseIdleConnections()
		return nil, err
	}
	resp.Body = &lastBody{ReadCloser: resp.Body, t: t}
	return resp, nil
}

// lastBody ends its transport with its own end.
type lastBody struct {
	io.ReadCloser
	t *http.Transport
}

func (b *lastBody) Close() error {
	err := b.ReadCloser.Close()
	b.t.CloseIdleConnections()
	return err
}

// kept are the headers that may follow a redirect to another origin.
var kept = []string{"Accept", "Accept-Language", "User-Agent"}

// redirect implements http.Client.CheckRedirect.
func (c *Client) redirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errRedirects
	}
	req.Header.Del("Referer") // it would hand a link with its query to the next server
	first := via[0].URL
	for _, hop := range append(slices.Clone(via), req) {
		if hop.URL.Scheme == first.Scheme && place(hop.URL) == place(first) {
			continue
		}
		for name := range req.Header {
			if !slices.Contains(kept, name) {
				delete(req.Header, name)
			}
		}
		break
	}
	return c.checkURL(req.URL)
}
