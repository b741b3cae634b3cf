package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/sessions"
)

// maxSkill bounds the text of a skill, in bytes.
const maxSkill = 256 << 10

// Sources are what a run reads beside its prompt: the skills of the home, the scripts, and the output of other jobs.
type Sources struct {
	Store sessions.Store
	// Home is the profile's home, SkillsDir the one of its skills.
	Home, SkillsDir string
	Scripts         *Scripts
	Log             zerolog.Logger
}

// prompt writes what the agent is asked in a run. An error keeps the run from beginning.
func (s *Sources) prompt(ctx context.Context, start cron.Start, t cron.Task, found findings) (string, error) {
	m := cron.Material{Prompt: t.Prompt, Now: start.Note, Watched: found.watched, Script: found.script}
	for _, name := range t.Skills {
		text, err := s.skill(name)
		if err != nil {
			return "", err
		}
		m.Skills = append(m.Skills, cron.SkillText{Name: name, Text: text})
	}
	for _, ref := range t.ContextFrom {
		if e, ok := s.earlier(ctx, start.Job, ref); ok {
			m.Earlier = append(m.Earlier, e)
		}
	}
	return m.Assemble()
}

// earlier is the newest output of a job that another one reads. One that is not there is left out.
func (s *Sources) earlier(ctx context.Context, of cron.Job, ref string) (e cron.Earlier, ok bool) {
	e = cron.Earlier{Job: cron.JobID(ref), Name: ref}
	if e.Self = ref == cron.Self; e.Self {
		e.Job, e.Name = of.ID, of.Name
	} else {
		e.Name = s.nameOf(ctx, e.Job)
	}
	var err error
	if e.Text, ok, err = (cron.Outputs{Home: s.Home}).Newest(e.Job); err != nil {
		s.Log.Warn().Err(err).Str("job", string(of.ID)).Str("source", of.Source).Msg("cron: the output of another job is left out")
	}
	return e, ok
}

// nameOf is the name of a job; its id where it can't be read.
func (s *Sources) nameOf(ctx context.Context, id cron.JobID) string {
	name := string(id)
	_ = s.Store.View(ctx, func(v sessions.View) error {
		row, err := v.Job(id)
		if err == nil {
			name = row.Name
		}
		return err
	})
	return name
}

// Check reports what a task names that is not in the home, as a *cron.TaskError.
func (s *Sources) Check(_ context.Context, t cron.Task) error {
	for _, name := range t.Skills {
		if _, err := s.skill(name); err != nil {
			return &cron.TaskError{Field: "skills", Value: name, Reason: err.Error()}
		}
	}
	for _, script := range []struct{ field, name string }{{"script", t.Script}, {"monitor", t.MonitorScript}} {
		if script.name == "" {
			continue
		}
		if err := s.Scripts.Check(script.name); err != nil {
			return &cron.TaskError{Field: script.field, Value: script.name, Reason: err.Error()}
		}
	}
	if t.Workdir != "" {
		if info, err := os.Stat(t.Workdir); err != nil || !info.IsDir() {
			return &cron.TaskError{Field: "workdir", Value: t.Workdir, Reason: "it is no directory that exists"}
		}
	}
	return nil
}

// skill reads a skill of the home: skills/<name>/SKILL.md, or skills/<name>.md. What describes it to others is left out.
func (s *Sources) skill(name string) (string, error) {
	if err := cron.PathComponent(name); err != nil {
		return "", fmt.Errorf("skill: %w", err)
	}
	for _, path := range []string{filepath.Join(name, "SKILL.md"), name + ".md"} {
		data, err := readBelow(s.SkillsDir, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", fmt.Errorf("skill %q: %w", name, err)
		case len(data) > maxSkill:
			return "", fmt.Errorf("skill %q: it has more than %d bytes", name, maxSkill)
		}
		return body(string(data)), nil
	}
	return "", fmt.Errorf("skill %q: there is no %s", name, filepath.Join(s.SkillsDir, name, "SKILL.md"))
}

// readBelow reads a file of a directory, without following a link out of it.
func readBelow(dir, path string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read
	return root.ReadFile(path)
}

// body is a skill without its front matter.
func body(text string) string {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return strings.TrimSpace(text)
	}
	if _, after, found := strings.Cut(rest, "\n---\n"); found {
		return strings.TrimSpace(after)
	}
	return strings.TrimSpace(text)
}
