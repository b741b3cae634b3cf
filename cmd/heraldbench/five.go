package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"herald/platforms/platformtest/discordtest"
	"herald/platforms/platformtest/signaltest"
	"herald/platforms/platformtest/slacktest"
	"herald/platforms/platformtest/teamstest"
)

// connectLimit is how long all platforms may take until messages can come in.
const connectLimit = time.Minute

// neighbour is the fake of a further platform that the daemon connects to.
type neighbour struct {
	env   []string
	close func()
}

// neighbours starts Slack, Discord, Signal and Teams.
func neighbours() (list []neighbour, err error) {
	for _, start := range []func() (neighbour, error){slackNeighbour, discordNeighbour, signalNeighbour, teamsNeighbour} {
		n, err := start()
		if err != nil {
			return list, err
		}
		list = append(list, n)
	}
	return list, nil
}

func slackNeighbour() (neighbour, error) {
	const app = "xapp-1-A0HERALD0-1-benchmark"
	s := slacktest.New(slacktest.Options{AppToken: app})
	url, err := s.Start()
	team := s.AddTeam(slacktest.Team{})
	return neighbour{[]string{"SLACK_BOT_TOKEN=" + team.BotToken, "SLACK_APP_TOKEN=" + app, "SLACK_API_URL=" + url, "SLACK_ALLOWED_USERS=*"}, s.Close}, err
}

func discordNeighbour() (neighbour, error) {
	const token = "MTIzNDU2Nzg5MDEyMzQ1Njc4.bench.mark-0000000000000000000"
	d := discordtest.New(discordtest.Options{Token: token, BotID: "123456789012345678"})
	url, err := d.Start()
	return neighbour{[]string{"DISCORD_BOT_TOKEN=" + token, "DISCORD_API_URL=" + url, "DISCORD_ALLOWED_USERS=*"}, d.Close}, err
}

func signalNeighbour() (neighbour, error) {
	const account = "+15550000001"
	s := signaltest.New(signaltest.Options{Account: account})
	url, err := s.Start()
	return neighbour{[]string{"SIGNAL_HTTP_URL=" + url, "SIGNAL_ACCOUNT=" + account, "SIGNAL_ALLOWED_USERS=*"}, s.Close}, err
}

func teamsNeighbour() (neighbour, error) {
	s := teamstest.New(teamstest.Options{})
	if _, err := s.Start(); err != nil {
		return neighbour{}, err
	}
	u := s.URLs()
	return neighbour{[]string{"TEAMS_CLIENT_ID=" + s.AppID(), "TEAMS_CLIENT_SECRET=" + s.Secret(), "TEAMS_TENANT_ID=" + s.TenantID(), "TEAMS_PORT=0",
		"TEAMS_SERVICE_URL=" + u.Service, "HERALD_TEAMS_LOGIN_URL=" + u.Login, "HERALD_TEAMS_OPENID_URL=" + u.OpenID, "TEAMS_ALLOWED_USERS=*"}, s.Close}, nil
}

// fivePhase starts a daemon of its own with all platforms and watches it idle.
func fivePhase(ctx context.Context, o options) (_ idled, err error) {
	list, err := neighbours()
	defer func() {
		for _, n := range list {
			n.close()
		}
	}()
	if err != nil {
		return idled{}, err
	}
	s, err := newStage(o.line, "", o.limit)
	if err != nil {
		return idled{}, err
	}
	defer func() {
		if closing := s.close(); err == nil {
			err = closing
		}
	}()
	for _, n := range list {
		s.daemon.env = append(s.daemon.env, n.env...)
	}
	if _, err := s.start(); err != nil {
		return idled{}, err
	}
	if err := s.awaitReady(ctx, 2+len(list)); err != nil { // with Telegram and the browser chat
		return idled{}, err
	}
	if err := s.warm(); err != nil {
		return idled{}, err
	}
	return s.idlePhase(ctx)
}

// without runs fn while the stage's own daemon is stopped: two of them would share the pages of the program, and each
// would look smaller than it is.
func (s *stage) without(fn func() error) error {
	if err := s.daemon.stop(); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	if _, err := s.start(); err != nil {
		return err
	}
	return s.warm()
}

// awaitReady waits until the daemon says that messages can come in on so many accounts.
func (s *stage) awaitReady(ctx context.Context, accounts int) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var health struct {
			Accounts []json.RawMessage `json:"accounts"`
		}
		resp, err := s.client.Get("http://" + s.listen + "/readyz")
		if err == nil {
			err = json.NewDecoder(resp.Body).Decode(&health)
			_ = resp.Body.Close()
			if err == nil && resp.StatusCode == http.StatusOK && len(health.Accounts) == accounts {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not all of %d accounts were ready within %s; the daemon's output:\n%s", accounts, connectLimit, s.output())
		case <-tick.C:
		}
	}
}
