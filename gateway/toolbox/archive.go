package toolbox

import (
	"context"
	"errors"

	"herald/platforms"
	"herald/sessions"
	"herald/tools/sessionsearch"
)

// archive lets the session_search tool read the store, within the caller's scope.
type archive struct{ store sessions.Store }

func scopeOf(s sessionsearch.Scope) sessions.Scope {
	return sessions.Scope{Key: sessions.Key(s.Key), Platform: platforms.Name(s.Platform), User: platforms.UserID(s.User)}
}

// view runs fn on a snapshot; what is not there is the tool's own error.
func (a archive) view(ctx context.Context, fn func(sessions.View) error) error {
	err := a.store.View(ctx, fn)
	if errors.Is(err, sessions.ErrNotFound) {
		return sessionsearch.ErrNotFound
	}
	return err
}

// allowed returns the session when it is in scope. Out of scope looks like not there.
func allowed(v sessions.View, scope sessionsearch.Scope, id string) (sessions.Session, error) {
	session, err := v.Session(sessions.ID(id))
	if err != nil {
		return session, err
	}
	if scope.Key != "" && session.Key == sessions.Key(scope.Key) {
		return session, nil
	}
	o := session.Origin
	own := scope.Platform != "" && scope.User != "" && o.Address.Platform == platforms.Name(scope.Platform) && o.ChatType == platforms.DM &&
		(o.User == platforms.UserID(scope.User) || (o.UserAlt != "" && o.UserAlt == platforms.UserID(scope.User)))
	if !own {
		return session, sessions.ErrNotFound
	}
	return session, nil
}

func (a archive) Search(ctx context.Context, scope sessionsearch.Scope, q sessionsearch.Query) (hits []sessionsearch.Hit, err error) {
	query := sessions.SearchQuery{Text: q.Text, Scope: scopeOf(scope), Newest: q.Order == sessionsearch.Newest, Limit: q.Limit}
	for _, r := range q.Roles {
		query.Roles = append(query.Roles, sessions.Role(r))
	}
	err = a.view(ctx, func(v sessions.View) error {
		found, err := v.Search(query)
		for _, h := range found {
			hits = append(hits, sessionsearch.Hit{Session: describe(h.Session), Message: row(h.Message), Snippet: h.Snippet})
		}
		return err
	})
	if q.Order == sessionsearch.Oldest {
		for i, j := 0, len(hits)-1; i < j; i, j = i+1, j-1 {
			hits[i], hits[j] = hits[j], hits[i]
		}
	}
	return hits, err
}

func (a archive) Session(ctx context.Context, scope sessionsearch.Scope, id string) (out sessionsearch.Session, err error) {
	err = a.view(ctx, func(v sessions.View) error {
		session, err := allowed(v, scope, id)
		out = describe(session)
		return err
	})
	return out, err
}

func (a archive) Around(ctx context.Context, scope sessionsearch.Scope, id string, at int64, before, after int) (
	out []sessionsearch.Message, err error) {
	err = a.view(ctx, func(v sessions.View) error {
		if _, err := allowed(v, scope, id); err != nil {
			return err
		}
		rows, err := v.Around(sessions.ID(id), sessions.RowID(at), before, after)
		out = rowsOf(rows)
		return err
	})
	return out, err
}

func (a archive) Read(ctx context.Context, scope sessionsearch.Scope, id string, after int64, limit int) (
	out []sessionsearch.Message, err error) {
	err = a.view(ctx, func(v sessions.View) error {
		if _, err := allowed(v, scope, id); err != nil {
			return err
		}
		rows, err := v.Transcript(sessions.ID(id), false, sessions.RowID(after), limit)
		out = rowsOf(rows)
		return err
	})
	return out, err
}

func (a archive) Last(ctx context.Context, scope sessionsearch.Scope, id string, limit int) (out []sessionsearch.Message, err error) {
	err = a.view(ctx, func(v sessions.View) error {
		if _, err := allowed(v, scope, id); err != nil {
			return err
		}
		rows, err := v.Transcript(sessions.ID(id), false, 0, 0)
		out = rowsOf(rows[max(0, len(rows)-limit):])
		return err
	})
	return out, err
}

func (a archive) Recent(ctx context.Context, scope sessionsearch.Scope, limit int) (out []sessionsearch.Session, err error) {
	err = a.view(ctx, func(v sessions.View) error {
		list, err := v.Sessions(sessions.SessionQuery{Platform: platforms.Name(scope.Platform), User: platforms.UserID(scope.User), Limit: limit})
		if scope.User == "" || scope.Platform == "" {
			list, err = v.Sessions(sessions.SessionQuery{Key: sessions.Key(scope.Key), Limit: limit})
			if scope.Key == "" {
				list = nil
			}
		}
		for _, session := range list {
			if _, err := allowed(v, scope, string(session.ID)); err == nil {
				out = append(out, describe(session))
			}
		}
		return err
	})
	return out, err
}

func describe(s sessions.Session) sessionsearch.Session {
	return sessionsearch.Session{ID: string(s.ID), Title: s.Title, Source: string(s.Origin.Address.Platform), Lineage: string(s.Parent),
		Started: s.CreatedAt, Updated: s.UpdatedAt, Messages: s.Messages}
}

func rowsOf(rows []sessions.Message) []sessionsearch.Message {
	out := make([]sessionsearch.Message, 0, len(rows))
	for _, r := range rows {
		if r.Kind != sessions.KindNotice {
			out = append(out, row(r))
		}
	}
	return out
}

func row(m sessions.Message) sessionsearch.Message {
	return sessionsearch.Message{Row: int64(m.ID), Role: string(m.Role), Text: m.Content, Tool: m.ToolName, At: m.At, Sender: m.Sender,
		Summary: m.Kind == sessions.KindSummary}
}
