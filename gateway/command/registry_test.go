package command_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/command"
	"herald/gateway/router"
	rt "herald/gateway/router/routertest"
	"herald/platforms"
)

func TestRegistry_Parse(t *testing.T) {
	reg := command.New(command.Services{})
	text := func(s string) platforms.Event { return platforms.Event{Message: &platforms.Message{Text: s}} }
	for _, c := range []struct{ in, name, args string }{
		{"/help", "help", ""},
		{"  /HELP  stop ", "help", "stop"},
		{"!stop", "stop", ""},
		{"/help@herald_bot", "help", ""},
		{"/title@herald_bot My talk", "title", "My talk"},
		{"/reset", "new", ""},
		{"/q do\tthis\nand that", "queue", "do\tthis\nand that"},
		{"/queue\nlater", "queue", "later"},
		{"/compact", "compress", ""},
		{"/com", "compress", ""}, // the first in the registry's order: compress stands before commands
		{"/stat", "status", ""},
		{"/sto", "stop", ""},
		{"/und 3", "undo", "3"},
		{"/s", "", ""}, // one letter is too little to guess from
		{"/unknown thing", "", ""},
		{"/etc/hosts has what?", "", ""},
		{"/new/folder", "", ""},
		{"!", "", ""},
		{"/", "", ""},
		{"!!!", "", ""},
		{"", "", ""},
		{"help", "", ""},
		{"see /help", "", ""},
	} {
		cmd, ok := reg.Parse(text(c.in))
		require.Equal(t, c.name != "", ok, c.in)
		require.Equal(t, c.name, cmd.Name, c.in)
		require.Equal(t, c.args, cmd.Args, c.in)
	}
	captioned := text("/stop")
	captioned.Message.Attachments = []platforms.Attachment{{Kind: platforms.Image}}
	_, ok := reg.Parse(captioned)
	require.False(t, ok, "a caption that looks like a command goes to the agent with its picture")
	cmd, ok := reg.Parse(platforms.Event{Command: &platforms.Command{Name: "Undo", Args: "  "}})
	require.True(t, ok)
	require.Equal(t, router.Command{Name: "undo", Busy: router.Reject}, cmd)
	_, ok = reg.Parse(platforms.Event{Command: &platforms.Command{Name: "weather", Args: "here"}})
	require.False(t, ok)
	_, ok = reg.Parse(platforms.Event{Click: &platforms.Click{Data: "/stop"}})
	require.False(t, ok)
}

// Menus of platforms take names of lower-case letters, digits and dashes, and short descriptions.
func TestRegistry_Infos(t *testing.T) {
	reg := command.New(command.Services{})
	require.Len(t, reg.Infos(), len(reg.Specs()))
	for _, info := range reg.Infos() {
		require.Regexp(t, regexp.MustCompile(`^[a-z0-9-]{1,32}$`), info.Name)
		require.NotEmpty(t, info.Description)
		require.Less(t, len(info.Description), 100)
	}
}

// An unknown command goes to the agent, as an address in a text does.
func TestRegistry_UnknownGoesToTheAgent(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Equal(t, "re: /unknown thing", ask(r, "a", "/unknown thing"))
		e := r.Text("a", "")
		e.Message, e.Command = nil, &platforms.Command{Name: "weather", Args: "here"}
		r.Give(e)
		r.Settle()
		require.Equal(t, "re: /weather here", r.Chat.Last("a"))
	})
}

// P13: who may not use a command is told so, and nothing happens.
func TestRegistry_Tiers(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, d *desk) {
		d.user, d.allowed = true, map[string]bool{"title": true}
		require.Equal(t, "You may not use /new here. /whoami shows what you may use.", ask(r, "a", "/new"))
		require.Equal(t, "You may not use /queue here. /whoami shows what you may use.", ask(r, "a", "/q clear"))
		require.Contains(t, ask(r, "a", "/title"), "no title")
		require.Contains(t, ask(r, "a", "/status"), "Status")
		who := ask(r, "a", "/whoami")
		require.Contains(t, who, "You are Ada (id `user-a`) on test.")
		require.Contains(t, who, "`/title`")
		require.NotContains(t, who, "`/new`")
		help := ask(r, "a", "/help")
		require.Contains(t, help, "/title [name]")
		require.NotContains(t, help, "/undo")
		d.user = false
		require.Contains(t, ask(r, "a", "/whoami"), "every command")
		require.Contains(t, ask(r, "a", "/help"), "/undo [N]")
	})
}

// A native command is answered where only its sender sees it.
func TestRegistry_AnswersNativeCommandsPrivately(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, d *desk) {
		e := r.Text("a", "")
		e.Message, e.Command = nil, &platforms.Command{Name: "version", Reply: "token"}
		r.Give(e)
		r.Settle()
		require.True(t, strings.HasPrefix(r.Chat.Last("a"), "Herald v1"), r.Chat.Last("a"))
		require.Equal(t, []string{"token"}, r.Chat.Private())
	})
}

func TestRegistry_AFailureIsSaid(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		r.Store.Fail("command", 1)
		require.Equal(t, "/version failed: the disk is full", ask(r, "a", "/version"))
		r.Store.Fail("command", -1)
		require.Empty(t, ask(r, "a", "/version"))
		r.Store.Fail("command", 0)
		r.Restart()
		require.Contains(t, r.Chat.Last("a"), "Herald v1", "taken up again at the next start")
	})
}

func TestRegistry_Buttons(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, d *desk) {
		for _, data := range []string{"", "nonsense", "ask:0:0", "ask:x:-1", "resend:77"} {
			e := r.Text("a", "")
			e.Message, e.Click = nil, &platforms.Click{Data: data}
			r.Give(e)
			r.Settle()
		}
		require.Len(t, d.clicks, 5)
		for _, text := range d.clicks[:4] {
			require.NotEmpty(t, text)
		}
		require.Empty(t, r.Model.Asked())
	})
}
