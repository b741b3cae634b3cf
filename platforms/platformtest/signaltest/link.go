package signaltest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// link is a device link that waits for a phone.
type link struct {
	until  time.Time
	linked chan string // the number, once
	name   string
}

// startLink makes a device link.
func (s *Server) startLink(_ *http.Request, _ Params) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offline {
		return nil, &rpcError{Code: codeIO, Message: "Link request error: Connection closed!"}
	}
	s.nextLink++
	uri := fmt.Sprintf("sgnl://linkdevice?uuid=%s&pub_key=%s", url.QueryEscape(fmt.Sprintf("provisioning-%d==", s.nextLink)), url.QueryEscape("BWxpbmstdGVzdC1rZXk"))
	s.links[uri] = &link{until: time.Now().Add(s.o.LinkTime), linked: make(chan string, 1)}
	return map[string]string{"deviceLinkUri": uri}, nil
}

// finishLink waits until a phone has scanned the link.
func (s *Server) finishLink(r *http.Request, p Params) (any, error) {
	s.mu.Lock()
	l := s.links[p.String("deviceLinkUri")]
	s.mu.Unlock()
	if l == nil {
		return nil, userError("Unknown device link uri.")
	}
	s.mu.Lock()
	l.name = p.String("deviceName")
	s.mu.Unlock()
	ctx, cancel := context.WithDeadline(r.Context(), l.until)
	defer cancel()
	select {
	case number := <-l.linked:
		return map[string]string{"number": number}, nil
	case <-ctx.Done():
		return nil, userError("Link request timed out, please try again.")
	case <-s.done:
		return nil, &rpcError{Code: codeIO, Message: "Link request error: Connection closed!"}
	}
}

// Links returns the links that were made and not scanned.
func (s *Server) Links() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.links))
	for uri := range s.links {
		out = append(out, uri)
	}
	return out
}

// Scan is the phone that scans the code of a link: the daemon has the account from then on. It returns the name of the
// device, and false for a link that is unknown, over, or not waited for.
func (s *Server) Scan(uri string) (device string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.links[uri]
	if l == nil || time.Now().After(l.until) || l.name == "" {
		return "", false
	}
	delete(s.links, uri)
	s.unlinked = false
	if !slices.Contains(s.accounts, s.o.Account) {
		s.accounts = append(s.accounts, s.o.Account)
	}
	l.linked <- s.o.Account
	return l.name, true
}

// Unlink is the phone that removes the device: Signal refuses the account from then on, and a daemon for several
// accounts no longer has it.
func (s *Server) Unlink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts, s.unlinked = nil, true
}
