package discord

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/discordtest"
)

// testToken begins with the bot's id 700000000000000001 in base64, as every token does.
const (
	testBot   = "700000000000000001"
	testToken = "NzAwMDAwMDAwMDAwMDAwMDAx.GsuperX.secret-part_of-the-token"
)

// TestAdapter_Conformance runs the suite that every platform passes (P1 to P5, P8, P12).
func TestAdapter_Conformance(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{New: newWorld})
}

// The same with threads on, in the places that have none to open.
func TestAdapter_ConformanceWithThreads(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{New: func(t *testing.T) platformtest.World {
		w := startWorld(t, discordtest.Options{})
		w.leftOut = "channel"
		return w
	}})
}

// world is a fake Discord with a person, a text channel, a thread in it and a post of a forum.
type world struct {
	fake    *discordtest.Discord
	url     string
	memory  platforms.Memory
	change  func(*Options) // of the adapters that are made
	leftOut string         // a place

	person, guild             discordtest.ID
	dm, channel, thread, post discordtest.ID
	forum                     discordtest.ID
	press                     discordtest.ID
	ran                       []discordtest.ID
	called                    atomic.Int64
}

func newWorld(t *testing.T) platformtest.World {
	w := startWorld(t, discordtest.Options{})
	w.change = func(o *Options) {
		no := false
		o.AutoThread = &no
	}
	return w
}

func startWorld(t *testing.T, o discordtest.Options) *world {
	o.Token, o.BotID = testToken, testBot
	if o.Heartbeat == 0 {
		o.Heartbeat = 250 * time.Millisecond
	}
	w := &world{fake: discordtest.New(o), memory: platforms.NewMemory()}
	var err error
	w.url, err = w.fake.Start()
	require.NoError(t, err)
	t.Cleanup(w.fake.Close)
	w.person = w.fake.AddUser(discordtest.User{Username: "pat", GlobalName: "Pat Doe"})
	w.guild = w.fake.AddGuild("Team", 0, w.person)
	w.dm = w.fake.DM(w.person)
	w.channel = w.fake.AddChannel(discordtest.Channel{Guild: w.guild, Name: "general"})
	w.thread = w.fake.StartThread(w.channel, "", "Plans", w.person, false)
	w.forum = w.fake.AddChannel(discordtest.Channel{Guild: w.guild, Name: "ideas", Type: discordtest.ForumChannel})
	w.post = w.fake.OpenPost("An idea", discordtest.Post{Channel: w.forum, Text: "What about tea?"})
	return w
}

// options are those of a test: a private server without rate limits, quick to notice trouble.
func (w *world) options() Options {
	o := Options{
		Token: testToken, APIURL: w.url, RateLimit: new(bool), Reactions: true, Memory: w.memory,
		ConnectTimeout: time.Second, OpenTimeout: time.Second, BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
		IdentifyEvery: 20 * time.Millisecond,
	}
	if w.change != nil {
		w.change(&o)
	}
	return o
}

func (w *world) Adapter(t testing.TB) platforms.Adapter {
	return w.make(t)
}

func (w *world) make(t testing.TB) *Adapter {
	a, err := New(w.options())
	require.NoError(t, err)
	a.client.HTTP.Transport = &counting{next: a.moves, calls: &w.called}
	return a
}

// counting counts the requests of an adapter, those that get no answer too.
type counting struct {
	next  http.RoundTripper
	calls *atomic.Int64
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.next.RoundTrip(r)
}

func address(chat, thread discordtest.ID) platforms.Address {
	return platforms.Address{Platform: Platform, Account: testBot, Chat: platforms.ChatID(chat), Thread: platforms.ThreadID(thread)}
}

func (w *world) Places() []platformtest.Place {
	places := []platformtest.Place{
		{Name: "dm", Type: platforms.DM, Address: address(w.dm, "")},
		{Name: "channel", Type: platforms.Channel, Address: address(w.channel, "")},
		{Name: "thread", Type: platforms.Thread, Address: address(w.channel, w.thread)},
		{Name: "forum post", Type: platforms.Thread, Address: address(w.forum, w.post)},
	}
	return slices.DeleteFunc(places, func(p platformtest.Place) bool { return p.Name == w.leftOut })
}

// Roots are the text channel and the forum.
func (w *world) Roots() []platformtest.Place {
	return []platformtest.Place{
		{Name: "channel", Type: platforms.Thread, Address: address(w.channel, "")},
		{Name: "forum", Type: platforms.Thread, Address: address(w.forum, "")},
	}
}

// where is the channel that people see a place as.
func where(p platformtest.Place) discordtest.ID {
	if p.Address.Thread != "" {
		return discordtest.ID(p.Address.Thread)
	}
	return discordtest.ID(p.Address.Chat)
}

func (w *world) Say(p platformtest.Place, text string) platforms.MessageID {
	return id(w.fake.Write(discordtest.Post{Channel: where(p), Text: text, MentionBot: p.Type != platforms.DM}))
}

func (w *world) SayReply(p platformtest.Place, to platforms.MessageID, text string) platforms.MessageID {
	return id(w.fake.Write(discordtest.Post{Channel: where(p), Text: text, ReplyTo: discordtest.ID(to)}))
}

func (w *world) SayFile(p platformtest.Place, name, mime string, body []byte, caption string) platforms.MessageID {
	return id(w.fake.Write(discordtest.Post{
		Channel: where(p), Text: caption, MentionBot: p.Type != platforms.DM, Files: []discordtest.File{{Name: name, Type: mime, Body: body}},
	}))
}

func (w *world) Rewrite(p platformtest.Place, message platforms.MessageID, text string) {
	w.fake.Rewrite(where(p), discordtest.ID(message), text)
}

func (w *world) React(p platformtest.Place, message platforms.MessageID, emoji string) {
	w.fake.React(where(p), discordtest.ID(message), emoji, "")
}

func (w *world) Press(p platformtest.Place, message platforms.MessageID, label string) {
	m, _ := w.fake.Message(where(p), discordtest.ID(message))
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Label == label {
				w.press, _ = w.fake.Press(where(p), m.ID, b.Data, "")
			}
		}
	}
}

func (w *world) Answered() (string, bool) {
	i, ok := w.fake.Interaction(w.press)
	if !ok || len(i.Followups) == 0 {
		return "", false
	}
	m, ok := w.message(i.Followups[len(i.Followups)-1])
	return m.Text, ok && m.Ephemeral
}

// message finds a message wherever it is.
func (w *world) message(id discordtest.ID) (discordtest.Message, bool) {
	for _, p := range w.Places() {
		if m, ok := w.fake.Message(where(p), id); ok {
			return m, true
		}
	}
	return discordtest.Message{}, false
}

func (w *world) Command(p platformtest.Place, name, args string) {
	c := discordtest.Command{Channel: where(p), Name: name}
	if args != "" {
		c.Options = []discordtest.Option{{Name: argName, Value: args}}
	}
	i, ok := w.fake.Run(c)
	if ok {
		w.ran = append(w.ran, i)
	}
}

func (w *world) Told(p platformtest.Place) []string {
	i, ok := w.fake.Interaction(w.ran[len(w.ran)-1])
	if !ok {
		return nil
	}
	var out []string
	for _, id := range append([]discordtest.ID{i.Original}, i.Followups...) {
		if m, ok := w.fake.Message(where(p), id); ok && m.Ephemeral {
			out = append(out, m.Text)
		}
	}
	return out
}

func (w *world) TypingSeen(p platformtest.Place) bool { return w.fake.TypingSeen(where(p)) }

func (w *world) Visible(p platformtest.Place) []platformtest.Visible {
	var out []platformtest.Visible
	for _, m := range w.fake.Visible(where(p)) {
		if m.Ephemeral {
			continue
		}
		v := platformtest.Visible{ID: id(m.ID), Text: m.Text, ReplyTo: id(m.ReplyTo)}
		for _, f := range m.Files {
			v.Files = append(v.Files, f.Name)
		}
		for _, row := range m.Buttons {
			for _, b := range row {
				v.Buttons = append(v.Buttons, b.Label)
			}
		}
		for _, r := range m.Reactions {
			if slices.Contains(r.By, w.fake.Bot().ID) {
				v.Emoji += r.Emoji
			}
		}
		out = append(out, v)
	}
	return out
}

func (w *world) Unacknowledged() int { return w.fake.Unconfirmed() }

func (w *world) Redeliver() bool {
	w.fake.Redeliver(1)
	return true
}

func (w *world) Break(trouble platformtest.Trouble) bool {
	f := discordtest.Fault{}
	switch trouble {
	case platformtest.RateRefused:
		f.Trouble, f.Status, f.RetryAfter = discordtest.AnswerStatus, 429, time.Second
	case platformtest.ServerError:
		f.Trouble, f.Status = discordtest.AnswerStatus, 502
	case platformtest.CutBefore:
		f.Trouble = discordtest.ResetBefore
	case platformtest.CutAfter:
		f.Trouble = discordtest.ResetAfter
	case platformtest.SilentBefore:
		f.Trouble = discordtest.HangBefore
	case platformtest.SilentAfter:
		f.Trouble = discordtest.HangAfter
	case platformtest.BrokenAnswer:
		f.Trouble = discordtest.HalfBody
	case platformtest.SlowAnswer:
		f.Trouble, f.Delay = discordtest.SlowBody, 300*time.Millisecond
	case platformtest.ProxyPage:
		f.Trouble = discordtest.Garbage
	case platformtest.Unreachable:
		w.fake.Shut()
		return true
	default:
		return false
	}
	w.fake.Break(f)
	return true
}

func (w *world) Heal() {
	w.fake.Heal()
	_ = w.fake.Open() // fails when it is open already
}

func (w *world) Deafen() bool {
	w.fake.BreakGateway(discordtest.Silent)
	return true
}

func (w *world) Hear() { w.fake.Mend(discordtest.Silent) }

func (w *world) Drop() bool {
	w.fake.CloseGateway(0)
	return true
}

func (w *world) Receivers() int { return w.fake.Receivers() }

func (w *world) Storm() {
	w.fake.Break(discordtest.Fault{Trouble: discordtest.AnswerStatus, Status: 502, Times: -1})
	for _, route := range []string{"GET /gateway", "GET /gateway/bot"} {
		w.fake.Break(discordtest.Fault{Trouble: discordtest.AnswerStatus, Status: 502, Times: -1, Route: route})
	}
	w.fake.BreakGateway(discordtest.Refused)
}

func (w *world) Calls() int { return int(w.called.Load()) }

func (w *world) Revoke() { w.fake.Revoke() }

func (w *world) SayTwice(p platformtest.Place, text string) platforms.MessageID {
	w.fake.BreakGateway(discordtest.Twice)
	defer w.fake.Mend(discordtest.Twice)
	return w.Say(p, text)
}

func (w *world) SayShuffled(p platformtest.Place, texts ...string) {
	w.fake.BreakGateway(discordtest.Backwards)
	for _, text := range texts {
		w.Say(p, text)
	}
	w.fake.Mend(discordtest.Backwards)
}

func (w *world) Impolite() []string { return w.fake.Violations() }

func id(n discordtest.ID) platforms.MessageID { return platforms.MessageID(n) }
