package workspace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/sessions"
	"herald/tools/sandbox"
	"herald/tools/sandbox/docker"
	"herald/tools/sandbox/local"
	"herald/tools/sandbox/mounts"
)

// elsewhere is this machine playing another environment: with its own files, and mounts where it has some.
type elsewhere struct {
	*local.Environment
	backend string
	mounts  mounts.Table
}

func (e *elsewhere) Backend() string      { return e.backend }
func (e *elsewhere) Mounts() mounts.Table { return e.mounts }

// delivery is a courier with real files.
type delivery struct {
	*Courier
	t    *testing.T
	base string
	env  *elsewhere
	opts docker.Options
	log  bytes.Buffer
	now  time.Time
}

func newDelivery(t *testing.T, backend string, change func(*docker.Options)) *delivery {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	here, err := local.New(local.Options{Dir: base, Home: base})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, here.Close()) })
	d := &delivery{t: t, base: base, env: &elsewhere{Environment: here, backend: backend}, now: time.Now(),
		opts: docker.Options{Dir: filepath.Join(base, "sandboxes"), Request: docker.Request{Persistent: true}}}
	if change != nil {
		change(&d.opts)
	}
	d.Courier = NewCourier(CourierOptions{
		Place:   func(sessions.Key) (sandbox.Environment, error) { return d.env, nil },
		Layouts: func(of sessions.Key) []mounts.Table { return docker.Layouts(d.opts, string(of), false) },
		Denied:  func(host string) bool { return strings.Contains(host, "denied") },
		Allowed: func(host string) bool { return strings.HasPrefix(host, filepath.Join(base, "cache")) },
		Dir:     filepath.Join(base, "cache", "media", "out"), MaxFile: 1000, MaxTotal: 2500, Now: func() time.Time { return d.now },
		Log: zerolog.New(&d.log)})
	return d
}

// made puts a file into the place of a key.
func (d *delivery) made(key, name string) {
	d.t.Helper()
	file := filepath.Join(d.opts.Dir, "docker", docker.KeyDir(key), name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(d.t, os.WriteFile(file, []byte(key+" "+name), 0o644))
}

func (d *delivery) read(of, name string) string {
	d.t.Helper()
	host, err := d.Resolve(d.t.Context(), sessions.Key(of), name)
	require.NoError(d.t, err, name)
	require.Equal(d.t, filepath.Base(name), filepath.Base(host))
	require.True(d.t, strings.HasPrefix(host, d.o.Dir+"/"), host)
	info, err := os.Lstat(host)
	require.NoError(d.t, err)
	require.Equal(d.t, os.FileMode(0o600), info.Mode())
	data, err := os.ReadFile(host)
	require.NoError(d.t, err)
	return string(data)
}

// The layouts are tried in their order, each file by itself: what an earlier key made is found too.
func TestCourier_LayoutsInOrder(t *testing.T) {
	all := []string{"shared:team/x", "profile:work", "session:agent:main:slack:D1"}
	d := newDelivery(t, "docker", func(o *docker.Options) { o.Request.Shared, o.Request.Profile = "team/x", "work" })
	for i, key := range all {
		d.made(key, fmt.Sprintf("workspace/only-%d.txt", i))
		d.made(key, "home/everywhere.txt")
		for j := range i + 1 {
			d.made(key, fmt.Sprintf("workspace/from-%d.txt", j))
		}
	}
	d.made("default", "workspace/of-the-default-profile.txt")
	d.made("session:agent:main:slack:D2", "workspace/of-another-chat.txt")
	const me = "agent:main:slack:D1"
	for i, key := range all {
		require.Equal(t, fmt.Sprintf("%s workspace/only-%d.txt", key, i), d.read(me, fmt.Sprintf("/workspace/only-%d.txt", i)))
		require.Equal(t, fmt.Sprintf("%s workspace/from-%d.txt", key, i), d.read(me, fmt.Sprintf("/workspace/from-%d.txt", i)))
	}
	require.Equal(t, "shared:team/x home/everywhere.txt", d.read(me, "/root/everywhere.txt"))
	require.NoError(t, os.RemoveAll(filepath.Join(d.opts.Dir, "docker", docker.KeyDir("shared:team/x"))))
	require.Equal(t, "profile:work home/everywhere.txt", d.read(me, "/root/everywhere.txt"), "only directories that are there count")
	for _, name := range []string{"/workspace/of-the-default-profile.txt", "/workspace/of-another-chat.txt"} {
		_, err := d.Resolve(t.Context(), me, name)
		require.ErrorIs(t, err, errNotFound, name)
	}
	_, err := d.Resolve(t.Context(), "", "/workspace/only-2.txt")
	require.ErrorIs(t, err, errNotFound, "the conversation is told by its key, and by nothing else")

	d.opts.Request.Profile, d.opts.Request.Shared = "", ""
	require.Equal(t, "default workspace/of-the-default-profile.txt", d.read(me, "/workspace/of-the-default-profile.txt"))
	d.opts.Request.Persistent = false
	_, err = d.Resolve(t.Context(), me, "/workspace/of-the-default-profile.txt")
	require.ErrorIs(t, err, errNotFound, "nothing persists")
}

// Keys that look alike after sanitising have files of their own.
func TestCourier_KeysThatLookAlike(t *testing.T) {
	d := newDelivery(t, "docker", func(o *docker.Options) { o.Request.Shared = "team/workspace" })
	d.made("shared:team_workspace", "workspace/theirs.txt")
	d.made("shared:team/workspace", "workspace/ours.txt")
	require.Equal(t, "shared:team/workspace workspace/ours.txt", d.read("k", "/workspace/ours.txt"))
	_, err := d.Resolve(t.Context(), "k", "/workspace/theirs.txt")
	require.ErrorIs(t, err, errNotFound)
}

// Credentials stay where they are in every layout and through every link, and so does what this machine protects.
func TestCourier_CredentialsStay(t *testing.T) {
	for _, key := range []string{"shared:k", "profile:work", "session:s"} {
		t.Run(key, func(t *testing.T) {
			d := newDelivery(t, "docker", func(o *docker.Options) { o.Request.Shared, o.Request.Profile = "k", "work" })
			d.made(key, "home/.herald/secrets.env")
			d.made(key, "home/.herald-work/config.yaml")
			d.made(key, "home/.ssh/id_rsa")
			d.made(key, "home/app/.env")
			d.made(key, "workspace/.env")
			d.made(key, "workspace/denied/report.txt")
			place := filepath.Join(d.opts.Dir, "docker", docker.KeyDir(key))
			require.NoError(t, os.Symlink("/root/.ssh/id_rsa", place+"/workspace/report.txt"))
			require.NoError(t, os.Symlink(".herald", place+"/home/innocent"))
			for _, name := range []string{"/root/.herald/secrets.env", "/root/.herald-work/config.yaml", "/root/.ssh/id_rsa", "/root/app/.env", "/workspace/.env",
				"/workspace/report.txt", "/root/innocent/secrets.env", "/workspace/../root/.ssh/id_rsa", "/workspace/denied/report.txt"} {
				_, err := d.Resolve(t.Context(), "s", name)
				require.EqualError(t, err, "this file is protected", name)
			}
			left, _ := d.copies()
			require.Empty(t, left)
		})
	}
}

// A link of the container never leads to a file of this machine.
func TestCourier_LinksStayInTheContainer(t *testing.T) {
	d := newDelivery(t, "docker", nil)
	d.made("default", "home/real.txt")
	place := filepath.Join(d.opts.Dir, "docker", "default")
	secret := filepath.Join(d.base, "secret.txt")
	require.NoError(t, os.WriteFile(secret, []byte("the host's"), 0o644))
	require.NoError(t, os.MkdirAll(place+"/workspace", 0o755))
	require.NoError(t, os.Symlink("/root/real.txt", place+"/workspace/link.txt"))
	require.NoError(t, os.Symlink(secret, place+"/workspace/host.txt"))
	require.NoError(t, os.Symlink("../../../../secret.txt", place+"/workspace/up.txt"))
	require.NoError(t, os.Symlink(d.base, place+"/workspace/dir"))
	require.Equal(t, "default home/real.txt", d.read("k", "/workspace/link.txt"))
	d.env.backend = "auto" // nothing is fetched through the place, which is this machine in truth
	for _, name := range []string{"/workspace/host.txt", "/workspace/up.txt", "/workspace/dir/secret.txt", secret, "/workspace/../../secret.txt"} {
		_, err := d.Resolve(t.Context(), "k", name)
		require.ErrorIs(t, err, errNotFound, name)
	}
}

// Where there is no mount the file comes through the place itself: over ssh, and from a container that keeps nothing.
func TestCourier_FetchesThroughThePlace(t *testing.T) {
	for _, backend := range []string{"ssh", "docker"} {
		t.Run(backend, func(t *testing.T) {
			d := newDelivery(t, backend, func(o *docker.Options) { o.Request.Persistent = false })
			file := func(name string, size int) string {
				full := filepath.Join(d.base, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
				require.NoError(t, os.WriteFile(full, bytes.Repeat([]byte("x"), size), 0o644))
				return full
			}
			require.Len(t, d.read("k", file("a report.pdf", 1000)), 1000)
			link := filepath.Join(d.base, "link.pdf")
			require.NoError(t, os.Symlink("a report.pdf", link))
			require.Len(t, d.read("k", link), 1000)
			for name, want := range map[string]string{
				file("big.bin", 1001):  "it has more than 1000 bytes",
				file(".ssh/id_rsa", 1): "this file is protected",
				file("x/.env", 1):      "this file is protected",
				"/etc/hostname":        "this file is protected",
				d.base:                 "it is not a regular file",
				d.base + "/missing":    "there is no such file",
				"relative.txt":         "the path is not absolute",
			} {
				_, err := d.Resolve(t.Context(), "k", name)
				require.EqualError(t, err, want, name)
			}
			all, total := d.copies()
			require.Len(t, all, 2)
			require.Equal(t, int64(2000), total, "what failed leaves nothing")

			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := d.Resolve(ctx, "k", link)
			require.Error(t, err)
		})
	}
}

// On this machine nothing is changed, and files of Herald's own cache leave from wherever the agent works.
func TestCourier_LocalAndCache(t *testing.T) {
	d := newDelivery(t, "local", nil)
	d.made("default", "workspace/x.txt")
	for _, name := range []string{"/workspace/x.txt", "/any/where", "relative"} {
		got, err := d.Resolve(t.Context(), "k", name)
		require.NoError(t, err)
		require.Equal(t, name, got)
	}
	d.env.backend = "auto"
	require.Equal(t, "default workspace/x.txt", d.read("k", "/workspace/x.txt"), "an earlier process used a container")
	cached := filepath.Join(d.base, "cache", "picture.png")
	got, err := d.Resolve(t.Context(), "k", cached)
	require.NoError(t, err)
	require.Equal(t, cached, got)
}

// What can't be found is logged once, with the reason of each layout.
func TestCourier_LogsOnce(t *testing.T) {
	d := newDelivery(t, "auto", nil)
	d.made("default", "workspace/x.txt")
	for range 3 {
		_, err := d.Resolve(t.Context(), "k", "/workspace/gone.txt")
		require.ErrorIs(t, err, errNotFound)
	}
	_, err := d.Resolve(t.Context(), "k", "/opt/gone.txt")
	require.ErrorIs(t, err, errNotFound)
	require.Equal(t, 1, strings.Count(d.log.String(), "/workspace/gone.txt\",\"because"), d.log.String())
	require.Contains(t, d.log.String(), "no such file")
	require.Contains(t, d.log.String(), "no name on this machine")
}

// The copies are bounded: the oldest go, but none that may still wait to be sent.
func TestCourier_CopiesAreBounded(t *testing.T) {
	d := newDelivery(t, "docker", nil)
	d.made("default", "workspace/x.txt")
	put := func(age time.Duration, size int) string {
		host, err := d.keep(bytes.NewReader(make([]byte, size)), "/workspace/x.txt")
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(host, d.now.Add(-age), d.now.Add(-age)))
		return host
	}
	weeks, days, day, new := put(8*24*time.Hour, 10), put(3*24*time.Hour, 900), put(25*time.Hour, 900), put(0, 900)
	fresh := put(time.Minute, 900)
	last := put(0, 1)
	require.NoFileExists(t, weeks, "a week is enough")
	require.NoFileExists(t, days, "the oldest makes room")
	for _, file := range []string{new, fresh, last} {
		require.FileExists(t, file)
	}
	_ = day
	_, total := d.copies()
	require.LessOrEqual(t, total, int64(3*900+1))
	info, err := os.Stat(d.o.Dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
