package cron_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"herald/cron"
)

const jobID cron.JobID = "0123456789ab"

func output(at time.Time, status cron.OutputStatus, body string) cron.Output {
	return cron.Output{Job: jobID, Name: "Morning", Slot: at, Ended: at, Status: status, Body: body}
}

func writeOutput(t *testing.T, o cron.Outputs, out cron.Output) string {
	t.Helper()
	path, err := o.Write(out)
	require.NoError(t, err)
	return path
}

func outputFiles(t *testing.T, home string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(home, "cron", "output", string(jobID), "*"))
	require.NoError(t, err)
	for i := range list {
		list[i] = filepath.Base(list[i])
	}
	return list
}

func TestOutputs_Write(t *testing.T) {
	home := t.TempDir()
	o := cron.Outputs{Home: home, Keep: 50}
	zone := time.FixedZone("", 3600)
	out := output(time.Date(2026, 3, 2, 9, 0, 0, 0, zone), cron.OutputOK, "\nthe brief\n---\n- status: silent\n\n")
	out.Name, out.Ended, out.Sent, out.Why = "Morning\n- status: silent", out.Slot.Add(7*time.Second), []string{"slack/T1:D1", "web/web:main"}, "a\n---\nb"
	path := writeOutput(t, o, out)
	require.Equal(t, filepath.Join(home, "cron", "output", "0123456789ab", "2026-03-02_08-00-07.md"), path)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "# Morning - status: silent\n\n- job: 0123456789ab\n- slot: 2026-03-02T09:00:00+01:00\n- ended: 2026-03-02T08:00:07Z\n- status: ok\n"+
		"- why: a --- b\n- sent to: slack/T1:D1, web/web:main\n\n---\n\nthe brief\n---\n- status: silent\n", string(data))
	for p, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700, filepath.Join(home, "cron"): 0o700,
		filepath.Join(home, "cron", "output"): 0o700} {
		info, err := os.Stat(p)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), p)
	}
	text, ok, err := o.Newest(jobID)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "the brief\n---\n- status: silent", text, "only the header has a status")
}

func TestOutputs_Write_SameSecond(t *testing.T) {
	o := cron.Outputs{Home: t.TempDir()}
	var group sync.WaitGroup
	errs := make([]error, 30)
	for i := range errs {
		group.Go(func() { _, errs[i] = o.Write(output(morning, cron.OutputOK, "brief")) })
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	writeOutput(t, o, output(morning, cron.OutputOK, "the last"))
	files := outputFiles(t, o.Home)
	require.Len(t, files, 31, "each has a file of its own, and nothing is left half written")
	require.Contains(t, files, "2026-03-02_08-00-00.md")
	require.Contains(t, files, "2026-03-02_08-00-00_31.md")
	text, ok, err := o.Newest(jobID)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "the last", text)
	for range 68 {
		writeOutput(t, o, output(morning, cron.OutputOK, "brief"))
	}
	_, err = o.Write(output(morning, cron.OutputOK, "brief"))
	require.ErrorContains(t, err, "99 outputs")
}

func TestOutputs_Retention(t *testing.T) {
	o := cron.Outputs{Home: t.TempDir(), Keep: 3}
	for i := range 6 {
		writeOutput(t, o, output(morning.Add(time.Duration(i)*time.Hour), cron.OutputOK, "brief"))
	}
	require.Equal(t, []string{"2026-03-02_11-00-00.md", "2026-03-02_12-00-00.md", "2026-03-02_13-00-00.md"}, outputFiles(t, o.Home))
	dir := filepath.Join(o.Home, "cron", "output", string(jobID))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	old, fresh := filepath.Join(dir, ".old.md.tmp"), filepath.Join(dir, ".fresh.md.tmp")
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	require.NoError(t, os.WriteFile(fresh, nil, 0o600))
	require.NoError(t, os.Chtimes(old, time.Now().Add(-2*time.Hour), time.Now().Add(-2*time.Hour)))
	o.Keep = 0
	for i := range 4 {
		writeOutput(t, o, output(morning.Add(time.Duration(i)*time.Minute), cron.OutputOK, "brief"))
	}
	require.Len(t, outputFiles(t, o.Home), 9, "no bound keeps all, and what is no output stays")
	require.NoFileExists(t, old, "what a killed daemon left half written goes")
	require.FileExists(t, fresh, "what somebody may be writing stays")
}

// A job that mostly finds nothing goes on from what it said last.
func TestOutputs_Retention_KeepsTheNewestThatSaysSomething(t *testing.T) {
	o := cron.Outputs{Home: t.TempDir(), Keep: 2}
	for i, body := range []string{"old", "the last news", "", "", ""} {
		status := cron.OutputOK
		if body == "" {
			status = cron.OutputNoChange
		}
		writeOutput(t, o, output(morning.Add(time.Duration(i)*time.Hour), status, body))
	}
	require.Equal(t, []string{"2026-03-02_09-00-00.md", "2026-03-02_11-00-00.md", "2026-03-02_12-00-00.md"}, outputFiles(t, o.Home))
	text, ok, err := o.Newest(jobID)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "the last news", text)
}

func TestOutputs_Write_Guards(t *testing.T) {
	home := t.TempDir()
	for _, id := range []cron.JobID{"", ".", "..", "a/b", "../../x", `a\b`, "/etc", "a\x00b"} {
		out := output(morning, cron.OutputOK, "brief")
		out.Job = id
		_, err := cron.Outputs{Home: home}.Write(out)
		require.ErrorContains(t, err, "can't be the name of a file", "%q", id)
	}
	entries, err := os.ReadDir(home)
	require.NoError(t, err)
	require.Empty(t, entries)
	gone := filepath.Join(home, "gone")
	_, err = cron.Outputs{Home: gone}.Write(output(morning, cron.OutputOK, "brief"))
	require.Error(t, err, "a home that was deleted is not made again")
	require.NoDirExists(t, gone)
}

func TestOutputs_Newest(t *testing.T) {
	o := cron.Outputs{Home: t.TempDir()}
	newest := func(want string) {
		t.Helper()
		text, ok, err := o.Newest(jobID)
		require.NoError(t, err)
		require.Equal(t, want != "", ok)
		require.Equal(t, want, text)
	}
	newest("")
	at := morning
	put := func(status cron.OutputStatus, body string) string {
		at = at.Add(time.Hour)
		return writeOutput(t, o, output(at, status, body))
	}
	put(cron.OutputOK, "first")
	newest("first")
	put(cron.OutputSilent, "[SILENT]")
	put(cron.OutputNoChange, "nothing changed")
	put(cron.OutputOK, " \n ")
	newest("first")
	put(cron.OutputFailed, "it broke")
	newest("it broke")
	put(cron.OutputOK, strings.Repeat("ä", cron.MaxContext))
	newest(strings.Repeat("ä", cron.MaxContext))
	put(cron.OutputOK, strings.Repeat("😀", 40_000))
	newest(strings.Repeat("😀", cron.MaxContext) + "\n[... the rest of this output is left out]")
	path := put(cron.OutputOK, "newest")
	newest("newest")
	require.NoError(t, os.WriteFile(path, nil, 0o600)) // reserved, and then the daemon was killed
	newest(strings.Repeat("😀", cron.MaxContext) + "\n[... the rest of this output is left out]")
	require.NoError(t, os.WriteFile(path, []byte("# x\n\n- status: ok\n\n---\n\nbr\xffief\n"), 0o600))
	newest("brief")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 100_000)), 0o600))
	text, _, err := o.Newest(jobID)
	require.NoError(t, err)
	require.Equal(t, cron.MaxContext, utf8.RuneCountInString(strings.TrimSuffix(text, "\n[... the rest of this output is left out]")), "a file without a header is passed over")
}

func TestOutputs_Newest_OnlyOfJobs(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "cron", "secret")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.md"), []byte("# x\n\n---\n\nsecret\n"), 0o600))
	for _, id := range []cron.JobID{"../secret", "", "..", "0123456789AB", "0123456789a", "0123456789abc", "self"} {
		text, ok, err := cron.Outputs{Home: home}.Newest(id)
		require.ErrorIs(t, err, cron.ErrBadJob, "%q", id)
		require.False(t, ok)
		require.Empty(t, text)
	}
}
