package telegram

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/telegramtest"
)

const testToken = "4242:AAH-super-secret_part"

// TestAdapter_Conformance runs the suite that every platform passes (P1 to P5, P8, P12).
func TestAdapter_Conformance(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{New: newWorld, Lacks: lacks})
}

var lacks = map[string]string{"native commands": "Telegram hands a command on as text"}

// world is a fake Bot API server with a person, a group and a forum.
type world struct {
	fake  *telegramtest.Server
	url   string
	topic int
	query string
}

const (
	person = int64(501)
	group  = int64(-1001000000001)
	forum  = int64(-1001000000002)
)

func newWorld(t *testing.T) platformtest.World { return startWorld(t) }

func startWorld(t *testing.T) *world {
	w := &world{fake: telegramtest.New(telegramtest.Options{Token: testToken})}
	var err error
	w.url, err = w.fake.Start()
	require.NoError(t, err)
	t.Cleanup(w.fake.Close)
	w.fake.AddChat(telegramtest.Chat{ID: person, Type: "private", FirstName: "Pat", LastName: "Doe", Username: "pat"})
	w.fake.AddChat(telegramtest.Chat{ID: group, Type: "supergroup", Title: "Team"})
	w.fake.AddChat(telegramtest.Chat{ID: forum, Type: "supergroup", Title: "Forum", IsForum: true})
	w.topic = w.fake.AddTopic(forum, "Plans")
	return w
}

// options are those of a test: a private server without rate limits, quick to notice trouble.
func (w *world) options() Options {
	return Options{
		Token: testToken, BaseURL: w.url, RateLimit: new(bool), Reactions: true,
		PollTimeout: time.Second, PollMargin: 250 * time.Millisecond, BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
		AlbumWait: 20 * time.Millisecond,
	}
}

func (w *world) Adapter(t testing.TB) platforms.Adapter {
	a, err := New(w.options())
	require.NoError(t, err)
	return a
}

func (w *world) Places() []platformtest.Place {
	at := func(chat int64, thread int) platforms.Address {
		a := platforms.Address{Platform: Platform, Account: "4242", Chat: platforms.ChatID(strconv.FormatInt(chat, 10))}
		if thread != 0 {
			a.Thread = platforms.ThreadID(strconv.Itoa(thread))
		}
		return a
	}
	return []platformtest.Place{
		{Name: "dm", Type: platforms.DM, Address: at(person, 0)},
		{Name: "group", Type: platforms.Group, Address: at(group, 0)},
		{Name: "topic", Type: platforms.Group, Address: at(forum, w.topic)},
		{Name: "general topic", Type: platforms.Group, Address: at(forum, 0)},
	}
}

func (w *world) Roots() []platformtest.Place { return w.Places()[3:] }

func (w *world) where(p platformtest.Place) (chat int64, thread int) {
	chat, _ = strconv.ParseInt(string(p.Address.Chat), 10, 64)
	thread, _ = strconv.Atoi(string(p.Address.Thread))
	return chat, thread
}

func (w *world) Say(p platformtest.Place, text string) platforms.MessageID {
	chat, thread := w.where(p)
	if p.Type != platforms.DM {
		text = "@herald_test_bot " + text
	}
	return id(w.fake.Write(telegramtest.Post{Chat: chat, Thread: thread, Text: text})[0])
}

func (w *world) SayFile(p platformtest.Place, name, mime string, body []byte, caption string) platforms.MessageID {
	chat, thread := w.where(p)
	return id(w.fake.Write(telegramtest.Post{Chat: chat, Thread: thread, Text: caption,
		Files: []telegramtest.File{{Kind: "document", Name: name, MIME: mime, Body: body}}})[0])
}

func (w *world) Rewrite(p platformtest.Place, message platforms.MessageID, text string) {
	chat, _ := w.where(p)
	w.fake.Rewrite(chat, number(message), text)
}

func (w *world) React(p platformtest.Place, message platforms.MessageID, emoji string) {
	chat, _ := w.where(p)
	w.fake.React(chat, number(message), "", emoji, telegramtest.User{})
}

func (w *world) Press(p platformtest.Place, message platforms.MessageID, label string) {
	chat, _ := w.where(p)
	m, _ := w.fake.Message(chat, number(message))
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Text == label {
				w.query, _ = w.fake.Press(chat, m.ID, b.Data, telegramtest.User{})
			}
		}
	}
}

func (w *world) Answered() (string, bool) { return w.fake.Answer(w.query) }

func (w *world) TypingSeen(p platformtest.Place) bool {
	chat, thread := w.where(p)
	for _, a := range w.fake.Acts(chat) {
		if a.Verb == "typing" && a.Thread == thread {
			return true
		}
	}
	return false
}

func (w *world) Visible(p platformtest.Place) []platformtest.Visible {
	chat, thread := w.where(p)
	var out []platformtest.Visible
	for _, m := range w.fake.Visible(chat) {
		if m.Thread != thread {
			continue
		}
		v := platformtest.Visible{ID: id(m.ID), Text: m.Text, Emoji: m.Emoji}
		if m.ReplyTo != 0 {
			v.ReplyTo = id(m.ReplyTo)
		}
		if m.File != "" {
			v.Files = []string{m.File}
		}
		for _, row := range m.Buttons {
			for _, b := range row {
				v.Buttons = append(v.Buttons, b.Text)
			}
		}
		out = append(out, v)
	}
	return out
}

func (w *world) Unacknowledged() int { return w.fake.Pending() }

func (w *world) Redeliver() bool {
	w.fake.Replay(1)
	return true
}

func (w *world) Break(trouble platformtest.Trouble) bool {
	f := telegramtest.Fault{}
	switch trouble {
	case platformtest.RateRefused:
		f.Trouble, f.Status, f.RetryAfter = telegramtest.AnswerStatus, 429, time.Second
	case platformtest.ServerError:
		f.Trouble, f.Status = telegramtest.AnswerStatus, 502
	case platformtest.CutBefore:
		f.Trouble = telegramtest.ResetBefore
	case platformtest.CutAfter:
		f.Trouble = telegramtest.ResetAfter
	case platformtest.SilentBefore:
		f.Trouble = telegramtest.HangBefore
	case platformtest.SilentAfter:
		f.Trouble = telegramtest.HangAfter
	case platformtest.BrokenAnswer:
		f.Trouble = telegramtest.HalfBody
	case platformtest.SlowAnswer:
		f.Trouble, f.Delay = telegramtest.SlowBody, 300*time.Millisecond
	case platformtest.ProxyPage:
		f.Trouble = telegramtest.Garbage
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
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.HangBefore, Method: "getUpdates", Times: -1})
	return w.fake.Cut() == nil
}

func (w *world) Hear() { w.fake.Heal() }

func (w *world) Drop() bool { return w.fake.Cut() == nil }

func (w *world) Receivers() int {
	now, _, _ := w.fake.Polls()
	return now
}

func (w *world) MostReceivers() int {
	_, most, _ := w.fake.Polls()
	return most
}

func (w *world) Storm() {
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 502, Header: true, Times: -1})
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 502, Header: true, Times: -1, Method: "getUpdates"})
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 502, Header: true, Times: -1, Method: "getMe"})
}

func (w *world) Calls() int { return w.fake.AllCalls() }

func (w *world) Revoke() { w.fake.Revoke() }

func (w *world) SayTwice(p platformtest.Place, text string) platforms.MessageID {
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.Twice})
	return w.Say(p, text)
}

func (w *world) SayShuffled(p platformtest.Place, texts ...string) {
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.Backwards, Times: -1})
	for _, text := range texts {
		w.Say(p, text)
	}
}

func (w *world) SayReply(p platformtest.Place, to platforms.MessageID, text string) platforms.MessageID {
	chat, thread := w.where(p)
	return id(w.fake.Write(telegramtest.Post{Chat: chat, Thread: thread, Text: text, ReplyTo: number(to)})[0])
}

func (w *world) Impolite() []string { return w.fake.Violations() }

func id(n int) platforms.MessageID { return platforms.MessageID(strconv.Itoa(n)) }

func number(id platforms.MessageID) int {
	n, _ := strconv.Atoi(string(id))
	return n
}
