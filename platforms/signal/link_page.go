package signal

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
)

// linkPage makes signal-cli a linked device of somebody's phone, from a page behind the door of the browser chat.
type linkPage struct {
	desk platforms.Desk

	mu      sync.Mutex
	running bool // an attempt is being made
	uri     string
	number  string
	problem string
}

func (l *linkPage) settings() *Settings { return l.desk.Host().Live().(*Settings) }

// begin starts to link, also when it was done before.
func (l *linkPage) begin(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running {
		root, err := Root(l.settings().HTTPURL)
		if err != nil {
			l.problem = "platforms.signal.http_url: " + err.Error()
		} else {
			l.run(root)
		}
	}
	http.Redirect(w, r, "/signal/link", http.StatusSeeOther)
}

// run links beside the caller, who holds the lock. It ends with the daemon.
func (l *linkPage) run(root string) {
	l.running, l.uri, l.number, l.problem = true, "", "", ""
	host := l.desk.Host()
	l.desk.Go(func(ctx context.Context) {
		client := NewClient(root, host.TrustEnv)
		defer client.Close()
		number, err := client.Link(ctx, DefaultDevice, l.keep)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running, l.uri, l.number = false, "", number
		if err != nil {
			l.problem = err.Error()
			host.Log.Warn().Err(err).Msg("signal-cli was not linked")
			return
		}
		host.Log.Info().Str("account", Mask(number)).Msg("signal-cli was linked")
		l.wake(number)
	})
}

func (l *linkPage) keep(uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uri = uri
}

// wake lets an adapter that waits for this account try at once.
func (l *linkPage) wake(number string) {
	adapter, _ := l.desk.Adapter(platforms.Account{Platform: Platform, ID: platforms.AccountID(number)})
	if waiting, ok := adapter.(*Adapter); ok {
		waiting.Retry()
	}
}

// show answers with what goes on. It needs no script: while somebody is waited for it asks for itself again.
func (l *linkPage) show(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	waiting, uri, number, problem := l.running, l.uri, l.number, l.problem
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
		svg, err := SVGQR(uri)
		if err != nil {
			problem = "the code can't be drawn: " + err.Error()
		}
		b.WriteString("<p>On the phone: Signal, Settings, Linked devices, Link a new device. Scan this code:</p>" + svg +
			"<p>It changes by itself when it is too old. This page says when linking is done.</p>")
	case number != "":
		b.WriteString("<p>Linking is done: signal-cli has the account <code>" + html.EscapeString(number) + "</code>.</p>")
		if Number(l.settings().Account) == number {
			b.WriteString("<p>Herald uses this account. Write to it in Signal.</p>")
		} else {
			b.WriteString("<p>Set <code>SIGNAL_ACCOUNT=" + html.EscapeString(number) + "</code> and <code>SIGNAL_ALLOWED_USERS</code>, " +
				"and start Herald again.</p>")
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
	return fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		base64.StdEncoding.EncodeToString(sum[:]))
}()
