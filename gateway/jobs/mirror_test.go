package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/platforms"
	"herald/sessions"
)

// The table of mirroring with the real resolver, outbox and adapter, on a Slack workspace whose home channel is the first person's direct
// chat: how often a brief goes out, where to, by which provenance, and whether it becomes part of a conversation.
// TestCronThreads_WhoseConversationsGetABrief asks the model of rows 10 to 14.
func TestCron_MirrorTable(t *testing.T) {
	const home, own, other = 0, 1, 2
	type row struct {
		name, deliver string
		origin        bool // the job was made in the second person's direct chat
		attach        *bool
		to            int // whose direct chat the brief comes to
		from          cron.Provenance
		mirrored      bool
	}
	for _, global := range []struct {
		on   bool
		rows []row
	}{
		{true, []row{
			{"Row1_OriginChat", "origin", true, nil, own, cron.FromOrigin, true},
			{"Row2_OriginFallback", "origin", false, nil, home, cron.FromFallback, true},
			{"Row3_AllNever", "all", false, nil, home, "", false},
			{"Row3b_AllNeverWithAttach", "all", false, new(true), home, "", false},
			{"Row4_BarePlatformNever", "slack", false, nil, home, "", false},
			{"Row5_ExplicitNotByGlobal", "slack:%s", false, nil, other, cron.FromExplicit, false},
			{"Row7_OriginThenAll", "origin,all", false, nil, home, cron.FromFallback, true},
			{"Row8_AllThenOrigin", "all,origin", false, nil, home, cron.FromFallback, true},
			{"Row9_OtherChatThanOrigin", "slack:%s", true, nil, other, cron.FromExplicit, false},
			{"Detached_Origin", "origin", true, new(false), own, cron.FromOrigin, false},
			{"Detached_Fallback", "origin", false, new(false), home, cron.FromFallback, false},
		}},
		{false, []row{
			{"Row6_ExplicitByAttach", "slack:%s", false, new(true), other, cron.FromExplicit, true},
			{"GlobalOff_Origin", "origin", true, nil, own, cron.FromOrigin, false},
			{"GlobalOff_Fallback", "origin", false, nil, home, cron.FromFallback, false},
			{"GlobalOff_FallbackByAttach", "origin", false, new(true), home, cron.FromFallback, true},
			{"GlobalOff_BarePlatformWithAttach", "slack", false, new(true), home, "", false},
		}},
	} {
		s := withSlack(t, func(s *slackHouse) { s.Set["cron.mirror_delivery"] = fmt.Sprint(global.on) })
		seen := map[string]int{}
		for _, c := range global.rows {
			t.Run(c.name, func(t *testing.T) {
				chat := s.dms[c.to]
				deliver := c.deliver
				if strings.Contains(deliver, "%s") {
					deliver = fmt.Sprintf(deliver, chat)
				}
				var origin *sessions.Origin
				if c.origin {
					origin = s.origin(s.dms[own], platforms.DM, s.people[own])
				}
				d := delivered(s.House, mail(s.House, deliver, origin, c.attach).ID)
				seen[chat]++
				require.Equal(t, platforms.ChatID(chat), d.Address.Chat)
				require.Equal(t, c.from, d.From)
				require.Equal(t, c.mirrored, len(d.Mirrored) > 0, "%v", d.Mirrored)
				for _, dm := range s.dms {
					briefs := 0
					for _, m := range s.fake.Visible("", dm, "") {
						briefs += strings.Count(m.Text, mailBrief)
					}
					require.Equal(t, seen[dm], briefs, "one brief, and in no other chat")
				}
			})
		}
	}
}
