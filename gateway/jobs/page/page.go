// Package page shows the scheduled jobs in a browser: a list with what needs somebody first, a page for each job with
// its runs, and their output files. It promises that what it writes is HTML in which every text of others is inert, that
// reading changes nothing, and that what changes something is asked for by POST. Who may see it is decided before it.
package page

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/gateway/jobs/view"
	"herald/sessions"
)

// Path is where the pages are served.
const Path = "/jobs"

const (
	// perPage is how many jobs a page of the list shows.
	perPage = 100
	// shownRuns is how many runs of a job are shown.
	shownRuns = 50
	// maxOutput is how much of an output file is shown, in bytes.
	maxOutput = 1 << 20
)

// Acts are what a person may do to a job here.
type Acts interface {
	Pause(ctx context.Context, id cron.JobID, why string) (cron.Job, error)
	Resume(ctx context.Context, id cron.JobID) (cron.Job, error)
	Remove(ctx context.Context, id cron.JobID) (cron.Job, error)
	// Run begins a run now; cron.ErrRunning while one goes on.
	Run(ctx context.Context, id cron.JobID, note string) error
}

// Options are what the pages are made from.
type Options struct {
	Views view.Reader
	Acts  Acts
	// Status is that of the scheduler.
	Status func(ctx context.Context) (view.Status, error)
	// Words says a schedule in words; nil shows it as it was written.
	Words func(s cron.Schedule) string
	// Markdown makes safe HTML of an output file.
	Markdown func(text string) string
	// Redact takes secrets out of what people have written into a job.
	Redact func(string) string
	// Home is the profile's home, in which the output files are.
	Home string
	// Static is where the chat page's style and theme are served, such as /static/0123.
	Static string
	// Title is what the assistant is called.
	Title string
	Log   zerolog.Logger
}

// Pages serve the scheduled jobs.
type Pages struct{ o Options }

// New returns the pages.
func New(o Options) *Pages {
	if o.Words == nil {
		o.Words = func(s cron.Schedule) string { return s.Display }
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	return &Pages{o}
}

// Routes are the handlers by pattern of http.ServeMux.
func (p *Pages) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + Path:                         p.serve(p.list),
		"GET " + Path + "/{id}":               p.serve(p.job),
		"GET " + Path + "/{id}/output/{file}": p.serve(p.output),
		"POST " + Path + "/{id}/{act}":        p.serve(p.act),
	}
}

// serve writes what a handler returns. An error is a page that says it.
func (p *Pages) serve(fn func(r *http.Request) (*document, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		d, err := fn(r)
		var to *moved
		switch {
		case errors.As(err, &to):
			http.Redirect(w, r, to.to, http.StatusSeeOther)
			return
		case errors.Is(err, sessions.ErrNotFound):
			status = http.StatusNotFound
			d = p.problem("Not found", "There is no such job any more; it may have been removed.")
		case isRefusal(err):
			status = http.StatusConflict
			d = p.problem("That can't be done", p.o.Redact(err.Error()))
		case err != nil:
			if r.Context().Err() != nil {
				return // nobody listens any more
			}
			p.o.Log.Error().Err(err).Str("path", r.URL.Path).Msg("a page of the scheduled jobs failed")
			status = http.StatusServiceUnavailable
			d = p.problem("That did not work", "Herald can't read its store right now. Try again in a moment.")
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "same-origin") // with none at all a browser names no origin for a form, and the door refuses it
		h.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, d.String())
	})
}

// moved sends the browser elsewhere.
type moved struct{ to string }

func (m *moved) Error() string { return "see " + m.to }

// isRefusal reports whether an error is one of a job's rules, whose text is for people.
func isRefusal(err error) bool {
	var task *cron.TaskError
	var managed *cron.ManagedError
	var schedule *cron.Error
	return errors.As(err, &task) || errors.As(err, &managed) || errors.As(err, &schedule) || errors.Is(err, cron.ErrRunning) ||
		errors.Is(err, cron.ErrStopped)
}

func idOf(r *http.Request) (cron.JobID, error) {
	id := r.PathValue("id")
	if !cron.ValidJobID(id) {
		return "", sessions.ErrNotFound
	}
	return cron.JobID(id), nil
}

func (p *Pages) list(r *http.Request) (*document, error) {
	skip, _ := strconv.Atoi(r.URL.Query().Get("skip"))
	skip = max(0, skip)
	list, total, err := p.o.Views.List(r.Context(), skip, perPage)
	if err != nil {
		return nil, err
	}
	status, err := p.o.Status(r.Context())
	if err != nil {
		return nil, err
	}
	return p.renderList(list, skip, total, status), nil
}

func (p *Pages) job(r *http.Request) (*document, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	view, runs, err := p.o.Views.Job(r.Context(), id, shownRuns)
	if err != nil {
		return nil, err
	}
	return p.renderJob(view, runs), nil
}

// output shows an output file of a job: by its own name, in the folder of that job and nowhere else.
func (p *Pages) output(r *http.Request) (*document, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	file := r.PathValue("file")
	if cron.PathComponent(file) != nil || filepath.Ext(file) != ".md" || strings.HasPrefix(file, ".") {
		return nil, sessions.ErrNotFound
	}
	text, cut, err := p.read(id, file)
	if err != nil {
		return nil, err
	}
	return p.renderOutput(id, file, text, cut), nil
}

// read returns an output file, at most maxOutput of it.
func (p *Pages) read(id cron.JobID, file string) (text string, cut bool, err error) {
	root, err := os.OpenRoot(cron.Outputs{Home: p.o.Home}.Dir(id))
	if err != nil {
		return "", false, missing(err)
	}
	defer func() { _ = root.Close() }() // only read
	info, err := root.Lstat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", false, missing(err)
	}
	f, err := root.Open(file)
	if err != nil {
		return "", false, missing(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxOutput+1))
	if len(data) > maxOutput {
		data, cut = data[:maxOutput], true
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), cut, err
}

func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the output file: %w", sessions.ErrNotFound)
	}
	return err
}

// act does something to a job, and shows it again.
func (p *Pages) act(r *http.Request) (*document, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	to := Path + "/" + string(id)
	switch r.PathValue("act") {
	case "pause":
		_, err = p.o.Acts.Pause(r.Context(), id, "paused in the browser")
	case "resume":
		_, err = p.o.Acts.Resume(r.Context(), id)
	case "run":
		err = p.o.Acts.Run(r.Context(), id, "")
	case "remove":
		_, err = p.o.Acts.Remove(r.Context(), id)
		to = Path
	default:
		return nil, sessions.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	p.o.Log.Info().Str("job", string(id)).Str("act", r.PathValue("act")).Str("remote", r.RemoteAddr).Msg("a job was changed in the browser")
	return nil, &moved{to}
}

// zoned is an instant on the jobs' clock.
func (p *Pages) zoned(t time.Time) time.Time { return t.In(p.o.Views.Zone()) }

// policy lets a page have the chat's style, its theme and its own style, send its own forms, and nothing else.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()
