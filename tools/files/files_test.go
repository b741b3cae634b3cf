package files

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/tools"
	"herald/tools/sandbox"
	"herald/tools/sandbox/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a family over a real directory: work is where relative paths start, home is the profile's.
type bench struct {
	t                *testing.T
	fam              *Family
	env              *local.Environment
	work, user, root string
	session          string
	unattended       bool
}

func newBench(t *testing.T, change func(*Deps)) *bench {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	b := &bench{t: t, work: filepath.Join(base, "work"), user: filepath.Join(base, "user"), root: filepath.Join(base, "user", ".herald"), session: "s1"}
	for _, d := range []string{b.work, filepath.Join(b.root, "profiles", "work", "memories"), filepath.Join(b.root, "profiles", "other", "memories")} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	b.env, err = local.New(local.Options{Dir: b.work, Home: b.user, Environ: func() []string { return []string{"PATH=" + os.Getenv("PATH")} }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.env.Close()) })
	d := Deps{
		Environment: func(tools.Caller) (sandbox.Environment, error) { return b.env, nil },
		Home:        filepath.Join(b.root, "profiles", "work"), Root: b.root,
	}
	if change != nil {
		change(&d)
	}
	b.fam = New(d)
	return b
}

// answer is the union of what the tools return, as far as tests look at it.
type answer struct {
	Error           string          `json:"error"`
	Content         string          `json:"content"`
	Path            string          `json:"path"`
	Lines           int             `json:"lines"`
	TotalLines      *int            `json:"total_lines"`
	Truncated       bool            `json:"truncated"`
	NextOffset      int             `json:"next_offset"`
	Format          string          `json:"format"`
	Hint            string          `json:"_hint"`
	Status          string          `json:"status"`
	Dedup           bool            `json:"dedup"`
	ContentReturned *bool           `json:"content_returned"`
	BytesWritten    int             `json:"bytes_written"`
	Created         bool            `json:"created"`
	FilesModified   []string        `json:"files_modified"`
	FilesCreated    []string        `json:"files_created"`
	FilesDeleted    []string        `json:"files_deleted"`
	Warning         string          `json:"_warning"`
	Warnings        []string        `json:"_warnings"`
	Diff            string          `json:"diff"`
	Strategy        string          `json:"strategy"`
	Replacements    int             `json:"replacements"`
	Lint            json.RawMessage `json:"lint"`
	Matches         []hit           `json:"matches"`
	Files           []string        `json:"files"`
	Counts          []count         `json:"counts"`
	Omitted         int             `json:"_omitted"`
	TooLarge        int             `json:"_too_large"`
}

type obj map[string]any

func (b *bench) tool(name string) tools.Tool {
	for _, t := range b.fam.Tools() {
		if t.Name == name {
			return t
		}
	}
	b.t.Fatalf("no tool %s", name)
	return tools.Tool{}
}

func (b *bench) newCall(name string, args obj) tools.Call {
	raw, err := json.Marshal(args)
	require.NoError(b.t, err)
	return tools.Call{ID: "c", Name: name, Args: raw, Caller: tools.Caller{Session: b.session, Dir: b.work, Unattended: b.unattended}}
}

func (b *bench) try(name string, args obj) answer {
	b.t.Helper()
	r, err := b.tool(name).Run(b.t.Context(), b.newCall(name, args))
	require.NoError(b.t, err)
	var a answer
	require.NoError(b.t, json.Unmarshal([]byte(r.Content), &a), r.Content)
	require.Equal(b.t, r.IsError, a.Error != "", r.Content)
	return a
}

func (b *bench) do(name string, args obj) answer {
	b.t.Helper()
	a := b.try(name, args)
	require.Empty(b.t, a.Error)
	return a
}

func (b *bench) refuse(want, name string, args obj) {
	b.t.Helper()
	a := b.try(name, args)
	require.Contains(b.t, a.Error, want)
}

func (b *bench) put(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.work, name)
	require.NoError(b.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(b.t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func (b *bench) get(name string) string {
	b.t.Helper()
	c, err := os.ReadFile(filepath.Join(b.work, name))
	require.NoError(b.t, err)
	return string(c)
}

// older moves a file's time so that a later write is seen whatever the clock's grain.
func older(t *testing.T, path string) {
	t.Helper()
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, past, past))
}

func TestReadFile_Window(t *testing.T) {
	b := newBench(t, nil)
	b.put("a.txt", "one\ntwo\r\nthree\nfour")
	a := b.do("read_file", obj{"path": "a.txt"})
	require.Equal(t, "1|one\n2|two\n3|three\n4|four", a.Content)
	require.Equal(t, 4, *a.TotalLines)
	require.False(t, a.Truncated)

	a = b.do("read_file", obj{"path": "a.txt", "offset": 2, "limit": 2})
	require.Equal(t, "2|two\n3|three", a.Content)
	require.True(t, a.Truncated)
	require.Equal(t, 4, a.NextOffset)
	require.Empty(t, a.Hint)

	b.refuse("a.txt has 4 lines", "read_file", obj{"path": "a.txt", "offset": 9})
	b.refuse("offset: 0 is not allowed", "read_file", obj{"path": "a.txt", "offset": 0})
	b.refuse("limit: 2001 is not allowed; give 1 to 2000", "read_file", obj{"path": "a.txt", "limit": 2001})

	b.put("empty", "")
	a = b.do("read_file", obj{"path": "empty"})
	require.Empty(t, a.Content)
	require.Zero(t, *a.TotalLines)
	b.put("long.txt", strings.Repeat("x\n", 900))
	require.NotEmpty(t, b.do("read_file", obj{"path": "long.txt"}).Hint)
}

func TestReadFile_Paths(t *testing.T) {
	b := newBench(t, nil)
	b.put("sub/a.txt", "x")
	require.NoError(t, os.WriteFile(filepath.Join(b.user, "h.txt"), []byte("home"), 0o644))
	require.Equal(t, "1|home", b.do("read_file", obj{"path": "~/h.txt"}).Content)
	require.Equal(t, "1|x", b.do("read_file", obj{"path": "sub/../sub/a.txt"}).Content)
	require.Equal(t, "unchanged", b.do("read_file", obj{"path": "../user/h.txt"}).Status, "another name of the same file")
	_, err := b.env.Exec(t.Context(), sandbox.Command{Line: "cd sub", Session: b.session, Start: b.work})
	require.NoError(t, err)
	b.fam.Forget(b.session)
	require.Equal(t, "1|x", b.do("read_file", obj{"path": "a.txt"}).Content, "relative paths follow the session's directory")
	b.refuse("path is empty", "read_file", obj{"path": " "})
	b.refuse("NUL", "read_file", obj{"path": "a\x00b"})
	b.refuse("is a directory", "read_file", obj{"path": "."})
}

func TestReadFile_MissingSuggestsNames(t *testing.T) {
	b := newBench(t, nil)
	b.put("src/config.yaml", "")
	b.put("src/readme.md", "")
	b.refuse("similar names there: src/config.yaml", "read_file", obj{"path": "src/config.yml"})
	b.refuse("similar names there: src/readme.md", "read_file", obj{"path": "src/README.md"})
	a := b.try("read_file", obj{"path": "nowhere/x"})
	require.Contains(t, a.Error, "nowhere/x does not exist")
}

func TestReadFile_SizeGuard(t *testing.T) {
	b := newBench(t, nil)
	b.put("wide.txt", strings.Repeat(strings.Repeat("y", 1500)+"\n", 100))
	a := b.try("read_file", obj{"path": "wide.txt"})
	require.Contains(t, a.Error, "100 lines, 150100 bytes")
	require.Contains(t, a.Error, "at most 100000 characters")
	b.do("read_file", obj{"path": "wide.txt", "limit": 20})
	b.put("one.js", strings.Repeat("z", 5_000_000))
	a = b.do("read_file", obj{"path": "one.js"})
	require.Less(t, len(a.Content), 2100)
	require.Contains(t, a.Content, "[line cut, 5000000 bytes in all]")
}

func TestReadFile_NotText(t *testing.T) {
	b := newBench(t, nil)
	b.put("x.png", "png")
	b.put("x.zip", "zip")
	b.put("data", "a\x00b")
	b.refuse("vision_analyze", "read_file", obj{"path": "x.png"})
	b.refuse("binary file (.zip)", "read_file", obj{"path": "x.zip"})
	b.refuse("is a binary file (3 bytes)", "read_file", obj{"path": "data"})
	b.put("latin1.txt", "caf\xe9")
	require.Equal(t, "1|caf\ufffd", b.do("read_file", obj{"path": "latin1.txt"}).Content)
	for _, p := range []string{"/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/1/mem", "/dev/../dev/random", "/proc/self/fd/0"} {
		b.refuse("can't be read", "read_file", obj{"path": p})
	}
	fifo := filepath.Join(b.work, "fifo")
	_, err := b.env.Exec(t.Context(), sandbox.Command{Line: "mkfifo " + fifo})
	require.NoError(t, err)
	b.refuse("not a regular file", "read_file", obj{"path": "fifo"})
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(b.work, "zeros")))
	b.refuse("can't be read", "read_file", obj{"path": "zeros"})
	require.NoError(t, os.Symlink("loop", filepath.Join(b.work, "loop")))
	require.NotEmpty(t, b.try("read_file", obj{"path": "loop"}).Error)
}

func TestReadFile_UnchangedThenBlocked(t *testing.T) {
	b := newBench(t, nil)
	path := b.put("a.txt", "one\n")
	args := obj{"path": "a.txt"}
	b.do("read_file", args)
	a := b.do("read_file", args)
	require.Equal(t, "unchanged", a.Status)
	require.True(t, a.Dedup)
	require.False(t, *a.ContentReturned)
	require.Empty(t, a.Content)
	b.refuse("BLOCKED", "read_file", args)
	require.Equal(t, "1|one", b.do("read_file", obj{"path": "a.txt", "limit": 7}).Content, "another window is another question")

	b.fam.Observe(tools.Event{Phase: tools.PhaseStarted, Call: b.newCall("terminal", nil)})
	require.Equal(t, "unchanged", b.do("read_file", args).Status, "another tool ends the run")

	older(t, path)
	require.Equal(t, "1|one", b.do("read_file", args).Content, "a changed file is shown")
	b.fam.Forget(b.session)
	require.Equal(t, "1|one", b.do("read_file", args).Content, "after a compaction it is shown again")
	b.session = "s2"
	require.Equal(t, "1|one", b.do("read_file", args).Content, "P6: another session has seen nothing")
	b.do("write_file", obj{"path": "a.txt", "content": "one\n"})
	require.Equal(t, "1|one", b.do("read_file", args).Content, "own writes void what was shown")
}

func TestWriteFile(t *testing.T) {
	b := newBench(t, nil)
	a := b.do("write_file", obj{"path": "new/deep/a.txt", "content": "hello"})
	require.True(t, a.Created)
	require.Equal(t, 5, a.BytesWritten)
	require.Equal(t, []string{filepath.Join(b.work, "new/deep/a.txt")}, a.FilesModified)
	require.Equal(t, "hello", b.get("new/deep/a.txt"))
	b.refuse("content is missing, so nothing was written", "write_file", obj{"path": "x"})
	b.refuse("path is missing", "write_file", obj{"content": "x"})
	b.refuse("is a directory", "write_file", obj{"path": "new", "content": "x"})
	b.refuse("not a directory", "write_file", obj{"path": "new/deep/a.txt/b", "content": "x"})
	b.do("write_file", obj{"path": "empty", "content": ""})
	require.Empty(t, b.get("empty"))
}

func TestWriteFile_KeepsModeAndLinks(t *testing.T) {
	b := newBench(t, nil)
	path := b.put("run.sh", "old")
	require.NoError(t, os.Chmod(path, 0o751))
	require.NoError(t, os.Symlink("run.sh", filepath.Join(b.work, "link")))
	b.do("write_file", obj{"path": "link", "content": "new"})
	st, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o751), st.Mode())
	require.Equal(t, "new", b.get("run.sh"))
	st, err = os.Lstat(filepath.Join(b.work, "link"))
	require.NoError(t, err)
	require.NotZero(t, st.Mode()&os.ModeSymlink)
	left, err := filepath.Glob(filepath.Join(b.work, ".herald-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestWriteFile_StaleWarning(t *testing.T) {
	b := newBench(t, nil)
	path := b.put("a.txt", "one")
	require.Empty(t, b.do("write_file", obj{"path": "a.txt", "content": "unread"}).Warning)
	b.do("read_file", obj{"path": "a.txt"})
	require.Empty(t, b.do("write_file", obj{"path": "a.txt", "content": "two"}).Warning)
	require.Empty(t, b.do("write_file", obj{"path": "a.txt", "content": "three"}).Warning, "the own write is known")
	require.NoError(t, os.WriteFile(path, []byte("someone else"), 0o644))
	older(t, path)
	require.Contains(t, b.do("write_file", obj{"path": "a.txt", "content": "four"}).Warning, "had changed since you last read it")
}

func TestDenied(t *testing.T) {
	b := newBench(t, nil)
	own := filepath.Join(b.root, "profiles", "work")
	for _, p := range []string{
		"~/.ssh/authorized_keys", "~/.ssh/id_rsa", "~/.ssh/new/key", "~/.ssh/config", "~/.aws/credentials", "~/.gnupg/x", "~/.kube/config", "~/.docker/config.json",
		"~/.azure/x", "~/.config/gh/hosts.yml", "~/.config/gcloud/x", "~/.netrc", "~/.pgpass", "~/.npmrc", "~/.pypirc", "~/.git-credentials",
		"/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/sudoers.d/x", "/etc/systemd/system/x.service", "../user/.ssh/x", "/etc/../etc/passwd",
		own + "/.env", b.root + "/.env", own + "/herald.db", own + "/herald.db-wal", own + "/sessions/x", own + "/mcp-tokens/x", own + "/pairing/x", own + "/.anthropic_oauth.json",
		b.root + "/herald.db", b.root + "/pairing/x", b.root + "/profiles/other/herald.db", b.root + "/profiles/other/memories/x.md", b.root + "/memories/x.md", b.root + "/skills/x",
		"/dev/null", "/proc/self/mem",
	} {
		b.refuse("", "write_file", obj{"path": p, "content": "x"})
		require.NotEmpty(t, b.try("write_file", obj{"path": p, "content": "x"}).Error, p)
		require.NotEmpty(t, b.try("patch", obj{"mode": "patch", "patch": "*** Begin Patch\n*** Add File: " + p + "\n+x\n*** End Patch"}).Error, p)
	}
	for _, p := range []string{own + "/memories/x.md", b.root + "/profiles/work/skills/x", "~/.sshx", "~/.config/ghost", "~/notes.txt", ".env", ".env.example"} {
		b.do("write_file", obj{"path": p, "content": "x"})
	}
	_, err := os.Stat("/etc/passwd")
	require.NoError(t, err)

	for _, p := range []string{".env", ".env.local", ".env.production", ".env.development.local", ".envrc", own + "/.env", own + "/auth.json", own + "/auth/google_oauth.json",
		own + "/mcp-tokens/x.docx", own + "/skills/.hub/x", own + "/webhook_subscriptions.json", own + "/herald.db", b.root + "/profiles/other/memories/x.md", own + "/cache/bws_cache.json"} {
		full := p
		if !filepath.IsAbs(p) {
			full = filepath.Join(b.work, p)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte("SECRET"), 0o600))
		b.refuse("is denied", "read_file", obj{"path": p})
		b.refuse("is denied", "search_files", obj{"path": p, "pattern": "SECRET"})
	}
	b.do("read_file", obj{"path": ".env.example"})
}

// A link to something denied is as denied as the thing.
func TestDenied_ThroughLinks(t *testing.T) {
	b := newBench(t, nil)
	require.NoError(t, os.MkdirAll(filepath.Join(b.user, ".ssh"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(b.user, ".ssh"), filepath.Join(b.work, "keys")))
	require.NoError(t, os.Symlink(filepath.Join(b.user, ".netrc"), filepath.Join(b.work, "dangling")))
	require.NoError(t, os.Symlink("dangling", filepath.Join(b.work, "twice")))
	for _, p := range []string{"keys/id_rsa", "keys/../keys/x", "dangling", "twice"} {
		b.refuse("is denied", "write_file", obj{"path": p, "content": "x"})
	}
	require.NoFileExists(t, filepath.Join(b.user, ".netrc"))

	b.put(".env", "SECRET=1")
	require.NoError(t, os.Symlink(".env", filepath.Join(b.work, "plain.txt")))
	b.refuse("is denied", "read_file", obj{"path": "plain.txt"})
	b.refuse("is denied", "patch", obj{"mode": "replace", "path": "plain.txt", "old_string": "SECRET", "new_string": "x"})

	// The protected directory may itself be a link: both its names are protected.
	elsewhere := filepath.Join(filepath.Dir(b.user), "vault")
	require.NoError(t, os.Mkdir(elsewhere, 0o700))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(b.user, ".aws")))
	b.refuse("is denied", "write_file", obj{"path": elsewhere + "/credentials", "content": "x"})
}

func TestDenied_SafeRoots(t *testing.T) {
	roots, err := SplitSafeRoots("/a::/b/../c")
	require.NoError(t, err)
	require.Equal(t, []string{"/a", "/c"}, roots)
	_, err = SplitSafeRoots("rel")
	require.ErrorContains(t, err, `HERALD_WRITE_SAFE_ROOT: "rel" is not an absolute path`)

	var safe string
	b := newBench(t, func(d *Deps) { safe = t.TempDir(); d.SafeRoots = []string{safe} })
	b.refuse("HERALD_WRITE_SAFE_ROOT", "write_file", obj{"path": "a.txt", "content": "x"})
	b.do("write_file", obj{"path": safe + "/a.txt", "content": "x"})
	require.NoError(t, os.Symlink(b.work, filepath.Join(safe, "out")))
	b.refuse("HERALD_WRITE_SAFE_ROOT", "write_file", obj{"path": safe + "/out/a.txt", "content": "x"})
	b.refuse("HERALD_WRITE_SAFE_ROOT", "write_file", obj{"path": safe + "/../a.txt", "content": "x"})
}

func TestDenied_SSHConfigIsAsked(t *testing.T) {
	asked := 0
	b := newBench(t, func(d *Deps) {
		d.Approve = func(context.Context, tools.Call, string, string) (bool, error) { asked++; return asked > 1, nil }
	})
	b.refuse("SSH configuration", "write_file", obj{"path": "~/.ssh/config", "content": "x"})
	b.do("write_file", obj{"path": "~/.ssh/config", "content": "x"})
	b.unattended = true
	b.refuse("SSH configuration", "write_file", obj{"path": "~/.ssh/config", "content": "x"})
	require.Equal(t, 2, asked)
}

func TestDenied_CrossProfileIsTheOperatorsChoice(t *testing.T) {
	args := func(b *bench) obj {
		return obj{"path": b.root + "/profiles/other/memories/x.md", "content": "x", "cross_profile": true}
	}
	b := newBench(t, nil)
	b.refuse("belongs to another profile", "write_file", args(b))
	b = newBench(t, func(d *Deps) { d.CrossProfile = true })
	b.do("write_file", args(b))
}

func TestLint_NewErrorsOnly(t *testing.T) {
	b := newBench(t, nil)
	for name, tc := range map[string]struct{ good, bad, want string }{
		"a.json": {`{"a":1}`, "{\n\"a\":}", "line 2"},
		"a.yaml": {"a: 1\nb: 2\n", "a: [1\n", "yaml"},
		"a.toml": {"a = 1\n", "a = \n", "line 1"},
		"a.go":   {"package a\n", "package a\nfunc {\n", "line 2"},
		"a.py":   {"x = 1\n", "x = (\n", "never closed"},
	} {
		if name == "a.py" {
			if r, err := b.env.Exec(t.Context(), sandbox.Command{Line: "python3 --version"}); err != nil || r.ExitCode != 0 {
				continue
			}
		}
		require.Nil(t, b.do("write_file", obj{"path": name, "content": tc.good}).Lint, name)
		require.Contains(t, string(b.do("write_file", obj{"path": name, "content": tc.bad}).Lint), tc.want, name)
		require.Nil(t, b.do("write_file", obj{"path": name, "content": tc.bad}).Lint, "%s: the error was there before", name)
	}
}

// The schemas pass the registry, and the calls pass the bus.
func TestTools_ThroughTheBus(t *testing.T) {
	b := newBench(t, nil)
	reg := tools.NewRegistry(tools.RegistryOptions{})
	for _, tool := range b.fam.Tools() {
		require.NoError(t, reg.Register(tool))
	}
	bus := tools.NewBus(tools.Options{Registry: reg})
	dispatch := func(name string, args obj) tools.Result { return bus.Dispatch(t.Context(), b.newCall(name, args)) }
	require.Equal(t, tools.ExitOK, dispatch("write_file", obj{"path": "a.txt", "content": "one"}).Exit)
	require.Equal(t, tools.ExitOK, dispatch("patch", obj{"mode": "replace", "path": "a.txt", "old_string": "one", "new_string": "two", "replace_all": "false"}).Exit)
	require.Contains(t, dispatch("read_file", obj{"path": "a.txt", "limit": "5"}).Content, "1|two")
	require.Contains(t, dispatch("search_files", obj{"pattern": "tw."}).Content, `"line":1`)
	require.Contains(t, dispatch("write_file", obj{"path": "a.txt"}).Content, "content")
}

func TestPaths_ForThePlanner(t *testing.T) {
	b := newBench(t, nil)
	require.NoError(t, os.Mkdir(filepath.Join(b.work, "d"), 0o755))
	require.NoError(t, os.Symlink("d", filepath.Join(b.work, "l")))
	in := func(p string) string { return filepath.Join(b.work, p) }
	for _, tc := range []struct {
		tool  string
		args  obj
		paths []string
		write bool
	}{
		{"read_file", obj{"path": "a"}, []string{in("a")}, false},
		{"write_file", obj{"path": "l/a", "content": ""}, []string{in("d/a")}, true},
		{"search_files", obj{"pattern": "x"}, []string{b.work}, false},
		{"patch", obj{"mode": "replace", "path": "~/x"}, []string{filepath.Join(b.user, "x")}, true},
		{"patch", obj{"mode": "patch", "patch": "***Update File: a\n*** Add File: b\n***Delete File: c\n*** Move File: d/x -> e\n*** Update File: f\n*** Move to: g"},
			[]string{in("a"), in("b"), in("c"), in("d/x"), in("e"), in("f"), in("g")}, true},
	} {
		paths, write, ok := b.tool(tc.tool).Paths(b.newCall(tc.tool, tc.args))
		require.True(t, ok)
		require.Equal(t, tc.paths, paths)
		require.Equal(t, tc.write, write)
	}
	for _, args := range []obj{{"mode": "patch", "patch": "no header"}, {"mode": "replace"}} {
		_, _, ok := b.tool("patch").Paths(b.newCall("patch", args))
		require.False(t, ok, "no scope is a barrier")
	}
}
