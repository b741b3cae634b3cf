package discordtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGateway_ResumeBringsWhatWasMissed(t *testing.T) {
	s := newStage(t, Options{})
	first := s.login(testIntents)
	s.Say(s.channel, "one")
	seen := seqOf(first.wait("MESSAGE_CREATE", 1))
	require.NoError(t, s.Cut())
	require.Equal(t, 1006, first.closed())
	s.Say(s.channel, "two")
	s.Say(s.dm, "three")
	require.Equal(t, 3, s.Unconfirmed())
	second := s.resume(first, seen)
	require.Equal(t, "two", dig(second.wait("MESSAGE_CREATE", 1).D, "content"))
	require.Equal(t, "three", dig(second.wait("MESSAGE_CREATE", 2).D, "content"))
	second.wait("RESUMED", 1)
	require.Equal(t, []string{"MESSAGE_CREATE", "MESSAGE_CREATE", "RESUMED"}, second.events())
	require.Equal(t, 1, s.Receivers())
}

func TestGateway_CloseCodes(t *testing.T) {
	for name, c := range map[string]struct {
		op   int
		data any
		code int
	}{
		"wrong token":        {opIdentify, m{"token": "x", "intents": 1, "properties": m{}}, closeAuthentication},
		"no intents":         {opIdentify, m{"token": testToken, "properties": m{}}, closeIntents},
		"unknown intents":    {opIdentify, identification(1 << 30), closeIntents},
		"disallowed intents": {opIdentify, identification(IntentMembers), closeDisallowed},
		"unknown op":         {42, nil, closeOpcode},
		"not a payload":      {opIdentify, "x", closeDecode},
		"nobody":             {opPresence, m{}, closeNotAuthenticated},
		"too large":          {opIdentify, m{"token": string(make([]byte, 5000))}, closeDecode},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{WithoutIntents: IntentMembers})
			g := s.dial("v=9&encoding=json")
			g.op(opHello)
			g.say(c.op, c.data)
			require.Equal(t, c.code, g.closed())
		})
	}
}
