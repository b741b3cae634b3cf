package jobs_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs"
	"herald/tools/needtest"
)

// scripts is a folder of scripts in a home of its own.
func scripts(t *testing.T, change func(*jobs.ScriptOptions)) (*jobs.Scripts, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), jobs.ScriptsDir)
	require.NoError(t, os.Mkdir(dir, 0o700))
	o := jobs.ScriptOptions{Dir: dir, Timeout: func() time.Duration { return time.Minute },
		Environ: func() []string { return []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + t.TempDir()} }}
	if change != nil {
		change(&o)
	}
	s := jobs.NewScripts(o)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, dir
}

func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestScripts_Run(t *testing.T) {
	s, dir := scripts(t, nil)
	put(t, dir, "a.sh", "echo one; echo trouble >&2; echo \"two in $PWD\"\n")
	put(t, dir, "sub/b c'd.bash", "#!/usr/bin/python3\n[[ a == a ]] && echo bash\n")
	put(t, dir, "fail.sh", "echo half\necho why >&2\nexit 3\n")
	real, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	require.Equal(t, cron.ScriptRun{Name: "a.sh", Stdout: "one\ntwo in " + real}, s.Run(t.Context(), "a.sh", ""), "what it says on stderr is no output")
	require.Equal(t, cron.ScriptRun{Name: "sub/b c'd.bash", Stdout: "bash"}, s.Run(t.Context(), "sub/b c'd.bash", ""), "the extension decides, not the first line")
	require.Equal(t, cron.ScriptRun{Name: "fail.sh", Stdout: "half", Err: "script fail.sh: exit code 3\nwhy"}, s.Run(t.Context(), "fail.sh", ""))
	abs := filepath.Join(dir, "a.sh")
	other := t.TempDir()
	run := s.Run(t.Context(), abs, other)
	require.Empty(t, run.Err)
	require.Contains(t, run.Stdout, "two in "+other, "it runs in the job's directory")
	require.Contains(t, s.Run(t.Context(), "a.sh", filepath.Join(other, "gone")).Err, "script a.sh: directory")
}

func TestScripts_Run_Python(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		needtest.Lacking(t, "python3 is not installed")
	}
	s, dir := scripts(t, nil)
	put(t, dir, "x", "#!/bin/bash\nprint('python', 1+1)\n")
	require.Equal(t, cron.ScriptRun{Name: "x", Stdout: "python 2"}, s.Run(t.Context(), "x", ""))
}

func TestScripts_Confined(t *testing.T) {
	s, dir := scripts(t, nil)
	outside := put(t, t.TempDir(), "evil.sh", "echo evil\n")
	put(t, filepath.Dir(dir), "beside.sh", "echo evil\n")
	put(t, filepath.Dir(dir), "scripts-more/x.sh", "echo evil\n")
	inside := put(t, dir, "good.sh", "echo good\n")
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link.sh")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "folder")))
	require.NoError(t, os.Symlink(inside, filepath.Join(dir, "alias.sh")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "dangling.sh")))
	require.NoError(t, os.Symlink("loop.sh", filepath.Join(dir, "loop.sh")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.sh"), 0o600))
	put(t, dir, "large.sh", strings.Repeat("#", 1<<20+1))
	put(t, dir, "restart.sh", "systemctl restart herald\n")
	for name, want := range map[string]string{
		outside:                    "leads out of",
		"../beside.sh":             "leads out of",
		"../scripts-more/x.sh":     "leads out of",
		"link.sh":                  "leads out of",
		"folder/evil.sh":           "leads out of",
		"~/../../../../etc/passwd": "leads out of",
		"~somebody/x.sh":           "is not known",
		"~":                        "is not known",
		"a\x00.sh":                 "NUL",
		"":                         "no name",
		"missing.sh":               "it is not in",
		"dangling.sh":              "it is not in",
		"loop.sh":                  "can't be found",
		".":                        "it is no file",
		"folder/..":                "it is no file",
		"pipe.sh":                  "it is no file",
		"large.sh":                 "at most",
		"restart.sh":               "restarts Herald",
	} {
		require.ErrorContains(t, s.Check(name), want, "%q", name)
		run := s.Run(t.Context(), name, "")
		require.Contains(t, run.Err, want, "%q", name)
		require.True(t, strings.HasPrefix(run.Err, "script "), run.Err)
		require.Empty(t, run.Stdout)
	}
	require.NoError(t, s.Check("alias.sh"))
	require.Equal(t, "good", s.Run(t.Context(), "alias.sh", "").Stdout)
	gone, _ := scripts(t, func(o *jobs.ScriptOptions) { o.Dir = filepath.Join(t.TempDir(), "none") })
	require.ErrorContains(t, gone.Check("a.sh"), "there is no folder")
}

func TestScripts_Environment(t *testing.T) {
	s, dir := scripts(t, func(o *jobs.ScriptOptions) {
		environ := o.Environ
		o.Environ = func() []string {
			return append(environ(), "OPENAI_API_KEY=k1", "HERALD_X=k2", "SLACK_BOT_TOKEN=k3", "MY_SETTING=k4", "PLAIN=yes", "GITHUB_TOKEN=k5", "DATABASE=postgres://u:k6@h/x")
		}
		o.Deny, o.Passthrough = []string{"MY_SETTING"}, []string{"GITHUB_TOKEN", "OPENAI_API_KEY"}
	})
	put(t, dir, "env.sh", "env\n")
	out := s.Run(t.Context(), "env.sh", "").Stdout
	require.Contains(t, out, "PLAIN=yes")
	require.Contains(t, out, "GITHUB_TOKEN=k5", "the operator lets it through")
	for _, secret := range []string{"k1", "k2", "k3", "k4", "k6"} {
		require.NotContains(t, out, "="+secret)
	}
	require.NotContains(t, out, "k6@")
}

func TestScripts_Redact(t *testing.T) {
	s, dir := scripts(t, func(o *jobs.ScriptOptions) {
		o.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	})
	put(t, dir, "leak.sh", "echo hunter2; echo hunter2 >&2; exit 1\n")
	require.Equal(t, cron.ScriptRun{Name: "leak.sh", Stdout: "***", Err: "script leak.sh: exit code 1\n***"}, s.Run(t.Context(), "leak.sh", ""))
}

func TestScripts_OutputIsBounded(t *testing.T) {
	s, dir := scripts(t, nil)
	put(t, dir, "big.sh", "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last\nhead -c 3000000 /dev/zero | tr '\\0' '\\n' >&2; echo the end >&2; exit 2\n")
	run := s.Run(t.Context(), "big.sh", "")
	require.Less(t, len(run.Stdout), 200<<10)
	require.True(t, strings.HasPrefix(run.Stdout, "first\n") && strings.HasSuffix(run.Stdout, "\nlast"))
	require.Equal(t, "script big.sh: exit code 2\nthe end", run.Err)
}

// TestScripts_TimeoutEndsTheWholeTree: also of a child in a session of its own, which holds the pipes.
func TestScripts_TimeoutEndsTheWholeTree(t *testing.T) {
	limit := time.Minute
	s, dir := scripts(t, func(o *jobs.ScriptOptions) { o.Timeout = func() time.Duration { return limit } })
	put(t, dir, "warm.sh", "true\n")
	require.Empty(t, s.Run(t.Context(), "warm.sh", "").Err)
	pids := filepath.Join(dir, "pids")
	put(t, dir, "hang.sh", "echo before\nsetsid bash -c 'echo $$ >>pids; exec sleep 600' &\n(trap '' TERM; echo $BASHPID >>pids; while :; do sleep 1; done) &\n"+
		"while [ \"$(wc -l <pids 2>/dev/null || echo 0)\" -lt 2 ]; do sleep 0.02; done\ntouch ready\nsleep 600\n")
	for limit = 2 * time.Second; limit < time.Minute; limit *= 2 { // a machine under load takes longer to get everybody up
		_ = os.Remove(pids)
		run := s.Run(t.Context(), "hang.sh", "")
		require.Equal(t, "script hang.sh: it ran longer than "+limit.String()+" and was ended", run.Err)
		require.Equal(t, cron.CauseScriptTime, cron.CauseOf(run.Err))
		if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
			require.Contains(t, run.Stdout, "before")
			break
		}
	}
	require.FileExists(t, filepath.Join(dir, "ready"))
	everyoneGone(t, pids)
}

func TestScripts_StopEndsTheWholeTree(t *testing.T) {
	s, dir := scripts(t, nil)
	pids := filepath.Join(dir, "pids")
	put(t, dir, "hang.sh", "setsid bash -c 'echo $$ >>pids; touch ready; exec sleep 600' &\nsleep 600\n")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
				break
			}
		}
		cancel()
	}()
	require.Equal(t, "script hang.sh: it was ended because Herald stops", s.Run(ctx, "hang.sh", "").Err)
	everyoneGone(t, pids)
}

func everyoneGone(t *testing.T, pids string) {
	t.Helper()
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	require.NotEmpty(t, strings.Fields(string(text)))
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			stat, err := os.ReadFile("/proc/" + word + "/stat")
			return err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
		}, 20*time.Second, 20*time.Millisecond, "process %d is still there", pid)
	}
}
