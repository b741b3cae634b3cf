package config

import "time"

// Processes is what runs in the background of conversations.
type Processes struct {
	OnStop string        `yaml:"on_stop" default:"end" oneof:"end,keep" doc:"what becomes of background processes on this machine, or on the host of backend ssh, when Herald stops in order: end: they are ended, and their conversations told; keep: they run on, and the next start takes them up. Those in a lasting container run on. After a crash they are always taken up"`
	Grace  time.Duration `yaml:"term_grace" default:"2s" min:"0s" max:"10m" doc:"how long an ended background process has to stop by itself before it is killed"`
	LogMB  int           `yaml:"log_mb" default:"8" min:"1" max:"10000" doc:"megabytes of one background process's output that are kept on disk; older output is dropped"`
}

// Delegation is about subagents.
type Delegation struct {
	SurfaceProcesses bool `yaml:"surface_child_process_notifications" default:"false" doc:"news of background processes that subagents started reach the conversation" reload:"live"`
}
