package teams

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"herald/platforms"
)

// A bot puts a file into a person's OneDrive only when the person allows it: a card asks, the answer comes as an invoke
// with the address to upload to, and a second card shows the file.
// https://learn.microsoft.com/microsoftteams/platform/bots/how-to/bots-filesv4

const (
	consentType  = "application/vnd.microsoft.teams.card.file.consent"
	fileInfoType = "application/vnd.microsoft.teams.card.file.info"
	consentSpace = "consent/"

	// maxConsents is how many files may wait; the oldest give way.
	maxConsents = 100
	// uploadChunk is how much goes up in one request: OneDrive wants a multiple of 320 KiB.
	uploadChunk   = 32 * 320 << 10
	uploadTimeout = 5 * time.Minute // of one chunk
)

// pending is a file that waits for its person's consent.
type pending struct {
	ID      string    `json:"id"`
	Chat    string    `json:"chat"`
	Name    string    `json:"name"`
	Size    int64     `json:"size"`
	Message string    `json:"message,omitempty"` // of the card
	At      time.Time `json:"at"`
}

// consents keeps pending files over restarts: what is known of them in Memory, their bytes in MediaDir.
type consents struct {
	s *settings

	mu      sync.Mutex
	read    bool
	all     map[string]pending
	running map[string]bool
}

func newConsents(s *settings) *consents {
	return &consents{s: s, all: map[string]pending{}, running: map[string]bool{}}
}

func (c *consents) path(id string) string { return filepath.Join(c.s.MediaDir, id) }

// load reads what an earlier process has kept. The caller holds mu.
func (c *consents) load(ctx context.Context) error {
	if c.read {
		return nil
	}
	facts, err := c.s.Memory.Recall(ctx, consentSpace)
	if err != nil {
		return err
	}
	for _, f := range facts {
		var p pending
		if json.Unmarshal(f.Data, &p) == nil && consentID.MatchString(p.ID) {
			c.all[p.ID] = p
		}
	}
	c.read = true
	return nil
}

var consentID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// add copies a file and writes down that it waits.
func (c *consents) add(ctx context.Context, chat string, f file) (pending, error) {
	var raw [16]byte
	_, _ = rand.Read(raw[:])
	p := pending{ID: hex.EncodeToString(raw[:]), Chat: chat, Name: f.Name, At: c.s.Clock.Now().UTC()}
	if err := os.MkdirAll(c.s.MediaDir, 0o700); err != nil {
		return p, err
	}
	var err error
	if p.Size, err = copyFile(c.path(p.ID), f.Path); err != nil {
		_ = os.Remove(c.path(p.ID))
		return p, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.keep(ctx, p); err != nil {
		_ = os.Remove(c.path(p.ID))
		return p, err
	}
	return p, nil
}

// keep writes a pending file down; the oldest gives way when there are too many. The caller holds mu.
func (c *consents) keep(ctx context.Context, p pending) error {
	if err := c.load(ctx); err != nil {
		return err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	facts := []platforms.Fact{{Key: consentSpace + p.ID, Data: data, At: p.At}}
	oldest := ""
	if _, ok := c.all[p.ID]; !ok && len(c.all) >= maxConsents {
		for id, other := range c.all {
			if oldest == "" || other.At.Before(c.all[oldest].At) {
				oldest = id
			}
		}
		facts = append(facts, platforms.Fact{Key: consentSpace + oldest})
	}
	if err := c.s.Memory.Keep(ctx, facts...); err != nil {
		return err
	}
	if oldest != "" {
		delete(c.all, oldest)
		_ = os.Remove(c.path(oldest))
	}
	c.all[p.ID] = p
	return nil
}

// find returns a pending file of a chat.
func (c *consents) find(ctx context.Context, chat, id string) (pending, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(ctx); err != nil {
		return pending{}, false, err
	}
	p, ok := c.all[id]
	return p, ok && p.Chat == chat, nil
}

// drop forgets a pending file and its bytes.
func (c *consents) drop(ctx context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.s.Memory.Keep(ctx, platforms.Fact{Key: consentSpace + id}); err != nil {
		return err
	}
	delete(c.all, id)
	_ = os.Remove(c.path(id))
	return nil
}

// claim makes one upload of a file at a time.
func (c *consents) claim(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[id] {
		return false
	}
	c.running[id] = true
	return true
}

func (c *consents) release(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
}

// sweep drops files that have waited too long, and bytes that nobody waits for.
func (c *consents) sweep(ctx context.Context) error {
	if c.s.MediaDir == "" {
		return nil
	}
	c.mu.Lock()
	if err := c.load(ctx); err != nil {
		c.mu.Unlock()
		return err
	}
	var old []string
	for id, p := range c.all {
		if c.s.Clock.Now().Sub(p.At) > c.s.ConsentKept && !c.running[id] {
			old = append(old, id)
		}
	}
	c.mu.Unlock()
	slices.Sort(old)
	for _, id := range old {
		if err := c.drop(ctx, id); err != nil {
			return err
		}
		c.s.Log.Info().Msg("a file that nobody took has been thrown away")
	}
	entries, err := os.ReadDir(c.s.MediaDir)
	if err != nil {
		return nil // it does not exist yet
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !consentID.MatchString(e.Name()) || time.Since(info.ModTime()) < time.Hour {
			continue // it may be on its way into the list
		}
		c.mu.Lock()
		_, waits := c.all[e.Name()]
		c.mu.Unlock()
		if !waits {
			_ = os.Remove(c.path(e.Name()))
		}
	}
	return nil
}

// copyFile copies at most maxUpload bytes.
func copyFile(to, from string) (int64, error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, maxUpload+1))
	if err == nil && n > maxUpload {
		err = errors.New("the file has grown over the limit")
	}
	return n, errors.Join(err, out.Close())
}
