package teams

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/teamstest"
	"herald/platforms/wire"
)

// PR #20042: a group chat that refuses replies or threads gets the message without, once.
func TestSend_GroupRefusesReplies(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	id := platforms.MessageID(r.fake.Say(r.group.ID, "hello"))
	r.events(1)
	r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: http.StatusBadRequest, On: teamstest.Send, Room: r.group.ID})
	r.mustSend(platforms.Outgoing{Address: r.atGroup(), Text: text("flat"), ReplyTo: id})
	r.restart()
	r.fake.Say(r.group.ID, "hello again")
	r.events(2)
	r.mustSend(platforms.Outgoing{Address: r.atGroup(), Text: text("flat again"), ReplyTo: id})
	seen := r.fake.Visible(r.group.ID)
	require.Len(t, seen, 2)
	require.Empty(t, seen[1].ReplyTo, "it is known that replies are refused here, also after a restart")
	require.Equal(t, 3, r.fake.Calls(teamstest.Send))
}

func TestSend_ThreadInAGroupChat(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	id := r.fake.Say(r.group.ID, "hello")
	r.events(1)
	r.mustSend(platforms.Outgoing{Address: r.address(r.group.ID, id), Text: text("threaded")})
	require.Equal(t, "threaded", r.fake.Visible(r.group.ID)[0].Text)
}

// #97068: a brief for a channel begins a thread, and an answer to it comes from that thread.
func TestSend_BriefBeginsAThread(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	brief := r.mustSend(platforms.Outgoing{Address: r.address(r.channel.ID, ""), Text: text("the brief")})
	r.fake.Write(teamstest.Post{Room: r.channel.ID, Thread: string(brief.Message), Text: "thanks", Mention: true})
	e := r.events(1)[0]
	require.Equal(t, platforms.ThreadID(brief.Message), e.Address.Thread)
	r.mustSend(platforms.Outgoing{Address: e.Address, Text: text("welcome"), ReplyTo: e.Message.ID})
	require.Len(t, r.fake.Visible(r.channel.ID+";messageid="+string(brief.Message)), 2)
}

// TEAMS_HOME_CHANNEL may hold a conversation's id as Teams writes it.
func TestSend_ThreadInTheChatID(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	r.mustSend(platforms.Outgoing{Address: r.address(r.thread(), ""), Text: text("back again")})
	require.Equal(t, "back again", r.fake.Visible(r.thread())[0].Text)
}

// A thread that is gone does not make the channel a dead target.
func TestSend_ThreadGone(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	r.fake.DropThread(r.channel.ID, r.root)
	_, err := r.send(platforms.Outgoing{Address: r.atThread(), Text: text("hello")})
	e := sendErrorOf(t, err)
	require.Equal(t, platforms.ThreadGone, e.Kind)
	require.Equal(t, platforms.NotSent, e.Certainty)
}

func TestSend_Refusals(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   platforms.FailureKind
	}{
		{403, "BotNotInConversationRoster", platforms.Forbidden},
		{403, "ConversationBlockedByUser", platforms.Forbidden},
		{403, "BotDisabledByAdmin", platforms.Forbidden},
		{403, "SomethingNew", platforms.Forbidden},
		{404, "ConversationNotFound", platforms.NotFound},
		{413, "MessageSizeTooBig", platforms.TooLong},
		{400, "BadSyntax", platforms.BadRequest},
		{405, "MethodNotAllowed", platforms.Unsupported},
		{412, "PreconditionFailed", platforms.Transient},
		{502, "ServiceError", platforms.Transient},
		{302, "", platforms.Transient},
		{407, "", platforms.Transient},
	} {
		r := start(t, teamstest.Options{}, nil)
		r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: c.status, Code: c.code, On: teamstest.Send})
		_, err := r.send(platforms.Outgoing{Address: r.atDM(), Text: text("hello")})
		e := sendErrorOf(t, err)
		require.Equal(t, c.want, e.Kind, "%d %s: %v", c.status, c.code, err)
		require.Equal(t, c.status >= 500, e.Certainty == platforms.Unknown, "%d %s: %v", c.status, c.code, err)
		require.Empty(t, r.fake.Visible(r.dm.ID))
		require.NoError(t, r.stop())
	}
}

// P8: without a Retry-After header a 429 still closes the chat, and only that chat.
func TestSend_LimitedWithoutHeader(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 429, RetryAfter: time.Second, NoHeader: true, On: teamstest.Send})
	_, err := r.send(platforms.Outgoing{Address: r.atDM(), Text: text("hello")})
	require.Equal(t, platforms.RateLimited, sendErrorOf(t, err).Kind)
	_, err = r.send(platforms.Outgoing{Address: r.atDM(), Text: text("hello")})
	require.Equal(t, platforms.RateLimited, sendErrorOf(t, err).Kind)
	r.mustSend(platforms.Outgoing{Address: r.atGroup(), Text: text("hello")})
	require.Empty(t, r.fake.Violations())
}

// What is wrong with an Outgoing is said before anything is asked.
func TestSend_BadOutgoing(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	other := r.atDM()
	other.Account = "somebody-else"
	for name, out := range map[string]platforms.Outgoing{
		"another account":  {Address: other, Text: text("x")},
		"a path as chat":   {Address: r.address("a:1/../2", ""), Text: text("x")},
		"a path as thread": {Address: r.address(r.channel.ID, "../1"), Text: text("x")},
		"a path as edit":   {Address: r.atDM(), Edit: "../1", Text: text("x")},
		"nothing":          {Address: r.atDM()},
		"an empty edit":    {Address: r.atDM(), Edit: "1"},
		"no label":         {Address: r.atDM(), Text: text("x"), Buttons: [][]platforms.Button{{{Data: "x"}}}},
		"no data":          {Address: r.atDM(), Text: text("x"), Buttons: [][]platforms.Button{{{Label: "x"}}}},
		"much data":        {Address: r.atDM(), Text: text("x"), Buttons: [][]platforms.Button{{{Label: "x", Data: strings.Repeat("x", 65)}}}},
	} {
		_, err := r.send(out)
		e := sendErrorOf(t, err)
		require.Equal(t, platforms.BadRequest, e.Kind, name)
		require.Equal(t, platforms.NotSent, e.Certainty, name)
	}
	require.Zero(t, r.fake.Calls(teamstest.AnyConnector))
}

// The limit counts the card too: a text that fits without buttons may be too long with them.
func TestSend_LimitWithButtons(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	var rows [][]platforms.Button
	for range 8 {
		rows = append(rows, []platforms.Button{{Label: strings.Repeat("l", 50), Data: strings.Repeat("d", 64)}})
	}
	long := strings.Repeat("a", textLimit)
	_, err := r.send(platforms.Outgoing{Address: r.atDM(), Text: text(long), Buttons: rows})
	require.Equal(t, platforms.TooLong, sendErrorOf(t, err).Kind)
	fits := messageLimit - summaryLimit - sizeOf(cardOf("a", rows)) + 1
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text(long[:fits]), Buttons: rows})
	require.Len(t, r.fake.Visible(r.dm.ID)[0].Buttons, 8)
	r.mustSend(platforms.Outgoing{Address: r.atGroup(), Text: text(long), Buttons: rows[:1]})
}

// Where a conversation is served is known over a restart, and is checked against the list each time.
func TestSend_ServiceURLIsRemembered(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	r.fake.Say(r.dm.ID, "hello")
	r.events(1)
	require.NoError(t, r.stop())
	r.alter = func(o *Options) {
		o.ServiceHosts, o.ServiceURL = []string{strings.TrimPrefix(r.fake.URLs().Base, "http://")}, "https://127.0.0.1:1/"
	}
	r.begin()
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text("proactive")})
	require.NoError(t, r.stop())
	r.alter = func(o *Options) { o.ServiceURL = "https://127.0.0.1:1/" }
	r.begin()
	_, err := r.send(platforms.Outgoing{Address: r.atDM(), Text: text("the host is on the list no more")})
	require.Equal(t, platforms.Transient, sendErrorOf(t, err).Kind)
	require.Len(t, r.fake.Visible(r.dm.ID), 1)
}

// The bot was taken out: it is no place to write to any more.
func TestRooms_Uninstall(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	for _, room := range []teamstest.Room{r.dm, r.group} {
		r.fake.Install(room.ID, r.pat)
		r.until("it is known", func() bool { _, ok, _ := r.a.rooms.find(t.Context(), room.ID); return ok && r.fake.Pending() == 0 })
		r.fake.Uninstall(room.ID, r.pat)
		r.until("it is forgotten", func() bool { _, ok, _ := r.a.rooms.find(t.Context(), room.ID); return !ok && r.fake.Pending() == 0 })
	}
	require.Empty(t, r.sink.Offered())
}

// Rooms are bounded: the longest silent one gives way, in Memory too.
func TestRooms_Bounded(t *testing.T) {
	memory := platforms.NewMemory()
	rooms := newRooms(memory, wire.System{})
	for i := range roomsKept + 5 {
		require.NoError(t, rooms.note(t.Context(), "a:"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26),
			room{Type: personal}))
	}
	facts, err := memory.Recall(t.Context(), roomSpace)
	require.NoError(t, err)
	require.LessOrEqual(t, len(facts), roomsKept)
	require.Equal(t, len(facts), len(rooms.all))
}

// Pictures follow the text; what is too big, of another kind or gone is asked for or noted.
func TestSend_Files(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	dir := t.TempDir()
	file := func(name string, size int) platforms.Attachment {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		return platforms.Attachment{Kind: platforms.Image, Name: name, Path: path}
	}
	small, big, empty := file("small.png", 1000), file("big.png", inlineLimit+1), file("empty.png", 0)
	webp := file("new.webp", 1000)
	as := small
	as.AsDocument = true
	receipt := r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text("look"),
		Attachments: []platforms.Attachment{small, big, empty, webp, as}})
	seen := r.fake.Visible(r.dm.ID)
	require.Len(t, seen, 5, "the text, the small picture, and three cards")
	require.Equal(t, seen[0].ID, string(receipt.Message))
	require.True(t, seen[1].Files[0].Inline)
	require.True(t, seen[2].Files[0].Awaiting)
	require.Len(t, receipt.More, 4)
	require.Equal(t, []string{"empty.png was not sent: the file is empty, which Teams refuses."}, receipt.Notes)

	receipt = r.mustSend(platforms.Outgoing{Address: r.atThread(), Attachments: []platforms.Attachment{small, big}})
	require.Len(t, receipt.Notes, 1)
	require.Contains(t, receipt.Notes[0], "big.png was not sent: Teams lets a bot send files other than small pictures in personal chats only")
	receipt = r.mustSend(platforms.Outgoing{Address: r.atThread(), Attachments: []platforms.Attachment{empty}})
	require.Empty(t, receipt.Message)
	require.Len(t, receipt.Notes, 1)
}

// With a site, files for groups and channels lie in SharePoint and are in the thread as cards.
func TestSend_FilesBySharePoint(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.GraphSite = "contoso.sharepoint.example,1,2" })
	path := filepath.Join(t.TempDir(), "report.pdf")
	require.NoError(t, os.WriteFile(path, []byte("numbers"), 0o600))
	files := []platforms.Attachment{{Kind: platforms.Document, Name: "report.pdf", Path: path}}
	receipt := r.mustSend(platforms.Outgoing{Address: r.atThread(), Text: text("here"), Attachments: files})
	require.Empty(t, receipt.Notes)
	seen := r.fake.Visible(r.thread())
	require.Len(t, seen, 2)
	require.Equal(t, "numbers", string(seen[1].Files[0].Body))
	r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 403, On: teamstest.Graph})
	receipt = r.mustSend(platforms.Outgoing{Address: r.atThread(), Text: text("again"), Attachments: files})
	require.Len(t, receipt.Notes, 1)
	require.Contains(t, receipt.Notes[0], "report.pdf was not sent")
	require.Empty(t, r.fake.Leaks())
}

// An adapter that does not run can send all the same (a last word while the daemon stops).
func TestSend_NotRunning(t *testing.T) {
	w := startWorld(t, teamstest.Options{})
	a := w.adapter(t)
	defer a.moves.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := a.Send(ctx, platforms.Outgoing{Address: w.address(w.dm.ID, ""), Text: text("bye")})
	require.NoError(t, err)
}

// A reaction takes the place of ours; what Teams has no name for, or has lost, is said.
func TestReact(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	id := platforms.MessageID(r.fake.Say(r.group.ID, "hello"))
	r.events(1)
	for _, emoji := range []string{"👀", "👀", "✅", "", ""} {
		require.NoError(t, r.a.React(t.Context(), r.atGroup(), id, emoji))
		m, _ := r.fake.Message(r.group.ID, string(id))
		var want []string
		if emoji != "" {
			want = []string{reactionIDs[emoji]}
		}
		require.ElementsMatch(t, want, m.Reactions[r.fake.BotID()])
	}
	require.Equal(t, 4, r.fake.Calls(teamstest.React))
	require.Equal(t, platforms.Unsupported, sendErrorOf(t, r.a.React(t.Context(), r.atGroup(), id, "🦄")).Kind)
	require.Equal(t, platforms.MessageGone, sendErrorOf(t, r.a.React(t.Context(), r.atGroup(), "12345", "👀")).Kind)
	r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 429, RetryAfter: time.Second, On: teamstest.React})
	for range 2 {
		require.Equal(t, platforms.RateLimited, sendErrorOf(t, r.a.React(t.Context(), r.atGroup(), id, "👀")).Kind)
	}
	require.Equal(t, platforms.RateLimited, sendErrorOf(t, r.a.React(t.Context(), r.atDM(), "12345", "👀")).Kind)
	require.Empty(t, r.fake.Violations())
}
