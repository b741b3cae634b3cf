package signal

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/signaltest"
)

// I#68167: streams that are closed at once are noticed, named and not asked for in a tight loop.
func TestAdapter_ShortStreams(t *testing.T) {
	r := prepare(t, signaltest.Options{})
	r.fake.Stream(signaltest.Closes)
	r.start(nil)
	r.until("it is named", func() bool {
		h := r.a.Health()
		return !h.Inbound && strings.Contains(h.Detail, "closes the event stream at once")
	})
	_, _, opened := r.fake.Streams()
	begun := time.Now()
	r.until("more attempts", func() bool { _, _, now := r.fake.Streams(); return now >= opened+3 })
	require.Greater(t, time.Since(begun), 60*time.Millisecond, "there is a backoff")
	require.Contains(t, r.log.String(), "closes the event stream at once")
	r.fake.Stream(signaltest.Streams)
	r.until("it hears again", func() bool { return r.a.Health().Inbound })
	r.fake.Write(signaltest.Post{From: ann, Text: "hello"})
	r.messages(1)
	_, most, _ := r.fake.Streams()
	require.LessOrEqual(t, most, 2)
}

// I#57862: a daemon for several accounts that streams nothing is deaf, and named with what to do.
func TestAdapter_MultiAccountDaemonThatDoesNotStream(t *testing.T) {
	r := prepare(t, signaltest.Options{Multi: true})
	r.fake.Stream(signaltest.Silent)
	r.start(nil)
	r.until("it is named", func() bool {
		h := r.a.Health()
		return !h.Inbound && strings.Contains(h.Detail, "start it for this account alone, signal-cli -a ACCOUNT daemon --http")
	})
	require.NotContains(t, r.a.Health().Detail, account)
	r.fake.Stream(signaltest.Streams)
	r.until("it hears again", func() bool { return r.a.Health().Inbound })
}

// A half-open stream: the connection stays and nothing comes, though the daemon answers. It is closed and a new one
// opened.
func TestAdapter_HalfOpenStream(t *testing.T) {
	r := prepare(t, signaltest.Options{})
	r.fake.Stream(signaltest.Silent)
	r.start(nil)
	r.until("one stream is open", func() bool { now, _, _ := r.fake.Streams(); return now == 1 })
	r.until("it is deaf", func() bool { return !r.a.Health().Inbound && r.a.Health().State == "deaf" })
	r.fake.Stream(signaltest.Streams)
	r.until("it hears", func() bool { return r.a.Health().Inbound })
	r.fake.Write(signaltest.Post{From: ann, Text: "hello"})
	r.messages(1)
	r.until("the silent one is closed", func() bool { now, _, _ := r.fake.Streams(); return now == 1 })
}

// A stream whose headers never come is given up, too.
func TestAdapter_StreamThatNeverBegins(t *testing.T) {
	r := prepare(t, signaltest.Options{})
	r.fake.Break("", faults.Fault{Kind: faults.HangBefore, Times: -1, On: func(q *http.Request) bool { return q.URL.Path == "/api/v1/events" }})
	r.start(nil)
	r.until("it is deaf", func() bool { h := r.a.Health(); return h.State == "deaf" && h.Detail == saySilent && !h.Inbound })
	r.fake.Heal()
	r.until("it hears", func() bool { return r.a.Health().Inbound })
}

// A daemon that sends no comments is not deaf while it answers.
func TestAdapter_QuietDaemon(t *testing.T) {
	r := run(t, signaltest.Options{Comments: time.Hour},
		func(o *Options) { o.Silence = 100 * time.Millisecond; o.CheckEvery = 20 * time.Millisecond })
	r.fake.Write(signaltest.Post{From: ann, Text: "hello"})
	r.messages(1)
	before := r.fake.Requests()
	r.until("it was checked", func() bool { return r.fake.Requests() >= before+3 })
	_, _, opened := r.fake.Streams()
	require.Equal(t, 1, opened)
	r.until("it is not deaf", func() bool { return r.a.Health().Inbound })
}

// I#71636, I#32337: the other program is named, and Run gives up; a server of another kind is named and asked again.
func TestAdapter_WrongServer(t *testing.T) {
	r := prepare(t, signaltest.Options{Kind: signaltest.RESTWrapper})
	r.start(nil)
	r.until("it gives up", func() bool { return r.a.Health().State == "paused" })
	err := r.stop()
	var start *platforms.StartError
	require.ErrorAs(t, err, &start)
	require.ErrorIs(t, err, platforms.ErrPermanent)
	require.ErrorContains(t, err, "is signal-cli-rest-api, another program")
	require.ErrorContains(t, err, "SIGNAL_HTTP_URL")

	r = prepare(t, signaltest.Options{})
	r.fake.Break("", faults.Fault{Kind: faults.Status, Status: 404, Times: -1})
	r.start(nil)
	r.until("it is named", func() bool { return strings.Contains(r.a.Health().Detail, "is no signal-cli daemon") })
	r.fake.Heal()
	r.until("it hears", func() bool { return r.a.Health().Inbound })
}

// An account that the daemon does not have is waited for: linking it mends that.
func TestAdapter_WaitsForItsAccount(t *testing.T) {
	r := prepare(t, signaltest.Options{Multi: true, Unlinked: true})
	r.start(func(o *Options) { o.BackoffMin, o.BackoffMax = time.Hour, time.Hour })
	r.until("it says what to do", func() bool {
		h := r.a.Health()
		return h.State == "unlinked" && strings.Contains(h.Detail, "herald signal link")
	})
	client := NewClient(r.url, false)
	defer client.Close()
	number, err := client.Link(t.Context(), "", func(uri string) {
		go func() {
			for range 1000 {
				if device, ok := r.fake.Scan(uri); ok {
					if device != DefaultDevice {
						t.Errorf("the device is %q", device)
					}
					return
				}
				<-time.After(time.Millisecond)
			}
		}()
	})
	require.NoError(t, err)
	require.Equal(t, account, number)
	r.a.Retry()
	r.until("it hears", func() bool { return r.a.Health().Inbound })
}

// What the core refuses is held in order, more than the queue takes, and over a restart; the stream is not read on.
func TestAdapter_HoldsWhatIsRefused(t *testing.T) {
	for _, numbered := range []bool{false, true} {
		t.Run(fmt.Sprintf("numbered %v", numbered), func(t *testing.T) {
			r := run(t, signaltest.Options{Numbered: numbered}, nil)
			r.sink.Fail(platforms.ErrRefused)
			var want []string
			for i := range 40 {
				text := fmt.Sprintf("message %d %s", i, strings.Repeat("long 😀 ", i*100))
				want = append(want, strings.TrimSpace(text))
				r.fake.Write(signaltest.Post{From: ann, Text: text})
			}
			r.until("all are held", func() bool {
				held, err := r.memory.Recall(t.Context(), heldSpace)
				events := map[string]bool{}
				for _, f := range held {
					events[f.Key[:strings.LastIndexByte(f.Key, '/')]] = true
				}
				return err == nil && len(events) == 40
			})
			require.False(t, r.a.Health().Inbound)
			require.Equal(t, "waiting", r.a.Health().State)
			r.halt()
			r.sink.Fail(nil)
			r.start(nil)
			for i, e := range r.messages(40) {
				require.Equal(t, want[i], e.Message.Text)
			}
			r.until("nothing is held any more", func() bool {
				held, err := r.memory.Recall(t.Context(), heldSpace)
				return err == nil && len(held) == 0
			})
		})
	}
}

// A daemon that numbers its events loses nothing when a connection breaks or Herald is away: what came after the last
// accepted event is asked for.
func TestAdapter_LastEventID(t *testing.T) {
	r := run(t, signaltest.Options{Numbered: true}, nil)
	r.fake.Write(signaltest.Post{From: ann, Text: "one"})
	r.messages(1)
	r.halt()
	r.fake.Write(signaltest.Post{From: ann, Text: "two"})
	r.fake.Lose() // no stream took it
	r.start(nil)
	require.Equal(t, "two", r.messages(2)[1].Message.Text)
	require.Len(t, r.sink.Offered(), 2, "what was accepted is not sent again")
}

// A stream goes on after what the core has accepted, never after what it only was offered; what makes no event moves
// the mark too.
func TestAdapter_LastEventIDIsAccepted(t *testing.T) {
	r := run(t, signaltest.Options{Numbered: true}, nil)
	r.fake.Write(signaltest.Post{From: ann, Text: "one"}) // number 0
	r.messages(1)
	r.fake.Types(ann, "", false) // number 1
	r.until("it is known", func() bool { return r.a.mark.get() == "1760000000000-1" })
	r.sink.Fail(platforms.ErrRefused)
	r.fake.Write(signaltest.Post{From: ann, Text: "two"}) // number 2
	r.until("it is refused", func() bool { return len(r.sink.Offered()) > 1 })
	require.NoError(t, r.fake.Cut())
	r.until("a new stream is open", func() bool { return len(r.fake.LastEventIDs()) == 2 })
	require.Equal(t, []string{"", "1760000000000-1"}, r.fake.LastEventIDs())
	r.sink.Fail(nil)
	require.Equal(t, "two", r.messages(2)[1].Message.Text)
}

// The same message again, from a daemon that was restarted in the middle, has the same id.
func TestAdapter_RedeliveryHasTheSameID(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	r.fake.Write(signaltest.Post{From: ann, Text: "one"})
	r.fake.Edit(signaltest.Post{From: ann, Text: "uno"}, 5)
	r.fake.React(ann, "", account, 6, "👍", true)
	r.messages(3)
	r.fake.Replay(3)
	r.until("they are offered again", func() bool { return len(r.sink.Offered()) >= 6 })
	got := r.sink.Offered()
	for i := range 3 {
		require.Equal(t, got[i], got[i+3])
	}
	require.True(t, got[2].Reaction.Removed)
	require.True(t, got[2].Reaction.OnOwn)
	r.messages(3)
}

// Lines of server-sent events in every form.
func TestEvents(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"data:one\n\ndata: two\n\n", []string{"one", "two"}},
		{"event:receive\r\ndata:one\r\n\r\n", []string{"one"}},
		{":\n:comment\ndata:one\ndata:two\n\n", []string{"one\ntwo"}},
		{"data\n\n", []string{""}},
		{"\n\n\nid:7\n\ndata:x\nid:8\nretry:5\nother\n\n", []string{"x"}},
		{"data:cut off", nil},
		{"data:" + strings.Repeat("x", 100_000) + "\n\n", []string{strings.Repeat("x", 100_000)}},
	} {
		src := newEvents(strings.NewReader(c.in), func() {})
		var got []string
		for {
			e, err := src.next()
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			got = append(got, string(e.data))
		}
		require.Equal(t, c.want, got, "%.40q", c.in)
	}
}

// An event over the limit is skipped; the next one comes.
func TestEvents_TooLong(t *testing.T) {
	for _, in := range []string{"data:" + strings.Repeat("x", eventLimit+9), strings.TrimSuffix(strings.Repeat("data:"+strings.Repeat("x",
		1<<20)+"\n", 5), "\n")} {
		src := newEvents(strings.NewReader(in+"\n\ndata:next\n\n"), func() {})
		_, err := src.next()
		require.ErrorIs(t, err, errEventTooLong)
		e, err := src.next()
		require.NoError(t, err)
		require.Equal(t, "next", string(e.data))
	}
}

// Any bytes: the reader ends, stays within its bounds, and gives what the decoder takes or refuses without a panic.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event:receive\ndata:{\"account\":\"+1\",\"envelope\":{\"source\":\"+15550000002\",\"timestamp\":1,\"dataMessage\":{\"message\":\"x\"}}}\n\n"))
	f.Add([]byte("data:{\"params\":{\"subscription\":0,\"result\":{\"envelope\":{\"sourceUuid\":\"" + annID + "\",\"timestamp\":1,\"syncMessage\":{\"sentMessage\":{\"message\":\"x\",\"groupInfo\":{\"groupId\":\"a\"}}}}}}}\n\n"))
	f.Add([]byte("event:receive\ndata:{\"account\":\"" + account + "\",\"envelope\":{\"source\":\"+15550000002\",\"sourceNumber\":\"+15550000002\",\"timestamp\":1700055555500000,\"dataMessage\":{\"message\":\"x\"}}}\n\n"))
	f.Add([]byte(":\nid:\x00\ndata\n\n\xff\xfe"))
	a, err := New(Options{Account: account, Groups: groups("*")})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, in []byte) {
		src := newEvents(strings.NewReader(string(in)), func() {})
		for {
			e, err := src.next()
			if errors.Is(err, errEventTooLong) {
				continue
			}
			if err != nil {
				return
			}
			event, reason := a.convert(t.Context(), e.data)
			if (event == nil) == (reason == "") {
				t.Fatalf("event %+v, reason %q", event, reason)
			}
			if event != nil {
				if err := event.Validate(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// Mentions of any shape never panic and never leave the text longer than its parts.
func FuzzSpoken(f *testing.F) {
	f.Add("a \uFFFC b", 2, 1, 0, 1)
	f.Add("😀\uFFFC", 2, 1, -5, 1<<30)
	f.Fuzz(func(t *testing.T, text string, s1, l1, s2, l2 int) {
		spoken(text, []mention{{Number: account, Start: s1, Length: l1}, {Number: ann, Start: s2, Length: l2}},
			func(number, _ string) bool { return number == account })
	})
}
