package discord

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/discordtest"
)

// away makes the bot miss what is said by say: its session is forgotten meanwhile.
func (r *rig) away(say func()) {
	r.t.Helper()
	r.stop()
	say()
	r.fake.Forget()
	r.start()
}

func catching(change func(*Missed)) func(*Options) {
	return func(o *Options) {
		o.Missed.Enabled = true
		if change != nil {
			change(&o.Missed)
		}
	}
}

// What was missed in places that were answered before is handed on once, and only what the bot would have answered.
func TestMissed_CaughtUpOnce(t *testing.T) {
	r := newRig(t, discordtest.Options{}, catching(nil))
	r.fake.Say(r.dm, "one")
	r.fake.Write(discordtest.Post{Channel: r.channel, Text: "two", MentionBot: true})
	r.fake.Write(discordtest.Post{Channel: r.thread, Text: "three", MentionBot: true})
	r.events(3)
	var missed discordtest.ID
	r.away(func() {
		r.fake.Say(r.dm, "four")
		r.fake.Say(r.channel, "not for the bot")
		missed = r.fake.Write(discordtest.Post{Channel: r.channel, Text: "five", MentionBot: true})
		r.fake.Say(r.thread, "six")
	})
	texts := map[string]platforms.Event{}
	for _, e := range r.events(6) {
		texts[e.Message.Text] = e
	}
	require.Contains(t, texts, "four")
	require.Contains(t, texts, "six")
	require.Equal(t, address(r.channel, missed), texts["five"].Address, "as if it had come live")
	r.mustSend(platforms.Outgoing{Address: texts["five"].Address, Text: words("answer")})
	require.Equal(t, []string{"answer"}, r.texts(missed))
	offered := len(r.sink.Offered())
	r.away(func() {})
	r.fake.Say(r.dm, "seven")
	r.until("a live message comes", func() bool { return len(r.sink.Events()) == 7 })
	for _, e := range r.sink.Offered()[offered:] {
		require.Equal(t, "seven", e.Message.Text, "nothing handled is offered again")
	}
}

// Without the setting nothing is read.
func TestMissed_Off(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.Say(r.dm, "one")
	r.events(1)
	r.away(func() { r.fake.Say(r.dm, "two") })
	require.Equal(t, 1, r.settle())
	require.Zero(t, r.fake.Calls("GET /channels/{channel}/messages"))
}

// The caps: how old, how many of a channel, how many at one start.
func TestMissed_Caps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Missed)
		want   []string
	}{
		"dispatches": {func(m *Missed) { m.Dispatches = 2 }, []string{"1", "2"}},
		"limit":      {func(m *Missed) { m.Limit = 3 }, []string{"1", "2", "3"}},
		"window":     {func(m *Missed) { m.Window = time.Millisecond }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, discordtest.Options{}, catching(c.change))
			r.fake.Say(r.dm, "0")
			r.events(1)
			r.away(func() {
				for i := range 5 {
					r.fake.Say(r.dm, strconv.Itoa(i+1))
				}
			})
			r.until("they are handed on", func() bool { return len(r.sink.Events()) >= len(c.want)+1 })
			r.fake.Say(r.channel, "nothing")
			n := r.settle()
			require.Equal(t, len(c.want)+1, n)
			for i, text := range c.want {
				require.Equal(t, text, r.sink.Events()[i+1].Message.Text)
			}
		})
	}
}

// Only the channels that are named, with their threads.
func TestMissed_Channels(t *testing.T) {
	r := prepareRig(t, discordtest.Options{}, nil)
	chain := r.change
	r.change = func(o *Options) {
		chain(o)
		o.Missed = Missed{Enabled: true, Channels: []string{string(r.channel)}}
	}
	r.start()
	r.fake.Say(r.dm, "one")
	r.fake.Write(discordtest.Post{Channel: r.thread, Text: "two", MentionBot: true})
	r.events(2)
	r.away(func() {
		r.fake.Say(r.dm, "in private")
		r.fake.Say(r.thread, "in the thread")
		r.fake.Write(discordtest.Post{Channel: r.channel, Text: "in the channel", MentionBot: true})
	})
	var got []string
	for _, e := range r.events(4)[2:] {
		got = append(got, e.Message.Text)
	}
	require.ElementsMatch(t, []string{"in the thread", "in the channel"}, got)
}

// A message that the core never takes is given up after the attempts, also over restarts.
func TestMissed_AttemptsAreCounted(t *testing.T) {
	r := newRig(t, discordtest.Options{}, catching(func(m *Missed) { m.Attempts = 2 }))
	r.fake.Say(r.dm, "one")
	r.events(1)
	bad := ""
	for i := range 4 {
		r.stop()
		if i == 0 {
			bad = string(r.fake.Say(r.dm, "poison"))
		}
		r.fake.Forget()
		r.sink.Fail(errors.New("it crashes"))
		offered := len(r.sink.Offered())
		r.start()
		if i < 2 {
			r.until("it is offered", func() bool { return len(r.sink.Offered()) > offered })
		} else {
			r.until("it is given up", func() bool { return strings.Count(r.log.String(), "it is given up") >= i-1 })
			require.Len(t, r.sink.Offered(), offered)
		}
		r.sink.Fail(nil)
	}
	facts, err := r.memory.Recall(context.Background(), trySpace)
	require.NoError(t, err)
	require.Len(t, facts, 1)
	require.Equal(t, trySpace+bad, facts[0].Key)
}
