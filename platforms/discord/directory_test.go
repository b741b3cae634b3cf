package discord

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/discordtest"
)

func TestRooms_ChannelsThreadsAndPeople(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.AddChannel(discordtest.Channel{Guild: r.guild, Name: "talk", Type: discordtest.VoiceChannel})
	r.fake.AddUser(discordtest.User{Username: "stranger"})
	rooms, err := r.a.Rooms(r.ctx())
	require.NoError(t, err)
	found := map[string]platforms.Room{}
	for _, room := range rooms {
		found[room.Name] = room
	}
	require.Equal(t, address(r.channel, ""), found["general"].Address)
	require.Equal(t, "Team", found["general"].Parent)
	require.Equal(t, address(r.channel, r.thread), found["Plans"].Address)
	require.Equal(t, "general", found["Plans"].Parent)
	require.Equal(t, address(r.forum, ""), found["ideas"].Address)
	require.NotContains(t, found, "talk")
	require.NotContains(t, found, "stranger")
	pat := found["Pat Doe"]
	require.Equal(t, platforms.UserID(r.person), pat.User)
	require.Contains(t, pat.Aliases, "pat")
	at, err := r.a.Open(r.ctx(), pat.User)
	require.NoError(t, err)
	require.Equal(t, address(r.dm, ""), at)
	_, err = r.a.Open(r.ctx(), "@pat")
	require.Equal(t, platforms.NotFound, failure(t, err).Kind)
}
