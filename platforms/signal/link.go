package signal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Linking makes the daemon a linked device of a phone's account, as Signal's desktop client is one.
const (
	// DefaultDevice is how the phone names the device.
	DefaultDevice = "Herald"
	// linkWait bounds one link: Signal's own are shorter.
	linkWait = 5 * time.Minute
	// LinkTries is how many links are shown one after the other.
	LinkTries = 10
)

// Link shows links until a phone has scanned one, at most LinkTries, and returns the phone's number. show is called
// with each new link: an address that the phone reads as a QR code. Whoever scans it gets the account's messages, so it
// is a secret while it lasts. Errors say what to do.
func (c *Client) Link(ctx context.Context, device string, show func(uri string)) (number string, err error) {
	if device = strings.TrimSpace(device); device == "" {
		device = DefaultDevice
	}
	if err := c.identify(ctx); err != nil {
		return "", err
	}
	for range LinkTries {
		var link struct {
			URI string `json:"deviceLinkUri"`
		}
		if err := c.call(ctx, "startLink", nil, &link); err != nil {
			return "", linkError(err)
		}
		show(link.URI)
		number, err := c.finish(ctx, link.URI, device)
		var e *callError
		if errors.As(err, &e) && e.answered && strings.Contains(strings.ToLower(e.message), "timed out") {
			continue // nobody has scanned it in time
		}
		if err != nil {
			return "", linkError(err)
		}
		return number, nil
	}
	return "", errors.New("nobody has scanned the code; start again when the phone is at hand")
}

// finish waits until the link was scanned.
func (c *Client) finish(ctx context.Context, uri, device string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, linkWait)
	defer cancel()
	var done struct {
		Number string `json:"number"`
	}
	err := c.call(ctx, "finishLink", map[string]any{"deviceLinkUri": uri, "deviceName": device}, &done)
	return done.Number, err
}

// identify makes sure that the server is a daemon.
func (c *Client) identify(ctx context.Context) error {
	check, cancel := context.WithTimeout(ctx, DefaultCheckTimeout)
	defer cancel()
	status, _, err := c.get(check, "/api/v1/check", 1<<10)
	switch {
	case err != nil:
		return fmt.Errorf(sayUnreachable+" (start it: signal-cli daemon --http 127.0.0.1:8080)", c.root, err)
	case status == http.StatusOK:
		return nil
	case status == http.StatusNotFound && c.isWrapper(check):
		return fmt.Errorf(sayWrapper, c.root)
	}
	return fmt.Errorf(sayNoDaemon, c.root, status)
}

// sayNoLinks is what a daemon for one account gets.
const sayNoLinks = "this signal-cli serves one account only and can't link another: stop it, start it without -a (signal-cli daemon --http 127.0.0.1:8080), and try again"

func linkError(err error) error {
	var e *callError
	switch {
	case !errors.As(err, &e) || !e.answered:
		return err
	case e.code == codeUnknownMethod:
		return errors.New(sayNoLinks)
	case strings.Contains(e.message, "already exists"):
		return errors.New("signal-cli has this account already: there is nothing to link")
	}
	return fmt.Errorf("signal-cli could not link: %s", Mask(e.message))
}
