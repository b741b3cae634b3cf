package jobs_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/gatewaytest"
	"herald/platforms"
	"herald/platforms/platformtest/discordtest"
	"herald/platforms/platformtest/signaltest"
	"herald/platforms/platformtest/teamstest"
	"herald/platforms/platformtest/telegramtest"
	"herald/sessions"
)

// asks are questions with a word of their own.
type asks struct {
	*gatewaytest.House
	said int
}

// ask lets say write a new word, and returns how often the brief is in what the model gets then.
func (a *asks) ask(say func(word string)) int {
	a.T.Helper()
	a.said++
	word := fmt.Sprintf("question-%d", a.said)
	say(word)
	return told(a.House, word)
}

// again stops the daemon and starts the next one.
func (a *asks) again(connected func() bool) {
	a.T.Helper()
	a.Halt()
	a.Run()
	if connected != nil {
		a.Until("the platform is connected", connected)
	}
}

// On Discord a brief in a channel or forum has a thread, and one in a direct chat none. The conversation of the thread is
// that of a real reply in it.
func TestCronPlaces_Discord(t *testing.T) {
	const botID, token = "700000000000000001", "NzAwMDAwMDAwMDAwMDAwMDAx.GsuperX.secret-part_of-the-token"
	begin := func(t *testing.T, home func(*discordtest.Discord, discordtest.ID, discordtest.ID) discordtest.ID) (a *asks,
		fake *discordtest.Discord, at discordtest.ID, people []discordtest.ID) {
		fake = discordtest.New(discordtest.Options{Token: token, BotID: botID})
		url, err := fake.Start()
		require.NoError(t, err)
		a = &asks{House: gatewaytest.Build(t, briefing())}
		t.Cleanup(func() {
			a.Halt()
			fake.Close()
		})
		people = []discordtest.ID{fake.AddUser(discordtest.User{Username: "pat"}), fake.AddUser(discordtest.User{Username: "ann"})}
		at = home(fake, fake.AddGuild("Team", 0, people...), people[0])
		a.Env = append(a.Env, "DISCORD_BOT_TOKEN="+token, "DISCORD_API_URL="+url, "HERALD_DISCORD_ALLOW_FROM=*", "HERALD_DISCORD_RATE_LIMIT=off",
			"DISCORD_HOME_CHANNEL="+string(at))
		a.again(func() bool { return fake.Receivers() == 1 })
		return a, fake, at, people
	}
	t.Run("a channel", func(t *testing.T) {
		a, fake, at, people := begin(t, func(d *discordtest.Discord, guild, _ discordtest.ID) discordtest.ID {
			return d.AddChannel(discordtest.Channel{Guild: guild, Name: "general"})
		})
		d := delivered(a.House, mail(a.House, "origin", nil, nil).ID)
		require.Equal(t, []string{"thread"}, d.Mirrored)
		thread := fake.Visible(at)[0].ID
		c, ok := fake.Channel(thread)
		require.True(t, ok)
		require.Equal(t, "Mail brief", c.Name)
		require.Zero(t, a.ask(func(w string) { fake.Write(discordtest.Post{Channel: at, From: people[0], Text: w, MentionBot: true}) }))
		require.Equal(t, 1, a.ask(func(w string) { fake.Write(discordtest.Post{Channel: thread, From: people[0], Text: w}) }))
		a.again(func() bool { return fake.Receivers() == 1 })
		require.Equal(t, 1, a.ask(func(w string) { fake.Write(discordtest.Post{Channel: thread, From: people[1], Text: w}) }))
	})
	t.Run("a forum", func(t *testing.T) {
		a, fake, _, people := begin(t, func(d *discordtest.Discord, guild, _ discordtest.ID) discordtest.ID {
			return d.AddChannel(discordtest.Channel{Guild: guild, Name: "briefs", Type: discordtest.ForumChannel})
		})
		d := delivered(a.House, mail(a.House, "origin", nil, nil).ID)
		require.Equal(t, []string{"thread"}, d.Mirrored)
		posts := fake.Threads(discordtest.ID(d.Target.Address.Chat))
		require.Len(t, posts, 1)
		require.Equal(t, "Mail brief", posts[0].Name)
		require.Equal(t, 1, a.ask(func(w string) { fake.Write(discordtest.Post{Channel: posts[0].ID, From: people[1], Text: w}) }))
	})
	t.Run("a direct chat in which nobody ever wrote", func(t *testing.T) {
		a, fake, at, people := begin(t, func(d *discordtest.Discord, _, pat discordtest.ID) discordtest.ID { return d.DM(pat) })
		d := delivered(a.House, mail(a.House, "origin", nil, nil).ID)
		require.Equal(t, []string{"dm"}, d.Mirrored)
		require.Zero(t, a.ask(func(w string) { fake.Say(fake.DM(people[1]), w) }))
		require.Equal(t, 1, a.ask(func(w string) { fake.Say(at, w) }))
	})
}

// In a Telegram forum each job has a topic, which is kept: what it brings later is there too. One that is gone is made
// again. In a plain group the brief belongs to who made the job.
func TestCronPlaces_Telegram(t *testing.T) {
	t.Run("a forum", func(t *testing.T) {
		a := &asks{House: gatewaytest.Build(t, briefing())}
		a.Telegram.AddChat(telegramtest.Chat{ID: gatewaytest.Forum, Type: "supergroup", Title: "Forum", IsForum: true})
		other := a.Telegram.AddTopic(gatewaytest.Forum, "Kitchen")
		gatewaytest.InGroups(a.House)
		a.Env = append(a.Env, fmt.Sprint("TELEGRAM_HOME_CHANNEL=", gatewaytest.Forum))
		a.Run()
		job := mail(a.House, "origin", nil, nil)
		require.Equal(t, []string{"thread"}, delivered(a.House, job.ID).Mirrored)
		topic := a.Telegram.Visible(gatewaytest.Forum)[0].Thread
		require.Equal(t, "Mail brief", a.Telegram.Topics(gatewaytest.Forum)[topic])
		require.Equal(t, 1, a.ask(func(w string) { a.Write(gatewaytest.Forum, topic, gatewaytest.Ann, w) }))
		require.Zero(t, a.ask(func(w string) { a.Write(gatewaytest.Forum, other, gatewaytest.Ann, w) }))
		require.Zero(t, a.ask(func(w string) { a.Write(gatewaytest.Forum, 0, gatewaytest.Ann, w) }))
		a.again(nil)
		delivered(a.House, job.ID)
		require.Equal(t, 2, a.ask(func(w string) { a.Write(gatewaytest.Forum, topic, gatewaytest.Bob, w) }), "the brief of each day, once")
		require.Len(t, a.Telegram.Topics(gatewaytest.Forum), 2, "no second topic")

		a.Telegram.DropTopic(gatewaytest.Forum, topic)
		delivered(a.House, job.ID)
		seen := a.Telegram.Visible(gatewaytest.Forum)
		last := seen[len(seen)-1]
		require.NotEqual(t, topic, last.Thread)
		require.Equal(t, "Mail brief", a.Telegram.Topics(gatewaytest.Forum)[last.Thread])
		require.Equal(t, 1, a.ask(func(w string) { a.Write(gatewaytest.Forum, last.Thread, gatewaytest.Bob, w) }))
	})
	t.Run("a group", func(t *testing.T) {
		a := &asks{House: gatewaytest.Start(t, briefing(), gatewaytest.InGroups)}
		require.Zero(t, a.ask(func(w string) { a.Write(-55, 0, gatewaytest.Bob, w) }))
		origin := &sessions.Origin{Address: platforms.Address{Platform: "telegram", Account: "4242", Chat: "-55"}, ChatType: platforms.Group,
			User: platforms.UserID(fmt.Sprint(gatewaytest.Ann.ID))}
		d := delivered(a.House, mail(a.House, "origin", origin, nil).ID)
		require.Equal(t, []string{"mirror"}, d.Mirrored)
		require.Equal(t, 1, a.ask(func(w string) { a.Write(-55, 0, gatewaytest.Ann, w) }))
		require.Zero(t, a.ask(func(w string) { a.Write(-55, 0, gatewaytest.Bob, w) }))
	})
}

// In a channel of Teams the brief begins a reply chain; in a personal chat the reply is flat.
func TestCronPlaces_Teams(t *testing.T) {
	a := &asks{House: gatewaytest.Build(t, briefing())}
	fake := teamstest.New(teamstest.Options{})
	_, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(func() {
		a.Halt()
		fake.Close()
	})
	pat, ann := fake.AddUser("Pat Doe"), fake.AddUser("Ann Roe")
	dm, other := fake.Personal(pat), fake.Personal(ann)
	channel := fake.Channel(fake.Team("Contoso", pat, ann), "news")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	require.NoError(t, free.Close())
	fake.SetEndpoint("http://127.0.0.1:" + port + "/api/messages")
	u := fake.URLs()
	a.Env = append(a.Env, "TEAMS_CLIENT_ID="+fake.AppID(), "TEAMS_CLIENT_SECRET="+fake.Secret(), "TEAMS_TENANT_ID="+fake.TenantID(),
		"HERALD_TEAMS_ALLOW_FROM=*",
		"TEAMS_HOST=127.0.0.1", "TEAMS_PORT="+port, "TEAMS_SERVICE_URL="+u.Service, "HERALD_TEAMS_LOGIN_URL="+u.Login, "HERALD_TEAMS_OPENID_URL="+u.OpenID,
		"HERALD_TEAMS_GRAPH_URL="+u.Graph, "HERALD_TEAMS_RATE_LIMIT=off")
	a.Run()
	a.Until("the webhook answers", func() bool {
		resp, err := http.Get("http://127.0.0.1:" + port + "/health")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	d := delivered(a.House, mail(a.House, "teams:"+channel.ID, nil, new(true)).ID)
	require.Equal(t, []string{"thread"}, d.Mirrored)
	root := fake.Visible(channel.ID)[0].ID
	require.Equal(t, 1, a.ask(func(w string) { fake.Write(teamstest.Post{Room: channel.ID, Thread: root, Text: w, Mention: true}) }))
	require.Zero(t, a.ask(func(w string) { fake.Write(teamstest.Post{Room: channel.ID, Text: w, Mention: true}) }))

	d = delivered(a.House, mail(a.House, "teams:"+dm.ID, nil, new(true)).ID)
	require.Equal(t, []string{"dm"}, d.Mirrored)
	require.Zero(t, a.ask(func(w string) { fake.Write(teamstest.Post{Room: other.ID, Text: w}) }))
	require.Equal(t, 1, a.ask(func(w string) { fake.Write(teamstest.Post{Room: dm.ID, Text: w}) }))
}

// On Signal a brief comes to a person by number, before that person ever wrote.
func TestCronPlaces_Signal(t *testing.T) {
	const pat, ann = "+4915100000001", "+4915100000002"
	a := &asks{House: gatewaytest.Build(t, briefing())}
	fake := signaltest.New(signaltest.Options{})
	url, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(func() {
		a.Halt()
		fake.Close()
	})
	fake.AddPerson(signaltest.Person{Number: pat, UUID: "11111111-1111-4111-8111-111111111111", Name: "Pat"})
	fake.AddPerson(signaltest.Person{Number: ann, UUID: "22222222-2222-4222-8222-222222222222", Name: "Ann"})
	account, _ := fake.Account()
	a.Env = append(a.Env, "SIGNAL_HTTP_URL="+url, "SIGNAL_ACCOUNT="+account, "HERALD_SIGNAL_ALLOW_FROM=*", "SIGNAL_HOME_CHANNEL="+pat)
	a.Run()
	a.Until("Signal is connected", func() bool { now, _, _ := fake.Streams(); return now == 1 })
	d := delivered(a.House, mail(a.House, "origin", nil, nil).ID)
	require.Equal(t, []string{"dm"}, d.Mirrored)
	require.Zero(t, a.ask(func(w string) { fake.Write(signaltest.Post{From: ann, Text: w}) }))
	require.Equal(t, 1, a.ask(func(w string) { fake.Write(signaltest.Post{From: pat, Text: w}) }))
}

// In the browser the brief is in its chat, and in no other.
func TestCronPlaces_Web(t *testing.T) {
	a := &asks{House: gatewaytest.Start(t, briefing(), func(h *gatewaytest.House) { h.Set["platforms.web.home_channel.chat"] = "kitchen-1" })}
	say := func(chat string) func(string) {
		return func(w string) {
			body := []byte(`{"id":"` + w + `","text":"` + w + `"}`)
			resp, err := http.Post(a.Gateway.URL()+"api/chat/chats/"+chat+"/messages", "application/json", bytes.NewReader(body))
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
	}
	d := delivered(a.House, mail(a.House, "origin", nil, nil).ID)
	require.Equal(t, []string{"dm"}, d.Mirrored)
	require.Equal(t, cron.FromFallback, d.From)
	require.Zero(t, a.ask(say("garage-1")))
	require.Equal(t, 1, a.ask(say("kitchen-1")))
	require.Equal(t, 1, a.ask(say("kitchen-1")))
}
