package config

import "time"

// Checkpoints is what /rollback goes back to, and how long it is kept.
type Checkpoints struct {
	Enabled       bool          `yaml:"enabled" default:"true" doc:"take a picture of the directory before the agent changes files, so that /rollback can go back; needs git"`
	MaxSnapshots  int           `yaml:"max_snapshots" default:"20" min:"1" max:"1000" doc:"checkpoints of a directory that are kept"`
	MaxTotalMB    int           `yaml:"max_total_size_mb" default:"500" min:"0" max:"1000000" doc:"megabytes that all checkpoints may have together after a prune; 0: no cap"`
	MaxFileMB     int           `yaml:"max_file_size_mb" default:"10" min:"0" max:"100000" doc:"largest file that a checkpoint holds, in megabytes; a larger one is never changed by a rollback that does not hold it; 0: no cap"`
	AutoPrune     bool          `yaml:"auto_prune" default:"true" doc:"now and then remove the checkpoints of directories that were not used for retention_days"`
	RetentionDays int           `yaml:"retention_days" default:"7" min:"1" max:"36500" doc:"days the checkpoints of an unused directory are kept"`
	MinInterval   int           `yaml:"min_interval_hours" default:"24" min:"1" max:"8760" doc:"least hours between two prunes"`
	Timeout       time.Duration `yaml:"timeout" default:"30s" min:"10s" max:"60s" env:"HERALD_CHECKPOINT_TIMEOUT" doc:"time limit of one call of git"`
}
