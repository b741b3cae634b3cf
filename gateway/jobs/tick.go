package jobs

import "context"

// Tick looks for due slots now, as the scheduler does by itself when one is due, and returns when each of them has begun or
// has its end.
func (j *Jobs) Tick(ctx context.Context) error {
	_, err := j.scheduler.Look(ctx)
	return err
}
