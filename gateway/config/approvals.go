package config

import "time"

// Approvals is what is asked before a dangerous command runs.
type Approvals struct {
	Mode            string        `yaml:"mode" default:"smart" oneof:"smart,manual,off" doc:"before a dangerous command: smart lets the model judge it and asks a person in doubt, manual always asks, off never does"`
	Timeout         time.Duration `yaml:"timeout" default:"300s" min:"1s" max:"24h" doc:"time to answer; without an answer the command is denied"`
	CronMode        string        `yaml:"cron_mode" default:"deny" oneof:"deny,approve" doc:"dangerous commands of scheduled work, where nobody can be asked"`
	SingleQueryMode string        `yaml:"single_query_mode" default:"deny" oneof:"deny,approve" doc:"dangerous commands of a single question from the command line"`
	UnattendedMode  string        `yaml:"unattended_mode" default:"deny" oneof:"deny,approve" doc:"dangerous commands of other work without a person, such as webhooks"`
	Deny            []string      `yaml:"deny" check:"text" doc:"patterns of commands that never run, such as 'git push*': * is any text and ? one character, without regard to case; compared with the whole line and with every program in it, also inside sudo, env and sh -c"`
	Scope           string        `yaml:"approval_scope" default:"owner" oneof:"owner,admins,any" doc:"who may approve: the person whose message started the work or a named admin, admins alone, or everyone who may talk"`
	ConfirmSlash    bool          `yaml:"destructive_slash_confirm" default:"true" doc:"commands that drop a conversation (/new, /undo, /clear) ask first, unless they end in now, --yes or -y"`
}
