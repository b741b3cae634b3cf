package brief

import (
	"encoding/json"
	"time"

	"herald/cron"
	"herald/sessions"
)

// Result is what sessions.Run.Result holds.
type Result struct {
	// Output is the path of the output file; empty when it could not be written.
	Output string `json:"output,omitempty"`
	// Silent is why nothing was sent of a run that went well: "silent", "no_change".
	Silent string `json:"silent,omitempty"`
	// Blocked says that the job could not begin.
	Blocked bool `json:"blocked,omitempty"`
	// Retry is when the run is tried again.
	Retry time.Time `json:"retry,omitzero"`
	// Deliveries are the places that the output goes to; Problems what was wrong with the targets.
	Deliveries []Delivery `json:"deliveries,omitempty"`
	Problems   []string   `json:"problems,omitempty"`
}

// Delivery is one place that a brief goes to.
type Delivery struct {
	cron.Target
	// State is pending until the platform has answered for every part of the brief; then sent, failed or unknown, the
	// worst of them.
	State sessions.OutboxState `json:"state"`
	Error string               `json:"error,omitempty"`
	Rows  []sessions.OutboxID  `json:"rows,omitempty"`
	// Mirrored says how the brief became part of conversations there: "thread", "channel", "dm", "mirror".
	Mirrored []string `json:"mirrored,omitempty"`
}

// ReadResult reads what a run left; the zero Result when it can't be read.
func ReadResult(run sessions.Run) Result {
	var r Result
	if json.Unmarshal(run.Result, &r) != nil {
		return Result{}
	}
	return r
}
