package command

import (
	"context"
	"strings"

	"herald/cron"
)

// edit changes a job: "schedule every day at 8", "prompt …", "name …", "deliver …", "repeat 3", "skills a, b",
// "attach on|off|default", "continuity on|off", or a phrase such as "every day at 8 send me the news".
func (c *cronRequest) edit(ctx context.Context, j cron.Job, rest string) error {
	field, value := cutWord(rest)
	change, ok, err := editOf(strings.ToLower(field), value)
	if err == nil && !ok {
		var p cron.Sentence
		p, ok, err = cron.FindSentence(rest, c.Now(), c.jobs.Zone())
		change.Schedule = &p.Schedule
		if p.Prompt != "" {
			change.Prompt = &p.Prompt
		}
	}
	switch {
	case err != nil:
		return c.refuse(ctx, err)
	case !ok:
		return c.reply(ctx, c.t("command.cron.edit_how"))
	}
	if j, err = c.jobs.Update(ctx, j.ID, change); err != nil {
		return c.refuse(ctx, err)
	}
	return c.reply(ctx, c.about("changed", j))
}

// editOf is the change of one field; ok is false when there is no such field.
func editOf(field, value string) (change cron.Change, ok bool, err error) {
	texts := map[string]**string{"schedule": &change.Schedule, "prompt": &change.Prompt, "name": &change.Name, "deliver": &change.Deliver, "failure-deliver": &change.FailureDeliver}
	if to := texts[strings.ReplaceAll(field, "_", "-")]; to != nil {
		*to = &value
		return change, true, nil
	}
	switch field {
	case "repeat":
		n, err := cron.ParseRepeat(value)
		change.Repeat = &n
		return change, true, err
	case "skills", "skill":
		list := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		change.Skills = &list
		return change, true, nil
	case "attach", "continuity":
		on, known := map[string]bool{"on": true, "yes": true, "off": false, "no": false}[strings.ToLower(value)]
		switch {
		case known && field == "attach":
			change.Attach = &on
		case known:
			change.Continuity = &on
		case field == "attach" && strings.EqualFold(value, "default"):
			change.Unattach = true
		default:
			return change, false, nil
		}
		return change, true, nil
	}
	return change, false, nil
}
