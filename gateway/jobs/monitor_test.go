package jobs_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs"
	"herald/platforms/fetch"
)

// watched is a server with a page, and a watcher that may reach it.
type watched struct {
	*jobs.Watcher
	url      string
	page     atomic.Pointer[http.HandlerFunc]
	requests atomic.Int32
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		(*w.page.Load())(rw, r)
	}))
	t.Cleanup(server.Close)
	fetching := func() fetch.Options { return fetch.Options{Allow: []string{server.URL}} }
	w.url, w.Watcher = server.URL+"/page?key=hunter2", &jobs.Watcher{Fetch: fetching}
	return w
}

func (w *watched) serve(h http.HandlerFunc) { w.page.Store(&h) }

func (w *watched) says(text string) {
	w.serve(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte(text)) })
}

func (w *watched) look(t *testing.T, was json.RawMessage) jobs.Sight {
	t.Helper()
	s, err := w.Look(t.Context(), cron.Task{MonitorURL: w.url}, was)
	require.NoError(t, err)
	return s
}

func TestWatcher_URL(t *testing.T) {
	w := newWatched(t)
	w.says("a\nb\nc\nd\nold\ne\nf\ng\nh")
	first := w.look(t, nil)
	require.False(t, first.Changed, "the first look records")
	require.Nil(t, first.News)
	same := w.look(t, first.State)
	require.False(t, same.Changed)
	require.JSONEq(t, string(first.State), string(same.State))
	w.says("a\nb\nc\nd\nnew\nmore\ne\nf\ng\nh")
	changed := w.look(t, same.State)
	require.True(t, changed.Changed)
	require.Equal(t, &cron.Watched{What: strings.TrimSuffix(w.url, "?key=hunter2"), Before: "b\nc\nd\nold\ne\nf\ng", After: "b\nc\nd\nnew\nmore\ne\nf\ng"}, changed.News)
	require.False(t, w.look(t, changed.State).Changed, "a change is reported once")
	require.True(t, w.look(t, first.State).Changed, "and again to who has not recorded it")
}

func TestWatcher_URL_NotModified(t *testing.T) {
	w := newWatched(t)
	tag, body, sent := `"v1"`, "one", 0
	w.serve(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("ETag", tag)
		rw.Header().Set("Last-Modified", "Mon, 02 Mar 2026 08:00:00 GMT")
		if r.Header.Get("If-None-Match") == tag {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		_, _ = rw.Write([]byte(body))
	})
	first := w.look(t, nil)
	again := w.look(t, first.State)
	require.False(t, again.Changed)
	require.Equal(t, 1, sent, "the page is not sent again")
	require.JSONEq(t, string(first.State), string(again.State))
	tag = `"v2"`
	touched := w.look(t, again.State)
	require.False(t, touched.Changed, "another tag of the same page is no change")
	require.Equal(t, 2, sent)
	body, tag = "two", `"v3"`
	changed := w.look(t, touched.State)
	require.True(t, changed.Changed)
	require.Equal(t, "one", changed.News.Before)
	require.Equal(t, "two", changed.News.After)
	w.serve(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotModified) })
	_, err := w.Look(t.Context(), cron.Task{MonitorURL: w.url}, nil)
	require.ErrorContains(t, err, "304", "nobody asked for that")
}

func TestWatcher_URL_Errors(t *testing.T) {
	w := newWatched(t)
	w.says("one")
	was := w.look(t, nil).State
	fails := func(want string) {
		t.Helper()
		s, err := w.Look(t.Context(), cron.Task{MonitorURL: w.url}, was)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2", "a query may hold a secret")
		require.Nil(t, s.State, "what was seen last stays")
		require.False(t, s.Changed)
	}
	w.serve(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) })
	fails("503")
	w.serve(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotFound) })
	fails("404")
	w.serve(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, 2<<20+1)) })
	fails("2097152")
	w.serve(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "100")
		_, _ = rw.Write([]byte("half"))
	})
	fails("ended the connection early")
	w.says("one")
	require.False(t, w.look(t, was).Changed, "a page that is back is no change")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Look(ctx, cron.Task{MonitorURL: w.url}, was)
	require.ErrorIs(t, err, context.Canceled)
}

func TestWatcher_URL_OnlyPublicPlaces(t *testing.T) {
	w := newWatched(t)
	w.says("secret")
	strict := func() fetch.Options { return fetch.Options{} }
	for _, url := range []string{w.url, "http://169.254.169.254/latest/meta-data", "http://localhost/", "http://[::1]/", "http://10.0.0.1/", "http://0x7f000001/", "ftp://example.com/", "http://u:p@example.com/"} {
		_, err := (&jobs.Watcher{Fetch: strict}).Look(t.Context(), cron.Task{MonitorURL: url}, nil)
		require.Error(t, err, url)
	}
	_, err := (&jobs.Watcher{Fetch: strict}).Look(t.Context(), cron.Task{MonitorURL: w.url}, nil)
	require.ErrorIs(t, err, fetch.ErrForbidden)
	require.Zero(t, w.requests.Load(), "nothing was asked")

	inner := newWatched(t) // on a port that was not allowed
	inner.says("secret")
	w.serve(func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, inner.url, http.StatusFound) })
	_, err = w.Look(t.Context(), cron.Task{MonitorURL: w.url}, nil)
	require.ErrorIs(t, err, fetch.ErrForbidden, "nor by a redirect")
	require.Zero(t, inner.requests.Load())
}

func TestWatcher_Excerpts(t *testing.T) {
	w := newWatched(t)
	long := strings.Repeat("é", 5000)
	w.says(long + "1" + long)
	was := w.look(t, nil).State
	w.says(long + "2" + long)
	news := w.look(t, was).News
	require.Contains(t, news.Before, "é1é")
	require.Contains(t, news.After, "é2é")
	require.LessOrEqual(t, utf8.RuneCountInString(news.After), 4000+20)

	w.says(strings.Repeat("x\n", 40_000) + "1")
	was = w.look(t, nil).State
	require.Less(t, len(was), 100<<10, "what is kept is bounded")
	w.says(strings.Repeat("x\n", 40_000) + "2")
	s := w.look(t, was)
	require.True(t, s.Changed)
	require.Contains(t, s.News.Before, "lies behind")
	require.Contains(t, s.News.After, "x\nx")

	w.says("\x89PNG\x00\xff1")
	was = w.look(t, nil).State
	require.NotContains(t, string(was), "PNG", "only text is kept")
	w.says("\x89PNG\x00\xff2")
	require.True(t, w.look(t, was).Changed)
}

func TestWatcher_BeginsAnew(t *testing.T) {
	w := newWatched(t)
	w.says("one")
	was := w.look(t, nil).State
	w.url += "&other"
	w.says("two")
	require.False(t, w.look(t, was).Changed, "another page has nothing to compare with")
	require.False(t, w.look(t, json.RawMessage(`{"what":`)).Changed, "nor has what can't be read")
	require.False(t, w.look(t, json.RawMessage(`[]`)).Changed)
}

func TestWatcher_Redacts(t *testing.T) {
	w := newWatched(t)
	w.Redact = func(s string) string { return strings.ReplaceAll(s, "sk-1", "***") }
	w.says("key sk-1 a")
	was := w.look(t, nil).State
	require.NotContains(t, string(was), "sk-1")
	w.says("key sk-1 b")
	require.Equal(t, "key *** b", w.look(t, was).News.After)
}

func TestWatcher_Script(t *testing.T) {
	s, dir := scripts(t, nil)
	w := &jobs.Watcher{Scripts: s}
	task := cron.Task{MonitorScript: "watch.sh"}
	look := func(was json.RawMessage) jobs.Sight {
		t.Helper()
		seen, err := w.Look(t.Context(), task, was)
		require.NoError(t, err)
		return seen
	}
	put(t, dir, "watch.sh", "echo 41; echo noise $RANDOM >&2\n")
	first := look(nil)
	require.False(t, first.Changed)
	require.False(t, look(first.State).Changed, "what it says on stderr does not count")
	put(t, dir, "watch.sh", "echo 42\n")
	changed := look(first.State)
	require.True(t, changed.Changed)
	require.Equal(t, &cron.Watched{What: "watch.sh", Before: "41", After: "42"}, changed.News)
	put(t, dir, "watch.sh", "echo 43; exit 1\n")
	seen, err := w.Look(t.Context(), task, changed.State)
	require.ErrorContains(t, err, "script watch.sh: exit code 1", "one that fails has seen nothing")
	require.Nil(t, seen.State)
	put(t, dir, "watch.sh", "true\n")
	gone := look(changed.State)
	require.True(t, gone.Changed, "nothing is something else")
	require.False(t, look(gone.State).Changed)
	put(t, dir, "watch.sh", "echo 42\n")
	require.True(t, look(gone.State).Changed)
}
