package discordtest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"herald/platforms/platformtest/faults"
)

// limit is how many requests a bucket takes in a time.
type limit struct {
	most int
	per  time.Duration
}

// generous is the limit of routes that have none.
var generous = limit{1000, time.Second}

// bucket counts the requests of one route for one channel, guild or webhook.
type bucket struct {
	left  int
	reset time.Time
}

// realLimits are the buckets as bots see them.
func (d *Discord) realLimits() {
	for route, l := range map[string]limit{
		SendMessage: {5, 5 * time.Second},
		"PATCH /channels/{channel}/messages/{message}":                        {5, 5 * time.Second},
		"DELETE /channels/{channel}/messages/{message}":                       {5, time.Second},
		"GET /channels/{channel}/messages":                                    {5, 5 * time.Second},
		"POST /channels/{channel}/typing":                                     {5, 5 * time.Second},
		"PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me":    {1, 250 * time.Millisecond},
		"DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me": {1, 250 * time.Millisecond},
		"POST /channels/{channel}/messages/{message}/threads":                 {5, 10 * time.Second},
		"POST /channels/{channel}/threads":                                    {5, 10 * time.Second},
		"POST /users/@me/channels":                                            {5, 5 * time.Second},
		"PUT /applications/{application}/commands":                            {5, 20 * time.Second},
		"POST /webhooks/{application}/{token}":                                {5, 2 * time.Second},
		"PATCH /webhooks/{application}/{token}/messages/{message}":            {5, 2 * time.Second},
	} {
		d.limits[route] = l
	}
	d.limits[""] = limit{50, time.Second}
}

// Limit sets a route's buckets: most requests in per. 0 takes the limit off.
func (d *Discord) Limit(route string, most int, per time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.buckets = map[string]*bucket{}
	if most == 0 {
		delete(d.limits, route)
		return
	}
	d.limits[route] = limit{most, per}
}

// LimitAll sets the bot's global limit. 0 takes it off.
func (d *Discord) LimitAll(most int, per time.Duration) { d.Limit("", most, per) }

// Violations returns the requests that came inside a retry-after window, in words.
func (d *Discord) Violations() []string {
	return d.windows.Violations()
}

// wait is a 429.
type wait struct {
	after time.Duration
	scope string
	page  bool
	head  http.Header
}

// major is the part of a path that has buckets of its own.
func major(r *http.Request, route string) string {
	for _, name := range []string{"{channel}", "{guild}", "{token}"} {
		if strings.Contains(route, name) {
			return pathValue(r, route, name)
		}
	}
	return ""
}

// pathValue finds a parameter also before the mux has matched.
func pathValue(r *http.Request, route, name string) string {
	_, pattern, _ := strings.Cut(route, " ")
	want, have := strings.Split(strings.TrimPrefix(pattern, "/api"), "/"), strings.Split(strings.TrimPrefix(r.URL.Path, "/api"), "/")
	if i := slices.Index(want, name); i >= 0 && i < len(have) {
		return have[i]
	}
	return ""
}

// bucketName is what the header says: the same for all channels.
func bucketName(route string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(route))
	return fmt.Sprintf("%016x%016x", h.Sum64(), h.Sum64()*31)
}

// admit counts a request in its bucket and writes the headers. It returns a wait when there is no room. The caller
// holds mu.
func (d *Discord) admit(h http.Header, c *call, who int) *wait {
	route := strings.Replace(c.route, " /api", " ", 1)
	key, now := route+":"+major(c.r, route), time.Now()
	request := fmt.Sprintf("%s (%s)", route, c.r.URL.Path)
	if who == theBot {
		if left := d.windows.Enter("", request); left > 0 {
			return &wait{after: left, scope: "global"}
		}
	}
	if left := d.windows.Enter(key, request); left > 0 {
		return &wait{after: left, scope: "user", head: d.bucketHead(route, generous, &bucket{0, now.Add(left)})}
	}
	if l, ok := d.limits[""]; ok && who == theBot {
		if b := d.bucket("", l); b.left == 0 {
			d.windows.OpenUntil("", b.reset)
			return &wait{after: b.reset.Sub(now), scope: "global"}
		} else {
			b.left--
		}
	}
	l, ok := d.limits[route]
	if !ok {
		l = generous
	}
	b := d.bucket(key, l)
	if b.left == 0 {
		d.windows.OpenUntil(key, b.reset)
		return &wait{after: b.reset.Sub(now), scope: "user", head: d.bucketHead(route, l, b)}
	}
	b.left--
	for k, v := range d.bucketHead(route, l, b) {
		h[k] = v
	}
	return nil
}

func (d *Discord) bucket(key string, l limit) *bucket {
	b := d.buckets[key]
	if b == nil || !time.Now().Before(b.reset) {
		b = &bucket{l.most, time.Now().Add(l.per)}
		d.buckets[key] = b
	}
	return b
}

func (d *Discord) bucketHead(route string, l limit, b *bucket) http.Header {
	h := http.Header{}
	h.Set("X-RateLimit-Limit", strconv.Itoa(l.most))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(b.left))
	h.Set("X-RateLimit-Reset", seconds(time.Duration(b.reset.UnixMilli())*time.Millisecond))
	h.Set("X-RateLimit-Reset-After", seconds(max(0, time.Until(b.reset))))
	h.Set("X-RateLimit-Bucket", bucketName(route))
	return h
}

// seconds writes a time with three digits, rounded up.
func seconds(t time.Duration) string {
	return strconv.FormatFloat(float64((t+time.Millisecond-1)/time.Millisecond)/1000, 'f', 3, 64)
}

// parts are the header and body of a 429.
func (t *wait) parts() (http.Header, []byte) {
	h := http.Header{}
	for k, v := range t.head {
		h[k] = v
	}
	h.Set("Retry-After", strconv.Itoa(int((t.after+time.Second-1)/time.Second)))
	if t.page {
		h.Set("Content-Type", "text/html")
		return h, []byte("<html><title>Access denied | discord.com used Cloudflare to restrict access</title>error code: 1015</html>")
	}
	h.Set("Content-Type", "application/json")
	h.Set("Via", "1.1 google")
	h.Set("X-RateLimit-Scope", t.scope)
	message := "You are being rate limited."
	switch t.scope {
	case "global":
		h.Set("X-RateLimit-Global", "true")
	case "shared":
		message = "The resource is being rate limited."
	}
	after, _ := strconv.ParseFloat(seconds(t.after), 64)
	body, _ := json.Marshal(struct {
		Message string  `json:"message"`
		After   float64 `json:"retry_after"`
		Global  bool    `json:"global"`
	}{message, after, t.scope == "global"})
	return h, body
}

func tooMany(w http.ResponseWriter, t *wait) {
	head, body := t.parts()
	for k, v := range head {
		w.Header()[k] = v
	}
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write(body)
}

// Break adds a fault of REST requests. Faults are used up in order.
func (d *Discord) Break(f Fault) {
	kind := map[Trouble]faults.Kind{
		AnswerStatus: faults.Status, ResetBefore: faults.ResetBefore, ResetAfter: faults.ResetAfter, HangBefore: faults.HangBefore,
		HangAfter: faults.HangAfter, SlowBody: faults.SlowBody, HalfBody: faults.HalfBody, Garbage: faults.Garbage,
	}[f.Trouble]
	out := faults.Fault{Kind: kind, Times: f.Times, Status: f.Status, Delay: f.Delay}
	out.On = func(r *http.Request) bool { return d.strikes(f, r) }
	if kind == faults.Status {
		d.scriptStatus(f, &out)
	}
	d.script.Break(out)
}

// strikes reports whether a fault is meant for a request.
func (d *Discord) strikes(f Fault, r *http.Request) bool {
	route := d.routeOf(r)
	switch f.Route {
	case "":
		if route == "" || route == "/" || route == "cdn" || route == "GET /gateway" || route == "GET /gateway/bot" || route == "GET /users/@me" {
			return false
		}
	case route:
	default:
		return false
	}
	if f.Channel != "" && pathValue(r, route, "{channel}") != string(f.Channel) {
		return false
	}
	// A request inside a window is a violation, and the fault waits for the next one.
	return d.windows.Left("") <= 0 && d.windows.Left(route+":"+major(r, route)) <= 0
}

func (d *Discord) scriptStatus(f Fault, out *faults.Fault) {
	if f.Status == http.StatusTooManyRequests {
		t := &wait{after: f.RetryAfter, scope: f.Scope, page: f.Proxy}
		if t.scope == "" {
			t.scope = "user"
		}
		if t.scope != "global" && !t.page {
			t.head = d.bucketHead(f.Route, limit{5, f.RetryAfter}, &bucket{0, time.Now().Add(f.RetryAfter)})
			t.head.Set("X-RateLimit-Reset-After", seconds(f.RetryAfter))
		}
		out.Header, out.Body = t.parts()
		out.Then = func(r *http.Request) {
			key := ""
			if route := d.routeOf(r); t.scope != "global" {
				key = route + ":" + major(r, route)
			}
			d.windows.Open(key, f.RetryAfter)
		}
		return
	}
	if f.Proxy {
		out.Header, out.Body = http.Header{"Content-Type": {"text/html"}}, []byte("<html><body>upstream connect error</body></html>")
		return
	}
	message := f.Message
	if message == "" {
		message = fmt.Sprintf("%d: %s", f.Status, http.StatusText(f.Status))
	}
	body, _ := json.Marshal(struct {
		Message string `json:"message"`
		Code    int    `json:"code"`
	}{message, f.Code})
	out.Header, out.Body = http.Header{"Content-Type": {"application/json"}}, body
}

// Heal takes all faults and windows off; requests that hang end. Revoke stays.
func (d *Discord) Heal() {
	d.script.Heal()
	d.windows.Clear()
	d.mu.Lock()
	defer d.mu.Unlock()
	for t := range d.troubles {
		d.mend(t)
	}
}
