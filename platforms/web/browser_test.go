package web_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/web"
	"herald/platforms/web/browsertest"
)

// agent is a scripted core: it answers what is accepted, as the words in it say.
type agent struct {
	t       testing.TB
	stage   *stage
	wg      sync.WaitGroup
	mu      sync.Mutex
	stops   map[platforms.ChatID]chan struct{}
	release map[string]chan struct{} // gates by name: a script waits there until the test lets it on
}

func newAgent(t testing.TB, s *stage) *agent {
	a := &agent{t: t, stage: s, stops: make(map[platforms.ChatID]chan struct{}), release: make(map[string]chan struct{})}
	s.sink.script = func(e platforms.Event) { a.wg.Go(func() { a.answer(e) }) }
	t.Cleanup(func() {
		a.mu.Lock()
		for _, c := range a.stops {
			closeOnce(c)
		}
		for _, c := range a.release {
			closeOnce(c)
		}
		a.mu.Unlock()
		a.wg.Wait()
	})
	return a
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// gate returns the gate of that name.
func (a *agent) gate(name string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.release[name] == nil {
		a.release[name] = make(chan struct{})
	}
	return a.release[name]
}

func (a *agent) open(name string) { closeOnce(a.gate(name)) }

func (a *agent) stopOf(chat platforms.ChatID) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stops[chat] == nil {
		a.stops[chat] = make(chan struct{})
	}
	return a.stops[chat]
}

func (a *agent) send(out platforms.Outgoing) platforms.MessageID {
	r, err := a.stage.adapter.Send(context.Background(), out)
	if err != nil {
		a.t.Errorf("send: %v", err)
	}
	return r.Message
}

func (a *agent) answer(e platforms.Event) {
	ctx, to := context.Background(), e.Address
	id := string(e.ID)
	if e.Click != nil {
		_ = a.stage.adapter.AnswerClick(ctx, to, *e.Click, "Noted: "+e.Click.Data)
		out := text(to.Chat, "", "You chose **"+e.Click.Data+"**.")
		out.Edit = e.Click.MessageID
		a.send(out)
		return
	}
	said := e.Message.Text
	switch {
	case said == "/stop":
		closeOnce(a.stopOf(to.Chat))
		a.send(text(to.Chat, id, "Stopped."))
	case strings.HasPrefix(said, "work"):
		_ = a.stage.adapter.Typing(ctx, to)
		out := text(to.Chat, id+"/p", "`terminal` ls")
		out.Interim, out.Progress = true, true
		bubble := a.send(out)
		<-a.gate("progress")
		out.Text.Markdown = "`terminal` ls\n`read_file` notes.txt"
		out.Edit = bubble
		out.Interim = false
		a.send(out)
		words := strings.Fields(longAnswer)
		out = text(to.Chat, id+"/a", strings.Join(words[:5], " "))
		out.Interim = true
		preview := a.send(out)
		<-a.gate("stream")
		out.Edit, out.Text.Markdown = preview, longAnswer[:len(longAnswer)/2]
		a.send(out)
		<-a.gate("final")
		out.Interim, out.Text.Markdown = false, longAnswer
		a.send(out)
	case strings.HasPrefix(said, "forever"):
		out := text(to.Chat, id, "Counting: 1")
		out.Interim = true
		msg := a.send(out)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 2; ; n++ {
			_ = a.stage.adapter.Typing(ctx, to)
			select {
			case <-a.stopOf(to.Chat):
				out.Edit, out.Interim = msg, false
				out.Text.Markdown = "Counting: stopped"
				a.send(out)
				return
			case <-tick.C:
				out.Edit = msg
				out.Text.Markdown = fmt.Sprintf("Counting: %d", n)
				a.send(out)
			}
		}
	case said == "choose":
		out := text(to.Chat, id, "Run `rm -r build`?")
		out.Buttons = [][]platforms.Button{{{Label: "Allow", Data: "allow", Style: "primary"}, {Label: "Deny", Data: "deny", Style: "danger"}}}
		a.send(out)
	case said == "send files":
		out := text(to.Chat, id, "Here they are.")
		for _, name := range []string{"chart.png", "report.txt"} {
			out.Attachments = append(out.Attachments, platforms.Attachment{Path: filepath.Join(a.stage.dir, "..", name), Name: name})
		}
		a.send(out)
	case len(e.Message.Attachments) > 0:
		var names []string
		for _, f := range e.Message.Attachments {
			names = append(names, fmt.Sprintf("%s (%s, %d)", f.Name, f.Kind, f.Size))
		}
		a.send(text(to.Chat, id, "Got "+strings.Join(names, ", ")))
	default:
		a.send(text(to.Chat, id, "You said: "+said))
	}
}

const longAnswer = "# A plan\n\nHere is what I **found** in `notes.txt`, and what I would do next:\n\n" +
	"1. Buy milk, bread and two lemons.\n2. Water the plants.\n3. Write to Ada about the *analytical engine*.\n\n" +
	"```go\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n```\n\n" +
	"| step | state | when |\n|---|:---:|---:|\n| read | done | 09:00 |\n| write | open | 12:30 |\n\n" +
	"> Everything is in the [manual](https://example.com/manual).\n\n- [x] first\n- [ ] second\n\nDone <b>here</b>."

// picture makes a PNG.
func picture(t testing.TB, w, h int) []byte {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, color.RGBA{R: uint8(x * 255 / w), G: uint8(y * 255 / h), B: 160, A: 255})
		}
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

var testCommands = []platforms.CommandInfo{
	{Name: "help", Description: "Show what can be done"},
	{Name: "new", Description: "Start a new session", Args: "[name]"},
	{Name: "status", Description: "Show the state of this session"},
	{Name: "stop", Description: "Stop the answer that is being made"},
	{Name: "start", Description: "Say hello"},
	{Name: "model", Description: "Show or change the model", Args: "[name]"},
}

// scene is a stage with an agent and a page that shows it.
type scene struct {
	*stage
	*browsertest.Page
	agent *agent
	t     testing.TB
}

func newScene(t *testing.T, b *browsertest.Browser, change func(*web.Options)) *scene {
	s := newStage(t, change)
	a := newAgent(t, s)
	require.NoError(t, s.adapter.SetCommands(context.Background(), testCommands))
	p := b.Open(t, s.server.URL)
	return &scene{stage: s, Page: p, agent: a, t: t}
}

// say types a message and sends it with Enter.
func (s *scene) say(what string) {
	s.t.Helper()
	s.Focus("#text")
	s.Keys(what)
	s.Enter()
}

// clean asserts that the page was quiet and spoke to its own server alone.
func (s *scene) clean() {
	s.t.Helper()
	require.Empty(s.t, s.Problems(), "console")
	home, err := url.Parse(s.server.URL)
	require.NoError(s.t, err)
	require.NotEmpty(s.t, s.Requests())
	for _, r := range s.Requests() {
		u, err := url.Parse(r)
		require.NoError(s.t, err)
		ours := u.Host == home.Host || u.Scheme == "blob" || u.Scheme == "data" && strings.HasPrefix(u.Opaque, "image/svg+xml")
		require.True(s.t, ours, "request to another server: %s", r)
	}
}

func TestBrowser(t *testing.T) {
	b := browsertest.Start(t)

	t.Run("EmptyPageInvites", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.WaitText("What can Herald do for you?")
		s.Screenshot("empty-light")
		s.Dark(true)
		s.Screenshot("empty-dark")
		s.Dark(false)
		s.Click("#examples button:nth-child(2)")
		s.WaitText("You said: run ls")
		require.Equal(t, "run ls", s.sink.all()[0].Message.Text)
		s.Wait(`document.querySelector("#empty").hidden`)
		s.Wait(`document.title === "run ls · Herald"`)
		s.clean()
	})

	t.Run("AnswerStreams", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.say("work on it")
		s.WaitText("terminal ls")
		s.Wait(`document.querySelector(".light details.active") && !document.querySelector("#stop").hidden && !document.querySelector("#typing").hidden`)
		s.Screenshot("progress")
		s.agent.open("progress")
		s.Wait(`document.querySelector(".light .count").textContent === "2 steps"`)
		s.Wait(`document.querySelector(".msg.interim .body")?.innerText.startsWith("A plan")`)
		s.agent.open("stream")
		s.WaitText("Water the plants")
		s.Screenshot("streaming")
		require.True(t, browsertest.Eval[bool](s.Page, `!document.querySelector("#stop").hidden`))
		s.agent.open("final")
		s.WaitText("Done <b>here</b>.")
		s.Wait(`document.querySelector("#stop").hidden && !document.querySelector(".interim")`)
		require.Equal(t, 1, browsertest.Eval[int](s.Page, `document.querySelectorAll(".msg.agent:not(.light)").length`), "P4: one visible copy")
		require.Equal(t, "go", browsertest.Eval[string](s.Page, `document.querySelector(".code-head span").textContent`))
		require.Equal(t, "noopener noreferrer nofollow", browsertest.Eval[string](s.Page, `document.querySelector(".body a").rel`))
		s.Screenshot("answer-light")
		s.Dark(true)
		s.Screenshot("answer-dark")
		s.Click(".light summary")
		s.Wait(`document.querySelector(".light details").open`)
		s.clean()
	})

	t.Run("StopEndsAnAnswer", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.say("forever one")
		s.WaitText("Counting: 3")
		s.Click("#stop")
		s.WaitText("Counting: stopped")
		s.WaitText("Stopped.")
		s.Wait(`document.querySelector("#stop").hidden`)
		// The same with the keyboard, in another chat.
		s.Keys("k", chromedp.ModifierCtrl)
		s.Wait(`!document.querySelector("#empty").hidden`)
		s.say("forever two")
		s.WaitText("Counting: 3")
		s.Keys(kb.Escape)
		s.WaitText("Counting: stopped")
		s.Wait(`document.querySelectorAll("#chats a").length === 2`)
		s.clean()
	})

	t.Run("ReloadShowsHistory", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.say("first message")
		s.WaitText("You said: first message")
		s.Reload()
		s.WaitText("You said: first message")
		require.Equal(t, 2, browsertest.Eval[int](s.Page, `document.querySelectorAll(".msg").length`))
		// Older ones are loaded when they are looked for, and what is read stays in place.
		chat := s.sink.all()[0].Address.Chat
		for i := range 120 {
			s.send(text(chat, fmt.Sprint("n", i), fmt.Sprintf("line %d", i)))
		}
		s.Reload()
		s.WaitText("line 119")
		require.False(t, browsertest.Eval[bool](s.Page, `document.body.innerText.includes("line 9\n")`))
		browsertest.Eval[any](s.Page, `void document.querySelector("#scroller").scrollTo(0, 0)`)
		s.Wait(`document.querySelectorAll(".msg").length >= 100`)
		require.True(t, browsertest.Eval[bool](s.Page, `document.querySelector("#scroller").scrollTop > 100`), "the place that was read is kept")
		s.Wait(`document.querySelector("#scroller").scrollTo(0, 0), document.body.innerText.includes("first message")`)
		s.Wait(`document.querySelector("#older").hidden`)
		s.Click("#to-end")
		s.Wait(`document.querySelector("#to-end").hidden`)
		s.clean()
	})

	t.Run("TwoTabsShowTheSame", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.say("hello from one")
		s.WaitText("You said: hello from one")
		two := b.Open(t, s.server.URL+browsertest.Eval[string](s.Page, "location.hash ? '/' + location.hash : ''"))
		two.WaitText("You said: hello from one")
		two.Focus("#text")
		two.Keys("hello from two")
		two.Enter()
		two.WaitText("You said: hello from two")
		s.WaitText("You said: hello from two")
		require.Equal(t, 4, browsertest.Eval[int](s.Page, `document.querySelectorAll(".msg").length`))
		require.Equal(t, 4, browsertest.Eval[int](two, `document.querySelectorAll(".msg").length`))
		require.Empty(t, two.Problems())
		s.clean()
	})

	t.Run("SeveralChatsStayApart", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.say("about apples")
		s.WaitText("You said: about apples")
		s.Click("#new-chat")
		s.say("about pears")
		s.WaitText("You said: about pears")
		require.False(t, browsertest.Eval[bool](s.Page, `document.querySelector("#messages").innerText.includes("apples")`), "P5")
		events := s.sink.all()
		require.NotEqual(t, events[0].Address.Chat, events[1].Address.Chat)
		// A message for the chat that is not shown marks it, and nothing else.
		s.send(text(events[0].Address.Chat, "later", "apples are ripe"))
		s.Wait(`document.querySelector("#chats a.unread")?.textContent.includes("about apples")`)
		s.Wait(`document.title.startsWith("(1) ")`)
		require.False(t, browsertest.Eval[bool](s.Page, `document.querySelector("#messages").innerText.includes("ripe")`))
		s.Click("#chats a.unread")
		s.WaitText("apples are ripe")
		s.Wait(`!document.querySelector("#chats a.unread") && !document.title.startsWith("(")`)
		s.Wait(`document.querySelector("#chats a").textContent.includes("about apples")`) // newest first
		s.Screenshot("chats")
		s.clean()
	})

	t.Run("FilesGoUpAndDown", func(t *testing.T) {
		s := newScene(t, b, nil)
		up := filepath.Join(t.TempDir(), "cat photo.png")
		require.NoError(t, os.WriteFile(up, picture(t, 640, 400), 0o600))
		notes := filepath.Join(t.TempDir(), "notes.txt")
		require.NoError(t, os.WriteFile(notes, []byte("milk"), 0o600))
		s.Files("#files", up, notes)
		s.Wait(`document.querySelectorAll("#tray li").length === 2 && document.querySelector("#tray img").naturalWidth === 640`)
		s.Screenshot("tray")
		s.Click("#send")
		s.WaitText("Got cat photo.png (image,")
		s.Wait(`document.querySelector(".user .thumb img").naturalWidth === 640`)
		got := s.sink.all()[0].Message.Attachments
		require.Len(t, got, 2)
		body, err := os.ReadFile(got[1].Path)
		require.NoError(t, err)
		require.Equal(t, "milk", string(body))

		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "..", "chart.png"), picture(t, 320, 200), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "..", "report.txt"), []byte("all is well"), 0o600))
		s.say("send files")
		s.Wait(`document.querySelector(".agent .thumb img")?.naturalWidth === 320`)
		require.Equal(t, "all is well", browsertest.Eval[string](s.Page, `fetch(document.querySelector(".agent a.file").href).then((r) => r.text())`))
		require.Equal(t, "report.txt", browsertest.Eval[string](s.Page, `document.querySelector(".agent a.file").download`))
		s.Screenshot("files")
		s.clean()
	})

	t.Run("PasteAndDrop", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.Focus("#text")
		for _, event := range []string{
			`new ClipboardEvent("paste", { clipboardData: d, bubbles: true, cancelable: true })`,
			`new DragEvent("drop", { dataTransfer: d, bubbles: true, cancelable: true })`,
		} {
			browsertest.Eval[any](s.Page, `(() => { const d = new DataTransfer(); d.items.add(new File(["x"], "a.txt", { type: "text/plain" })); document.querySelector("#text").dispatchEvent(`+event+`); })()`)
		}
		s.Wait(`document.querySelectorAll("#tray li").length === 2`)
		s.Click("#tray li button")
		s.Wait(`document.querySelectorAll("#tray li").length === 1`)
		s.clean()
	})

	t.Run("ButtonAnswers", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.say("choose")
		s.Wait(`document.querySelectorAll(".choice").length === 2`)
		s.Screenshot("buttons")
		s.Click(".choice.primary")
		s.WaitText("You chose allow.")
		s.WaitText("Noted: allow")
		s.Wait(`!document.querySelector(".choice")`)
		click := s.sink.all()[1]
		require.Equal(t, "allow", click.Click.Data)
		require.Equal(t, s.sink.all()[0].Address, click.Address, "P5")
		s.clean()
	})

	t.Run("KeyboardAlone", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.Wait(`document.activeElement.id === "text"`) // ready to type at once
		s.Keys("/st")
		s.Wait(`document.querySelectorAll("#menu li").length === 3`)
		s.Wait(`document.querySelector("#text").getAttribute("aria-expanded") === "true"`)
		s.Screenshot("menu")
		s.Keys(kb.ArrowDown)
		s.Wait(`document.querySelector("#menu [aria-selected=true]").textContent.includes("/stop")`)
		s.Keys(kb.ArrowUp)
		s.Keys(kb.Tab)
		s.Wait(`document.querySelector("#text").value === "/status" && document.querySelector("#menu").hidden`)
		s.Enter()
		s.WaitText("You said: /status")
		s.Keys("one")
		s.Enter(chromedp.ModifierShift)
		s.Keys("two")
		s.Enter()
		s.WaitText("You said: one")
		require.Equal(t, "one\ntwo", s.sink.all()[1].Message.Text)
		s.Keys("k", chromedp.ModifierCtrl)
		s.Wait(`!document.querySelector("#empty").hidden && document.activeElement.id === "text"`)
		s.Keys("another")
		s.Enter()
		s.WaitText("You said: another")
		s.Focus("#new-chat")
		s.Keys(kb.ArrowDown)
		s.Keys(kb.ArrowDown)
		s.Enter()
		s.WaitText("You said: /status")
		s.Screenshot("focus")
		s.clean()
	})

	t.Run("Phone", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.Viewport(390, 844, true)
		s.Reload()
		s.WaitText("What can Herald do for you?")
		s.Screenshot("phone-empty")
		s.Click("#text")
		s.Keys("work please")
		s.Click("#send")
		s.agent.open("progress")
		s.agent.open("stream")
		s.agent.open("final")
		s.WaitText("Done <b>here</b>.")
		s.Screenshot("phone-answer")
		require.True(t, browsertest.Eval[bool](s.Page, `document.documentElement.scrollWidth <= innerWidth`), "nothing wider than the screen")
		require.True(t, browsertest.Eval[bool](s.Page, `document.querySelector("#sidebar").inert`))
		s.Click("#open-sidebar")
		s.Wait(`document.querySelector("#sidebar").getBoundingClientRect().left === 0`)
		s.Screenshot("phone-drawer")
		s.Click("#chats a")
		s.Wait(`document.querySelector("#sidebar").inert && !document.querySelector(".main").inert`)
		s.Dark(true)
		s.Screenshot("phone-dark")
		for _, sel := range []string{"#send", "#attach", "#open-sidebar"} {
			require.GreaterOrEqual(t, browsertest.Eval[float64](s.Page, `document.querySelector("`+sel+`").getBoundingClientRect().height`), 38.0, "%s is big enough for a finger", sel)
		}
		s.clean()
	})

	t.Run("DarkAndLight", func(t *testing.T) {
		s := newScene(t, b, nil)
		background := `getComputedStyle(document.body).backgroundColor`
		require.Equal(t, "rgb(255, 255, 255)", browsertest.Eval[string](s.Page, background))
		s.Dark(true)
		require.Equal(t, "rgb(23, 23, 27)", browsertest.Eval[string](s.Page, background))
		s.Click("#theme") // system to light
		require.Equal(t, "rgb(255, 255, 255)", browsertest.Eval[string](s.Page, background))
		s.Reload()
		s.WaitText("Theme: light")
		require.Equal(t, "rgb(255, 255, 255)", browsertest.Eval[string](s.Page, background))
		s.clean()
	})

	t.Run("FailedMessageIsKept", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.sink.setErr(platforms.ErrRefused)
		s.say("do not lose me")
		s.WaitText("can't store messages right now")
		s.Screenshot("failed")
		s.Reload()
		s.WaitText("This message was not sent.")
		require.Equal(t, 1, browsertest.Eval[int](s.Page, `document.querySelectorAll(".msg").length`))
		s.sink.setErr(nil)
		s.Click("[data-action=again]")
		s.WaitText("You said: do not lose me")
		s.Wait(`!document.querySelector(".failure")`)
		require.Len(t, s.sink.all(), 1, "P2: once in")
		s.Forget() // the browser notes the 503
		s.clean()
	})

	t.Run("PendingMessageOfACrashCanBeSentAgain", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.sink.setErr(platforms.ErrRefused)
		s.say("half way")
		s.WaitText("can't store messages right now")
		browsertest.Eval[any](s.Page, `void localStorage.clear()`) // another browser knows nothing of it
		s.Reload()
		s.WaitText("Not delivered.")
		s.sink.setErr(nil)
		s.Click("[data-action=resend]")
		s.WaitText("You said: half way")
		s.Wait(`!document.querySelector(".failure")`)
		require.Len(t, s.sink.all(), 1)
	})

	t.Run("TooLongTextStaysInTheBox", func(t *testing.T) {
		s := newScene(t, b, func(o *web.Options) { o.MaxText = 100 })
		s.Focus("#text")
		browsertest.Eval[any](s.Page, `void (document.querySelector("#text").value = "x".repeat(101), document.querySelector("#text").dispatchEvent(new Event("input")))`)
		s.Enter()
		s.WaitText("at most 100 B can be sent")
		require.Equal(t, 101, browsertest.Eval[int](s.Page, `document.querySelector("#text").value.length`))
		require.Empty(t, s.sink.all())
		s.clean()
	})

	t.Run("ReconnectsAndCatchesUp", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.say("before")
		s.WaitText("You said: before")
		chat := s.sink.all()[0].Address.Chat
		s.setGate(func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/events") {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		})
		s.server.CloseClientConnections()
		s.WaitText("Reconnecting…")
		s.Screenshot("reconnecting")
		s.send(text(chat, "missed", "while you were away"))
		s.setGate(nil)
		s.WaitText("while you were away")
		s.Wait(`document.querySelector("#status").hidden`)
		// And when the daemon itself was restarted: its numbers start over too.
		s.stop()
		s.WaitText("Reconnecting…")
		s.start()
		s.Wait(`document.querySelector("#status").hidden`)
		s.send(text(chat, "again", "back again"))
		s.WaitText("back again")
		require.Equal(t, 4, browsertest.Eval[int](s.Page, `document.querySelectorAll(".msg").length`))
	})

	t.Run("Login", func(t *testing.T) {
		s := newScene(t, b, func(o *web.Options) { o.Password = "open sesame" })
		s.Wait(`!document.querySelector("#login").hidden && document.querySelector("#app").hidden`)
		s.Keys("wrong")
		s.Enter()
		s.WaitText("That is not the password.")
		s.Screenshot("login")
		s.Keys("open sesame")
		s.Enter()
		s.WaitText("What can Herald do for you?")
		s.Reload()
		s.WaitText("What can Herald do for you?")
		require.NotContains(t, browsertest.Eval[string](s.Page, "document.cookie"), "herald", "HttpOnly")
		s.Click("#logout")
		s.Wait(`!document.querySelector("#login").hidden`)
	})

	t.Run("TokenInTheAddressLogsIn", func(t *testing.T) {
		s := newStage(t, func(o *web.Options) { o.Token = "t0ken/with+signs" })
		p := b.Open(t, s.server.URL+"/#token="+url.QueryEscape("t0ken/with+signs"))
		p.WaitText("What can Herald do for you?")
		require.NotContains(t, browsertest.Eval[string](p, "location.href"), "t0ken")
		for _, r := range p.Requests() {
			require.NotContains(t, strings.SplitN(r, "#", 2)[0], "t0ken")
		}
	})

	t.Run("LongMessage", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.say("hi")
		s.WaitText("You said: hi")
		chat := s.sink.all()[0].Address.Chat
		s.send(text(chat, "long", strings.Repeat("A line of some words that goes on for a while. ", 20000)+"the very end"))
		s.WaitText("the very end")
		s.send(text(chat, "wide", strings.Repeat("x", 5000)+"\n\n```\n"+strings.Repeat("y", 3000)+"\n```"))
		s.Wait(`document.querySelectorAll(".msg.agent").length === 3`)
		require.True(t, browsertest.Eval[bool](s.Page, `document.querySelector("#scroller").scrollWidth <= document.querySelector("#scroller").clientWidth`))
		s.clean()
	})

	t.Run("CopyGivesTheSource", func(t *testing.T) {
		s := newScene(t, b, nil)
		s.say("hi")
		s.WaitText("You said: hi")
		s.send(text(s.sink.all()[0].Address.Chat, "md", "some **bold** text\n\n```go\na := 1\n```"))
		s.WaitText("some bold text")
		browsertest.Eval[any](s.Page, `void (navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve(); })`)
		s.Click(".msg:last-child [data-action=copy]")
		s.Wait("globalThis.copied === \"some **bold** text\\n\\n```go\\na := 1\\n```\"")
		s.Click(".code-copy")
		s.Wait("globalThis.copied === \"a := 1\\n\"")
		s.clean()
	})
}

// The page must not be able to run what an answer brings, whatever it looks like.
func TestBrowser_HostileAnswerRunsNothing(t *testing.T) {
	b := browsertest.Start(t)
	s := newScene(t, b, nil)
	s.say("hi")
	s.WaitText("You said: hi")
	chat := s.sink.all()[0].Address.Chat
	s.send(text(chat, "evil", strings.Join([]string{
		`<img src=x onerror="globalThis.pwned=1">`,
		`<script>globalThis.pwned=1</script>`,
		`[click](javascript:globalThis.pwned=1)`,
		`![pixel](http://127.0.0.1:1/track.png)`,
		`<iframe src="http://127.0.0.1:1/"></iframe>`,
		`| a |`, `|---|`, `| <svg onload=globalThis.pwned=1> |`,
		"the end",
	}, "\n\n")))
	s.WaitText("the end")
	for _, a := range []string{"a[href^=javascript]", ".body img", ".body iframe", ".body script", ".body svg:not(.i)"} {
		require.Equal(t, 0, browsertest.Eval[int](s.Page, `document.querySelectorAll(`+fmt.Sprintf("%q", a)+`).length`), a)
	}
	require.False(t, browsertest.Eval[bool](s.Page, "Boolean(globalThis.pwned)"))
	s.clean()
}
