package cron

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// OutputStatus is what became of a run, as its output file says it.
type OutputStatus string

// The statuses of an output file.
const (
	OutputOK       OutputStatus = "ok"
	OutputFailed   OutputStatus = "failed"
	OutputSilent   OutputStatus = "silent"    // there was nothing to say, so nothing was sent
	OutputNoChange OutputStatus = "no_change" // what is watched had not changed, or the script said not to wake the agent
	OutputMissed   OutputStatus = "missed"
)

// Output is what one run leaves behind.
type Output struct {
	Job    JobID
	Name   string
	Slot   time.Time
	Ended  time.Time // names the file, to the second
	Status OutputStatus
	Why    string   // of a status that is not OutputOK, in plain words
	Sent   []string // where it went
	Body   string   // the whole answer, also when it is silent
}

// Outputs are the output files of all jobs: one folder for each job, one file for each run, for its owner alone.
type Outputs struct {
	// Home is the profile's home, which must be there: a home that was deleted is not made again.
	Home string
	// Keep is how many files of a job are kept, the newest; 0 or less keeps all.
	Keep int
}

const (
	outputTime = "2006-01-02_15-04-05" // in UTC, so that the order of names is the order of time
	outputExt  = ".md"
	// maxSameSecond is how many outputs of one job one second may have.
	maxSameSecond = 99
	// tempAge is how old a half-written file must be before it is taken for what a killed daemon left.
	tempAge = time.Hour
	// maxHeaderLine is how many characters of a value the header shows.
	maxHeaderLine = 1000
	// MaxContext is how many characters of an earlier output a prompt gets.
	MaxContext = 8000
	// contextCut ends an output that was longer.
	contextCut = "\n[... the rest of this output is left out]"
)

// PathComponent reports why a text can't be the name of one file or folder: it is empty, or it leads elsewhere.
func PathComponent(name string) error {
	if name == "." || strings.ContainsAny(name, "/\\\x00") || !filepath.IsLocal(name) {
		return fmt.Errorf("%q can't be the name of a file", name)
	}
	return nil
}

// Dir is the folder of a job's output files, whether it is there or not. The id must be that of a job.
func (o Outputs) Dir(id JobID) string { return filepath.Join(o.Home, "cron", "output", string(id)) }

// makeDir makes a job's folder, but never the home.
func (o Outputs) makeDir(id JobID) (string, error) {
	if err := PathComponent(string(id)); err != nil {
		return "", err
	}
	dir := o.Home
	for _, part := range []string{"cron", "output", string(id)} {
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return dir, nil
}

// Write keeps the output of a run in a file of its own, whole or not at all, drops the oldest ones, and returns its path.
func (o Outputs) Write(out Output) (path string, err error) {
	dir, err := o.makeDir(out.Job)
	if err != nil {
		return "", fmt.Errorf("output of job %s: %w", out.Job, err)
	}
	path, err = reserve(dir, out.Ended)
	if err != nil {
		return "", fmt.Errorf("output of job %s: %w", out.Job, err)
	}
	if err = replace(path, out.text()); err != nil {
		_ = os.Remove(path)
		return "", fmt.Errorf("output of job %s: %w", out.Job, err)
	}
	o.trim(dir)
	return path, nil
}

// reserve makes an empty file with the first free name of a second. Its readers pass over empty files.
func reserve(dir string, at time.Time) (string, error) {
	base := filepath.Join(dir, at.UTC().Format(outputTime))
	for n := 1; n <= maxSameSecond; n++ {
		path := base + outputExt
		if n > 1 {
			path = fmt.Sprintf("%s_%02d%s", base, n, outputExt) // sorts behind the one without a number
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			return path, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s has %d outputs already", base, maxSameSecond)
}

// replace puts a text into a file, whole or not at all. Its owner alone can read it.
func replace(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it may be gone
	}
	return err
}

// text is the file: a header of lines, each with a key, a rule, and the output.
func (out Output) text() string {
	var b strings.Builder
	line := func(key, value string) {
		if value = Plain(value, maxHeaderLine); value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", key, value)
		}
	}
	fmt.Fprintf(&b, "# %s\n\n", Plain(out.Name, MaxName))
	line("job", string(out.Job))
	if !out.Slot.IsZero() {
		line("slot", out.Slot.Format(time.RFC3339))
	}
	line("ended", out.Ended.UTC().Format(time.RFC3339))
	line("status", string(out.Status))
	line("why", out.Why)
	line("sent to", strings.Join(out.Sent, ", "))
	fmt.Fprintf(&b, "\n---\n\n%s\n", strings.TrimSpace(out.Body))
	return b.String()
}

// trim deletes what is too much in a job's folder but the newest output that says something, so that a job which mostly
// finds nothing can still continue from what it said last; and what a killed daemon left half written. That it can't is no
// trouble of the run that ends now.
func (o Outputs) trim(dir string) {
	names, err := outputNames(dir)
	if err != nil {
		return
	}
	if o.Keep > 0 && len(names) > o.Keep {
		newest, _ := newestOf(dir, names)
		for _, name := range names[:len(names)-o.Keep] {
			if name != newest {
				_ = os.Remove(filepath.Join(dir, name))
			}
		}
	}
	halves, _ := filepath.Glob(filepath.Join(dir, ".*.tmp"))
	for _, path := range halves {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > tempAge {
			_ = os.Remove(path)
		}
	}
}

// outputNames are the output files of a folder, the oldest first.
func outputNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() && strings.HasSuffix(name, outputExt) && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Newest returns the newest output of a job that says something: no silent one, none of a run that had nothing to do.
// It is cut at MaxContext characters, with a note. ok is false when there is none, or none can be read: what an earlier
// run has left behind is never a reason for one not to run. The one error wraps ErrBadJob.
func (o Outputs) Newest(id JobID) (text string, ok bool, err error) {
	if !ValidJobID(string(id)) {
		return "", false, fmt.Errorf("%w: %q", ErrBadJob, id)
	}
	dir := o.Dir(id)
	names, err := outputNames(dir)
	if err != nil {
		return "", false, nil
	}
	name, text := newestOf(dir, names)
	return text, name != "", nil
}

// newestOf returns the newest of a folder's files that says something, and what it says; empty for none.
func newestOf(dir string, names []string) (name, text string) {
	for _, name := range slices.Backward(names) {
		if text, ok := readOutput(filepath.Join(dir, name)); ok {
			return name, text
		}
	}
	return "", ""
}

// ErrBadJob refuses a job id that does not have the form of one: it is never used as the name of a folder.
var ErrBadJob = errors.New("not the id of a job")

// readOutput returns the body of an output file; ok is false for one that has none to use.
func readOutput(path string) (body string, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }() // only read
	r := bufio.NewReader(io.LimitReader(f, maxOutputRead))
	for {
		line, err := r.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		switch status, found := strings.CutPrefix(line, "- status: "); {
		case err != nil:
			return "", false // nothing behind the header
		case found && (OutputStatus(status) == OutputSilent || OutputStatus(status) == OutputNoChange):
			return "", false
		}
		if line == "---" {
			break
		}
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		return "", false
	}
	return cutContext(strings.TrimSpace(strings.ToValidUTF8(string(rest), "")))
}

// maxOutputRead is how many bytes of an output file are read: all that its header and MaxContext characters can take.
const maxOutputRead = 16<<10 + utf8.UTFMax*(MaxContext+1)

func cutContext(body string) (string, bool) {
	if n := utf8.RuneCountInString(body); n > MaxContext {
		body = string([]rune(body)[:MaxContext]) + contextCut
	}
	return body, body != ""
}
