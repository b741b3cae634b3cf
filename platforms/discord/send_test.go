package discord

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/discordtest"
)

// file makes a file and returns its path.
func (r *rig) file(name, body string) string {
	path := filepath.Join(r.t.TempDir(), name)
	require.NoError(r.t, os.WriteFile(path, []byte(body), 0o600))
	return path
}

// A send whose answer is lost is asked for again with the same nonce: one message, and a receipt.
func TestSend_ALostAnswerIsAskedForAgain(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	at := address(r.dm, "")
	for i, trouble := range []discordtest.Trouble{discordtest.ResetAfter, discordtest.HalfBody, discordtest.ResetBefore, discordtest.Garbage} {
		r.fake.Break(discordtest.Fault{Trouble: trouble})
		word := "word" + strconv.Itoa(i)
		receipt := r.mustSend(platforms.Outgoing{Address: at, Text: words(word), Nonce: word})
		seen := r.fake.Visible(r.dm)
		require.Len(t, seen, i+1)
		require.Equal(t, id(seen[i].ID), receipt.Message, trouble)
		require.Len(t, seen[i].Nonce, nonceLength)
	}
	r.fake.Break(discordtest.Fault{Trouble: discordtest.HangAfter})
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, err := r.a.Send(ctx, platforms.Outgoing{Address: at, Text: words("slow"), Nonce: "slow"})
	require.NoError(t, err)
	require.Len(t, r.fake.Visible(r.dm), 5)
}

// Where the second answer is lost too the outcome is unknown, and Find tells.
func TestFind_TellsWhatBecameOfASend(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	for _, c := range []struct {
		trouble discordtest.Trouble
		found   bool
	}{{discordtest.ResetAfter, true}, {discordtest.ResetBefore, false}} {
		for _, at := range []platforms.Address{address(r.dm, ""), address(r.channel, r.thread)} {
			out := platforms.Outgoing{Address: at, Text: words("word " + string(c.trouble)), Nonce: at.String() + string(c.trouble)}
			r.fake.Break(discordtest.Fault{Trouble: c.trouble, Times: 2})
			_, err := r.send(out)
			require.Equal(t, platforms.Unknown, failure(t, err).Certainty)
			id, found, err := r.a.Find(r.ctx(), out)
			require.NoError(t, err)
			require.Equal(t, c.found, found)
			if found {
				_, ok := r.message(discordtest.ID(id))
				require.True(t, ok)
			}
		}
	}
	// A process that has not made the attempt can't tell it from an older message with the same words.
	out := platforms.Outgoing{Address: address(r.dm, ""), Text: words("word " + string(discordtest.ResetAfter)), Nonce: "other"}
	r.stop()
	r.start()
	_, _, err := r.a.Find(r.ctx(), out)
	require.ErrorIs(t, err, errUndecided)
	out.Text = words("never said")
	_, found, err := r.a.Find(r.ctx(), out)
	require.NoError(t, err, "the whole channel was looked at")
	require.False(t, found)
}

func TestSend_Refusals(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	closed := r.fake.AddUser(discordtest.User{Username: "kim"})
	r.fake.AddMember(r.guild, closed)
	shut := r.fake.DM(closed)
	r.fake.CloseDMs(closed, true)
	r.fake.Overwrite(r.channel, r.guild, 0, discordtest.SendMessages)
	hidden := r.fake.AddChannel(discordtest.Channel{Guild: r.guild, Name: "hidden"})
	r.fake.Overwrite(hidden, r.guild, 0, discordtest.ViewChannel)
	other := address(r.dm, "")
	other.Account = "someone-else"
	for name, c := range map[string]struct {
		out  platforms.Outgoing
		kind platforms.FailureKind
	}{
		"closed direct messages": {platforms.Outgoing{Address: address(shut, ""), Text: words("x")}, platforms.Forbidden},
		"no right to write":      {platforms.Outgoing{Address: address(r.channel, ""), Text: words("x")}, platforms.Forbidden},
		"no right to see":        {platforms.Outgoing{Address: address(hidden, ""), Text: words("x")}, platforms.Forbidden},
		"no such channel":        {platforms.Outgoing{Address: address("1234567", ""), Text: words("x")}, platforms.NotFound},
		"no such message":        {platforms.Outgoing{Address: address(r.dm, ""), Edit: "1234567", Text: words("x")}, platforms.MessageGone},
		"no id":                  {platforms.Outgoing{Address: address("general", ""), Text: words("x")}, platforms.BadRequest},
		"no thread id":           {platforms.Outgoing{Address: address(r.channel, "x"), Text: words("x")}, platforms.BadRequest},
		"another account":        {platforms.Outgoing{Address: other, Text: words("x")}, platforms.BadRequest},
		"nothing":                {platforms.Outgoing{Address: address(r.dm, "")}, platforms.BadRequest},
		"too long":               {platforms.Outgoing{Address: address(r.dm, ""), Text: words(strings.Repeat("ä", 2001))}, platforms.TooLong},
		"bad reply token":        {platforms.Outgoing{Address: address(r.dm, ""), Text: words("x"), Private: "nonsense"}, platforms.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.send(c.out)
			require.Equal(t, c.kind, failure(t, err).Kind, "%v", err)
			require.Equal(t, platforms.NotSent, failure(t, err).Certainty)
		})
	}
}

// Windows: those of a channel close the channel, those of the account everything, a wall's page too.
func TestSend_RetryWindows(t *testing.T) {
	for name, c := range map[string]struct {
		fault   discordtest.Fault
		account bool
	}{
		"of the channel": {discordtest.Fault{}, false},
		"shared":         {discordtest.Fault{Scope: "shared"}, false},
		"of the account": {discordtest.Fault{Scope: "global"}, true},
		"of the wall":    {discordtest.Fault{Proxy: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, discordtest.Options{}, nil)
			c.fault.Trouble, c.fault.Status, c.fault.RetryAfter = discordtest.AnswerStatus, 429, time.Second
			c.fault.Route = discordtest.SendMessage
			r.fake.Break(c.fault)
			out := platforms.Outgoing{Address: address(r.dm, ""), Text: words("x"), Nonce: "x"}
			_, err := r.send(out)
			e := failure(t, err)
			require.Equal(t, platforms.RateLimited, e.Kind)
			require.Equal(t, platforms.NotSent, e.Certainty)
			require.Equal(t, c.account, e.AccountWide)
			require.InDelta(t, time.Second, e.RetryAfter, float64(200*time.Millisecond))
			other := platforms.Outgoing{Address: address(r.channel, ""), Text: words("y"), Nonce: "y"}
			if _, err = r.send(other); c.account {
				require.Equal(t, platforms.RateLimited, failure(t, err).Kind)
			} else {
				require.NoError(t, err)
			}
			r.until("the window ends", func() bool { _, err := r.send(out); return err == nil })
			require.Empty(t, r.fake.Violations())
			require.Len(t, r.fake.Visible(r.dm), 1)
		})
	}
}

// The buckets that Discord tells of are kept, so that it never has to refuse.
func TestGate_KeepsWithinTheBuckets(t *testing.T) {
	yes := true
	r := newRig(t, discordtest.Options{}, func(o *Options) { o.RateLimit = &yes })
	r.fake.Limit(discordtest.SendMessage, 5, 300*time.Millisecond)
	for i := range 12 {
		r.mustSend(platforms.Outgoing{Address: address(r.dm, ""), Text: words(strconv.Itoa(i)), Nonce: strconv.Itoa(i)})
	}
	require.Len(t, r.fake.Visible(r.dm), 12)
	require.Empty(t, r.fake.Violations())
	require.NotContains(t, r.log.String(), "429")
}

// Whom a message notifies is the operator's choice and not the text's.
func TestSend_AllowedMentions(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		change func(*Options)
		pinged []string
	}{
		"as it is": {nil, []string{"person"}},
		"nobody":   {func(o *Options) { o.MentionUsers, o.MentionReplied = &no, &no }, nil},
		"all":      {func(o *Options) { o.MentionEveryone, o.MentionRoles = true, true }, []string{"everyone", "person"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, discordtest.Options{}, c.change)
			r.fake.SetRole(r.guild, r.fake.BotRole(r.guild), discordtest.MentionEveryone)
			r.mustSend(platforms.Outgoing{Address: address(r.channel, ""), Text: words("@everyone <@" + string(r.person) + ">")})
			var want []string
			for _, w := range c.pinged {
				if w == "person" {
					w = string(r.person)
				}
				want = append(want, w)
			}
			require.ElementsMatch(t, want, r.fake.Visible(r.channel)[0].Pinged)
		})
	}
}

// Files: ten to a message, those over the limit and those that Discord finds too large become notes.
func TestSend_Files(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	at := address(r.dm, "")
	var many []platforms.Attachment
	for i := range 12 {
		name := "f" + strconv.Itoa(i) + ".txt"
		many = append(many, platforms.Attachment{Name: name, MIME: "text/plain", Path: r.file(name, "body "+name)})
	}
	receipt := r.mustSend(platforms.Outgoing{Address: at, Text: words("many"), Attachments: many, Nonce: "many"})
	require.Len(t, receipt.More, 1)
	seen := r.fake.Visible(r.dm)
	require.Len(t, seen, 2)
	require.Len(t, seen[0].Files, 10)
	require.Len(t, seen[1].Files, 2)
	require.Equal(t, "body f11.txt", string(seen[1].Files[1].Body))
	require.Equal(t, "many", seen[0].Text)

	big := r.file("big.bin", "")
	require.NoError(t, os.Truncate(big, freeUpload+1))
	receipt = r.mustSend(platforms.Outgoing{Address: at, Text: words("big"), Attachments: []platforms.Attachment{{Name: "big.bin",
		Path: big}, {Name: "none", Path: big + "x"}}})
	require.Len(t, receipt.Notes, 2)
	require.Contains(t, receipt.Notes[0], "big.bin was not sent: it has 10.0 MB")
	require.Equal(t, "big", r.fake.Visible(r.dm)[2].Text)

	r.fake.Break(discordtest.Fault{Trouble: discordtest.AnswerStatus, Status: 413, Code: 40005, Message: "Request entity too large"})
	receipt = r.mustSend(platforms.Outgoing{Address: at, Text: words("refused"), Attachments: many[:1]})
	require.Contains(t, receipt.Notes[0], "Discord finds it too large")
	require.Equal(t, "refused", r.fake.Visible(r.dm)[3].Text)
}

// A boosted server takes larger files.
func TestSend_BoostedServer(t *testing.T) {
	r := prepareRig(t, discordtest.Options{}, nil)
	guild := r.fake.AddGuild("Rich", 3, r.person)
	channel := r.fake.AddChannel(discordtest.Channel{Guild: guild, Name: "files"})
	r.start()
	big := r.file("big.bin", "")
	require.NoError(t, os.Truncate(big, 12<<20))
	receipt := r.mustSend(platforms.Outgoing{Address: address(channel, ""), Attachments: []platforms.Attachment{{Name: "big.bin", Path: big}}})
	require.Empty(t, receipt.Notes)
	require.Len(t, r.fake.Visible(channel)[0].Files, 1)
}

// A link that has expired is asked for again; other hosts than Discord's are not asked at all.
func TestFetch_LinksAndHosts(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.SayFile(r.Places()[0], "notes.txt", "text/plain", []byte("hello"), "")
	at := r.last(1).Message.Attachments[0]
	require.Equal(t, platforms.Document, at.Kind)
	var out strings.Builder
	require.NoError(t, r.a.Fetch(r.ctx(), at, 100, &out))
	require.Equal(t, "hello", out.String())
	r.fake.Break(discordtest.Fault{Trouble: discordtest.AnswerStatus, Status: 404, Route: "cdn"})
	out.Reset()
	require.NoError(t, r.a.Fetch(r.ctx(), at, 100, &out), "asked for again")
	require.Equal(t, "hello", out.String())
	require.Error(t, r.a.Fetch(r.ctx(), at, 3, &out))
	for _, link := range []string{"http://169.254.169.254/latest", "http://cdn.discordapp.com/x", "https://cdn.discordapp.com.evil.example/x", "file:///etc/passwd"} {
		at.Ref = `{"c":"1","m":"2","f":"3","u":"` + link + `"}`
		require.ErrorContains(t, r.a.Fetch(r.ctx(), at, 100, &out), "not on Discord's content network")
	}
	at.Ref = "nonsense"
	require.Error(t, r.a.Fetch(r.ctx(), at, 100, &out))
}
