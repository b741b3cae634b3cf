package telegram

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/telegramtest"
)

// sender is an adapter that only sends.
func sender(t *testing.T, change func(*Options)) (*world, *Adapter) {
	t.Helper()
	w := startWorld(t)
	o := w.options()
	if change != nil {
		change(&o)
	}
	a, err := New(o)
	require.NoError(t, err)
	t.Cleanup(a.moves.CloseIdleConnections)
	return w, a
}

func to(chat int64, thread int) platforms.Address {
	at := platforms.Address{Platform: Platform, Account: "4242", Chat: platforms.ChatID(fmt.Sprint(chat))}
	if thread != 0 {
		at.Thread = platforms.ThreadID(fmt.Sprint(thread))
	}
	return at
}

// outgoing returns a message with the text as both body and plain text.
func outgoing(chat int64, text string) platforms.Outgoing {
	return platforms.Outgoing{Address: to(chat, 0), Text: platforms.Text{Body: text, Plain: text}}
}

func TestSend_Markup(t *testing.T) {
	w, a := sender(t, nil)
	out := outgoing(person, "")
	out.Text = platforms.Text{Body: `<b>bold</b> &amp; <a href="https://a.example?x=1&amp;y=2">link</a> 😀`, Plain: "bold & link 😀"}
	receipt, err := a.Send(t.Context(), out)
	require.NoError(t, err)
	m := w.fake.Visible(person)[0]
	require.Equal(t, "bold & link 😀", m.Text)
	require.Equal(t, "HTML", m.Mode)
	require.Equal(t, "https://a.example?x=1&y=2", m.Marks[1].URL)
	require.True(t, m.Preview)
	require.Equal(t, id(m.ID), receipt.Message)
}

// A chunk whose markup is refused goes out once more, as plain text, and only once.
func TestSend_PlainRetry(t *testing.T) {
	w, a := sender(t, nil)
	out := outgoing(person, "")
	out.Text = platforms.Text{Body: "<b>broken", Plain: "broken"}
	_, err := a.Send(t.Context(), out)
	require.NoError(t, err)
	require.Equal(t, "broken", w.fake.Visible(person)[0].Text)
	require.Equal(t, 2, w.fake.Calls("sendMessage"))

	edit := out
	edit.Edit = id(w.fake.Visible(person)[0].ID)
	edit.Text = platforms.Text{Body: "<u>broken again", Plain: "broken again"}
	_, err = a.Send(t.Context(), edit)
	require.NoError(t, err)
	require.Equal(t, "broken again", w.fake.Visible(person)[0].Text)
	require.Equal(t, 2, w.fake.Calls("editMessageText"))

	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 400, Description: "Bad Request: can't parse entities: whatever", Times: 2})
	_, err = a.Send(t.Context(), out)
	require.Equal(t, platforms.BadRequest, platforms.AsSendError(err).Kind)
	require.Equal(t, 4, w.fake.Calls("sendMessage"), "exactly one retry")
}

func TestSend_ReplyButtonsAndFlags(t *testing.T) {
	w, a := sender(t, func(o *Options) { o.DisableLinkPreviews = true })
	question := w.fake.Say(person, "well?")
	out := outgoing(person, "choose")
	out.ReplyTo, out.Silent = id(question), true
	out.Buttons = [][]platforms.Button{{{Label: "Yes", Data: "y", Style: "primary"}}, {}, {{Label: "No", Data: "n"}}}
	_, err := a.Send(t.Context(), out)
	require.NoError(t, err)
	m := w.fake.Visible(person)[0]
	require.Equal(t, question, m.ReplyTo)
	require.True(t, m.Silent)
	require.False(t, m.Preview)
	require.Equal(t, [][]telegramtest.Button{{{Text: "Yes", Data: "y", Style: "primary"}}, {{Text: "No", Data: "n"}}}, m.Buttons)

	out = outgoing(person, "the question is gone")
	out.ReplyTo = "999999"
	_, err = a.Send(t.Context(), out)
	require.NoError(t, err, "an answer goes out without its quote")

	// Only the buttons change.
	_, err = a.Send(t.Context(), platforms.Outgoing{Address: to(person, 0), Edit: id(m.ID)})
	require.NoError(t, err)
	require.Empty(t, w.fake.Visible(person)[0].Buttons)
	require.Equal(t, "choose", w.fake.Visible(person)[0].Text)
}

func TestSend_RefusesNonsenseWithoutARequest(t *testing.T) {
	w, a := sender(t, nil)
	bad := func(change func(*platforms.Outgoing)) platforms.Outgoing {
		out := outgoing(person, "text")
		change(&out)
		return out
	}
	for name, out := range map[string]platforms.Outgoing{
		"another account":  bad(func(o *platforms.Outgoing) { o.Address.Account = "1" }),
		"no chat":          bad(func(o *platforms.Outgoing) { o.Address.Chat = "@name" }),
		"no thread number": bad(func(o *platforms.Outgoing) { o.Address.Thread = "x" }),
		"no reply number":  bad(func(o *platforms.Outgoing) { o.ReplyTo = "x" }),
		"no edit number":   bad(func(o *platforms.Outgoing) { o.Edit = "-1" }),
		"nothing to say":   bad(func(o *platforms.Outgoing) { o.Text = platforms.Text{} }),
		"no label":         bad(func(o *platforms.Outgoing) { o.Buttons = [][]platforms.Button{{{Data: "x"}}} }),
		"too much data": bad(func(o *platforms.Outgoing) {
			o.Buttons = [][]platforms.Button{{{Label: "x", Data: strings.Repeat("x", 65)}}}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.Send(t.Context(), out)
			e := platforms.AsSendError(err)
			require.NotNil(t, e)
			require.Equal(t, platforms.BadRequest, e.Kind)
			require.Equal(t, platforms.NotSent, e.Certainty)
		})
	}
	require.Zero(t, w.fake.Calls("sendMessage"))
}

// The table of what the service's refusals mean.
func TestSend_Outcomes(t *testing.T) {
	w, a := sender(t, nil)
	gone := w.fake.AddTopic(forum, "gone")
	w.fake.DropTopic(forum, gone)
	w.fake.AddChat(telegramtest.Chat{ID: 601})
	w.fake.Block(601, "bot was blocked by the user")
	w.fake.AddChat(telegramtest.Chat{ID: -602})
	w.fake.Restrict(-602, "not enough rights to send text messages to the chat")
	for _, c := range []struct {
		name  string
		out   platforms.Outgoing
		fault telegramtest.Fault
		kind  platforms.FailureKind
		known platforms.Certainty
		after time.Duration
	}{
		{name: "an unknown chat", out: outgoing(31337, "x"), kind: platforms.NotFound},
		{name: "a deleted topic", out: platforms.Outgoing{Address: to(forum, gone), Text: platforms.Text{Body: "x"}}, kind: platforms.ThreadGone},
		{name: "blocked", out: outgoing(601, "x"), kind: platforms.Forbidden},
		{name: "no rights", out: outgoing(-602, "x"), kind: platforms.Forbidden},
		{name: "a message to edit that is gone", out: func() platforms.Outgoing { o := outgoing(person, "x"); o.Edit = "77"; return o }(), kind: platforms.MessageGone},
		{name: "too long", out: outgoing(person, strings.Repeat("x", 4097)), kind: platforms.TooLong},
		{name: "refused for good", out: outgoing(person, "x"), fault: telegramtest.Fault{Status: 400, Description: "Bad Request: something new"}, kind: platforms.BadRequest},
		{name: "flood", out: outgoing(person, "x"), fault: telegramtest.Fault{Status: 429, RetryAfter: 7 * time.Second}, kind: platforms.RateLimited, after: 7 * time.Second},
		{name: "500", out: outgoing(person, "x"), fault: telegramtest.Fault{Status: 500}, kind: platforms.Transient, known: platforms.Unknown},
		{name: "502 of a proxy", out: outgoing(person, "x"), fault: telegramtest.Fault{Status: 502, Header: true}, kind: platforms.Transient, known: platforms.Unknown},
		{name: "503 of a proxy that says when", out: outgoing(person, "x"), fault: telegramtest.Fault{Status: 503, Header: true, RetryAfter: 3 * time.Second}, kind: platforms.RateLimited, after: 3 * time.Second},
		{name: "503", out: outgoing(person, "x"), fault: telegramtest.Fault{Status: 503}, kind: platforms.Transient, known: platforms.Unknown},
		{name: "the token is refused", out: outgoing(person, "x"), fault: telegramtest.Fault{Status: 401}, kind: platforms.AuthFailed},
		{name: "too large", out: outgoing(person, "x"), fault: telegramtest.Fault{Status: 413, Header: true}, kind: platforms.TooLong},
		{name: "garbage", out: outgoing(person, "x"), fault: telegramtest.Fault{Trouble: telegramtest.Garbage}, kind: platforms.Transient, known: platforms.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.fault.Status != 0 || c.fault.Trouble != "" {
				if c.fault.Trouble == "" {
					c.fault.Trouble = telegramtest.AnswerStatus
				}
				w.fake.Break(c.fault)
			}
			_, err := a.Send(t.Context(), c.out)
			e := platforms.AsSendError(err)
			require.NotNil(t, e)
			require.Equal(t, c.kind, e.Kind, e.Error())
			require.Equal(t, c.known, e.Certainty, e.Error())
			require.Equal(t, c.after, e.RetryAfter)
			require.False(t, e.AccountWide)
			require.NotContains(t, e.Error(), "<html>")
			w.fake.Heal()
			a.gate = newGate(a.s)
		})
	}
}

// A slow answer is no failure.
func TestSend_SlowAnswer(t *testing.T) {
	w, a := sender(t, nil)
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.SlowBody, Delay: 50 * time.Millisecond})
	_, err := a.Send(t.Context(), outgoing(person, "slow"))
	require.NoError(t, err)
}

// A group that became a supergroup is followed, once with words and from then on silently.
func TestSend_FollowsAMigratedGroup(t *testing.T) {
	w, a := sender(t, nil)
	w.fake.Upgrade(-77, -1007700000000)
	receipt, err := a.Send(t.Context(), outgoing(-77, "hello"))
	require.NoError(t, err)
	require.Len(t, receipt.Notes, 1)
	require.Contains(t, receipt.Notes[0], "-1007700000000")
	require.Len(t, w.fake.Visible(-1007700000000), 1)
	receipt, err = a.Send(t.Context(), outgoing(-77, "again"))
	require.NoError(t, err)
	require.Empty(t, receipt.Notes)
	require.Equal(t, 3, w.fake.Calls("sendMessage"))
}

func TestSend_Files(t *testing.T) {
	dir := t.TempDir()
	file := func(kind platforms.AttachmentKind, name, body string) platforms.Attachment {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		return platforms.Attachment{Kind: kind, Name: name, Path: path}
	}
	big := file(platforms.Image, "big.png", "x")
	require.NoError(t, os.Truncate(big.Path, photoLimit+1))
	document := file(platforms.Image, "doc.png", "x")
	document.AsDocument = true
	captioned := file(platforms.Document, "own.txt", "x")
	captioned.Caption = "my own words"
	long := strings.Repeat("l", captionLimit+1)
	type seen struct{ kind, text string }
	for _, c := range []struct {
		name  string
		text  string
		files []platforms.Attachment
		rows  [][]platforms.Button
		want  []seen
		notes []string
	}{
		{name: "kinds", files: []platforms.Attachment{
			file(platforms.Image, "a.jpg", "x"), file(platforms.Voice, "v.ogg", "x"), file(platforms.Audio, "m.mp3", "x"),
			file(platforms.Video, "c.mp4", "x"), file(platforms.Document, "d.pdf", "x"), file(platforms.Image, "g.gif", "x"),
			file(platforms.Sticker, "s.webp", "x"), file(platforms.Image, "t.tiff", "x"), file(platforms.Audio, "w.wav", "x"), file(platforms.Video, "f.avi", "x"),
		}, want: []seen{{"photo", ""}, {"voice", ""}, {"audio", ""}, {"video", ""}, {"document", ""}, {"animation", ""}, {"sticker", ""}, {"document", ""}, {"document", ""}, {"document", ""}}},
		{name: "a caption", text: "look", files: []platforms.Attachment{file(platforms.Document, "d.txt", "x")}, want: []seen{{"document", "look"}}},
		{name: "a caption too long for one", text: long, files: []platforms.Attachment{file(platforms.Document, "d.txt", "x")}, want: []seen{{"text", long}, {"document", ""}}},
		{name: "a file with words of its own", text: "look", files: []platforms.Attachment{captioned}, want: []seen{{"text", "look"}, {"document", "my own words"}}},
		{name: "an album", text: "look", files: []platforms.Attachment{file(platforms.Image, "a.jpg", "x"), file(platforms.Image, "b.png", "x"), file(platforms.Video, "c.mp4", "x")}, want: []seen{{"photo", "look"}, {"photo", ""}, {"video", ""}}},
		{name: "an album with buttons", text: "look", rows: [][]platforms.Button{{{Label: "x", Data: "x"}}}, files: []platforms.Attachment{file(platforms.Image, "a.jpg", "x"), file(platforms.Image, "b.png", "x")}, want: []seen{{"text", "look"}, {"photo", ""}, {"photo", ""}}},
		{name: "a photo over 10 MB", files: []platforms.Attachment{big}, want: []seen{{"document", ""}}},
		{name: "as a document", files: []platforms.Attachment{document}, want: []seen{{"document", ""}}},
		{name: "no picture after all", text: "look", files: []platforms.Attachment{file(platforms.Image, "n.png", "not a picture")}, want: []seen{{"document", "look"}}},
		{name: "one bad picture in an album", text: "look", files: []platforms.Attachment{file(platforms.Image, "a.jpg", "x"), file(platforms.Image, "n.png", "not a picture")}, want: []seen{{"photo", "look"}, {"document", ""}}},
		{name: "a sticker has no caption", text: "look", files: []platforms.Attachment{file(platforms.Sticker, "s.webp", "x")}, want: []seen{{"text", "look"}, {"sticker", ""}}},
		{name: "missing and empty", text: "look", files: []platforms.Attachment{{Name: "gone.txt", Path: filepath.Join(dir, "gone")}, file(platforms.Document, "empty.txt", ""), {Name: "dir", Path: dir}}, want: []seen{{"text", "look"}}, notes: []string{"gone.txt was not sent: the file does not exist.", "empty.txt was not sent: the file is empty, which Telegram refuses.", "dir was not sent: it is no readable file."}},
		{name: "nothing but missing", files: []platforms.Attachment{{Path: "/nowhere/secret/../x.txt"}}, notes: []string{"x.txt was not sent: the file does not exist."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a := sender(t, nil)
			out := outgoing(person, c.text)
			out.Attachments, out.Buttons = c.files, c.rows
			receipt, err := a.Send(t.Context(), out)
			require.NoError(t, err)
			var got []seen
			for _, m := range w.fake.Visible(person) {
				got = append(got, seen{m.Kind, m.Text})
			}
			require.Equal(t, c.want, got)
			require.Equal(t, c.notes, receipt.Notes)
			if len(got) > 0 {
				first := w.fake.Visible(person)[0]
				require.Equal(t, id(first.ID), receipt.Message)
				require.Len(t, receipt.More, len(got)-1)
				require.Len(t, first.Buttons, len(c.rows))
			}
		})
	}
}

// Once a part is visible a later failure is a note: the message must not be repeated.
func TestSend_LaterFailureIsANote(t *testing.T) {
	w, a := sender(t, nil)
	path := filepath.Join(t.TempDir(), "r.pdf")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	for trouble, words := range map[telegramtest.Trouble]string{
		telegramtest.ResetBefore: "may have arrived", telegramtest.ResetAfter: "may have arrived", telegramtest.AnswerStatus: "asks to wait",
	} {
		w.fake.Break(telegramtest.Fault{Trouble: trouble, Method: "sendDocument", Status: 429, RetryAfter: time.Second})
		out := outgoing(person, strings.Repeat("x", 2000))
		out.Attachments = []platforms.Attachment{{Kind: platforms.Document, Name: "r.pdf", Path: path}}
		receipt, err := a.Send(t.Context(), out)
		require.NoError(t, err)
		require.NotEmpty(t, receipt.Message)
		require.Len(t, receipt.Notes, 1)
		require.Contains(t, receipt.Notes[0], words)
		w.fake.Heal()
		a.gate = newGate(a.s)
	}
	_, err := a.Send(t.Context(), outgoing(person, "free again"))
	require.NoError(t, err)
}

// The caption of a file can be edited like a text.
func TestSend_EditsACaption(t *testing.T) {
	w, a := sender(t, nil)
	path := filepath.Join(t.TempDir(), "r.pdf")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	out := outgoing(person, "first")
	out.Attachments = []platforms.Attachment{{Kind: platforms.Document, Name: "r.pdf", Path: path}}
	receipt, err := a.Send(t.Context(), out)
	require.NoError(t, err)
	out = outgoing(person, "second")
	out.Edit = receipt.Message
	_, err = a.Send(t.Context(), out)
	require.NoError(t, err)
	require.Equal(t, "second", w.fake.Visible(person)[0].Text)
}

// A private answer reaches the presser only; in a direct chat it is a message like any other.
func TestSend_Private(t *testing.T) {
	w, a := sender(t, nil)
	out := outgoing(group, "Sure?")
	out.Buttons = [][]platforms.Button{{{Label: "Yes", Data: "y"}}}
	receipt, err := a.Send(t.Context(), out)
	require.NoError(t, err)
	query, ok := w.fake.Press(group, number(receipt.Message), "y", telegramtest.User{})
	require.True(t, ok)
	private := outgoing(group, strings.Repeat("s", 300))
	private.Private = query
	_, err = a.Send(t.Context(), private)
	require.NoError(t, err)
	require.Len(t, w.fake.Visible(group), 1)
	text, answered := w.fake.Answer(query)
	require.True(t, answered)
	require.Equal(t, strings.Repeat("s", 199)+"…", text)
	_, err = a.Send(t.Context(), private)
	require.Equal(t, platforms.Unsupported, platforms.AsSendError(err).Kind)
	require.Len(t, w.fake.Visible(group), 1)

	private = outgoing(person, "just us")
	private.Private = query
	_, err = a.Send(t.Context(), private)
	require.NoError(t, err)
	require.Len(t, w.fake.Visible(person), 1)
}

// A file over the limit is named with both numbers.
func TestSend_FileOverTheLimit(t *testing.T) {
	w, a := sender(t, nil)
	a.s.private = false
	path := filepath.Join(t.TempDir(), "film.mp4")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, publicUpload+5<<20))
	out := outgoing(person, "the film")
	out.Attachments = []platforms.Attachment{{Kind: platforms.Video, Name: "film.mp4", Path: path}}
	receipt, err := a.Send(t.Context(), out)
	require.NoError(t, err)
	require.Equal(t, []string{"film.mp4 was not sent: it has 55.0 MB, Telegram takes at most 50.0 MB."}, receipt.Notes)
	require.Equal(t, "the film", w.fake.Visible(person)[0].Text)
}

func TestActions(t *testing.T) {
	w, a := sender(t, func(o *Options) { o.Reactions, o.MaxCommands = false, 2 })
	err := a.React(t.Context(), to(person, 0), "1", "👍")
	require.Equal(t, platforms.Unsupported, platforms.AsSendError(err).Kind)
	require.Zero(t, w.fake.Calls("setMessageReaction"))

	require.NoError(t, a.AnswerClick(t.Context(), to(person, 0), platforms.Click{Reply: "long ago"}, "x"))

	err = a.SetCommands(t.Context(), []platforms.CommandInfo{{Name: "Bad-Name"}})
	require.ErrorContains(t, err, `"Bad-Name"`)
	require.Zero(t, w.fake.Calls("setMyCommands"))
	require.NoError(t, a.SetCommands(t.Context(), []platforms.CommandInfo{
		{Name: "help", Description: strings.Repeat("😀", 300)}, {Name: "title", Description: "Name this chat", Args: "[name]"}, {Name: "third"},
	}))
	menu := w.fake.Commands()
	require.Len(t, menu, 2)
	require.Equal(t, 128, len([]rune(menu[0].Description)), "256 UTF-16 units")
	require.Equal(t, "Name this chat [name]", menu[1].Description)
}
