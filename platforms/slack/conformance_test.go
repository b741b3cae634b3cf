package slack

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/slacktest"
)

const (
	testBot = "xoxb-111222333-444555666-secretsecretsecret"
	testApp = "xapp-1-A0HERALD0-777-appsecretappsecret"
)

// TestAdapter_Conformance runs the suite that every platform passes (P1 to P5, P8, P12).
func TestAdapter_Conformance(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{New: func(t *testing.T) platformtest.World { return startWorld(t) }, Lacks: map[string]string{
		"quotes": "Slack has threads and no quotes",
	}})
}

// With reply_in_thread off the channel itself is the place.
func TestAdapter_ConformanceFlat(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{New: func(t *testing.T) platformtest.World {
		w := startWorld(t)
		w.flat = true
		w.change = func(o *Options) { o.ReplyInThread = new(bool) }
		return w
	}, Lacks: map[string]string{
		"quotes": "Slack has threads and no quotes",
	}})
}

// world is a fake Slack with a person, a channel with a thread, a private one and a group chat.
type world struct {
	fake                        *slacktest.Server
	team                        slacktest.Team
	pat                         slacktest.User
	dm, general, secret, circle string
	threads                     map[string]string // channel: its thread
	pressed, ran                string
	change                      func(*Options)
	memory                      platforms.Memory
	flat                        bool
}

func startWorld(t testing.TB) *world {
	w := &world{fake: slacktest.New(slacktest.Options{AppToken: testApp, RetryAfter: 500 * time.Millisecond,
		PingEvery: 20 * time.Millisecond}),
		threads: map[string]string{}, memory: platforms.NewMemory()}
	_, err := w.fake.Start()
	require.NoError(t, err)
	t.Cleanup(w.fake.Close)
	w.team = w.fake.AddTeam(slacktest.Team{ID: "T1", BotToken: testBot, Scopes: BotScopes()})
	w.pat = w.fake.AddUser("", slacktest.User{RealName: "Pat Doe", Name: "pat"})
	sam := w.fake.AddUser("", slacktest.User{RealName: "Sam Roe", Name: "sam"})
	w.dm = w.fake.OpenDM("", w.pat.ID)
	w.general = w.fake.AddChannel("", slacktest.Channel{Name: "general", Members: []string{w.pat.ID, sam.ID}}).ID
	w.secret = w.fake.AddChannel("", slacktest.Channel{Name: "secret", Kind: slacktest.Private, Members: []string{w.pat.ID}}).ID
	w.circle = w.fake.AddChannel("", slacktest.Channel{Kind: slacktest.MPIM, Members: []string{w.pat.ID, sam.ID}}).ID
	for _, channel := range []string{w.dm, w.general, w.secret, w.circle} {
		w.threads[channel] = w.fake.Write(slacktest.Post{Channel: channel, Text: "how it began", Silent: true})
	}
	return w
}

// options are those of a test: quick to notice trouble, without limits of our own.
func (w *world) options() Options {
	o := Options{
		Tokens: []Token{{Token: testBot}}, AppToken: testApp, APIURL: w.fake.APIURL(), RateLimit: new(bool), Reactions: true,
		ReactionTriggers: []string{"true"}, ConnectTimeout: 2 * time.Second, PingEvery: 50 * time.Millisecond, DeafAfter: 300 * time.Millisecond,
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
		Memory: func(platforms.AccountID) platforms.Memory { return w.memory },
	}
	if w.change != nil {
		w.change(&o)
	}
	return o
}

func (w *world) Adapter(t testing.TB) platforms.Adapter {
	adapters, err := New(w.options())
	require.NoError(t, err)
	require.Len(t, adapters, 1)
	return adapters[0]
}

func (w *world) at(channel, thread string) platforms.Address {
	return platforms.Address{Platform: Platform, Account: "111222333-444555666", Chat: platforms.ChatID(channel), Thread: platforms.ThreadID(thread)}
}

func (w *world) Places() []platformtest.Place {
	if w.flat {
		return []platformtest.Place{
			{Name: "dm", Type: platforms.DM, Address: w.at(w.dm, "")},
			{Name: "channel", Type: platforms.Channel, Address: w.at(w.general, "")},
			{Name: "private channel", Type: platforms.Channel, Address: w.at(w.secret, "")},
			{Name: "group", Type: platforms.Group, Address: w.at(w.circle, "")},
			{Name: "channel thread", Type: platforms.Channel, Address: w.at(w.general, w.threads[w.general])},
		}
	}
	return []platformtest.Place{
		{Name: "dm", Type: platforms.DM, Address: w.at(w.dm, "")},
		{Name: "dm thread", Type: platforms.DM, Address: w.at(w.dm, w.threads[w.dm])},
		{Name: "channel thread", Type: platforms.Channel, Address: w.at(w.general, w.threads[w.general])},
		{Name: "private channel thread", Type: platforms.Channel, Address: w.at(w.secret, w.threads[w.secret])},
		{Name: "group thread", Type: platforms.Group, Address: w.at(w.circle, w.threads[w.circle])},
	}
}

func (w *world) Roots() []platformtest.Place {
	return []platformtest.Place{
		{Name: "dm", Type: platforms.DM, Address: w.at(w.dm, "")},
		{Name: "channel", Type: platforms.Channel, Address: w.at(w.general, "")},
		{Name: "private channel", Type: platforms.Channel, Address: w.at(w.secret, "")},
		{Name: "group", Type: platforms.Group, Address: w.at(w.circle, "")},
	}
}

func (w *world) post(p platformtest.Place, text string) slacktest.Post {
	return slacktest.Post{Channel: string(p.Address.Chat), Thread: string(p.Address.Thread), User: w.pat.ID, Text: text,
		Mention: p.Type != platforms.DM}
}

func (w *world) Say(p platformtest.Place, text string) platforms.MessageID {
	return platforms.MessageID(w.fake.Write(w.post(p, text)))
}

func (w *world) SayFile(p platformtest.Place, name, mime string, body []byte, caption string) platforms.MessageID {
	post := w.post(p, caption)
	post.Files = []slacktest.Upload{{Name: name, MIME: mime, Body: body}}
	return platforms.MessageID(w.fake.Write(post))
}

func (w *world) Rewrite(p platformtest.Place, message platforms.MessageID, text string) {
	w.fake.Rewrite("", string(p.Address.Chat), string(message), text)
}

func (w *world) React(p platformtest.Place, message platforms.MessageID, emoji string) {
	w.fake.React("", string(p.Address.Chat), string(message), w.pat.ID, slackName(emoji))
}

func (w *world) Press(p platformtest.Place, message platforms.MessageID, label string) {
	w.pressed, _ = w.fake.Press(slacktest.Press{Channel: string(p.Address.Chat), Message: string(message), User: w.pat.ID, Button: label})
}

func (w *world) Answered() (string, bool) {
	i, ok := w.fake.Interaction(w.pressed)
	if !ok || len(i.Responses) == 0 {
		return "", false
	}
	return textOf(i.Responses[len(i.Responses)-1]), true
}

func (w *world) Command(p platformtest.Place, name, args string) {
	w.ran = w.fake.Run(slacktest.Command{Channel: string(p.Address.Chat), User: w.pat.ID, Name: "/" + name, Text: args})
}

func (w *world) Told(p platformtest.Place) []string {
	var told []string
	for _, m := range w.fake.Visible("", string(p.Address.Chat), string(p.Address.Thread)) {
		if m.Ephemeral == w.pat.ID {
			told = append(told, m.Text)
		}
	}
	return told
}

func (w *world) Revoke() { w.fake.Revoke("", "token_revoked") }

var everything = []string{"", "apps.connections.open", "auth.test", "users.info", "conversations.info", slacktest.MethodSocket}

func (w *world) Storm() {
	for _, method := range everything {
		w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerStatus, Status: http.StatusServiceUnavailable, Method: method, Times: -1})
	}
}

func (w *world) Calls() int { return len(w.fake.Requests("")) }

func (w *world) SayTwice(p platformtest.Place, text string) platforms.MessageID {
	w.fake.Break(slacktest.Fault{Trouble: slacktest.Twice})
	return w.Say(p, text)
}

func (w *world) SayShuffled(p platformtest.Place, texts ...string) {
	for i, text := range texts {
		if i%2 == 0 && i+1 < len(texts) {
			w.fake.Break(slacktest.Fault{Trouble: slacktest.Backwards})
		}
		w.Say(p, text)
	}
}

func (w *world) MostReceivers() int {
	_, most, _ := w.fake.Connections()
	return most
}

// TypingSeen: Slack shows a status line in threads alone.
func (w *world) TypingSeen(p platformtest.Place) bool {
	return p.Address.Thread == "" || w.fake.Status("", string(p.Address.Chat), string(p.Address.Thread)) != ""
}

func (w *world) Visible(p platformtest.Place) []platformtest.Visible {
	var out []platformtest.Visible
	for _, m := range w.fake.Visible("", string(p.Address.Chat), string(p.Address.Thread)) {
		if m.Ephemeral != "" {
			continue
		}
		v := platformtest.Visible{ID: platforms.MessageID(m.TS), Text: m.Text}
		for _, f := range m.Files {
			v.Files = append(v.Files, f.Name)
		}
		for _, b := range m.Buttons {
			v.Buttons = append(v.Buttons, b.Label)
		}
		for _, r := range m.Reactions {
			for _, user := range r.Users {
				if user == w.team.BotUser {
					v.Emoji = unicodeOf(r.Name)
				}
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
	f := slacktest.Fault{}
	switch trouble {
	case platformtest.RateRefused:
		f.Trouble, f.Status, f.RetryAfter = slacktest.AnswerStatus, http.StatusTooManyRequests, time.Second
	case platformtest.ServerError:
		f.Trouble, f.Status = slacktest.AnswerStatus, http.StatusBadGateway
	case platformtest.CutBefore:
		f.Trouble = slacktest.ResetBefore
	case platformtest.CutAfter:
		f.Trouble = slacktest.ResetAfter
	case platformtest.SilentBefore:
		f.Trouble = slacktest.HangBefore
	case platformtest.SilentAfter:
		f.Trouble = slacktest.HangAfter
	case platformtest.BrokenAnswer:
		f.Trouble = slacktest.HalfBody
	case platformtest.SlowAnswer:
		f.Trouble, f.Delay = slacktest.SlowBody, 200*time.Millisecond
	case platformtest.ProxyPage:
		f.Trouble = slacktest.Garbage
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
	w.fake.Deafen()
	return true
}

func (w *world) Hear() { w.fake.Hear() }

func (w *world) Drop() bool {
	w.fake.CutSockets()
	return true
}

func (w *world) Receivers() int {
	now, _, _ := w.fake.Connections()
	return now
}

func (w *world) Impolite() []string { return w.fake.Violations() }
