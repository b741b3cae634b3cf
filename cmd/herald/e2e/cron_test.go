package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/slacktest"
	"herald/platforms/web/browsertest"
)

// briefs is how many briefs of jobs the page shows.
const briefs = `[...document.querySelectorAll("#messages .msg.agent:not(.light)")].filter((m) => m.innerText.includes("Scheduled job")).length`

// A newcomer asks for a job in plain words: it comes, a reply to it is understood, and "stop it" ends it (P4, P9).
func TestCron_InTheBrowser(t *testing.T) {
	b := browsertest.Start(t)
	d := newPlace(t).run()
	v := visit(t, b, d)
	text := v.say("every minute tell me the time")
	v.Screenshot("job-made")
	id := regexp.MustCompile(`[0-9a-f]{12}`).FindString(text + d.good("cron", "list"))
	require.NotEmpty(t, id, text)

	v.WaitFor(2*time.Minute, briefs+" >= 1") // it comes by itself, within the minute
	v.Screenshot("brief")
	brief := browsertest.Eval[string](v.Page, `[...document.querySelectorAll("#messages .msg.agent:not(.light)")].find((m) => m.innerText.includes("Scheduled job")).innerText`)
	told := regexp.MustCompile(`It is \d\d:\d\d:\d\d on .+\.`).FindString(brief)
	require.NotEmpty(t, told, brief)

	answer := v.say("what did the brief say?")
	v.Screenshot("brief-answered")
	require.Regexp(t, `It is \d\d:\d\d:\d\d on `, answer, "the reply is answered with the brief in context")

	text = v.say("stop it")
	v.Screenshot("job-stopped")
	require.NotContains(t, d.good("cron", "list"), id, text)
	n := browsertest.Eval[int](v.Page, briefs)
	require.Contains(t, v.say("echo done"), "done")
	require.Equal(t, n, browsertest.Eval[int](v.Page, briefs))
	v.quiet()
}

// The field's report, with the real binary: a file provides a job that no chat has made; its brief comes to a home DM, and
// whoever replies there, flat or in its thread, talks to an agent that has read it (P4, P5, P6).
func TestCron_AManagedBriefIsAnswered(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if strings.Contains(r.System, "scheduled job (cron)") {
			return modeltest.Text("Three mails wait for you.")
		}
		lines := strings.Split(r.LastUser(), "\n")
		return modeltest.Text("You said: " + lines[len(lines)-1])
	})
	llm := modeltest.Serve(script)
	t.Cleanup(llm.Close)
	o := newSlackOfficeWith(t, func(o *slackOffice, p *place) {
		p.env = append(p.env, "SLACK_HOME_CHANNEL="+o.dm, "OPENAI_API_KEY=sk-e2e-tests-0123456789", "OPENAI_BASE_URL="+llm.OpenAI(), "HERALD_MODEL=e2e-model")
		dir := filepath.Join(p.home, "cron.d")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte("jobs:\n  morning:\n    schedule: every day at 9am\n    prompt: Look at the mail.\n    deliver: origin\n"), 0o600))
	})
	o.fake.Write(slacktest.Post{Channel: o.general, Mention: true, Text: "a secret of the channel"})
	o.until("the channel is answered", func() bool { return len(o.asked(script, "a secret of the channel")) > 0 })
	o.until("the file is taken over", func() bool { return strings.Contains(o.good("cron", "list"), "morning") })
	o.good("cron", "run", "morning")
	brief := o.sees(o.dm, "", "Three mails wait for you.")

	knows := func(reply string) {
		o.until(reply+" reaches the model", func() bool { return len(o.asked(script, reply)) > 0 })
		told := 0
		for _, m := range o.asked(script, reply)[0].Messages {
			if n := strings.Count(m.Text, "Three mails wait for you."); n > 0 {
				require.Equal(t, "user", m.Role)
				told += n
			}
			require.NotContains(t, m.Text, "secret of the channel")
		}
		require.Equal(t, 1, told, "the brief is in the input once")
	}
	o.fake.Write(slacktest.Post{Channel: o.dm, Text: "who wrote the first one?"})
	knows("who wrote the first one?")
	o.fake.Write(slacktest.Post{Channel: o.dm, Thread: brief.TS, Text: "and the second one?"})
	knows("and the second one?")
	o.sees(o.dm, brief.TS, "You said: and the second one?")
	require.Contains(t, o.good("cron", "history", "morning"), "ran")
	require.Empty(t, o.fake.Violations())
}

// asked are the requests of people whose newest words hold part.
func (o *slackOffice) asked(script *modeltest.Script, part string) (found []modeltest.Request) {
	for _, r := range script.Requests() {
		if strings.Contains(r.LastUser(), part) {
			found = append(found, r)
		}
	}
	return found
}
