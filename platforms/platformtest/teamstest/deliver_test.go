package teamstest

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (s *stage) delivered() {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.Pending() == 0 }, 10*time.Second, time.Millisecond)
}

// What the bot does not take comes again with the same id, and what follows waits.
func TestDelivery_RetriesInOrder(t *testing.T) {
	s := newStage(t, Options{RetryEvery: time.Millisecond})
	var refused atomic.Int32
	s.answer = func(w http.ResponseWriter, a map[string]any) {
		if a["text"] == "first" && refused.Add(1) <= 3 {
			w.WriteHeader(503)
		}
	}
	first := s.Say(s.chat.ID, "first")
	s.Say(s.chat.ID, "second")
	for range 4 {
		a := s.next()
		require.Equal(t, first, a["id"])
	}
	require.Equal(t, "second", s.next()["text"])
	s.delivered()
	require.Len(t, s.Deliveries(), 5)
	require.Equal(t, 4, s.Deliveries()[3].Attempt)
	s.Replay(2)
	require.Equal(t, first, s.next()["id"])
	require.Equal(t, "second", s.next()["text"])
	s.delivered()
}

func TestDelivery_GivesUp(t *testing.T) {
	s := newStage(t, Options{RetryEvery: time.Millisecond, Attempts: 2, DeliveryTimeout: 50 * time.Millisecond})
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s.answer = func(_ http.ResponseWriter, a map[string]any) {
		if a["text"] == "slow" {
			<-release
		}
	}
	s.Say(s.chat.ID, "slow")
	require.Eventually(t, func() bool { return s.Lost() == 1 }, 10*time.Second, time.Millisecond)
	require.Zero(t, s.Pending())
	require.Contains(t, s.Deliveries()[0].Err, "deadline exceeded")
	s.Say(s.chat.ID, "quick")
	s.delivered()
	require.Equal(t, 1, s.Lost())
}

func TestDelivery_HoldAndOrders(t *testing.T) {
	for order, want := range map[Order][]string{
		InOrder: {"0", "1", "2"}, Backwards: {"2", "1", "0"}, Twice: {"0", "0", "1", "1", "2", "2"}, AtOnce: nil, Doubled: nil,
	} {
		t.Run(string(order), func(t *testing.T) {
			s := newStage(t, Options{})
			s.Hold()
			for i := range 3 {
				s.Say(s.chat.ID, fmt.Sprint(i))
			}
			require.Equal(t, 3, s.Pending())
			require.Empty(t, s.Deliveries())
			s.Release(order)
			s.delivered()
			got := map[string]int{}
			var list []string
			for range len(s.Deliveries()) {
				text := s.next()["text"].(string)
				got[text]++
				list = append(list, text)
			}
			if want != nil {
				require.Equal(t, want, list)
			}
			times := map[Order]int{Twice: 2, Doubled: 2}[order]
			require.Equal(t, map[string]int{"0": max(times, 1), "1": max(times, 1), "2": max(times, 1)}, got)
			require.Empty(t, s.outbox.lanes)
		})
	}
}

// The bot hears of a group what it is meant to hear, edits and reactions included.
func TestPeople_WhatTheBotHears(t *testing.T) {
	s := newStage(t, Options{})
	ann := s.AddUser("Ann Other")
	group := s.Group("Group", s.u, ann)
	quiet := s.Write(Post{Room: group.ID, Text: "not for the bot"})
	loud := s.Write(Post{Room: group.ID, From: ann, Text: "hey", Mention: true, Mentions: []User{s.u}})
	a := s.next()
	require.Equal(t, loud, a["id"])
	require.Equal(t, "<at>Herald</at> hey <at>Pat Doe</at>", a["text"])
	require.Equal(t, ann.AAD, a["from"].(map[string]any)["aadObjectId"])
	require.Len(t, a["entities"], 3)
	html := a["attachments"].([]any)[0].(map[string]any)
	require.Equal(t, "text/html", html["contentType"])
	require.Contains(t, html["content"], `itemtype="http://schema.skype.com/Mention" itemscope="" itemid="0">Herald</span>`)
	s.Rewrite(group.ID, quiet, "still not")
	s.Rewrite(group.ID, loud, "ho")
	a = s.next()
	require.Equal(t, "messageUpdate", a["type"])
	require.Equal(t, "editMessage", a["channelData"].(map[string]any)["eventType"])
	require.Equal(t, "<at>Herald</at> ho", a["text"])
	s.Remove(group.ID, loud)
	require.Equal(t, "softDeleteMessage", s.next()["channelData"].(map[string]any)["eventType"])
	s.Restore(group.ID, loud)
	require.Equal(t, "undeleteMessage", s.next()["channelData"].(map[string]any)["eventType"])
	s.React(group.ID, loud, "like", ann) // on a person's message
	mine := s.send(group.ID, text("mine"))
	s.React(group.ID, mine.ID, "heart", ann)
	a = s.next()
	require.Equal(t, mine.ID, a["replyToId"])
	require.Equal(t, []any{map[string]any{"type": "heart"}}, a["reactionsAdded"])
	s.Unreact(group.ID, mine.ID, "heart", ann)
	require.Equal(t, []any{map[string]any{"type": "heart"}}, s.next()["reactionsRemoved"])
	require.Empty(t, s.Visible(group.ID)[0].Reactions[ann.ID])
	s.Write(Post{Room: group.ID, Text: "well", Mention: true, Quote: mine.ID})
	a = s.next()
	require.Contains(t, a["attachments"].([]any)[0].(map[string]any)["content"], `itemtype="http://schema.skype.com/Reply" itemid="`+mine.ID+`"`)
	s.Overhear(true)
	s.Write(Post{Room: group.ID, Text: "overheard"})
	require.Equal(t, "overheard", s.next()["text"])
	s.Uninstall(group.ID, ann)
	require.Equal(t, "conversationUpdate", s.next()["type"])
	require.Equal(t, "remove", s.next()["action"])
	s.delivered()
}
