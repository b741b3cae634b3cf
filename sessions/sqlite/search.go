package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"herald/platforms"
	"herald/sessions"
)

// The bounds of SearchQuery.Limit.
const (
	defaultHits = 20
	maxHits     = 300
)

// hit is a row that matches, before it is read.
type hit struct {
	id      int64
	rank    float64
	grams   bool   // found by trigrams or LIKE
	by      []term // what it was found by, for grams
	snippet string
}

// Search finds rows by words; see sessions.SearchQuery. Words go to the word index; when that finds
// nothing, or the text is of a script without spaces, to the index of three-character pieces. Undone
// rows, notices and summaries are never found; rows that compaction took out are.
func (v *view) Search(q sessions.SearchQuery) ([]sessions.SearchHit, error) {
	list, err := v.search(q)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return list, nil
}

func (v *view) search(q sessions.SearchQuery) ([]sessions.SearchHit, error) {
	scope, args := scopeSQL(q.Scope)
	clauses := parseQuery(q.Text)
	if scope == "" || len(clauses) == 0 {
		return nil, nil
	}
	if q.Limit <= 0 {
		q.Limit = defaultHits
	}
	q.Limit = min(q.Limit, maxHits)
	if len(q.Roles) == 0 {
		q.Roles = []sessions.Role{sessions.User, sessions.Assistant}
	}
	roles, err := encode(q.Roles)
	if err != nil {
		return nil, err
	}
	f := finder{ctx: v.ctx, q: q, clauses: clauses, scope: scope, args: args, roles: roles}
	var hits []hit
	if v.c == v.store.writer.c {
		if err := v.store.writer.tx.indexAll(); err != nil {
			return nil, err
		}
		f.c = v.c
		hits, err = f.find()
	} else {
		if err := v.store.catchUp(v.ctx); err != nil {
			return nil, err
		}
		// Not on the view's own connection: its snapshot may be older than the index. What is found there
		// is then read from the snapshot, so that the view stays one picture.
		err = v.store.readers.search.with(v.ctx, func(c *conn) error {
			f.c = c
			hits, err = f.find()
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return v.readHits(hits)
}

// readHits reads the rows and sessions of hits, in their order.
func (v *view) readHits(hits []hit) ([]sessions.SearchHit, error) {
	ids := make([]int64, len(hits))
	for i, h := range hits {
		ids[i] = h.id
	}
	idJSON, err := idList(ids)
	if err != nil {
		return nil, err
	}
	rows, err := v.messages("WHERE m.id IN (SELECT value FROM json_each(?))", idJSON)
	if err != nil {
		return nil, err
	}
	byID := make(map[sessions.RowID]sessions.Message, len(rows))
	for _, m := range rows {
		byID[m.ID] = m
	}
	seen := map[sessions.ID]sessions.Session{}
	var out []sessions.SearchHit
	for _, h := range hits {
		m, ok := byID[sessions.RowID(h.id)]
		if !ok {
			continue // newer than the snapshot
		}
		s, ok := seen[m.Session]
		if !ok {
			if s, err = v.Session(m.Session); err != nil {
				return nil, err
			}
			seen[m.Session] = s
		}
		if h.grams {
			h.snippet = cutSnippet(m.Content, h.by)
		}
		out = append(out, sessions.SearchHit{Message: m, Session: s, Snippet: h.snippet, Rank: h.rank})
	}
	return out, nil
}

// scopeSQL returns the condition on a session "s" that lets exactly the scope through, "" for none.
func scopeSQL(s sessions.Scope) (cond string, args []driver.Value) {
	if s.All {
		return "1", nil
	}
	var conds []string
	if s.Key != "" {
		conds = append(conds, "s.key = ?")
		args = append(args, string(s.Key))
	}
	if s.Platform != "" && s.User != "" {
		conds = append(conds, "(s.chat_type = ? AND s.shared = 0 AND s.platform = ? AND (s.user = ? OR s.user_alt = ?))")
		args = append(args, string(platforms.DM), string(s.Platform), string(s.User), string(s.User))
	}
	if len(conds) == 0 {
		return "", nil
	}
	return "(" + strings.Join(conds, " OR ") + ")", args
}

// finder runs one search on one connection.
type finder struct {
	ctx     context.Context
	c       *conn
	q       sessions.SearchQuery
	clauses []clause
	scope   string
	args    []driver.Value // of scope
	roles   string         // JSON
}

func (f *finder) find() ([]hit, error) {
	ways := []func() ([]hit, error){f.words, f.grams}
	if unspaced(f.clauses) {
		slices.Reverse(ways)
	}
	for _, way := range ways {
		hits, err := way()
		if err != nil || len(hits) > 0 {
			return hits, err
		}
	}
	return nil, nil
}

// eligible is the condition on rows "m" and sessions "s" that holds for every way to search.
func (f *finder) eligible() (string, []driver.Value) {
	return "(m.active = 1 OR m.compacted = 1) AND m.role IN (SELECT value FROM json_each(?)) AND " + f.scope,
		append([]driver.Value{f.roles}, f.args...)
}

func (f *finder) order(rank string) string {
	if f.q.Newest {
		return " ORDER BY m.id DESC LIMIT ?"
	}
	return " ORDER BY " + rank + ", m.id DESC LIMIT ?"
}

// words searches the word index. The snippets are cut only for the rows that are kept: cutting reads the
// whole text.
func (f *finder) words() ([]hit, error) {
	expr := wordQuery(f.clauses)
	if expr == "" {
		return nil, nil
	}
	cond, args := f.eligible()
	// CROSS JOIN fixes the order: the index first, once.
	sql := `SELECT m.id, bm25(messages_fts, 1.0, 0.3) AS score FROM messages_fts CROSS JOIN messages m CROSS JOIN sessions s
		WHERE messages_fts MATCH ? AND m.id = messages_fts.rowid AND s.id = m.session AND ` + cond + f.order("score")
	hits, err := f.collect(sql, append(append([]driver.Value{expr}, args...), int64(f.q.Limit))...)
	if err != nil {
		return nil, err
	}
	cut := fmt.Sprintf("SELECT snippet(messages_fts, -1, '%s', '%s', '…', %d) FROM messages_fts WHERE messages_fts MATCH ? AND rowid = ?",
		matchOpen, matchClose, snippetWords)
	for i := range hits {
		err := f.c.query(f.ctx, cut, func(r row) error { hits[i].snippet = r.text(0); return nil }, expr, hits[i].id)
		if err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// grams searches for pieces of text, each alternative by itself.
func (f *finder) grams() ([]hit, error) {
	var hits []hit
	seen := map[int64]bool{}
	for _, c := range f.clauses {
		found, err := f.gramClause(c)
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			if !seen[h.id] {
				seen[h.id] = true
				h.grams, h.by = true, c.must
				hits = append(hits, h)
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		if !f.q.Newest && a.rank != b.rank {
			return cmp.Compare(a.rank, b.rank)
		}
		return cmp.Compare(b.id, a.id)
	})
	return hits[:min(len(hits), f.q.Limit)], nil
}

// gramClause finds rows with all of the pieces: long ones by the index, short ones and exclusions by LIKE.
func (f *finder) gramClause(c clause) ([]hit, error) {
	cond, condArgs := f.eligible()
	var args []driver.Value
	sql, rank := "", "score"
	if expr := gramQuery(c); expr != "" {
		sql = `SELECT m.id, bm25(messages_tri) AS score FROM messages_tri CROSS JOIN messages m CROSS JOIN sessions s
			WHERE messages_tri MATCH ? AND m.id = messages_tri.rowid AND s.id = m.session`
		args = append(args, expr)
	} else {
		sql = `SELECT m.id, 0.0 AS score FROM messages m JOIN sessions s ON s.id = m.session WHERE m.kind NOT IN ('notice', 'summary')`
		rank = "m.id DESC"
	}
	sql += " AND " + cond
	args = append(args, condArgs...)
	for _, t := range c.must {
		if !longEnough(t) {
			sql += ` AND m.content LIKE ? ESCAPE '\'`
			args = append(args, likePattern(t))
		}
	}
	for _, t := range c.not {
		sql += ` AND m.content NOT LIKE ? ESCAPE '\'`
		args = append(args, likePattern(t))
	}
	return f.collect(sql+f.order(rank), append(args, int64(f.q.Limit))...)
}

func (f *finder) collect(sql string, args ...driver.Value) (hits []hit, err error) {
	err = f.c.query(f.ctx, sql, func(r row) error {
		hits = append(hits, hit{id: r.int(0), rank: r.float(1)})
		return nil
	}, args...)
	return hits, err
}
