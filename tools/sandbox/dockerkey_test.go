package sandbox

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The six steps of spec C4.1, in their order: each row would have another key if an earlier step came later.
func TestContainerKey(t *testing.T) {
	chain := map[string]string{"sa-3": "sa-2", "sa-2": "sa-1", "loop-a": "loop-b", "loop-b": "loop-a", "self": "self"}
	parent := func(task string) (string, bool) { up, ok := chain[task]; return up, ok }
	docker := func(change func(*Request)) Request {
		r := Request{Backend: "docker", Persistent: true, Profile: "work", Session: "slack:c1:u1", Parent: parent}
		change(&r)
		return r
	}
	for _, tc := range []struct {
		name string
		r    Request
		want string
	}{
		{"1: own image beats the shared key", docker(func(r *Request) { r.Task, r.Own, r.Shared = "sa-3", true, "team" }), "sa-3"},
		{"1: own image beats the chain of throwaway Docker", docker(func(r *Request) { r.Task, r.Own, r.Persistent = "sa-3", true, false }), "sa-3"},
		{"1: own backend counts on ssh too", docker(func(r *Request) { r.Backend, r.Task, r.Own = "ssh", "sa-3", true }), "sa-3"},
		{"1: without a task there is nothing of its own", docker(func(r *Request) { r.Own = true }), "profile:work"},
		{"2: throwaway task of the chain's first", docker(func(r *Request) { r.Task, r.Persistent = "sa-3", false }), "sa-1"},
		{"2: a task that nobody started", docker(func(r *Request) { r.Task, r.Persistent = "sa-9", false }), "sa-9"},
		{"2: a loop ends", docker(func(r *Request) { r.Task, r.Persistent = "loop-a", false }), "loop-b"},
		{"2: a task that is its own parent", docker(func(r *Request) { r.Task, r.Persistent = "self", false }), "self"},
		{"2: before the session, and before no session", docker(func(r *Request) { r.Task, r.Persistent, r.Session = "sa-2", false, "" }), "sa-1"},
		{"2: not in persistent Docker", docker(func(r *Request) { r.Task = "sa-3" }), "profile:work"},
		{"2: not on ssh", docker(func(r *Request) { r.Backend, r.Persistent, r.Task = "ssh", false, "sa-3" }), "session:slack:c1:u1"},
		{"3: shared, whatever the profile", docker(func(r *Request) { r.Shared = "team" }), "shared:team"},
		{"3: shared without a session", docker(func(r *Request) { r.Shared, r.Session = "team", "" }), "shared:team"},
		{"3: the raw key, not a sanitised one", docker(func(r *Request) { r.Shared = "team/workspace" }), "shared:team/workspace"},
		{"3: throwaway Docker ignores it", docker(func(r *Request) { r.Shared, r.Persistent = "team", false }), "session:slack:c1:u1"},
		{"3: ssh ignores it", docker(func(r *Request) { r.Shared, r.Backend = "team", "ssh" }), "session:slack:c1:u1"},
		{"4: no session", docker(func(r *Request) { r.Session = "" }), "default"},
		{"4: no session on ssh", docker(func(r *Request) { r.Backend, r.Session = "ssh", "" }), "default"},
		{"5: ssh by session", docker(func(r *Request) { r.Backend = "ssh" }), "session:slack:c1:u1"},
		{"5: throwaway Docker by session", docker(func(r *Request) { r.Persistent = false }), "session:slack:c1:u1"},
		{"6: the default profile", docker(func(r *Request) { r.Profile = "default" }), "default"},
		{"6: no profile is the default one", docker(func(r *Request) { r.Profile = "" }), "default"},
		{"6: a named profile", docker(func(r *Request) {}), "profile:work"},
	} {
		require.Equal(t, tc.want, ContainerKey(tc.r), tc.name)
	}
}

func TestSanitise(t *testing.T) {
	for in, want := range map[string]string{
		"default": "default", "profile:work": "profile_work", "team/workspace": "team_workspace", "": "unknown", "ä b": "__b",
		"A-z_0.9": "A-z_0.9", strings.Repeat("x", 80): strings.Repeat("x", 63),
	} {
		require.Equal(t, want, Sanitise(in), in)
	}
}

// Shared keys that look alike must never meet: this is what a lossy label did to two teams.
func TestIdentity_SharedKeysNeverMeet(t *testing.T) {
	long := strings.Repeat("k", 64)
	for _, pair := range [][2]string{
		{"team/workspace", "team_workspace"}, {long + "a", long + "b"}, {"a b", "a_b"}, {"ä", "ö"}, {"x", "x "},
		{strings.Repeat("k", 49) + "/", strings.Repeat("k", 49) + "_"},
	} {
		require.NotEqual(t, Identity("p", pair[0]), Identity("p", pair[1]), "%q and %q", pair[0], pair[1])
		require.NotEqual(t, PlaceDir("shared:"+pair[0]), PlaceDir("shared:"+pair[1]), "%q and %q", pair[0], pair[1])
	}
	require.Equal(t, "team_workspace-e867f87681f0", Identity("any", "team/workspace"), "the same in every process and version")
	require.Equal(t, Identity("one", "team"), Identity("two", "team"), "the profile does not matter")
	require.Equal(t, "work", Identity("work", ""))
	require.Equal(t, "default", Identity("", ""))
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringN(1, 200, -1).Draw(t, "a"), rapid.StringN(1, 200, -1).Draw(t, "b")
		id := Identity("p", a)
		require.LessOrEqual(t, len(id), maxLabel)
		require.Regexp(t, `^[A-Za-z0-9_.-]+-[0-9a-f]{12}$`, id)
		require.Equal(t, a == b, id == Identity("p", b))
	})
}

func TestPlaceDir(t *testing.T) {
	require.Equal(t, "default", PlaceDir("default"))
	require.Equal(t, "profile_work", PlaceDir("profile:work"))
	require.Regexp(t, `^session_slack_c1_u1-[0-9a-f]{12}$`, PlaceDir("session:slack:c1:u1"))
	seen := map[string]string{}
	for _, key := range []string{"default", "profile:default", "profile_default", "profile:work", "profile_work", "profile:a/b", "profile:a_b", "shared:default", "shared:work", "session:default", "profile:" + strings.Repeat("x", 60), "..", "/"} {
		dir := PlaceDir(key)
		require.NotContains(t, seen, dir, "%q and %q", key, seen[dir])
		require.NotContains(t, dir, "/")
		require.NotEqual(t, "..", dir)
		seen[dir] = key
	}
}
