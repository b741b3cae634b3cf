package docker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The rules in their order: each row would have another key if an earlier rule came later.
func TestContainerKey(t *testing.T) {
	docker := func(change func(*Request)) Request {
		r := Request{Persistent: true, Profile: "work", Session: "slack:c1:u1"}
		change(&r)
		return r
	}
	for _, tc := range []struct {
		name string
		r    Request
		want string
	}{
		{"1: shared, whatever the profile", docker(func(r *Request) { r.Shared = "team" }), "shared:team"},
		{"1: shared without a session", docker(func(r *Request) { r.Shared, r.Session = "team", "" }), "shared:team"},
		{"1: the raw key, not a sanitised one", docker(func(r *Request) { r.Shared = "team/workspace" }), "shared:team/workspace"},
		{"1: a throwaway container ignores it", docker(func(r *Request) { r.Shared, r.Persistent = "team", false }), "session:slack:c1:u1"},
		{"2: no session", docker(func(r *Request) { r.Session = "" }), "default"},
		{"2: a throwaway container without a session", docker(func(r *Request) { r.Session, r.Persistent = "", false }), "default"},
		{"3: throwaway by session", docker(func(r *Request) { r.Persistent = false }), "session:slack:c1:u1"},
		{"4: the default profile", docker(func(r *Request) { r.Profile = "default" }), "default"},
		{"4: no profile is the default one", docker(func(r *Request) { r.Profile = "" }), "default"},
		{"4: a named profile", docker(func(r *Request) {}), "profile:work"},
	} {
		require.Equal(t, tc.want, containerKey(tc.r), tc.name)
	}
}

func TestSanitise(t *testing.T) {
	for in, want := range map[string]string{
		"default": "default", "profile:work": "profile_work", "team/workspace": "team_workspace", "": "unknown", "ä b": "__b",
		"A-z_0.9": "A-z_0.9", strings.Repeat("x", 80): strings.Repeat("x", 63),
	} {
		require.Equal(t, want, labelText(in), in)
	}
}

// Shared keys that look alike must never meet: this is what a lossy label did to two teams.
func TestIdentity_SharedKeysNeverMeet(t *testing.T) {
	long := strings.Repeat("k", 64)
	for _, pair := range [][2]string{
		{"team/workspace", "team_workspace"}, {long + "a", long + "b"}, {"a b", "a_b"}, {"ä", "ö"}, {"x", "x "},
		{strings.Repeat("k", 49) + "/", strings.Repeat("k", 49) + "_"},
	} {
		require.NotEqual(t, identity("p", pair[0]), identity("p", pair[1]), "%q and %q", pair[0], pair[1])
		require.NotEqual(t, KeyDir("shared:"+pair[0]), KeyDir("shared:"+pair[1]), "%q and %q", pair[0], pair[1])
	}
	require.Equal(t, "team_workspace-e867f87681f0", identity("any", "team/workspace"), "the same in every process and version")
	require.Equal(t, identity("one", "team"), identity("two", "team"), "the profile does not matter")
	require.Equal(t, "work", identity("work", ""))
	require.Equal(t, "default", identity("", ""))
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringN(1, 200, -1).Draw(t, "a"), rapid.StringN(1, 200, -1).Draw(t, "b")
		id := identity("p", a)
		require.LessOrEqual(t, len(id), maxLabel)
		require.Regexp(t, `^[A-Za-z0-9_.-]+-[0-9a-f]{12}$`, id)
		require.Equal(t, a == b, id == identity("p", b))
	})
}

func TestPlaceDir(t *testing.T) {
	require.Equal(t, "default", KeyDir("default"))
	require.Equal(t, "profile_work", KeyDir("profile:work"))
	require.Regexp(t, `^session_slack_c1_u1-[0-9a-f]{12}$`, KeyDir("session:slack:c1:u1"))
	seen := map[string]string{}
	for _, key := range []string{"default", "profile:default", "profile_default", "profile:work", "profile_work", "profile:a/b", "profile:a_b", "shared:default", "shared:work", "session:default", "profile:" + strings.Repeat("x", 60), "..", "/"} {
		dir := KeyDir(key)
		require.NotContains(t, seen, dir, "%q and %q", key, seen[dir])
		require.NotContains(t, dir, "/")
		require.NotEqual(t, "..", dir)
		seen[dir] = key
	}
}
