package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/sessions"
	"herald/tools/needtest"
)

// Without the build tag sqlite_fts5 this is the test that says so.
func TestStore_Open_HasFullTextSearch(t *testing.T) {
	c, err := openConn("file:" + t.TempDir() + "/x.db")
	require.NoError(t, err)
	defer c.close()
	n, err := c.int("SELECT sqlite_compileoption_used('ENABLE_FTS5')")
	require.NoError(t, err)
	require.Equal(t, int64(1), n, "run the tests with -tags sqlite_fts5")
}

func TestStore_Open_FilesAndSettings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b%20#?", "home")
	path := filepath.Join(dir, "herald.db")
	s := openAt(t, path)
	openSession(t, s, "ada")
	for name, mode := range map[string]os.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, path + ".lock": 0o600} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
	for sql, want := range map[string]string{"PRAGMA journal_mode": "wal"} {
		got, err := s.writer.c.text(sql)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for sql, want := range map[string]int64{"PRAGMA synchronous": 2, "PRAGMA foreign_keys": 1, "PRAGMA user_version": schemaVersion} {
		got, err := s.writer.c.int(sql)
		require.NoError(t, err)
		require.Equal(t, want, got, sql)
	}
	require.Equal(t, path, s.Path())
}

func TestStore_Open_BadOptions(t *testing.T) {
	_, err := Open(t.Context(), Options{})
	require.ErrorContains(t, err, "Options.Path is empty")
	dir := t.TempDir()
	_, err = Open(t.Context(), Options{Path: dir})
	require.ErrorContains(t, err, dir)
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o600))
	_, err = Open(t.Context(), Options{Path: dir + "/file/herald.db"})
	require.ErrorContains(t, err, dir+"/file")
}

func TestMigrations_AreOrderedAndKnown(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	require.NoError(t, err)
	require.Len(t, files, schemaVersion)
	for i, f := range files {
		require.True(t, strings.HasPrefix(f.Name(), fmt.Sprintf("%04d_", i+1)), f.Name())
		raw, err := migrations.ReadFile("migrations/" + f.Name())
		require.NoError(t, err)
		require.Contains(t, string(raw), fmt.Sprintf("PRAGMA user_version = %d;", i+1), f.Name())
		require.NotContains(t, string(raw), "goose Down", "migrations only go forward")
	}
}

// A file of each earlier version opens, keeps its rows, and ends up with the same schema as a new one.
func TestStore_Open_MigratesForward(t *testing.T) {
	schema := func(s *Store) (out string) {
		require.NoError(t, s.writer.c.query(t.Context(), "SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'goose%' ORDER BY name", func(r row) error {
			out += r.text(0) + " " + r.text(1) + "\n"
			return nil
		}))
		return out
	}
	want := schema(openStore(t))
	for version := int64(1); version <= schemaVersion; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			path := t.TempDir() + "/herald.db"
			db, err := sql.Open("sqlite3", writerDSN(path))
			require.NoError(t, err)
			require.NoError(t, migrateTo(t.Context(), db, version))
			_, err = db.Exec(`INSERT INTO sessions (id, key, platform, account, chat, chat_type, user, user_alt, shared, origin, created, updated)
				VALUES ('s1', 'k', 'telegram', 'bot', 'c', 'dm', 'u', '', 0, '{}', 1, 1);
				INSERT INTO routes (key, session) VALUES ('k', 's1');
				INSERT INTO messages (id, session, pos, turn, role, kind, content, attachments, tool_calls, tool_call_id, tool_name, reasoning, replay, sender, platform_id, at, tokens)
				VALUES (1, 's1', 1, 0, 'user', '', 'words from before', '', '', '', '', '', '', '', '', 1, 0)`)
			require.NoError(t, err)
			require.NoError(t, db.Close())
			s := openAt(t, path)
			require.Equal(t, want, schema(s))
			viewing(t, s, func(v sessions.View) {
				hits, err := v.Search(sessions.SearchQuery{Text: "before", Scope: sessions.Scope{All: true}})
				require.NoError(t, err)
				require.Len(t, hits, 1)
			})
			report, err := s.Check(t.Context())
			require.NoError(t, err)
			require.Empty(t, report.Problems())
		})
	}
}

func TestStore_Open_NewerOrForeignFile(t *testing.T) {
	make := func(sqls string) string {
		path := t.TempDir() + "/herald.db"
		db, err := sql.Open("sqlite3", path)
		require.NoError(t, err)
		_, err = db.Exec(sqls)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		return path
	}
	_, err := Open(t.Context(), Options{Path: make("PRAGMA user_version = 99")})
	require.ErrorContains(t, err, fmt.Sprintf("schema version 99 and this program knows up to %d", schemaVersion))
	_, err = Open(t.Context(), Options{Path: make("CREATE TABLE songs (id)")})
	require.ErrorContains(t, err, "another program")
}

func TestStore_Open_OtherSearchVersionIsRebuilt(t *testing.T) {
	path := t.TempDir() + "/herald.db"
	s, err := Open(t.Context(), Options{Path: path})
	require.NoError(t, err)
	say(t, s, openSession(t, s, "ada").ID, "find me")
	require.NoError(t, s.catchUp(t.Context()))
	update(t, s, func(t sessions.Tx) error {
		return t.(*tx).c.script("DROP TABLE messages_fts; UPDATE meta SET value = 0 WHERE name = 'search_version'")
	})
	require.NoError(t, s.Close())
	viewing(t, openAt(t, path), func(v sessions.View) {
		hits, err := v.Search(sessions.SearchQuery{Text: "find", Scope: sessions.Scope{All: true}})
		require.NoError(t, err)
		require.Len(t, hits, 1)
	})
}

// A damaged file is kept and copied, and the message says what to do.
func TestStore_Open_Corrupt(t *testing.T) {
	filled := func(t *testing.T) string {
		path := t.TempDir() + "/herald.db"
		s, err := Open(t.Context(), Options{Path: path})
		require.NoError(t, err)
		id := openSession(t, s, "ada").ID
		for range 50 {
			say(t, s, id, strings.Repeat("text ", 200), "answer")
		}
		require.NoError(t, s.Close())
		return path
	}
	for _, c := range []struct {
		name    string
		unclean bool
		damage  func([]byte) []byte
	}{
		{"not a database", false, func([]byte) []byte { return bytes.Repeat([]byte("junk"), 5000) }},
		{"schema page overwritten", false, func(b []byte) []byte { copy(b[100:4096], bytes.Repeat([]byte{0xee}, 3996)); return b }},
		{"cut in half", true, func(b []byte) []byte { return b[:len(b)/2/4096*4096] }},
		{"pages overwritten after a crash", true, func(b []byte) []byte {
			for p := 4; p < len(b)/4096; p += 2 {
				copy(b[p*4096:], bytes.Repeat([]byte{0xee}, 4096))
			}
			return b
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filled(t)
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			raw = c.damage(raw)
			require.NoError(t, os.WriteFile(path, raw, 0o600))
			if c.unclean {
				require.NoError(t, os.WriteFile(path+"-wal", []byte("left behind"), 0o600))
			}
			_, err = Open(t.Context(), Options{Path: path})
			require.ErrorIs(t, err, sessions.ErrCorrupt)
			var ce *CorruptError
			require.ErrorAs(t, err, &ce)
			require.Equal(t, path, ce.Path)
			require.Regexp(t, `herald\.db\.corrupt-\d{8}T\d{6}Z$`, ce.Copy)
			require.ErrorContains(t, err, "herald doctor db")
			require.ErrorContains(t, err, ce.Copy)
			kept, err := os.ReadFile(path)
			require.NoError(t, err)
			copied, err := os.ReadFile(ce.Copy)
			require.NoError(t, err)
			require.Equal(t, len(raw), len(kept))
			require.Equal(t, kept, copied)

			_, err = Open(t.Context(), Options{Path: path, Clock: func() time.Time { return time.Now().Add(time.Hour) }})
			require.ErrorIs(t, err, sessions.ErrCorrupt)
			copies, err := filepath.Glob(path + ".corrupt-*Z")
			require.NoError(t, err)
			require.Len(t, copies, 1, "a restart makes no second copy of the same file")

			report, err := CheckFile(t.Context(), path)
			require.NoError(t, err)
			require.False(t, report.OK(), "the doctor sees it")
		})
	}
}

// A large file that was not closed is checked beside the work, and the damage is reported.
func TestStore_Open_CheckBesideTheWork(t *testing.T) {
	path := t.TempDir() + "/herald.db"
	s, err := Open(t.Context(), Options{Path: path})
	require.NoError(t, err)
	id := openSession(t, s, "ada").ID
	update(t, s, func(tx sessions.Tx) error {
		for range 9 {
			if err := tx.Append(&sessions.Message{Session: id, Role: sessions.Tool, Content: strings.Repeat("text ", 1<<20)}); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, s.Close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	require.Greater(t, fileSize(path), int64(maxQuickCheck))
	for page := int64(3000); page < 4000; page++ { // overflow pages of the text: their chain breaks
		_, err = f.WriteAt(bytes.Repeat([]byte{0xee}, 4096), page*4096)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	require.NoError(t, os.WriteFile(path+"-wal", []byte("left behind"), 0o600))
	var log lockedBuffer
	s = openAt(t, path, func(o *Options) { o.Log = zerolog.New(&log) })
	require.Eventually(t, func() bool { return s.Metrics().Damaged }, pollFor, pollEvery)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "herald doctor db") }, pollFor, pollEvery)
}

// fill writes until an error comes.
func fill(t *testing.T, s *Store, id sessions.ID) error {
	t.Helper()
	for range 10000 {
		err := s.Update(t.Context(), sessions.EdgeAccept, func(tx sessions.Tx) error {
			return tx.Append(&sessions.Message{Session: id, Role: sessions.User, Content: strings.Repeat("x", 20000)})
		})
		if err != nil {
			return err
		}
	}
	return errors.New("it never got full")
}

// fullDisk checks what a store does when there is no space, and after there is again.
func fullDisk(t *testing.T, s *Store, makeRoom func()) {
	id := openSession(t, s, "ada").ID
	err := fill(t, s, id)
	require.ErrorIs(t, err, sessions.ErrFull)
	count := func() (n int64) {
		viewing(t, s, func(v sessions.View) {
			c, err := v.Counts()
			require.NoError(t, err)
			n = c.Messages
			rows, err := v.(*view).c.int("SELECT count(*) FROM messages")
			require.NoError(t, err)
			require.Equal(t, rows, n, "nothing is half kept")
		})
		return n
	}
	before := count()
	for range 3 {
		require.ErrorIs(t, fill(t, s, id), sessions.ErrFull, "it stays usable and says the same again")
	}
	before = max(before, count())
	makeRoom()
	say(t, s, id, "there is room again")
	require.Equal(t, before+1, count(), "it recovers by itself")
	viewing(t, s, func(v sessions.View) {
		hits, err := v.Search(sessions.SearchQuery{Text: "room", Scope: sessions.Scope{All: true}})
		require.NoError(t, err)
		require.Len(t, hits, 1)
	})
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Problems())
}

func TestStore_Update_FullDatabase(t *testing.T) {
	s := openStore(t, func(o *Options) { o.MaxBytes = 1 << 20 })
	fullDisk(t, s, func() {
		require.NoError(t, s.alone(t.Context(), func(c *conn) error { _, err := c.int("PRAGMA max_page_count = 100000"); return err }))
	})
}

// The same with a real file system that is full. It needs the right to mount one.
func TestStore_Update_FullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		needtest.Lacking(t, "no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	ballast := dir + "/ballast"
	require.NoError(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600))
	s := openAt(t, dir+"/herald.db")
	fullDisk(t, s, func() { require.NoError(t, os.Remove(ballast)) })
}

// One whose statements fail for want of space does not take those of the same batch with it unnoticed:
// each is told the truth.
func TestStore_Update_FullInABatch(t *testing.T) {
	s := openStore(t, func(o *Options) { o.MaxBytes = 1 << 20 })
	id := openSession(t, s, "ada").ID
	release := gate(t, s)
	const n = 12
	errs := make(chan error, n)
	names := make(chan string, n)
	for i := range n {
		go func() {
			name := fmt.Sprint(i)
			err := s.Update(t.Context(), sessions.EdgeState, func(tx sessions.Tx) error {
				if i%3 == 0 {
					_ = tx.Append(&sessions.Message{Session: id, Content: strings.Repeat("x", 3<<20)}) // its error is swallowed
				}
				return tx.SetValue("v", name, []byte("1"), clock)
			})
			if err == nil {
				names <- name
			}
			errs <- err
		}()
	}
	waitQueue(t, s, n)
	_ = release() // it may have shared the transaction that was lost
	full := 0
	for range n {
		if err := <-errs; err != nil {
			require.ErrorIs(t, err, sessions.ErrFull)
			full++
		}
	}
	close(names)
	require.GreaterOrEqual(t, full, 4, "a swallowed ErrFull is not committed")
	kept := map[string]bool{}
	viewing(t, s, func(v sessions.View) {
		list, err := v.Values("v")
		require.NoError(t, err)
		for _, val := range list {
			kept[val.Name] = true
		}
	})
	require.Len(t, kept, n-full)
	for name := range names {
		require.True(t, kept[name])
	}
}

// Run as root, the rights of files mean nothing: the child gives them up.
func TestStore_Open_UnreadableHome(t *testing.T) {
	if os.Geteuid() != 0 {
		needtest.Lacking(t, "needs root, to become somebody else")
	}
	dir, err := os.MkdirTemp("/tmp", "herald-store-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	bin := dir + "/sqlite.test"
	require.NoError(t, copyFile(os.Args[0], bin))
	require.NoError(t, os.Chmod(bin, 0o755))
	require.NoError(t, os.Mkdir(dir+"/closed", 0o700))
	require.NoError(t, os.Mkdir(dir+"/readonly", 0o755))
	for _, home := range []string{"closed", "readonly", "readonly/new"} {
		path := dir + "/" + home + "/herald.db"
		cmd := exec.Command(bin)
		cmd.Dir = "/"
		cmd.Env = append(os.Environ(), childMode+"=hold", childPath+"="+path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), path)
		require.Contains(t, string(out), "permission denied")
		require.Contains(t, string(out), "uid 65534 needs read, write and search rights on "+filepath.Dir(path))
	}
}
