package process

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"herald/tools"
)

// say prints and lets the news pass.
func say(p *player, text string) {
	p.say(text)
	synctest.Wait()
}

func TestWatch_TellsMatchingLines(t *testing.T) {
	on(t, func(s *show) {
		p := s.start(alice, Request{Watch: []string{"listening on", "ERROR"}})
		say(p, "starting\nlist")
		require.Empty(t, s.shelf.told())
		say(p, "ening on :80\nother\nERROR no disk\nrest")
		news := s.shelf.told()
		require.Len(t, news, 1)
		require.Equal(t, p.id+"/watch/1", news[0].ID)
		require.Contains(t, news[0].Text, "has printed what is watched for")
		require.True(t, strings.HasSuffix(news[0].Text, "\nlistening on :80\nERROR no disk"))
		time.Sleep(WatchCooldown)
		say(p, strings.Repeat("\nERROR", 30))
		p.end(0)
		synctest.Wait()
		news = s.shelf.told()
		require.Len(t, news, 2, "a watch does not tell the end")
		require.Contains(t, news[1].Text, "[9 more lines matched]")
		require.Equal(t, 2, s.shelf.record(p.id).Watch.Given)
	})
}

// notify_on_complete goes before watch_patterns.
func TestWatch_NotifyWins(t *testing.T) {
	on(t, func(s *show) {
		p := s.start(alice, Request{Watch: []string{"x"}, Notify: true})
		say(p, "x\n")
		require.Empty(t, s.shelf.told())
	})
}

// Within the cooldown nothing is told; three strikes in a row end the watch and promote it to the news of the end.
func TestWatch_CooldownAndStrikes(t *testing.T) {
	on(t, func(s *show) {
		p := s.start(alice, Request{Watch: []string{"x"}})
		for round := range 3 {
			say(p, "x\n") // told
			time.Sleep(time.Second)
			say(p, "x\n") // a strike
			say(p, "x\n") // of the same window
			if round < 2 {
				require.Len(t, s.shelf.told(), round+1)
			}
			time.Sleep(WatchCooldown)
		}
		news := s.shelf.told()
		require.Len(t, news, 4)
		require.Contains(t, news[1].Text, "[2 lines that matched since the last news were not told]")
		require.Equal(t, p.id+"/watch/off", news[3].ID)
		require.Contains(t, news[3].Text, "It is watched no longer; its end will be told")
		say(p, "x\n")
		require.Len(t, s.shelf.told(), 4)
		p.end(0)
		synctest.Wait()
		require.Len(t, s.shelf.told(), 5)
	})
}

// A window without a strike forgives the ones before.
func TestWatch_QuietWindowResetsStrikes(t *testing.T) {
	on(t, func(s *show) {
		p := s.start(alice, Request{Watch: []string{"x"}})
		strike := func() { say(p, "x\n"); say(p, "x\n"); time.Sleep(WatchCooldown) }
		strike()
		strike()
		say(p, "x\n")
		time.Sleep(WatchCooldown)
		strike()
		strike()
		require.Len(t, s.shelf.told(), 5)
		require.False(t, s.shelf.record(p.id).Watch.Off)
	})
}

// After its eighth news a process is watched no longer, also over a restart.
func TestWatch_LifetimeCap(t *testing.T) {
	on(t, func(s *show) {
		p := s.start(alice, Request{Watch: []string{"x"}})
		for i := range MaxMatches + 2 {
			say(p, fmt.Sprintf("x %d\n", i))
			time.Sleep(WatchCooldown)
			if i == 4 {
				s.crash()
			}
		}
		news := s.shelf.told()
		require.Len(t, news, MaxMatches+1)
		require.Equal(t, p.id+"/watch/off", news[MaxMatches].ID)
		s.crash()
		p.end(0)
		synctest.Wait()
		require.Len(t, s.shelf.told(), MaxMatches+2, "its end is told")
	})
}

// More than 15 news in 10 s, of all processes, hold them all back for 30 s: each session hears of its own alone.
func TestWatch_Breaker(t *testing.T) {
	on(t, func(s *show) {
		bob := tools.Caller{Session: "s-bob", Key: "k-bob"}
		var all []*player
		for range BreakerEvents + 3 {
			all = append(all, s.start(alice, Request{Watch: []string{"x"}}))
		}
		other := s.start(bob, Request{Watch: []string{"x"}})
		for _, p := range all {
			say(p, "x\n")
		}
		say(other, "x\n")
		matches, tripped, released := count(s.shelf.told())
		require.Equal(t, []int{BreakerEvents, 1, 0}, []int{matches, tripped, released})
		time.Sleep(BreakerPause + time.Second)
		synctest.Wait()
		matches, tripped, released = count(s.shelf.told())
		require.Equal(t, []int{BreakerEvents, 1, 2}, []int{matches, tripped, released})
		for _, n := range s.shelf.told() {
			if strings.HasPrefix(n.ID, "breaker/released/s-bob") {
				require.Contains(t, n.Text, "1 were held back")
				require.Equal(t, "s-bob", n.Owner.Session)
			}
			if strings.HasPrefix(n.ID, "breaker/released/s-alice") {
				require.Contains(t, n.Text, "3 were held back")
			}
		}
		say(other, "x\n")
		matches, _, _ = count(s.shelf.told())
		require.Equal(t, BreakerEvents+1, matches)
	})
}

func count(news []News) (matches, tripped, released int) {
	for _, n := range news {
		switch {
		case strings.Contains(n.ID, "/watch/"):
			matches++
		case strings.HasPrefix(n.ID, "breaker/tripped/"):
			tripped++
		case strings.HasPrefix(n.ID, "breaker/released/"):
			released++
		}
	}
	return matches, tripped, released
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"text\n":                            "text\n",
		"\x1b[1;31mred\x1b[0m":              "red",
		"\x1b]0;title\x07x\x1b]8;;u\x1b\\y": "xy",
		"one\r\ntwo\r\n":                    "one\ntwo\n",
		"10%\r50%\rdone\nnext":              "done\nnext",
		"\x1b(Ba\x08b\x07":                  "ab",
		"\x1b[?25l\x1b[2Kspin":              "spin",
		"tab\tstays":                        "tab\tstays",
	} {
		require.Equal(t, want, plain(in), "%q", in)
	}
}
