package signal

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/signaltest"
)

const (
	account   = "+15550000001"
	accountID = "00000000-0000-4000-8000-000000000001"
	ann       = "+15550000002"
	annID     = "00000000-0000-4000-8000-000000000002"
	bob       = "+15550000003"
	bobID     = "00000000-0000-4000-8000-000000000003"
)

// TestAdapter_Conformance runs the suite that every platform passes (P1 to P5, P8, P12) with a daemon of the recorded
// version for one account, whose stream has no event ids.
func TestAdapter_Conformance(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{New: func(t *testing.T) platformtest.World { return startWorld(t, signaltest.Options{}) },
		Lacks: lacks})
}

// TestAdapter_ConformanceNumbered runs it with a daemon that numbers its events and serves several accounts.
func TestAdapter_ConformanceNumbered(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{New: func(t *testing.T) platformtest.World {
		return startWorld(t, signaltest.Options{Numbered: true, Multi: true, Wrapped: true})
	}, Lacks: lacks})
}

// lacks are properties of Signal through signal-cli.
var lacks = map[string]string{
	"threads of messages": "Signal has no threads",
	"editing":             "the adapter offers no edits: signal-cli's send gives no message id that is safe to edit by, so each message is final",
	"deleting":            "without ids of our own messages none can be named",
	"native commands":     "Signal has no slash commands; they are typed as text",
	"private answers":     "Signal has no native commands to answer in private",
	"buttons":             "Signal has no buttons",
	"secrets":             "Herald has no credentials of Signal's: signal-cli keeps them",
}

// world is a fake daemon with two people and a group.
type world struct {
	fake   *signaltest.Server
	url    string
	group  string
	memory platforms.Memory // as the store keeps it over restarts
}

func startWorld(t testing.TB, o signaltest.Options) *world {
	if o.Comments == 0 {
		o.Comments = 20 * time.Millisecond
	}
	w := &world{fake: signaltest.New(o), memory: platforms.NewMemory()}
	var err error
	w.url, err = w.fake.Start()
	require.NoError(t, err)
	t.Cleanup(w.fake.Close)
	w.fake.AddPerson(signaltest.Person{Number: ann, UUID: annID, Name: "Ann"})
	w.fake.AddPerson(signaltest.Person{Number: bob, UUID: bobID, Name: "Bob"})
	w.group = w.fake.AddGroup("Team", ann, bob)
	return w
}

// options are those of a test: quick to notice trouble.
func (w *world) options() Options {
	return Options{
		URL: w.url, Account: account, Groups: groups("*"), RequireMention: true, Reactions: true, Memory: w.memory,
		BackoffMin: 10 * time.Millisecond, BackoffMax: 50 * time.Millisecond, Silence: 400 * time.Millisecond, CheckEvery: 50 * time.Millisecond,
		CheckTimeout: 2 * time.Second, ShortStream: 100 * time.Millisecond, TypingPause: 200 * time.Millisecond, IgnoreProxyEnv: true,
	}
}

func (w *world) Adapter(t testing.TB) platforms.Adapter { return w.adapter(t, nil) }

func (w *world) adapter(t testing.TB, change func(*Options)) *Adapter {
	o := w.options()
	if change != nil {
		change(&o)
	}
	a, err := New(o)
	require.NoError(t, err)
	return a
}

func (w *world) at(chat string) platforms.Address {
	return platforms.Address{Platform: Platform, Account: account, Chat: platforms.ChatID(chat)}
}

func (w *world) Places() []platformtest.Place {
	return []platformtest.Place{
		{Name: "dm", Type: platforms.DM, Address: w.at(ann)},
		{Name: "group", Type: platforms.Group, Address: w.at("group:" + w.group)},
	}
}

func (w *world) groupOf(p platformtest.Place) string {
	group, _ := strings.CutPrefix(string(p.Address.Chat), "group:")
	if group == string(p.Address.Chat) {
		return ""
	}
	return group
}

func (w *world) chatOf(p platformtest.Place) string {
	if group := w.groupOf(p); group != "" {
		return group
	}
	return string(p.Address.Chat)
}

func (w *world) post(p platformtest.Place, text string) signaltest.Post {
	post := signaltest.Post{From: ann, Group: w.groupOf(p), Text: text}
	if post.Group != "" {
		post.Text, post.Mentions = signaltest.Placeholder+" "+text, []string{account}
	}
	return post
}

func (w *world) Say(p platformtest.Place, text string) platforms.MessageID {
	return idOf(w.fake.Write(w.post(p, text)), annID)
}

func (w *world) SayFile(p platformtest.Place, name, mime string, body []byte, caption string) platforms.MessageID {
	post := w.post(p, caption)
	post.Files = []signaltest.File{{Name: name, MIME: mime, Body: body}}
	return idOf(w.fake.Write(post), annID)
}

func (w *world) SayReply(p platformtest.Place, to platforms.MessageID, text string) platforms.MessageID {
	post := w.post(p, text)
	at, author := parted(to)
	post.Quote = &signaltest.Quote{Timestamp: at, Author: author, Text: "what was said"}
	return idOf(w.fake.Write(post), annID)
}

func (w *world) SayTwice(p platformtest.Place, text string) platforms.MessageID {
	post := w.post(p, text)
	post.Twice = true
	return idOf(w.fake.Write(post), annID)
}

// SayShuffled delivers the newest first.
func (w *world) SayShuffled(p platformtest.Place, texts ...string) {
	now := time.Now().UnixMilli()
	for i := range texts {
		i = len(texts) - 1 - i
		post := w.post(p, texts[i])
		post.At = now + int64(i)
		w.fake.Write(post)
	}
}

func (w *world) React(p platformtest.Place, message platforms.MessageID, emoji string) {
	at, author := parted(message)
	w.fake.React(ann, w.groupOf(p), author, at, emoji, false)
}

func (w *world) EmojiOn(p platformtest.Place, message platforms.MessageID) string {
	at, author := parted(message)
	return w.fake.Reaction(w.chatOf(p), author, at)
}

func (w *world) Storm() { w.fake.Break("", faults.Fault{Kind: faults.Status, Status: 503, Times: -1}) }

func (w *world) Calls() int { return w.fake.Requests() }

func (w *world) Revoke() { w.fake.Unlink() }

func (w *world) MostReceivers() int {
	_, most, _ := w.fake.Streams()
	return most
}

func (w *world) Rewrite(p platformtest.Place, message platforms.MessageID, text string) {
	at, _ := parted(message)
	w.fake.Edit(w.post(p, text), at)
}

func (w *world) TypingSeen(p platformtest.Place) bool { return w.fake.Typing(w.chatOf(p)) }

func (w *world) Visible(p platformtest.Place) []platformtest.Visible {
	var out []platformtest.Visible
	for _, m := range w.fake.Visible(w.chatOf(p)) {
		v := platformtest.Visible{ID: idOf(m.Timestamp, accountID), Text: m.Text}
		if m.Quote != nil {
			v.ReplyTo = idOf(m.Quote.Timestamp, m.Quote.Author)
		}
		for _, f := range m.Files {
			v.Files = append(v.Files, f.Name)
		}
		out = append(out, v)
	}
	return out
}

// Unacknowledged counts what would still arrive after a crash: the stream has no acknowledgement, so that is what no
// stream was given yet, and what the adapter holds durably for the core.
func (w *world) Unacknowledged() int {
	held, err := w.memory.Recall(context.Background(), heldSpace)
	if err != nil {
		return 0
	}
	return w.fake.Pending() + len(held)
}

func (w *world) Redeliver() bool {
	w.fake.Replay(1)
	return true
}

func (w *world) Break(trouble platformtest.Trouble) bool {
	f := faults.Fault{}
	switch trouble {
	case platformtest.RateRefused:
		w.fake.Refuse(annID, "RATE_LIMIT_FAILURE/1")
		w.fake.AfterSend(func() {
			w.fake.Refuse(annID, "")
			w.fake.Forbid(time.Second)
		})
		return true
	case platformtest.ServerError:
		f.Kind, f.Status = faults.Status, 502
	case platformtest.CutBefore:
		f.Kind = faults.ResetBefore
	case platformtest.CutAfter:
		f.Kind = faults.ResetAfter
	case platformtest.SilentBefore:
		f.Kind = faults.HangBefore
	case platformtest.SilentAfter:
		f.Kind = faults.HangAfter
	case platformtest.BrokenAnswer:
		f.Kind = faults.HalfBody
	case platformtest.SlowAnswer:
		f.Kind, f.Delay = faults.SlowBody, 200*time.Millisecond
	case platformtest.ProxyPage:
		f.Kind = faults.Garbage
	case platformtest.Unreachable:
		w.fake.Shut()
		return true
	default:
		return false
	}
	w.fake.Break("send", f)
	return true
}

func (w *world) Heal() {
	w.fake.Heal()
	_ = w.fake.Open() // fails when it is open already
}

// Deafen stops the daemon as a stopped process is: connections stay, nothing is answered, what people write waits.
func (w *world) Deafen() bool {
	w.fake.Freeze()
	return true
}

func (w *world) Hear() { w.fake.Thaw() }

func (w *world) Drop() bool { return w.fake.Cut() == nil }

func (w *world) Receivers() int {
	now, _, _ := w.fake.Streams()
	return now
}

func (w *world) Impolite() []string { return w.fake.Violations() }

func idOf(at int64, author string) platforms.MessageID {
	return platforms.MessageID(fmt.Sprintf("%d:%s", at, author))
}

func parted(id platforms.MessageID) (at int64, author string) {
	stamp, author, _ := strings.Cut(string(id), ":")
	at, _ = strconv.ParseInt(stamp, 10, 64)
	return at, author
}

func groups(ids ...string) func() []string { return func() []string { return ids } }
