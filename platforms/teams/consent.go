package teams

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	p := pending{ID: hex.EncodeToString(raw[:]), Chat: chat, Name: f.name, At: c.s.Clock.Now().UTC()}
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
		return nil // there is none yet
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

type consentCard struct {
	Description   string         `json:"description,omitempty"`
	Size          int64          `json:"sizeInBytes"`
	AcceptContext consentContext `json:"acceptContext"`
	Decline       consentContext `json:"declineContext"`
}

type consentContext struct {
	ID string `json:"herald"`
}

// offer asks the person of a personal chat whether a file may be sent.
func (o *outbound) offer(ctx context.Context, f file) error {
	c := o.a.consents
	if c.s.MediaDir == "" {
		o.note(f.Attachment, "there is no folder where files could wait for consent")
		return nil
	}
	p, err := c.add(ctx, o.chat, f)
	if err != nil {
		o.a.s.Log.Error().Err(err).Msg("a file can't wait for consent")
		o.note(f.Attachment, "it could not be put aside until you accept it")
		return nil
	}
	card := consentCard{Description: cut(f.Caption, 500), Size: p.Size, AcceptContext: consentContext{p.ID}, Decline: consentContext{p.ID}}
	act := outActivity{Type: "message", Attachments: []outAttachment{{ContentType: consentType, Name: p.Name, Content: card}}}
	if !o.some {
		act.ReplyToID = string(o.out.ReplyTo)
	}
	id, _, err := o.post(ctx, "", act, false)
	if err != nil {
		if platforms.AsSendError(err).Certainty == platforms.NotSent {
			_ = c.drop(ctx, p.ID)
		}
		return err
	}
	p.Message = id
	c.mu.Lock()
	err = c.keep(ctx, p)
	c.mu.Unlock()
	if err != nil {
		o.a.s.Log.Warn().Err(err).Msg("the card of a file can't be noted")
	}
	o.sent(ctx, id)
	return nil
}

// consentValue is what an answer to a card carries.
type consentValue struct {
	Action  string         `json:"action"`
	Context consentContext `json:"context"`
	Upload  struct {
		ContentURL string `json:"contentUrl"`
		Name       string `json:"name"`
		UploadURL  string `json:"uploadUrl"`
		UniqueID   string `json:"uniqueId"`
		FileType   string `json:"fileType"`
	} `json:"uploadInfo"`
}

// consented handles a person's answer to a card. The file goes up after the answer, within Run.
func (a *Adapter) consented(ctx context.Context, act *activity) (reply, error) {
	var v consentValue
	if json.Unmarshal(act.Value, &v) != nil {
		return reply{status: http.StatusBadRequest}, nil
	}
	chat, _ := act.place()
	p, ok, err := a.consents.find(ctx, chat, v.Context.ID)
	if err != nil {
		return reply{}, err
	}
	at := platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: platforms.ChatID(chat)}
	if p.Message == "" {
		p.Message = act.ReplyToID
	}
	run, work := a.intake.ctx, a.intake.work
	a.health.heard()
	switch {
	case !ok:
		work.Go(func() { a.recard(run, at, act.ReplyToID, "This file is not available any more.") })
	case v.Action == "accept":
		if a.consents.claim(p.ID) {
			work.Go(func() {
				defer a.consents.release(p.ID)
				a.deliver(run, at, p, v)
			})
		}
	default:
		if err := a.consents.drop(ctx, p.ID); err != nil {
			return reply{}, err
		}
		work.Go(func() { a.recard(run, at, p.Message, p.Name+" was not sent: you declined it.") })
	}
	return reply{status: http.StatusOK}, nil
}

// deliver puts an accepted file where the person has allowed it, and shows it.
func (a *Adapter) deliver(ctx context.Context, at platforms.Address, p pending, v consentValue) {
	if err := a.upload(ctx, v.Upload.UploadURL, a.consents.path(p.ID), p.Size); err != nil {
		if ctx.Err() != nil {
			return // it still waits, and so does the card
		}
		a.s.Log.Error().Err(err).Str("chat", p.Chat).Msg("an accepted file could not be uploaded")
		a.recard(ctx, at, p.Message, p.Name+" could not be sent: the upload to OneDrive failed.")
		return
	}
	if err := a.consents.drop(ctx, p.ID); err != nil {
		a.s.Log.Warn().Err(err).Msg("a sent file can't be forgotten")
	}
	t, err := a.target(ctx, at)
	if err != nil {
		return
	}
	o := outbound{a: a, target: t}
	_, _, err = o.post(ctx, "", outActivity{Type: "message", Attachments: []outAttachment{fileInfo(v.Upload.ContentURL, p.Name, v.Upload.UniqueID, v.Upload.FileType)}}, false)
	if err != nil {
		a.s.Log.Warn().Err(err).Str("chat", p.Chat).Msg("a file was sent, and its card could not be")
		return
	}
	if p.Message != "" {
		if err := a.Delete(ctx, at, platforms.MessageID(p.Message)); err != nil {
			a.s.Log.Debug().Err(err).Msg("a card that is answered stays")
		}
	}
}

// fileInfo is the card of a file that lies in OneDrive or SharePoint.
func fileInfo(address, name, id, kind string) outAttachment {
	return outAttachment{ContentType: fileInfoType, ContentURL: address, Name: name, Content: map[string]string{"uniqueId": id, "fileType": kind}}
}

// recard puts a line of text in the place of a card.
func (a *Adapter) recard(ctx context.Context, at platforms.Address, message, text string) {
	if message == "" {
		return
	}
	text = strings.NewReplacer("*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`).Replace(text)
	_, err := a.Send(ctx, platforms.Outgoing{Address: at, Edit: platforms.MessageID(message), Text: platforms.Text{Body: text}})
	if err != nil && ctx.Err() == nil {
		a.s.Log.Warn().Err(err).Str("chat", string(at.Chat)).Msg("the card of a file could not be changed")
	}
}

// upload sends a file in chunks. The address comes from outside: the client refuses those inside the operator's network.
func (a *Adapter) upload(ctx context.Context, address, path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for from := int64(0); from < size; from += uploadChunk {
		n := min(uploadChunk, size-from)
		if err := a.uploadRange(ctx, address, io.NewSectionReader(f, from, n), from, n, size); err != nil {
			return err
		}
	}
	return nil
}

func (a *Adapter) uploadRange(ctx context.Context, address string, part io.Reader, from, n, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, io.NopCloser(part))
	if err != nil {
		return errors.New("the upload address is no URL")
	}
	req.ContentLength = n
	req.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, size))
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := a.files.HTTP().Do(req)
	if err != nil {
		return a.clean(plain(err))
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxDocument))
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("%s answered %d to an upload", req.URL.Hostname(), resp.StatusCode)
	}
	return nil
}
