package teamstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// secureListener serves the same over TLS, for clients that talk to a login service by https only.
type secureListener struct {
	mu     sync.Mutex
	server *http.Server
	wg     sync.WaitGroup
}

// StartTLS serves the same over TLS on another loopback port, beside Start, and returns that root and the
// certificate that a client must trust, in PEM. The URLs in answers stay those of Start.
func (s *Server) StartTLS() (root string, ca []byte, err error) {
	cert, ca, err := certificate()
	if err != nil {
		return "", nil, err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.secure.mu.Lock()
	s.secure.server = server
	s.secure.mu.Unlock()
	s.secure.wg.Go(func() { _ = server.Serve(l) })
	return "https://" + l.Addr().String(), ca, nil
}

func (l *secureListener) close() {
	l.mu.Lock()
	server := l.server
	l.mu.Unlock()
	if server != nil {
		_ = server.Close()
	}
	l.wg.Wait()
}

// certificate makes one for 127.0.0.1 that signs itself.
func certificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "teamstest"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// serveLogin answers what client libraries ask of the login service before they ask for a token.
func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request) {
	root := "http://" + r.Host
	if r.TLS != nil {
		root = "https://" + r.Host
	}
	if r.URL.Path == "/common/discovery/instance" {
		writeJSON(w, http.StatusOK, map[string]any{
			"tenant_discovery_endpoint": root + "/" + s.o.TenantID + "/v2.0/.well-known/openid-configuration",
			"api-version":               "1.1",
			"metadata":                  []map[string]any{{"preferred_network": r.Host, "preferred_cache": r.Host, "aliases": []string{r.Host}}},
		})
		return
	}
	tenant := callOf(r).rest[0]
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer": root + "/" + tenant + "/v2.0", "token_endpoint": root + "/" + tenant + "/oauth2/v2.0/token",
		"authorization_endpoint": root + "/" + tenant + "/oauth2/v2.0/authorize", "jwks_uri": root + "/" + tenant + "/discovery/v2.0/keys",
		"end_session_endpoint": root + "/" + tenant + "/oauth2/v2.0/logout",
	})
}
