package provision

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"herald/cron"
	"herald/gateway/config"
)

// setting is a field of a job in a file.
type setting struct {
	name string
	want string
	set  func(c *cron.Change, n *yaml.Node) bool // false: not what is wanted
}

// settings are the fields of a job in a file: those of cron.Change by its JSON names.
var settings = [...]setting{
	{"name", "a text", text(func(c *cron.Change) **string { return &c.Name })},
	{"schedule", `such as "every weekday at 9am", "every 30m" or "0 9 * * 1-5"`,
		text(func(c *cron.Change) **string { return &c.Schedule })},
	{"repeat", `a number of runs, "once" or "forever"`, repeat},
	{"prompt", "a text", text(func(c *cron.Change) **string { return &c.Prompt })},
	{"skills", "a list of names", list(func(c *cron.Change) **[]string { return &c.Skills })},
	{"script", "a path below the scripts folder of the home", text(func(c *cron.Change) **string { return &c.Script })},
	{"no_agent", "true or false", boolean(func(c *cron.Change) **bool { return &c.NoAgent })},
	{"monitor", "an http or https URL, or the path of a script", text(func(c *cron.Change) **string { return &c.Monitor })},
	{"context_from", `a list of jobs of this file, of job ids, or "self"`, list(func(c *cron.Change) **[]string { return &c.ContextFrom })},
	{"continuity", "true or false", boolean(func(c *cron.Change) **bool { return &c.Continuity })},
	{"deliver", "local, origin, all, a platform, or platform:chat, several with commas or as a list",
		targets(func(c *cron.Change) **string { return &c.Deliver })},
	{"failure_deliver", "as deliver", targets(func(c *cron.Change) **string { return &c.FailureDeliver })},
	{"attach_to_session", "true or false", boolean(func(c *cron.Change) **bool { return &c.Attach })},
	{"enabled_toolsets", "a list of names", list(func(c *cron.Change) **[]string { return &c.Toolsets })},
	{"workdir", "an absolute path", text(func(c *cron.Change) **string { return &c.Workdir })},
	{"model", "a text", text(func(c *cron.Change) **string { return &c.Model })},
	{"reasoning_effort", "a text", text(func(c *cron.Change) **string { return &c.Reasoning })},
	{"paused", "true or false", boolean(func(c *cron.Change) **bool { return &c.Paused })},
	{"paused_reason", "a text", text(func(c *cron.Change) **string { return &c.PausedReason })},
}

// elsewhere are names that people write for another field, or for what a job of a file can't have.
var elsewhere = map[string]string{
	"cron": "did you mean schedule?", "at": "did you mean schedule?", "message": "did you mean prompt?", "text": "did you mean prompt?",
	"to": "did you mean deliver?", "target": "did you mean deliver?", "skill": "did you mean skills?", "toolsets": "did you mean enabled_toolsets?",
	"cwd": "did you mean workdir?", "enabled": "write paused: true for a job that is not to run",
	"origin": "a job of a file is made in no chat; deliver: origin means the first home channel, platform:chat any other place",
	"id":     "the id of a job comes from the names of its file and of itself",
}

func settingOf(name string) (setting, bool) {
	i := slices.IndexFunc(settings[:], func(s setting) bool { return s.name == name })
	if i < 0 {
		return setting{}, false
	}
	return settings[i], true
}

func settingNames() []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.name
	}
	return names
}

func fieldHint(name string) string {
	if hint := elsewhere[strings.ToLower(name)]; hint != "" {
		return hint
	}
	if near := config.Nearest(name, settingNames()); near != "" {
		return "did you mean " + near + "?"
	}
	return "a job has " + strings.Join(settingNames(), ", ")
}

// shown is a value in a message.
func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a block of fields"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(shorten(n.Value))
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// plain returns the text of a single value that is not a truth value.
func plain(n *yaml.Node) (string, bool) {
	return n.Value, n.Kind == yaml.ScalarNode && n.Tag != "!!bool" && n.Tag != "!!null" && n.Tag != "!!binary"
}

func text(of func(*cron.Change) **string) func(*cron.Change, *yaml.Node) bool {
	return func(c *cron.Change, n *yaml.Node) bool {
		s, ok := plain(n)
		*of(c) = &s
		return ok
	}
}

func boolean(of func(*cron.Change) **bool) func(*cron.Change, *yaml.Node) bool {
	return func(c *cron.Change, n *yaml.Node) bool {
		b, err := strconv.ParseBool(strings.ToLower(n.Value))
		*of(c) = &b
		return err == nil && n.Kind == yaml.ScalarNode && n.Tag == "!!bool"
	}
}

// targets reads a text or a list of texts that are joined with commas.
func targets(of func(*cron.Change) **string) func(*cron.Change, *yaml.Node) bool {
	return func(c *cron.Change, n *yaml.Node) bool {
		if n.Kind != yaml.SequenceNode {
			return text(of)(c, n)
		}
		var texts *[]string
		ok := list(func(*cron.Change) **[]string { return &texts })(c, n)
		joined := cron.JoinDeliver(*texts)
		*of(c) = &joined
		return ok
	}
}

// list reads a list of texts; one text is split at commas.
func list(of func(*cron.Change) **[]string) func(*cron.Change, *yaml.Node) bool {
	return func(c *cron.Change, n *yaml.Node) bool {
		texts := []string{}
		*of(c) = &texts
		if s, ok := plain(n); ok {
			for part := range strings.SplitSeq(s, ",") {
				texts = append(texts, strings.TrimSpace(part))
			}
			return true
		}
		if n.Kind != yaml.SequenceNode {
			return false
		}
		for _, item := range n.Content {
			item = follow(item)
			if item == nil {
				return false
			}
			s, ok := plain(item)
			if !ok {
				return false
			}
			texts = append(texts, strings.TrimSpace(s))
		}
		return true
	}
}

func repeat(c *cron.Change, n *yaml.Node) bool {
	s, ok := plain(n)
	if !ok || strings.HasPrefix(s, "-") {
		return false
	}
	times, err := cron.ParseRepeat(s)
	c.Repeat = &times
	return err == nil
}
