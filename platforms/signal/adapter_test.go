package signal

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/signaltest"
	"herald/platforms/wire"
)

const patience = 15 * time.Second

// running is an adapter on a fake daemon.
type running struct {
	*world
	t       *testing.T
	a       *Adapter
	sink    *platformtest.Sink
	log     *safeBuffer
	dropped *counts
	stop    func() error
}

// safeBuffer is a log that tests read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// counts is Metrics.
type counts struct {
	mu      sync.Mutex
	dropped map[string]int
	polled  map[string]int
}

func (c *counts) Polled(outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.polled[outcome]++
}

func (c *counts) Dropped(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped[reason]++
}

func (c *counts) GateWaited(time.Duration) {}

func (c *counts) of(reason string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped[reason]
}

func run(t *testing.T, o signaltest.Options, change func(*Options)) *running {
	r := prepare(t, o)
	r.start(change)
	r.until("it hears", func() bool { return r.a.Health().Inbound })
	return r
}

func prepare(t *testing.T, o signaltest.Options) *running {
	return &running{world: startWorld(t, o), t: t, sink: &platformtest.Sink{}, log: &safeBuffer{}}
}

func (r *running) start(change func(*Options)) {
	r.dropped = &counts{dropped: map[string]int{}, polled: map[string]int{}}
	r.a = r.adapter(r.t, func(o *Options) {
		o.Log, o.Metrics = zerolog.New(r.log), r.dropped
		if change != nil {
			change(o)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	a := r.a
	go func() { ended <- a.Run(ctx, r.sink) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	stop := r.stop
	r.t.Cleanup(func() { _ = stop() })
}

// halt stops the adapter and waits until the daemon has noticed: what it writes to a stream that nobody reads is lost.
func (r *running) halt() {
	require.NoError(r.t, r.stop())
	r.until("the daemon notices", func() bool { now, _, _ := r.fake.Streams(); return now == 0 })
}

func (r *running) until(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			r.t.Fatalf("waited in vain: %s (health %+v)\n%s", what, r.a.Health(), r.log)
		}
	}
}

// messages waits until n events were kept and returns them.
func (r *running) messages(n int) []platforms.Event {
	r.t.Helper()
	r.until("events", func() bool { return len(r.sink.Events()) >= n })
	events := r.sink.Events()
	require.Len(r.t, events, n, "%+v", events[len(events)-1])
	return events
}

func (r *running) send(out platforms.Outgoing) (platforms.Receipt, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.a.Send(ctx, out)
}

func text(s string) platforms.Text { return platforms.Text{Body: s, Plain: s, Markdown: s} }

// Identity: the id is the number where it is known, else the UUID; a chat keeps the id it began with, over restarts.
func TestAdapter_NumberAndUUID(t *testing.T) {
	const privateID, lateID = "00000000-0000-4000-8000-0000000000aa", "00000000-0000-4000-8000-0000000000bb"
	r := prepare(t, signaltest.Options{})
	r.fake.AddPerson(signaltest.Person{Number: "+15550000010", UUID: privateID, Name: "Pat", Private: true})
	r.fake.AddPerson(signaltest.Person{UUID: lateID, Name: "Lou"})
	r.start(nil)
	r.until("it hears", func() bool { return r.a.Health().Inbound })
	r.fake.Write(signaltest.Post{From: ann, Text: "one"})
	r.fake.Write(signaltest.Post{From: privateID, Text: "two"})
	r.fake.Write(signaltest.Post{From: lateID, Text: "three"})
	got := r.messages(3)
	require.Equal(t, platforms.User{ID: ann, Alt: annID, Name: "Ann"}, got[0].Sender)
	require.Equal(t, platforms.User{ID: "+15550000010", Alt: privateID, Name: "Pat"}, got[1].Sender, "the contact list has the number")
	require.Equal(t, platforms.User{ID: lateID, Alt: lateID, Name: "Lou"}, got[2].Sender)
	require.EqualValues(t, lateID, got[2].Address.Chat)

	r.halt()
	r.fake.AddPerson(signaltest.Person{Number: "+15550000011", UUID: lateID, Name: "Lou"}) // now we know the number
	r.start(nil)
	r.fake.Write(signaltest.Post{From: lateID, Text: "four"})
	late := r.messages(4)[3]
	require.Equal(t, platforms.User{ID: "+15550000011", Alt: lateID, Name: "Lou"}, late.Sender)
	require.EqualValues(t, lateID, late.Address.Chat, "the conversation goes on where it was")
	_, err := r.send(platforms.Outgoing{Address: late.Address, Text: text("hi")})
	require.NoError(t, err)
	require.Len(t, r.fake.Visible(lateID), 1)
	require.Equal(t, []any{lateID}, r.fake.Calls("send")[0].Params["recipient"], "people are reached by UUID")
}

// What makes no event, each with its counter.
func TestAdapter_Drops(t *testing.T) {
	r := run(t, signaltest.Options{}, func(o *Options) { o.Groups = groups("AAAA") })
	r.fake.Story(ann, "my day")
	r.fake.ProfileKey(ann)
	r.fake.Types(ann, "", false)
	r.fake.Reads(ann, 1, 2)
	r.fake.Undecryptable(ann)
	r.fake.Write(signaltest.Post{From: account, Text: "my own"})
	r.fake.Write(signaltest.Post{From: ann, Group: r.group, Text: "in a group that is not answered"})
	r.fake.Sync(signaltest.Post{To: ann, Text: "from my phone to Ann"})
	r.fake.Raw("data:{not json", "")
	r.fake.Raw(`data:{"account":"+15559999999","envelope":{"source":"+15550000002","sourceNumber":"+15550000002","timestamp":5,"dataMessage":{"message":"for another account"}}}`)
	r.fake.Raw(`data:{"account":"` + account + `","envelope":{"timestamp":5,"dataMessage":{"message":"from nobody"}}}`)
	r.fake.Raw("some line", ": a comment", "retry: 5")
	r.fake.Write(signaltest.Post{From: ann, Text: "a message"})
	require.Equal(t, "a message", r.messages(1)[0].Message.Text)
	for reason, n := range map[string]int{dropStory: 1, dropEmpty: 1, dropTyping: 1, dropReceipt: 1, dropUndecryptable: 1, dropOwn: 2,
		dropGroup:       1,
		dropUndecodable: 1, dropAccount: 1, dropNoSender: 1} {
		require.Equal(t, n, r.dropped.of(reason), reason)
	}
	require.Contains(t, r.log.String(), "signal-cli serves +155****9999 and not SIGNAL_ACCOUNT")
	require.NotContains(t, r.log.String(), "+15559999999")
}

// I#23064: what the owner writes on the phone counts in Note to Self and in groups.
func TestAdapter_LinkedPhone(t *testing.T) {
	r := run(t, signaltest.Options{}, func(o *Options) { o.RequireMention = false })
	r.fake.Sync(signaltest.Post{Text: "a note"})
	r.fake.Sync(signaltest.Post{Group: r.group, Text: "from my phone"})
	got := r.messages(2)
	require.EqualValues(t, account, got[0].Address.Chat)
	require.True(t, got[0].Addressed)
	require.EqualValues(t, account, got[0].Sender.ID)
	require.EqualValues(t, accountID, got[0].Sender.Alt)
	require.Equal(t, platforms.Group, got[1].ChatType)
	require.Equal(t, "from my phone", got[1].Message.Text)
	_, err := r.send(platforms.Outgoing{Address: got[0].Address, Text: text("noted"), ReplyTo: got[0].Message.ID})
	require.NoError(t, err)
	require.Equal(t, "noted", r.fake.Visible(account)[0].Text)
}

// The copy of our own message never comes back as a person's, also when it is faster than the send's answer.
func TestAdapter_EchoesAreRaceFree(t *testing.T) {
	r := run(t, signaltest.Options{}, func(o *Options) { o.RequireMention = false })
	for _, chat := range []string{account, "group:" + r.group} {
		group := strings.TrimPrefix(chat, "group:")
		if group == account {
			group = ""
		}
		arrived := r.dropped.of(dropEcho)
		r.fake.BeforeAnswer(func(method string) {
			if method != "send" {
				return
			}
			all := r.fake.Visible(strings.TrimPrefix(chat, "group:"))
			last := all[len(all)-1]
			r.fake.Sync(signaltest.Post{Group: group, Text: last.Text, At: last.Timestamp})
			// The stream has given the copy to the adapter before the answer is written.
			r.fake.AwaitHanded(patience)
		})
		_, err := r.send(platforms.Outgoing{Address: r.at(chat), Text: text("from us to " + chat)})
		require.NoError(t, err)
		r.fake.BeforeAnswer(nil)
		r.until("the copy is known", func() bool { return r.dropped.of(dropEcho) == arrived+1 })
	}
	require.Empty(t, r.sink.Events())
	// A message of the same text that the person wrote is a person's.
	r.fake.Sync(signaltest.Post{Text: "from us to " + account})
	require.Len(t, r.messages(1), 1)
}

// A send whose answer was lost is known by its text.
func TestAdapter_EchoOfAnUnknownSend(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	r.fake.Break("send", faults.Fault{Kind: faults.ResetAfter})
	_, err := r.send(platforms.Outgoing{Address: r.at(account), Text: text("did it arrive?")})
	require.Equal(t, platforms.Unknown, platforms.AsSendError(err).Certainty)
	sent := r.fake.Visible(account)
	require.Len(t, sent, 1)
	r.fake.Sync(signaltest.Post{Text: sent[0].Text, At: sent[0].Timestamp})
	r.fake.Sync(signaltest.Post{Text: "next"})
	require.Equal(t, "next", r.messages(1)[0].Message.Text)
}

// Gates of groups: which are answered, mention, quote of ours, patterns, free groups.
func TestAdapter_GroupGates(t *testing.T) {
	mention := func(r *running) signaltest.Post {
		return signaltest.Post{Text: signaltest.Placeholder + " hello", Mentions: []string{accountID}}
	}
	plain := func(*running) signaltest.Post { return signaltest.Post{Text: "hello"} }
	quote := func(*running) signaltest.Post {
		return signaltest.Post{Text: "hello", Quote: &signaltest.Quote{Timestamp: 7, Author: account, Text: "what we said"}}
	}
	for _, c := range []struct {
		name      string
		change    func(*running, *Options)
		post      func(*running) signaltest.Post
		kept      bool
		addressed bool
		reason    string
	}{
		{"groups are off", func(_ *running, o *Options) { o.Groups = nil }, mention, false, false, dropGroup},
		{"this group", func(r *running, o *Options) { o.Groups, o.RequireMention = groups("group:"+r.group), false }, plain, true, false, ""},
		{"another group", func(_ *running, o *Options) { o.Groups = groups("AAAA") }, mention, false, false, dropGroup},
		{"narrowed", func(_ *running, o *Options) { o.AllowedChats = []string{"group:AAAA"} }, mention, false, false, dropChat},
		{"no mention", nil, plain, false, false, dropUnmentioned},
		{"a mention", nil, mention, true, true, ""},
		{"a quote of ours", nil, quote, true, true, ""},
		{"a pattern", func(_ *running, o *Options) { o.MentionPatterns = []string{"(", `\bHELLO\b`} }, plain, true, true, ""},
		{"a free group", func(r *running, o *Options) { o.FreeChats = []string{r.group} }, plain, true, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := prepare(t, signaltest.Options{})
			r.start(func(o *Options) {
				if c.change != nil {
					c.change(r, o)
				}
			})
			r.until("it hears", func() bool { return r.a.Health().Inbound })
			post := c.post(r)
			post.From, post.Group = ann, r.group
			r.fake.Write(post)
			r.fake.Write(signaltest.Post{From: ann, Text: "the end"})
			n := 1
			if c.kept {
				n = 2
			}
			got := r.messages(n)
			if !c.kept {
				require.Equal(t, 1, r.dropped.of(c.reason))
				return
			}
			require.Equal(t, "hello", got[0].Message.Text)
			require.Equal(t, c.addressed, got[0].Addressed)
			require.Equal(t, "Team", got[0].ChatName)
		})
	}
}

// Mentions: others become ids, ours goes, ranges count in UTF-16 units, nonsense is ignored.
func TestSpoken(t *testing.T) {
	own := func(number, _ string) bool { return number == account }
	at := func(start int, number string) mention { return mention{Number: number, Start: start, Length: 1} }
	for _, c := range []struct {
		text     string
		mentions []mention
		want     string
		named    bool
	}{
		{"plain", nil, "plain", false},
		{"\uFFFC do it", []mention{at(0, account)}, "do it", true},
		{"hey \uFFFC do it", []mention{at(4, account)}, "hey do it", true},
		{"do it \uFFFC", []mention{at(6, account)}, "do it", true},
		{"😀 \uFFFC and \uFFFC!", []mention{at(9, bob), at(3, account)}, "😀 and @" + bob + "!", true},
		{"\uFFFC", []mention{{UUID: annID, Start: 0, Length: 1}}, "@" + annID, false},
		{"no placeholder", []mention{at(2, bob), at(-1, bob), at(99, bob), {Number: bob, Start: 0, Length: 99}}, "no placeholder", false},
		{"twice \uFFFC", []mention{at(6, bob), at(6, bob)}, "twice @" + bob, false},
	} {
		got, named := spoken(c.text, c.mentions, own)
		require.Equal(t, c.want, got, c.text)
		require.Equal(t, c.named, named, c.text)
	}
}

// Quotes and reactions in groups, where the author has to be said.
func TestAdapter_QuotesInGroups(t *testing.T) {
	r := run(t, signaltest.Options{}, func(o *Options) { o.RequireMention = false })
	at := r.fake.Write(signaltest.Post{From: bob, Group: r.group, Text: "who is right?"})
	r.fake.Write(signaltest.Post{From: ann, Group: r.group, Text: "he is", Quote: &signaltest.Quote{Timestamp: at, Author: bob, Text: "who is right?"}})
	got := r.messages(2)
	require.Equal(t, &platforms.Quote{ID: idOf(at, bobID), Text: "who is right?", AuthorID: bob, AuthorName: "Bob"}, got[1].Message.ReplyTo)
	_, err := r.send(platforms.Outgoing{Address: got[0].Address, Text: text("you are"), ReplyTo: got[0].Message.ID})
	require.NoError(t, err)
	require.Equal(t, &signaltest.Quote{Timestamp: at, Author: bobID, Text: "who is right?"}, r.fake.Visible(r.group)[0].Quote)
	ctx := t.Context()
	require.NoError(t, r.a.React(ctx, got[0].Address, got[0].Message.ID, "👀"))
	require.Equal(t, "👀", r.fake.Reaction(r.group, bob, at))
	require.NoError(t, r.a.React(ctx, got[0].Address, got[0].Message.ID, ""))
	require.Empty(t, r.fake.Reaction(r.group, bob, at))
	require.Equal(t, "👀", r.fake.Calls("sendReaction")[1].Params["emoji"], "taking it off names it")

	r.halt() // another process: the text is gone, the quote is not
	r.start(nil)
	_, err = r.send(platforms.Outgoing{Address: got[0].Address, Text: text("still"), ReplyTo: got[0].Message.ID})
	require.NoError(t, err)
	require.Equal(t, &signaltest.Quote{Timestamp: at, Author: bobID}, r.fake.Visible(r.group)[1].Quote)
}

// Sends that fail, and what is said of them.
func TestAdapter_SendFailures(t *testing.T) {
	r := run(t, signaltest.Options{Multi: true}, nil)
	for _, c := range []struct {
		name string
		do   func()
		out  platforms.Outgoing
		kind platforms.FailureKind
		sure platforms.Certainty
		says string
	}{
		{"a stranger", nil, platforms.Outgoing{Address: r.at("+15559990000"), Text: text("x")}, platforms.NotFound, platforms.NotSent, "not on Signal"},
		{"no such group", nil, platforms.Outgoing{Address: r.at("group:AAAA"), Text: text("x")}, platforms.NotFound, platforms.NotSent, "Group not found"},
		{"a left group", func() { r.fake.Leave(r.group) }, platforms.Outgoing{Address: r.at("group:" + r.group), Text: text("x")}, platforms.Forbidden, platforms.NotSent, "not a group member"},
		{"nonsense", nil, platforms.Outgoing{Address: r.at("Ann"), Text: text("x")}, platforms.BadRequest, platforms.NotSent, "no number"},
		{"another account", nil, platforms.Outgoing{Address: platforms.Address{Platform: Platform, Account: "+19", Chat: ann}, Text: text("x")}, platforms.BadRequest, platforms.NotSent, "not of this account"},
		{"an edit", nil, platforms.Outgoing{Address: r.at(ann), Edit: "1:x", Text: text("x")}, platforms.Unsupported, platforms.NotSent, "not edited"},
		{"a changed safety number", func() { r.fake.Refuse(annID, "IDENTITY_FAILURE") }, platforms.Outgoing{Address: r.at(ann), Text: text("x")}, platforms.BadRequest, platforms.NotSent, "trust"},
		{"no network", func() { r.fake.Refuse(annID, ""); r.fake.Offline(true) }, platforms.Outgoing{Address: r.at(ann), Text: text("x")}, platforms.Transient, platforms.Unknown, "lost the connection"},
		{"the wrong server", func() { r.fake.Offline(false); r.fake.Become(signaltest.RESTWrapper) }, platforms.Outgoing{Address: r.at(ann), Text: text("x")}, platforms.Transient, platforms.NotSent, "HTTP 404"},
		{"429 of a proxy", func() {
			r.fake.Become(signaltest.Daemon)
			r.fake.Break("send", faults.Fault{Kind: faults.Status, Status: 429, Header: map[string][]string{"Retry-After": {"7"}}})
		}, platforms.Outgoing{Address: r.at(ann), Text: text("x")}, platforms.RateLimited, platforms.NotSent, "429"},
	} {
		if c.do != nil {
			c.do()
		}
		_, err := r.send(c.out)
		var e *platforms.SendError
		require.ErrorAs(t, err, &e, c.name)
		require.Equal(t, c.kind, e.Kind, "%s: %v", c.name, e)
		require.Equal(t, c.sure, e.Certainty, "%s: %v", c.name, e)
		require.Contains(t, e.Error(), c.says, c.name)
		require.NotContains(t, e.Error(), "+15559990000")
	}
	require.Empty(t, r.fake.Visible(ann))
	require.InDelta(t, 7, platforms.AsSendError(r.a.gate.Check(wire.Account)).RetryAfter.Seconds(), 1)
}

// Rate limits without a time get one of ours, and the whole account waits.
func TestAdapter_RateLimitWithoutATime(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	r.fake.Refuse(annID, "RATE_LIMIT_FAILURE")
	_, err := r.send(platforms.Outgoing{Address: r.at(ann), Text: text("x")})
	e := platforms.AsSendError(err)
	require.Equal(t, platforms.RateLimited, e.Kind)
	require.Equal(t, defaultWait, e.RetryAfter)
	require.True(t, e.AccountWide)
	before := r.fake.Requests()
	_, err = r.send(platforms.Outgoing{Address: r.at(bob), Text: text("x")})
	require.Equal(t, platforms.RateLimited, platforms.AsSendError(err).Kind)
	require.Error(t, r.a.Typing(t.Context(), r.at(bob)))
	require.Equal(t, before, r.fake.Requests())
}

// In a group a message that reached somebody is sent; who missed it is told.
func TestAdapter_GroupPartialFailure(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	r.fake.Refuse(bob, "UNREGISTERED_FAILURE")
	receipt, err := r.send(platforms.Outgoing{Address: r.at("group:" + r.group), Text: text("x")})
	require.NoError(t, err)
	require.Empty(t, receipt.Message)
	require.Equal(t, []string{"1 of 2 members of this group did not get the message (UNREGISTERED_FAILURE)."}, receipt.Notes)
	r.fake.Refuse(ann, "UNREGISTERED_FAILURE")
	_, err = r.send(platforms.Outgoing{Address: r.at("group:" + r.group), Text: text("y")})
	require.Equal(t, platforms.NotFound, platforms.AsSendError(err).Kind)
	require.Len(t, r.fake.Visible(r.group), 1)
}

// Empty is success without a call; styles go out as one or several, and one outside its text stays behind.
func TestAdapter_TextAndStyles(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	before := r.fake.Requests()
	_, err := r.send(platforms.Outgoing{Address: r.at(ann)})
	require.NoError(t, err)
	require.Equal(t, before, r.fake.Requests())
	out := platforms.Outgoing{Address: r.at(ann), Text: platforms.Text{Body: "😀 bold", Styles: []platforms.Style{{Start: 3, Length: 4, Kind: "BOLD"}}}}
	_, err = r.send(out)
	require.NoError(t, err)
	out.Text.Styles = append(out.Text.Styles, platforms.Style{Start: 0, Length: 2, Kind: "SPOILER"},
		platforms.Style{Start: 5, Length: 9, Kind: "ITALIC"}, platforms.Style{Start: -1, Length: 1, Kind: "ITALIC"})
	_, err = r.send(out)
	require.NoError(t, err)
	calls := r.fake.Calls("send")
	require.Equal(t, "3:4:BOLD", calls[0].Params["textStyle"])
	require.NotContains(t, calls[0].Params, "textStyles")
	require.Equal(t, []any{"3:4:BOLD", "0:2:SPOILER"}, calls[1].Params["textStyles"])
}

// Typing: off before a message, a pause after three failures, one warning.
func TestAdapter_Typing(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	ctx := t.Context()
	require.NoError(t, r.a.Typing(ctx, r.at(ann)))
	require.True(t, r.fake.Typing(ann))
	_, err := r.send(platforms.Outgoing{Address: r.at(ann), Text: text("done")})
	require.NoError(t, err)
	calls := r.fake.Calls("sendTyping")
	require.Equal(t, true, calls[1].Params["stop"])
	_, err = r.send(platforms.Outgoing{Address: r.at(ann), Text: text("more")})
	require.NoError(t, err)
	require.Len(t, r.fake.Calls("sendTyping"), 2, "what is off is not taken off")

	r.fake.Break("sendTyping", faults.Fault{Kind: faults.Status, Status: 500, Times: -1})
	before := r.fake.Requests()
	failures := 0
	for range 10 {
		if r.a.Typing(ctx, r.at(ann)) != nil {
			failures++
		}
	}
	require.Equal(t, 3, failures)
	require.Equal(t, before+3, r.fake.Requests())
	require.Equal(t, 1, strings.Count(r.log.String(), "the typing sign can't be shown"))
	r.until("the pause ends", r.a.typing.allowed)
	require.Error(t, r.a.Typing(ctx, r.at(ann)))
	require.False(t, r.a.typing.allowed(), "the pause is longer now")
	r.fake.Heal()
	r.until("it works again", func() bool { return r.a.Typing(ctx, r.at(ann)) == nil && r.fake.Typing(ann) })
}

// The pauses are 16, 32 and 60 seconds.
func TestTyping_Pauses(t *testing.T) {
	y := newTyping(DefaultTypingPause)
	var pauses []time.Duration
	for range 6 {
		y.result(errors.New("no"))
		pauses = append(pauses, y.pause)
	}
	require.Equal(t, []time.Duration{0, 0, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute}, pauses)
}

// A read receipt goes out when the core has begun to answer, never before.
func TestAdapter_ReadReceipts(t *testing.T) {
	for _, on := range []bool{false, true} {
		r := run(t, signaltest.Options{}, func(o *Options) { o.ReadReceipts = on })
		at := r.fake.Write(signaltest.Post{From: ann, Text: "hello"})
		r.fake.Write(signaltest.Post{From: bob, Text: "may I?"})
		r.messages(2)
		require.Empty(t, r.fake.Receipts(), "it would tell a stranger that somebody is there")
		_, err := r.send(platforms.Outgoing{Address: r.at(ann), Text: text("hi")})
		require.NoError(t, err)
		if !on {
			require.Empty(t, r.fake.Receipts())
			continue
		}
		require.Equal(t, []signaltest.Receipt{{To: annID, Kind: "read", Timestamps: []int64{at}}}, r.fake.Receipts())
	}
}

// Names for people and groups.
func TestAdapter_Rooms(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	rooms, err := r.a.Rooms(t.Context())
	require.NoError(t, err)
	require.Equal(t, platforms.Room{Address: r.at("group:" + r.group), Type: platforms.Group, Name: "Team"}, rooms[0])
	var seen platforms.Room
	for _, room := range rooms {
		if room.Name == "Bob" {
			seen = room
		}
	}
	require.Equal(t, platforms.Room{Address: r.at(bob), Type: platforms.DM, Name: "Bob", User: bob, Aliases: []string{bob, bobID}}, seen)
	at, err := r.a.Open(t.Context(), bobID)
	require.NoError(t, err)
	require.Equal(t, r.at(bob), at)
	_, err = r.a.Open(t.Context(), "Bob")
	require.Error(t, err)
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"to +15551234567: no": "to +155****4567: no", "+4915112345678,+15551234567": "+491****5678,+155****4567",
		"a+b 1+1=2 +12": "a+b 1+1=2 +12", "2026-11-29T20:13:49+0100": "2026-11-29T20:13:49+0100",
	} {
		require.Equal(t, want, Mask(in))
	}
}

func TestOptions_Check(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "SIGNAL_ACCOUNT"},
		{Options{Account: "15551234567"}, "no phone number"},
		{Options{Account: account, URL: "ftp://x"}, "want http:// or https://"},
		{Options{Account: account, URL: "http://me:secret@x"}, "holds a user name"},
	} {
		_, err := New(c.o)
		var start *platforms.StartError
		require.ErrorAs(t, err, &start)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "secret")
	}
	for in, want := range map[string]string{"": DefaultURL, "http://h:1/": "http://h:1", "http://h:1/api/v1/rpc": "http://h:1", "https://h/signal/api/v1/": "https://h/signal"} {
		got, err := Root(in)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	a, err := New(Options{Account: "+1 (555) 000-0001"})
	require.NoError(t, err)
	require.EqualValues(t, account, a.Account().ID)
}
