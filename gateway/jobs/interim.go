package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"herald/cron"
)

// block is a named text of a prompt.
type block struct{ name, text string }

// assemble joins what a run's prompt is made of.
func assemble(skills, earlier []block, found findings, text, note string) string {
	var parts []string
	for _, b := range append(skills, earlier...) {
		parts = append(parts, "## "+b.name+"\n"+b.text)
	}
	if found.script != "" {
		parts = append(parts, "## Script output\n"+found.script)
	}
	return strings.Join(append(parts, strings.TrimSpace(text+"\n\n"+note)), "\n\n")
}

const reasonIdle = "the agent showed no sign of life for too long"

func summary(reason string) string { return oneLine(reason) }

func nudges(streak, threshold int, kind cron.Kind) bool {
	return threshold > 0 && streak >= threshold && kind != cron.Once
}

func asleep(string) bool { return false }

func (j *Jobs) look(context.Context, cron.Task, json.RawMessage) (sight, error) {
	return sight{}, errors.New("nothing can be watched yet")
}

func (j *Jobs) script(context.Context, string, string) (string, error) {
	return "", errors.New("scripts can't be run yet")
}
