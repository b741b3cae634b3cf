package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	rt "herald/gateway/router/routertest"
)

// Where notices of all conversations go is a matter of admins, also where users may use the command by name.
func TestSetHome_IsForAdmins(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, d *desk) {
		require.Contains(t, ask(r, "a", "/sethome"), "is the home channel now")
		require.Contains(t, ask(r, "a", "/sethome off"), "the one of the configuration again")
		require.Contains(t, ask(r, "a", "/sethome there"), "/sethome [off]")
		d.user, d.allowed = true, map[string]bool{}
		require.Contains(t, ask(r, "a", "/sethome"), "You may not use")
		d.allowed = map[string]bool{"sethome": true}
		require.Contains(t, ask(r, "a", "/set_home"), "Only admins")
	})
}
