package cron_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/platforms"
)

func TestParseDeliver(t *testing.T) {
	word := func(text, w string) cron.Token { return cron.Token{Text: text, Target: platforms.Target{Word: w}} }
	for _, c := range []struct {
		value string
		want  []cron.Token
	}{
		{"", []cron.Token{word("local", "local")}},
		{" , ,", []cron.Token{word("local", "local")}},
		{"local", []cron.Token{word("local", "local")}},
		{"Origin, ALL", []cron.Token{word("Origin", "origin"), word("ALL", "all")}},
		{"telegram", []cron.Token{{Text: "telegram", Target: platforms.Target{Platform: "telegram"}}}},
		{" Slack : C01 ", []cron.Token{{Text: "Slack : C01", Target: platforms.Target{Platform: "slack", Place: "C01"}}}},
		{"slack:C01:17.5,,telegram:-100", []cron.Token{{Text: "slack:C01:17.5", Target: platforms.Target{Platform: "slack", Place: "C01:17.5"}},
			{Text: "telegram:-100", Target: platforms.Target{Platform: "telegram", Place: "-100"}}}},
		{"slack/T1:#general", []cron.Token{{Text: "slack/T1:#general", Target: platforms.Target{Platform: "slack", Account: "T1", Place: "#general"}}}},
		{"teams/A", []cron.Token{{Text: "teams/A", Target: platforms.Target{Platform: "teams", Account: "A"}}}},
		{"teams:19:abc@thread.tacv2", []cron.Token{{Text: "teams:19:abc@thread.tacv2", Target: platforms.Target{Platform: "teams", Place: "19:abc@thread.tacv2"}}}},
		{"signal:+4915112345678", []cron.Token{{Text: "signal:+4915112345678", Target: platforms.Target{Platform: "signal", Place: "+4915112345678"}}}},
	} {
		got, err := cron.ParseDeliver(c.value)
		require.NoError(t, err, c.value)
		require.Equal(t, c.want, got, c.value)
	}
}

func TestParseDeliver_Refused(t *testing.T) {
	for value, want := range map[string]string{
		"bot-chat":                   "write web",
		"bot-chat:work":              "write web",
		"local:here":                 "stands alone",
		"origin/x":                   "stands alone",
		"all:everybody":              "stands alone",
		"the general channel":        "no name of a platform",
		"#general":                   "no name of a platform",
		"@ada":                       "no name of a platform",
		"+491511":                    "no name of a platform",
		":C01":                       "no name of a platform",
		"slack:":                     "no chat behind the colon",
		"slack/":                     "no account behind the slash",
		"slack/:C01":                 "no account behind the slash",
		"slack:C\x0001":              "control character",
		"telegram:1\n2":              "control character",
		strings.Repeat("slack,", 33): "too many",
		"slack:" + strings.Repeat("x", cron.MaxDeliver): "too many",
	} {
		_, err := cron.ParseDeliver("telegram, " + value)
		require.ErrorContains(t, err, want, value)
		if want != "too many" {
			require.ErrorContains(t, err, "<platform>:<chat>", "it says what is allowed")
			require.ErrorContains(t, err, "delivery target", "it names the target")
		}
	}
}

func TestJoinDeliver(t *testing.T) {
	require.Equal(t, "local", cron.JoinDeliver(nil))
	require.Equal(t, "local", cron.JoinDeliver([]string{"", "  "}))
	require.Equal(t, "origin,slack", cron.JoinDeliver([]string{" origin", "", "slack "}))
}

// FuzzParseDeliver: what is taken can be written again as it is, and no target holds a comma.
func FuzzParseDeliver(f *testing.F) {
	for _, s := range []string{"origin,all", "slack/T1:#general:17.5", "teams:19:a@b", "bot-chat", " , ", "slack:\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		tokens, err := cron.ParseDeliver(value)
		if err != nil {
			return
		}
		require.NotEmpty(t, tokens)
		var list []string
		for _, tok := range tokens {
			require.NotContains(t, tok.Text, ",")
			require.True(t, (tok.Word == "") == (tok.Platform != ""))
			list = append(list, tok.Text)
		}
		again, err := cron.ParseDeliver(cron.JoinDeliver(list))
		require.NoError(t, err)
		require.Equal(t, tokens, again)
	})
}
