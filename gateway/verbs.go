package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"herald/gateway/admin"
	"herald/gateway/approval"
	"herald/gateway/directory"
	"herald/platforms"
	"herald/sessions"
)

// StatusReply is what the status verb returns.
type StatusReply struct {
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
	Health         admin.Health    `json:"health"`
	Running        int             `json:"running"`
	Queued         int             `json:"queued"`
	Waiting        int             `json:"outbox_waiting"`
	Counts         sessions.Counts `json:"counts"`
	Draining       bool            `json:"draining"`
}

// SendArgs asks to send a message to a chat.
type SendArgs struct {
	// Target is a delivery target; see platforms.Target.
	Target string `json:"target"`
	Text   string `json:"text"`
	// Files are absolute paths, sent behind the text as a MEDIA tag in it would be.
	Files []string `json:"files,omitempty"`
}

// verbs are what the control socket can do.
func (g *Gateway) verbs() map[string]admin.Verb {
	return map[string]admin.Verb{
		"identify": func(context.Context, json.RawMessage) (any, error) {
			return map[string]string{"version": g.opt.Version, "home": g.opt.Paths.Home, "profile": g.opt.Profile}, nil
		},
		"status":    func(ctx context.Context, _ json.RawMessage) (any, error) { return g.statusReply(ctx) },
		"sessions":  g.sessionsVerb,
		"send":      g.sendVerb,
		"channels":  g.channelsVerb,
		"backup":    g.backupVerb,
		"check":     func(ctx context.Context, _ json.RawMessage) (any, error) { return g.store.Check(ctx) },
		"pairing":   g.pairingVerb,
		"approvals": func(ctx context.Context, _ json.RawMessage) (any, error) { return approval.List(ctx, g.store) },
		"cron":      g.cronVerb,
	}
}

func (g *Gateway) statusReply(ctx context.Context) (StatusReply, error) {
	stats := g.router.Stats()
	r := StatusReply{Version: g.opt.Version, PID: os.Getpid(), Home: g.opt.Paths.Home, Profile: g.opt.Profile, URL: g.URL(),
		Model: g.models.Current("").String(), Because: g.models.Reason(), Started: g.started, Health: g.health(), Running: stats.Running,
		Queued: stats.Queued, Waiting: g.worker.Depth(), Draining: stats.Draining}
	where := g.workspace.Choice()
	r.Sandbox, r.SandboxBecause = where.Backend, g.opt.Redactor.String(where.Reason)
	err := g.store.View(ctx, func(v sessions.View) (err error) {
		r.Counts, err = v.Counts()
		return err
	})
	return r, err
}

// SessionLine is one session for the command line.
type SessionLine struct {
	ID       string    `json:"id"`
	Key      string    `json:"key"`
	Title    string    `json:"title,omitempty"`
	Platform string    `json:"platform"`
	Chat     string    `json:"chat"`
	Updated  time.Time `json:"updated"`
	Messages int       `json:"messages"`
	Live     bool      `json:"live"`
}

// SessionsArgs selects sessions.
type SessionsArgs struct {
	Search string `json:"search,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Live   bool   `json:"live,omitempty"`
}

func (g *Gateway) sessionsVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args SessionsArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	return ListSessions(ctx, g.store, args)
}

// ListSessions lists sessions for the command line, from any open store.
func ListSessions(ctx context.Context, store sessions.Store, args SessionsArgs) ([]SessionLine, error) {
	lines := []SessionLine{}
	err := store.View(ctx, func(v sessions.View) error {
		list, err := v.Sessions(sessions.SessionQuery{TitleIn: args.Search, Limit: args.Limit, Live: args.Live})
		for _, s := range list {
			lines = append(lines, SessionLine{ID: string(s.ID), Key: string(s.Key), Title: s.Title, Platform: string(s.Origin.Address.Platform),
				Chat: string(s.Origin.Address.Chat), Updated: s.UpdatedAt, Messages: s.Messages, Live: s.EndedAt.IsZero()})
		}
		return err
	})
	return lines, err
}

func (g *Gateway) sendVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args SendArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	at, err := g.directory.Find(ctx, args.Target)
	if err != nil {
		return nil, err
	}
	return g.worker.Send(ctx, at, args.Text, args.Files, g.attachOwn)
}

func (g *Gateway) channelsVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var q directory.Query
	if err := decodeArgs(raw, &q); err != nil {
		return nil, err
	}
	return g.directory.Channels(ctx, q)
}

// attachOwn takes out the files that a text of the command line names: they are files of this machine.
func (g *Gateway) attachOwn(ctx context.Context, text string, at platforms.Address) (rest string, files []platforms.Attachment, refused []string) {
	media := g.chatSettings().Media
	media.Resolve = nil
	rest, files, list := media.Attach(ctx, "", text, at.Platform, g.accounts.Traits(at), g.now())
	for _, r := range list {
		refused = append(refused, r.Name+": "+r.Reason)
	}
	return rest, files, refused
}

// BackupArgs names the file to write.
type BackupArgs struct {
	Dest string `json:"dest"`
}

func (g *Gateway) backupVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args BackupArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	return args, g.store.Backup(ctx, args.Dest)
}

// PairingArgs is one action on pairing codes.
type PairingArgs struct {
	Action   string `json:"action"` // list, approve, revoke, clear
	Platform string `json:"platform,omitempty"`
	Code     string `json:"code,omitempty"`
	User     string `json:"user,omitempty"`
}

func (g *Gateway) pairingVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args PairingArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	switch args.Action {
	case "list":
		waiting, approved, err := g.pairing.List(ctx)
		return map[string]any{"waiting": waiting, "approved": approved}, err
	case "approve":
		return g.pairing.Approve(ctx, platforms.Name(args.Platform), args.Code)
	case "revoke":
		found, err := g.pairing.Revoke(ctx, platforms.Name(args.Platform), platforms.UserID(args.User))
		if err == nil && !found {
			err = fmt.Errorf("%s user %q was not paired", args.Platform, args.User)
		}
		return nil, err
	case "clear":
		n, err := g.pairing.Clear(ctx, platforms.Name(args.Platform))
		return map[string]int{"cleared": n}, err
	}
	return nil, fmt.Errorf("action %q: want list, approve, revoke or clear", args.Action)
}

func decodeArgs(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("the request's arguments: %w", err)
	}
	return nil
}
