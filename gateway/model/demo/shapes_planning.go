package demo

import (
	"encoding/json"
	"strings"
)

const (
	reUnit = `(?:seconds?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|s|m|h|d)`
	reDay  = `(?:week ?days?|weekends?|mon(?:day)?s?|tue(?:sday)?s?|wed(?:nesday)?s?|thu(?:rsday)?s?|fri(?:day)?s?|sat(?:urday)?s?|sun(?:day)?s?|mornings?|afternoons?|evenings?|nights?|` + reUnit + `)`
	reTime = `(?:\d{1,2}(?::\d{2})?\s*(?:am|pm|o'clock)?|noon|midnight)`
	// reWhen is a time or a rhythm, as people say it.
	reWhen = `((?:every|each)\s+(?:\d+\s*` + reUnit + `|(?:other )?` + reDay + `(?:\s*(?:,|and)\s*` + reDay + `)*)(?:\s+at\s+` + reTime + `)?` +
		`|hourly|daily(?:\s+at\s+` + reTime + `)?|weekly|on weekdays(?:\s+at\s+` + reTime + `)?` +
		`|in\s+(?:\d+|an?|half an)\s*` + reUnit +
		`|(?:today|tomorrow|tonight|on ` + reDay + `|next ` + reDay + `)(?:\s+at\s+` + reTime + `)?|at\s+` + reTime + `(?:\s+(?:today|tomorrow))?)`
)

func planningShapes() []shape {
	var all []shape
	all = append(all, todoShapes()...)
	return append(all, cronShapes()...)
}

// todoItem is one entry of the list, in the order the tool writes it.
type todoItem struct {
	ID      string `json:"id"`
	Content string `json:"content"`
	Status  string `json:"status"`
}

// todoIn reads the list out of a result.
func todoIn(text string) []todoItem {
	var r struct {
		Todos []todoItem `json:"todos"`
	}
	if json.Unmarshal([]byte(text), &r) != nil {
		return nil
	}
	return r.Todos
}

// changeTodo reads the list, finds what the user means, and writes it back with another status.
func changeTodo(what, status string) *step {
	what = unquote(what)
	found := func(so []outcome) (todoItem, bool) {
		words := strings.ToLower(what)
		for _, exact := range []bool{true, false} {
			for _, t := range todoIn(so[0].text) {
				c := strings.ToLower(t.Content)
				if exact && (c == words || strings.EqualFold(t.ID, what)) || !exact && (strings.Contains(c, words) || strings.Contains(words, c) &&
					c != "") {
					return t, true
				}
			}
		}
		return todoItem{}, false
	}
	s := &step{tool: "todo"}
	s.calls = func(so []outcome) []planned {
		switch len(so) {
		case 0:
			return []planned{{tool: "todo"}}
		case 1:
			if t, ok := found(so); ok {
				t.Status = status
				return []planned{{tool: "todo", args: fields{{"todos", []todoItem{t}}, {"merge", true}}}}
			}
		}
		return nil
	}
	s.report = func(so []outcome) string {
		if len(so) < 2 {
			return "“" + what + "” is not on the list.\n\n" + describe(so[0])
		}
		return describe(so[1])
	}
	return s
}

func todoShapes() []shape {
	const list = `(?:my |the |our |your )?(?:to-?do|task)s?(?:[ -]?lists?)?`
	add := func(what string) *step {
		var items []todoItem
		for _, w := range enumerate(what, "and") {
			items = append(items, todoItem{slug(w), w, "pending"})
		}
		if len(items) == 0 {
			return nil
		}
		return once("todo", field{"todos", items}, field{"merge", true})
	}
	return []shape{
		{`(?:add|put|write)\s+(.+?)\s+(?:to|on|onto|in)\s+` + list, func(e *env, m []string) *step { return add(m[1]) }},
		{`(?:to-?do|task)\s*:\s*(.+)`, func(e *env, m []string) *step { return add(m[1]) }},
		{`(?:what(?:'s| is| are)\s+(?:still )?(?:on|in)\s+` + list + `|(?:show|list|read|print|see)\s+(?:me\s+)?` + list + `|what(?:'s| is| do i have)\s+(?:left )?to do|` + list + `)`,
			func(e *env, m []string) *step { return once("todo") }},
		{`(?:i'?m |i am )?(?:done|finished)\s+(?:with\s+)?(.+?)(?:\s+on\s+` + list + `)?`, func(e *env, m []string) *step { return changeTodo(m[1], "completed") }},
		{`(?:check|tick|cross)\s+off\s+(.+?)(?:\s+(?:on|from)\s+` + list + `)?`, func(e *env, m []string) *step { return changeTodo(m[1], "completed") }},
		{`mark\s+(.+?)\s+(?:as\s+)?(?:done|finished|complete|completed)`, func(e *env, m []string) *step { return changeTodo(m[1], "completed") }},
		{`(?:i'?m |i am )?(?:starting|start|begin|working on)\s+(?:with )?(.+?)\s+(?:on|from)\s+` + list, func(e *env, m []string) *step { return changeTodo(m[1], "in_progress") }},
		{`(?:clear|empty|delete)\s+` + list, func(e *env, m []string) *step { return once("todo", field{"todos", []todoItem{}}) }},
		{`(?:remove|delete|drop|take)\s+(.+?)\s+(?:from|off)\s+` + list, func(e *env, m []string) *step { return changeTodo(m[1], "cancelled") }},
	}
}

func cronShapes() []shape {
	create := func(when, prompt string) *step {
		prompt = strings.TrimSpace(prompt)
		if prompt == "" {
			return nil
		}
		s := once("cronjob", field{"action", "create"}, field{"schedule", schedule(when)}, field{"prompt", prompt})
		s.whole = true
		return s
	}
	remind := func(when, what string) *step {
		what = strings.TrimSpace(what)
		for _, p := range []string{"to ", "that ", "about ", "of "} {
			if len(what) > len(p) && strings.EqualFold(what[:len(p)], p) {
				what = what[len(p):]
				break
			}
		}
		if what == "" {
			return nil
		}
		return create(when, "Remind me: "+what)
	}
	on := func(action, id string, e *env) *step {
		id = unquote(strings.TrimSpace(id))
		switch strings.ToLower(id) {
		case "", "it", "that", "this", "the job", "the reminder", "that job", "that reminder", "the cron job", "the cronjob":
			id = e.job
		}
		if id != "" {
			return once("cronjob", field{"action", action}, field{"job_id", id})
		}
		// Nothing says which one: look, and act when there is exactly one.
		s := &step{tool: "cronjob"}
		s.calls = func(so []outcome) []planned {
			switch len(so) {
			case 0:
				return []planned{{tool: "cronjob", args: fields{{"action", "list"}}}}
			case 1:
				if id := jobID(so[0].text); id != "" {
					return []planned{{tool: "cronjob", args: fields{{"action", action}, {"job_id", id}}}}
				}
			}
			return nil
		}
		s.report = func(so []outcome) string {
			if len(so) < 2 {
				return "I don't know which job you mean. Say “" + action + " job <id>”.\n\n" + describe(so[0])
			}
			return describe(so[1])
		}
		return s
	}
	const job = `(?:the |my |that |this )?(?:cron ?jobs?|scheduled jobs?|jobs?|reminders?|schedules?)`
	return []shape{
		{`remind\s+me\s+` + reWhen + `\s*,?\s*(.+)`, func(e *env, m []string) *step { return remind(m[1], m[2]) }},
		{`remind\s+me\s+(.+?)\s*,?\s+` + reWhen, func(e *env, m []string) *step { return remind(m[2], m[1]) }},
		{reWhen + `\s*,?\s+remind\s+me\s+(.+)`, func(e *env, m []string) *step { return remind(m[1], m[2]) }},
		{`(?:schedule|create a (?:cron )?job|make a (?:cron )?job)\s*:?\s+` + reWhen + `\s*[:,]?\s*(.+)`, func(e *env, m []string) *step { return create(m[1], m[2]) }},
		{reWhen + `\s*[:,]?\s+(.+)`, func(e *env, m []string) *step { return create(m[1], m[2]) }},
		{`(tell|send|give|ask|show|run|check|write|say)\s+(.+?)\s+((?:every|each)\s.+)`, func(e *env, m []string) *step {
			when := whenOnly().FindStringSubmatch(m[3])
			if when == nil {
				return nil
			}
			return create(when[1], m[1]+" "+m[2])
		}},
		{`(?:list|show)\s+(?:me )?(?:all )?` + job + `|what(?:'s| is)\s+scheduled|what\s+` + job + `\s+(?:do i have|are there)`, func(e *env, m []string) *step {
			return once("cronjob", field{"action", "list"})
		}},
		{`(?:stop|cancel|remove|delete|end)\s+(?:it|that|` + job + `)(?:\s+(\S+))?`, func(e *env, m []string) *step { return on("remove", m[1], e) }},
		{`pause\s+(?:it|that|` + job + `)(?:\s+(\S+))?`, func(e *env, m []string) *step { return on("pause", m[1], e) }},
		{`(?:resume|continue|unpause)\s+(?:it|that|` + job + `)(?:\s+(\S+))?`, func(e *env, m []string) *step { return on("resume", m[1], e) }},
		{`(?:run|trigger)\s+(?:` + job + `)(?:\s+(\S+))?(?:\s+now)?`, func(e *env, m []string) *step { return on("run", m[1], e) }},
	}
}

// schedule writes a time as the job tool reads it: "in 5 minutes" is once, "every …" recurs.
func schedule(when string) string {
	s := strings.Join(strings.Fields(strings.ToLower(when)), " ")
	s = strings.Replace(s, "each ", "every ", 1)
	switch {
	case s == "hourly":
		return "every hour"
	case s == "weekly":
		return "every week"
	case s == "daily":
		return "every day"
	}
	if rest, ok := strings.CutPrefix(s, "daily "); ok {
		return "every day " + rest
	}
	if rest, ok := strings.CutPrefix(s, "on weekdays"); ok {
		return "every weekday" + rest
	}
	s = strings.Replace(s, "in an ", "in 1 ", 1)
	s = strings.Replace(s, "in a ", "in 1 ", 1)
	s = strings.Replace(s, "in half an hour", "in 30 minutes", 1)
	return s
}
