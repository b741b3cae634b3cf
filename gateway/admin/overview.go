package admin

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"herald/gateway/accounts"
	"herald/sessions"
)

// Status is what the status verb returns.
type Status struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	Home    string `json:"home"`
	Profile string `json:"profile"`
	URL     string `json:"url"`
	Model   string `json:"model"`
	Because string `json:"because"`
	// Sandbox is where commands run, and SandboxBecause why.
	Sandbox        string          `json:"sandbox"`
	SandboxBecause string          `json:"sandbox_because"`
	Started        time.Time       `json:"started"`
	Health         Health          `json:"health"`
	Running        int             `json:"running"`
	Queued         int             `json:"queued"`
	Waiting        int             `json:"outbox_waiting"`
	Counts         sessions.Counts `json:"counts"`
	Draining       bool            `json:"draining"`
}

// Load is what the daemon has to do now.
type Load struct {
	Running, Queued, Waiting int
	Draining                 bool
}

// Overview describes the daemon. It reads what others tell and changes nothing but a probe in the store.
type Overview struct {
	Identity
	URL     string
	Started time.Time
	Store   sessions.Store
	// Ready reports whether the daemon has started and does not stop.
	Ready    func() bool
	Accounts func() []accounts.State
	// Model says which model new sessions use, Sandbox where commands run, each with the reason.
	Model, Sandbox func() (name, because string)
	Load           func() Load
	// Stuck reports since when no scheduled job is looked for any more.
	Stuck  func() (since time.Time, stuck bool)
	Redact func(string) string
	Now    func() time.Time
}

// Health is the truth about inbound, for /readyz.
func (o *Overview) Health() Health {
	h := Health{Ready: o.Ready(), State: "running"}
	if !h.Ready {
		h.State = "starting or stopping"
	}
	for _, s := range o.Accounts() {
		a := AccountOf(s.Account, s.Health)
		a.Detail = o.Redact(a.Detail)
		h.Accounts = append(h.Accounts, a)
		h.Ready = h.Ready && a.Ready
	}
	if err := o.writable(); err != nil {
		h.Ready, h.State = false, "the store can't take messages"
		h.Problems = append(h.Problems, err.Error())
	}
	if since, stuck := o.Stuck(); stuck && h.Ready { // messages are taken all the same
		h.Problems = append(h.Problems, "scheduled jobs are not looked for since "+since.UTC().Format(time.RFC3339)+"; see the log")
	}
	return h
}

// writable reports why the store can't take a message now.
func (o *Overview) writable() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		return tx.SetValue(sessions.SpaceProbe, "writable", json.RawMessage(`1`), o.Now())
	})
}

// Status describes the daemon to the command line.
func (o *Overview) Status(ctx context.Context) (Status, error) {
	load := o.Load()
	s := Status{Version: o.Version, PID: os.Getpid(), Home: o.Home, Profile: o.Profile, URL: o.URL, Started: o.Started, Health: o.Health(),
		Running: load.Running, Queued: load.Queued, Waiting: load.Waiting, Draining: load.Draining}
	s.Model, s.Because = o.Model()
	s.Sandbox, s.SandboxBecause = o.Sandbox()
	s.SandboxBecause = o.Redact(s.SandboxBecause)
	err := o.Store.View(ctx, func(v sessions.View) (err error) {
		s.Counts, err = v.Counts()
		return err
	})
	return s, err
}
