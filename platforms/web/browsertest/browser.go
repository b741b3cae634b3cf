// Package browsertest drives the browser chat in a real Chromium, for tests alone: the web adapter's own,
// and those that run the whole daemon. A page notes every request that it makes and every complaint of
// its console, so that a test can assert that there were none it does not know of.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"herald/tools/needtest"
)

// patience is how long a step of a browser test may take on a busy machine.
const patience = 20 * time.Second

// Browser is one running Chromium.
type Browser struct {
	ctx context.Context
}

// Find returns Chromium's path. ok is false when the machine has none.
func Find() (path string, ok bool) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, true
		}
	}
	return "", false
}

// Start runs a headless Chromium for the length of the test, with a new empty profile. Without Chromium
// the test is skipped, and fails where the environment says CI=true.
func Start(t testing.TB) *Browser {
	t.Helper()
	needtest.Heavy(t, "a browser")
	path, ok := Find()
	if !ok {
		needtest.Lacking(t, "no Chromium in PATH: install the package chromium to run the browser tests")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // tests run as root in containers
		chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1280, 800),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Env("LANG=en_US.UTF-8", "LANGUAGE=en_US"),
	)
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		end, done := context.WithTimeout(ctx, patience)
		defer done()
		_ = chromedp.Cancel(end)
		cancel()
	})
	require.NoError(t, chromedp.Do(ctx), "start %s", path)
	return &Browser{ctx: ctx}
}

// Page is one tab.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	requests []string
	problems []string
}

// Open shows url in a new tab of 1280 by 800, light. It is closed at the end of the test.
func (b *Browser) Open(t testing.TB, url string) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx}
	require.NoError(t, chromedp.Do(ctx))
	require.NoError(t, chromedp.Listen(ctx, p.note))
	p.Viewport(1280, 800, false)
	p.Dark(false)
	p.Go(url)
	return p
}

// note keeps what a page asks for and complains of.
func (p *Page) note(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		p.problems = append(p.problems, text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			var parts []string
			for _, a := range e.Args {
				parts = append(parts, string(a.Value)+a.Description)
			}
			p.problems = append(p.problems, strings.Join(parts, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.problems = append(p.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// Requests returns the addresses that the page asked for so far.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Problems returns the errors and warnings of the page's console so far, uncaught exceptions among them.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// Forget drops the problems noted so far, after a step that is meant to cause some.
func (p *Page) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = nil
}

// within runs a step with a limit of time.
func (p *Page) within(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, steps...), what)
}

// Go shows another address.
func (p *Page) Go(url string) { p.t.Helper(); p.within("open "+url, chromedp.Navigate(url)) }

// Reload loads the page again.
func (p *Page) Reload() { p.t.Helper(); p.within("reload", chromedp.Reload()) }

// Close closes the tab.
func (p *Page) Close() { _ = chromedp.Cancel(p.ctx) }

// Viewport sets the size of the page in CSS pixels. phone adds touch and a pixel ratio of two.
func (p *Page) Viewport(width, height int64, phone bool) {
	p.t.Helper()
	var opts []chromedp.EmulateViewportOption
	if phone {
		opts = append(opts, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2), chromedp.EmulatePortrait)
	}
	p.within("viewport", chromedp.EmulateViewport(width, height, opts...))
}

// Dark sets what the system prefers.
func (p *Page) Dark(on bool) {
	p.t.Helper()
	value := "light"
	if on {
		value = "dark"
	}
	p.media("prefers-color-scheme", value)
}

// media emulates one media feature.
func (p *Page) media(name, value string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: name, Value: value}},
	})
	require.NoError(p.t, err)
}

// Eval returns the value of a JavaScript expression.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return v
}

// Wait waits until a JavaScript expression is true. The page's policy forbids to build functions, so the
// asking is done from here.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	p.WaitFor(patience, expression)
}

// WaitFor is Wait with a time limit of its own, for what comes when it is due.
func (p *Page) WaitFor(limit time.Duration, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if ok && err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("never became true: %s (last error: %v)\nconsole: %q\npage text: %s", expression, err, p.Problems(), p.bodyText())
		}
	}
}

func (p *Page) bodyText() string {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return s
}

// WaitText waits until the page shows a text.
func (p *Page) WaitText(text string) {
	p.t.Helper()
	p.Wait(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// Click presses the first visible element of a CSS selector with the mouse.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.within("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Focus puts the focus on an element.
func (p *Page) Focus(selector string) {
	p.t.Helper()
	p.within("focus "+selector, chromedp.Focus(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Keys presses keys at whatever has the focus. Special keys are those of package kb.
func (p *Page) Keys(keys string, modifiers ...chromedp.Modifier) {
	p.t.Helper()
	p.within("keys", chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

// Enter presses the Enter key as a keyboard does: the character comes only when the page lets it.
func (p *Page) Enter(modifiers ...chromedp.Modifier) {
	p.t.Helper()
	var held int64
	for _, m := range modifiers {
		held |= int64(m)
	}
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		e := input.DispatchKeyEventParams{
			Type: kind, Modifiers: held, Key: "Enter", Code: "Enter",
			WindowsVirtualKeyCode: 13, NativeVirtualKeyCode: 13,
		}
		if kind == input.DispatchKeyEventTypeKeyDown {
			e.Text = "\r"
		}
		_, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, e)
		require.NoError(p.t, err)
	}
}

// Files chooses files in an input, which may be hidden.
func (p *Page) Files(selector string, paths ...string) {
	p.t.Helper()
	p.within("choose files", chromedp.SetUploadFiles(chromedp.CSS(selector), paths, chromedp.NodeReady))
}

// Screenshot writes what the page shows to name.png in the folder that the environment variable
// HERALD_SCREENSHOTS names. Without it, it does nothing.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	dir := os.Getenv("HERALD_SCREENSHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(p.t, err)
	require.NoError(p.t, os.MkdirAll(dir, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}
