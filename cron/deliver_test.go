package cron_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/platforms"
)

func TestParseDeliver(t *testing.T) {
	word := func(text, w string) cron.Token { return cron.Token{Text: text, Word: w} }
	for _, c := range []struct {
		value string
		want  []cron.Token
	}{
		{"", []cron.Token{word("local", "local")}},
		{" , ,", []cron.Token{word("local", "local")}},
		{"local", []cron.Token{word("local", "local")}},
		{"Origin, ALL", []cron.Token{word("Origin", "origin"), word("ALL", "all")}},
		{"telegram", []cron.Token{{Text: "telegram", Platform: "telegram"}}},
		{" Slack : C01 ", []cron.Token{{Text: "Slack : C01", Platform: "slack", Place: "C01"}}},
		{"slack:C01:17.5,,telegram:-100", []cron.Token{{Text: "slack:C01:17.5", Platform: "slack", Place: "C01:17.5"},
			{Text: "telegram:-100", Platform: "telegram", Place: "-100"}}},
		{"slack/T1:#general", []cron.Token{{Text: "slack/T1:#general", Platform: "slack", Account: "T1", Place: "#general"}}},
		{"teams/A", []cron.Token{{Text: "teams/A", Platform: "teams", Account: "A"}}},
		{"teams:19:abc@thread.tacv2", []cron.Token{{Text: "teams:19:abc@thread.tacv2", Platform: "teams", Place: "19:abc@thread.tacv2"}}},
		{"signal:+4915112345678", []cron.Token{{Text: "signal:+4915112345678", Platform: "signal", Place: "+4915112345678"}}},
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

func TestDeliverTo(t *testing.T) {
	at := platforms.Address{Platform: "teams", Account: "A1", Chat: "19:x@thread.tacv2", Thread: "17"}
	text, err := cron.DeliverTo(at)
	require.NoError(t, err)
	require.Equal(t, "teams/A1:19:x@thread.tacv2:17", text)
	for _, at := range []platforms.Address{
		{Platform: "slack", Account: "T1", Chat: "a,b"},
		{Platform: "slack", Account: "T1", Chat: "a,slack"},
		{Platform: "slack", Account: "T:1", Chat: "C"},
		{Platform: "slack", Account: "T1"},
		{Platform: "slack", Chat: "C"},
		{},
	} {
		_, err := cron.DeliverTo(at)
		require.Error(t, err, "%+v", at)
	}
}

func TestDeliverOfRun(t *testing.T) {
	here := []platforms.Address{{Platform: "slack", Account: "T1", Chat: "D1"}}
	for _, c := range []struct {
		deliver string
		places  []platforms.Address
		want    string
	}{
		{"origin", here, "slack/T1:D1"},
		{"origin", nil, "local"},
		{"", here, "local"},
		{"telegram, Origin, all", here, "telegram,slack/T1:D1,all"},
		{"telegram", here, "telegram"},
	} {
		got, err := cron.DeliverOfRun(c.deliver, c.places)
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.deliver)
	}
	_, err := cron.DeliverOfRun("local:x", nil)
	require.Error(t, err)
	_, err = cron.DeliverOfRun("origin", []platforms.Address{{Platform: "slack", Account: "T1", Chat: "a,b"}})
	require.Error(t, err)
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
