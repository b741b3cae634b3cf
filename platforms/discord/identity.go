package discord

import (
	"context"
	"encoding/json"
	"sync"

	"herald/platforms"
)

// identity is what the bot knows of itself.
type identity struct {
	id   string // its user
	name string
	app  string // its application, whose id commands and interactions need
}

// session is a gateway session that can be resumed. It is kept over restarts; without the token it is worth
// nothing.
type session struct {
	ID  string `json:"id,omitempty"`
	URL string `json:"url,omitempty"`
	// Seq is the number of the last event that the core has.
	Seq  int64  `json:"seq,omitempty"`
	Bot  string `json:"bot,omitempty"`
	Name string `json:"name,omitempty"`
	App  string `json:"app,omitempty"`
}

// sessionKey is the session's key in the Memory.
const sessionKey = "gateway/session"

// self holds the identity and the session. The gateway's loop writes them.
type self struct {
	mu      sync.Mutex
	now     session
	kept    session
	read    bool
	had     bool          // a session, in this process or an earlier one
	known   chan struct{} // closed once the application's id is known
	settled bool
}

func (a *Adapter) me() identity {
	a.self.mu.Lock()
	defer a.self.mu.Unlock()
	return identity{id: a.self.now.Bot, name: a.self.now.Name, app: a.self.now.App}
}

// app waits until the application's id is known, within ctx.
func (a *Adapter) app(ctx context.Context) (string, error) {
	select {
	case <-a.self.known:
		return a.me().app, nil
	case <-ctx.Done():
		return "", &platforms.SendError{Kind: platforms.Transient, Err: ctx.Err()}
	}
}

// recall reads the session of an earlier process, once.
func (a *Adapter) recall(ctx context.Context) {
	a.self.mu.Lock()
	read := a.self.read
	a.self.mu.Unlock()
	if read {
		return
	}
	facts, err := a.s.Memory.Recall(ctx, sessionKey)
	if err != nil {
		a.s.Log.Warn().Err(err).Msg("the session of the last run can't be read; a new one is begun")
	}
	a.self.mu.Lock()
	defer a.self.mu.Unlock()
	a.self.read = err == nil
	for _, f := range facts {
		var s session
		if f.Key == sessionKey && json.Unmarshal(f.Data, &s) == nil && s.ID != "" {
			a.self.now, a.self.kept, a.self.had = s, s, true
			a.settle()
		}
	}
}

// settle tells those who wait for the application's id. The caller holds mu.
func (a *Adapter) settle() {
	if a.self.now.App != "" && !a.self.settled {
		a.self.settled = true
		close(a.self.known)
	}
}

// current returns the session as it stands.
func (a *Adapter) current() session {
	a.self.mu.Lock()
	defer a.self.mu.Unlock()
	return a.self.now
}

// begin takes in a new session, and reports whether it is not the first: what the one before held is gone.
func (a *Adapter) begin(r *ready, seq int64) (again bool) {
	a.self.mu.Lock()
	defer a.self.mu.Unlock()
	again, a.self.had = a.self.had, true
	a.self.now = session{ID: r.SessionID, URL: r.ResumeURL, Seq: seq, Bot: r.User.ID, Name: r.User.Username, App: r.Application.ID}
	if a.self.now.App == "" {
		a.self.now.App = r.User.ID
	}
	a.settle()
	return again
}

// commit moves the mark behind an event that the core has, or that makes no event.
func (a *Adapter) commit(seq int64) {
	a.self.mu.Lock()
	defer a.self.mu.Unlock()
	a.self.now.Seq = max(a.self.now.Seq, seq)
}

// forget drops the session; who the bot is stays known.
func (a *Adapter) forget() {
	a.self.mu.Lock()
	defer a.self.mu.Unlock()
	a.self.now.ID, a.self.now.URL, a.self.now.Seq = "", "", 0
}

// keep stores the session when it has changed.
func (a *Adapter) keep(ctx context.Context) {
	a.self.mu.Lock()
	now, kept := a.self.now, a.self.kept
	a.self.mu.Unlock()
	if now == kept {
		return
	}
	raw, _ := json.Marshal(now)
	if err := a.s.Memory.Keep(ctx, platforms.Fact{Key: sessionKey, Data: raw}); err != nil {
		if ctx.Err() == nil {
			a.s.Log.Warn().Err(err).Msg("the session can't be kept: a restart would replay more than it needs")
		}
		return
	}
	a.self.mu.Lock()
	a.self.kept = now
	a.self.mu.Unlock()
}
