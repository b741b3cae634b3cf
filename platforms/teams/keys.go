package teams

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"herald/platforms/wire"
)

const (
	// maxKeys bounds what the key server may answer. It has about a dozen keys.
	maxKeys     = 256
	maxDocument = 1 << 20
	// leastKeyBits is the shortest RSA key that is believed.
	leastKeyBits = 2048
	// A token with an unknown key makes us ask for the keys: at most so often, because anybody can send one.
	askRate, askBurst = rate.Limit(0.1), 5
)

var (
	// errKeysAway says that the signing keys can't be fetched now.
	errKeysAway = errors.New("the Bot Framework's signing keys can't be fetched")
	// errUnknownKey says that the key server does not know the key.
	errUnknownKey = errors.New("the token is signed by an unknown key")
)

// signingKey is one key of the Bot Framework and the channels whose activities it may sign.
type signingKey struct {
	key          *rsa.PublicKey
	endorsements []string
}

// keySet holds the Bot Framework's signing keys. A set of our own, because libraries drop the endorsements.
type keySet struct {
	openID string
	http   *http.Client
	clock  wire.Clock
	limit  time.Duration // of one question
	maxAge time.Duration
	asks   *rate.Limiter
	turn   chan struct{} // held while the keys are fetched

	mu      sync.RWMutex
	keys    map[string]signingKey
	fetched time.Time
}

func newKeySet(s *settings, client *http.Client) *keySet {
	return &keySet{openID: s.OpenIDURL, http: client, clock: s.Clock, limit: s.ConnectTimeout, maxAge: s.KeyMaxAge,
		asks: rate.NewLimiter(askRate, askBurst), turn: make(chan struct{}, 1)}
}

// find returns the key with the id. One that is not known is asked for, at a bounded rate. Errors are errUnknownKey and
// errKeysAway.
func (k *keySet) find(ctx context.Context, id string) (signingKey, error) {
	if key, ok := k.known(id); ok {
		return key, nil
	}
	if !k.asks.AllowN(k.clock.Now(), 1) {
		return signingKey{}, errKeysAway // it may be a new key: the call is to come again
	}
	if err := k.refresh(ctx); err != nil {
		return signingKey{}, err
	}
	if key, ok := k.known(id); ok {
		return key, nil
	}
	return signingKey{}, errUnknownKey
}

func (k *keySet) known(id string) (signingKey, bool) {
	if !k.fresh() {
		return signingKey{}, false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	key, ok := k.keys[id]
	return key, ok
}

// fresh reports whether there are keys that are young enough to be trusted.
func (k *keySet) fresh() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.keys) > 0 && k.clock.Now().Sub(k.fetched) < k.maxAge
}

// refresh fetches the keys. What was known stays when it fails.
func (k *keySet) refresh(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	var about struct {
		KeysURL string `json:"jwks_uri"`
	}
	if err := k.get(ctx, k.openID, &about); err != nil {
		return err
	}
	if err := k.checkKeysURL(about.KeysURL); err != nil {
		return fmt.Errorf("%w: %w", errKeysAway, err)
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := k.get(ctx, about.KeysURL, &set); err != nil {
		return err
	}
	keys := map[string]signingKey{}
	for _, j := range set.Keys[:min(len(set.Keys), maxKeys)] {
		if key, err := j.public(); err == nil {
			keys[j.ID] = signingKey{key, j.Endorsements}
		}
	}
	if len(keys) == 0 {
		return fmt.Errorf("%w: the key server has no usable key", errKeysAway)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys, k.fetched = keys, k.clock.Now()
	return nil
}

// checkKeysURL takes https addresses, and http only where the metadata comes from by http.
func (k *keySet) checkKeysURL(raw string) error {
	keys, err := url.Parse(raw)
	from, _ := url.Parse(k.openID)
	if err != nil || keys.Host == "" || keys.User != nil {
		return errors.New("the metadata names no address of the keys")
	}
	if keys.Scheme == "https" || (keys.Scheme == "http" && from.Scheme == "http" && keys.Host == from.Host) {
		return nil
	}
	return errors.New("the metadata names an address of the keys that is not https")
}

func (k *keySet) get(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errKeysAway, err)
	}
	resp, err := k.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", errKeysAway, wire.Bare(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answered %d", errKeysAway, req.URL.Host, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	if err != nil {
		return fmt.Errorf("%w: %w", errKeysAway, wire.Bare(err))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: %s answered something that is no JSON document", errKeysAway, req.URL.Host)
	}
	return nil
}

// jwk is a JSON Web Key with the Bot Framework's own field.
type jwk struct {
	Type         string   `json:"kty"`
	Use          string   `json:"use"`
	ID           string   `json:"kid"`
	N            string   `json:"n"`
	E            string   `json:"e"`
	Endorsements []string `json:"endorsements"`
}

// public returns the RSA key; another kind of key is an error.
func (j jwk) public() (*rsa.PublicKey, error) {
	if j.Type != "RSA" || j.ID == "" || (j.Use != "" && j.Use != "sig") {
		return nil, errors.New("no RSA key for signatures")
	}
	n, err := base64.RawURLEncoding.DecodeString(j.N)
	if err != nil {
		return nil, err
	}
	e, err := base64.RawURLEncoding.DecodeString(j.E)
	if err != nil || len(e) == 0 || len(e) > 4 {
		return nil, errors.New("bad exponent")
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if bits := key.N.BitLen(); bits < leastKeyBits || bits > 16384 || key.E < 3 || key.E%2 == 0 {
		return nil, errors.New("weak key")
	}
	return key, nil
}
