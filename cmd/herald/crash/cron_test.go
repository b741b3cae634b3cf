//go:build failpoint

package crash

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/config"
	"herald/gateway/jobs"
	"herald/gateway/jobs/brief"
	"herald/gateway/model/modeltest"
	"herald/sessions"
	"herald/sessions/sqlite"
)

// briefAnswer leaves an effect and gives the brief, in a scheduled run; people are answered with what they said.
func briefAnswer(r modeltest.Request) modeltest.Reply {
	if !strings.Contains(r.System, "scheduled job (cron)") {
		said := ""
		for line := range strings.SplitSeq(r.LastUser(), "\n") {
			// A brief may stand before what was said, or behind it: it enters the conversation with its receipt.
			if line != "" && line != theBrief && !strings.HasPrefix(line, "[Cron delivery: ") {
				said = line
			}
		}
		return modeltest.Text("You said " + said)
	}
	if _, done := r.ToolResult(); !done {
		return modeltest.Calls("c1", "terminal", `{"command":"echo ran >> effects"}`)
	}
	return modeltest.Text(theBrief)
}

const theBrief = "Here is the brief."

// plant puts a job into the stopped daemon's store, whose one slot is due.
func (b *solo) plant(task cron.Task) cron.JobID {
	b.t.Helper()
	store := b.open()
	defer func() { require.NoError(b.t, store.Close()) }()
	now := time.Now()
	schedule, err := cron.Parse("every 1000d", now, time.UTC)
	require.NoError(b.t, err)
	data, err := json.Marshal(task)
	require.NoError(b.t, err)
	job, err := cron.NewJob("Crash", cron.FromCLI, cron.Plan{Schedule: schedule, Task: data}, now, time.UTC)
	require.NoError(b.t, err)
	job.Next = now.Add(-10 * time.Second).UTC().Truncate(time.Second)
	row, err := job.Row()
	require.NoError(b.t, err)
	require.NoError(b.t, store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error { return tx.PutJob(row) }))
	return job.ID
}

func (b *solo) open() *sqlite.Store {
	b.t.Helper()
	store, err := sqlite.Open(context.Background(), sqlite.Options{Path: config.PathsFor(b.home).DB})
	require.NoError(b.t, err)
	return store
}

// known has a conversation with the person, so that the bot may write to them, and stops.
func (b *solo) known() {
	b.start("")
	b.tg.Say(7, "hello")
	b.until("it answers", func() bool { return b.shown("You said hello") == 1 })
	b.stop()
}

// after stops the daemon and returns the runs of a job and the mirrored rows of the person's conversation.
func (b *solo) after(id cron.JobID) (runs []sessions.Run, mirrored []sessions.Message) {
	b.t.Helper()
	b.stop()
	store := b.open()
	defer func() { require.NoError(b.t, store.Close()) }()
	report, err := store.Check(context.Background())
	require.NoError(b.t, err)
	require.True(b.t, report.OK(), "P11: %v", report.Problems())
	require.NoError(b.t, store.View(context.Background(), func(v sessions.View) error {
		if runs, err = v.Runs(sessions.RunQuery{Job: id}); err != nil {
			return err
		}
		list, err := v.Sessions(sessions.SessionQuery{Platform: "telegram"})
		for _, s := range list {
			rows, err := v.Transcript(s.ID, true, 0, 0)
			if err != nil {
				return err
			}
			for _, row := range rows {
				if row.Kind == sessions.KindMirror {
					mirrored = append(mirrored, row)
				}
			}
		}
		return err
	}))
	return runs, mirrored
}

// P4, P9: whichever commit of claim, run and delivery the daemon dies at, the slot has one end, its work is done once, and
// the brief is seen once or said to be in doubt.
func TestCron_OneEndAtEveryEdge(t *testing.T) {
	edges := []string{"accept", "turn.begin", "turn.answer", "tool.start", "tool.finish", "turn.finish", "send.begin", "send.receipt", edgeCall}
	for _, edge := range edges {
		for _, side := range sides {
			point := edge + ":" + side
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				b := newSolo(t, briefAnswer)
				b.known()
				attach := true
				id := b.plant(cron.Task{Prompt: "Go.", Deliver: "telegram:7", Attach: &attach})
				b.start(point)
				b.until("it has died", func() bool { return !b.proc.alive() })
				require.True(t, b.proc.killed(), "it ended otherwise")
				b.start("")
				b.until("the brief is there, or in doubt", func() bool { return b.shown(theBrief)+b.shown(doubt) >= 1 })
				b.tg.Say(7, "and now?")
				b.until("it goes on", func() bool { return b.shown("You said and now?") >= 1 })
				runs, mirrored := b.after(id)

				require.Len(t, runs, 1, "one slot, one run")
				require.Equal(t, sessions.RunRan, runs[0].State, runs[0].Reason)
				result := brief.ReadResult(runs[0])
				require.Len(t, result.Deliveries, 1)
				effects, err := os.ReadFile(filepath.Join(b.home, "workspace", "effects"))
				if edge != "tool.start" || side != "after" {
					require.NoError(t, err)
				}
				require.LessOrEqual(t, strings.Count(string(effects), "ran"), 1, "what may have had an effect is not done twice")
				require.LessOrEqual(t, b.shown(theBrief), 1, "P4: at most one visible copy")
				if sent := result.Deliveries[0].State == sessions.OutSent; sent {
					require.Equal(t, 1, b.shown(theBrief))
					require.Zero(t, b.shown(doubt))
					require.Len(t, mirrored, 1, "a brief that has arrived is part of the conversation, once")
				} else {
					require.Equal(t, sessions.OutUnknown, result.Deliveries[0].State)
					require.Contains(t, []string{"send.begin:after", "send.call:before", "send.call:after", "send.receipt:before"}, point)
					require.Empty(t, mirrored, "what nobody confirmed is part of no conversation")
				}
			})
		}
	}
}

// P9: a script that a kill cuts off is not run again; its run ends as failed, and that is told.
func TestCron_AScriptThatIsCutOff(t *testing.T) {
	t.Parallel()
	b := newSolo(t, briefAnswer)
	b.known()
	scripts := filepath.Join(b.home, jobs.ScriptsDir)
	require.NoError(t, os.MkdirAll(scripts, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(scripts, "a.sh"), []byte("echo ran >> ../effects\nwhile [ ! -f ../go ]; do sleep 0.05; done\n"), 0o600))
	t.Cleanup(func() { _ = os.WriteFile(filepath.Join(b.home, "go"), nil, 0o600) })
	id := b.plant(cron.Task{Script: "a.sh", NoAgent: true, Deliver: "telegram:7"})
	b.start("")
	effects := func() int {
		data, _ := os.ReadFile(filepath.Join(b.home, "effects"))
		return strings.Count(string(data), "ran")
	}
	b.until("the script runs", func() bool { return effects() == 1 })
	b.proc.signal(syscall.SIGKILL)
	b.until("it is dead", func() bool { return !b.proc.alive() })
	b.start("")
	b.until("the failure is told", func() bool { return b.shown("Crash has failed") == 1 })
	runs, _ := b.after(id)
	require.Len(t, runs, 1)
	require.Equal(t, sessions.RunFailed, runs[0].State)
	require.Equal(t, cron.CutOff, runs[0].Reason)
	require.Equal(t, 1, effects())
	require.Equal(t, 1, b.shown("Crash has failed"))
}
