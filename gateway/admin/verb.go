package admin

import (
	"context"
	"encoding/json"
	"fmt"
)

// With makes a verb of a function that takes its arguments decoded. Missing arguments are the zero value.
func With[Args, Reply any](do func(context.Context, Args) (Reply, error)) Verb {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var args Args
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &args); err != nil {
				return nil, fmt.Errorf("the request's arguments: %w", err)
			}
		}
		return do(ctx, args)
	}
}

// Plain makes a verb of a function that takes no arguments.
func Plain[Reply any](do func(context.Context) (Reply, error)) Verb {
	return func(ctx context.Context, _ json.RawMessage) (any, error) { return do(ctx) }
}

// Identity says which daemon answers.
type Identity struct {
	Version string `json:"version"`
	Home    string `json:"home"`
	Profile string `json:"profile"`
}

// BackupArgs names the file that a backup is written to.
type BackupArgs struct {
	Dest string `json:"dest"`
}
