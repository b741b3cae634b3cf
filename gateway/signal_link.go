package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"sync"

	"herald/platforms"
	"herald/platforms/signal"
	"herald/platforms/web"
)

// signalLink makes signal-cli a linked device of somebody's phone, from a page behind the door of the browser chat.
type signalLink struct {
	g *Gateway

	mu      sync.Mutex
	stop    context.CancelFunc // of the attempt that runs, nil when none does
	uri     string
	number  string
	problem string
}

// mountSignalLink serves the page where the browser chat is served: its door is the only one for people.
func (g *Gateway) mountSignalLink() {
	for _, name := range g.accounts.names() {
		adapter, _ := g.accounts.Adapter(name)
		door, ok := adapter.(*web.Adapter)
		if !ok {
			continue
		}
		l := &signalLink{g: g}
		g.mux.Handle("GET /signal/link", door.Behind(http.HandlerFunc(l.page)))
		g.mux.Handle("POST /signal/link", door.Behind(http.HandlerFunc(l.begin)))
	}
}

// begin starts to link, or starts anew.
func (l *signalLink) begin(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil {
		root, err := signal.Root(l.g.cfg().Platforms.Signal.HTTPURL)
		if err != nil {
			l.problem = "platforms.signal.http_url: " + err.Error()
		} else {
			l.run(root)
		}
	}
	http.Redirect(w, r, "/signal/link", http.StatusSeeOther)
}

// run links beside the caller, who holds the lock. It ends with the daemon.
func (l *signalLink) run(root string) {
	ctx, stop := context.WithCancel(l.g.life)
	l.stop, l.uri, l.number, l.problem = stop, "", "", ""
	l.g.wg.Add(1)
	go func() {
		defer l.g.wg.Done()
		defer stop()
		client := signal.NewClient(root, l.g.cfg().Gateway.TrustEnv)
		defer client.Close()
		number, err := client.Link(ctx, signal.DefaultDevice, l.show)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stop, l.uri, l.number = nil, "", number
		if err != nil {
			l.problem = err.Error()
			l.g.log.Warn().Err(err).Msg("signal-cli was not linked")
			return
		}
		l.g.log.Info().Str("account", signal.Mask(number)).Msg("signal-cli was linked")
		l.wake(number)
	}()
}

func (l *signalLink) show(uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uri = uri
}

// wake lets an adapter that waits for this account try at once.
func (l *signalLink) wake(number string) {
	adapter, _ := l.g.accounts.Adapter(platforms.Account{Platform: signal.Platform, ID: platforms.AccountID(number)})
	if waiting, ok := adapter.(*signal.Adapter); ok {
		waiting.Retry()
	}
}

// page shows what goes on. It needs no script: while somebody is waited for it asks for itself again.
func (l *signalLink) page(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	waiting, uri, number, problem := l.stop != nil, l.uri, l.number, l.problem
	l.mu.Unlock()
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">`)
	if waiting {
		b.WriteString(`<meta http-equiv="refresh" content="2">`)
	}
	b.WriteString("<title>Link Signal</title><style>" + linkStyle + "</style></head><body><h1>Link Signal</h1>")
	switch {
	case waiting && uri == "":
		b.WriteString("<p>Asking signal-cli for a code …</p>")
	case waiting:
		svg, err := signal.SVGQR(uri)
		if err != nil {
			problem = "the code can't be drawn: " + err.Error()
		}
		b.WriteString("<p>On the phone: Signal, Settings, Linked devices, Link a new device. Scan this code:</p>" + svg +
			"<p>It changes by itself when it is too old. This page says when linking is done.</p>")
	case number != "":
		b.WriteString("<p>Linking is done: signal-cli has the account <code>" + html.EscapeString(number) + "</code>.</p>")
		if signal.Number(l.g.cfg().Platforms.Signal.Account) == number {
			b.WriteString("<p>Herald uses this account. Write to it in Signal.</p>")
		} else {
			b.WriteString("<p>Set <code>SIGNAL_ACCOUNT=" + html.EscapeString(number) + "</code> and <code>SIGNAL_ALLOWED_USERS</code>, and start Herald again.</p>")
		}
	default:
		b.WriteString("<p>This makes signal-cli a linked device of a phone's Signal account, and Herald answers as that account. " +
			"Whoever scans the code decides whose account it is.</p>")
	}
	if problem != "" {
		b.WriteString(`<p role="alert">` + html.EscapeString(problem) + "</p>")
	}
	if !waiting {
		b.WriteString(`<form method="post" action="/signal/link"><button>Show a code</button></form>`)
	}
	b.WriteString("</body></html>")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", linkPolicy)
	w.Header().Set("Referrer-Policy", "same-origin") // with none at all a browser names no origin for a form, and the door refuses it
	_, _ = io.WriteString(w, b.String())
}

const linkStyle = "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem;color:#222;background:#fff}" +
	"svg{display:block;margin:1rem 0;border:1px solid #ddd}button{font:inherit;padding:.4rem 1rem}code{background:#f2f2f2;padding:.1rem .3rem}"

// linkPolicy lets the page have its own style and send its own form, and nothing else.
var linkPolicy = func() string {
	sum := sha256.Sum256([]byte(linkStyle))
	return fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'", base64.StdEncoding.EncodeToString(sum[:]))
}()
