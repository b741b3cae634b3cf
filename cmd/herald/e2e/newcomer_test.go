package e2e_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/web/browsertest"
)

// visitor is a person in front of the page of a daemon that nobody configured.
type visitor struct {
	*browsertest.Page
	t *testing.T
	d *daemon
}

func visit(t *testing.T, b *browsertest.Browser, d *daemon) *visitor {
	v := &visitor{Page: b.Open(t, d.address()), t: t, d: d}
	v.WaitText("What can Herald do for you?")
	return v
}

// answers is how many finished answers and notices the page shows.
const answers = `document.querySelectorAll("#messages .msg.agent:not(.light):not(.interim)").length`

// say sends a message and returns the text of the next answer that is complete.
func (v *visitor) say(text string) string {
	v.t.Helper()
	n := browsertest.Eval[int](v.Page, answers)
	v.send(text)
	v.Wait(fmt.Sprintf(`%s > %d && document.querySelector("#stop").hidden && !document.querySelector(".interim")`, answers, n))
	return v.last()
}

func (v *visitor) send(text string) {
	v.t.Helper()
	v.Focus("#text")
	v.Keys(text)
	v.Enter()
}

// last is the newest answer as a person reads it.
func (v *visitor) last() string {
	v.t.Helper()
	return browsertest.Eval[string](v.Page, `[...document.querySelectorAll("#messages .msg.agent:not(.light)")].at(-1)?.querySelector(".body")?.innerText ?? ""`)
}

// choose presses the newest button with a label.
func (v *visitor) choose(label string) {
	v.t.Helper()
	pressed := browsertest.Eval[bool](v.Page, fmt.Sprintf(`(() => { const b = [...document.querySelectorAll(".choice")].filter((b) => b.innerText.trim() === %q).at(-1); b?.click(); return !!b; })()`, label))
	require.True(v.t, pressed, "a button %q", label)
}

// quiet asserts that the page was quiet and spoke to its own server alone.
func (v *visitor) quiet() {
	v.t.Helper()
	require.Empty(v.t, v.Problems(), "console")
	home, err := url.Parse(v.d.address())
	require.NoError(v.t, err)
	for _, r := range v.Requests() {
		u, err := url.Parse(r)
		require.NoError(v.t, err)
		require.True(v.t, u.Host == home.Host || u.Scheme == "blob" || u.Scheme == "data", "request to another server: %s", r)
	}
}

// What a newcomer does with a daemon that was started with no configuration at all.
func TestNewcomer(t *testing.T) {
	b := browsertest.Start(t)
	d := newPlace(t).run()
	require.Contains(t, d.log(), "demo", "the log says which model answers")
	workspace := filepath.Join(d.home, "workspace")

	t.Run("HelloIsHonestAboutTheDemo", func(t *testing.T) {
		v := visit(t, b, d)
		text := v.say("hello")
		v.Screenshot("hello")
		first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		require.Contains(t, strings.ToLower(first), "demo")
		require.Contains(t, text, "Hello!")
		v.quiet()
	})

	t.Run("FilesAndCommands", func(t *testing.T) {
		v := visit(t, b, d)
		require.Contains(t, v.say("write hello to notes.txt"), "Wrote notes.txt")
		body, err := os.ReadFile(filepath.Join(workspace, "notes.txt"))
		require.NoError(t, err)
		require.Equal(t, "hello", strings.TrimSpace(string(body)))
		v.Screenshot("write")
		require.Contains(t, v.say("show notes.txt"), "hello")
		require.Contains(t, v.say("change hello to bye in notes.txt"), "bye")
		v.Screenshot("change")
		body, err = os.ReadFile(filepath.Join(workspace, "notes.txt"))
		require.NoError(t, err)
		require.Equal(t, "bye", strings.TrimSpace(string(body)))
		require.Contains(t, v.say("search the files for bye"), "notes.txt:1")
		text := v.say("run ls")
		require.Contains(t, text, "notes.txt")
		v.Screenshot("ls")
		text = v.say("run ls /nowhere-at-all")
		require.Contains(t, text, "No such file")
		v.Screenshot("ls-fails")
		// The steps were shown while they went on.
		require.Positive(t, browsertest.Eval[int](v.Page, `document.querySelectorAll(".msg.light").length`))
		v.quiet()
	})

	t.Run("ABrokenFileComesBack", func(t *testing.T) {
		v := visit(t, b, d)
		path := filepath.Join(workspace, "letter.txt")
		require.NoError(t, os.WriteFile(path, []byte("Dear reader\n"), 0o600))
		require.Contains(t, v.say("write rubbish to letter.txt"), "Wrote letter.txt")
		text := v.say("/rollback")
		require.Contains(t, text, "before write_file")
		v.Screenshot("checkpoints")
		n := browsertest.Eval[int](v.Page, answers)
		v.choose("1")
		v.Wait(fmt.Sprintf("%s > %d", answers, n))
		require.Contains(t, v.last(), "letter.txt")
		v.Screenshot("rollback-preview")
		n = browsertest.Eval[int](v.Page, answers)
		v.choose("Go back")
		v.Wait(fmt.Sprintf("%s > %d", answers, n))
		require.Contains(t, v.last(), "as it was: letter.txt")
		v.Screenshot("rollback")
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "Dear reader\n", string(body))
		v.quiet()
	})

	t.Run("ALongAnswerIsStopped", func(t *testing.T) {
		v := visit(t, b, d)
		v.send("count to 500 slowly")
		v.Wait(`/ 7 8 9 /.test(document.querySelector("#messages").innerText) && !document.querySelector("#stop").hidden`)
		v.Screenshot("counting")
		v.Click("#stop")
		v.WaitText("Stopped.")
		v.Wait(`document.querySelector("#stop").hidden && !document.querySelector(".interim")`)
		v.Screenshot("stopped")
		shown := browsertest.Eval[string](v.Page, `document.querySelector("#messages").innerText`)
		require.NotContains(t, shown, "499 500")
		require.NotContains(t, v.say("hello again there"), "499 500")
		v.quiet()
	})

	t.Run("SessionsStatusHelp", func(t *testing.T) {
		v := visit(t, b, d)
		v.say("echo the first session")
		require.Contains(t, v.say("/new now"), "New session")
		require.Contains(t, v.say("what did I just say"), "first message")
		text := v.say("/status")
		require.Contains(t, text, "demo")
		require.Contains(t, text, "web")
		v.Screenshot("status")
		text = v.say("/help")
		for _, name := range []string{"/new", "/stop", "/status", "/undo"} {
			require.Contains(t, text, name)
		}
		v.Screenshot("help")
		require.Contains(t, v.say("what can you do?"), "run ls")
		v.Screenshot("abilities")
		v.quiet()
	})

	t.Run("FilesGoUpAndDown", func(t *testing.T) {
		v := visit(t, b, d)
		up := filepath.Join(t.TempDir(), "shopping.txt")
		require.NoError(t, os.WriteFile(up, []byte("milk and honey\n"), 0o600))
		v.Files("#files", up)
		v.Wait(`document.querySelectorAll("#tray li").length === 1`)
		n := browsertest.Eval[int](v.Page, answers)
		v.Click("#send")
		v.Wait(fmt.Sprintf(`%s > %d`, answers, n))
		v.Screenshot("attached")
		require.Contains(t, v.last(), "shopping.txt")
		text := v.say("write good news to report.txt then send me report.txt")
		v.Screenshot("sent-file")
		t.Log(text)
		v.Wait(`document.querySelector(".agent a.file")`)
		require.Equal(t, "good news", strings.TrimSpace(browsertest.Eval[string](v.Page, `fetch(document.querySelector(".agent a.file").href).then((r) => r.text())`)))
		v.quiet()
	})

	t.Run("OldConversationsAreFound", func(t *testing.T) {
		v := visit(t, b, d)
		v.say("echo my dentist is called Molar")
		v.Click("#new-chat")
		v.Wait(`!document.querySelector("#empty").hidden`)
		text := v.say("search our chats for dentist")
		v.Screenshot("search")
		require.Contains(t, text, "Molar")
		v.quiet()
	})

	t.Run("AQuestionHasButtons", func(t *testing.T) {
		v := visit(t, b, d)
		v.send("ask me which colour I like: red, green or blue")
		v.Wait(`document.querySelectorAll(".choice").length === 3`)
		v.Screenshot("question")
		v.Click(".choice:nth-of-type(2), .choices > :nth-child(2) .choice")
		v.WaitText("You answered: green")
		v.Wait(`!document.querySelector(".choice")`)
		v.Screenshot("answered")
		v.quiet()
	})

	t.Run("ReloadAndSeveralChats", func(t *testing.T) {
		v := visit(t, b, d)
		v.say("echo apples")
		v.Reload()
		v.Wait(`document.querySelector("#messages").innerText.includes("echo apples")`)
		v.Click("#new-chat")
		v.Wait(`!document.querySelector("#empty").hidden`)
		v.say("echo pears")
		require.False(t, browsertest.Eval[bool](v.Page, `document.querySelector("#messages").innerText.includes("apples")`), "P5")
		v.Wait(`[...document.querySelectorAll("#chats a")].some((a) => a.textContent.includes("echo apples"))`)
		v.Screenshot("chats")
		v.quiet()
	})
}
