package e2e_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/signaltest"
	"herald/platforms/platformtest/slacktest"
	"herald/platforms/web/browsertest"
)

const dangerous = "run `echo ran >> ran; rm -rf victim`"

// ran counts how often the dangerous command has run.
func (p *place) ran() int {
	data, err := os.ReadFile(filepath.Join(p.home, "workspace", "ran"))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(p.t, err)
	return strings.Count(string(data), "\n")
}

// A newcomer with nothing configured is asked before a dangerous command, presses, and it runs once: also when the
// daemon is killed while the question waits.
func TestApprovals_InTheBrowser(t *testing.T) {
	b := browsertest.Start(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listen := "http.listen=" + free.Addr().String()
	require.NoError(t, free.Close())
	p := newPlace(t)
	d := p.run("--set", listen)
	v := visit(t, b, d)
	asked := func() {
		v.WaitText("May I run this command?")
		v.Wait(`[...document.querySelectorAll(".choice")].some((b) => b.innerText.trim() === "✅ Once")`)
	}
	v.send(dangerous)
	asked()
	v.Screenshot("approval")
	require.Zero(t, p.ran())
	v.choose("✅ Once")
	p.until("it has run", func() bool { return p.ran() == 1 })
	v.WaitText("Allowed once")
	done := func(times int) {
		v.Wait(fmt.Sprintf(`document.body.innerText.split("Exit code 0").length === %d && document.querySelector("#stop").hidden`, times+1))
	}
	done(1)
	require.False(t, browsertest.Eval[bool](v.Page, `[...document.querySelectorAll(".choice")].some((b) => b.innerText.trim() === "✅ Once")`), "the buttons are gone")
	v.quiet()

	v.send(dangerous)
	asked()
	d.kill()
	p.run("--set", listen)
	v.Wait(`!document.body.innerText.includes("Reconnecting…") && [...document.querySelectorAll(".choice")].filter((b) => b.innerText.trim() === "✅ Once").length === 1`)
	require.Contains(t, p.good("approvals", "list"), "rm -rf victim")
	// Twice at once, as an impatient person does.
	pressed := browsertest.Eval[bool](v.Page, `(() => { const b = [...document.querySelectorAll(".choice")].filter((b) => b.innerText.trim() === "✅ Once").at(-1); b?.click(); b?.click(); return !!b; })()`)
	require.True(t, pressed)
	p.until("it has run", func() bool { return p.ran() == 2 })
	done(2)
	require.Contains(t, v.say("what is 6 times 7?"), "42")
	require.Equal(t, 2, p.ran(), "two presses are one permission")
	require.NotContains(t, p.good("approvals", "list"), "waits since")
}

// In a channel only the person whose message started the work may press; neither a stranger nor another member may.
func TestApprovals_SlackOnlyWhoAskedMayPress(t *testing.T) {
	o := newSlackOffice(t)
	mal := o.fake.AddUser("", slacktest.User{RealName: "Mal Ory"})
	o.fake.Join("", o.general, mal.ID)
	root := o.fake.Write(slacktest.Post{Channel: o.general, User: o.pat.ID, Mention: true, Text: dangerous})
	asked := o.sees(o.general, root, "May I run this command?")
	require.NotEmpty(t, asked.Buttons)
	o.fake.Press(slacktest.Press{Channel: o.general, Message: asked.TS, User: mal.ID, Button: "✅ Once"})
	o.fake.Write(slacktest.Post{Channel: o.general, User: mal.ID, Thread: root, Text: "!approve"})
	o.until("all is acknowledged", func() bool { return o.fake.Pending() == 0 })
	o.fake.Say("", o.dm, "what is 6 times 8?")
	o.sees(o.dm, "", "= 48")
	require.Zero(t, o.ran())
	o.fake.Press(slacktest.Press{Channel: o.general, Message: asked.TS, User: o.pat.ID, Button: "✅ Once"})
	o.until("it has run", func() bool { return o.ran() == 1 })
	o.until("the buttons are gone", func() bool { m, _ := o.fake.Message("", o.general, asked.TS); return len(m.Buttons) == 0 })
	require.Contains(t, o.sees(o.general, root, "Allowed once").Text, "Pat Doe")
}

// Where there are no buttons the answer is typed.
func TestApprovals_SignalByTyping(t *testing.T) {
	h := newSignal(t)
	h.write("", dangerous)
	asked := h.sees(signalAnn, "May I run this command?")
	require.Contains(t, asked.Text, "/approve session")
	require.Contains(t, asked.Text, "/deny")
	h.fake.Write(signaltest.Post{From: signalBob, Text: "/approve"})
	h.write("", "yes")
	h.write("", "/approvals")
	h.sees(signalAnn, "1 command waits:")
	require.Zero(t, h.ran(), "neither a stranger nor a bare yes approves")
	h.write("", "/approve")
	h.sees(signalAnn, "Allowed, this once.")
	h.until("it has run", func() bool { return h.ran() == 1 })
	h.write("", "/approve")
	h.sees(signalAnn, "This was decided already.")
}

// What is allowed is seen and changed from the command line, and a running daemon follows.
func TestApprovals_OnTheCommandLine(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, os.MkdirAll(p.home, 0o700))
	file := filepath.Join(p.home, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("# mine\napprovals:\n  deny: ['git push*']\n"), 0o600))
	d := p.run()
	out := p.good("approvals", "list")
	for _, part := range []string{"mode: smart", "never: git push*", "recursive-delete"} {
		require.Contains(t, out, part)
	}
	require.Contains(t, p.good("approvals", "suggest"), "nothing to suggest")
	r := p.herald("approvals", "allow", "ls")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "no kind of danger")
	p.good("approvals", "allow", "recursive-delete", "git reset --hard")
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "# mine\napprovals:\n  deny: ['git push*']\ncommand_allowlist:\n  - recursive-delete\n  - git reset --hard\n", string(body))
	require.Contains(t, p.good("approvals", "list"), "always: git reset --hard")
	p.until("the daemon has read it", func() bool { return strings.Contains(d.log(), "command_allowlist") })
	d.say("chat1234", "message-a", dangerous)
	p.until("it runs unasked", func() bool { return p.ran() == 1 })
	p.good("approvals", "revoke", "git reset --hard")
	require.Equal(t, 1, p.herald("approvals", "revoke", "git reset --hard").code)
	for i := range 3 { // a kind that is not destructive, allowed three times
		id := fmt.Sprintf("message-b%d", i)
		d.say("chat1234", id, "run `python3 -c 'print(\""+id+"\")' || true`")
		d.await("chat1234", "May I run this command?")
		d.say("chat1234", "yes-"+id, "/approve")
		p.until("it is decided", func() bool { return !strings.Contains(p.good("approvals", "list"), "waits since") })
		p.until("it has run", func() bool {
			n := 0
			for _, m := range d.history("chat1234") {
				n += strings.Count(m.Text, "Allowed, this once.")
			}
			return n == i+1
		})
	}
	p.until("it is suggested", func() bool { return strings.Contains(p.good("approvals", "suggest"), "1. interpreter-code") })
	require.NotContains(t, p.good("approvals", "suggest"), "recursive-delete")
	require.Contains(t, p.good("approvals", "suggest", "--apply", "1"), "allowed from now on")
	require.Contains(t, p.good("approvals", "list"), "always: interpreter-code")
}
