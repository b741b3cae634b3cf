package access

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

func TestDecision_MayDecide(t *testing.T) {
	allowed := Decision{Allowed: true, Tier: TierAdmin}
	user := Decision{Allowed: true, Tier: TierUser}
	named := Decision{Allowed: true, Tier: TierAdmin, Named: true}
	owner, other := platforms.User{ID: "1", Alt: "one"}, platforms.User{ID: "2"}
	bot := platforms.User{ID: "1", IsBot: true}
	for _, c := range []struct {
		name      string
		d         Decision
		scope     string
		requester platforms.UserID
		sender    platforms.User
		want      bool
	}{
		{"the owner", user, ScopeOwner, "1", owner, true},
		{"the owner by the second id", user, ScopeOwner, "one", owner, true},
		{"another person, where everybody is an admin", allowed, ScopeOwner, "1", other, false},
		{"a named admin", named, ScopeOwner, "1", other, true},
		{"a stranger", Decision{}, ScopeOwner, "1", owner, false},
		{"a stranger who is named", Decision{Named: true}, ScopeAny, "1", owner, false},
		{"nobody knows who asked", allowed, ScopeOwner, "", owner, false},
		{"nobody knows who presses", allowed, ScopeOwner, "", platforms.User{}, false},
		{"nobody knows who presses, any", allowed, ScopeAny, "1", platforms.User{}, false},
		{"the owner, where admins decide", user, ScopeAdmins, "1", owner, false},
		{"an admin, where admins decide", allowed, ScopeAdmins, "1", other, true},
		{"anybody", user, ScopeAny, "1", other, true},
		{"a bot with the owner's id", allowed, ScopeOwner, "1", bot, false},
		{"a bot, any", allowed, ScopeAny, "1", bot, false},
		{"a bot that is a named admin", named, ScopeOwner, "2", bot, true},
		{"a scope that does not exist", allowed, "everyone", "1", owner, false},
		{"no scope", allowed, "", "1", owner, false},
	} {
		require.Equal(t, c.want, c.d.MayDecide(c.scope, c.requester, c.sender), c.name)
	}
}

func TestDenied(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"git push*", "git push origin", true}, {"git push*", "GIT Push", true}, {"GIT PUSH*", "git push -f", true}, {"git push", "git push -f", false},
		{"*push*", "sudo git push", true}, {"rm ?", "rm a", true}, {"rm ?", "rm ab", false}, {"a/*/c", "a/b/x/c", true}, {"*", "", true}, {"", "x", false}, {"  ", "x", false},
		{"[ab]*", "a", false}, {"*.env", "cat .env", true}, {"cat *.ENV", "cat x/.env", true}, {"ä*", "Ä1", true}, {"**a**", "xax", true}, {" ls ", "ls", true},
	} {
		require.Equal(t, c.want, Denied([]string{c.pattern}, []string{"other", c.text}) != "", "%q %q", c.pattern, c.text)
	}
	require.Equal(t, "b*", Denied([]string{"a*", "b*"}, []string{"bx"}))
	began := time.Now() // a hostile pattern takes no time to speak of
	Denied([]string{strings.Repeat("*a", 200) + "b"}, []string{strings.Repeat("a", 5000)})
	require.Less(t, time.Since(began), 20*time.Second)
}

func TestGrants_EndWithTheirSession(t *testing.T) {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(t.TempDir(), "a.db")})
	require.NoError(t, err)
	defer store.Close()
	now := time.Now()
	grant := func(id sessions.ID) (g Grant) {
		require.NoError(t, store.View(ctx, func(v sessions.View) (err error) { g, err = SessionGrant(v, id); return err }))
		return g
	}
	var old, fresh sessions.Session
	update := func(fn func(tx sessions.Tx) error) { require.NoError(t, store.Update(ctx, sessions.EdgeState, fn)) }
	update(func(tx sessions.Tx) (err error) {
		if old, err = tx.OpenSession("k", sessions.Origin{}, now); err != nil {
			return err
		}
		if err = Allow(tx, old.ID, []string{"a", "b"}, now); err != nil {
			return err
		}
		return Allow(tx, old.ID, []string{"b", "c"}, now)
	})
	require.Equal(t, Grant{Kinds: []string{"a", "b", "c"}}, grant(old.ID))
	update(func(tx sessions.Tx) (err error) {
		fresh, err = tx.NewSession("k", sessions.Origin{}, "new", now.Add(time.Second))
		return err
	})
	require.Equal(t, Grant{}, grant(fresh.ID))
	update(func(tx sessions.Tx) error { return SetSessionGrant(tx, fresh.ID, Grant{Yolo: true}, now) })
	update(func(tx sessions.Tx) error { return SweepGrants(tx, now) })
	require.Equal(t, Grant{}, grant(old.ID), "what was allowed for an ended session is forgotten")
	require.Equal(t, Grant{Yolo: true}, grant(fresh.ID))
	update(func(tx sessions.Tx) error { return SetSessionGrant(tx, fresh.ID, Grant{}, now) })
	require.Equal(t, Grant{}, grant(fresh.ID))
}
