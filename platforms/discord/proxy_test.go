package discord

import (
	"encoding/binary"

	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/discordtest"
)

// socks is a SOCKS5 proxy without authentication that remembers whom it was asked for.
type socks struct {
	l     net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	asked []string
	conns []net.Conn
}

func newSocks(t *testing.T) *socks {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &socks{l: l}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

func (s *socks) keep(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
}

func (s *socks) serve(c net.Conn) {
	s.keep(c)
	defer c.Close()
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		return
	}
	_, _ = io.ReadFull(c, make([]byte, head[1]))
	_, _ = c.Write([]byte{5, 0})
	req := make([]byte, 4)
	if _, err := io.ReadFull(c, req); err != nil {
		return
	}
	host := ""
	switch req[3] {
	case 1:
		ip := make([]byte, 4)
		_, _ = io.ReadFull(c, ip)
		host = net.IP(ip).String()
	case 3:
		n := make([]byte, 1)
		_, _ = io.ReadFull(c, n)
		name := make([]byte, n[0])
		_, _ = io.ReadFull(c, name)
		host = string(name)
	}
	port := make([]byte, 2)
	_, _ = io.ReadFull(c, port)
	to := net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port))))
	s.mu.Lock()
	s.asked = append(s.asked, to)
	s.mu.Unlock()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	s.keep(up)
	defer up.Close()
	_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	s.wg.Go(func() {
		_, _ = io.Copy(up, c)
		_ = up.Close()
	})
	_, _ = io.Copy(c, up)
}

// REST and gateway both go through the proxy of the settings, in both ways of writing it.
func TestProxy_CarriesEverything(t *testing.T) {
	for _, scheme := range []string{"socks5", "socks5h"} {
		t.Run(scheme, func(t *testing.T) {
			proxy := newSocks(t)
			r := newRig(t, discordtest.Options{}, func(o *Options) { o.Proxy = scheme + "://" + proxy.l.Addr().String() })
			r.mustSend(platforms.Outgoing{Address: address(r.dm, ""), Text: words("hello")})
			proxy.mu.Lock()
			defer proxy.mu.Unlock()
			require.GreaterOrEqual(t, len(proxy.asked), 2)
			r.stop()
		})
	}
}
