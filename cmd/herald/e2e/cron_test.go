package e2e_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
