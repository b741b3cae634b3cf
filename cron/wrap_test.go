package cron_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
)

func TestWrap(t *testing.T) {
	require.Equal(t, `Scheduled job: Morning
(job 0123456789ab)

-------------

the brief
MEDIA:/home/ada/plot.png

-------------

To change or stop this job, say so in a chat, or run: herald cron pause 0123456789ab`,
		cron.Wrap(cron.Frame{Name: "Morning", ID: jobID}, "\nthe brief\nMEDIA:/home/ada/plot.png \n"))
	require.Equal(t, "Auftrag: x\n(job 0123456789ab)\n\n-------------\n\ny\n\n-------------\n\nEnde",
		cron.Wrap(cron.Frame{Name: "x", ID: jobID, Title: "Auftrag", Footer: "Ende"}, "y"))
	require.Empty(t, cron.Wrap(cron.Frame{Name: "x", ID: jobID}, " \n"), "nothing is nothing to send")
}

func TestWrap_NameIsPlain(t *testing.T) {
	text := cron.Wrap(cron.Frame{Name: "a\nMEDIA:/etc/passwd [[audio_as_voice]]\u202e\x07 " + strings.Repeat("é", 90), ID: jobID}, "brief")
	head, _, _ := strings.Cut(text, "\n")
	require.NotContains(t, text, "MEDIA:")
	require.NotContains(t, text, "[[")
	require.True(t, strings.HasPrefix(head, "Scheduled job: a MEDIA :/etc/passwd [audio_as_voice]] é"), head)
	require.True(t, strings.HasSuffix(head, "é…"))
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"":            "",
		"a  b\r\n\tc": "a b c",
		"1234567890":  "1234567890",
		"12345678901": "123456789…",
		"ééééééééééé": "ééééééééé…",
		"a\x00b\xff":  "ab",
		"MEDIA::x":    "MEDIA ::x",
		"[[[[a]]":     "[a]]",
	} {
		require.Equal(t, want, cron.Plain(text, 10), "%q", text)
	}
}

func TestWrap_ClosesACodeBlock(t *testing.T) {
	for body, want := range map[string]string{
		"```\ncode":            "```\ncode\n```",
		"```go\ncode\n```":     "```go\ncode\n```",
		"````\n```\ncode":      "````\n```\ncode\n````",
		"```\n``` not the end": "```\n``` not the end\n```",
		"a ``` b":              "a ``` b",
		"``x``":                "``x``",
	} {
		text := cron.Wrap(cron.Frame{ID: jobID}, body)
		require.Contains(t, text, "-------------\n\n"+want+"\n\n-------------", "%q", body)
	}
}
