package platforms_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

func TestAddress_SameChat(t *testing.T) {
	a := platforms.Address{Platform: "slack", Account: "bot", Chat: "C1", Thread: "1"}
	for want, same := range map[platforms.Address]bool{
		{Platform: "slack", Account: "bot", Chat: "C1"}:                true,
		{Platform: "Slack", Account: "bot", Chat: "C1", Thread: "2"}:   true,
		{Platform: "slack", Account: "bot", Chat: "c1"}:                false,
		{Platform: "slack", Account: "other", Chat: "C1", Thread: "1"}: false,
		{Platform: "teams", Account: "bot", Chat: "C1", Thread: "1"}:   false,
	} {
		require.Equal(t, same, a.SameChat(want), want)
		require.Equal(t, same, want.SameChat(a), want)
	}
}
