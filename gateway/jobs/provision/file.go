package provision

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"herald/cron"
	"herald/gateway/config"
	"herald/platforms"
)

// The bounds of a file of jobs.
const (
	// MaxBytes is the most that one file may have.
	MaxBytes = config.MaxFileBytes
	// MaxJobs is the most jobs of one file.
	MaxJobs = 5000
	// mostProblems is how many problems of one file are shown.
	mostProblems = 20
	// mostMerges bounds chains of YAML aliases and merge keys.
	mostMerges = 8
)

// problem is one thing that is wrong in a file of jobs.
type problem struct {
	line, column int
	text         string
}

// provideFile is a file of jobs being read.
type provideFile struct {
	name     string // as people see it, such as cron.d/team.yaml
	problems []problem
	jobs     []cron.Provided
	// places are where the fields of a job stand, by the job's key and then the field's name; "" is the job itself.
	places map[string]map[string]*yaml.Node
}

// readProvided reads a file of jobs.
func readProvided(name string, data []byte) *provideFile {
	f := &provideFile{name: name, places: map[string]map[string]*yaml.Node{}}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return f // empty: no jobs
	}
	if err != nil {
		line, text := config.YAMLError(err)
		f.problems = append(f.problems, problem{line, 1, "this is not YAML: " + text})
		return f
	}
	var second yaml.Node
	if dec.Decode(&second) == nil {
		f.wrongf(&second, "a second document begins here; a file has one")
		return f
	}
	f.top(doc.Content[0])
	return f
}

func (f *provideFile) wrongf(n *yaml.Node, format string, args ...any) {
	f.problems = append(f.problems, problem{max(n.Line, 1), max(n.Column, 1), fmt.Sprintf(format, args...)})
}

// top reads the whole document.
func (f *provideFile) top(n *yaml.Node) {
	if null(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		f.wrongf(n, `want "jobs:" with a block of jobs below it, each a name with its fields`)
		return
	}
	keys, values := f.pairs(n, 0)
	for i, key := range keys {
		v := follow(values[i])
		switch {
		case key.Value != "jobs":
			f.wrongf(key, `%q: no such key, only "jobs"; %s`, shorten(key.Value), topHint(key.Value))
		case v == nil || v.Kind != yaml.MappingNode && !null(v):
			f.wrongf(values[i], "jobs: want names of jobs with their fields below them")
		case len(v.Content)/2 > MaxJobs:
			f.wrongf(key, "jobs: there are %d; a file has at most %d", len(v.Content)/2, MaxJobs)
		case !null(v):
			f.all(v)
		}
	}
}

// topHint says what somebody meant who wrote another key at the top.
func topHint(name string) string {
	if config.Nearest(name, []string{"jobs"}) != "" {
		return "did you mean jobs?"
	}
	if _, ok := settingOf(name); ok {
		return "it belongs into a job, below jobs: and the job's name"
	}
	return "a job's name belongs below jobs:"
}

// all reads the jobs.
func (f *provideFile) all(n *yaml.Node) {
	keys, values := f.pairs(n, 0)
	for i, key := range keys {
		if strings.TrimSpace(key.Value) == "" || len(key.Value) > cron.MaxName {
			f.wrongf(key, "%q: a job's name has 1 to %d bytes", shorten(key.Value), cron.MaxName)
			continue
		}
		f.job(key, follow(values[i]))
	}
	for i := range f.jobs {
		f.refer(&f.jobs[i].Change)
	}
}

// refer turns the names of other jobs of the file into their ids.
func (f *provideFile) refer(c *cron.Change) {
	if c.ContextFrom == nil {
		return
	}
	for i, ref := range *c.ContextFrom {
		if _, ok := f.places[ref]; ok {
			(*c.ContextFrom)[i] = string(cron.ProvidedID(f.name, ref))
		}
	}
}

// job reads one job.
func (f *provideFile) job(key, n *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		f.wrongf(key, "job %q: want its fields below it: %s", key.Value, strings.Join(settingNames(), ", "))
		return
	}
	p := cron.Provided{ID: cron.ProvidedID(f.name, key.Value), Key: key.Value}
	places := map[string]*yaml.Node{"": key}
	f.places[key.Value] = places
	keys, values := f.pairs(n, 0)
	meant := false // another name was written for the schedule, which is reported
	for i, name := range keys {
		s, ok := settingOf(name.Value)
		if !ok {
			meant = meant || strings.Contains(fieldHint(name.Value), "mean schedule?")
			f.wrongf(name, "job %q: %q: no such field; %s", key.Value, shorten(name.Value), fieldHint(name.Value))
			continue
		}
		places[s.name] = values[i]
		switch v := follow(values[i]); {
		case v == nil || null(v):
			f.wrongf(values[i], "job %q: %s: it is empty; want %s, or leave it out", key.Value, s.name, s.want)
		case !s.set(&p.Change, v):
			f.wrongf(values[i], "job %q: %s: %s is no good: want %s", key.Value, s.name, shown(v), s.want)
		}
	}
	if places["schedule"] == nil && !meant {
		f.wrongf(key, "job %q: schedule: it is missing; want %s", key.Value, settings[1].want)
	}
	f.jobs = append(f.jobs, p)
}

// aim notes the targets whose platform does not run here. Whether the chat is there is not asked: that may not be known yet.
func (f *provideFile) aim(running []platforms.Name) {
	names := make([]string, len(running))
	for i, name := range running {
		names[i] = string(name)
	}
	for _, p := range f.jobs {
		for field, value := range map[string]*string{"deliver": p.Change.Deliver, "failure_deliver": p.Change.FailureDeliver} {
			if value == nil {
				continue
			}
			tokens, _ := cron.ParseDeliver(*value) // its form is checked when the job is made
			for _, t := range tokens {
				if t.Word != "" || slices.Contains(running, t.Platform) {
					continue
				}
				hint := "those that do: " + strings.Join(names, ", ")
				if near := config.Nearest(string(t.Platform), append(names, cron.DeliverLocal, cron.DeliverOrigin,
					cron.DeliverAll)); near != "" {
					hint = "did you mean " + near + "?"
				}
				f.wrongf(f.places[p.Key][field], "job %q: %s: no platform called %q runs here; %s", p.Key, field, string(t.Platform), hint)
			}
		}
	}
}

// reject notes why jobs can't be made, at the position of the field that is to blame.
func (f *provideFile) reject(bad []*cron.ProvidedError) {
	for _, b := range bad {
		places := f.places[b.Key]
		field := ""
		var task *cron.TaskError
		var schedule *cron.Error
		switch {
		case errors.As(b.Err, &schedule):
			field = "schedule"
		case errors.As(b.Err, &task):
			field = task.Field
		}
		n := places[field]
		if n == nil {
			n = places[""]
		}
		f.wrongf(n, "job %q: %v", b.Key, b.Err)
	}
}

// texts are the problems for people: file:line:column and what is wrong.
func (f *provideFile) texts() []string {
	slices.SortStableFunc(f.problems, func(a, b problem) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return a.column - b.column
	})
	var out []string
	for i, p := range f.problems {
		if i == mostProblems {
			out = append(out, fmt.Sprintf("%s: and %d more", f.name, len(f.problems)-i))
			break
		}
		out = append(out, fmt.Sprintf("%s:%d:%d: %s", f.name, p.line, p.column, p.text))
	}
	return out
}

// pairs returns the keys and values of a mapping; keys that are written plainly win over those of a merge key (<<).
func (f *provideFile) pairs(n *yaml.Node, depth int) (keys, values []*yaml.Node) {
	seen := map[string]int{}
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := follow(n.Content[i])
		switch {
		case key == nil || key.Kind != yaml.ScalarNode:
			f.wrongf(n.Content[i], "a key must be a plain word")
		case key.Tag == "!!merge" && merged == nil:
			merged = n.Content[i+1]
		case seen[key.Value] != 0:
			f.wrongf(key, "%q stands twice; the first is in line %d", shorten(key.Value), seen[key.Value])
		default:
			seen[key.Value] = max(key.Line, 1)
			keys, values = append(keys, key), append(values, n.Content[i+1])
		}
	}
	if merged == nil {
		return keys, values
	}
	from := follow(merged)
	if from == nil || from.Kind != yaml.MappingNode || depth >= mostMerges {
		f.wrongf(merged, "<< wants an alias of a block of fields")
		return keys, values
	}
	more, theirs := f.pairs(from, depth+1)
	for i, key := range more {
		if seen[key.Value] == 0 {
			keys, values = append(keys, key), append(values, theirs[i])
		}
	}
	return keys, values
}

// follow goes through aliases; nil when they never end.
func follow(n *yaml.Node) *yaml.Node {
	for range mostMerges {
		if n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return nil
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
