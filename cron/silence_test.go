package cron_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
)

func TestSilent(t *testing.T) {
	for text, want := range map[string]bool{
		"[SILENT]":     true,
		" [silent]\n":  true,
		"SILENT":       true,
		"Silent.":      true,
		"**[SILENT]**": true,
		"`NO_REPLY`":   true,
		"_no reply_":   true,
		"no \t reply!": true,
		"NO_REPLY":     true,
		"[SILENT] nothing has changed since noon": true,
		"[silent]\nI looked at 12 mails.":         true,
		"I looked at 12 mails.\n\n[SILENT]\n \n":  true,
		"NO REPLY\n\nnothing new":                 true,
		"I looked at 12 mails.\nNO_REPLY":         true,
		"\n\n  SILENT \nno news":                  true,

		"":                                       false,
		" \n\t":                                  false,
		"I answer [SILENT] when nothing is new.": false,
		"silent night":                           false,
		"The room was silent":                    false,
		"first\n[SILENT]\nlast":                  false,
		"(see [SILENT] above)":                   false,
		"[SILENT":                                false,
		"[NO_REPLY":                              false,
		"no-reply":                               false,
		"noreply@example.com":                    false,
		"[]":                                     false,
		"...":                                    false,
		strings.Repeat("*", 60) + "SILENT":       false,
	} {
		require.Equal(t, want, cron.Silent(text), "%q", text)
	}
}

func TestSilent_CapOfAMarker(t *testing.T) {
	require.True(t, cron.Silent(strings.Repeat("*", 58)+"SILENT"), "64 characters")
	require.False(t, cron.Silent(strings.Repeat("*", 59)+"SILENT"), "65 characters")
	require.True(t, cron.Silent(strings.Repeat("…", 58)+"SILENT"), "characters, not bytes")
}

func TestDeliverable(t *testing.T) {
	for answer, want := range map[string]string{
		"a brief":                      "a brief",
		" as it is \n":                 " as it is \n",
		"":                             "",
		"FINAL_CRON_OUTPUT: the brief": "the brief",
		"notes\nFINAL_CRON_OUTPUT:\nthe brief\nin two lines\n":  "the brief\nin two lines",
		"FINAL_CRON_OUTPUT: one\nFINAL_CRON_OUTPUT: two":        "two",
		"notes\nFINAL_CRON_OUTPUT: one\nFINAL_CRON_OUTPUT: two": "two",
		"notes\nFINAL_CRON_OUTPUT:  \n ":                        "notes\nFINAL_CRON_OUTPUT:  \n ",
		"the word FINAL_CRON_OUTPUT: in a line":                 "the word FINAL_CRON_OUTPUT: in a line",
		"notes\nFINAL_CRON_OUTPUT: [SILENT]":                    "[SILENT]",
	} {
		require.Equal(t, want, cron.Deliverable(answer), "%q", answer)
	}
	require.True(t, cron.Silent(cron.Deliverable("I looked at it all.\nFINAL_CRON_OUTPUT: [SILENT]")))
}

// FuzzSilent: what surrounds a text never matters, nothing but a short text or one with a marker is silent, and what is
// to be delivered is part of the answer.
func FuzzSilent(f *testing.F) {
	for _, s := range []string{"[SILENT]", "a\nNO REPLY", "silent night", "FINAL_CRON_OUTPUT: x", "\u212aSILENT", "[ſILENT]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		silent := cron.Silent(text)
		require.Equal(t, silent, cron.Silent("\n \t"+text+" \n\n"))
		if up := strings.ToUpper(text); silent && !strings.Contains(up, "SILENT") {
			require.Contains(t, up, "NO")
			require.Contains(t, up, "REPLY")
		}
		require.Contains(t, text, strings.TrimSpace(cron.Deliverable(text)))
	})
}
