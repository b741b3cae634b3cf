package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/telegramtest"
)

// countedMetrics counts.
type countedMetrics struct {
	mu      sync.Mutex
	dropped map[string]int
	polled  map[string]int
}

func (c *countedMetrics) Dropped(reason string) { c.add(&c.dropped, reason) }
func (c *countedMetrics) Polled(outcome string) { c.add(&c.polled, outcome) }
func (c *countedMetrics) GateWaited(time.Duration) {
}

func (c *countedMetrics) add(m *map[string]int, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key]++
}

func (c *countedMetrics) polls(outcome string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.polled[outcome]
}

// lockedLog is a log that a test can read while it is written.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.b.Bytes(), []byte(words))
}

// running is an adapter that runs until the test ends.
type running struct {
	*world
	a     *Adapter
	sink  *platformtest.Sink
	stop  func() error
	count *countedMetrics
	log   *lockedLog
}

// run starts an adapter on a fresh fake. change may alter its options.
func run(t *testing.T, change func(*Options)) *running {
	t.Helper()
	return runOn(t, startWorld(t), change)
}

func runOn(t *testing.T, w *world, change func(*Options)) *running {
	t.Helper()
	r := &running{world: w, sink: &platformtest.Sink{}, count: &countedMetrics{}, log: &lockedLog{}}
	o := w.options()
	o.Metrics, o.Log = r.count, zerolog.New(r.log)
	if change != nil {
		change(&o)
	}
	var err error
	r.a, err = New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.a.Run(ctx, r.sink) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = r.stop() })
	return r
}

func eventually(t *testing.T, cond func() bool, what string) {
	t.Helper()
	require.Eventually(t, cond, 10*time.Second, 2*time.Millisecond, what)
}

func (r *running) events(t *testing.T, n int) []platforms.Event {
	t.Helper()
	eventually(t, func() bool { return len(r.sink.Events()) >= n }, fmt.Sprintf("%d events", n))
	require.Len(t, r.sink.Events(), n)
	return r.sink.Events()
}

// The first poll waits for nothing: a direct message is answered while getMe hangs.
func TestPoll_DoesNotWaitForGetMe(t *testing.T) {
	w := startWorld(t)
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.HangBefore, Method: "getMe", Times: -1})
	w.fake.Say(person, "hello")
	r := runOn(t, w, nil)
	require.Equal(t, "hello", r.events(t, 1)[0].Message.Text)
	require.True(t, r.a.Health().Inbound)
	require.NoError(t, r.stop())
}

// A group message needs the bot's name. It stays with Telegram until the name is known.
func TestPoll_GroupsWaitForTheName(t *testing.T) {
	w := startWorld(t)
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 502, Method: "getMe", Times: 4})
	w.fake.Write(telegramtest.Post{Chat: group, Text: "@herald_test_bot hello"})
	r := runOn(t, w, func(o *Options) { o.RequireMention = true })
	e := r.events(t, 1)[0]
	require.Equal(t, "hello", e.Message.Text)
	require.True(t, e.Addressed)
	require.GreaterOrEqual(t, w.fake.Calls("getMe"), 5)
}

func TestPoll_UnaddressedIsCountedOrObserved(t *testing.T) {
	r := run(t, func(o *Options) { o.RequireMention = true })
	r.fake.Write(telegramtest.Post{Chat: group, Text: "between us"})
	r.fake.Say(person, "hi")
	require.Equal(t, "hi", r.events(t, 1)[0].Message.Text)
	require.Equal(t, 1, r.count.dropped[dropUnmentioned])

	r = run(t, func(o *Options) { o.RequireMention, o.ObserveUnmentioned = true, true })
	r.fake.Write(telegramtest.Post{Chat: group, Text: "between us"})
	e := r.events(t, 1)[0]
	require.True(t, e.Observed)
	require.False(t, e.Addressed)
}

// P2 and P3: what comes twice and backwards is handed on in the order of its ids, and again with its ids.
func TestPoll_DuplicatesAndReorder(t *testing.T) {
	r := run(t, nil)
	release := r.sink.Block()
	r.fake.Say(person, "0")
	eventually(t, func() bool { return len(r.sink.Offered()) == 1 }, "the first is offered")
	for i := 1; i <= 5; i++ {
		r.fake.Say(person, fmt.Sprint(i))
	}
	r.fake.Break(telegramtest.Fault{Trouble: telegramtest.Twice})
	r.fake.Break(telegramtest.Fault{Trouble: telegramtest.Backwards})
	release()
	for i, e := range r.events(t, 6) {
		require.Equal(t, fmt.Sprint(i), e.Message.Text)
	}
	require.Len(t, r.sink.Offered(), 6)
}

func TestPoll_AlbumIsOneMessage(t *testing.T) {
	r := run(t, func(o *Options) { o.RequireMention = true })
	pictures := []telegramtest.File{{Kind: "photo", Body: []byte("1")}, {Kind: "photo", Body: []byte("2")}, {Kind: "video", Name: "v.mp4", Body: []byte("3")}}
	r.fake.Write(telegramtest.Post{Chat: person, Text: "look", Files: pictures})
	r.fake.Write(telegramtest.Post{Chat: group, Text: "@herald_test_bot look", Files: pictures})
	events := r.events(t, 2)
	for _, e := range events {
		require.Equal(t, "look", e.Message.Text)
		require.Len(t, e.Message.Attachments, 3)
		require.True(t, e.Addressed)
	}
	eventually(t, func() bool { return r.fake.Pending() == 0 }, "all is confirmed")
	r.events(t, 2)
}

// An album that straddles two batches still is one message, and what stands before it is not held up.
func TestPoll_AlbumThatArrivesInPieces(t *testing.T) {
	r := run(t, func(o *Options) { o.AlbumWait = 150 * time.Millisecond })
	picture := func(n int, caption string) {
		raw := fmt.Sprintf(`{"message_id":%d,"media_group_id":"A","date":1764400000,"from":{"id":501,"first_name":"Pat"},"chat":{"id":501,"type":"private"},"caption":%q,"photo":[{"file_id":"p%d","file_unique_id":"u","width":1,"height":1,"file_size":1}]}`, n, caption, n)
		r.fake.Push("message", json.RawMessage(raw))
	}
	r.fake.Say(person, "before")
	picture(1, "all of them")
	require.Equal(t, "before", r.events(t, 1)[0].Message.Text)
	picture(2, "")
	picture(3, "")
	e := r.events(t, 2)[1]
	require.Equal(t, "all of them", e.Message.Text)
	require.Len(t, e.Message.Attachments, 3)
	r.fake.Say(person, "after")
	require.Equal(t, "after", r.events(t, 3)[2].Message.Text)
}

// The alarm of two daemons on one token: seen in health, logged once, and polling goes on.
func TestPoll_ConflictAlarm(t *testing.T) {
	r := run(t, nil)
	eventually(t, func() bool { return r.a.Health().Inbound }, "connected")
	other := runOn(t, r.world, nil)
	eventually(t, func() bool {
		return r.a.Health().State == "conflict" || other.a.Health().State == "conflict"
	}, "the alarm")
	loud := r
	if other.a.Health().State == "conflict" {
		loud = other
	}
	h := loud.a.Health()
	require.False(t, h.Inbound)
	require.Contains(t, h.Detail, "another process polls this bot")
	require.GreaterOrEqual(t, loud.count.polls("conflict"), conflictAlarm)
	require.Equal(t, 1, loud.log.count("another process polls this bot"))
	r.fake.Say(person, "still here")
	eventually(t, func() bool { return len(r.sink.Events())+len(other.sink.Events()) > 0 }, "polling goes on")
}

func TestPoll_TakesAWebhookOffAndKeepsWhatIsPending(t *testing.T) {
	w := startWorld(t)
	a, err := New(w.options())
	require.NoError(t, err)
	defer a.moves.CloseIdleConnections()
	hook := Options{Token: testToken, BaseURL: w.url, WebhookURL: "http://127.0.0.1:1/hook", WebhookSecret: "s"}
	old, err := New(hook)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- old.Run(ctx, &platformtest.Sink{}) }()
	eventually(t, func() bool { return w.fake.Calls("setWebhook") == 1 }, "the webhook is set")
	cancel()
	require.NoError(t, <-ended)
	w.fake.Say(person, "pending")
	r := runOn(t, w, nil)
	require.Equal(t, "pending", r.events(t, 1)[0].Message.Text)
	require.Equal(t, 1, w.fake.Calls("deleteWebhook"))
}

func TestPoll_RevokedTokenIsFinal(t *testing.T) {
	w := startWorld(t)
	w.fake.Revoke()
	r := runOn(t, w, nil)
	eventually(t, func() bool { return r.a.Health().State == "paused" }, "paused")
	err := r.stop()
	var start *platforms.StartError
	require.ErrorAs(t, err, &start)
	require.ErrorIs(t, err, platforms.ErrPermanent)
	require.Equal(t, "platforms.telegram.token", start.Setting)
	require.Contains(t, err.Error(), "Unauthorized")
	require.NotContains(t, err.Error(), "super-secret")
}

// An update that can't be read is counted and passed over; it must not hold up the others forever.
func TestPoll_UnreadableUpdateIsSkipped(t *testing.T) {
	r := run(t, nil)
	eventually(t, func() bool { return r.a.Health().Inbound }, "connected")
	r.fake.Push("message", json.RawMessage(`{"message_id":"no number"}`))
	r.fake.Push("message", json.RawMessage(`{"message_id":7,"date":1,"chat":{"id":501,"type":"private"},"from":{"id":501,"first_name":"Pat"},"text":"a future kind","forward_origin":{"type":"of_the_future"}}`))
	r.fake.Say(person, "behind it")
	events := r.events(t, 2)
	require.Equal(t, "a future kind", events[0].Message.Text, "what can be read of a message is")
	require.Equal(t, "behind it", events[1].Message.Text)
	require.Equal(t, 1, r.count.dropped["undecodable"])
	eventually(t, func() bool { return r.fake.Pending() == 0 }, "both are confirmed")
}

func TestPoll_GarbageAndRetryAfter(t *testing.T) {
	r := run(t, nil)
	eventually(t, func() bool { return r.a.Health().Inbound }, "connected")
	r.fake.Break(telegramtest.Fault{Trouble: telegramtest.Garbage, Method: "getUpdates", Times: 2})
	r.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 429, RetryAfter: time.Second, Method: "getUpdates"})
	require.NoError(t, r.fake.Cut())
	eventually(t, func() bool { return r.count.polls("http") > 0 }, "the 429")
	begun := time.Now()
	r.fake.Say(person, "later")
	r.events(t, 1)
	require.Greater(t, time.Since(begun), 800*time.Millisecond, "the retry window is kept")
}

// manualClock stands still until it is told.
type manualClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) Sleep(ctx context.Context, d time.Duration) error {
	c.advance(max(0, d))
	return ctx.Err()
}

func (c *manualClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// P12: a loop that has died without a word is noticed by the clock alone; a webhook may be quiet.
func TestHealth_Deaf(t *testing.T) {
	for _, webhook := range []string{"", "https://herald.example/hook"} {
		clock := &manualClock{now: time.Unix(1_700_000_000, 0)}
		a, err := New(Options{Token: "1:abcdefgh", Clock: clock, PollTimeout: 50 * time.Second, WebhookURL: webhook, WebhookSecret: "0123456789abcdef0123456789abcdef"})
		require.NoError(t, err)
		require.False(t, a.Health().Inbound)
		a.health.Fine()
		clock.advance(100 * time.Second)
		require.True(t, a.Health().Inbound)
		clock.advance(time.Second)
		got := a.Health()
		if webhook != "" {
			require.True(t, got.Inbound)
			continue
		}
		require.False(t, got.Inbound)
		require.Equal(t, "deaf", got.State)
		require.Equal(t, clock.Now().Add(-time.Second), got.Since)
		require.Contains(t, got.Detail, "no poll was answered for 1m40s")
		a.health.Fine()
		require.True(t, a.Health().Inbound)
	}
}

// After a day without updates the offset is left out: Telegram may number afresh, below it.
func TestPoll_OffsetIsForgottenAfterADay(t *testing.T) {
	r := run(t, nil)
	r.fake.Say(person, "one")
	r.events(t, 1)
	require.NoError(t, r.stop())
	clock := &manualClock{now: time.Now()}
	a, err := New(func() Options { o := r.options(); o.Clock, o.PollMargin = clock, time.Minute; return o }())
	require.NoError(t, err)
	defer a.moves.CloseIdleConnections()
	p := &poller{a: a, url: r.url + "/bot" + testToken + "/getUpdates", allowed: "[]", quick: true, offset: 1 << 40, last: clock.Now()}
	_, _, err = p.ask(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1<<40), p.offset)
	clock.advance(25 * time.Hour)
	_, _, err = p.ask(t.Context())
	require.NoError(t, err)
	require.Zero(t, p.offset)
}
