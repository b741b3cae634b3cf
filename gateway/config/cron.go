package config

import "time"

// Cron is how scheduled jobs run.
type Cron struct {
	Mirror          bool          `yaml:"mirror_delivery" default:"true" doc:"what a job sends to the chat it was made in, or to a home channel in its stead, becomes part of the conversation there, so that it can be answered; a job's attach_to_session wins"`
	Wrap            bool          `yaml:"wrap_response" default:"true" doc:"put the job's name above what it sends, and how to stop it below"`
	Preflight       bool          `yaml:"preflight" default:"true" doc:"a job whose model, skills or scripts are not there does not begin, and says why once"`
	AllowScheduling bool          `yaml:"allow_agent_scheduling" default:"false" doc:"a job may make and change jobs"`
	CatchUp         bool          `yaml:"catch_up_missed" default:"true" doc:"a time that was missed by more than its grace is made up for once; false: it is skipped"`
	MaxParallel     int           `yaml:"max_parallel_jobs" default:"0" min:"0" max:"10000" words:"none,unlimited" env:"HERALD_CRON_MAX_PARALLEL" doc:"how many jobs may run at once; more wait; 0: no limit"`
	Timeout         time.Duration `yaml:"timeout_seconds" default:"600s" min:"0s" max:"24h" env:"HERALD_CRON_TIMEOUT" doc:"a job's agent that shows no sign of life for so long is ended; 0: never"`
	ScriptTimeout   time.Duration `yaml:"script_timeout_seconds" default:"3600s" min:"1s" max:"168h" env:"HERALD_CRON_SCRIPT_TIMEOUT" doc:"time limit of a job's script"`
	Nudge           int           `yaml:"failure_nudge_threshold" default:"3" min:"0" max:"1000" doc:"failures in a row after which a job's notice suggests to look at it; 0: never"`
	Retry           bool          `yaml:"retry_unreachable" default:"true" doc:"a job that does not reach its model is tried again after 5, 15 and 30 minutes, before its next time"`
	Keep            int           `yaml:"output_retention" default:"50" min:"0" max:"100000" doc:"output files that are kept of a job, the newest; 0: all"`
	Model           string        `yaml:"model" check:"text" doc:"the model of jobs that name none; unset: the configured one"`
	Toolsets        []string      `yaml:"toolsets" doc:"toolsets of jobs that name none; empty: those of every chat"`
	Delivery        CronDelivery  `yaml:"delivery" doc:"how the output of jobs is sent"`
}

// CronDelivery is how the output of jobs is sent.
type CronDelivery struct {
	Notify bool `yaml:"notify" default:"true" doc:"with the platform's sound; false: silently, where the platform can"`
}
