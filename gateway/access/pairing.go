package access

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"herald/platforms"
	"herald/sessions"
)

// The numbers of pairing.
const (
	CodeLength     = 8
	CodeAlphabet   = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789" // 32 signs, none that is mistaken for another
	CodeTTL        = time.Hour
	RequestEvery   = 10 * time.Minute // one request of a user
	MaxPending     = 3                // on one platform
	MaxFailures    = 5                // wrong codes before approving is locked
	LockTime       = time.Hour
	hashIterations = 4096
)

// The errors of Pairing.
var (
	// ErrAlreadyApproved: the user may talk already.
	ErrAlreadyApproved = errors.New("already approved")
	// ErrTooManyPending: too many codes of the platform wait for approval; one has to run out or be cleared.
	ErrTooManyPending = errors.New("too many pairing requests wait for approval")
	// ErrWrongCode: no request that waits has this code.
	ErrWrongCode = errors.New("no pairing request has this code; it may have run out (codes live for one hour)")
)

// TooSoonError says that the user asked a short while ago, and how long to wait.
type TooSoonError struct{ Wait time.Duration }

// Error names the time to wait.
func (e *TooSoonError) Error() string {
	return fmt.Sprintf("asked already; again in %s", e.Wait.Round(time.Second))
}

// LockedError says that too many wrong codes were entered.
type LockedError struct{ Until time.Time }

// Error names the time at which approving is possible again.
func (e *LockedError) Error() string {
	return "too many wrong codes; approving is locked until " + e.Until.UTC().Format("15:04 MST")
}

// Code is a pairing code. It prints as "***"; Reveal gives the text for the person.
type Code struct{ text string }

// Reveal returns the code, for the message to its user. It must not be logged.
func (c Code) Reveal() string { return c.text }

// String returns "***".
func (c Code) String() string { return "***" }

// GoString returns "***".
func (c Code) GoString() string { return "***" }

// Format prints "***" for every verb.
func (c Code) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("***")) }

// MarshalText returns "***".
func (c Code) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Pending is a request that waits for approval. It does not hold the code.
type Pending struct {
	Platform platforms.Name   `json:"platform"`
	User     platforms.UserID `json:"user"`
	Name     string           `json:"name,omitempty"` // for people to read
	At       time.Time        `json:"at"`
	Salt     []byte           `json:"salt"`
	Hash     []byte           `json:"hash"`
}

// Expires is when the code runs out.
func (p Pending) Expires() time.Time { return p.At.Add(CodeTTL) }

// Approval is a user who was let in by a code.
type Approval struct {
	Platform platforms.Name   `json:"platform"`
	User     platforms.UserID `json:"user"`
	Name     string           `json:"name,omitempty"`
	At       time.Time        `json:"at"`
}

// failures counts wrong codes of one platform.
type failures struct {
	Count int       `json:"count"`
	Last  time.Time `json:"last"`
	Until time.Time `json:"until"`
}

// Pairing lets strangers in by codes that the operator approves. Its state is durable; who is approved is also kept in
// memory, so that asking does no I/O. It is safe for concurrent use.
type Pairing struct {
	store sessions.Store
	rules platforms.Rulebook
	now   func() time.Time
	mu    sync.RWMutex
	in    map[string]bool // names of sessions.SpacePairingApproved
}

// NewPairing reads who is approved. rules say how the platforms' ids are compared. now is the clock; nil takes time.Now.
func NewPairing(ctx context.Context, store sessions.Store, rules platforms.Rulebook, now func() time.Time) (*Pairing, error) {
	if now == nil {
		now = time.Now
	}
	p := &Pairing{store: store, rules: rules, now: now, in: map[string]bool{}}
	err := store.View(ctx, func(v sessions.View) error {
		values, err := v.Values(sessions.SpacePairingApproved)
		for _, val := range values {
			p.in[val.Name] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read pairing approvals: %w", err)
	}
	return p, nil
}

// Approved reports whether the user was let in. No I/O.
func (p *Pairing) Approved(platform platforms.Name, user platforms.UserID) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.in[p.name(platform, user)]
}

// Any reports whether the platform has anyone who was let in. No I/O.
func (p *Pairing) Any(platform platforms.Name) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for name := range p.in {
		if strings.HasPrefix(name, string(platform)+"/") {
			return true
		}
	}
	return false
}

// Request makes a code for a user; name is for the operator to read. A new code replaces the user's old one.
// Errors: ErrAlreadyApproved, *TooSoonError, ErrTooManyPending, and the store's.
func (p *Pairing) Request(ctx context.Context, platform platforms.Name, user platforms.UserID, name string) (Code, error) {
	if platform == "" || user == "" {
		return Code{}, errors.New("pairing needs a platform and a user id")
	}
	code, salt := newCode(), make([]byte, 16)
	_, _ = rand.Read(salt) // never fails (crypto/rand)
	now := p.now().UTC()
	row := Pending{Platform: platform, User: user, Name: cut(name, 100), At: now, Salt: salt, Hash: hashCode(code, salt)}
	err := p.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		return p.request(tx, row, now)
	})
	if err != nil {
		return Code{}, err
	}
	return Code{code}, nil
}

func (p *Pairing) request(tx sessions.Tx, row Pending, now time.Time) error {
	key := p.name(row.Platform, row.User)
	switch found, err := exists(tx, sessions.SpacePairingApproved, key); {
	case err != nil:
		return err
	case found:
		return ErrAlreadyApproved
	}
	var last time.Time
	if _, err := readValue(tx, sessions.SpacePairingRequests, key, &last); err != nil {
		return err
	}
	if wait := last.Add(RequestEvery).Sub(now); !last.IsZero() && wait > 0 {
		return &TooSoonError{wait}
	}
	pending, err := p.sweep(tx, now)
	if err != nil {
		return err
	}
	others := 0
	for _, o := range pending {
		if o.Platform == row.Platform && o.User != row.User {
			others++
		}
	}
	if others >= MaxPending {
		return ErrTooManyPending
	}
	return errors.Join(writeValue(tx, sessions.SpacePairingPending, key, row, now),
		writeValue(tx, sessions.SpacePairingRequests, key, now, now))
}

// Approve lets in the user whose waiting code this is. Case, spaces and "-" in the code make no difference.
// Errors: ErrWrongCode, *LockedError, and the store's. After MaxFailures wrong codes the platform is locked for LockTime.
func (p *Pairing) Approve(ctx context.Context, platform platforms.Name, code string) (Approval, error) {
	code = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(strings.TrimSpace(code)))
	now := p.now().UTC()
	match, err := p.match(ctx, platform, code, now)
	if err != nil {
		return Approval{}, err
	}
	var approval Approval
	var refused error
	err = p.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		approval, refused, err = p.approve(tx, platform, match, now)
		return err
	})
	if err != nil {
		return Approval{}, err
	}
	if refused != nil {
		return Approval{}, refused
	}
	p.mu.Lock()
	p.in[p.name(platform, approval.User)] = true
	p.mu.Unlock()
	return approval, nil
}

// match finds the request with the code; nil when there is none. The hashing happens here, outside any transaction.
func (p *Pairing) match(ctx context.Context, platform platforms.Name, code string, now time.Time) (*Pending, error) {
	pending, err := p.pending(ctx)
	if err != nil {
		return nil, err
	}
	var found *Pending
	for _, row := range pending {
		same := subtle.ConstantTimeCompare(hashCode(code, row.Salt), row.Hash) == 1
		if same && row.Platform == platform && row.Expires().After(now) {
			found = &row
		}
	}
	return found, nil
}

// approve counts a wrong code, or moves the request to the approved. refused is for the caller; err undoes it all.
func (p *Pairing) approve(tx sessions.Tx, platform platforms.Name, match *Pending, now time.Time) (a Approval, refused, err error) {
	var f failures
	if _, err := readValue(tx, sessions.SpacePairingFailures, string(platform), &f); err != nil {
		return a, nil, err
	}
	if f.Until.After(now) {
		return a, &LockedError{f.Until}, nil
	}
	if match != nil {
		var current Pending
		found, err := readValue(tx, sessions.SpacePairingPending, p.name(platform, match.User), &current)
		if err != nil {
			return a, nil, err
		}
		if !found || subtle.ConstantTimeCompare(current.Hash, match.Hash) != 1 {
			match = nil // replaced or cleared meanwhile
		}
	}
	if match == nil {
		if now.Sub(f.Last) > LockTime {
			f.Count = 0
		}
		f.Count, f.Last, f.Until = f.Count+1, now, time.Time{}
		refused = ErrWrongCode
		if f.Count >= MaxFailures {
			f.Count, f.Until = 0, now.Add(LockTime)
			refused = &LockedError{f.Until}
		}
		return a, refused, writeValue(tx, sessions.SpacePairingFailures, string(platform), f, now)
	}
	a = Approval{Platform: platform, User: match.User, Name: match.Name, At: now}
	key := p.name(platform, match.User)
	return a, nil, errors.Join(writeValue(tx, sessions.SpacePairingApproved, key, a, now),
		tx.SetValue(sessions.SpacePairingPending, key, nil, now),
		tx.SetValue(sessions.SpacePairingRequests, key, nil, now), tx.SetValue(sessions.SpacePairingFailures, string(platform), nil, now))
}

// List returns the requests that wait, codes aside, and the approved users; both by platform and user.
func (p *Pairing) List(ctx context.Context) (waiting []Pending, approved []Approval, err error) {
	now := p.now()
	err = p.store.View(ctx, func(v sessions.View) error {
		rows, err := readAll[Pending](v, sessions.SpacePairingPending)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Expires().After(now) {
				row.Salt, row.Hash = nil, nil
				waiting = append(waiting, row)
			}
		}
		approved, err = readAll[Approval](v, sessions.SpacePairingApproved)
		return err
	})
	return waiting, approved, err
}

// Revoke takes a user's approval back. found is false when there was none.
func (p *Pairing) Revoke(ctx context.Context, platform platforms.Name, user platforms.UserID) (found bool, err error) {
	key := p.name(platform, user)
	err = p.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		if found, err = exists(tx, sessions.SpacePairingApproved, key); err != nil || !found {
			return err
		}
		return tx.SetValue(sessions.SpacePairingApproved, key, nil, p.now())
	})
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	delete(p.in, key)
	p.mu.Unlock()
	return found, nil
}

// Clear drops the waiting requests of a platform, or of all platforms when it is "". It returns how many there were.
func (p *Pairing) Clear(ctx context.Context, platform platforms.Name) (n int, err error) {
	now := p.now()
	err = p.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		rows, err := p.sweep(tx, now)
		if err != nil {
			return err
		}
		n = 0
		for _, row := range rows {
			if platform != "" && row.Platform != platform {
				continue
			}
			n++
			if err := tx.SetValue(sessions.SpacePairingPending, p.name(row.Platform, row.User), nil, now); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

func (p *Pairing) pending(ctx context.Context) (rows []Pending, err error) {
	err = p.store.View(ctx, func(v sessions.View) error {
		rows, err = readAll[Pending](v, sessions.SpacePairingPending)
		return err
	})
	return rows, err
}

// sweep deletes what has run out and returns the requests that still wait.
func (p *Pairing) sweep(tx sessions.Tx, now time.Time) ([]Pending, error) {
	rows, err := readAll[Pending](tx, sessions.SpacePairingPending)
	if err != nil {
		return nil, err
	}
	kept := rows[:0]
	for _, row := range rows {
		if row.Expires().After(now) {
			kept = append(kept, row)
			continue
		}
		if err := tx.SetValue(sessions.SpacePairingPending, p.name(row.Platform, row.User), nil, now); err != nil {
			return nil, err
		}
	}
	requests, err := tx.Values(sessions.SpacePairingRequests)
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		if now.Sub(r.At) > RequestEvery {
			if err := tx.SetValue(sessions.SpacePairingRequests, r.Name, nil, now); err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}

// name is the person's name in the store.
func (p *Pairing) name(at platforms.Name, u platforms.UserID) string {
	return string(at) + "/" + normal(at, p.rules.Of(at), string(u))
}

// newCode draws a code. The alphabet has 32 signs, so five random bits choose one without bias.
func newCode() string {
	b := make([]byte, CodeLength)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	for i := range b {
		b[i] = CodeAlphabet[b[i]%32]
	}
	return string(b)
}

func hashCode(code string, salt []byte) []byte {
	h, err := pbkdf2.Key(sha256.New, code, salt, hashIterations, sha256.Size)
	if err != nil {
		panic("access: pbkdf2: " + err.Error()) // only for a key length that is none
	}
	return h
}

func exists(v sessions.View, space sessions.Space, name string) (bool, error) {
	_, err := v.Value(space, name)
	if errors.Is(err, sessions.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func readValue(v sessions.View, space sessions.Space, name string, into any) (found bool, err error) {
	val, err := v.Value(space, name)
	if errors.Is(err, sessions.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(val.Data, into); err != nil {
		return false, fmt.Errorf("%s %q: %w", space, name, err)
	}
	return true, nil
}

func readAll[T any](v sessions.View, space sessions.Space) ([]T, error) {
	values, err := v.Values(space)
	if err != nil {
		return nil, err
	}
	rows := make([]T, 0, len(values))
	for _, val := range values {
		var row T
		if err := json.Unmarshal(val.Data, &row); err != nil {
			return nil, fmt.Errorf("%s %q: %w", space, val.Name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func writeValue(tx sessions.Tx, space sessions.Space, name string, data any, now time.Time) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return tx.SetValue(space, name, b, now)
}

// cut shortens a text to n code points.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
