package slack

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever comes in an envelope, reading it ends, and makes an event that the core takes or none.
func FuzzRead(f *testing.F) {
	for _, c := range []struct{ kind, payload string }{
		{"events_api", `{"event":{"type":"message","channel":"D1","channel_type":"im","user":"U1","ts":"1700000000.000100","text":"hi","files":[{"id":"F1"},{}],"attachments":[{"is_share":true}]}}`},
		{"events_api", `{"event":{"type":"message","channel":"D1","channel_type":"im","user":"U1","ts":"1700055555500000.000100","text":"hi"}}`},
		{"events_api", `{"event":{"type":"message","subtype":"message_changed","channel":"D1","message":{"user":"U1","ts":"1.1","text":"a","edited":{"ts":"2.2"}},"previous_message":{"text":"b"}}}`},
		{"events_api", `{"event":{"type":"reaction_added","user":"U1","reaction":"eyes","item":{"type":"message","channel":"D1","ts":"1.1"},"item_user":"UME","event_ts":"3.3"}}`},
		{"slash_commands", `{"command":"/herald","text":"<@U1> hi","channel_id":"D1","user_id":"U1","trigger_id":"1.2"}`},
		{"interactive", `{"type":"block_actions","user":{"id":"U1"},"container":{"message_ts":"1.1","channel_id":"D1"},"actions":[{"action_id":"herald:1","value":"x"}]}`},
		{"nothing", `null`},
	} {
		f.Add(c.kind, []byte(c.payload))
	}
	a := offline(f, func(o *Options) { o.ReactionTriggers, o.Lookup = []string{"true"}, 1e6 })
	f.Fuzz(func(t *testing.T, kind string, payload []byte) {
		taken := a.read(context.Background(), delivery{envelope: envelope{Type: kind, Payload: payload}})
		if taken.event == nil {
			return
		}
		if err := taken.event.Validate(); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(taken.event); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRead_EventsThatSlackHeldBackAreCounted(t *testing.T) {
	reasons := make(chan string, 1)
	a := offline(t, func(o *Options) { o.Metrics = dropped{reasons: reasons} })
	a.read(context.Background(), delivery{envelope: envelope{Type: "events_api", Payload: []byte(`{"type":"app_rate_limited","team_id":"T1"}`)}})
	require.Equal(t, "rate_limited", <-reasons)
}
