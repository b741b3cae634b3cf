package cronjob

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// parameters names no actions by an enum: an unknown one is answered after its job was looked for.
const parameters = `{"type":"object","properties":{` +
	`"action":{"type":"string","description":"create, list, update, pause, resume, remove, run (once, now, beside the schedule)."},` +
	`"job_id":{"type":"string","description":"The job's id, or its name where only one has it. Needed by update, pause, resume, remove and run."},` +
	`"all":{"type":"boolean","description":"list: show the jobs that have ended as well."},` +
	`"schedule":{"type":"string","description":"When it runs: \"every 30m\" (or just 30m), \"every hour\", \"every weekday at 9am\", \"mon and thu at 14:00\", \"in 2h\" or \"tomorrow at 8am\" (once), a time such as 2027-01-31T09:00 (once, in the configured time zone), or a cron expression such as \"0 9 * * 1-5\"."},` +
	`"prompt":{"type":"string","description":"What the agent is to do at each run. A run knows nothing of this conversation, so write everything it needs. With run: a note for that run alone."},` +
	`"name":{"type":"string","description":"A short name; without one the beginning of the prompt."},` +
	`"repeat":{"type":"integer","description":"After how many runs the job is done; 0 is never. What runs at one time runs once."},` +
	`"deliver":{"type":["string","array"],"items":{"type":"string"},"description":"Where the answer goes: origin (the chat that the job is made in, else the home channel; the usual one), local (nowhere, it is only kept), all (every home channel), a platform's name (its home channel), platform:chat or platform:chat:thread, or several of them with commas or as a list."},` +
	`"failure_deliver":{"type":["string","array"],"items":{"type":"string"},"description":"Where notices of failures go instead, written like deliver; local keeps them back, \"\" takes it off."},` +
	`"attach_to_session":{"type":"boolean","description":"Whether what is delivered becomes part of the conversation where it arrives, so that people can simply answer it. ` +
	`Left out, the chat of origin, and the home channel that replaces a missing one, follow the operator's setting, and a chat named as platform:chat is not written to. ` +
	`true also takes in such a named chat; false keeps it out of all. Output for all or for a platform's bare name is never attached."},` +
	`"skills":{"type":"array","items":{"type":"string"},"description":"Skills that a run reads first, in this order; [] takes them off."},` +
	`"skill":{"type":"string","description":"The same for one skill."},` +
	`"script":{"type":"string","description":"A script below the home's scripts folder. Its output is put before the prompt; when it prints nothing the agent is not asked."},` +
	`"no_agent":{"type":"boolean","description":"No agent: what the script prints is delivered as it is."},` +
	`"monitor":{"type":"string","description":"A URL or a script: a run does something only when what it gives has changed. \"\" takes it off."},` +
	`"context_from":{"type":"array","items":{"type":"string"},"description":"Ids of jobs whose newest output a run is given; [] takes them off."},` +
	`"continuity":{"type":"boolean","description":"A run is given the job's own newest output."},` +
	`"enabled_toolsets":{"type":"array","items":{"type":"string"},"description":"Toolsets that a run has instead of the usual ones; [] takes them off."},` +
	`"workdir":{"type":"string","description":"An absolute directory in which a run works; \"\" takes it off."},` +
	`"paused":{"type":"boolean","description":"create: make it paused. update: pause or resume it."},` +
	`"paused_reason":{"type":"string","description":"Why it is paused; needs paused true."},` +
	`"reason":{"type":"string","description":"pause: why."}},` +
	`"required":["action"],"additionalProperties":false}`

const description = "Do something later or again and again: make, list and change scheduled jobs. Use it when the person wants to be reminded, or wants anything " +
	"at a time or in a rhythm. Each run is a new conversation that starts from the job's prompt, and its final answer is sent to deliver by itself, so the prompt " +
	"must not ask to send it. Before you change a job whose id you don't know, list them. Tell the person the schedule and the next time from the result."

// arguments are what the model writes.
type arguments[C any] struct {
	Action string `json:"action"`
	JobID  string `json:"job_id"`
	All    bool   `json:"all"`
	Reason string `json:"reason"`
	Prompt string `json:"prompt"` // of a run, its note

	change C
}

// read reads the arguments. What the model may write in several ways is read in one; fields that are no parameters of the
// tool are left out, because a change may hold what only the operator sets.
func read[C any](raw json.RawMessage) (a arguments[C], err error) {
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, err
	}
	var loose struct {
		Deliver        *targets  `json:"deliver,omitempty"`
		FailureDeliver *targets  `json:"failure_deliver,omitempty"`
		Skills         *[]string `json:"skills,omitempty"`
		Skill          *string   `json:"skill,omitempty"` // stands for a list of one
		Repeat         *int      `json:"repeat,omitempty"`
	}
	if err := json.Unmarshal(raw, &loose); err != nil {
		return a, err
	}
	if loose.Skills == nil && loose.Skill != nil {
		loose.Skills = &[]string{*loose.Skill}
	}
	if loose.Repeat != nil && *loose.Repeat < 0 {
		*loose.Repeat = 0 // any number below 1 is forever
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return a, err
	}
	for name := range fields {
		if !slices.Contains(parameterNames(), name) {
			delete(fields, name)
		}
	}
	strict, err := json.Marshal(loose)
	if err == nil {
		err = json.Unmarshal(strict, &fields) // over those that are written loosely
	}
	if err == nil {
		strict, err = json.Marshal(fields)
	}
	if err == nil {
		err = json.Unmarshal(strict, &a.change)
	}
	return a, err
}

// parameterNames are the names of the tool's parameters.
var parameterNames = sync.OnceValue(func() []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal([]byte(parameters), &schema); err != nil {
		panic(err) // the text above is no JSON
	}
	return slices.Collect(maps.Keys(schema.Properties))
})

// targets are one text with commas between them, however they were written.
type targets string

// UnmarshalJSON takes a text or a list of texts, of which the blank ones are left out.
func (t *targets) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = targets(one)
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%s is neither a text nor a list of texts", data)
	}
	list = slices.DeleteFunc(list, func(s string) bool { return strings.TrimSpace(s) == "" })
	*t = targets(strings.Join(list, ","))
	return nil
}
