package discord

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/discordtest"
)

// commandsFor registers the usual commands.
func (r *rig) commandsFor(infos ...platforms.CommandInfo) {
	r.t.Helper()
	require.NoError(r.t, r.a.SetCommands(r.ctx(), infos))
}

var status = platforms.CommandInfo{Name: "status", Description: "What goes on"}

// An interaction is confirmed to Discord only once the core has it.
func TestInteractions_ConfirmedAfterTheCommit(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.commandsFor(status)
	release := r.sink.Block()
	run, ok := r.fake.Run(discordtest.Command{Channel: r.channel, Name: "status"})
	require.True(t, ok)
	r.until("it is offered", func() bool { return len(r.sink.Offered()) > 0 })
	i, _ := r.fake.Interaction(run)
	require.False(t, i.Answered)
	release()
	r.until("it is confirmed", func() bool { i, _ := r.fake.Interaction(run); return i.Answered })
	i, _ = r.fake.Interaction(run)
	require.Equal(t, 5, i.Type)
	require.True(t, i.Private)
}

// A command in a thread of a channel carries the thread, and its person's roles.
func TestInteractions_AddressesOfCommands(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.commandsFor(status)
	for i, at := range []platforms.Address{address(r.dm, ""), address(r.channel, ""), address(r.channel, r.thread), address(r.forum, r.post)} {
		channel := discordtest.ID(at.Chat)
		if at.Thread != "" {
			channel = discordtest.ID(at.Thread)
		}
		_, ok := r.fake.Run(discordtest.Command{Channel: channel, Name: "status"})
		require.True(t, ok)
		e := r.last(i + 1)
		require.Equal(t, at, e.Address)
		require.Equal(t, "Pat Doe", e.Sender.Name)
	}
}

// The placeholder of a command whose answer is an ordinary message goes away.
func TestInteractions_PlaceholderSettles(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.commandsFor(status)
	run, _ := r.fake.Run(discordtest.Command{Channel: r.channel, Name: "status"})
	e := r.last(1)
	r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("for everybody")})
	r.until("the placeholder is gone", func() bool {
		i, _ := r.fake.Interaction(run)
		for _, m := range r.fake.Visible(r.channel) {
			if m.Thinking {
				return false
			}
		}
		return i.Answered
	})
	// A private answer after that is a message of its own.
	r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("for one"), Private: e.Command.Reply})
	found := false
	for _, m := range r.fake.Visible(r.channel) {
		found = found || m.Ephemeral && m.Text == "for one" && m.For == r.person
	}
	require.True(t, found, "%+v", r.fake.Visible(r.channel))
}

// Private answers: several of them, with files and buttons, and their edits.
func TestInteractions_PrivateAnswers(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.commandsFor(status)
	_, _ = r.fake.Run(discordtest.Command{Channel: r.channel, Name: "status"})
	e := r.last(1)
	rows := [][]platforms.Button{{{Label: "More", Data: "more:1"}}}
	receipt := r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("one"), Private: e.Command.Reply, Buttons: rows})
	r.mustSend(platforms.Outgoing{Address: e.Address, Private: e.Command.Reply,
		Attachments: []platforms.Attachment{{Name: "a.txt", Path: r.file("a.txt", "x")}}})
	_, err := r.send(platforms.Outgoing{Address: e.Address, Edit: receipt.Message, Text: words("two"), Private: e.Command.Reply, Buttons: rows})
	require.NoError(t, err)
	var seen []discordtest.Message
	for _, m := range r.fake.Visible(r.channel) {
		require.True(t, m.Ephemeral)
		seen = append(seen, m)
	}
	require.Len(t, seen, 2)
	require.Equal(t, "two", seen[0].Text)
	require.Equal(t, "a.txt", seen[1].Files[0].Name)
	_, ok := r.fake.Press(r.channel, seen[0].ID, "more:1", "")
	require.True(t, ok)
	click := r.last(2)
	require.Equal(t, "more:1", click.Click.Data)
	require.NoError(t, r.a.AnswerClick(r.ctx(), click.Address, *click.Click, "here"))
}

// Answers that come too late: in a direct chat an ordinary message takes their place, elsewhere it is said.
func TestInteractions_TooLate(t *testing.T) {
	r := newRig(t, discordtest.Options{TokenLife: 20 * time.Millisecond}, nil)
	r.commandsFor(status)
	for i, channel := range []discordtest.ID{r.dm, r.channel} {
		run, _ := r.fake.Run(discordtest.Command{Channel: channel, Name: "status"})
		e := r.last(i + 1)
		r.until("it is confirmed", func() bool { i, _ := r.fake.Interaction(run); return i.Answered })
		var err error
		r.until("the token is worthless", func() bool {
			_, err = r.send(platforms.Outgoing{Address: e.Address, Text: words("late"), Private: e.Command.Reply})
			if channel == r.dm {
				return err == nil && len(r.texts(r.dm)) > 0 && !r.fake.Visible(r.dm)[len(r.texts(r.dm))-1].Ephemeral
			}
			return err != nil
		})
		if channel == r.channel {
			require.Equal(t, platforms.Unsupported, failure(t, err).Kind)
		}
	}
}

// An old token is known to be worthless without asking.
func TestInteractions_FifteenMinutes(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	reply := idAt(time.Now().Add(-16*time.Minute)) + ":token"
	_, err := r.send(platforms.Outgoing{Address: address(r.channel, ""), Text: words("late"), Private: reply})
	require.ErrorContains(t, err, "15 minutes")
	require.Equal(t, platforms.Unsupported, failure(t, err).Kind)
	r.fake.Say(r.dm, "hello")
	r.last(1)
	r.mustSend(platforms.Outgoing{Address: address(r.dm, ""), Text: words("late"), Private: reply})
	require.Equal(t, []string{"late"}, r.texts(r.dm))
	require.NoError(t, r.a.AnswerClick(r.ctx(), address(r.dm, ""), platforms.Click{Reply: reply}, "x"), "a press that is forgotten")
	require.Error(t, r.a.AnswerClick(r.ctx(), address(r.dm, ""), platforms.Click{Reply: "x"}, "x"))
}

// Discord has told the person that it failed: it must not happen minutes later all the same.
func TestInteractions_ReplayedTooLate(t *testing.T) {
	a := quietAdapter(t)
	for i, c := range []struct {
		age    time.Duration
		replay bool
		kept   int
	}{{time.Minute, true, 0}, {time.Second, true, 1}, {time.Minute, false, 1}} {
		sink := &platformtest.Sink{}
		raw := fmt.Sprintf(`{"id":%q,"type":2,"token":"t%d","channel_id":"2","user":{"id":"3"},"data":{"name":"new"}}`, idAt(time.Now().Add(-c.age)), i)
		require.NoError(t, a.dispatch(t.Context(), &link{a: a, sink: sink, replay: c.replay}, frame{T: "INTERACTION_CREATE", D: []byte(raw)}))
		require.Len(t, sink.Events(), c.kept)
	}
}

// A press in a channel that is not answered is refused to its person, and not handed on.
func TestInteractions_IgnoredChannel(t *testing.T) {
	r := prepareRig(t, discordtest.Options{}, nil)
	chain := r.change
	r.change = func(o *Options) { chain(o); o.IgnoredChannels = []string{string(r.channel)} }
	r.start()
	r.commandsFor(status)
	run, _ := r.fake.Run(discordtest.Command{Channel: r.channel, Name: "status"})
	r.until("it is refused", func() bool { i, _ := r.fake.Interaction(run); return i.Answered && i.Private && i.Text != "" })
	require.Zero(t, r.settle())
}

// Choices beyond what buttons hold become menus, and a choice there is a press.
func TestComponents_Menus(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	var rows [][]platforms.Button
	for i := range 30 {
		rows = append(rows, []platforms.Button{{Label: "choice " + strconv.Itoa(i), Data: fmt.Sprintf("c:%d", i)}})
	}
	receipt := r.mustSend(platforms.Outgoing{Address: address(r.channel, r.thread), Text: words("choose"), Buttons: rows})
	m, _ := r.fake.Message(r.thread, discordtest.ID(receipt.Message))
	require.Len(t, m.Buttons, 2)
	require.Len(t, m.Buttons[0][0].Options, 25)
	pick, ok := r.fake.Pick(r.thread, m.ID, m.Buttons[1][0].Data, []string{"c:27"}, "")
	require.True(t, ok)
	e := r.last(1)
	require.Equal(t, "c:27", e.Click.Data)
	require.Equal(t, address(r.channel, r.thread), e.Address)
	r.until("it is confirmed", func() bool { i, _ := r.fake.Interaction(pick); return i.Answered && i.Type == 6 })
}

func TestComponents_Layout(t *testing.T) {
	button := func(n int) platforms.Button { return platforms.Button{Label: "b", Data: strconv.Itoa(n)} }
	build := func(rows ...int) [][]platforms.Button {
		var out [][]platforms.Button
		n := 0
		for _, size := range rows {
			var row []platforms.Button
			for range size {
				row, n = append(row, button(n)), n+1
			}
			out = append(out, row)
		}
		return out
	}
	for _, c := range []struct {
		rows []int
		want int
	}{{nil, 0}, {[]int{0, 0}, 0}, {[]int{1}, 1}, {[]int{2, 0, 3}, 2}, {[]int{6}, 2}, {[]int{1, 1, 1, 1, 1, 1}, 2}, {[]int{25}, 5},
		{[]int{26}, 2}, {[]int{125}, 5}} {
		got, err := componentsOf(build(c.rows...))
		require.NoError(t, err)
		require.Len(t, got, c.want, "%v", c.rows)
	}
	for _, bad := range [][][]platforms.Button{
		build(126), {{{Label: "", Data: "x"}}}, {{{Label: "x", Data: ""}}}, {{{Label: "x", Data: strings.Repeat("x", 101)}}},
		{{button(1), button(1)}},
	} {
		_, err := componentsOf(bad)
		require.Equal(t, platforms.BadRequest, failure(t, err).Kind)
	}
}

// Safe: only what differs is changed, commands of another program go, the second time nothing is written.
func TestCommands_SyncSafe(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	const create, change, remove = "POST /applications/{application}/commands", "PATCH /applications/{application}/commands/{command}", "DELETE /applications/{application}/commands/{command}"
	busy := platforms.CommandInfo{Name: "busy", Description: "What a message does", Args: "[interrupt | queue | steer]"}
	writes := func() [3]int {
		return [3]int{r.fake.Calls(create), r.fake.Calls(change), r.fake.Calls(remove)}
	}
	r.commandsFor(status, busy, platforms.CommandInfo{Name: "old", Description: "x"})
	require.Equal(t, [3]int{3, 0, 0}, writes())
	r.commandsFor(status, busy, platforms.CommandInfo{Name: "old", Description: "x"})
	require.Equal(t, [3]int{3, 0, 0}, writes())
	changed := status
	changed.Description = "What goes on now"
	r.commandsFor(changed, busy)
	require.Equal(t, [3]int{3, 1, 1}, writes())
	require.Len(t, r.fake.Commands(""), 2)
	done, ok := r.fake.Complete(discordtest.Command{Channel: r.channel, Name: "busy", Focused: argName,
		Options: []discordtest.Option{{Name: argName, Value: "q"}}})
	require.True(t, ok)
	r.until("proposals come", func() bool { i, _ := r.fake.Interaction(done); return i.Answered })
	i, _ := r.fake.Interaction(done)
	require.Equal(t, []discordtest.Choice{{Name: "queue", Value: "queue"}}, i.Choices)
	require.Empty(t, r.sink.Events())
}

func TestCommands_Policies(t *testing.T) {
	for policy, want := range map[SyncPolicy]int{SyncBulk: 1, SyncOff: 0, SyncSafe: 1} {
		r := newRig(t, discordtest.Options{}, func(o *Options) { o.CommandSync = policy })
		r.commandsFor(status)
		require.Len(t, r.fake.Commands(""), want, policy)
	}
	r := newRig(t, discordtest.Options{}, nil)
	r.commandsFor(status)
	r.stop()
	r.change = func(o *Options) { o.NoCommands = true }
	r.start()
	_, ok := r.fake.Run(discordtest.Command{Channel: r.channel, Name: "status"})
	require.True(t, ok)
	require.Zero(t, r.settle(), "another process answers commands")
}

func TestCommands_CapAndNames(t *testing.T) {
	r := newRig(t, discordtest.Options{}, func(o *Options) { o.CommandSync = SyncBulk })
	var many []platforms.CommandInfo
	for i := range 104 {
		many = append(many, platforms.CommandInfo{Name: "c" + strconv.Itoa(i), Description: strings.Repeat("ö", 150)})
	}
	r.commandsFor(many...)
	require.Len(t, r.fake.Commands(""), 100)
	require.Contains(t, r.log.String(), "Discord takes at most 100 commands")
	require.Error(t, r.a.SetCommands(r.ctx(), []platforms.CommandInfo{{Name: "Bad Name"}}))
}

func TestCommands_Choices(t *testing.T) {
	for hint, want := range map[string][]string{
		"": nil, "[name]": nil, "[on|off]": {"on", "off"}, "[name | default]": {"default"}, "[here [N] | topic]": nil,
		"<message> | list | edit N text | rm N | clear": {"list", "clear"}, "[off | new | all | verbose]": {"off", "new", "all", "verbose"},
	} {
		require.Equal(t, want, choicesOf(hint), hint)
	}
}
