package admin

import (
	"context"
	"time"

	"herald/sessions"
)

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
