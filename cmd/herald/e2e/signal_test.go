package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/signaltest"
)

const (
	signalAnn   = "+15550000002"
	signalAnnID = "00000000-0000-4000-8000-000000000002"
	signalBob   = "+15550000003"
	signalBobID = "00000000-0000-4000-8000-000000000003"
)

// signalHouse is a signal-cli daemon with two people and a group, and Herald at it.
type signalHouse struct {
	*daemon
	fake    *signaltest.Server
	account string
	group   string
}

// newSignal starts the fake and sets nothing but Signal's usual variables; more may be added before run.
func newSignal(t *testing.T, env ...string) *signalHouse {
	h := &signalHouse{fake: signaltest.New(signaltest.Options{Comments: time.Second})}
	url, err := h.fake.Start()
	require.NoError(t, err)
	t.Cleanup(h.fake.Close)
	h.fake.AddPerson(signaltest.Person{Number: signalAnn, UUID: signalAnnID, Name: "Ann"})
	h.fake.AddPerson(signaltest.Person{Number: signalBob, UUID: signalBobID, Name: "Bob"})
	h.group = h.fake.AddGroup("Garden", signalAnn, signalBob)
	h.account, _ = h.fake.Account()
	p := newPlace(t)
	p.env = append(p.env, "SIGNAL_HTTP_URL="+url, "SIGNAL_ACCOUNT="+h.account, "SIGNAL_ALLOWED_USERS="+signalAnn)
	p.env = append(p.env, env...)
	h.daemon = p.run()
	h.until("Signal is connected", func() bool { now, _, _ := h.fake.Streams(); return now == 1 })
	return h
}

// write makes Ann write to Herald, or into the group with a mention.
func (h *signalHouse) write(group, text string, files ...signaltest.File) int64 {
	p := signaltest.Post{From: signalAnn, Group: group, Text: text, Files: files}
	if group != "" {
		p.Text, p.Mentions = signaltest.Placeholder+" "+text, []string{h.account}
	}
	return h.fake.Write(p)
}

// sees waits until Herald has written part in a chat.
func (h *signalHouse) sees(chat, part string) signaltest.Message {
	h.t.Helper()
	var found signaltest.Message
	h.until("Signal shows "+part, func() bool {
		for _, m := range h.fake.Visible(chat) {
			if strings.Contains(m.Text, part) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// answered waits until Herald has taken up a choice: it is named in a message that is not the question.
func (h *signalHouse) answered(chat, choice string) {
	h.t.Helper()
	h.until("the choice is taken up", func() bool {
		for _, m := range h.fake.Visible(chat) {
			if strings.Contains(m.Text, choice) && !strings.Contains(m.Text, "1. ") {
				return true
			}
		}
		return false
	})
}

// A person who sets nothing but Signal's usual variables holds a direct chat, is asked and answers by number, and
// exchanges files.
func TestSignal_UsualVariablesAreEnough(t *testing.T) {
	h := newSignal(t, "HERALD_LOG_LEVEL=debug")
	at := h.write("", "what is 6 times 7?")
	answer := h.sees(signalAnn, "= 42")
	require.Equal(t, &signaltest.Quote{Timestamp: at, Author: signalAnnID, Text: "what is 6 times 7?"}, answer.Quote)

	h.write("", "ask me which colour I like: red, green or blue")
	h.sees(signalAnn, "2. green")
	h.write("", "2")
	h.answered(signalAnn, "green")

	body := []byte("one\ntwo\nthree\n")
	h.write("", "", signaltest.File{Name: "notes.txt", MIME: "text/plain", Body: body})
	h.sees(signalAnn, "notes.txt")
	h.write("", "send it back")
	h.until("the file is back", func() bool {
		for _, m := range h.fake.Visible(signalAnn) {
			if len(m.Files) == 1 {
				require.Contains(t, m.Files[0].Name, "notes.txt")
				require.Equal(t, string(body), string(m.Files[0].Body))
				return true
			}
		}
		return false
	})

	h.write(h.group, "what is 6 times 8?") // groups are off
	h.fake.Write(signaltest.Post{From: signalBob, Text: "what is 6 times 9?"})
	h.write("", "what is 7 times 9?")
	h.sees(signalAnn, "= 63")
	require.Empty(t, h.fake.Visible(h.group))
	require.Empty(t, h.fake.Visible(signalBob), "Bob is on no list")
	require.Empty(t, h.fake.Violations())
	for _, number := range []string{signalAnn, signalBob, h.account} {
		require.NotContains(t, h.log(), number, "numbers are masked in the log")
	}
	h.restarts()
}

// restarts: what was said while the daemon was down is answered when it is back, and what was answered is not again.
func (h *signalHouse) restarts() {
	h.stop()
	h.write("", "what is 8 times 9?")
	h.daemon = h.place.run()
	h.sees(signalAnn, "= 72")
	h.fake.Replay(2)
	h.write("", "what is 9 times 9?")
	h.sees(signalAnn, "= 81")
	n := 0
	for _, m := range h.fake.Visible(signalAnn) {
		if strings.Contains(m.Text, "= 72") {
			n++
		}
	}
	require.Equal(h.t, 1, n)
}

// A group is answered where the account is mentioned, and its members are people of their own.
func TestSignal_GroupWithMention(t *testing.T) {
	h := newSignal(t, "SIGNAL_GROUP_ALLOWED_USERS=*", "SIGNAL_REQUIRE_MENTION=true")
	h.fake.Write(signaltest.Post{From: signalAnn, Group: h.group, Text: "what is 2 times 3?"})
	h.fake.Write(signaltest.Post{From: signalBob, Group: h.group, Text: signaltest.Placeholder + " what is 2 times 4?", Mentions: []string{h.account}})
	h.write(h.group, "what is 6 times 8?")
	h.sees(h.group, "= 48")
	h.write(h.group, "ask me which colour I like: red, green or blue")
	h.sees(h.group, "2. green")
	h.write(h.group, "3")
	h.answered(h.group, "blue")
	for _, m := range h.fake.Visible(h.group) {
		require.NotContains(t, m.Text, "= 6\n", "without a mention")
		require.NotContains(t, m.Text, "= 8\n", "Bob is on no list")
	}
	require.Empty(t, h.fake.Visible(signalAnn), "a group's answers stay in it")
}

// The charter's case: a message of 27,000 characters with emoji, bold across the borders and code arrives whole on every
// path: as an answer, from the command line, and as a notice of Herald's own accord.
func TestSignal_27000CharactersArriveWhole(t *testing.T) {
	long := longMessage(27000)
	llm := modeltest.Serve(modeltest.Answering(func(r modeltest.Request) modeltest.Reply { return modeltest.Text(long) }))
	t.Cleanup(llm.Close)
	h := newSignal(t, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_BASE_URL="+llm.OpenAI(), "HERALD_MODEL=a-model", "HERALD_MODEL_PROVIDER=openai",
		"SIGNAL_GROUP_ALLOWED_USERS=*")
	h.write("", "tell me everything")
	whole(t, h, signalAnn, long)

	file := filepath.Join(t.TempDir(), "long.md")
	require.NoError(t, os.WriteFile(file, []byte(long), 0o600))
	r := h.heraldIn(long, "send", "signal:group:"+h.group)
	require.Zero(t, r.code, r.err)
	whole(t, h, h.group, long)
	r = h.herald("send", "signal:"+signalBob, long)
	require.Zero(t, r.code, r.err)
	whole(t, h, signalBob, long)
}

// A part of a long answer that may have got lost is sent again on request, whole.
func TestSignal_ResendsAPartOfALongAnswer(t *testing.T) {
	long := longMessage(27000)
	llm := modeltest.Serve(modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text(long) }))
	t.Cleanup(llm.Close)
	h := newSignal(t, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_BASE_URL="+llm.OpenAI(), "HERALD_MODEL=a-model", "HERALD_MODEL_PROVIDER=openai")
	h.fake.Break("send", faults.Fault{Kind: faults.ResetAfter})
	h.write("", "tell me everything")
	number := regexp.MustCompile(`/resend (\d+)`)
	doubt := h.sees(signalAnn, "/resend ")
	id := number.FindStringSubmatch(doubt.Text)
	require.NotNil(t, id, doubt.Text)
	first := h.fake.Visible(signalAnn)[0]
	h.write("", "/resend "+id[1])
	h.until("the part is there again", func() bool {
		all := h.fake.Visible(signalAnn)
		last := all[len(all)-1]
		return last.Timestamp != first.Timestamp && strings.HasSuffix(last.Text, first.Text) && len(last.Styles) == len(first.Styles)
	})
}

// People and groups are named as people name them.
func TestSignal_SendsByName(t *testing.T) {
	h := newSignal(t, "SIGNAL_HOME_CHANNEL="+signalAnn)
	h.until("the directory knows them", func() bool { return strings.Contains(h.herald("channels").out, "Garden") })
	require.Contains(t, h.good("send", "signal:#Garden", "to the group"), "sent")
	require.Contains(t, h.good("send", "signal:@Bob", "to Bob"), "sent")
	require.Contains(t, h.good("send", "signal", "to the home channel"), "sent")
	h.sees(h.group, "to the group")
	h.sees(signalBob, "to Bob")
	h.sees(signalAnn, "to the home channel")
}

// longMessage is Markdown of at least n characters: a bold run over many paragraphs' length, emoji, and code.
func longMessage(n int) string {
	var b strings.Builder
	b.WriteString("# Everything 🌍\n\n")
	for i := 0; b.Len() < n*2/3; i++ {
		fmt.Fprintf(&b, "**Part %d begins 👩‍👩‍👧‍👦 and goes on %s** and ends with `code %d`.\n\n", i, strings.TrimSpace(strings.Repeat("🎉 bold words ", 40)), i)
	}
	b.WriteString("```go\n")
	for i := 0; b.Len() < n+4000; i++ {
		fmt.Fprintf(&b, "line %d := \"😀\" // a comment\n", i)
	}
	b.WriteString("```\n\nThe end.")
	return b.String()
}

var chunkNumber = regexp.MustCompile(` ?\((\d+)/(\d+)\)$`)

// whole requires that a chat shows the whole message once, in numbered parts of at most 8,000 units, whose styles lie
// inside them and say the same as the message.
func whole(t *testing.T, h *signalHouse, chat, markdown string) {
	t.Helper()
	h.until("the last part is there", func() bool {
		all := h.fake.Visible(chat)
		return len(all) > 0 && strings.Contains(all[len(all)-1].Text, "The end.")
	})
	parts := h.fake.Visible(chat)
	require.Greater(t, len(parts), 2)
	var text strings.Builder
	bold, code := "", ""
	for i, m := range parts {
		units := utf16.Encode([]rune(m.Text))
		require.LessOrEqual(t, len(units), 8000)
		number := chunkNumber.FindStringSubmatch(m.Text)
		require.NotNil(t, number, "part %d ends in %q", i+1, m.Text[len(m.Text)-40:])
		require.Equal(t, fmt.Sprint(i+1), number[1])
		require.Equal(t, fmt.Sprint(len(parts)), number[2])
		for _, s := range m.Styles {
			require.LessOrEqual(t, s.Start+s.Length, len(units))
			ranged := string(utf16.Decode(units[s.Start : s.Start+s.Length]))
			require.NotContains(t, ranged, "\uFFFD", "a range cuts a surrogate pair")
			switch s.Kind {
			case "BOLD":
				bold += ranged
			case "MONOSPACE":
				code += ranged
			}
		}
		text.WriteString(strings.TrimSuffix(m.Text, number[0]))
		text.WriteByte('\n')
	}
	want := markdown
	for _, mark := range []string{"**", "```go\n", "```", "`", "# "} {
		want = strings.ReplaceAll(want, mark, "")
	}
	require.Equal(t, squeeze(want), squeeze(text.String()), "the text is whole and in order")
	require.Equal(t, squeeze(strings.Join(between(markdown, "**"), "")), strings.TrimPrefix(squeeze(bold), squeeze("Everything 🌍")), "what is bold stays bold over the borders")
	inCode := strings.Join(between(strings.Split(markdown, "```")[0], "`"), "") + strings.TrimPrefix(strings.Split(markdown, "```")[1], "go\n")
	require.Equal(t, squeeze(inCode), squeeze(code), "what is code stays code")
}

// squeeze takes white space out: a border between two parts stands for some.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// between returns what stands between pairs of a mark.
func between(s, mark string) (out []string) {
	for i, part := range strings.Split(s, mark) {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return out
}

// The other program of nearly the same name is named in the log and in the status, and the rest goes on.
func TestSignal_WrongServerIsNamed(t *testing.T) {
	fake := signaltest.New(signaltest.Options{Kind: signaltest.RESTWrapper})
	url, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	p := newPlace(t)
	p.env = append(p.env, "SIGNAL_HTTP_URL="+url, "SIGNAL_ACCOUNT=+15550000001", "SIGNAL_ALLOWED_USERS="+signalAnn)
	d := p.run()
	d.until("the log names it", func() bool { return strings.Contains(d.log(), "is signal-cli-rest-api") })
	d.until("status names it", func() bool { return strings.Contains(d.herald("status").out, "signal-cli-rest-api") })
	d.say("main-chat", "message-1", "what is 2 plus 2?")
	d.await("main-chat", "= 4")
}

// Health tells when nothing can come in.
func TestSignal_ReadyIsTruthful(t *testing.T) {
	h := newSignal(t)
	ready := func() string { _, text := h.get("/readyz"); return text }
	h.until("ready", func() bool { return json.Valid([]byte(ready())) || ready() != "" })
	h.fake.Shut()
	h.until("status says that signal-cli is away", func() bool { return strings.Contains(h.herald("status").out, "signal-cli does not answer") })
	require.NoError(t, h.fake.Open())
	h.write("", "what is 6 times 7?")
	h.sees(signalAnn, "= 42")
}

var linkURI = regexp.MustCompile(`sgnl://linkdevice\?\S+`)

// herald signal link shows a code, takes another one when nobody scans the first in time, and says what to set.
func TestSignal_LinkOnTheCommandLine(t *testing.T) {
	fake := signaltest.New(signaltest.Options{Multi: true, Unlinked: true, LinkTime: time.Second})
	url, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	p := newPlace(t)
	p.env = append(p.env, "SIGNAL_HTTP_URL="+url)
	cmd := p.command("signal", "link", "--name", "Kitchen")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	links := make(chan string, 8)
	text := make(chan string, 1)
	go func() {
		defer close(links)
		var all strings.Builder
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintln(&all, lines.Text())
			if uri := linkURI.FindString(lines.Text()); uri != "" {
				links <- uri
			}
		}
		text <- all.String()
	}()
	first := <-links
	second := <-links // the first was not scanned
	require.NotEqual(t, first, second)
	_, ok := fake.Scan(first)
	require.False(t, ok, "an old code is over")
	var device string
	require.Eventually(t, func() bool {
		device, ok = fake.Scan(second)
		return ok
	}, patience, 5*time.Millisecond)
	require.Equal(t, "Kitchen", device)
	shown := <-text
	require.NoError(t, cmd.Wait())
	require.Contains(t, shown, "▀")
	require.Contains(t, shown, "SIGNAL_ACCOUNT=+15550000001")
	_, err = os.Stat(p.home)
	require.ErrorIs(t, err, os.ErrNotExist, "linking needs no home")

	for _, c := range []struct {
		o    signaltest.Options
		want string
	}{
		{signaltest.Options{}, "serves one account only"},
		{signaltest.Options{Kind: signaltest.RESTWrapper}, "signal-cli-rest-api"},
	} {
		other := signaltest.New(c.o)
		url, err := other.Start()
		require.NoError(t, err)
		t.Cleanup(other.Close)
		r := p.herald("signal", "link", "--url", url)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.err, c.want)
	}
	r := p.herald("signal", "link", "--url", "http://127.0.0.1:1")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "signal-cli does not answer at http://127.0.0.1:1")
}

// The page does the same behind the door of the browser chat, and the account that waited for it comes up by itself.
func TestSignal_LinkOnThePage(t *testing.T) {
	fake := signaltest.New(signaltest.Options{Multi: true, Unlinked: true, Comments: time.Second})
	url, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	fake.AddPerson(signaltest.Person{Number: signalAnn, UUID: signalAnnID, Name: "Ann"})
	p := newPlace(t)
	p.env = append(p.env, "SIGNAL_HTTP_URL="+url, "SIGNAL_ACCOUNT=+15550000001", "SIGNAL_ALLOWED_USERS="+signalAnn)
	d := p.run()
	d.until("status says what to do", func() bool { return strings.Contains(d.herald("status").out, "herald signal link") })
	_, page := d.get("/signal/link")
	require.Contains(t, page, "Show a code")
	resp, err := http.Post(d.address()+"signal/link", "application/x-www-form-urlencoded", nil)
	require.NoError(t, err)
	_ = resp.Body.Close()
	d.until("the page shows a code", func() bool {
		_, page = d.get("/signal/link")
		return strings.Contains(page, "<svg ")
	})
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "sgnl://", "the code alone is enough")
	var links []string
	d.until("the phone scans it", func() bool {
		links = fake.Links()
		for _, uri := range links {
			if _, ok := fake.Scan(uri); ok {
				return true
			}
		}
		return false
	})
	d.until("the page says so", func() bool {
		_, page = d.get("/signal/link")
		return strings.Contains(page, "Linking is done") && strings.Contains(page, "Herald uses this account")
	})
	fake.Write(signaltest.Post{From: signalAnn, Text: "what is 6 times 7?"})
	d.until("it answers", func() bool {
		all := fake.Visible(signalAnn)
		return len(all) > 0 && strings.Contains(all[0].Text, "= 42")
	})
	require.NotContains(t, d.log(), "sgnl://")

	req, err := http.NewRequest(http.MethodPost, d.address()+"signal/link", nil)
	require.NoError(t, err)
	req.Header.Set("Origin", "https://evil.example")
	resp, err = http.DefaultClient.Do(req)
	require.NoError(t, err)
	_ = resp.Body.Close()
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
}

// With a password nobody sees the code without it.
func TestSignal_LinkPageIsBehindTheDoor(t *testing.T) {
	p := newPlace(t)
	d := p.run("--set", "http.password=a-long-password-of-ours")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(d.address() + "signal/link")
	require.NoError(t, err)
	_ = resp.Body.Close()
	require.Equal(t, http.StatusSeeOther, resp.StatusCode)
	resp, err = client.Post(d.address()+"signal/link", "", nil)
	require.NoError(t, err)
	_ = resp.Body.Close()
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
}
