package e2e_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var jobShape = regexp.MustCompile(`[0-9a-f]{12}`)

// narrow requires that a list can be read in 80 columns.
func narrow(t *testing.T, out string) string {
	t.Helper()
	for _, line := range strings.Split(out, "\n") {
		require.LessOrEqual(t, len([]rune(line)), 80, line)
	}
	return out
}

// Jobs are made, changed and seen without a daemon; what needs one says so.
func TestCronVerbs_WithoutADaemon(t *testing.T) {
	p := newPlace(t)
	require.Contains(t, p.good("cron", "list"), "no jobs; make one: herald cron add")
	out := p.good("cron", "add", "every weekday at 9", "send me the news", "--name", "News\x1b[2J", "--deliver", "telegram", "--repeat", "5", "--skill", "", "--attach-to-session=false")
	require.Contains(t, out, "on weekdays at 9:00; 5 times, 0 done; to telegram")
	require.Equal(t, 3, strings.Count(out, "\n  next "))
	require.NotContains(t, out, "\x1b")
	out = p.good("cron", "create", "in 2h remind me of "+strings.Repeat("the tea and ", 20), "--paused", "--paused-reason", "not yet")
	require.Contains(t, out, "paused: not yet")
	id := jobShape.FindString(out)

	list := narrow(t, p.good("cron", "list"))
	require.Contains(t, list, "ID            STATE      NEXT (")
	require.Contains(t, list, "in ")
	require.Contains(t, list, "not yet")
	var reply struct {
		Jobs []struct {
			ID   string `json:"id"`
			Task struct {
				Attach *bool `json:"attach_to_session"`
			} `json:"task"`
			State string `json:"state"`
		} `json:"jobs"`
	}
	read := func() {
		reply.Jobs = nil
		require.NoError(t, json.Unmarshal([]byte(p.good("cron", "list", "--json")), &reply))
	}
	read()
	require.Len(t, reply.Jobs, 2)
	for _, j := range reply.Jobs {
		if j.ID == id {
			require.Nil(t, j.Task.Attach, "not given, the key is left off")
			require.Equal(t, "paused", j.State)
		} else {
			require.Equal(t, false, *j.Task.Attach)
		}
	}

	require.Contains(t, p.good("cron", "resume", id), "resumed: "+id)
	require.Contains(t, p.good("cron", "edit", id, "--schedule", "every day at 8", "--prompt", "tea", "--name", "Tea", "--attach-to-session"), "every day at 8:00; forever")
	require.Contains(t, p.good("cron", "pause", "tea", "on", "holiday"), "paused: on holiday")
	for want, args := range map[string][]string{
		`there is no job "ghost"`:         {"pause", "ghost"},
		"none of the forms":               {"add", "now and then"},
		"nothing to do":                   {"add", "1h"},
		"nothing is to be changed":        {"edit", "tea"},
		"no daemon is running here":       {"run", "tea"},
		"start it with: herald run":       {"tick"},
		`skill "nope"`:                    {"edit", "tea", "--add-skill", "nope"},
		"write a number of runs":          {"edit", "tea", "--repeat", "often"},
		"none of the others can be":       {"edit", "tea", "--continuity", "--no-continuity"},
		"there is no such incident":       {"incidents", "ack", "0123abcd"},
		"no daemon is running, so no job": {"doctor"},
		"paused_reason":                   {"edit", "tea", "--paused-reason", "x"},
		"--limit 0: want":                 {"history", "--limit", "0"},
		"it is given without pausing":     {"add", "1h", "x", "--paused-reason", "y"},
	} {
		r := p.herald(append([]string{"cron"}, args...)...)
		require.Equal(t, 1, r.code, args)
		require.Contains(t, r.err+r.out, want, args)
	}
	require.Contains(t, narrow(t, p.good("cron", "status")), "no daemon is running, so no job runs")
	require.Contains(t, p.good("cron", "history"), "nothing has run yet")
	require.Contains(t, p.good("cron", "incidents"), "no incidents")
	require.Equal(t, "removed: "+id+" Tea\n", p.good("cron", "remove", "tea", "--yes"))
	read()
	require.Len(t, reply.Jobs, 1)
}

// In the browser chat: "every minute tell me the time" makes a job, and "stop it" ends it; the command line sees it.
func TestCronVerbs_WithAChat(t *testing.T) {
	p := newPlace(t)
	d := p.run("--set", "timezone=Europe/Berlin")
	d.say("kitchen-1", "message-1", "every minute tell me the time")
	made := d.await("kitchen-1", "is made: every minute. Next times (Europe/Berlin): ")
	id := jobShape.FindString(made.Text)
	require.Contains(t, narrow(t, p.good("cron", "list")), id)
	require.Contains(t, p.good("cron", "pause", id), "paused")
	d.say("kitchen-1", "message-2", "list my cron jobs")
	d.await("kitchen-1", "- tell me the time (`"+id+"`): every minute, paused")
	require.Contains(t, p.good("cron", "run", "tell me the time"), "started: "+id)
	d.until("the run has ended", func() bool { return strings.Contains(p.good("cron", "history", id), "  ran ") })
	out := narrow(t, p.good("cron", "history"))
	require.Contains(t, out, "tell me the time")
	require.Contains(t, p.good("cron", "status"), "scheduler  alive")
	require.Contains(t, p.good("cron", "tick"), "looked for")
	d.await("kitchen-1", "Scheduled job: tell me the time")
	before := len(d.history("kitchen-1"))
	d.say("kitchen-1", "message-2b", "echo nice")
	d.until("that is answered", func() bool { return len(d.history("kitchen-1")) > before+1 })
	d.say("kitchen-1", "message-3", "stop it")
	d.await("kitchen-1", "("+id+") is removed and will not run any more.")
	require.Contains(t, p.good("cron", "list"), "no jobs")

	d.say("kitchen-1", "message-4", "/cron add in 20 minutes tea")
	asked := d.await("kitchen-1", "Shall I do this once on ")
	require.Contains(t, asked.Text, "Next time (Europe/Berlin): ")
	require.Contains(t, p.good("cron", "list"), "no jobs", "before the confirmation there is none")
	d.say("kitchen-1", "message-5", "/cron add every weekday at 9 send me the news --yes")
	d.await("kitchen-1", "is made: on weekdays at 9:00.")
	d.say("kitchen-1", "message-6", "/cron")
	d.await("kitchen-1", "1 job:")
	require.Contains(t, p.good("cron", "list"), "send me the news")
}
