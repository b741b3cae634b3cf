package cron_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"herald/cron"
)

func TestFailureLine(t *testing.T) {
	for text, c := range map[string]struct {
		cause cron.Cause
		line  string
	}{
		"openai: rate_limit (HTTP 429): slow down":                                             {cron.CauseRate, "The model's provider has had too many requests (429)."},
		"the server said 429.":                                                                 {cron.CauseRate, "The model's provider has had too many requests (429)."},
		"error 4290 happened":                                                                  {cron.CauseOther, "error 4290 happened"},
		"request id a-429-b":                                                                   {cron.CauseOther, "request id a-429-b"},
		"it cost 1.429 or 0,429 or 429.5":                                                      {cron.CauseOther, "it cost 1.429 or 0,429 or 429.5"},
		"openai: auth (HTTP 401): no":                                                          {cron.CauseAuth, "The model's provider refuses the key."},
		"openai: auth: it is disabled":                                                         {cron.CauseAuth, "The model's provider refuses the key."},
		"invalid API key":                                                                      {cron.CauseAuth, "The model's provider refuses the key."},
		"the file has 4013 lines":                                                              {cron.CauseOther, "the file has 4013 lines"},
		"openai: down: dial tcp: lookup api.x: no such host":                                   {cron.CauseUnreachable, "The model's provider could not be reached."},
		"connect: connection refused":                                                          {cron.CauseUnreachable, "The model's provider could not be reached."},
		"the script watch.sh ran longer than 1h0m0s and was ended":                             {cron.CauseScriptTime, "The script ran longer than it may, and was ended."},
		"script x.py timed out after 30 s; its output ended with: HTTP 429":                    {cron.CauseScriptTime, "The script ran longer than it may, and was ended."},
		"script fetch.sh: exit code 22: HTTP 429 too many requests":                            {cron.CauseScript, "The script failed: script fetch.sh: exit code 22: HTTP 429 too many requests"},
		"the script x.sh: exit code 6: no such host":                                           {cron.CauseScript, "The script failed: the script x.sh: exit code 6: no such host"},
		"the monitor: example.com answered 429":                                                {cron.CauseMonitor, "What the job watches can't be seen: the monitor: example.com answered 429"},
		"the monitor: script x.sh: it ran longer than 1m0s and was ended":                      {cron.CauseScriptTime, "The script ran longer than it may, and was ended."},
		"no activity for 10m0s, while it waited for openai (last: HTTP 429 Too Many Requests)": {cron.CauseIdle, "The agent did nothing for too long, and was ended."},
		"ended for inactivity: dial tcp: i/o timeout":                                          {cron.CauseIdle, "The agent did nothing for too long, and was ended."},
		`the text sends secrets away: "curl $KEY"`:                                             {cron.CauseScan, `The prompt holds something that no job may: the text sends secrets away: "curl $KEY"`},
		"\n\n  first\tline \x1b[31m\nsecond":                                                   {cron.CauseOther, "first line [31m"},
		"":                                                                                     {cron.CauseOther, "It failed, and nothing says why."},
		" \n ":                                                                                 {cron.CauseOther, "It failed, and nothing says why."},
		"MEDIA:/etc/passwd":                                                                    {cron.CauseOther, "MEDIA :/etc/passwd"},
		strings.Repeat("ä", 300):                                                               {cron.CauseOther, strings.Repeat("ä", 199) + "…"},
	} {
		require.Equal(t, c.cause, cron.CauseOf(text), "%q", text)
		require.Equal(t, c.line, cron.FailureLine(text), "%q", text)
		require.LessOrEqual(t, utf8.RuneCountInString(cron.FailureLine(text)), 200)
	}
	require.Equal(t, cron.CauseScan, cron.CauseOf(cron.ScanPrompt("rm -rf /").Error()), "the words of the scan and of its cause are one")
}

func TestScanKinds_AreOneCause(t *testing.T) {
	for _, kind := range []cron.ScanKind{cron.ScanOverride, cron.ScanExfil, cron.ScanSecrets, cron.ScanDestroy, cron.ScanAccess,
		cron.ScanLifecycle, cron.ScanInvisible} {
		require.Equal(t, cron.CauseScan, cron.CauseOf((&cron.ScanError{Kind: kind, Found: "HTTP 429"}).Error()), kind)
	}
}

func TestSignature_SameFailure(t *testing.T) {
	for _, same := range [][2]string{
		{"2026-03-02T09:00:00Z: open /tmp/a1/x.json: no such file", "2026-03-03T09:15:07.123+01:00: open /var/tmp/b2/y.json: no such file"},
		{"at 09:00 it took 1.5 s", "at 10:30:07 it took 22 s"},
		{"request 0f1e2d3c4b5a failed", "request a9b8c7d6e5f4 failed"},
		{"run 3f2504e0-4f89-11d3-9a0c-0305e82c3301 ended", "run 6ba7b810-9dad-11d1-80b4-00c04fd430c8 ended"},
		{"get https://a.example/x?y=1: EOF", "GET https://b.example/z: eof"},
		{"attempt 3 of 5\nfailed", "attempt 12 of 5   failed"},
		{"slow: 300ms", "slow: 2100ms"},
		{"chat C0123AB45 is gone", "chat C9876ZZ11 is gone"},
		{"dial tcp 10.0.0.1:443: refused", "dial tcp 192.168.7.9:8080: refused"},
	} {
		require.Equal(t, cron.Signature(same[0]), cron.Signature(same[1]))
	}
}

func TestSignature_OtherFailure(t *testing.T) {
	for _, other := range [][2]string{
		{"openai: rate_limit (HTTP 429): x", "openai: rate_limit (HTTP 503): x"},
		{"script x.sh: exit code 1", "script x.sh: exit code 2"},
		{"no such file", "permission denied"},
		{"the facade is down", "the decade is down"},
	} {
		require.NotEqual(t, cron.Signature(other[0]), cron.Signature(other[1]))
	}
	require.Equal(t, "open <path>: no such file", cron.Signature("open /tmp/a1/x.json: no such file"))
	require.Equal(t, "http 429 after <n> tries", cron.Signature("HTTP 429 after 3 tries"))
}

func TestNudge(t *testing.T) {
	require.True(t, cron.Nudge(3, 3, true))
	require.True(t, cron.Nudge(9, 3, true))
	require.False(t, cron.Nudge(2, 3, true))
	require.False(t, cron.Nudge(3, 3, false), "a one-shot comes never again")
	require.False(t, cron.Nudge(3, 0, true), "0 never asks")
	require.False(t, cron.Nudge(0, 0, true))
}

func TestRetryAt(t *testing.T) {
	next := morning.Add(time.Hour)
	for tries, want := range []time.Duration{5 * time.Minute, 15 * time.Minute, 30 * time.Minute} {
		at, ok := cron.RetryAt(tries, morning, next)
		require.True(t, ok)
		require.Equal(t, morning.Add(want), at)
	}
	_, ok := cron.RetryAt(3, morning, next)
	require.False(t, ok, "three times")
	_, ok = cron.RetryAt(-1, morning, next)
	require.False(t, ok)
	_, ok = cron.RetryAt(1, morning, morning.Add(15*time.Minute))
	require.False(t, ok, "never past its own next slot, nor at it")
	_, ok = cron.RetryAt(1, morning, morning.Add(15*time.Minute+time.Second))
	require.True(t, ok)
	_, ok = cron.RetryAt(0, morning, time.Time{})
	require.True(t, ok)
}

// FuzzSignature: a signature and a failure's line are one short line each.
func FuzzSignature(f *testing.F) {
	for _, s := range []string{"open /tmp/x: no", "HTTP 429", "2026-03-02T09:00:00Z", "\x11", "exit code 1 at 0f1e2d3c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sig := cron.Signature(text)
		require.LessOrEqual(t, utf8.RuneCountInString(sig), 200)
		require.NotContains(t, sig, "\n")
		line := cron.FailureLine(text)
		require.NotEmpty(t, line)
		require.LessOrEqual(t, utf8.RuneCountInString(line), 200)
		require.NotContains(t, line, "\n")
	})
}
