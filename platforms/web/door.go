package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// The door's numbers.
const (
	sessionLife = 30 * 24 * time.Hour
	// loginTries wrong passwords are answered at once, then one every loginEvery, for each address.
	loginTries = 5
	loginEvery = time.Minute / loginTries
	// allTries bounds wrong passwords of all addresses together, a minute.
	allTries = 100
	// mostAddresses bounds the memory for addresses that tried.
	mostAddresses = 4096
)

// door decides which requests come in: by the name they were sent to (against DNS rebinding), by the page
// they come from (against other sites in the same browser), and by session or token. Wrong secrets are
// counted by the address that connects; behind a reverse proxy that is the proxy's, for everyone.
type door struct {
	hosts    map[string]bool
	loopback bool // bound to loopback: an address of another machine in Host is no address of ours
	locked   bool
	password [32]byte
	token    [32]byte
	hasPass  bool
	hasToken bool
	key      []byte // signs sessions; changes with password and token
	cookieID string // the cookie's name: browsers share cookies among all ports of a host
	now      func() time.Time

	mu     sync.Mutex
	wrong  map[netip.Prefix]*rate.Limiter
	anyone *rate.Limiter
}

func newDoor(o Options, m *media) (*door, error) {
	d := &door{
		hosts: make(map[string]bool), locked: o.locked(),
		password: sha256.Sum256([]byte(o.Password)), token: sha256.Sum256([]byte(o.Token)),
		hasPass: o.Password != "", hasToken: o.Token != "",
		now: o.Now, wrong: make(map[netip.Prefix]*rate.Limiter),
		anyone: rate.NewLimiter(rate.Limit(allTries)/60, allTries),
	}
	host, _, _ := net.SplitHostPort(o.Listen) // withDefaults has checked it
	d.loopback = isLoopback(host)
	d.hosts[strings.ToLower(host)] = true
	for _, h := range o.Hosts {
		d.hosts[strings.ToLower(strings.TrimSuffix(h, "."))] = true
	}
	secret, err := sessionKey(m)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%d:%s%d:%s", len(o.Password), o.Password, len(o.Token), o.Token)
	d.key = mac.Sum(nil)
	name := sha256.Sum256(secret)
	d.cookieID = "herald_" + hex.EncodeToString(name[:4])
	return d, nil
}

// sessionKey reads the key that outlives a restart, so that nobody has to log in again, and makes it on
// the first start.
func sessionKey(m *media) ([]byte, error) {
	const name = ".session-key"
	for {
		f, err := m.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
		if err == nil {
			b, err := io.ReadAll(io.LimitReader(f, 33))
			_ = f.Close()
			if err == nil && len(b) == 32 {
				return b, nil
			}
			if err := m.root.Remove(name); err != nil { // cut short by a crash
				return nil, err
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		key := make([]byte, 32)
		_, _ = rand.Read(key)
		f, err = m.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		_, err = f.Write(key)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		return key, nil
	}
}

// checkHost refuses a request that was sent to a name which is not ours: a web site that points its own
// name at this machine would otherwise speak to us with the browser's blessing.
func (d *door) checkHost(r *http.Request) error {
	u, err := url.Parse("//" + r.Host)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" {
		return fmt.Errorf("host %q is no host name", r.Host)
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if isLoopback(host) || d.hosts[host] && host != "" {
		return nil
	}
	if _, err := netip.ParseAddr(host); err == nil && !d.loopback {
		return nil // a bare address can't be rebound
	}
	return fmt.Errorf("host %q is not known here; if it is yours, set http.public_url to its address", host)
}

// checkOrigin refuses a request that another site's page makes. document says that the request may be the
// opening of a page in a tab.
func (d *door) checkOrigin(r *http.Request, document bool) error {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "same-origin":
	case "none":
		if !read {
			return errors.New("a request from outside a page may only read")
		}
	case "":
	default:
		if !document || !read || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" {
			return fmt.Errorf("request of another site (%s)", site)
		}
	}
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		u, err := url.Parse(origins[0])
		if len(origins) > 1 || err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return fmt.Errorf("request of another site (%q)", origins[0])
		}
	}
	return nil
}

// admitted reports whether a request has a session or the token. wait is set when the token is wrong and
// its sender has to wait before the next try.
func (d *door) admitted(r *http.Request) (ok bool, wait time.Duration) {
	if !d.locked {
		return true, 0
	}
	if auth := r.Header.Get("Authorization"); auth != "" {
		given, isBearer := strings.CutPrefix(auth, "Bearer ")
		if !isBearer || !d.hasToken {
			return false, 0
		}
		return d.try(r, func() bool { return sameSecret(given, d.token) })
	}
	c, err := r.Cookie(d.cookieID)
	return err == nil && d.validSession(c.Value), 0
}

// login checks a password, or a token given as one. wait is how long its sender has to wait before the
// next try when there were too many.
func (d *door) login(r *http.Request, given string) (ok bool, wait time.Duration) {
	return d.try(r, func() bool {
		pass := sameSecret(given, d.password) && d.hasPass
		token := sameSecret(given, d.token) && d.hasToken
		return pass || token
	})
}

// try runs a check of a secret unless its sender has guessed too often. Right answers cost nothing.
func (d *door) try(r *http.Request, check func() bool) (ok bool, wait time.Duration) {
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.limiter(clientPrefix(r))
	for _, lim := range []*rate.Limiter{l, d.anyone} {
		if missing := 1 - lim.TokensAt(now); missing > 0 {
			return false, time.Duration(missing / float64(lim.Limit()) * float64(time.Second))
		}
	}
	if check() {
		return true, 0
	}
	l.AllowN(now, 1)
	d.anyone.AllowN(now, 1)
	return false, 0
}

// limiter returns the guesses of an address. It is called with mu held.
func (d *door) limiter(p netip.Prefix) *rate.Limiter {
	l := d.wrong[p]
	if l == nil {
		if len(d.wrong) >= mostAddresses {
			clear(d.wrong) // anyone still bounds them all
		}
		l = rate.NewLimiter(rate.Every(loginEvery), loginTries)
		d.wrong[p] = l
	}
	return l
}

// clientPrefix is whom guesses are counted for: an IPv4 address, or the /64 that one IPv6 user has.
func clientPrefix(r *http.Request) netip.Prefix {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := ap.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits)
	return p
}

func sameSecret(given string, want [32]byte) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

// newSession makes a session's cookie.
func (d *door) newSession(r *http.Request) *http.Cookie {
	body := "1." + strconv.FormatInt(d.now().Add(sessionLife).Unix(), 10) + "." + rand.Text()
	return d.cookie(r, body+"."+d.sign(body), int(sessionLife/time.Second))
}

// endSession makes the cookie that takes a session out of the browser.
func (d *door) endSession(r *http.Request) *http.Cookie { return d.cookie(r, "", -1) }

func (d *door) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: d.cookieID, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}

func (d *door) sign(body string) string {
	mac := hmac.New(sha256.New, d.key)
	mac.Write([]byte(body))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// validSession checks a cookie's signature and age.
func (d *door) validSession(value string) bool {
	i := strings.LastIndexByte(value, '.')
	if i < 0 || !hmac.Equal([]byte(value[i+1:]), []byte(d.sign(value[:i]))) {
		return false
	}
	parts := strings.Split(value[:i], ".")
	if len(parts) != 3 || parts[0] != "1" {
		return false
	}
	until, err := strconv.ParseInt(parts[1], 10, 64)
	return err == nil && d.now().Unix() < until
}

// retryAfter is a wait as the header of that name takes it: whole seconds, at least one.
func retryAfter(wait time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
}
