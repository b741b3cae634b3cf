package jobs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/gatewaytest"
	"herald/gateway/jobs/brief"
	"herald/gateway/model/modeltest"
	"herald/platforms"
	"herald/platforms/platformtest/slacktest"
	"herald/platforms/slack"
	"herald/sessions"
)

const (
	mailPrompt = "Look at the mail."
	mailBrief  = "Three mails wait for you."
)

// briefing is a model that writes the brief when it is asked as a job, and repeats the last line that a person says.
func briefing() *modeltest.Script {
	return modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if strings.Contains(r.LastUser(), mailPrompt) {
			return modeltest.Text(mailBrief)
		}
		lines := strings.Split(r.LastUser(), "\n")
		return modeltest.Text("re: " + lines[len(lines)-1])
	})
}

// mail makes the job that writes the brief.
func mail(h *gatewaytest.House, deliver string, origin *sessions.Origin, attach *bool) cron.Job {
	h.T.Helper()
	by := cron.By{Source: cron.FromCLI}
	if origin != nil {
		by = cron.By{Source: cron.FromChat, Origin: origin}
	}
	j, err := h.Gateway.Scheduled().Book.Create(context.Background(), cron.Change{Name: new("Mail brief"), Prompt: new(mailPrompt),
		Deliver: &deliver, Attach: attach, Schedule: new("every day at 9am")}, by)
	require.NoError(h.T, err)
	return j
}

// delivered runs a job, whose brief must go to one place and arrive there.
func delivered(h *gatewaytest.House, id cron.JobID) brief.Delivery {
	h.T.Helper()
	run, result := h.Ran(id)
	require.Equal(h.T, sessions.RunRan, run.State, run.Reason)
	require.Len(h.T, result.Deliveries, 1)
	require.Equal(h.T, sessions.OutSent, result.Deliveries[0].State, result.Deliveries[0].Error)
	return result.Deliveries[0]
}

// told waits until the model is asked about a word that a person has said, and returns how often the brief is in what
// the model gets. It must be in what a person says.
func told(h *gatewaytest.House, word string) (n int) {
	h.T.Helper()
	var asked modeltest.Request
	h.Until("the model is asked about "+word, func() bool {
		for _, r := range h.Model.Requests() {
			if strings.Contains(r.LastUser(), word) {
				asked = r
				return true
			}
		}
		return false
	})
	for i, m := range asked.Messages {
		if i > 0 {
			require.NotEqual(h.T, asked.Messages[i-1].Role, m.Role, "the conversation does not alternate")
		}
		if strings.Contains(m.Text, mailBrief) {
			require.Equal(h.T, "user", m.Role)
			require.Contains(h.T, m.Text, "[Cron delivery: Mail brief]\n"+mailBrief)
			n += strings.Count(m.Text, mailBrief)
		}
	}
	return n
}

// slackHouse is a house with a Slack workspace.
type slackHouse struct {
	*gatewaytest.House
	fake    *slacktest.Server
	team    slacktest.Team
	general string
	people  []slacktest.User
	dms     []string
	said    int
}

// withSlack builds a house on Slack with four people; the first one's direct chat is the home channel.
func withSlack(t *testing.T, tune ...func(*slackHouse)) *slackHouse {
	s := &slackHouse{House: gatewaytest.Build(t, briefing()), fake: slacktest.New(slacktest.Options{})}
	_, err := s.fake.Start()
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Halt()
		s.fake.Close()
	})
	s.team = s.fake.AddTeam(slacktest.Team{Scopes: slack.BotScopes()})
	var members []string
	for _, name := range []string{"Pat", "Ann", "Bob", "Cem"} {
		u := s.fake.AddUser("", slacktest.User{RealName: name})
		s.people, s.dms = append(s.people, u), append(s.dms, s.fake.OpenDM("", u.ID))
		members = append(members, u.ID)
	}
	s.general = s.fake.AddChannel("", slacktest.Channel{Name: "general", Members: members}).ID
	s.Env = append(s.Env, "SLACK_BOT_TOKEN="+s.team.BotToken, "SLACK_APP_TOKEN="+s.fake.AppToken(), "SLACK_API_URL="+s.fake.APIURL(),
		"HERALD_SLACK_ALLOW_FROM=*", "HERALD_SLACK_RATE_LIMIT=off", "SLACK_HOME_CHANNEL="+s.dms[0])
	for _, f := range tune {
		f(s)
	}
	s.Run()
	s.Until("Slack is connected", func() bool { now, _, _ := s.fake.Connections(); return now == 1 })
	return s
}

// origin is what a session of a chat says of where it comes from.
func (s *slackHouse) origin(chat string, kind platforms.ChatType, who slacktest.User) *sessions.Origin {
	account := strings.Join(strings.Split(s.team.BotToken, "-")[1:3], "-")
	return &sessions.Origin{Address: platforms.Address{Platform: "slack", Account: platforms.AccountID(account), Chat: platforms.ChatID(chat)},
		ChatType: kind, Scope: platforms.ScopeID(s.team.ID), User: platforms.UserID(who.ID), UserName: who.RealName}
}

// brief waits for the brief in a chat and returns its ts.
func (s *slackHouse) brief(chat string) string {
	s.T.Helper()
	ts := ""
	s.Until("Slack shows the brief", func() bool {
		for _, m := range s.fake.Visible("", chat, "") {
			if strings.Contains(m.Text, mailBrief) {
				ts = m.TS
			}
		}
		return ts != ""
	})
	return ts
}

// ask makes somebody write into a place, and returns how often the brief is in what the model gets.
func (s *slackHouse) ask(who int, chat, thread string) int {
	s.T.Helper()
	s.said++
	word := fmt.Sprintf("question-%d", s.said)
	s.fake.Write(slacktest.Post{Channel: chat, Thread: thread, User: s.people[who].ID, Text: word, Mention: chat == s.general && thread == ""})
	return told(s.House, word)
}

// Which chat's conversations get the brief, end to end on Slack. A reply goes on with it in its thread and
// flat, gets it once, and nobody else's conversation does.
func TestCronThreads_WhoseConversationsGetABrief(t *testing.T) {
	for _, c := range []struct {
		name, deliver string
		target        int // whose direct chat it comes to
		origin        bool
		attach        *bool
		mirrored      []string
	}{
		{"10 the home channel in place of an origin", "origin", 0, false, nil, []string{"thread", "dm"}},
		{"11 everywhere", "all", 0, false, nil, nil},
		{"12 a chat that was written, attached", "slack:%s", 2, false, new(true), []string{"thread", "dm"}},
		{"13 a chat that was written", "slack:%s", 2, false, nil, nil},
		{"14 the job's own chat", "origin", 1, true, nil, []string{"thread", "dm"}},
		{"4 a platform by its name", "slack", 0, false, nil, nil},
		{"5 not attached", "origin", 1, true, new(false), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := withSlack(t)
			deliver, chat := c.deliver, s.dms[c.target]
			if strings.Contains(deliver, "%s") {
				deliver = fmt.Sprintf(deliver, chat)
			}
			var origin *sessions.Origin
			if c.origin {
				origin = s.origin(chat, platforms.DM, s.people[c.target])
			}
			require.Zero(t, s.ask(3, s.dms[3], ""))
			d := delivered(s.House, mail(s.House, deliver, origin, c.attach).ID)
			require.Equal(t, c.mirrored, d.Mirrored)
			root := s.brief(chat)
			want := min(1, len(c.mirrored))
			require.Equal(t, want, s.ask(c.target, chat, ""), "flat")
			if want == 1 { // else the thread's past is read when somebody speaks there, as ever
				require.Equal(t, 1, s.ask(c.target, chat, root), "in its thread")
				require.Equal(t, 1, s.ask(c.target, chat, root), "and once more there")
			}
			require.Equal(t, want, s.ask(c.target, chat, ""), "and flat")
			require.Zero(t, s.ask(3, s.dms[3], ""), "in nobody else's")
			briefs := 0
			for _, m := range s.fake.Visible("", chat, "") {
				briefs += strings.Count(m.Text, mailBrief)
			}
			require.Equal(t, 1, briefs)
		})
	}
}

// A restart between the brief and the reply, and a brief that is answered by nobody for a while.
func TestCronThreads_TheReplyComesAfterARestart(t *testing.T) {
	s := withSlack(t)
	delivered(s.House, mail(s.House, "origin", nil, nil).ID)
	root := s.brief(s.dms[0])
	s.Halt()
	s.Run()
	s.Until("Slack is connected", func() bool { now, _, _ := s.fake.Connections(); return now == 1 })
	require.Equal(t, 1, s.ask(0, s.dms[0], root))
	require.Equal(t, 1, s.ask(0, s.dms[0], ""))
}

// In a channel the brief has a thread whose conversation all share; flat, nobody's conversation there gets it.
func TestCronThreads_InAChannel(t *testing.T) {
	s := withSlack(t)
	d := delivered(s.House, mail(s.House, "origin", s.origin(s.general, platforms.Channel, s.people[1]), nil).ID)
	require.Equal(t, []string{"thread"}, d.Mirrored)
	root := s.brief(s.general)
	require.Equal(t, 1, s.ask(2, s.general, root), "a reply needs no mention")
	require.Equal(t, 1, s.ask(1, s.general, root))
	require.Zero(t, s.ask(1, s.general, ""))
}

// inChannel sets Slack to go on in the channel, as its pairing wants it.
func inSlackChannel(s *slackHouse) {
	s.Set["platforms.slack.cron_continuable_surface"] = "in_channel"
	s.Set["platforms.slack.reply_in_thread"] = "false"
	s.Set["platforms.slack.require_mention"] = "false"
}

// In the channel itself the brief belongs to the conversation of who made the job, and to that of a thread
// which a reply begins; without a person there is none to be made, and those that are had get it.
func TestCronThreads_OnTheChannelSurface(t *testing.T) {
	t.Run("with its person", func(t *testing.T) {
		s := withSlack(t, inSlackChannel)
		require.Zero(t, s.ask(2, s.general, ""))
		d := delivered(s.House, mail(s.House, "origin", s.origin(s.general, platforms.Channel, s.people[1]), new(false)).ID)
		require.Equal(t, []string{"channel", "thread"}, d.Mirrored, "also where it is not attached: it is what the surface is for")
		root := s.brief(s.general)
		require.Equal(t, 1, s.ask(1, s.general, ""))
		require.Zero(t, s.ask(2, s.general, ""), "another person's conversation")
		require.Equal(t, 1, s.ask(2, s.general, root))
		require.Equal(t, 1, s.ask(1, s.general, root))
	})
	t.Run("without a person", func(t *testing.T) {
		s := withSlack(t, inSlackChannel, func(s *slackHouse) { s.Env = append(s.Env, "SLACK_HOME_CHANNEL="+s.general) })
		require.Zero(t, s.ask(2, s.general, ""))
		d := delivered(s.House, mail(s.House, "origin", nil, nil).ID)
		require.Equal(t, []string{"mirror"}, d.Mirrored)
		require.Equal(t, 1, s.ask(2, s.general, ""))
		require.Zero(t, s.ask(1, s.general, ""), "a conversation that began later")
	})
	t.Run("a direct chat", func(t *testing.T) {
		s := withSlack(t, inSlackChannel)
		d := delivered(s.House, mail(s.House, "origin", nil, nil).ID)
		require.Equal(t, []string{"channel", "thread"}, d.Mirrored)
		root := s.brief(s.dms[0])
		require.Equal(t, 1, s.ask(0, s.dms[0], ""))
		require.Equal(t, 1, s.ask(0, s.dms[0], root))
	})
}
