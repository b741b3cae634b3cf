package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs/brief"
	"herald/gateway/jobs/page"
	"herald/gateway/jobs/provision"
	"herald/gateway/jobs/view"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

func ptr[T any](v T) *T { return &v }

// hostile is a text that is a page of its own where it is not escaped.
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`

// desk is a store with jobs and its pages.
type desk struct {
	t      *testing.T
	home   string
	store  *sqlite.Store
	book   *cron.Book
	mux    *http.ServeMux
	status view.Status
	ran    []cron.JobID
	busy   bool
	now    time.Time
}

func (d *desk) Pause(ctx context.Context, id cron.JobID, why string) (cron.Job, error) {
	return d.book.Pause(ctx, id, why)
}
func (d *desk) Resume(ctx context.Context, id cron.JobID) (cron.Job, error) {
	return d.book.Resume(ctx, id)
}
func (d *desk) Remove(ctx context.Context, id cron.JobID) (cron.Job, error) {
	return d.book.Remove(ctx, id)
}
func (d *desk) Run(_ context.Context, id cron.JobID, _ string) error {
	if d.busy {
		return cron.ErrRunning
	}
	d.ran = append(d.ran, id)
	return nil
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, home: t.TempDir(), mux: http.NewServeMux(), now: time.Now(), status: view.Status{Alive: true}}
	store, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(d.home, "herald.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	d.store = store
	zone := func() *time.Location { return time.UTC }
	clock := func() time.Time { return d.now }
	d.book = cron.NewBook(cron.BookOptions{Store: store, Zone: zone, Now: clock})
	pages := page.New(page.Options{Views: view.Reader{Store: store, Zone: zone, Now: clock}, Acts: d, Home: d.home, Static: "/static/x", Title: "Herald",
		Status: func(context.Context) (view.Status, error) { return d.status, nil }, Log: zerolog.Nop(),
		Redact: func(s string) string { return strings.ReplaceAll(s, "geheim", "***") }})
	for pattern, h := range pages.Routes() {
		d.mux.Handle(pattern, h)
	}
	return d
}

func (d *desk) make(c cron.Change) cron.Job {
	d.t.Helper()
	if c.Prompt == nil {
		c.Prompt = ptr("x")
	}
	if c.Schedule == nil {
		c.Schedule = ptr("every 30m")
	}
	j, err := d.book.Create(context.Background(), c, cron.By{Source: cron.FromCLI})
	require.NoError(d.t, err)
	return j
}

// ran keeps an ended run.
func (d *desk) past(id cron.JobID, state sessions.RunState, reason string, r brief.Result) {
	d.t.Helper()
	data, err := json.Marshal(r)
	require.NoError(d.t, err)
	d.now = d.now.Add(time.Second)
	run := sessions.Run{Job: id, Slot: d.now.Add(-time.Hour), Kind: sessions.RunOnTime, Began: d.now.Add(-time.Hour)}
	require.NoError(d.t, d.store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
		if ok, err := tx.ClaimRun(&run, time.Time{}); err != nil || !ok {
			return errors.Join(err, errors.New("not claimed"))
		}
		return tx.EndRun(run.ID, state, reason, data, d.now)
	}))
}

func (d *desk) ask(method, path string) (int, string, http.Header) {
	d.t.Helper()
	w := httptest.NewRecorder()
	d.mux.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	require.NoError(d.t, err)
	return w.Code, string(body), w.Result().Header
}

func (d *desk) get(path string) string {
	d.t.Helper()
	code, body, _ := d.ask("GET", path)
	require.Equal(d.t, http.StatusOK, code, body)
	return body
}

// What failed, was missed or did not arrive stands at the top with why, before the jobs that are well.
func TestPages_TroubleFirst(t *testing.T) {
	d := newDesk(t)
	require.Contains(t, d.get("/jobs"), "There are none yet")
	well := d.make(cron.Change{Name: ptr("Well")})
	d.past(well.ID, sessions.RunRan, "", brief.Result{Deliveries: []brief.Delivery{
		{Target: cron.Target{Address: platforms.Address{Platform: "telegram", Chat: "7"}}, State: sessions.OutSent, Mirrored: []string{"dm"}}}})
	failed := d.make(cron.Change{Name: ptr("Failed")})
	d.past(failed.ID, sessions.RunFailed, "the script broke: geheim", brief.Result{})
	missed := d.make(cron.Change{Name: ptr("Missed")})
	d.past(missed.ID, sessions.RunMissed, "nobody was there", brief.Result{})
	body := d.get("/jobs")
	top, rest, ok := strings.Cut(body, "</section>")
	require.True(t, ok)
	require.Contains(t, top, "Needs a look")
	require.Contains(t, top, ">Failed</a>: it failed once in the last 24 hours")
	require.Contains(t, top, ">Missed</a>: it was missed once in the last 24 hours")
	require.NotContains(t, top, ">Well</a>")
	require.Contains(t, rest, "<code>telegram:7</code>: arrived <span class=\"dim\">replies continue it there</span>")
	require.NotContains(t, body, "geheim")
	require.NotContains(t, body, "not being looked for")

	d.status = view.Status{Files: []provision.File{{Name: "cron.d/a.yaml", Problems: []string{"cron.d/a.yaml:3:5: no such field"}}}}
	body = d.get("/jobs")
	require.Contains(t, body, "Due jobs are not being looked for. The last time was: never")
	require.Contains(t, body, "cron.d/a.yaml:3:5: no such field")
}

// The page of a job has its history: where each run's output went and why not, and the output to read.
func TestPages_AJob(t *testing.T) {
	d := newDesk(t)
	j := d.make(cron.Change{Name: ptr("News"), Prompt: ptr("Read the news, geheim"), Deliver: ptr("telegram:7, discord"), Skills: &[]string{"news"}})
	path, err := cron.Outputs{Home: d.home}.Write(cron.Output{Job: j.ID, Name: "News", Ended: d.now, Status: cron.OutputOK, Body: "All quiet, " + hostile})
	require.NoError(t, err)
	d.past(j.ID, sessions.RunRan, "", brief.Result{Output: path, Deliveries: []brief.Delivery{
		{Target: cron.Target{Address: platforms.Address{Platform: "discord", Chat: "9"}}, State: sessions.OutFailed, Error: "403: missing access"},
		{Target: cron.Target{Address: platforms.Address{Platform: "telegram", Chat: "7"}}, State: sessions.OutUnknown, Error: "the connection broke"}}})
	d.past(j.ID, sessions.RunRan, "", brief.Result{Silent: "silent"})
	body := d.get("/jobs/" + string(j.ID))
	for _, part := range []string{"<h1>News", "Read the news, ***", "telegram:7, discord", "<code>discord:9</code>: refused <span class=\"why\">403: missing access</span>",
		"<code>telegram:7</code>: may have arrived", "nothing new to say", "Next runs"} {
		require.Contains(t, body, part)
	}
	link := "/jobs/" + string(j.ID) + "/output/" + filepath.Base(path)
	require.Contains(t, body, link)
	require.Contains(t, d.get(link), "All quiet, &lt;script&gt;")
}

// Nothing that others have written is markup: names, prompts, errors, places.
func TestPages_TextsAreInert(t *testing.T) {
	d := newDesk(t)
	j := d.make(cron.Change{Name: ptr(hostile), Prompt: ptr(hostile), Deliver: ptr("telegram:7"), Workdir: ptr("/" + hostile), Model: ptr(hostile)})
	d.past(j.ID, sessions.RunFailed, hostile, brief.Result{Problems: []string{hostile}, Deliveries: []brief.Delivery{
		{Target: cron.Target{Address: platforms.Address{Platform: "x", Chat: hostile}}, State: sessions.OutFailed, Error: hostile}}})
	_, err := d.book.Pause(context.Background(), j.ID, hostile)
	require.NoError(t, err)
	d.status.Files = []provision.File{{Name: hostile, Problems: []string{hostile}}}
	for _, path := range []string{"/jobs", "/jobs/" + string(j.ID)} {
		body := d.get(path)
		require.NotContains(t, body, "<script>alert")
		require.NotContains(t, body, "<img")
		require.Contains(t, body, "&lt;script&gt;")
		require.NotContains(t, body, "%!")
	}
}

// Output files are read by their own name in the folder of their job: nothing else of the machine.
func TestPages_OutputsAreConfined(t *testing.T) {
	d := newDesk(t)
	j := d.make(cron.Change{})
	dir := filepath.Join(d.home, "cron", "output", string(j.ID))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	secret := filepath.Join(d.home, "secret.md")
	require.NoError(t, os.WriteFile(secret, []byte("top secret"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "link.md")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".hidden.md"), []byte("top secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.txt"), []byte("top secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "big.md"), []byte(strings.Repeat("x", 2<<20)), 0o600))
	for _, path := range []string{"/output/link.md", "/output/.hidden.md", "/output/other.txt", "/output/none.md", "/output/..%2f..%2f..%2fsecret.md", "/output/%2e%2e"} {
		code, body, _ := d.ask("GET", "/jobs/"+string(j.ID)+path)
		require.NotEqual(t, http.StatusOK, code, path)
		require.NotContains(t, body, "top secret")
	}
	code, _, _ := d.ask("GET", "/jobs/..%2f..%2foutput/output/secret.md")
	require.Equal(t, http.StatusNotFound, code)
	big := d.get("/jobs/" + string(j.ID) + "/output/big.md")
	require.Less(t, len(big), 3<<19)
	require.Contains(t, big, "The rest is left out")
}

// What changes something is asked for by POST alone; what can't be done is said.
func TestPages_Acts(t *testing.T) {
	d := newDesk(t)
	ctx := context.Background()
	j := d.make(cron.Change{Name: ptr("A")})
	at := "/jobs/" + string(j.ID)
	act := func(what string) {
		t.Helper()
		code, body, h := d.ask("POST", at+"/"+what)
		require.Equal(t, http.StatusSeeOther, code, body)
		require.NotEmpty(t, h.Get("Location"))
	}
	for _, what := range []string{"pause", "resume", "run", "remove"} {
		code, _, _ := d.ask("GET", at+"/"+what)
		require.NotEqual(t, http.StatusOK, code, what)
	}
	got, err := d.book.Find(ctx, string(j.ID))
	require.NoError(t, err)
	require.Equal(t, j.Plan, got.Plan)
	require.Contains(t, d.get(at), ">Pause</button>")
	act("pause")
	require.Contains(t, d.get(at), ">Resume</button>")
	act("resume")
	act("run")
	require.Equal(t, []cron.JobID{j.ID}, d.ran)
	d.busy = true
	code, body, _ := d.ask("POST", at+"/run")
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, body, "running already")
	act("remove")
	code, body, h := d.ask("GET", at)
	require.Equal(t, http.StatusNotFound, code)
	require.Contains(t, body, "no such job")
	require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
	code, _, _ = d.ask("POST", at+"/explode")
	require.Equal(t, http.StatusNotFound, code)

	managed := cron.Provided{ID: cron.ProvidedID("cron.d/a.yaml", "m"), Key: "m", Change: cron.Change{Schedule: ptr("30m"), Prompt: ptr("x")}}
	_, bad, err := d.book.Provide(ctx, "cron.d/a.yaml", []cron.Provided{managed})
	require.NoError(t, err)
	require.Empty(t, bad)
	body = d.get("/jobs/" + string(managed.ID))
	require.Contains(t, body, "Change or remove it in cron.d/a.yaml")
	require.NotContains(t, body, "/remove")
	code, body, _ = d.ask("POST", "/jobs/"+string(managed.ID)+"/remove")
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, body, "change it there")
}

// A long list comes in pages.
func TestPages_ALongList(t *testing.T) {
	d := newDesk(t)
	for range 150 {
		d.make(cron.Change{})
	}
	first := d.get("/jobs")
	require.Equal(t, 100, strings.Count(first, "<tr><td>"))
	require.Contains(t, first, "1 to 100 of 150")
	require.Contains(t, first, "/jobs?skip=100")
	second := d.get("/jobs?skip=100")
	require.Equal(t, 50, strings.Count(second, "<tr><td>"))
	require.Contains(t, second, "/jobs?skip=0")
	require.Contains(t, d.get("/jobs?skip=-7"), "1 to 100 of 150")
}
