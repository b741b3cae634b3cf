package teams

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever an activity holds, reading it ends, and what comes of it is an event that the core takes.
func FuzzEvent(f *testing.F) {
	const head = `"id":"1","conversation":{"id":"19:x@thread.tacv2;messageid=5","conversationType":"channel","tenantId":"t"},"from":{"id":"29:x","name":"Pat"}`
	for _, seed := range []string{
		`{"type":"message","text":"<at>Herald</at> hello",` + head + `}`,
		`{"type":"message","text":"x","entities":[{"type":"mention","text":"<at>H</at>","mentioned":{"id":"28:1"}}],` + head + `}`,
		`{"type":"message","text":"x","timestamp":"9999-12-31T23:59:59-12:00",` + head + `}`,
		`{"type":"message","value":{"herald":"y:1"},` + head + `}`,
		`{"type":"messageReaction","replyToId":"5","reactionsAdded":[{"type":"1f440_eyes"}],` + head + `}`,
		`{"type":"messageUpdate","text":"new","channelData":{"eventType":"editMessage"},` + head + `}`,
		`{"type":"message","attachments":[{"contentType":"text/html","content":"<blockquote itemtype=\"http://schema.skype.com/Reply\" itemid=\"7\"><p itemprop=\"preview\">a</p></blockquote><attachment id=\"a-1\">"},{"contentType":"application/vnd.microsoft.teams.file.download.info","name":"../x","content":{"downloadUrl":"https://x"}},{"contentType":"image/*","contentUrl":"https://y"}],` + head + `}`,
	} {
		f.Add([]byte(seed))
	}
	a, err := New(goodOptions())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		act, err := decode(body)
		if err != nil {
			return
		}
		chat, _ := act.place()
		if !chatPattern.MatchString(chat) {
			return
		}
		a.roomOf(&act)
		e, drop, err := a.event(t.Context(), &act, body)
		require.NoError(t, err)
		if drop == "" {
			require.NoError(t, e.Validate())
		}
	})
}
