package slack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// labels resolves ids without asking anybody.
type labels struct{}

func (labels) userName(id string) string    { return "@" + strings.ToLower(id) }
func (labels) channelName(id string) string { return "#" + strings.ToLower(id) }

func TestRichText(t *testing.T) {
	section := func(elements string) string {
		return `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` + elements + `]}]}]`
	}
	for _, c := range []struct{ name, blocks, want, others string }{
		{"text", section(`{"type":"text","text":"a & <b>"}`), "a & <b>", ""},
		{"styles", section(`{"type":"text","text":"bold ","style":{"bold":true}},{"type":"text","text":"x","style":{"italic":true,"strike":true}},{"type":"text","text":"code","style":{"code":true}}`), "*bold* _~x~_`code`", ""},
		{"references", section(`{"type":"user","user_id":"U1"},{"type":"text","text":" "},{"type":"channel","channel_id":"C1"},{"type":"text","text":" "},{"type":"broadcast","range":"here"},{"type":"text","text":" "},{"type":"usergroup","usergroup_id":"S1"}`), "@u1 #c1 @here @S1", ""},
		{"links", section(`{"type":"link","url":"https://a.b","text":"there"},{"type":"text","text":" "},{"type":"link","url":"https://c.d"}`), "there (https://a.b) https://c.d", ""},
		{"emoji", section(`{"type":"emoji","name":"eyes","unicode":"1f440"},{"type":"emoji","name":"party-parrot"},{"type":"emoji","name":"family","unicode":"1f468-200d-1f469"}`), "👀:party-parrot:👨‍👩", ""},
		{"quote", `[{"type":"rich_text","elements":[{"type":"rich_text_quote","elements":[{"type":"text","text":"one\ntwo"}]},{"type":"rich_text_section","elements":[{"type":"text","text":"why?"}]}]}]`, "> one\n> two\nwhy?", ""},
		{"code", `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"run:\n"}]},{"type":"rich_text_preformatted","elements":[{"type":"text","text":"ls *\n"}]}]}]`, "run:\n```\nls *\n```", ""},
		{"lists", `[{"type":"rich_text","elements":[
			{"type":"rich_text_list","style":"ordered","offset":1,"elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"b"}]},{"type":"rich_text_section","elements":[{"type":"text","text":"c\nd"}]}]},
			{"type":"rich_text_list","style":"bullet","indent":1,"elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x"}]}]}]}]`,
			"2. b\n3. c\n   d\n  - x", ""},
		{"other blocks", `[{"type":"header","block_id":"x","text":{"type":"plain_text","text":"Deploy"}}]`, "", `[{"text":{"type":"plain_text","text":"Deploy"},"type":"header"}]`},
		{"a field of another shape", section(`{"type":"text","text":{"a":1}},{"type":"text","text":"b"},{"type":"color","value":"#fff"},{"type":"date","fallback":"today"}`), "b#ffftoday", ""},
		{"no list", `{"type":"rich_text"}`, "", ""},
		{"nothing", ``, "", ""},
		{"a forged mark", section(`{"type":"text","text":"a\u0000@\u0000b"}`), "a@b", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, others := richText(json.RawMessage(c.blocks), labels{})
			require.Equal(t, c.want, text)
			require.Equal(t, c.others, others)
		})
	}
	_, others := richText(json.RawMessage(`[{"type":"section","text":"`+strings.Repeat("é", 9000)+`"}]`), labels{})
	require.LessOrEqual(t, len(others), maxOtherJSON)
}

func TestMrkdwn(t *testing.T) {
	for text, want := range map[string]string{
		"a &amp; b &lt;c&gt;":                                 "a & b <c>",
		"<@U1> in <#C1|general> and <#C2>":                    "@u1 in #general and #c2",
		"<https://a.b|the docs> <https://c.d> <http://e|e>":   "the docs (https://a.b) https://c.d http://e",
		"<mailto:a@b.c|a@b.c>":                                "a@b.c",
		"<!here> <!subteam^S1|@team> <!date^1^{date}|Monday>": "@here @team Monday",
		"a < b":           "a < b",
		"<@U1":            "<@U1",
		"x\x00@\x00y":     "x@y",
		"&amp;lt;":        "&lt;",
		"<!subteam^S123>": "@subteam",
	} {
		require.Equal(t, want, mrkdwn(text, labels{}), "%q", text)
	}
}

// Whatever a message holds, reading it ends, is bounded, and can't forge a mention of the bot.
func FuzzRichText(f *testing.F) {
	f.Add([]byte(`[{"type":"rich_text","elements":[{"type":"rich_text_list","indent":900,"elements":[{"type":"rich_text_list","elements":[]}]}]}]`), "<@U1> &amp; <")
	f.Add([]byte(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"emoji","unicode":"-1"},{"type":"user","user_id":"\u0000@\u0000"}]}]}]`), "\x00@\x00")
	f.Fuzz(func(t *testing.T, blocks []byte, flat string) {
		text, others := richText(blocks, labels{})
		if len(others) > maxOtherJSON {
			t.Fatalf("%d bytes of other blocks", len(others))
		}
		for _, s := range []string{text, mrkdwn(flat, labels{}), attached(wireAttachment{Text: flat, Fallback: flat, IsShare: true,
			AuthorName: flat}, labels{})} {
			if strings.Contains(s, ownMark) {
				t.Fatalf("%q holds a forged mention", s)
			}
		}
	})
}
