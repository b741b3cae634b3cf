package sqlite

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"herald/sessions"
)

// maxTitle is the longest title, in characters (the limit that sessions.Session states).
const maxTitle = 100

const sqlSession = `SELECT s.id, s.key, s.origin, s.title, s.parent, s.created, s.updated, s.ended, s.end_reason, s.messages,
	s.calls, s.input, s.output, s.cache_read, s.cache_write, s.reasoning, s.tool_calls, s.last_prompt, s.last_context,
	(SELECT prompt FROM prompts p WHERE p.session = s.id), (SELECT tools FROM prompts p WHERE p.session = s.id)
FROM sessions s `

func scanSession(r row) (sessions.Session, error) {
	s := sessions.Session{
		ID: sessions.ID(r.text(0)), Key: sessions.Key(r.text(1)), Title: r.text(3), Parent: sessions.ID(r.text(4)),
		CreatedAt: r.time(5), UpdatedAt: r.time(6), EndedAt: r.time(7), EndReason: r.text(8), Messages: int(r.int(9)),
		Usage: sessions.Usage{
			Calls: r.int(10), Input: r.int(11), Output: r.int(12), CacheRead: r.int(13), CacheWrite: r.int(14),
			Reasoning: r.int(15), ToolCalls: r.int(16), LastPrompt: r.int(17), LastContext: r.int(18),
		},
		SystemPrompt: r.text(19),
	}
	err := errors.Join(decode(r.text(2), "sessions.origin", &s.Origin), decode(r.text(20), "prompts.tools", &s.Tools))
	if err != nil {
		return s, fmt.Errorf("session %s: %w", s.ID, err)
	}
	return s, nil
}

func (v *view) sessions(where string, args ...driver.Value) (list []sessions.Session, err error) {
	err = v.c.query(v.ctx, sqlSession+where, func(r row) error {
		s, err := scanSession(r)
		list = append(list, s)
		return err
	}, args...)
	return list, err
}

// Route returns a key's session and options. A key whose options were set before its first session has a
// route with an empty Session.
func (v *view) Route(key sessions.Key) (sessions.Route, error) {
	route := sessions.Route{Key: key}
	found := false
	err := v.c.query(v.ctx, "SELECT session, options FROM routes WHERE key = ?", func(r row) error {
		found = true
		route.Session = sessions.ID(r.text(0))
		return decode(r.text(1), "routes.options", &route.Options)
	}, string(key))
	if err == nil && !found {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Route{}, fmt.Errorf("route %s: %w", key, err)
	}
	return route, nil
}

// Session returns one session.
func (v *view) Session(id sessions.ID) (sessions.Session, error) {
	list, err := v.sessions("WHERE s.id = ?", string(id))
	if err == nil && len(list) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Session{}, fmt.Errorf("session %s: %w", id, err)
	}
	return list[0], nil
}

// Sessions lists sessions, newest first by UpdatedAt.
func (v *view) Sessions(q sessions.SessionQuery) ([]sessions.Session, error) {
	var where []string
	var args []driver.Value
	add := func(set bool, cond string, values ...driver.Value) {
		if set {
			where = append(where, cond)
			args = append(args, values...)
		}
	}
	add(q.Key != "", "s.key = ?", string(q.Key))
	add(q.Platform != "", "s.platform = ?", string(q.Platform))
	add(q.Account != "", "s.account = ?", string(q.Account))
	add(q.Chat != "", "s.chat = ?", string(q.Chat))
	if q.User != "" {
		inKey := string(sessions.KeyFor(sessions.KeySource{Platform: "x", ChatType: "dm", User: q.User}, sessions.KeyOptions{}))
		inKey = strings.TrimPrefix(inKey, "agent:main:x:dm") // ":" and the person as keys write it
		add(true, "(s.user = ? OR s.user_alt = ? OR substr(s.key, -length(?)) = ?)", string(q.User), string(q.User), inKey, inKey)
	}
	add(q.Title != "", "s.title = ?", q.Title)
	add(q.TitleIn != "", "instr(s.title_folded, ?) > 0", strings.ToLower(q.TitleIn))
	add(q.Live, "s.ended = 0")
	sql := ""
	if len(where) > 0 {
		sql = "WHERE " + strings.Join(where, " AND ")
	}
	if q.Limit <= 0 {
		q.Limit = 100
	}
	sql += " ORDER BY s.updated DESC, s.id DESC LIMIT ? OFFSET ?"
	list, err := v.sessions(sql, append(args, int64(q.Limit), int64(max(0, q.Offset)))...)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	return list, nil
}

// OpenSession returns the key's current session or makes one.
func (t *tx) OpenSession(key sessions.Key, origin sessions.Origin, now time.Time) (sessions.Session, error) {
	route, err := t.Route(key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return sessions.Session{}, err
	}
	if route.Session == "" {
		return t.makeCurrent(route.Options, key, origin, now)
	}
	s, err := t.Session(route.Session)
	if err == nil && s.Origin.User == "" && origin.User != "" {
		err = t.learn(&s, origin)
	}
	return s, err
}

// learn fills in what the origin of a session does not say.
func (t *tx) learn(s *sessions.Session, from sessions.Origin) error {
	o := &s.Origin
	o.User, o.UserAlt, o.UserName = from.User, cmp.Or(o.UserAlt, from.UserAlt), cmp.Or(o.UserName, from.UserName)
	o.Scope, o.ParentChat = cmp.Or(o.Scope, from.Scope), cmp.Or(o.ParentChat, from.ParentChat)
	o.ChatName, o.Topic = cmp.Or(o.ChatName, from.ChatName), cmp.Or(o.Topic, from.Topic)
	data, err := encode(*o)
	if err == nil {
		_, _, err = t.c.exec("UPDATE sessions SET user = ?, user_alt = ?, origin = ? WHERE id = ?", string(o.User), string(o.UserAlt), data, string(s.ID))
	}
	if err != nil {
		return fmt.Errorf("origin of session %s: %w", s.ID, err)
	}
	return nil
}

// NewSession ends the key's current session and makes a new one.
func (t *tx) NewSession(key sessions.Key, origin sessions.Origin, reason string, now time.Time) (sessions.Session, error) {
	route, err := t.Route(key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return sessions.Session{}, err
	}
	if err := t.endSession(route.Session, reason, now); err != nil {
		return sessions.Session{}, err
	}
	route.Options.Model = ""
	return t.makeCurrent(route.Options, key, origin, now)
}

// SwitchSession makes an existing session the key's current one. One that is the current session of
// another key is ErrConflict: two conversations never share a session.
func (t *tx) SwitchSession(key sessions.Key, to, expected sessions.ID, now time.Time) (sessions.Session, error) {
	fail := func(err error) (sessions.Session, error) {
		return sessions.Session{}, fmt.Errorf("switch %s to session %s: %w", key, to, err)
	}
	route, err := t.Route(key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return fail(err)
	}
	if expected != "" && expected != route.Session {
		return fail(fmt.Errorf("%w: the current session is %q, not %q", sessions.ErrConflict, route.Session, expected))
	}
	if _, err := t.Session(to); err != nil {
		return fail(err)
	}
	holder, err := t.c.text("SELECT key FROM routes WHERE session = ? AND key <> ?", string(to), string(key))
	if err != nil {
		return fail(err)
	}
	if holder != "" {
		return fail(fmt.Errorf("%w: it is the current session of another conversation", sessions.ErrConflict))
	}
	if route.Session != to {
		if err := t.endSession(route.Session, "switched", now); err != nil {
			return fail(err)
		}
	}
	if _, _, err := t.c.exec("UPDATE sessions SET key = ?, ended = 0, end_reason = '', updated = max(updated, ?) WHERE id = ?",
		string(key), stamp(now), string(to)); err != nil {
		return fail(err)
	}
	route.Options.Model = ""
	if err := t.setRoute(key, to, route.Options); err != nil {
		return fail(err)
	}
	return t.Session(to)
}

func (t *tx) endSession(id sessions.ID, reason string, now time.Time) error {
	if id == "" {
		return nil
	}
	_, _, err := t.c.exec("UPDATE sessions SET ended = ?, end_reason = ?, updated = max(updated, ?) WHERE id = ?",
		stamp(now), reason, stamp(now), string(id))
	if err != nil {
		return fmt.Errorf("end session %s: %w", id, err)
	}
	return nil
}

// EndSession ends the key's current session and forgets the key.
func (t *tx) EndSession(key sessions.Key, reason string, now time.Time) error {
	route, err := t.Route(key)
	if errors.Is(err, sessions.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.endSession(route.Session, reason, now); err != nil {
		return err
	}
	if _, _, err := t.c.exec("DELETE FROM routes WHERE key = ?", string(key)); err != nil {
		return fmt.Errorf("end the session of %s: %w", key, err)
	}
	return nil
}

// makeCurrent adds a session and routes the key to it.
func (t *tx) makeCurrent(o sessions.Options, key sessions.Key, origin sessions.Origin, now time.Time) (sessions.Session, error) {
	originJSON, err := encode(origin)
	if err != nil {
		return sessions.Session{}, fmt.Errorf("new session of %s: %w", key, err)
	}
	s := sessions.Session{Key: key, Origin: origin, CreatedAt: now.UTC(), UpdatedAt: now.UTC()}
	for {
		s.ID = sessions.NewID(now)
		_, added, err := t.c.exec(`INSERT INTO sessions (id, key, platform, account, chat, chat_type, user, user_alt, shared, origin, created, updated)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
			string(s.ID), string(key), string(origin.Address.Platform), string(origin.Address.Account), string(origin.Address.Chat),
			string(origin.ChatType), string(origin.User), string(origin.UserAlt), flag(origin.Shared), originJSON, stamp(now), stamp(now))
		if err != nil {
			return sessions.Session{}, fmt.Errorf("new session of %s: %w", key, err)
		}
		if added == 1 {
			break // else: 1 in 4 billion per second, the id was taken
		}
	}
	if err := t.setRoute(key, s.ID, o); err != nil {
		return sessions.Session{}, err
	}
	return s, nil
}

// SetOptions replaces a key's options; the key need not have a session yet.
func (t *tx) SetOptions(key sessions.Key, o sessions.Options) error { return t.setRoute(key, "", o) }

// setRoute writes a route; an empty id keeps the session that is there.
func (t *tx) setRoute(key sessions.Key, id sessions.ID, o sessions.Options) error {
	options, err := encode(o)
	if err == nil {
		var session driver.Value
		if id != "" {
			session = string(id)
		}
		_, _, err = t.c.exec(`INSERT INTO routes (key, session, options) VALUES (?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET session = coalesce(excluded.session, session), options = excluded.options`,
			string(key), session, options)
	}
	if err != nil {
		return fmt.Errorf("route %s: %w", key, err)
	}
	return nil
}

// SetTitle names a session; an empty title takes the name off.
func (t *tx) SetTitle(id sessions.ID, title string) error {
	if n := utf8.RuneCountInString(title); n > maxTitle {
		return fmt.Errorf("title of session %s: %d characters, at most %d are allowed", id, n, maxTitle)
	}
	_, changed, err := t.c.exec("UPDATE sessions SET title = ?, title_folded = ? WHERE id = ?", title, strings.ToLower(title), string(id))
	if unique(err) {
		return fmt.Errorf("title %q: %w: another session has it", title, sessions.ErrConflict)
	}
	return found(err, changed, "session", id)
}

// SetPrompt fixes a session's system prompt and tool names.
func (t *tx) SetPrompt(id sessions.ID, prompt string, tools []string) error {
	names, err := encodeList(tools)
	if err != nil {
		return fmt.Errorf("prompt of session %s: %w", id, err)
	}
	_, changed, err := t.c.exec(`INSERT INTO prompts (session, prompt, tools) SELECT id, ?, ? FROM sessions WHERE id = ?
		ON CONFLICT (session) DO UPDATE SET prompt = excluded.prompt, tools = excluded.tools`, prompt, names, string(id))
	return found(err, changed, "session", id)
}

// AddUsage adds counts; LastPrompt and LastContext replace.
func (t *tx) AddUsage(id sessions.ID, u sessions.Usage) error {
	_, changed, err := t.c.exec(`UPDATE sessions SET calls = calls + ?, input = input + ?, output = output + ?, cache_read = cache_read + ?,
		cache_write = cache_write + ?, reasoning = reasoning + ?, tool_calls = tool_calls + ?, last_prompt = ?, last_context = ? WHERE id = ?`,
		u.Calls, u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning, u.ToolCalls, u.LastPrompt, u.LastContext, string(id))
	return found(err, changed, "session", id)
}

// Counts returns the size of the store.
func (v *view) Counts() (n sessions.Counts, err error) {
	err = v.c.query(v.ctx, `SELECT
		(SELECT count(*) FROM sessions), (SELECT count(*) FROM sessions WHERE ended = 0), (SELECT coalesce(sum(messages), 0) FROM sessions),
		(SELECT count(*) FROM inbox WHERE state = 'new'), (SELECT count(*) FROM turns WHERE state = 'running'),
		(SELECT count(*) FROM outbox WHERE state IN ('pending', 'attempting')), (SELECT count(*) FROM outbox WHERE state = 'unknown'),
		(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)`, func(r row) error {
		n = sessions.Counts{Sessions: r.int(0), Live: r.int(1), Messages: r.int(2), InboxNew: r.int(3), TurnsRunning: r.int(4),
			OutboxPending: r.int(5), OutboxUnknown: r.int(6), Bytes: r.int(7)}
		return nil
	})
	if err != nil {
		return n, fmt.Errorf("counts: %w", err)
	}
	return n, nil
}

// found makes ErrNotFound of a write that met no row.
func found[ID any](err error, changed int64, what string, id ID) error {
	if err == nil && changed == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("%s %v: %w", what, id, err)
	}
	return nil
}
