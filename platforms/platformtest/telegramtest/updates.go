package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"
)

// update is one update as it goes over the wire.
type update struct {
	id   int64
	kind string // its allowed_updates name
	body json.RawMessage
}

// poll is a getUpdates call that waits.
type poll struct{ ended chan struct{} }

// errHung says that the client of a poll has gone.
var errHung = errors.New("client gone")

// replayed is how many confirmed updates are kept for Replay.
const replayed = 100

// queue adds an update. The caller holds mu.
func (t *Server) queue(kind string, body any) int64 {
	id := t.nextID
	t.nextID++
	raw, err := json.Marshal(map[string]any{"update_id": id, kind: body})
	if err != nil {
		panic(err) // a type of ours that has no JSON
	}
	t.updates = append(t.updates, update{id, kind, raw})
	t.ring()
	return id
}

// ring wakes whoever waits for updates.
func (t *Server) ring() {
	close(t.wake)
	t.wake = make(chan struct{})
}

// Push queues an update from its JSON without the id: `"message": {...}`. It returns the id.
func (t *Server) Push(kind string, body json.RawMessage) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue(kind, body)
}

// Pending returns how many updates the bot has not confirmed.
func (t *Server) Pending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.updates)
}

// Replay puts the newest n confirmed updates back, with their ids: a redelivery.
func (t *Server) Replay(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = min(n, len(t.confirmed))
	again := t.confirmed[len(t.confirmed)-n:]
	t.updates = append(slices.Clone(again), t.updates...)
	t.confirmed = t.confirmed[:len(t.confirmed)-n]
	t.ring()
}

// Polls returns how many getUpdates calls wait now, the most that ever waited at once, and how often one
// ended another (the 409 alarm).
func (t *Server) Polls() (now, most, conflicts int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.polls, t.mostPolls, t.conflicts
}

func (t *Server) getUpdates(r *request) (any, error) {
	offset, limit := r.int("offset"), int(r.int("limit"))
	if limit <= 0 || limit > 100 {
		limit = 100
	}
	var allowed []string
	r.decode("allowed_updates", &allowed)
	deadline := time.NewTimer(time.Duration(r.int("timeout")) * time.Second)
	defer deadline.Stop()

	t.mu.Lock()
	if t.webhook.url != "" {
		t.mu.Unlock()
		return nil, refuse(409, "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
	}
	me := &poll{ended: make(chan struct{})}
	if t.poll != nil {
		close(t.poll.ended)
	}
	t.poll = me
	t.polls++
	t.mostPolls = max(t.mostPolls, t.polls)
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.polls--
		if t.poll == me {
			t.poll = nil
		}
	}()
	t.confirm(offset)
	for {
		if r.http.Context().Err() != nil { // an update must not go to a client that has gone
			t.mu.Unlock()
			return nil, errHung
		}
		if out := t.take(limit, allowed); len(out) > 0 || r.int("timeout") == 0 {
			t.mu.Unlock()
			return joinUpdates(out), nil
		}
		wake, done := t.wake, t.done
		t.mu.Unlock()
		select {
		case <-wake:
		case <-me.ended:
			t.mu.Lock()
			if r.http.Context().Err() == nil {
				t.conflicts++
			}
			t.mu.Unlock()
			return nil, refuse(409, "terminated by other getUpdates request; make sure that only one bot instance is running")
		case <-deadline.C:
			return json.RawMessage("[]"), nil
		case <-r.http.Context().Done():
			return nil, errHung
		case <-done:
			return json.RawMessage("[]"), nil
		}
		t.mu.Lock()
	}
}

// confirm forgets what is below offset; a negative offset keeps that many from the end.
func (t *Server) confirm(offset int64) {
	if offset < 0 {
		keep := min(len(t.updates), int(-offset))
		t.updates = t.updates[len(t.updates)-keep:]
		return
	}
	kept := t.updates[:0:0]
	for _, u := range t.updates {
		if u.id >= offset || offset == 0 {
			kept = append(kept, u)
			continue
		}
		t.confirmed = append(t.confirmed, u)
	}
	t.updates = kept
	if over := len(t.confirmed) - replayed; over > 0 {
		t.confirmed = slices.Clone(t.confirmed[over:])
	}
}

// take returns what a poll gets now. Updates that are not allowed are dropped for good, as Telegram does.
func (t *Server) take(limit int, allowed []string) []update {
	if len(allowed) > 0 {
		t.updates = slices.DeleteFunc(t.updates, func(u update) bool { return !slices.Contains(allowed, u.kind) })
	}
	out := slices.Clone(t.updates[:min(limit, len(t.updates))])
	if len(out) == 0 {
		return out
	}
	if spend(&t.twice) {
		out = append(out, out...)
	}
	if spend(&t.backwards) {
		slices.Reverse(out)
	}
	return out
}

func joinUpdates(updates []update) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, u := range updates {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(u.body)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// webhook is where updates are posted to, when set.
type webhook struct {
	url, secret string
	allowed     []string
	lastError   string
	lastErrorAt time.Time
	stop        context.CancelFunc
}

func (t *Server) setWebhook(r *request) (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.webhook.stop != nil {
		t.webhook.stop()
	}
	if r.bool("drop_pending_updates") {
		t.updates = nil
	}
	t.webhook = webhook{url: r.params["url"], secret: r.params["secret_token"]}
	r.decode("allowed_updates", &t.webhook.allowed)
	if t.webhook.url == "" {
		return true, nil
	}
	if t.poll != nil {
		close(t.poll.ended)
		t.poll = nil
	}
	ctx, stop := context.WithCancel(context.Background())
	t.webhook.stop = stop
	hook := t.webhook
	t.sessions.Go(func() { t.post(ctx, hook) })
	return true, nil
}

func (t *Server) deleteWebhook(r *request) (any, error) {
	r.params["url"] = ""
	return t.setWebhook(r)
}

func (t *Server) getWebhookInfo() (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	info := struct {
		URL       string `json:"url"`
		Custom    bool   `json:"has_custom_certificate"`
		Pending   int    `json:"pending_update_count"`
		ErrorDate int64  `json:"last_error_date,omitempty"`
		Error     string `json:"last_error_message,omitempty"`
	}{URL: t.webhook.url, Pending: len(t.updates), Error: t.webhook.lastError}
	if info.Error != "" {
		info.ErrorDate = t.webhook.lastErrorAt.Unix()
	}
	return info, nil
}

// SecretHeader is the header that carries the webhook's secret.
const SecretHeader = "X-Telegram-Bot-Api-Secret-Token"

// post delivers updates one after the other, each until it is answered with 200.
func (t *Server) post(ctx context.Context, hook webhook) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	retry := 20 * time.Millisecond // the real service waits longer
	for ctx.Err() == nil {
		t.mu.Lock()
		out := t.take(1, hook.allowed)
		wake := t.wake
		t.mu.Unlock()
		if len(out) == 0 {
			select {
			case <-wake:
			case <-ctx.Done():
			}
			continue
		}
		if t.postOne(ctx, client, hook, out[0]) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

func (t *Server) postOne(ctx context.Context, client *http.Client, hook webhook, u update) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.url, bytes.NewReader(u.body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(SecretHeader, hook.secret)
	resp, err := client.Do(req)
	failure := ""
	if err != nil {
		failure = "Connection failed"
	} else {
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			failure = "Wrong response from the webhook: " + resp.Status
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if failure != "" {
		t.webhook.lastError, t.webhook.lastErrorAt = failure, time.Now()
		return false
	}
	t.confirm(u.id + 1)
	return true
}
