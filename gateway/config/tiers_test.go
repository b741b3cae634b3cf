package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/config"
	"herald/platforms"
	"herald/platforms/all"
	"herald/platforms/discord"
	"herald/platforms/signal"
	"herald/platforms/slack"
	"herald/platforms/teams"
	"herald/platforms/telegram"
)

// What each platform shows when nothing is set: by the adapters' own traits. Teams is as quiet as Slack.
func TestDisplay_QuietTiersByPlatform(t *testing.T) {
	adapters := map[string]platforms.Adapter{}
	add := func(name string, a platforms.Adapter, err error) {
		t.Helper()
		require.NoError(t, err, name)
		adapters[name] = a
	}
	tg, err := telegram.New(telegram.Options{Token: "4242:a-token-of-these-tests-0000000000"})
	add("telegram", tg, err)
	d, err := discord.New(discord.Options{Token: "MTIzNDU2Nzg5MDEyMzQ1Njc4.Gabcde.abcdefghijklmnopqrstuvwxyz0123456789AB"})
	add("discord", d, err)
	sg, err := signal.New(signal.Options{URL: "http://127.0.0.1:1", Account: "+4915112345678"})
	add("signal", sg, err)
	tm, err := teams.New(teams.Options{ClientID: "11111111-2222-4333-8444-555555555555", ClientSecret: "secret-of-the-tests", TenantID: "66666666-7777-4888-8999-000000000000", MediaDir: t.TempDir()})
	add("teams", tm, err)
	sl, err := slack.New(slack.Options{Tokens: []slack.Token{{Token: "xoxb-1-2-abcdefghijkl"}}, AppToken: "xapp-1-A1-2-abcdefghijkl"})
	require.NoError(t, err)
	add("slack", sl[0], nil)

	for _, row := range []struct {
		name                                      string
		tier                                      platforms.Tier
		progress                                  string
		interim, heartbeat, busyDetail, streaming bool
	}{
		{"discord", platforms.TierHigh, "all", true, true, true, true},
		{"telegram", platforms.TierHighQuiet, "off", true, true, false, true},
		{"slack", platforms.TierMediumQuiet, "off", true, false, false, true},
		{"teams", platforms.TierMediumQuiet, "off", true, false, false, true},
		{"signal", platforms.TierLow, "off", false, false, false, false},
		{"web", platforms.TierHigh, "all", true, true, true, true},
		{"api_server", platforms.TierHigh, "all", true, true, true, true},
		{"webhook", platforms.TierMinimal, "off", false, false, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			tier := row.tier
			if a := adapters[row.name]; a != nil {
				tier = a.Traits().Tier
				require.Equal(t, row.tier, tier)
				require.False(t, row.streaming && !a.Traits().Edit, "what streams must be able to edit")
			}
			d := config.Default().DisplayFor(platforms.Name(row.name), tier)
			require.Equal(t, row.progress, d.ToolProgress)
			require.Equal(t, row.interim, d.Interim)
			require.Equal(t, row.heartbeat, d.LongRunning)
			require.Equal(t, row.busyDetail, d.BusyAckDetail)
			require.Equal(t, row.streaming, d.Streaming)
			require.Equal(t, "full", d.LiveStatus)
		})
	}
	names := map[string]bool{}
	for _, b := range config.Default(all.Kinds()...).Platforms.Blocks() {
		names[string(b.Name())] = true
	}
	delete(names, "web") // made by the daemon alone; its tier is in TestDisplayFor
	for name := range adapters {
		delete(names, name)
	}
	require.Empty(t, names, "every platform is in the table")
}
