package signal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

// Signal's users name groups in SIGNAL_GROUP_ALLOWED_USERS. "*" switches groups on and lets nobody in by itself.
func TestSignal_Groups(t *testing.T) {
	const garden, plus = "Z3JvdXAtMS1HYXJkZW4AAAAAAAAAAAAAAAAAAAAAAAA=", "+3JvdXAtMS1HYXJkZW4AAAAAAAAAAAAAAAAAAAAAAAA="
	const uuid = "00000000-0000-4000-8000-000000000002"
	for _, c := range []struct {
		name             string
		users, chats     []string
		from             []string
		groups           []string
		allowed, persons []string
	}{
		{"nothing", nil, nil, nil, nil, nil, nil},
		{"a group", []string{garden}, nil, nil, []string{garden}, []string{"group:" + garden}, nil},
		{"a group that begins with a plus", []string{plus}, nil, nil, []string{plus}, []string{"group:" + plus}, nil},
		{"in both lists and forms", []string{"group:" + garden}, []string{plus, " "}, nil, []string{plus, garden}, []string{"group:" + plus, "group:" + garden}, nil},
		{"all", []string{"*"}, nil, nil, []string{"*"}, nil, nil},
		{"all as chats", nil, []string{"*"}, nil, []string{"*"}, nil, nil},
		{"people", []string{"+1 (555) 000-0002", uuid}, nil, nil, []string{"*"}, nil, []string{"+1 (555) 000-0002", uuid}},
		{"people by the other list", nil, nil, []string{uuid}, []string{"*"}, nil, nil},
		{"people and a group", []string{garden, uuid}, nil, nil, []string{garden, "*"}, []string{"group:" + garden}, []string{uuid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Settings{Common: platforms.Common{GroupAllowedUsers: c.users, GroupAllowedChats: c.chats, GroupAllowFrom: c.from,
				AllowedChats: []string{garden, "*"}}}
			require.Equal(t, c.groups, s.Groups())
			shared := s.Shared()
			require.Equal(t, c.allowed, shared.GroupAllowedChats)
			require.Equal(t, c.persons, shared.GroupAllowedUsers)
			require.Equal(t, []string{"group:" + garden, "*"}, shared.AllowedChats)
		})
	}
}

func TestSignal_On(t *testing.T) {
	require.False(t, Settings{}.On())
	require.True(t, Settings{Account: "+15550001111"}.On())
	no := false
	require.False(t, Settings{Account: "+15550001111", Common: platforms.Common{Enabled: &no}}.On())
}
