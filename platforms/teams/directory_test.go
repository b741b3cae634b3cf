package teams

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/teamstest"
)

// People name rooms: those that the bot has seen, and every channel of their teams.
func TestDirectory_Rooms(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	for _, room := range []string{r.dm.ID, r.group.ID, r.thread()} {
		r.fake.Say(room, "hello")
	}
	r.events(3)
	r.restart()
	rooms, err := r.a.Rooms(t.Context())
	require.NoError(t, err)
	tenant := platforms.ScopeID(r.fake.TenantID())
	require.ElementsMatch(t, []platforms.Room{
		{Address: r.address(r.channel.Team.ID, ""), Type: platforms.Channel, Name: "General", Parent: "Contoso", Scope: tenant},
		{Address: r.address(r.channel.ID, ""), Type: platforms.Channel, Name: "news", Parent: "Contoso", Scope: tenant},
		{Address: r.atGroup(), Type: platforms.Group, Name: "Plans", Scope: tenant},
		{Address: r.atDM(), Type: platforms.DM, Name: "Pat Doe", User: platforms.UserID(r.pat.AAD), Scope: tenant},
	}, rooms)
	r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 500, On: teamstest.Teams, Times: -1})
	rooms, err = r.a.Rooms(t.Context())
	require.NoError(t, err)
	require.Len(t, rooms, 2, "a team that can't be asked does not hide the other rooms")
}

// A brief for a person who has never written opens their chat; the next one needs no request.
func TestOpener_Open(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	for range 2 {
		at, err := r.a.Open(t.Context(), platforms.UserID(r.pat.AAD))
		require.NoError(t, err)
		require.Equal(t, r.atDM(), at)
	}
	require.Equal(t, 1, r.fake.Calls(teamstest.Create))
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text("a brief")})
	require.Len(t, r.fake.Visible(r.dm.ID), 1)

	_, err := r.a.Open(t.Context(), "99999999-0000-0000-0000-000000000000")
	require.Equal(t, platforms.NotSent, sendErrorOf(t, err).Certainty)
	_, err = r.a.Open(t.Context(), "../x")
	require.Equal(t, platforms.BadRequest, sendErrorOf(t, err).Kind)
	kim := r.fake.AddUser("Kim Li")
	r.fake.Personal(kim)
	r.fake.Uninstall(r.fake.Personal(kim).ID, kim)
	_, err = r.a.Open(t.Context(), platforms.UserID(kim.AAD))
	require.Equal(t, platforms.Forbidden, sendErrorOf(t, err).Kind)
}
