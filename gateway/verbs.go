package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"herald/gateway/admin"
	"herald/gateway/approval"
	"herald/gateway/turn"
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
	// Target is a delivery target; see delivery.Target.
	Target string `json:"target"`
	Text   string `json:"text"`
	// Files are absolute paths, sent behind the text as a MEDIA tag in it would be.
	Files []string `json:"files,omitempty"`
}

// SendReply says what became of it.
type SendReply struct {
	Rows []sessions.OutboxID `json:"rows"`
	// State is "sent", or the state of a row that is not sent after at most the wait of the verb. Error says why, or what
	// the platform did not take of a message that is sent.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	// Refused are the files that may not be sent, with the reason.
	Refused []string `json:"refused,omitempty"`
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

// sendWait is how long the send verb waits for the platform's answer.
const sendWait = 15 * time.Second

func (g *Gateway) sendVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args SendArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	at, err := g.target(ctx, args.Target)
	if err != nil {
		return nil, err
	}
	reply := SendReply{}
	text, rows, refused := g.compose(at, args)
	for _, r := range refused {
		reply.Refused = append(reply.Refused, r.Name+": "+r.Reason)
	}
	if len(rows) == 0 {
		if len(refused) > 0 {
			return nil, fmt.Errorf("nothing was sent: %s", strings.Join(reply.Refused, "; "))
		}
		return nil, errors.New("the text is empty")
	}
	err = g.store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error {
		if err := tx.PutOutbox(rows...); err != nil {
			return err
		}
		return g.mirror(tx, at, text)
	})
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		reply.Rows = append(reply.Rows, row.ID)
	}
	g.worker.Take(rows...)
	return g.awaitSent(ctx, reply)
}

// compose makes the rows of a message that was asked for: its text in the platform's form, then the files that it names
// and that may go there. text is what the chat's own conversation keeps.
func (g *Gateway) compose(at platforms.Address, args SendArgs) (text string, rows []*sessions.OutboxRow, refused []turn.Refused) {
	text = args.Text
	for _, path := range args.Files {
		text += "\nMEDIA:\"" + strings.ReplaceAll(path, "\"", "") + "\""
	}
	media := g.chatSettings().Media
	media.Resolve = nil // whoever asks for it names files of this machine
	text, files, refused := media.Attach(context.Background(), "", text, at.Platform, g.accounts.Traits(at), g.now())
	if text = strings.TrimSpace(text); text != "" {
		rows = g.rows(sessions.OutSend, at, text)
	}
	for _, a := range files {
		rows = append(rows, &sessions.OutboxRow{Kind: sessions.OutSend, Message: platforms.Outgoing{Address: at, Attachments: []platforms.Attachment{a}}})
		text += "\n[sent the file " + a.Name + "]"
	}
	return strings.TrimSpace(text), rows, refused
}

// mirror keeps what was sent in the chat's own conversation, so that an answer to it is understood.
func (g *Gateway) mirror(tx sessions.Tx, at platforms.Address, text string) error {
	list, err := tx.Sessions(sessions.SessionQuery{Platform: at.Platform, Account: at.Account, Chat: at.Chat, Live: true, Limit: 20})
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Origin.Address.Thread != at.Thread {
			continue
		}
		err := tx.Append(&sessions.Message{Session: s.ID, Role: sessions.Assistant, Kind: sessions.KindMirror, Content: text, At: g.now(), Active: true})
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitSent polls the rows until they have an outcome or the wait is over.
func (g *Gateway) awaitSent(ctx context.Context, reply SendReply) (SendReply, error) {
	ctx, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		waiting := false
		reply.State, reply.Error = string(sessions.OutSent), ""
		err := g.store.View(context.WithoutCancel(ctx), func(v sessions.View) error {
			for _, id := range reply.Rows {
				row, err := v.OutboxRow(id)
				if err != nil {
					return err
				}
				waiting = waiting || row.State == sessions.OutPending || row.State == sessions.OutAttempting
				if row.State != sessions.OutSent {
					reply.State = string(row.State)
				}
				if row.Error != "" {
					reply.Error = strings.TrimPrefix(reply.Error+"; "+row.Error, "; ")
				}
			}
			return nil
		})
		if err != nil || !waiting {
			return reply, err
		}
		select {
		case <-ctx.Done():
			return reply, nil
		case <-tick.C:
		}
	}
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
